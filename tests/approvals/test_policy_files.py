"""The policy files together, and their change."""

from __future__ import annotations

import hashlib

from approvals.gates import POLICY, SIGNERS, envelope, facts, key_of
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import Subject
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import Trusted, read_policy_files
from workpacket.shell.approvals.subject import ApprovalSubject


def codes(files: PolicyFiles, now: bytes | None = None) -> list[tuple[str, str]]:
    refusals = read_policy_files(files, now)
    assert isinstance(refusals, tuple), refusals
    return [(refusal.code, refusal.path) for refusal in refusals]


def test_the_digest_is_that_of_the_policy_alone() -> None:
    trusted = read_policy_files(PolicyFiles(POLICY.encode(), SIGNERS.encode()))
    assert isinstance(trusted, Trusted)
    assert trusted.digest == hashlib.sha256(POLICY.encode()).hexdigest()


def test_keys_revoked_then_and_now_are_both_revoked() -> None:
    then, now = (f"{key_of(person).public_line}\n".encode() for person in ("x", "y"))
    trusted = read_policy_files(PolicyFiles(POLICY.encode(), SIGNERS.encode(), then), now)
    assert isinstance(trusted, Trusted)
    assert trusted.revoked == {key_of("x").blob, key_of("y").blob}


def test_without_policy_or_signers_nothing_is_anchored() -> None:
    assert codes(PolicyFiles(None, SIGNERS.encode())) == [("policy_unanchored", ".GOV/policy/policy.toml")]
    assert codes(PolicyFiles(POLICY.encode(), None)) == [("policy_unanchored", ".GOV/policy/allowed_signers")]
    assert codes(PolicyFiles(None, None)) == [("policy_unanchored", ".GOV/policy/policy.toml")]


def test_the_faults_of_all_files_are_named_at_once_and_none_twice() -> None:
    assert codes(PolicyFiles(b"", b"nonsense", b"nonsense"), b"nonsense") == [
        ("approvers_unnamed", ".GOV/policy/policy.toml"),
        ("signers_malformed", ".GOV/policy/allowed_signers"),
        ("revoked_keys_malformed", ".GOV/policy/revoked_keys"),
    ]


def test_a_change_has_all_new_files_as_subjects() -> None:
    new = {"b": b"2", "a": b"1"}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in new.items()}
    assert ApprovalSubject(tuple(new.items())).subjects == (Subject("a", digests["a"]), Subject("b", digests["b"]))


def test_to_remove_the_whole_policy_is_a_change_that_no_statement_can_approve() -> None:
    subjects = ApprovalSubject(()).subjects
    assert subjects == ()
    verdict = decide(facts(envelope(gate="policy"), gate="policy", subjects=subjects))
    assert [refusal.code for refusal in verdict.unmet] == ["threshold_unmet", "subject_mismatch"]
