"""Counting: persons, noes, revocations. The corpus in tests/corpora/attacks judges the rules about single envelopes."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from approvals.gates import ALICE, BOB, GENESIS, NOW, POLICY, SIGNERS, envelope, facts, key_of, statement
from softkeys import shared_key
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import EnvelopeFile, RepositoryName, Subject, pae, write_envelope
from workpacket.approvals.facts import LegacyUse, PacketLog, PolicyFiles, Verdict
from workpacket.approvals.policy import LEGACY_WORDS
from workpacket.approvals.verify import same_person
from workpacket.value import replace

HOUR = timedelta(hours=1)
LENIENT = POLICY.replace("separation = []", f'separation = []\nlegacy_tokens = "{LEGACY_WORDS}"', 1)
TOKEN = LegacyUse("ana010520261200", "WP-1-Gauge", "activation", NOW, NOW - HOUR)


def codes(verdict: Verdict) -> list[str]:
    return [refusal.code for refusal in verdict.unmet]


def digest(file: EnvelopeFile) -> str:
    return file.name.partition(".")[0]


def revoke(file: EnvelopeFile, **changes: Any) -> EnvelopeFile:
    return envelope(decision="revoke", subjects=(Subject("an approval", digest(file)),), nonce="f" * 32, **changes)


def test_one_good_approval_satisfies_the_gate_and_is_told() -> None:
    file = envelope()
    verdict = decide(facts(file))
    assert (verdict.met, verdict.gate, verdict.assurance, verdict.unmet) == (True, "activation", "signed", ())
    (voice,) = verdict.voices
    assert (voice.principal, voice.role, voice.envelope, voice.nonce, voice.fingerprint) == (
        ALICE,
        "approver",
        digest(file),
        "a" * 32,
        key_of(ALICE).fingerprint,
    )
    assert [each.name for each in verdict.judged] == [file.name]


def test_without_an_envelope_the_gate_says_whom_it_waits_for() -> None:
    verdict = decide(facts())
    assert [refusal.message for refusal in verdict.unmet] == ["needs 1 approval from approver"]
    assert (codes(verdict), verdict.assurance, verdict.voices) == (["approval_missing"], "none", ())


def test_every_reason_is_given_at_once_with_its_file() -> None:
    file = envelope(
        packet="WP-9-Z",
        gate="release",
        role="operator",
        base="c" * 40,
        spec=None,
        policy="0" * 64,
        log_heads=("9" * 64,),
        scope=(),
        issued_at=NOW + HOUR,
        expires_at=NOW + timedelta(days=60),
        subjects=(Subject("other.md", "5" * 64),),
    )
    verdict = decide(facts(file, consumptions={"a" * 32: frozenset({"e1"})}, root_commit="2" * 40))
    assert codes(verdict) == [
        "threshold_unmet",
        "packet_mismatch",
        "gate_mismatch",
        "repository_mismatch",
        "subject_mismatch",
        "subject_mismatch",
        "role_not_accepted",
        "role_not_held",
        "issued_in_future",
        "validity_too_long",
        "approved_spec_moved",
        "policy_moved",
        "scope_moved",
        "base_unknown",
        "log_head_unknown",
        "log_moved",
        "nonce_used",
    ]
    assert {refusal.path for refusal in verdict.unmet[1:]} == {file.name}
    assert verdict.unmet[0].message == "0 of 1 required people have given a valid approval"


def test_after_an_amendment_the_scope_is_that_of_the_approved_contract() -> None:
    """The scope outside of the contract may have changed with it; without an amendment, both count."""
    said, scope = envelope(contract="c" * 64), ("lib/",)
    assert codes(decide(facts(said, scope=scope, contract="c" * 64))) == ["threshold_unmet", "scope_moved"]
    assert decide(facts(said, scope=scope, contract="c" * 64, amended=True)).met
    assert "scope_moved" in codes(decide(facts(said, scope=scope, contract="d" * 64, amended=True)))
    assert "scope_moved" in codes(decide(facts(envelope(), scope=scope, amended=True)))


@pytest.mark.parametrize(
    ("ahead", "told"),
    [(timedelta(minutes=5), []), (timedelta(minutes=5, seconds=1), ["threshold_unmet", "issued_in_future"])],
)
def test_the_clock_of_the_signer_may_be_five_minutes_ahead(ahead: timedelta, told: list[str]) -> None:
    assert codes(decide(facts(envelope(issued_at=NOW + ahead)))) == told


def test_an_approval_does_not_outlive_the_files_of_the_policy_that_it_saw() -> None:
    """The lists of keys have no digest in a statement, so the commits with other files are told."""
    verdict = decide(facts(envelope(), other_policies=frozenset({"b" * 40})))
    assert codes(verdict) == ["threshold_unmet", "policy_moved"]
    assert decide(facts(envelope(), other_policies=frozenset({"c" * 40}))).met


def test_a_key_for_something_else_is_told_with_all_that_it_is_for() -> None:
    signers = key_of(ALICE).line(ALICE, 'namespaces="git,file"') + "\n"
    verdict = decide(facts(envelope(), policy=PolicyFiles(POLICY.encode(), signers.encode())))
    assert verdict.unmet[-1].message == f"the key of {ALICE} is valid only for git, file"


def test_another_repository_is_told_beside_this_one() -> None:
    verdict = decide(facts(envelope(repository=RepositoryName("example/fork", "2" * 40))))
    told = f"example/fork (root {'2' * 40}) and example/rocket (root {'1' * 40})"
    assert verdict.unmet[-1].message == f"the statement was made for a different repository: {told}"


def test_the_verdict_does_not_depend_on_the_order_of_the_files() -> None:
    files = [envelope(), envelope(approver=BOB), envelope(packet="WP-2-B")]
    assert decide(facts(*files)) == decide(facts(*reversed(files)))


def test_a_statement_signed_twice_is_one_voice_and_no_contradiction() -> None:
    key = shared_key("ecdsa-sha2-nistp256")
    policy = PolicyFiles(POLICY.encode(), (SIGNERS + key.line(ALICE) + "\n").encode())
    said = statement(gate="release")
    once, again = (
        EnvelopeFile(*write_envelope(said.payload(), key.fingerprint, key.sign(pae(said.payload())))) for _ in range(2)
    )
    verdict = decide(facts(once, again, gate="release", policy=policy))
    assert once != again
    assert (codes(verdict), len(verdict.voices)) == (["threshold_unmet"], 2)
    assert decide(
        facts(once, again, envelope(gate="release", approver=BOB, nonce="b" * 32), gate="release", policy=policy)
    ).met


def test_two_statements_with_one_nonce_spoil_each_other_but_not_a_third() -> None:
    first, second = envelope(), envelope(expires_at=NOW + HOUR)
    verdict = decide(facts(first, second))
    assert codes(verdict) == ["threshold_unmet", "nonce_repeated", "nonce_repeated"]
    assert decide(facts(first, second, envelope(approver=BOB, nonce="b" * 32))).met


def test_a_faulty_statement_with_the_same_nonce_spoils_nothing() -> None:
    assert decide(facts(envelope(), envelope(packet="WP-2-B"))).met


def test_persons_count_and_not_envelopes() -> None:
    files = [envelope(gate="release", nonce=digit * 32) for digit in "abc"]
    verdict = decide(facts(*files, gate="release"))
    assert codes(verdict) == ["threshold_unmet"]
    assert verdict.unmet[0].message == "1 of 2 required people have given a valid approval"
    assert decide(facts(*files, envelope(gate="release", approver=BOB, nonce="d" * 32), gate="release")).met


@pytest.mark.parametrize(("later", "met"), [(-HOUR, False), (timedelta(0), False), (timedelta(seconds=1), True)])
def test_only_a_later_yes_of_the_same_person_takes_back_a_no(later: timedelta, met: bool) -> None:
    no = envelope(decision="reject", issued_at=NOW - 3 * HOUR)
    yes = envelope(issued_at=NOW - 3 * HOUR + later, nonce="b" * 32)
    verdict = decide(facts(no, yes))
    assert verdict.met == met
    assert codes(verdict) == ([] if met else ["approval_rejected"])
    assert verdict.assurance == ("signed" if met else "none")


def test_a_later_yes_of_another_person_does_not_take_back_a_no() -> None:
    no = envelope(decision="reject", issued_at=NOW - 3 * HOUR)
    verdict = decide(facts(no, envelope(approver=BOB, nonce="b" * 32)))
    assert [refusal.message for refusal in verdict.unmet] == [f"{ALICE} has rejected this text"]


def test_a_later_yes_that_does_not_count_does_not_take_back_a_no() -> None:
    no = envelope(decision="reject", issued_at=NOW - 3 * HOUR)
    stale = envelope(nonce="b" * 32, policy="0" * 64)
    good = envelope(approver=BOB, nonce="c" * 32)
    assert codes(decide(facts(no, stale, good))) == ["approval_rejected"]


def test_a_no_outlives_log_specification_policy_and_its_own_expiry() -> None:
    no = envelope(
        decision="reject", spec=None, policy="0" * 64, log_heads=(), expires_at=NOW - HOUR / 2, base="c" * 40, scope=()
    )
    assert codes(decide(facts(no, envelope(approver=BOB, nonce="b" * 32)))) == ["approval_rejected"]


@pytest.mark.parametrize(
    "changes",
    [{"packet": "WP-2-B"}, {"gate": "release"}, {"role": "operator"}, {"subjects": (Subject("text.md", "6" * 64),)}],
)
def test_a_no_to_something_else_is_not_heard_here(changes: dict[str, Any]) -> None:
    no = envelope(decision="reject", **changes)
    assert decide(facts(no, envelope(approver=BOB, nonce="b" * 32))).met


def test_a_forged_no_is_not_heard() -> None:
    no = envelope(statement(decision="reject"), key=shared_key("ssh-ed25519", "agent"))
    assert decide(facts(no, envelope(approver=BOB, nonce="b" * 32))).met


def settled(*files: EnvelopeFile, **changes: Any) -> Verdict:
    known: dict[str, Any] = {"consumer": "event", "on_base_since": NOW, "now": NOW + timedelta(days=300)}
    return decide(facts(*files, **known | changes))


def test_once_used_on_the_base_time_has_no_more_power() -> None:
    assert settled(envelope()).met
    assert codes(settled(envelope(), on_base_since=None)) == ["threshold_unmet", "approval_expired", "approval_too_old"]
    assert codes(settled(envelope(), consumer=None)) == ["threshold_unmet", "approval_expired", "approval_too_old"]


def test_a_no_said_after_use_comes_too_late() -> None:
    late = envelope(approver=BOB, decision="reject", issued_at=NOW + HOUR, expires_at=NOW + 2 * HOUR)
    assert settled(envelope(), late).met
    in_time = envelope(approver=BOB, decision="reject", issued_at=NOW)
    assert codes(settled(envelope(), in_time)) == ["approval_rejected"]
    assert codes(decide(facts(envelope(), late))) == ["approval_rejected"]
    assert codes(decide(facts(envelope(), late, consumer="event"))) == ["approval_rejected"]


def test_the_event_that_used_the_approval_may_do_so_and_no_other() -> None:
    used = {"a" * 32: frozenset({"event"})}
    assert decide(facts(envelope(), consumptions=used, consumer="event")).met
    assert codes(decide(facts(envelope(), consumptions=used, consumer="other"))) == ["threshold_unmet", "nonce_used"]
    assert codes(decide(facts(envelope(), consumptions=used))) == ["threshold_unmet", "nonce_used"]
    assert decide(facts(envelope(), consumptions={"b" * 32: frozenset({"event"})})).met


def test_a_revocation_by_the_approver_holds_whenever_and_wherever_it_was_given() -> None:
    yes = envelope()
    no_more = revoke(yes, packet="WP-5-Other", gate="release", expires_at=NOW - HOUR / 2, spec=None, log_heads=())
    verdict = decide(facts(yes, no_more))
    assert codes(verdict) == ["threshold_unmet", "approval_revoked"]
    assert verdict.unmet[1].message == f"{ALICE} revoked it"
    assert codes(settled(yes, no_more)) == ["threshold_unmet", "approval_revoked"]


def test_a_revocation_in_another_repository_does_not_hold() -> None:
    yes = envelope()
    other = replace(statement().repository, name="other/rocket")
    assert decide(facts(yes, revoke(yes, repository=other))).met


def test_a_revocation_of_another_envelope_does_not_hold() -> None:
    yes = envelope()
    assert decide(facts(yes, revoke(envelope(approver=BOB)))).met


def test_who_has_a_say_at_the_gate_may_revoke_and_a_stranger_may_not() -> None:
    yes = envelope()
    stranger = shared_key("ssh-ed25519", "stranger")
    signers = (SIGNERS + stranger.line("stranger") + "\n").encode()
    plain = PolicyFiles(POLICY.encode(), signers)
    assert codes(decide(facts(yes, revoke(yes, approver=BOB)))) == ["threshold_unmet", "approval_revoked"]
    assert decide(facts(yes, revoke(yes, approver="stranger"), policy=plain)).met
    as_operator = POLICY.replace("operator = []", 'operator = ["stranger"]')
    policy = PolicyFiles(as_operator.encode(), signers)
    yes = envelope(policy=hashlib.sha256(as_operator.encode()).hexdigest())
    verdict = decide(facts(yes, revoke(yes, approver="stranger"), policy=policy))
    assert codes(verdict) == ["threshold_unmet", "approval_revoked"]


def test_one_may_revoke_what_one_has_signed_even_without_a_role() -> None:
    stranger = shared_key("ssh-ed25519", "stranger")
    policy = PolicyFiles(POLICY.encode(), (SIGNERS + stranger.line("stranger") + "\n").encode())
    yes = envelope(approver="stranger")
    codes_told = codes(decide(facts(yes, revoke(yes, approver="stranger"), policy=policy)))
    assert codes_told == ["threshold_unmet", "role_not_held", "approval_revoked"]


@pytest.mark.parametrize(("age", "met"), [(timedelta(days=3), True), (timedelta(days=3, seconds=1), False)])
def test_an_approval_of_the_greatest_age_is_still_good(age: timedelta, met: bool) -> None:
    policy = POLICY.replace("separation = []", "separation = []\nmax_age_days = 3", 1).encode()
    yes = envelope(issued_at=NOW - age, policy=hashlib.sha256(policy).hexdigest())
    verdict = decide(facts(yes, policy=PolicyFiles(policy, SIGNERS.encode())))
    assert codes(verdict) == ([] if met else ["threshold_unmet", "approval_too_old"])


def test_a_forged_revocation_does_not_hold() -> None:
    yes = envelope()
    said = statement(decision="revoke", subjects=(Subject("x", digest(yes)),))
    assert decide(facts(yes, envelope(said, key=shared_key("ssh-ed25519", "agent")))).met


def test_an_unreadable_file_beside_a_good_one_is_told_and_does_no_harm() -> None:
    verdict = decide(facts(envelope(), EnvelopeFile("junk.dsse.json", b"junk")))
    assert verdict.met
    assert [refusal.code for each in verdict.judged for refusal in each.refusals] == ["envelope_renamed"]


def test_a_signature_and_a_statement_that_cannot_be_read_are_both_named() -> None:
    verdict = decide(facts(EnvelopeFile(*write_envelope(b"{", key_of(ALICE).fingerprint, b"junk"))))
    assert codes(verdict) == ["threshold_unmet", "sshsig_malformed", "approval_not_json"]


def test_a_log_of_many_merges_is_walked_in_no_time() -> None:
    """Along two parents each, sixty merges have more paths than anybody can walk."""
    parents: dict[str, tuple[str, ...]] = {"top0": ()}
    for level in range(60):
        parents |= {f"left{level}": (f"top{level}",), f"right{level}": (f"top{level}",)}
        parents[f"top{level + 1}"] = (f"left{level}", f"right{level}")
    assert PacketLog(parents, frozenset()).seen_from(("top60",)) == parents.keys()


def test_a_merge_in_the_log_shows_both_sides_and_one_side_shows_itself() -> None:
    left, right, top = "2" * 64, "3" * 64, "4" * 64
    log = PacketLog({GENESIS: (), left: (GENESIS,), right: (GENESIS,), top: (left, right)}, frozenset({GENESIS, left}))
    assert log.seen_from((top,)) == {GENESIS, left, right, top}
    assert log.seen_from((right, "unknown")) == {GENESIS, right}
    assert decide(facts(envelope(log_heads=(top,)), log=log)).met
    assert codes(decide(facts(envelope(log_heads=(right,)), log=log))) == ["threshold_unmet", "log_moved"]


def test_an_event_whose_parent_is_not_in_the_log_is_walked_without_harm() -> None:
    assert PacketLog({"b": ("a",)}, frozenset()).seen_from(("b",)) == {"a", "b"}


def lenient(*uses: LegacyUse, **changes: Any) -> Verdict:
    return decide(facts(policy=PolicyFiles(LENIENT.encode(), SIGNERS.encode()), legacy_uses=uses, **changes))


def test_a_token_counts_only_where_the_policy_says_so_and_is_called_legacy() -> None:
    verdict = lenient(TOKEN)
    assert (verdict.met, verdict.assurance, verdict.voices) == (True, "legacy", ())
    assert codes(decide(facts(legacy_uses=(TOKEN,)))) == ["approval_missing", "legacy_refused"]


def test_a_token_for_something_else_is_not_looked_at() -> None:
    for use in (replace(TOKEN, packet="WP-2-B"), replace(TOKEN, gate="release")):
        assert codes(lenient(use)) == ["approval_missing"]


def test_a_bad_token_beside_a_good_one_does_no_harm() -> None:
    assert lenient(replace(TOKEN, token="x"), TOKEN).met
    assert codes(lenient(replace(TOKEN, token="x"))) == ["approval_missing", "legacy_malformed"]


def test_a_signature_is_better_than_a_token() -> None:
    verdict = decide(facts(envelope(), legacy_uses=(TOKEN,)))
    assert (verdict.met, verdict.assurance) == (True, "signed")


def test_a_no_stops_a_token_too() -> None:
    said = statement(decision="reject", policy="0" * 64)
    verdict = lenient(TOKEN, envelopes=(envelope(said),))
    assert (codes(verdict), verdict.assurance) == (["approval_rejected"], "none")


def test_a_gate_without_policy_names_itself() -> None:
    verdict = decide(facts(envelope(), gate="deploy"))
    assert [refusal.message for refusal in verdict.unmet] == ["the policy on the base does not define gate 'deploy'"]
    assert (verdict.met, verdict.gate, verdict.assurance, verdict.judged) == (False, "deploy", "none", ())


def test_a_faulty_policy_stops_everything_with_all_its_faults() -> None:
    verdict = decide(facts(envelope(), policy=PolicyFiles(b"", b"x")))
    assert codes(verdict) == ["approvers_unnamed", "signers_malformed"]
    assert (verdict.met, verdict.gate, verdict.assurance) == (False, "activation", "none")


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("alice@example.org", True),
        (" ALICE@example.org\n", True),
        ("Alice <alice@example.org>", True),
        ("Alice Smith <ALICE@Example.Org> ", True),
        ("alice", False),
        ("alice@example.org.evil", False),
        ("malice@example.org", False),
        ("alice@example.org <bob@example.org>", False),
        ("", False),
    ],
)
def test_a_person_is_known_by_address_however_spelt(name: str, same: bool) -> None:
    assert same_person(name, "Alice@example.org") == same


def test_separation_looks_at_every_party_that_the_gate_names() -> None:
    both = POLICY.replace("separation = []", 'separation = ["author", "coder"]', 1).encode()
    policy = PolicyFiles(both, SIGNERS.encode())
    yes = envelope(policy=hashlib.sha256(both).hexdigest())
    parties = {"author": frozenset({"x"}), "coder": frozenset({"y", ALICE})}
    assert codes(decide(facts(yes, policy=policy, parties=parties))) == ["threshold_unmet", "own_work"]
    assert codes(decide(facts(yes, policy=policy, parties={"author": frozenset({"x"})}))) == [
        "threshold_unmet",
        "party_unknown",
    ]
    assert decide(facts(yes, policy=policy, parties=parties | {"coder": frozenset({"y"})})).met


# --- what has changed since somebody signed ---


def refusals(verdict: Verdict) -> list[tuple[str, str]]:
    return [(refusal.code, refusal.message) for one in verdict.judged for refusal in one.refusals]


def test_an_amendment_is_approved_as_the_first_contract_was_unless_it_has_a_gate_of_its_own() -> None:
    file = envelope(gate="amendment")
    assert decide(facts(file, gate="amendment")).met
    own = f'{POLICY}[approvals.gates.amendment]\nroles = ["approver"]\nthreshold = 2\nseparation = []\n'
    policy = PolicyFiles(own.encode(), SIGNERS.encode())
    file = envelope(gate="amendment", policy=hashlib.sha256(own.encode()).hexdigest())
    assert codes(decide(facts(file, gate="amendment", policy=policy))) == ["threshold_unmet"]
    assert not decide(facts(envelope(gate="waiver"), gate="waiver")).met, "no other gate borrows rules"


def test_another_file_of_the_policy_has_moved_as_well() -> None:
    verdict = decide(facts(envelope(), other_policies=frozenset({"b" * 40})))
    assert refusals(verdict) == [("policy_moved", "the policy files on the base have changed since the approval")]


def test_an_event_that_comes_back_is_asked_for_the_time_when_it_landed_first() -> None:
    late = NOW + timedelta(days=3)
    assert [code for code, _ in refusals(decide(facts(envelope(), now=late)))] == ["approval_expired"]
    assert decide(facts(envelope(), now=late, first_landed=NOW)).met
    assert [code for code, _ in refusals(decide(facts(envelope(), first_landed=late)))] == ["approval_expired"]


def test_another_contract_is_told_where_the_texts_are_the_same() -> None:
    said = {"contract": "c" * 64}
    assert decide(facts(envelope(contract="c" * 64), **said)).met
    assert refusals(decide(facts(envelope(), **said))) == [
        ("contract_mismatch", "the approved contract differs from the one being judged")
    ]
    other = (Subject("text.md", "6" * 64),)
    assert [code for code, _ in refusals(decide(facts(envelope(), subjects=other, **said)))] == ["subject_mismatch"]


def test_a_gate_that_asks_for_a_token_says_what_the_key_is() -> None:
    hard = POLICY.replace("separation = []", 'separation = []\nhardware = "touch"', 1)
    file = envelope(policy=hashlib.sha256(hard.encode()).hexdigest())
    verdict = decide(facts(file, policy=PolicyFiles(hard.encode(), SIGNERS.encode())))
    assert refusals(verdict) == [
        ("hardware_required", "the gate requires a key on a FIDO security key, but this key is a file")
    ]
