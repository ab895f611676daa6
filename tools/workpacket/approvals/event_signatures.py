"""Who signed an event, and whether an authorized signer has signed a checkpoint of the log.

    jq -cS 'del(.sig)' EVENT | ssh-keygen -Y check-novalidate -n workpacket-event@v1 -s SIGNATURE

The namespace differs from the one for approvals, and a key that may approve does not count here: an event key has no
passphrase, so any program running under the account can use it.

A log has thousands of events and few keys. Only the last 64 bytes of a signature differ between two events of one key,
so everything before them is parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias

from workpacket.approvals.actors import KIND_IN_EVENTS, Actors
from workpacket.approvals.fields import CLOCK_SKEW, decode_base64, string
from workpacket.approvals.keys import EdwardsPoint
from workpacket.approvals.policy import Trusted
from workpacket.approvals.sshsig import (
    CHECKPOINT_NAMESPACE,
    EVENT_NAMESPACE,
    Signer,
    SshSignature,
    check_signature,
    read_signature,
    unarmor,
)
from workpacket.digests import sha256, sha512
from workpacket.ledger.verify import Vouching
from workpacket.model.events import LogEvent
from workpacket.problem import Problem
from workpacket.value import Value

State: TypeAlias = Literal["proven", "unsigned", "refused"]

_PROOF: Final = 64
_WRAPPING: Final = b"SSHSIG" + string(EVENT_NAMESPACE.encode()) + string(b"")
_HASHES: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "sha256": lambda data: sha256(data).digest(),
    "sha512": lambda data: sha512(data).digest(),
}

# The role that an actor needs for an event of this type; for other types, any role suffices.
ROLE_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("created", "adopted", "refinement.recorded", "refinement.presented"), "author"),
    **dict.fromkeys(("activated", "amended"), "author"),
    **dict.fromkeys(("claimed", "lease.renewed", "submitted", "evidence.recorded"), "coder"),
    "verdict.given": "validator",
}


class WhoSigned(Value):
    """The result of checking an event's signature. `key` is the fingerprint, if there is a readable signature.

    `proven`: a key that the policy lists for the actor signed these bytes. Otherwise `code` and `message` say why the
    actor is only claimed.
    """

    state: State
    key: str = ""
    code: str = ""
    message: str = ""

    @property
    def proven(self) -> bool:
        return self.state == "proven"


class _Signer:
    """A key, and a signature without its last 64 bytes."""

    def __init__(self, signature: SshSignature, point: EdwardsPoint) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self.fingerprint = signature.key.fingerprint
        self.blob = signature.key.blob
        self._verify = Ed25519PublicKey.from_public_bytes(point.data).verify
        self._invalid = InvalidSignature
        self._hash = _HASHES[signature.hash_name]
        self._wrapping = _WRAPPING + string(signature.hash_name.encode())

    def made(self, proof: bytes, message: bytes) -> bool:
        try:
            self._verify(proof, self._wrapping + string(self._hash(message)))
        except self._invalid:
            return False
        return True


class EventSignatures:
    """Judges event signatures according to one policy. `approving` holds the blobs of keys that may open gates, and
    `revoked` holds those of keys that no longer prove anything.
    """

    def __init__(
        self, actors: Actors, approving: frozenset[bytes] = frozenset(), revoked: frozenset[bytes] = frozenset()
    ) -> None:
        self.actors = actors
        self._approving = approving
        self._revoked = revoked
        self._signers: dict[bytes, _Signer] = {}

    def judge(self, event: LogEvent, file: bytes | None = None) -> WhoSigned:
        """Return who signed the event; `file` is the content of its file, which saves serializing the event again."""
        if not event.sig:
            message = f"{event.type} of {event.packet} by {event.actor.id} has no signature"
            return WhoSigned("unsigned", "", "event_unsigned", message)
        try:
            blob = decode_base64(event.sig)
        except ValueError as fault:
            return _refused("", "event_signature_invalid", f"the signature is {fault}")
        # Everything before the last 64 bytes is the same in all signatures of a key: of ten thousand events, only a few
        # have to be parsed.
        signer = self._signers.get(blob[:-_PROOF]) or self._read(blob)
        if isinstance(signer, WhoSigned):
            return signer
        message_bytes = event.signed_bytes() if file is None else without_signature(file, event.sig)
        if not signer.made(blob[-_PROOF:], message_bytes):
            what = f"the signature by {signer.fingerprint} does not match this event"
            return _refused(signer.fingerprint, "event_signature_invalid", what)
        return self._judge_actor(event, signer)

    def _read(self, blob: bytes) -> _Signer | WhoSigned:
        signature = read_signature(blob, EVENT_NAMESPACE)
        if isinstance(signature, Problem):
            return _refused("", "event_signature_invalid", signature.message)
        point = signature.key.material
        if not isinstance(point, EdwardsPoint) or signature.fido is not None:
            what = f"events must be signed with ssh-ed25519 keys, not {signature.key.kind}"
            return _refused(signature.key.fingerprint, "event_signature_invalid", what)
        return self._signers.setdefault(blob[:-_PROOF], _Signer(signature, point))

    def _judge_actor(self, event: LogEvent, signer: _Signer) -> WhoSigned:
        key, name = signer.fingerprint, event.actor.id
        allowed = self.actors.names_by_key.get(key, ())
        # First: event keys have no passphrase, so a program could use one. If it opened gates too, it could approve its
        # own work.
        if signer.blob in self._approving:
            return _refused(key, "approval_key_in_event", f"{key} can sign approvals, so it must not sign events")
        if signer.blob in self._revoked or not allowed:
            why = "revoked this key" if allowed else "does not list this key for any actor"
            return _refused(key, "actor_key_unknown", f"{key} signed as {name}, but the policy {why}")
        if name not in allowed:
            return _refused(key, "actor_not_allowed", f"{key} may act as {' or '.join(allowed)}, not as {name}")
        what = self._not_allowed(event)
        return _refused(key, "actor_not_allowed", what) if what else WhoSigned("proven", key)

    def _not_allowed(self, event: LogEvent) -> str:
        """Return why the owner of the key may not write this event; '' if they may."""
        name = event.actor.id
        actor = self.actors.by_name[name]
        needed = ROLE_OF.get(event.type, "")
        if KIND_IN_EVENTS[actor.kind] != event.actor.kind:
            return f"{name} is listed as {KIND_IN_EVENTS[actor.kind]}, but the event says {event.actor.kind}"
        if needed and needed not in actor.roles:
            return f"{event.type} requires the {needed} role, which {name} does not have"
        return ""


def signing_key(event: LogEvent) -> str:
    """Return the fingerprint of the key named in an event's signature, whether or not that key made it."""
    try:
        signature = read_signature(decode_base64(event.sig), EVENT_NAMESPACE)
    except ValueError:
        return ""
    return signature.key.fingerprint if isinstance(signature, SshSignature) else ""


