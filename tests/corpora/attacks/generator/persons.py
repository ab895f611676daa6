"""Attacks on who decides: roles, numbers, revocation, and the policy itself."""

from __future__ import annotations

from datetime import timedelta

from corpora.attacks.generator.genuine import change_policy, first_nonce, legacy_use, remember_policy
from corpora.attacks.generator.people import ALICE, BOB, CAROL, MALLORY
from corpora.attacks.generator.scenario import CONSUMER, ISSUED, NOW, Scenario, case
from corpora.attacks.generator.signatures import raw_envelope
from workpacket.approvals.envelope import Subject, pae
from workpacket.approvals.policy import LEGACY_WORDS
from workpacket.approvals.sshsig import NAMESPACE


@case("own_work")
def author_approves(scenario: Scenario) -> None:
    """The author of the refinement approves it."""
    scenario.parties["author"] = [ALICE]
    scenario.approve()


@case("own_work")
def author_in_other_spelling(scenario: Scenario) -> None:
    """The author as git writes her, in capitals."""
    scenario.parties["author"] = ["Alice <ALICE@Example.ORG>"]
    scenario.approve()


@case("own_work")
def coder_validates(scenario: Scenario) -> None:
    """The coder gives the verdict on the own work."""
    scenario.gate = "verdict"
    scenario.parties["coder"] = ["agent-7", CAROL]
    scenario.approve(approver=CAROL)


@case("party_unknown")
def author_not_recorded(scenario: Scenario) -> None:
    """Nobody knows who the author is, so nobody is known to be somebody else."""
    scenario.parties["author"] = []
    scenario.approve()


@case("threshold_unmet")
def two_keys_of_one_person(scenario: Scenario) -> None:
    """Two of three asked for; one person signs with two keys."""
    assert scenario.signers is not None
    scenario.gate = "release"
    second = scenario.key(ALICE, "ecdsa-sha2-nistp256")
    scenario.signers.append(second.line(ALICE))
    scenario.approve()
    scenario.approve(key=second)


@case("threshold_unmet")
def one_envelope_for_two_persons(scenario: Scenario) -> None:
    """Two asked for, one there."""
    scenario.gate = "release"
    scenario.approve()


@case("principal_ambiguous")
def one_person_in_two_spellings(scenario: Scenario) -> None:
    """A second line of the same person in capitals, to be counted twice."""
    assert scenario.signers is not None
    scenario.signers.append(scenario.key(ALICE, "ecdsa-sha2-nistp256").line("Alice@example.org"))
    scenario.approve()


@case("key_shared")
def one_key_of_two_persons(scenario: Scenario) -> None:
    """One key on the lines of two persons."""
    assert scenario.signers is not None
    scenario.signers.append(scenario.key(ALICE).line("zoe@example.org"))
    scenario.approve()


@case("role_not_held")
def role_only_claimed(scenario: Scenario) -> None:
    """A known person claims a role that the policy gives to others."""
    scenario.approve(approver=MALLORY)


@case("role_not_accepted")
def role_of_another_gate(scenario: Scenario) -> None:
    """A validator approves the activation, which asks for an approver."""
    scenario.approve(approver=CAROL, role="validator")


@case("approval_rejected")
def another_person_said_no(scenario: Scenario) -> None:
    """Another person with a say has said no to this text."""
    scenario.approve()
    scenario.approve(approver=BOB, decision="reject")


@case("approval_rejected")
def no_after_yes(scenario: Scenario) -> None:
    """The same person said yes and then no."""
    scenario.approve()
    scenario.approve(decision="reject", issued_at=ISSUED + timedelta(seconds=1))


@case("approval_rejected")
def expired_no_still_stands(scenario: Scenario) -> None:
    """A no does not run out while the text is the same."""
    scenario.approve()
    issued = NOW - timedelta(days=60)
    scenario.approve(approver=BOB, decision="reject", issued_at=issued, expires_at=issued + timedelta(days=1))


