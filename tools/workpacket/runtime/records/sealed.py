"""Payloads that are encrypted because they contain a secret, with a key that is not in the store.

A sealed payload is JSON: the id of the key, the nonce and the text, encrypted with AES-256-GCM. The key is in
`WORKPACKET_PAYLOAD_KEY`, or in the keyring of the system, if the package `keyring` is installed: 32 bytes, as Base64 or
hexadecimal. The id is derived from the key and does not reveal it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os

from workpacket.runtime.errors import PayloadSealed
from workpacket.runtime.records.jcs import SEALED

VARIABLE = "WORKPACKET_PAYLOAD_KEY"
_BOUND = b"workpacket payload 1"  # a text of another program, encrypted with the same key, is not accepted
_KEY_BYTES, _NONCE_BYTES = 32, 12
_HOW = f"set {VARIABLE}; `openssl rand -base64 32` makes a key"


def payload_key() -> bytes | None:
    """Return the key of this process; None if there is none."""
    text = os.environ.get(VARIABLE) or _from_keyring()
    if not text:
        return None
    for decode in (bytes.fromhex, lambda said: base64.b64decode(said, validate=True)):
        try:
            key = decode(text.strip())
        except (ValueError, binascii.Error):
            continue
        if len(key) == _KEY_BYTES:
            return key
    raise PayloadSealed(f"{VARIABLE} is not a key: expected 32 bytes, as Base64 or hexadecimal", hint=_HOW)


def _from_keyring() -> str | None:
    try:
        import keyring  # type: ignore[import-not-found,unused-ignore]  # an optional package, imported only when a payload is sealed or opened
    except ImportError:
        return None
    found = keyring.get_password("workpacket", VARIABLE)
    return found if isinstance(found, str) else None


def key_id(key: bytes) -> str:
    return hashlib.sha256(b"workpacket payload key\n" + key).hexdigest()[:16]


def sealed(payload: bytes) -> bytes:
    """Return the payload, encrypted."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # takes longer to import than the rest of a run

    key = payload_key()
    if key is None:
        raise PayloadSealed("there is no key to encrypt a payload with", hint=_HOW)
    nonce = os.urandom(_NONCE_BYTES)
    text = AESGCM(key).encrypt(nonce, payload, _BOUND)
    parts = {"sealed_with": key_id(key), "nonce": base64.b64encode(nonce).decode()}
    parts["text"] = base64.b64encode(text).decode()
    return json.dumps(parts, separators=(",", ":")).encode("ascii")


def unsealed(payload: bytes) -> bytes:
    """Return the payload as it was before it was encrypted; a payload that was not encrypted, as it is."""
    if not payload.startswith(SEALED):
        return payload
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    parts = json.loads(payload)
    key, wanted = payload_key(), parts["sealed_with"]
    if key is None:
        raise PayloadSealed(f"the payload is encrypted with the key {wanted}, which is not set", hint=_HOW)
    if key_id(key) != wanted:
        raise PayloadSealed(
            f"the payload is encrypted with the key {wanted}, and {VARIABLE} is the key {key_id(key)}",
            hint=f"set {VARIABLE} to the key {wanted}",
        )
    try:
        return AESGCM(key).decrypt(base64.b64decode(parts["nonce"]), base64.b64decode(parts["text"]), _BOUND)
    except (InvalidTag, KeyError, ValueError):
        raise PayloadSealed(f"the payload encrypted with the key {wanted} is damaged") from None
