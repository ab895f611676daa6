"""The file that carries a statement and its signature: a DSSE envelope with exactly one SSH signature.

The file is canonical JSON and one newline, named after its own SHA-256, so that edits are detected and one approval is
one file. The signature is over the pre-authentication encoding (PAE), which includes the payload's type; `sig` is the
SSHSIG blob, whose base64 is the body of the armored text that `ssh-keygen` reads.

An envelope is parsed only once, here, and nothing in it is trusted yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property

from workpacket.approvals.fields import decode_base64, encode_base64, load_json
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature
from workpacket.approvals.statement import Statement, read_statement
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import canonical_bytes
from workpacket.model.layout import envelope_name
from workpacket.problem import Problem
from workpacket.value import Value

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_FINGERPRINT = lazy_pattern(r"SHA256:[A-Za-z0-9+/]{43}")


class Envelope(Value):
    """A parsed envelope. `digest` is the SHA-256 of the file, by which events and revocations name it."""

    digest: str
    payload: bytes
    key_id: str
    signature: bytes


def pae(payload: bytes) -> bytes:
    """Return the bytes that are signed for this payload."""
    kind = PAYLOAD_TYPE.encode("ascii")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def write_envelope(payload: bytes, key_id: str, signature: bytes) -> tuple[str, bytes]:
    """Return the file name and the bytes of the envelope."""
    content = canonical_bytes(
        {
            "payload": encode_base64(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key_id, "sig": encode_base64(signature)}],
        }
    )
    data = content + b"\n"
    return envelope_name(hashlib.sha256(data).hexdigest()), data


def read_envelope(name: str, data: bytes) -> Envelope | Problem:
    """Return the envelope in the file `name` (without folders) with these bytes."""
    try:
        return _read(name, data)
    except WorkpacketError as refused:
        return refused.problem.at(name)


def _read(name: str, data: bytes) -> Envelope:
    digest = hashlib.sha256(data).hexdigest()
    # The name is how events and revocations refer to it.
    if name != envelope_name(digest):
        raise WorkpacketError("envelope_renamed", f"its bytes or its file name were changed: its digest is {digest}")
    envelope = _closed(load_json(data), "the envelope", ("payload", "payloadType", "signatures"))
    kind = envelope["payloadType"]
    if kind != PAYLOAD_TYPE:
        raise WorkpacketError("payload_type_wrong", f"the payload type is {str(kind)[:80]!r}, not {PAYLOAD_TYPE!r}")
    payload = _bytes(envelope["payload"], "payload")
    signatures = envelope["signatures"]
    if not isinstance(signatures, list) or not signatures:
        raise WorkpacketError("signature_missing", "the envelope has no signature")
    if len(signatures) > 1:
        raise WorkpacketError(
            "signature_surplus",
            f"the envelope has {len(signatures)} signatures; each person needs their own envelope",
        )
    signature = _closed(signatures[0], "the signature", ("keyid", "sig"))
    key_id = signature["keyid"]
    if not isinstance(key_id, str) or not _FINGERPRINT.fullmatch(key_id):
        raise WorkpacketError("envelope_malformed", "keyid is not the SHA256 fingerprint of a key")
    blob = _bytes(signature["sig"], "sig")
    # Otherwise one approval could have many files with different digests, and a revocation would name only one of
    # them.
    if data != write_envelope(payload, key_id, blob)[1]:
        raise WorkpacketError("envelope_not_canonical", "the envelope is not canonical JSON followed by one newline")
    return Envelope(digest, payload, key_id, blob)


def _closed(value: object, what: str, keys: tuple[str, ...]) -> dict[str, object]:
    if not isinstance(value, dict) or sorted(value) != sorted(keys):
        raise WorkpacketError(
            "envelope_malformed", f"{what} is not an object with exactly these keys: {', '.join(keys)}"
        )
    return value


def _bytes(value: object, what: str) -> bytes:
    if not isinstance(value, str):
        raise WorkpacketError("envelope_malformed", f"{what} is not a string")
    try:
        return decode_base64(value)
    except ValueError as fault:
        raise WorkpacketError("envelope_malformed", f"{what} is {fault}") from None


class Parts(Value):
    """The parts of a well-formed envelope, each readable or not."""

    envelope: Envelope
    signature: SshSignature | Problem
    statement: Statement | Problem

    @cached_property
    def unreadable(self) -> tuple[Problem, ...]:
        return tuple(part for part in (self.signature, self.statement) if isinstance(part, Problem))

    @cached_property
    def broken(self) -> Problem | None:
        """Return what is wrong with a readable signature over the statement's bytes."""
        if isinstance(self.signature, Problem):
            return None
        return check_signature(self.signature, pae(self.envelope.payload))


class EnvelopeFile(Value):
    """A file in `.GOV/attestations/`; `name` is without folders."""

    name: str
    data: bytes

    @cached_property
    def parts(self) -> Parts | Problem:
        envelope = read_envelope(self.name, self.data)
        if isinstance(envelope, Problem):
            return envelope
        return Parts(envelope, read_signature(envelope.signature), read_statement(envelope.payload))

    @property
    def claim(self) -> Statement | None:
        """Return the statement, trusted or not; None if it cannot be read."""
        if isinstance(self.parts, Problem) or isinstance(self.parts.statement, Problem):
            return None
        return self.parts.statement


class Selection:
    """Many envelopes, read once, in the given order. `claims` has the statement of each readable one. Filtering by
    claim is safe: an approval that claims another packet would be refused anyway, and a rejection or revocation that
    claims another packet does not apply here. Unreadable envelopes claim nothing; `log verify` reports them.
    """

    def __init__(self, files: Iterable[EnvelopeFile]) -> None:
        self._about: dict[tuple[str, str], list[EnvelopeFile]] = {}
        self._revoking: dict[str, list[EnvelopeFile]] = {}
        claims: dict[str, Statement] = {}
        for file in files:
            said = file.claim
            if said is None:
                continue
            claims[file.name] = said
            if said.decision == "revoke":
                for digest in {subject.sha256 for subject in said.subjects}:
                    self._revoking.setdefault(digest, []).append(file)
            else:
                self._about.setdefault((said.packet, said.gate), []).append(file)
        self.claims: Mapping[str, Statement] = claims

    def about(self, packet: str, gate: str) -> tuple[EnvelopeFile, ...]:
        """Return the envelopes about this gate of this packet, and all revocations of them."""
        own = self._about.get((packet, gate), [])
        revoking = (each for file in own for each in self._revoking.get(file.name.partition(".")[0], ()))
        return tuple(dict.fromkeys((*own, *revoking)))
