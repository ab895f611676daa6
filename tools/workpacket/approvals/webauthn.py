"""Signatures that a security key or passkey makes on a web page, and the pages from which a policy accepts them.

They are SSHSIG signatures of the type `webauthn-sk-ecdsa-sha2-nistp256@openssh.com` (OpenSSH, PROTOCOL.u2f). The key
signs the digest of the client data. This is a JSON text that the browser writes; it contains the signed bytes (as the
challenge) and the origin of the page. `ssh-keygen -Y verify` checks only the first three members of that text. This
module checks the whole text:

- type, challenge, origin and crossOrigin come first, byte for byte as every browser serializes them (WebAuthn, section
  5.8.1.1); crossOrigin is false, so the page was not in a frame on another site;
- anything that browsers add after them is compact JSON in which no member appears twice or names a top-level site;
- the token's flags are touch, PIN and the two backup flags; it has no extensions and registers no key;
- the policy lists the origin and the relying party, and they belong together.

A page's key is bound to a relying party, such as `localhost`; a key from `ssh-keygen` is bound to an application that
begins with `ssh:`. Neither can be used in place of the other.

`signature_from` makes an SSHSIG blob from the answer to `navigator.credentials.get`, and `key_from` a public key from
the answer to `navigator.credentials.create` (WebAuthn, sections 6.1 and 6.5). Both apply the rules above, so nothing is
stored that a gate would refuse.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Literal, TypeAlias

from workpacket.approvals.fields import Fields, Reader, WireFault, encode_base64, load_json, string
from workpacket.approvals.keys import FIDO_ECDSA, HOST, RELYING_PARTY, PublicKey, read_key_blob
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
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import Value

LOCAL = "localhost"
# The port of the page if the policy names none yet: it must be the same later, and few programs use it.
USUAL_PORT = 7363

# Touched, person verified, may be backed up, is backed up: the flags that a token sets when it signs on a page.
_KNOWN_FLAGS = 0x1D
_MAY_BE_BACKED_UP, _IS_BACKED_UP = 0x08, 0x10

# Four times as much as browsers write, including everything that Chromium adds at random.
LONGEST_CLIENT_DATA = 2048
# How deeply Python can parse JSON depends on the caller, and a verdict must not depend on that.
MOST_BRACKETS = 16
_PORT = r"[1-9][0-9]{0,4}"
_ORIGIN = lazy_pattern(rf"https?://[a-z0-9.-]+(?::{_PORT})?", re.ASCII)
# Browsers let a page use keys only if it came over TLS, or from this machine.
_SAFE_ORIGIN = lazy_pattern(rf"(?:https://{HOST}|http://{LOCAL})(?::{_PORT})?", re.ASCII)


class Page(Value):
    """The page on which a key was asked to sign: the origin, and the client data as the browser wrote it."""

    origin: str
    client_data: bytes

    def was_asked_for(self, challenge: bytes) -> bool:
        return was_asked(self.client_data, client_data_of(challenge, self.origin))


def read_page(fields: Reader, flags: int) -> Page:
    """Read what follows the flags and the counter in a page's signature; raise `WireFault` if it is malformed."""
    if flags & ~_KNOWN_FLAGS or (flags & _IS_BACKED_UP and not flags & _MAY_BE_BACKED_UP):
        raise WireFault(f"its flags are {flags:#04x}, which no security key sets when it signs on a page")
    origin, client_data, extensions = fields.text(), fields.string(), fields.string()
    if not _ORIGIN.fullmatch(origin):
        raise WireFault("its origin is not a web origin")
    if extensions:
        raise WireFault("it has extensions")
    return Page(origin, client_data)


def client_data_of(challenge: bytes, origin: str, kind: str = "webauthn.get") -> bytes:
    """Return the part of the client data that is the same in all browsers."""
    encoded = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
    return f'{{"type":"{kind}","challenge":"{encoded}","origin":"{origin}","crossOrigin":false'.encode()


def was_asked(client_data: bytes, expected: bytes) -> bool:
    """Whether a browser wrote the client data in response to the request that `client_data_of` describes."""
    if client_data == expected + b"}":
        return True
    return client_data.startswith(expected + b",") and _has_one_reading(client_data)