@case("threshold_unmet")
def a_no_is_not_a_yes(scenario: Scenario) -> None:
    """Two asked for: one yes, and one no that was withdrawn is still not a second yes."""
    scenario.gate = "release"
    scenario.approve()
    no = scenario.approve(approver=BOB, decision="reject")
    scenario.approve(approver=BOB, decision="revoke", subjects=(Subject(no, no),))


@case("approval_revoked")
def revoked_by_the_approver(scenario: Scenario) -> None:
    """The approver took the approval back."""
    digest = scenario.approve()
    scenario.approve(decision="revoke", subjects=(Subject(digest, digest),))


@case("approval_revoked")
def revoked_by_an_operator(scenario: Scenario) -> None:
    """An operator took it back."""
    digest = scenario.approve()
    operator = "oscar@example.org"
    scenario.approve(approver=operator, role="operator", decision="revoke", subjects=(Subject(digest, digest),))


@case("approval_revoked")
def revoked_after_use(scenario: Scenario) -> None:
    """Revocation is judged anew even when the approval was used long ago."""
    digest = scenario.approve()
    later = NOW + timedelta(days=50)
    subject = (Subject(digest, digest),)
    scenario.approve(decision="revoke", subjects=subject, issued_at=later, expires_at=later + timedelta(days=1))
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.consumptions = {first_nonce(): [CONSUMER]}
    scenario.now = later


@case("key_revoked")
def key_revoked(scenario: Scenario) -> None:
    """The key stands on the list of revoked keys at the base."""
    scenario.revoked = [scenario.key().public_line]
    scenario.approve()


@case("key_revoked")
def key_revoked_after_use(scenario: Scenario) -> None:
    """The key was revoked after the approval had been used: a stolen key is stolen for the past as well."""
    scenario.approve()
    scenario.revoked_now = [scenario.key().public_line]
    scenario.consumer, scenario.on_base_since = CONSUMER, NOW
    scenario.consumptions = {first_nonce(): [CONSUMER]}
    scenario.now = NOW + timedelta(days=90)


@case("revoked_keys_malformed")
def list_of_revoked_keys_unreadable(scenario: Scenario) -> None:
    """A list of revoked keys that cannot be read is not an empty list."""
    scenario.revoked = ["SSHKRL\\n binary"]
    scenario.approve()


@case("key_not_for_approvals")
def key_only_for_git(scenario: Scenario) -> None:
    """The person's key is trusted for commits only."""
    scenario.trust_key(ALICE, scenario.key(), 'namespaces="git"')
    scenario.approve()


@case("event_key_at_gate")
def event_key_in_allowed_signers(scenario: Scenario) -> None:
    """A key that signs events, and so has no passphrase, stands in allowed_signers too."""
    assert scenario.policy is not None
    scenario.policy += f'\n[actors.alice]\nkind = "person"\nkeys = ["{scenario.key().fingerprint}"]\n'
    scenario.approve()


@case("principal_pattern")
def wildcard_principal(scenario: Scenario) -> None:
    """A line that speaks for everybody."""
    assert scenario.signers is not None
    scenario.signers.append(scenario.key("agent-7").line("*@example.org"))
    scenario.approve(key=scenario.key("agent-7"))


@case("principal_pattern")
def two_principals_on_a_line(scenario: Scenario) -> None:
    """One key for two persons, in one line."""
    assert scenario.signers is not None
    scenario.signers.append(scenario.key("agent-7").line(f"agent-7,{BOB}"))
    scenario.approve(approver=BOB, key=scenario.key("agent-7"))


@case("signers_malformed")
def key_without_namespaces(scenario: Scenario) -> None:
    """A line without namespaces would trust the key for everything."""
    scenario.trust_key(ALICE, scenario.key(), 'valid-after="20200101Z"')
    scenario.approve()


@case("signers_malformed")
def key_with_wildcard_namespace(scenario: Scenario) -> None:
    """A pattern among the namespaces."""
    scenario.trust_key(ALICE, scenario.key(), 'namespaces="*"')
    scenario.approve()


