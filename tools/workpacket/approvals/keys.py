"""SSH public keys: the types that may approve, those that are too weak, and their signature schemes.

Kinds: ed25519, ECDSA on the three NIST curves, RSA of 3072 bits and more, and the two types on FIDO tokens (`sk-...`).
Certificates are refused. A key is identified by its blob, which is unique because every field has only one accepted
form.

The signature schemes are those of `cryptography`. They are imported only when a signature is verified, and only the
scheme that the signature uses; most signatures are Ed25519.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from workpacket.approvals.fields import Reader, WireFault, decode_base64, encode_base64
from workpacket.digests import sha256
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError
from workpacket.value import Value

# About as strong as ed25519 and P-256. NIST accepts 2048 bits only until 2030.
SMALLEST_RSA = 3072
# OpenSSH reads none that are larger.
LARGEST_RSA = 16384
# The one that `ssh-keygen` uses. Small exponents have led to forgeries with verifiers that checked the padding
# carelessly.
RSA_EXPONENT = 65537

# The size of one coordinate of a point, in bytes.
CURVE_WIDTHS = {"nistp256": 32, "nistp384": 48, "nistp521": 66}
_ECDSA_CURVES = {f"ecdsa-sha2-{curve}": curve for curve in CURVE_WIDTHS}
FIDO_ED25519 = "sk-ssh-ed25519@openssh.com"
FIDO_ECDSA = "sk-ecdsa-sha2-nistp256@openssh.com"
FIDO_APPLICATION = "ssh:"
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
# The last label of a host name is not a number, unlike that of an address.
HOST = rf"(?:{_LABEL}\.)*(?![0-9]+(?:[:]|\Z)){_LABEL}"
RELYING_PARTY = lazy_pattern(HOST, re.ASCII)
LONGEST_RELYING_PARTY = 253

_FIELD = 2**255 - 19
_EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
# The y coordinates of the eight points of small order. For such a key, anyone can sign.
_WEAK_POINTS = frozenset({0, 1, _FIELD - 1, _EIGHTH, _FIELD - _EIGHTH})


class EdwardsPoint(Value):
    data: bytes


class CurvePoint(Value):
    curve: str
    data: bytes


class RsaNumbers(Value):
    modulus: int
    exponent: int


Material: TypeAlias = EdwardsPoint | CurvePoint | RsaNumbers


class PublicKey(Value):
    """A public key. `application` is the application to which a token's key is bound: `ssh:...`, or the relying party
    of a web page. A software key has none.
    """

    kind: str
    blob: bytes
    material: Material
    application: str = ""

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint, as printed by `ssh-keygen -l`."""
        return "SHA256:" + encode_base64(sha256(self.blob).digest()).rstrip("=")

    @property
    def in_hardware(self) -> bool:
        return bool(self.application)

    @property
    def signs_in_pages(self) -> bool:
        return self.in_hardware and not self.application.startswith(FIDO_APPLICATION)


def read_key_blob(blob: bytes) -> PublicKey:
    """Return the key encoded in these bytes; raise WorkpacketError if they do not encode a key."""
    fields = Reader(blob)
    try:
        kind = fields.text()
        material, application = _material(kind, fields)
        fields.end()
    except WireFault as fault:
        raise WorkpacketError("key_malformed", f"the key data is not a valid public key: {fault}") from None
    return PublicKey(kind, blob, material, application)


def read_key_fields(kind: str, encoded: str) -> PublicKey:
    """Return the key in a line `<kind> <base64>`; raise WorkpacketError if there is none."""
    try:
        blob = decode_base64(encoded)
    except ValueError as fault:
        raise WorkpacketError("key_malformed", f"the {kind} key is {fault}") from None
    key = read_key_blob(blob)
    if key.kind != kind:
        raise WorkpacketError("key_malformed", f"the line says {kind}, but its key is of type {key.kind}")
    return key


def _material(kind: str, fields: Reader) -> tuple[Material, str]:
    if kind == "ssh-ed25519":
        return _edwards_point(fields), ""
    if kind == "ssh-rsa":
        return _rsa_numbers(fields), ""
    if kind in _ECDSA_CURVES:
        return _curve_point(fields, _ECDSA_CURVES[kind]), ""
    if kind == FIDO_ED25519:
        return _edwards_point(fields), _application(fields)
    if kind == FIDO_ECDSA:
        return _curve_point(fields, "nistp256"), _application(fields, in_pages=True)
    raise WorkpacketError("key_kind_unsupported", f"keys of type {kind} cannot sign approvals")