def _has_one_reading(client_data: bytes) -> bool:
    """Whether the text is compact JSON of limited size in which no member appears twice or names a top-level site."""
    if len(client_data) > LONGEST_CLIENT_DATA or client_data.count(b"{") + client_data.count(b"[") > MOST_BRACKETS:
        return False
    try:
        members = load_json(client_data)
        written = json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()
    except (WorkpacketError, UnicodeEncodeError):
        return False
    return written == client_data and not Fields(members, "", []).has("topOrigin")


class PagesAccepted(Value):
    """The `[approvals.webauthn]` table: the pages from which a policy accepts signatures, and the owners of their keys.

    `port` is the port of the page that `approve --browser` serves, or 0. `synced` admits passkeys that can be copied to
    other devices; `pin` requires a PIN or fingerprint at every gate.
    """

    relying_parties: tuple[str, ...]
    origins: tuple[str, ...]
    port: int = 0
    synced: bool = False
    pin: bool = False

    def accept(self, relying_party: str, origin: str) -> bool:
        return relying_party in self.relying_parties and origin in self.origins and _belongs(origin, relying_party)


def local_origin(port: int) -> str:
    return f"http://{LOCAL}:{port}"


def read_pages_accepted(fields: Fields) -> PagesAccepted:
    """Return the table; its faults are collected in `fields`."""
    accepted = PagesAccepted(
        relying_parties=fields.texts("rp_ids", RELYING_PARTY, f"relying parties, such as {LOCAL!r}"),
        origins=fields.texts(
            "origins", _SAFE_ORIGIN, f"origins, such as '{local_origin(USUAL_PORT)}' or 'https://HOST'"
        ),
        port=fields.whole("port", 1024, 65535) if fields.has("port") else 0,
        synced=fields.has("synced") and fields.truth("synced"),
        pin=fields.has("pin") and fields.truth("pin"),
    )
    fields.end()
    for origin in accepted.origins:
        if not any(_belongs(origin, each) for each in accepted.relying_parties):
            fields.fault("origins", f"lists {origin}, which does not match any entry in rp_ids")
    if accepted.port and not accepted.accept(LOCAL, local_origin(accepted.port)):
        fields.fault("port", f"is {accepted.port}, but origins does not list {local_origin(accepted.port)}")
    return accepted


def _belongs(origin: str, relying_party: str) -> bool:
    """Whether a page may use the keys of a relying party: those of its own host and of the domains above it."""
    host = origin.partition("://")[2].partition(":")[0]
    return host == relying_party or host.endswith(f".{relying_party}")


HASH = "sha512"
_UNFIT = "page_answer_unfit"
_ENCODED = lazy_pattern(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?", re.ASCII)
_NEW_AND_TOUCHED = 0x41
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
    """Return the answer that the page posted, checked only for its form; nothing in it is trusted yet."""
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
    from workpacket.approvals.keys import ecdsa_numbers

    fields = Reader(answer.authenticator_data)
    try:
        party, fido = fields.raw(32), Fido(fields.byte(), fields.u32())
        fields.end()
        r, s = ecdsa_numbers(answer.numbers)
    except ValueError as fault:
        return Problem(_UNFIT, f"the browser's answer is not a signature: {fault}")
    if party != hashlib.sha256(key.application.encode()).digest():
        return Problem(_UNFIT, f"the key that was used was registered for an application other than {key.application}")
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
        return Problem("client_data_wrong", f"the browser did not register a key for {origin}")
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
        raise WireFault("its key is not in the expected form")
    return fields.raw(_COORDINATE)


def public_line(key: NewKey) -> str:
    """Return the line for a `.pub` file. Its comment contains the credential, which a page needs to ask for the key."""
    encoded = encode_base64(key.credential)
    return f"{key.public.kind} {encode_base64(key.public.blob)} {_CREDENTIAL}{encoded}"


_CREDENTIAL = "webauthn:"


def credential_in(line: str) -> bytes:
    """Return the credential in a line of a `.pub` file; b'' if there is none, so that the browser offers the keys it
    has.
    """
    from workpacket.approvals.fields import decode_base64

    comment = line.strip().partition(" ")[2].partition(" ")[2]
    try:
        return decode_base64(comment.removeprefix(_CREDENTIAL)) if comment.startswith(_CREDENTIAL) else b""
    except ValueError:
        return b""
