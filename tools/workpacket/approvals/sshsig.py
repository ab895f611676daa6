"""Signatures as `ssh-keygen -Y sign` makes them (OpenSSH, PROTOCOL.sshsig), parsed strictly and verified.

The checks are never more lenient than `ssh-keygen -Y verify`, and stricter in these points: only the expected
namespace; an empty reserved field; RSA only with SHA-2 and in its full length; a FIDO signature only with the touch
flag set, which `ssh-keygen` does not check; a signature from a web page only by the rules of `webauthn`, and only for
an approval.
"""

from __future__ import annotations

import hashlib
import re

from workpacket.approvals.fields import Reader, WireFault, decode_base64, encode_base64, string
from workpacket.approvals.keys import CurvePoint, EdwardsPoint, PublicKey, RsaNumbers, read_key_blob
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.webauthn import Page

NAMESPACE = "workpacket-approval@v1"
CHECKPOINT_NAMESPACE = "workpacket-checkpoint@v1"
EVENT_NAMESPACE = "workpacket-event@v1"

WEBAUTHN = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"

MAGIC = b"SSHSIG"
VERSION = 1
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}
# Without `ssh-rsa`, which signs with SHA-1.
_RSA_HASHES = {"rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512"}
_TOUCHED = 0x01
_VERIFIED = 0x04
_MAY_BE_BACKED_UP = 0x08
_ARMOR = lazy_pattern(
    r"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]{1,76}\n)+)-----END SSH SIGNATURE-----\n", re.ASCII
)
_ARMOR_WIDTH = 70


class Fido(Value):
    """What the token states in addition to the signature."""

    flags: int
    counter: int

    @property
    def touched(self) -> bool:
        return bool(self.flags & _TOUCHED)

    @property
    def person_verified(self) -> bool:
        """Whether the token verified the person, by PIN or fingerprint."""
        return bool(self.flags & _VERIFIED)

    @property
    def synced(self) -> bool:
        """Whether the key may be copied to other devices of its owner."""
        return bool(self.flags & _MAY_BE_BACKED_UP)


class SshSignature(Value):
    """A parsed signature. `proof` is the output of the key's scheme; for ECDSA, the two numbers as encoded. `page` is
    the web page where it was made, if any.
    """

    key: PublicKey
    hash_name: str
    algorithm: str
    proof: bytes
    fido: Fido | None
    namespace: str = NAMESPACE
    page: Page | None = None


def unarmor(text: str) -> bytes | Problem:
    """Return the signature in the text that `ssh-keygen -Y sign` writes."""
    match = _ARMOR.fullmatch(text)
    if match is None:
        return Problem("sshsig_malformed", "this is not the armored text that `ssh-keygen -Y sign` writes")
    try:
        return decode_base64(match.group(1).replace("\n", ""))
    except ValueError as fault:
        return Problem("sshsig_malformed", f"the armored signature is malformed: it is {fault}")


