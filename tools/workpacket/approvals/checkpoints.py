"""Verify that an authorized signer has signed a checkpoint of the log: SSHSIG over the bytes of the event's file. The
namespace differs from that of approvals, so that neither signature can pass for the other, and the signer must have the
role `ci` in the policy of the base.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from workpacket.approvals.allowed_signers import Signer
from workpacket.approvals.fields import CLOCK_SKEW
from workpacket.approvals.policy import Trusted
from workpacket.approvals.sshsig import CHECKPOINT_NAMESPACE, SshSignature, check_signature, read_signature, unarmor
from workpacket.ledger.verify import Vouching
from workpacket.problem import Problem

ROLE: Final = "ci"

_INVALID = "log_checkpoint_invalid"
_SIGNER = "log_checkpoint_signer"
_OUT_OF_TIME = "log_checkpoint_out_of_time"


def judge_signature(
    message: bytes, armored: bytes, trusted: Trusted | tuple[Problem, ...], told: datetime | None, judged: datetime
) -> Vouching:
    """Judge the signature. `told` is the checkpoint's own date; `judged` is when it reached the base, or the current
    time if it has not.
    """
    signature = read_checkpoint_signature(message, armored)
    if isinstance(signature, Problem):
        return Vouching(fault=_INVALID, message=signature.message, broken=True)
    key = signature.key.fingerprint
    if not isinstance(trusted, Trusted):
        why = trusted[0].message if trusted else "the base has no policy"
        return Vouching(key=key, fault=_SIGNER, message=f"no trusted signers: {why}")
    signer = trusted.signers.by_key.get(signature.key.blob)
    objection = _objection(signature, signer, trusted, told, judged)
    if objection is not None or signer is None:
        code, why = objection or (_SIGNER, "")
        return Vouching(key=key, fault=code, message=why)
    return Vouching(by=signer.principal, key=key)


def _objection(
    signature: SshSignature, signer: Signer | None, trusted: Trusted, told: datetime | None, judged: datetime
) -> tuple[str, str] | None:
    """Return code and message for a valid signature that does not count."""
    key = signature.key
    if key.blob in trusted.revoked:
        return "log_checkpoint_revoked", f"the key {key.fingerprint} is revoked"
    if signer is None:
        return _SIGNER, f"allowed_signers on the base does not list the key {key.fingerprint}"
    if CHECKPOINT_NAMESPACE not in signer.namespaces or not trusted.policy.holds(signer.principal, ROLE):
        return _SIGNER, f"{signer.principal} requires the role {ROLE} and a key for {CHECKPOINT_NAMESPACE}"
    if told is None or told > judged + CLOCK_SKEW:
        return _OUT_OF_TIME, "the checkpoint is dated in the future"
    if not (signer.valid_at(told) and signer.valid_at(judged)):
        return _OUT_OF_TIME, f"the key of {signer.principal} on line {signer.line} is not valid at this time"
    return None


def read_checkpoint_signature(message: bytes, armored: bytes) -> SshSignature | Problem:
    """Return the signature, if it is valid for these bytes and this purpose."""
    blob = unarmor(armored.decode("ascii", "replace"))
    if isinstance(blob, Problem):
        return blob
    signature = read_signature(blob, CHECKPOINT_NAMESPACE)
    if isinstance(signature, Problem):
        return signature
    return check_signature(signature, message) or signature
