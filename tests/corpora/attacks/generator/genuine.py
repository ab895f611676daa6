"""What must be accepted. A verifier that refuses everything is no verifier."""

from __future__ import annotations

from datetime import timedelta

from corpora.attacks.generator.people import ALICE, BOB, CAROL, OSCAR
from corpora.attacks.generator.scenario import (
    BASE,
    CONSUMER,
    GENESIS,
    ISSUED,
    MOVED,
    NOW,
    OTHER_EVENT,
    PREPARED,
    ROOT_COMMIT,
    Scenario,
    case,
    sha256,
)
from softkeys import KINDS, TOUCHED, VERIFIED
from workpacket.approvals.envelope import Subject, pae
from workpacket.approvals.fields import LONGEST_VALIDITY
from workpacket.approvals.policy import LEGACY_WORDS
from workpacket.approvals.sshsig import NAMESPACE


def _by_kind(kind: str) -> None:
    def build(scenario: Scenario) -> None:
        scenario.trust_key(ALICE, scenario.key(ALICE, kind))
        scenario.approve(key=scenario.key(ALICE, kind))

    build.__name__ = "genuine_" + kind.partition("@")[0].replace("-", "_")
    build.__doc__ = f"An approval with a key of kind {kind}"
    case()(build)


for _kind in KINDS:
    _by_kind(_kind)


@case()
def genuine_rsa_with_sha256(scenario: Scenario) -> None:
    """RSA with SHA-256, the message hashed with SHA-256 as well."""
    key = scenario.key(ALICE, "ssh-rsa")
    scenario.trust_key(ALICE, key)
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign(pae(payload), hash_name="sha256", algorithm="rsa-sha2-256"))


@case()
def genuine_touch_at_a_touch_gate(scenario: Scenario) -> None:
    """A touched token at a gate that asks for touch."""
    scenario.gate = "touch"
    key = scenario.key(ALICE, "sk-ssh-ed25519@openssh.com")
    scenario.trust_key(ALICE, key)
    scenario.approve(key=key)


@case()
def genuine_pin_at_a_pin_gate(scenario: Scenario) -> None:
    """A token that asked for its PIN, at a gate that asks for that."""
    scenario.gate = "pin"
    key = scenario.key(ALICE, "sk-ecdsa-sha2-nistp256@openssh.com")
    scenario.trust_key(ALICE, key)
    payload = scenario.statement().payload()
    scenario.add(payload, key, key.sign(pae(payload), flags=TOUCHED | VERIFIED))


@case()
def genuine_two_persons(scenario: Scenario) -> None:
    """Two persons with different roles at a gate that asks for two."""
    scenario.gate = "release"
    scenario.approve()
    scenario.approve(approver=CAROL, role="validator")


@case()
def genuine_third_envelope_is_bad(scenario: Scenario) -> None:
    """A worthless third envelope does not spoil two good ones."""
    scenario.gate = "release"
    scenario.approve()
    scenario.approve(approver=BOB)
    scenario.approve(approver=CAROL, role="validator", packet="WP-8-Other")


@case()
def genuine_verdict_by_a_validator(scenario: Scenario) -> None:
    """A verdict by a validator who is not the coder."""
    scenario.gate = "verdict"
    scenario.approve(approver=CAROL)


@case()
def genuine_last_second(scenario: Scenario) -> None:
    """Used in the last second before it expires."""
    scenario.approve(expires_at=NOW + timedelta(seconds=1))


@case()
def genuine_thirty_days(scenario: Scenario) -> None:
    """The longest validity that is allowed."""
    scenario.approve(expires_at=ISSUED + LONGEST_VALIDITY)


@case()
def genuine_clock_a_little_ahead(scenario: Scenario) -> None:
    """The signer's clock is two minutes ahead of the verifier's."""
    scenario.approve(issued_at=NOW + timedelta(minutes=2), expires_at=NOW + timedelta(days=1))


@case()
def genuine_used_before_it_expired(scenario: Scenario) -> None:
    """Expired by now, but the consuming event was on the base in time."""
    scenario.approve()
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.consumptions = {first_nonce(): [CONSUMER]}
    scenario.now = NOW + timedelta(days=400)


@case()
def genuine_version_1_used_on_the_base(scenario: Scenario) -> None:
    """A statement from before there were contracts, whose event the base holds."""
    scenario.approve(version=1, contract=None)
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.consumptions = {first_nonce(): [CONSUMER]}


@case()
def genuine_no_of_version_1_undone(scenario: Scenario) -> None:
    """A no from before there were contracts stands until the same person says yes."""
    scenario.approve(version=1, contract=None, decision="reject")
    scenario.approve(issued_at=ISSUED + timedelta(hours=1))


def first_nonce() -> str:
    return sha256(b"0")[:32]


@case()
def genuine_later_no_after_use(scenario: Scenario) -> None:
    """A no that was said after the approval had been used on the base changes nothing; one would have to revoke."""
    scenario.approve()
    scenario.approve(
        approver=BOB, decision="reject", issued_at=NOW + timedelta(days=2), expires_at=NOW + timedelta(days=3)
    )
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.consumptions = {first_nonce(): [CONSUMER]}
    scenario.now = NOW + timedelta(days=9)