def _refused(key: str, code: str, message: str) -> WhoSigned:
    return WhoSigned("refused", key, code, message)


def without_signature(file: bytes, signature: str) -> bytes:
    """Return the event's file without `sig`. That key occurs only once: no other object in an event has a key with that
    name, and quotes in strings are escaped.
    """
    before, _, after = file.partition(f'"sig":"{signature}",'.encode())
    return before + after


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
    """Return the code and message for a valid signature that does not count."""
    key = signature.key
    if key.blob in trusted.revoked:
        return "log_checkpoint_revoked", f"key {key.fingerprint} is revoked"
    if signer is None:
        return _SIGNER, f"allowed_signers on the base does not list key {key.fingerprint}"
    if CHECKPOINT_NAMESPACE not in signer.namespaces or not trusted.policy.holds(signer.principal, ROLE):
        return _SIGNER, f"{signer.principal} needs the {ROLE} role and a key for {CHECKPOINT_NAMESPACE}"
    if told is None or told > judged + CLOCK_SKEW:
        return _OUT_OF_TIME, "the checkpoint is dated in the future"
    # Both times: the first is only claimed, and the second alone would make a key that expired since look invalid.
    if not (signer.valid_at(told) and signer.valid_at(judged)):
        return _OUT_OF_TIME, f"the key of {signer.principal} on line {signer.line} was not valid at that time"
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