def armor(blob: bytes) -> str:
    """Return the text that `ssh-keygen -Y verify` reads."""
    body = encode_base64(blob)
    lines = [body[start : start + _ARMOR_WIDTH] for start in range(0, len(body), _ARMOR_WIDTH)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


def read_signature(blob: bytes, namespace: str = NAMESPACE) -> SshSignature | Problem:
    """Return the signature with these bytes, or the first error in it."""
    try:
        return _read(blob, namespace)
    except WireFault as fault:
        return Problem("sshsig_malformed", f"the signature is not valid SSHSIG data: {fault}")
    except WorkpacketError as refused:
        return refused.problem


def check_signature(signature: SshSignature, message: bytes) -> Problem | None:
    """Return None if the key made this signature over `message` and, for a token, a person touched it; otherwise the
    problem.
    """
    if signature.fido is not None and not signature.fido.touched:
        return Problem("touch_missing", "the security key signed without being touched, so a program may have used it")
    wrapped = to_be_signed(signature.namespace, signature.hash_name, message)
    if signature.page is not None and not signature.page.was_asked_for(wrapped):
        what = (
            f"the page {signature.page.origin} was not asked to sign these bytes, or was embedded in another site's "
            "page"
        )
        return Problem("client_data_wrong", what)
    if _holds(signature, _signed_bytes(signature, wrapped)):
        return None
    return Problem("signature_invalid", f"the signature of {signature.key.fingerprint} does not match these bytes")


def _read(blob: bytes, wanted: str) -> SshSignature:
    fields = Reader(blob)
    if fields.raw(len(MAGIC)) != MAGIC:
        raise WireFault("it does not begin with SSHSIG")
    version = fields.u32()
    if version != VERSION:
        raise WireFault(f"its version is {version}; only {VERSION} is supported")
    key_blob, namespace, reserved = fields.string(), fields.string(), fields.string()
    hash_name, signature = fields.text(), fields.string()
    fields.end()
    if namespace != wanted.encode():
        shown = namespace[:80].decode("ascii", "backslashreplace")
        raise WorkpacketError("namespace_wrong", f"the signature was made for the namespace {shown!r}, not {wanted!r}")
    # Nothing reads it, so any content would make a second file with the same meaning.
    if reserved:
        raise WireFault("its reserved field is not empty")
    if hash_name not in _HASHES:
        raise WorkpacketError("hash_forbidden", f"the message was hashed with {hash_name!r}, not with sha256 or sha512")
    key = read_key_blob(key_blob)
    return _read_proof(SshSignature(key, hash_name, "", b"", None, wanted), Reader(signature))


def _read_proof(unproved: SshSignature, fields: Reader) -> SshSignature:
    """Return the complete signature, parsed from its innermost bytes."""
    key = unproved.key
    algorithm = fields.text()
    if algorithm not in _algorithms(key, unproved.namespace):
        raise WorkpacketError("algorithm_forbidden", f"{_told(key)} may not sign with {algorithm}")
    proof = _proof(key, fields.string())
    fido, page = None, None
    if key.in_hardware:
        fido = Fido(fields.byte(), fields.u32())
        page = _read_page(fields, fido.flags) if key.signs_in_pages else None
    fields.end()
    return replace(unproved, algorithm=algorithm, proof=proof, fido=fido, page=page)


def _read_page(fields: Reader, flags: int) -> Page:
    from workpacket.approvals.webauthn import read_page  # few signatures are made on web pages

    return read_page(fields, flags)


def _algorithms(key: PublicKey, namespace: str) -> tuple[str, ...]:
    """Return the algorithms allowed for the key. Only approvals accept signatures from web pages, because only they use
    the policy.
    """
    if isinstance(key.material, RsaNumbers):
        return tuple(_RSA_HASHES)
    if key.signs_in_pages:
        return (WEBAUTHN,) if namespace == NAMESPACE else ()
    return (key.kind,)


def _told(key: PublicKey) -> str:
    return f"a key of type {key.kind}" + (f" that belongs to {key.application}" if key.in_hardware else "")


def _proof(key: PublicKey, data: bytes) -> bytes:
    if isinstance(key.material, CurvePoint):
        # Only the form is checked here; both numbers stay as encoded.
        numbers = Reader(data)
        numbers.positive()
        numbers.positive()
        numbers.end()
        return data
    # In full length: without its leading zero bytes, an RSA signature would have a second encoding.
    length = 64 if isinstance(key.material, EdwardsPoint) else (key.material.modulus.bit_length() + 7) // 8
    if len(data) != length:
        raise WireFault(f"a signature by this key has {length} bytes, but this one has {len(data)}")
    return data


def to_be_signed(namespace: str, hash_name: str, message: bytes) -> bytes:
    """Return the message's hash in its SSHSIG wrapping."""
    return b"".join(
        (
            MAGIC,
            string(namespace.encode()),
            string(b""),
            string(hash_name.encode()),
            string(_HASHES[hash_name](message).digest()),
        )
    )


def _signed_bytes(signature: SshSignature, wrapped: bytes) -> bytes:
    """Return the signed bytes: a token adds its statement, and a page its client data."""
    if signature.fido is None:
        return wrapped
    return b"".join(
        (
            hashlib.sha256(signature.key.application.encode()).digest(),
            signature.fido.flags.to_bytes(1, "big"),
            signature.fido.counter.to_bytes(4, "big"),
            hashlib.sha256(wrapped if signature.page is None else signature.page.client_data).digest(),
        )
    )


def _holds(signature: SshSignature, signed: bytes) -> bool:
    from workpacket.approvals import primitives  # loading `cryptography` takes 25 ms

    material = signature.key.material
    if isinstance(material, EdwardsPoint):
        return primitives.ed25519_holds(material, signature.proof, signed)
    if isinstance(material, CurvePoint):
        return primitives.ecdsa_holds(material, signature.proof, signed)
    return primitives.rsa_holds(material, _RSA_HASHES[signature.algorithm], signature.proof, signed)