@case("signers_malformed")
def certificate_authority(scenario: Scenario) -> None:
    """A line that lets a certificate authority name the signers."""
    scenario.trust_key(ALICE, scenario.key(), f'cert-authority,namespaces="{NAMESPACE}"')
    scenario.approve()


@case("signers_malformed")
def local_time_in_signers(scenario: Scenario) -> None:
    """A date without zone, which means another moment on each machine."""
    scenario.trust_key(ALICE, scenario.key(), f'namespaces="{NAMESPACE}",valid-before="20300101"')
    scenario.approve()


@case("key_weak")
def short_rsa_key_in_signers(scenario: Scenario) -> None:
    """The list of signers itself names a key that is too short."""
    assert scenario.signers is not None
    key = scenario.people.key(ALICE, "ssh-rsa", "2048")
    scenario.signers.append(key.line(ALICE))
    scenario.add_json(raw_envelope(scenario, scenario.people.sign(key, pae(scenario.statement().payload()))))


@case("policy_unanchored")
def no_policy_at_the_base(scenario: Scenario) -> None:
    """The base holds no policy; one in the work tree does not count."""
    scenario.approve()
    assert scenario.policy is not None
    scenario.tree[".GOV/policy/policy.toml"] = scenario.policy.encode()
    scenario.policy = None


@case("policy_unanchored")
def no_signers_at_the_base(scenario: Scenario) -> None:
    """The base names no signers."""
    scenario.approve()
    scenario.signers = None


def _policy(old: str, new: str, name: str, title: str) -> None:
    def build(scenario: Scenario) -> None:
        assert scenario.policy is not None
        assert old in scenario.policy
        scenario.policy = scenario.policy.replace(old, new, 1)
        scenario.approve()

    build.__name__, build.__doc__ = name, title
    case("policy_malformed")(build)


_policy("threshold = 1", "threshold = 0", "threshold_zero", "A gate that nobody needs to approve.")
_policy("threshold = 1", "threshold = -1", "threshold_negative", "A threshold below zero.")
_policy("threshold = 1", "threshold = true", "threshold_true", "True is not a number.")
_policy("threshold = 1\n", "", "threshold_left_out", "A gate without a threshold.")
_policy("threshold = 1", "treshold = 2\nthreshold = 1", "unknown_key_in_policy", "A misspelt key beside the right one.")
_policy("threshold = 2", "threshold = 4", "threshold_beyond_the_people", "More persons asked for than have a role.")
_policy('"author"', '"auther"', "unknown_party", "Separation from a party that does not exist.")
_policy('roles = ["approver"]', 'roles = ["everybody"]', "unknown_role", "A gate for a role that nobody defined.")
_policy(
    "max_age_days = 3",
    "max_age_days = 3650",
    "max_age_of_ten_years",
    "A gate that would accept ten-year-old approvals.",
)
_policy(
    "[approvals.gates.policy]", "[approvals.gates.polity]", "policy_without_its_own_gate", "No rule for its own change."
)
_policy('hardware = "touch"', "hardware = true", "hardware_true", "A requirement of unknown meaning.")
_policy("[approvals]\n", "[approvals]\nlegacy = true\n", "unknown_key_in_approvals", "A key that no rule reads.")


@case("policy_malformed")
def policy_not_toml(scenario: Scenario) -> None:
    """A policy that is not TOML."""
    scenario.approve()
    scenario.policy = "[approvals\n"


@case("approvers_unnamed")
def policy_without_approvals(scenario: Scenario) -> None:
    """A policy that says nothing of who may approve what."""
    scenario.approve()
    scenario.policy = '[check]\nprofile = "strict"\n'


@case("gate_without_policy")
def gate_unknown_to_the_policy(scenario: Scenario) -> None:
    """A human gate without a rule stays shut."""
    scenario.gate = "deploy"
    scenario.approve()


@case("signer_unknown", "role_not_held")
def policy_change_signed_by_its_beneficiary(scenario: Scenario) -> None:
    """The pull request that makes Erin an approver is approved by Erin."""
    change_policy(scenario)
    scenario.approve(approver="erin@example.org")


