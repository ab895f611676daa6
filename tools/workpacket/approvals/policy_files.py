"""The three policy files, read together, and what it takes to change them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from workpacket.approvals.allowed_signers import Signers, read_allowed_signers
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import Policy, policy_from_toml
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.revoked_keys import read_revoked_keys
from workpacket.approvals.statement import Subject
from workpacket.model.layout import POLICY_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.value import Value


class Trusted(Value):
    """The policy in force. `digest` is the SHA-256 of `policy.toml`, which statements name.

    The digest leaves out the lists of keys: a new colleague's key must not void what others have approved, and who may
    sign is judged by the lists themselves.
    """

    policy: Policy
    signers: Signers
    revoked: frozenset[bytes]
    digest: str


@lru_cache(maxsize=64)
def read_policy_files(files: PolicyFiles, revoked_keys_now: bytes | None = None) -> Trusted | tuple[Refusal, ...]:
    """The policy, or every reason why there is none to judge by. A history has few policies and many events."""
    if files.policy is None or files.allowed_signers is None:
        missing = POLICY_PATH if files.policy is None else SIGNERS_PATH
        said = policy_from_toml(files.policy, POLICY_PATH) if files.policy is not None else None
        faults = said if isinstance(said, tuple) else ()
        return (*faults, Refusal("policy_unanchored", f"the base revision holds no {missing}", missing))
    policy = policy_from_toml(files.policy, POLICY_PATH)
    signers = read_allowed_signers(files.allowed_signers, SIGNERS_PATH)
    then = read_revoked_keys(files.revoked_keys or b"", REVOKED_PATH)
    now = read_revoked_keys(revoked_keys_now or b"", REVOKED_PATH)
    match policy, signers, then, now:
        case Policy() as policy, Signers() as signers, frozenset() as then, frozenset() as now:
            return Trusted(policy, signers, then | now, hashlib.sha256(files.policy).hexdigest())
        case parts:
            refused = (part for part in parts if isinstance(part, tuple))
            return tuple(dict.fromkeys(refusal for part in refused for refusal in part))


def subjects_of_change(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[Subject, ...] | None:
    """What must be approved at the gate `policy`, under the old policy, before `new` may take the place of `old`.

    Both map paths below `.GOV/policy` to bytes. All files of the new state are subjects, so that a file left out is
    part of what is approved. None means that nothing changes; no subjects, that everything would be removed, which no
    statement can approve.
    """
    if dict(old) == dict(new):
        return None
    return tuple(sorted(Subject(path, hashlib.sha256(data).hexdigest()) for path, data in new.items()))
