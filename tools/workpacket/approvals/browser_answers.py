"""Convert the answer of a browser, after a touch, to SSH signatures and keys.

`signature_from` makes an SSHSIG blob from the answer to `navigator.credentials.get`, and `key_from` a public key from
the answer to `navigator.credentials.create` (WebAuthn, sections 6.1 and 6.5). Both parse strictly and apply the rules
of `webauthn`, so nothing is stored that a gate would refuse.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal, TypeAlias

from workpacket.approvals.fields import Fields, Reader, WireFault, encode_base64, string
from workpacket.approvals.keys import FIDO_ECDSA, PublicKey, read_key_blob
from workpacket.approvals.sshsig import (
    MAGIC,
    NAMESPACE,
    VERSION,
    WEBAUTHN,
    Fido,
    check_signature,
    read_signature,
    to_be_signed,
)
from workpacket.approvals.webauthn import LOCAL, client_data_of, was_asked
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.value import Value

HASH = "sha512"
_UNFIT = "page_answer_unfit"
_ENCODED = lazy_pattern(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?", re.ASCII)
_NEW_AND_TOUCHED = 0x41
_MAY_BE_BACKED_UP = 0x08
# An ES256 key in COSE format, as CTAP serializes it: kind, algorithm and curve, then the coordinates.
_COSE_X = bytes.fromhex("a5010203262001215820")
_COSE_Y = bytes.fromhex("225820")
_COORDINATE = 32


class Declined(Value):
    """The person declined on the page."""


class Touched(Value):
    """The answer to a request for a signature; `numbers` is the DER encoding of ECDSA's two numbers."""

    authenticator_data: bytes
    client_data: bytes
    numbers: bytes


class Registered(Value):
    """The answer to a request for a new key."""

    authenticator_data: bytes
    client_data: bytes


class NewKey(Value):
    """A registered key, and the name by which a page asks for it."""

    public: PublicKey
    credential: bytes


Answer: TypeAlias = Declined | Touched | Registered
Kind: TypeAlias = Literal["touched", "registered"]


def read_answer(document: object, kind: Kind) -> Answer | Problem:
    """Return the data that the page posted, in its form; nothing in it is trusted yet."""
    faults: list[str] = []
    fields = Fields(document, "", faults)
    if fields.has("declined"):
        fields.truth("declined")
        answer: Answer = Declined()
    else:
        data, said = _bytes(fields, "authenticatorData"), _bytes(fields, "clientDataJSON")
        answer = Touched(data, said, _bytes(fields, "signature")) if kind == "touched" else Registered(data, said)
    fields.end()
    return Problem(_UNFIT, "the page sent unexpected data: " + "; ".join(faults)) if faults else answer


def _bytes(fields: Fields, key: str) -> bytes:
    return decode_base64url(fields.text(key, _ENCODED, "base64url without padding"))


def decode_base64url(text: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def challenge_for(message: bytes) -> bytes:
    """Return the challenge that a page passes to a key for an SSHSIG signature over the message."""
    return to_be_signed(NAMESPACE, HASH, message)


def signature_from(answer: Touched, key: PublicKey, origin: str, message: bytes) -> bytes | Problem:
    """Return the SSHSIG blob with the key's signature over the message."""
    from workpacket.approvals.primitives import ecdsa_numbers

    fields = Reader(answer.authenticator_data)
    try:
        party, fido = fields.raw(32), Fido(fields.byte(), fields.u32())
        fields.end()
        r, s = ecdsa_numbers(answer.numbers)
    except ValueError as fault:
        return Problem(_UNFIT, f"the browser's answer is not a signature: {fault}")
    if party != hashlib.sha256(key.application.encode()).digest():
        return Problem(_UNFIT, f"the key that answered was registered for an application other than {key.application}")
    stated = fido.flags.to_bytes(1, "big") + fido.counter.to_bytes(4, "big")
    numbers = string(_positive(r)) + string(_positive(s))
    page = string(origin.encode()) + string(answer.client_data) + string(b"")
    proof = string(WEBAUTHN.encode()) + string(numbers) + stated + page
    parts = (key.blob, NAMESPACE.encode(), b"", HASH.encode(), proof)
    blob = MAGIC + VERSION.to_bytes(4, "big") + b"".join(map(string, parts))
    signature = read_signature(blob)
    if isinstance(signature, Problem):
        return signature
    return check_signature(signature, message) or blob


def _positive(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def key_from(answer: Registered, challenge: bytes, origin: str, *, synced: bool) -> NewKey | Problem:
    """Return the key that the browser registered for `localhost`. A key that can be copied is accepted only with
    `synced`.
    """
    if not was_asked(answer.client_data, client_data_of(challenge, origin, "webauthn.create")):
        return Problem("client_data_wrong", f"the browser registered no key for {origin}")
    fields = Reader(answer.authenticator_data)
    try:
        party, flags, _, _ = fields.raw(32), fields.byte(), fields.u32(), fields.raw(16)
        credential = fields.raw(int.from_bytes(fields.raw(2), "big"))
        x = _after(fields, _COSE_X)
        y = _after(fields, _COSE_Y)
        fields.end()
    except WireFault as fault:
        return Problem(_UNFIT, f"the browser's answer is not a new ECDSA key: {fault}")
    if party != hashlib.sha256(LOCAL.encode()).digest() or flags & _NEW_AND_TOUCHED != _NEW_AND_TOUCHED:
        return Problem(_UNFIT, f"the browser's answer does not come from a security key registered for {LOCAL}")
    if flags & _MAY_BE_BACKED_UP and not synced:
        return Problem("passkey_synced", "the passkey can be copied to other devices, which the policy does not allow")
    parts = (FIDO_ECDSA.encode(), b"nistp256", b"\4" + x + y, LOCAL.encode())
    return NewKey(read_key_blob(b"".join(map(string, parts))), credential)


def _after(fields: Reader, wanted: bytes) -> bytes:
    """Return the coordinate that follows these bytes."""
    if fields.raw(len(wanted)) != wanted:
        raise WireFault("its key has a different form")
    return fields.raw(_COORDINATE)


def public_line(key: NewKey) -> str:
    """Return the line of a `.pub` file. Its comment names the credential, which a page needs to ask for the key."""
    encoded = encode_base64(key.credential)
    return f"{key.public.kind} {encode_base64(key.public.blob)} {_CREDENTIAL}{encoded}"


_CREDENTIAL = "webauthn:"


def credential_in(line: str) -> bytes:
    """Return the credential named in a line of a `.pub` file; b'' if it names none, so that the browser offers the keys
    it has.
    """
    from workpacket.approvals.fields import decode_base64

    comment = line.strip().partition(" ")[2].partition(" ")[2]
    try:
        return decode_base64(comment.removeprefix(_CREDENTIAL)) if comment.startswith(_CREDENTIAL) else b""
    except ValueError:
        return b""
