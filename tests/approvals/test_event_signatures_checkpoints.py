"""Who may sign a checkpoint of the log: a key with its own namespace, of a person with the role `ci`, in its time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from approvals.gates import ALICE, BOB, NOW, POLICY, key_of
from softkeys import SoftKey
from workpacket.approvals.event_signatures import judge_signature
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import Trusted, read_policy_files
from workpacket.approvals.sshsig import CHECKPOINT_NAMESPACE, NAMESPACE, armor
from workpacket.ledger.verify import Vouching
from workpacket.problem import Problem

MESSAGE = b"the checkpoint"
KEY = key_of(ALICE)
FOR_CHECKPOINTS = f'namespaces="{CHECKPOINT_NAMESPACE}"'
BEGINS, ENDS = NOW - timedelta(days=1), NOW + timedelta(days=1)
SECOND = timedelta(seconds=1)


def trusted(options: str = FOR_CHECKPOINTS, *, revoked: str = "", ci: str = ALICE, person: str = ALICE) -> Trusted:
    policy = POLICY.replace("operator = []", f'operator = []\nci = ["{ci}"]')
    files = PolicyFiles(policy.encode(), f"{key_of(person).line(person, options)}\n".encode(), revoked.encode())
    found = read_policy_files(files)
    assert isinstance(found, Trusted), found
    return found


def judged(
    by: Trusted | tuple[Problem, ...] | None = None,
    *,
    told: datetime | None = NOW,
    now: datetime = NOW,
    namespace: str = CHECKPOINT_NAMESPACE,
    key: SoftKey = KEY,
    message: bytes = MESSAGE,
) -> Vouching:
    signature = armor(key.sign(message, namespace=namespace)).encode()
    return judge_signature(MESSAGE, signature, trusted() if by is None else by, told, now)


def refused(fault: str, message: str, key: SoftKey = KEY) -> Vouching:
    return Vouching(key=key.fingerprint, fault=fault, message=message)


def test_a_signer_with_the_role_and_a_key_for_it_vouches_for_the_log() -> None:
    assert judged() == Vouching(by=ALICE, key=KEY.fingerprint)
    both = f'namespaces="{NAMESPACE},{CHECKPOINT_NAMESPACE}"'
    assert judged(trusted(both)).by == ALICE


@pytest.mark.parametrize(
    "signature",
    [
        b"nonsense",
        armor(b"nonsense").encode(),
        armor(KEY.sign(MESSAGE, namespace=CHECKPOINT_NAMESPACE)).encode() + b"\xff",
        armor(KEY.sign(MESSAGE + b"\n", namespace=CHECKPOINT_NAMESPACE)).encode(),
        armor(KEY.sign(MESSAGE, namespace=NAMESPACE)).encode(),
    ],
    ids=("no signature", "armor around nothing", "a byte that is not ASCII", "another file", "an approval"),
)
def test_a_signature_of_anything_else_is_broken(signature: bytes) -> None:
    found = judge_signature(MESSAGE, signature, trusted(), NOW, NOW)
    assert (found.by, found.key, found.fault, found.broken) == ("", "", "log_checkpoint_invalid", True)
    assert found.message


def test_without_a_policy_on_the_base_nobody_is_trusted() -> None:
    said = "no trusted signers: the base has no policy"
    assert judged(()) == refused("log_checkpoint_signer", said)
    problems = (Problem("policy_invalid", "it cannot be read"), Problem("policy_invalid", "nor this"))
    assert judged(problems) == refused("log_checkpoint_signer", "no trusted signers: it cannot be read")


def test_a_revoked_key_counts_for_nothing_also_if_it_is_not_listed_any_more() -> None:
    said = f"key {KEY.fingerprint} is revoked"
    assert judged(trusted(revoked=KEY.public_line)) == refused("log_checkpoint_revoked", said)
    gone = trusted(revoked=KEY.public_line, person=BOB)
    assert judged(gone) == refused("log_checkpoint_revoked", said)


def test_a_key_that_is_not_listed_counts_for_nothing() -> None:
    said = f"allowed_signers on the base does not list key {KEY.fingerprint}"
    assert judged(trusted(person=BOB)) == refused("log_checkpoint_signer", said)


def test_the_signer_needs_the_role_and_the_key_the_namespace() -> None:
    said = f"{ALICE} needs the ci role and a key for {CHECKPOINT_NAMESPACE}"
    assert judged(trusted(ci=BOB)) == refused("log_checkpoint_signer", said)
    assert judged(trusted(f'namespaces="{NAMESPACE}"')) == refused("log_checkpoint_signer", said)


def test_a_checkpoint_is_not_dated_after_it_was_judged_but_for_clocks_that_differ() -> None:
    future = refused("log_checkpoint_out_of_time", "the checkpoint is dated in the future")
    assert judged(told=None) == future
    assert judged(told=NOW + timedelta(minutes=5)).by == ALICE
    assert judged(told=NOW + timedelta(minutes=5) + SECOND) == future


def test_the_key_is_valid_at_the_date_of_the_checkpoint_and_when_it_reached_the_base() -> None:
    times = f'valid-after="{BEGINS:%Y%m%d%H%M%S}Z",valid-before="{ENDS:%Y%m%d%H%M%S}Z"'
    limited = trusted(f"{FOR_CHECKPOINTS},{times}")
    assert judged(limited).by == ALICE
    late = refused("log_checkpoint_out_of_time", f"the key of {ALICE} on line 1 was not valid at that time")
    assert judged(limited, told=BEGINS - SECOND) == late
    assert judged(limited, now=ENDS) == late
    assert judged(limited, told=ENDS, now=ENDS) == late
