"""The three signature schemes, from `cryptography`. They are imported only when a signature is verified, and only the
scheme that it uses: most are Ed25519.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature

from workpacket.approvals.fields import Reader
from workpacket.approvals.keys import CurvePoint, EdwardsPoint, RsaNumbers


def ed25519_holds(point: EdwardsPoint, proof: bytes, signed: bytes) -> bool:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(point.data).verify(proof, signed)
    except InvalidSignature:
        return False
    return True


def ecdsa_holds(point: CurvePoint, proof: bytes, signed: bytes) -> bool:
    """Whether the signature is valid; False also for a point that is not on its curve."""
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
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    known: dict[str, hashes.HashAlgorithm] = {"sha256": hashes.SHA256(), "sha512": hashes.SHA512()}
    try:
        key = rsa.RSAPublicNumbers(numbers.exponent, numbers.modulus).public_key()
        key.verify(proof, signed, padding.PKCS1v15(), known[hash_name])
    except (InvalidSignature, ValueError):
        return False
    return True