def _edwards_point(fields: Reader) -> EdwardsPoint:
    data = fields.string()
    if len(data) != 32:
        raise WorkpacketError("key_malformed", f"an ed25519 key has 32 bytes, but this one has {len(data)}")
    # The highest bit is the sign of x.
    height = int.from_bytes(data, "little") & (2**255 - 1)
    if height >= _FIELD:
        raise WorkpacketError("key_malformed", "the ed25519 key is not in canonical form")
    if height in _WEAK_POINTS:
        raise WorkpacketError(
            "key_weak", "the ed25519 key is a point of small order, so anyone could forge its signatures"
        )
    return EdwardsPoint(data)


def _curve_point(fields: Reader, curve: str) -> CurvePoint:
    named = fields.text()
    if named != curve:
        raise WorkpacketError("key_malformed", f"the key specifies the curve {named}, but its type requires {curve}")
    data = fields.string()
    # 4: both coordinates follow. A compressed point would be a second encoding of the same key.
    if len(data) != 1 + 2 * CURVE_WIDTHS[curve] or data[0] != 4:
        raise WorkpacketError("key_malformed", f"the key is not an uncompressed point on {curve}")
    return CurvePoint(curve, data)


def _rsa_numbers(fields: Reader) -> RsaNumbers:
    exponent, modulus = fields.positive(), fields.positive()
    bits = modulus.bit_length()
    if not SMALLEST_RSA <= bits <= LARGEST_RSA:
        raise WorkpacketError("key_weak", f"the RSA key has {bits} bits; {SMALLEST_RSA} to {LARGEST_RSA} are accepted")
    if exponent != RSA_EXPONENT:
        raise WorkpacketError("key_weak", f"the RSA key has the exponent {exponent}; only {RSA_EXPONENT} is accepted")
    # Not a product of two large primes: anyone can factor it.
    if modulus % 2 == 0:
        raise WorkpacketError("key_weak", "the RSA key has an even modulus")
    return RsaNumbers(modulus, exponent)


def _application(fields: Reader, *, in_pages: bool = False) -> str:
    """Return the application; for an ECDSA key it may also be the relying party of a web page, subject to the
    policy.
    """
    application = fields.text()
    page = in_pages and len(application) <= LONGEST_RELYING_PARTY and RELYING_PARTY.fullmatch(application)
    if not application.startswith(FIDO_APPLICATION) and not page:
        raise WorkpacketError(
            "fido_application_wrong", f"the key was created for {application!r}, not for {FIDO_APPLICATION!r}"
        )
    return application


def ed25519_holds(point: EdwardsPoint, proof: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # loading `cryptography` takes 25 ms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(point.data).verify(proof, signed)
    except InvalidSignature:
        return False
    return True


def ecdsa_holds(point: CurvePoint, proof: bytes, signed: bytes) -> bool:
    """Whether the signature is valid; also False for a point that is not on its curve."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    curves: dict[str, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
        "nistp256": (ec.SECP256R1(), hashes.SHA256()),
        "nistp384": (ec.SECP384R1(), hashes.SHA384()),
        "nistp521": (ec.SECP521R1(), hashes.SHA512()),
    }
    curve, algorithm = curves[point.curve]
    numbers = Reader(proof)
    r, s = numbers.positive(), numbers.positive()
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(curve, point.data)
        key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(algorithm))
    except (InvalidSignature, ValueError):
        return False
    return True


def ecdsa_numbers(encoded: bytes) -> tuple[int, int]:
    """Return the two numbers of a signature as browsers encode it; raise `ValueError` for other bytes."""
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    return decode_dss_signature(encoded)


def rsa_holds(numbers: RsaNumbers, hash_name: str, proof: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    known: dict[str, hashes.HashAlgorithm] = {"sha256": hashes.SHA256(), "sha512": hashes.SHA512()}
    try:
        key = rsa.RSAPublicNumbers(numbers.exponent, numbers.modulus).public_key()
        key.verify(proof, signed, padding.PKCS1v15(), known[hash_name])
    except (InvalidSignature, ValueError):
        return False
    return True