@case()
def genuine_other_events_since(scenario: Scenario) -> None:
    """Events that do not move the lane came after the approval."""
    scenario.approve()
    scenario.parents |= {OTHER_EVENT: [PREPARED]}


@case()
def genuine_second_head_is_no_move(scenario: Scenario) -> None:
    """A parallel branch of the log without a move of the lane is no reason to ask again."""
    scenario.approve()
    scenario.parents |= {MOVED: [GENESIS], OTHER_EVENT: [MOVED]}


@case()
def genuine_dated_key_inside_its_time(scenario: Scenario) -> None:
    """A key with dates, used between them."""
    options = f'namespaces="{NAMESPACE}",valid-after="20260101Z",valid-before="202612312359Z"'
    scenario.trust_key(ALICE, scenario.key(), options)
    scenario.approve()


@case()
def genuine_key_with_two_namespaces(scenario: Scenario) -> None:
    """The line of the key names our namespace beside another."""
    scenario.trust_key(ALICE, scenario.key(), f'namespaces="git,{NAMESPACE}"')
    scenario.approve()


@case()
def genuine_second_key_of_a_person(scenario: Scenario) -> None:
    """A person with two keys uses the second."""
    assert scenario.signers is not None
    key = scenario.key(ALICE, "ecdsa-sha2-nistp256")
    scenario.signers.append(key.line(ALICE))
    scenario.approve(key=key)


@case()
def genuine_another_key_is_revoked(scenario: Scenario) -> None:
    """The list of revoked keys holds other keys, and a comment."""
    scenario.revoked = ["# lost in the train", scenario.key(ALICE, "ecdsa-sha2-nistp256").public_line + " old laptop"]
    scenario.approve()


@case()
def genuine_yes_after_no(scenario: Scenario) -> None:
    """The same person said no first and yes later."""
    scenario.approve(decision="reject", issued_at=ISSUED - timedelta(hours=1))
    scenario.approve()


@case()
def genuine_revoked_no(scenario: Scenario) -> None:
    """A no that its author revoked no longer stands in the way."""
    no = scenario.approve(approver=BOB, decision="reject")
    scenario.approve(approver=BOB, decision="revoke", subjects=(Subject(no, no),))
    scenario.approve()


@case()
def genuine_no_of_a_stranger(scenario: Scenario) -> None:
    """The no of somebody without a role at the gate is information, not a veto."""
    scenario.approve()
    scenario.approve(approver=OSCAR, role="operator", decision="reject")


@case()
def genuine_revocation_without_right(scenario: Scenario) -> None:
    """Somebody without a say revokes another person's approval."""
    digest = scenario.approve()
    scenario.approve(approver=CAROL, role="approver", decision="revoke", subjects=(Subject(digest, digest),))


@case()
def genuine_policy_change(scenario: Scenario) -> None:
    """A change of the policy, approved under the old one."""
    change_policy(scenario)
    scenario.approve(approver=OSCAR, role="operator")


def change_policy(scenario: Scenario) -> None:
    """The subjects are all policy files of the new state."""
    assert scenario.policy is not None
    assert scenario.signers is not None
    new_signers = [*scenario.signers, scenario.key("erin@example.org").line("erin@example.org")]
    scenario.gate, scenario.spec, scenario.scope = "policy", None, []
    scenario.tree = {
        ".GOV/policy/allowed_signers": "".join(f"{line}\n" for line in new_signers).encode(),
        ".GOV/policy/policy.toml": scenario.policy.replace(BOB, f'{BOB}", "erin@example.org').encode(),
    }
    scenario.subjects = sorted(scenario.tree)


@case()
def genuine_policy_seen_before(scenario: Scenario) -> None:
    """The base has moved on from the commit at which another policy was last seen here."""
    scenario.approve()
    remember_policy(scenario, b"older", is_ancestor=True)


def remember_policy(scenario: Scenario, policy: bytes, *, is_ancestor: bool) -> None:
    """The verifier's machine has last seen this policy, at another commit."""
    assert scenario.policy is not None
    pinned = {"v": 1, "rootCommit": ROOT_COMMIT, "base": "f" * 40, "policy": sha256(policy)}
    seen = {"v": 1, "rootCommit": ROOT_COMMIT, "base": BASE, "policy": sha256(scenario.policy.encode())}
    scenario.trust = {"pinned": pinned, "seen": seen, "relation": {"pinnedIsAncestor": is_ancestor}}


@case()
def genuine_legacy_token(scenario: Scenario) -> None:
    """An old-style token where the policy accepts it in so many words."""
    assert scenario.policy is not None
    words = f'separation = ["author"]\nlegacy_tokens = "{LEGACY_WORDS}"'
    scenario.policy = scenario.policy.replace('separation = ["author"]', words, 1)
    scenario.legacy_uses = [legacy_use(scenario)]


def legacy_use(scenario: Scenario, **changes: str | None) -> dict[str, str | None]:
    """A token of the 9th of March 2026, 10:00, recorded an hour after the text was presented."""
    use: dict[str, str | None] = {
        "token": "alice090320261000",
        "packet": scenario.packet,
        "gate": scenario.gate,
        "presentedAt": "2026-03-09T09:00:00Z",
        "recordedAt": "2026-03-09T10:00:00Z",
    }
    return use | changes
