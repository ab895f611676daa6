"""Statements of a machine in standard DSSE: signed with an Ed25519 or ECDSA key, as in-toto tools verify them.

People sign with SSH keys, whose signatures those libraries do not read. A machine that repeats their approvals signs
with a key in PEM (PKCS #8), which opens no gate. The key id is the one that TUF and in-toto compute in Python: the
SHA-256 of the key in their own kind of canonical JSON, where only quotes and backslashes in strings are escaped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from workpacket.approvals.encodings import encode_base64
from workpacket.approvals.envelope import PAYLOAD_TYPE, pae
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.value import Value


class MachineKey(Value):
    """A key of a machine. `public` is its public half in PEM, for verifiers."""

    key_id: str
    public: str
    sign: Callable[[bytes], bytes]


def read_machine_key(data: bytes) -> MachineKey:
    """Return the key in a PEM file without a passphrase; raises WorkpacketError."""
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise WorkpacketError(
            "machine_key_unfit", "this is not a private key in PEM format without a passphrase"
        ) from None
    if isinstance(key, Ed25519PrivateKey):
        raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return MachineKey(_key_id("ed25519", "ed25519", raw.hex()), _pem(key.public_key()), key.sign)
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        private = key
        public = _pem(private.public_key())
        key_id = _key_id("ecdsa", "ecdsa-sha2-nistp256", public)
        return MachineKey(key_id, public, lambda message: private.sign(message, ec.ECDSA(hashes.SHA256())))
    raise WorkpacketError("machine_key_unfit", "the key is neither Ed25519 nor ECDSA on the curve P-256")


def _pem(public: Ed25519PublicKey | ec.EllipticCurvePublicKey) -> str:
    pem = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return public.public_bytes(*pem).decode("ascii")


def _key_id(kind: str, scheme: str, public: str) -> str:
    described = f'{{"keytype":"{kind}","keyval":{{"public":"{public}"}},"scheme":"{scheme}"}}'
    return hashlib.sha256(described.encode()).hexdigest()


def signed_statement(statement: dict[str, Json], key: MachineKey) -> bytes:
    """Return the DSSE envelope on one line."""
    payload = canonical_bytes(statement)
    signature = {"keyid": key.key_id, "sig": encode_base64(key.sign(pae(payload)))}
    envelope: dict[str, Json] = {
        "payload": encode_base64(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{**signature}],
    }
    return canonical_bytes(envelope) + b"\n"