@case("subject_mismatch")
def policy_file_added_to_an_approved_change(scenario: Scenario) -> None:
    """A policy change is approved, and one more file of the policy changes with it."""
    change_policy(scenario)
    scenario.approve()
    scenario.tree[".GOV/policy/revoked_keys"] = (scenario.key(BOB).public_line + "\n").encode()
    scenario.subjects = sorted(scenario.tree)


@case("subject_mismatch")
def whole_policy_removed(scenario: Scenario) -> None:
    """Every policy file is removed; no statement can say yes to nothing."""
    change_policy(scenario)
    scenario.approve()
    scenario.tree, scenario.subjects = {}, []


@case("signer_unknown")
def signer_added_in_the_work_tree(scenario: Scenario) -> None:
    """The change that is judged brings its own list of signers along."""
    agent = scenario.key("agent-7")
    scenario.tree[".GOV/policy/allowed_signers"] = (agent.line(ALICE) + "\n").encode()
    scenario.approve(key=agent)


@case("threshold_unmet")
def policy_relaxed_in_the_work_tree(scenario: Scenario) -> None:
    """The change that is judged lowers the threshold that it has to meet."""
    assert scenario.policy is not None
    scenario.gate = "release"
    scenario.tree[".GOV/policy/policy.toml"] = scenario.policy.replace("threshold = 2", "threshold = 1").encode()
    scenario.approve()


@case("approver_mismatch", "role_not_held")
def approver_in_other_spelling(scenario: Scenario) -> None:
    """The statement writes the approver in capitals, to be counted as somebody else."""
    scenario.approve(approver="Alice@example.org", key=scenario.key())


@case("policy_rolled_back")
def policy_rolled_back(scenario: Scenario) -> None:
    """The base is behind the commit at which the policy was last seen, and has an older policy."""
    scenario.approve()
    remember_policy(scenario, b"newer", is_ancestor=False)


def _legacy_accepted(scenario: Scenario) -> None:
    assert scenario.policy is not None
    words = f'separation = ["author"]\nlegacy_tokens = "{LEGACY_WORDS}"'
    scenario.policy = scenario.policy.replace('separation = ["author"]', words, 1)


@case("legacy_refused", "approval_missing")
def token_where_none_is_accepted(scenario: Scenario) -> None:
    """A name and a date, where the policy says nothing about them."""
    scenario.legacy_uses = [legacy_use(scenario)]


@case("legacy_reused")
def token_used_twice(scenario: Scenario) -> None:
    """The same token stands for an older packet."""
    _legacy_accepted(scenario)
    scenario.legacy_uses = [legacy_use(scenario), legacy_use(scenario, packet="WP-1-Old")]


@case("legacy_date_unreal")
def token_of_the_thirtieth_of_february(scenario: Scenario) -> None:
    """A day that does not exist."""
    _legacy_accepted(scenario)
    scenario.legacy_uses = [legacy_use(scenario, token="alice300220261000")]


@case("legacy_malformed")
def token_with_newline(scenario: Scenario) -> None:
    """A newline behind the token, which `$` in a pattern would let pass."""
    _legacy_accepted(scenario)
    scenario.legacy_uses = [legacy_use(scenario, token="alice090320261000\n")]


@case("legacy_hasty")
def token_without_time_to_read(scenario: Scenario) -> None:
    """Recorded ten seconds after the text was presented."""
    _legacy_accepted(scenario)
    scenario.legacy_uses = [legacy_use(scenario, presentedAt="2026-03-09T09:59:50Z")]


@case("legacy_date_off")
def token_of_next_year(scenario: Scenario) -> None:
    """A token that names a day a year after it was recorded."""
    _legacy_accepted(scenario)
    scenario.legacy_uses = [legacy_use(scenario, token="alice090320271000")]


@case("own_work")
def token_of_the_author(scenario: Scenario) -> None:
    """The author's own token."""
    _legacy_accepted(scenario)
    scenario.parties["author"] = ["Alice"]
    scenario.legacy_uses = [legacy_use(scenario)]
