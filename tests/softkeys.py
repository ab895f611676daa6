"""Keys held in memory that make SSH signatures of every kind, well formed and, on request, not.

`ssh-keygen` makes honest signatures with software keys. What it cannot make are signatures of FIDO tokens without the
token, and dishonest ones; both are needed to try a verifier. No key is stored. Shared keys are derived from their
names: every run makes the same repositories, so what git says about them can be kept (git_answers.py).
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from workpacket.approvals.keys import PublicKey, read_key_blob
from workpacket.approvals.sshsig import NAMESPACE

PrivateKey: TypeAlias = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
TOUCHED = 1
VERIFIED = 4


def packed(*parts: bytes | str) -> bytes:
    """The parts as SSH strings, one after the other."""
    data = [part.encode() if isinstance(part, str) else part for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in data)


def minimal(number: int) -> bytes:
    """The shortest content of an SSH integer: a leading zero only where the first bit is set."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


@dataclass(frozen=True)
class PageParts:
    """What a signature made in a page consists of, besides key and proof. `application` is the one that is signed."""

    origin: str
    client_data: bytes
    flags: int = TOUCHED
    counter: int = 7
    extensions: bytes = b""
    algorithm: str = "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"
    namespace: str = NAMESPACE
    hash_name: str = "sha512"
    application: str = ""
    trailing: bytes = b""


@dataclass(frozen=True)
class SoftKey:
    private: PrivateKey
    kind: str
    application: str = ""

    @property
    def public(self) -> PublicKey:
        return read_key_blob(self.blob)

    @property
    def blob(self) -> bytes:
        return packed(self.kind) + self._material() + (packed(self.application) if self.application else b"")

    @property
    def fingerprint(self) -> str:
        return self.public.fingerprint

    def line(self, principal: str, options: str = f'namespaces="{NAMESPACE}"') -> str:
        """A line of allowed_signers."""
        return f"{principal} {options} {self.public_line}"

    @property
    def public_line(self) -> str:
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    def sign(
        self,
        message: bytes,
        *,
        namespace: str = NAMESPACE,
        hash_name: str = "sha512",
        algorithm: str = "",
        flags: int = TOUCHED,
        counter: int = 7,
        reserved: bytes = b"",
        version: int = 1,
        key_blob: bytes | None = None,
        trailing: bytes = b"",
    ) -> bytes:
        """An SSHSIG blob over the message; every argument but the first is there to be wrong."""
        digest = hashlib.new(hash_name, message).digest()
        wrapped = b"SSHSIG" + packed(namespace, b"", hash_name, digest)
        signature = self.raw_signature(wrapped, algorithm or self.default_algorithm, flags, counter)
        blob = self.blob if key_blob is None else key_blob
        head = b"SSHSIG" + version.to_bytes(4, "big")
        return head + packed(blob, namespace, reserved, hash_name, signature) + trailing

    def sign_in_page(self, message: bytes, origin: str, *, flags: int = TOUCHED, counter: int = 7) -> bytes:
        """As a browser and an authenticator do it together."""
        wrapped = b"SSHSIG" + packed(NAMESPACE, b"", "sha512", hashlib.sha512(message).digest())
        challenge = base64.urlsafe_b64encode(wrapped).rstrip(b"=").decode()
        members = {"type": "webauthn.get", "challenge": challenge, "origin": origin, "crossOrigin": False}
        written = json.dumps(members, separators=(",", ":")).encode()
        return self.page_signature(PageParts(origin, written, flags, counter))

    def page_signature(self, parts: PageParts) -> bytes:
        """An SSHSIG blob around whatever the page and the token are said to have stated; each may be wrong."""
        stated = parts.flags.to_bytes(1, "big") + parts.counter.to_bytes(4, "big")
        application = (parts.application or self.application).encode()
        signed = hashlib.sha256(application).digest() + stated + parts.extensions
        proof = self.proof(signed + hashlib.sha256(parts.client_data).digest(), self.kind)
        signature = packed(parts.algorithm, proof) + stated + packed(parts.origin, parts.client_data, parts.extensions)
        return b"SSHSIG\0\0\0\1" + packed(self.blob, parts.namespace, b"", parts.hash_name, signature + parts.trailing)

    @property
    def default_algorithm(self) -> str:
        return "rsa-sha2-512" if self.kind == "ssh-rsa" else self.kind

    def raw_signature(self, wrapped: bytes, algorithm: str, flags: int, counter: int) -> bytes:
        """The innermost structure: algorithm, proof, and what a token adds."""
        if not self.application:
            return packed(algorithm, self.proof(wrapped, algorithm))
        stated = flags.to_bytes(1, "big") + counter.to_bytes(4, "big")
        signed = hashlib.sha256(self.application.encode()).digest() + stated + hashlib.sha256(wrapped).digest()
        return packed(algorithm, self.proof(signed, algorithm)) + stated

    def proof(self, signed: bytes, algorithm: str) -> bytes:
        match self.private:
            case Ed25519PrivateKey():
                return self.private.sign(signed)
            case ec.EllipticCurvePrivateKey():
                r, s = self.ecdsa_numbers(signed)
                return packed(minimal(r), minimal(s))
            case rsa.RSAPrivateKey():
                chosen = {"rsa-sha2-256": hashes.SHA256(), "rsa-sha2-512": hashes.SHA512(), "ssh-rsa": hashes.SHA1()}
                return self.private.sign(signed, padding.PKCS1v15(), chosen[algorithm])

    def ecdsa_numbers(self, signed: bytes) -> tuple[int, int]:
        assert isinstance(self.private, ec.EllipticCurvePrivateKey)
        chosen = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[self.private.curve.key_size]
        return decode_dss_signature(self.private.sign(signed, ec.ECDSA(chosen)))

    def _material(self) -> bytes:
        match self.private:
            case Ed25519PrivateKey():
                raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
                return packed(self.private.public_key().public_bytes(*raw))
            case ec.EllipticCurvePrivateKey():
                point = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
                curve = f"nistp{self.private.curve.key_size}"
                return packed(curve, self.private.public_key().public_bytes(*point))
            case rsa.RSAPrivateKey():
                numbers = self.private.public_key().public_numbers()
                return packed(minimal(numbers.e), minimal(numbers.n))


def make_key(kind: str, application: str = "ssh:", rsa_bits: int = 3072) -> SoftKey:
    """A fresh key of an SSH kind."""
    if kind in ("ssh-ed25519", "sk-ssh-ed25519@openssh.com"):
        return SoftKey(Ed25519PrivateKey.generate(), kind, application if kind.startswith("sk-") else "")
    if kind == "ssh-rsa":
        return SoftKey(rsa.generate_private_key(65537, rsa_bits), kind)
    curve = {"256": ec.SECP256R1(), "384": ec.SECP384R1(), "521": ec.SECP521R1()}[kind.partition("nistp")[2][:3]]
    return SoftKey(ec.generate_private_key(curve), kind, application if kind.startswith("sk-") else "")


@cache
def shared_key(kind: str, owner: str = "") -> SoftKey:
    """One key a kind and owner for the whole run, since making an RSA key takes a second. Those of Ed25519 are the same
    in every run.
    """
    if kind in ("ssh-ed25519", "sk-ssh-ed25519@openssh.com"):
        return SoftKey(derived_key(f"{kind} {owner}"), kind, "ssh:" if kind.startswith("sk-") else "")
    return make_key(kind)


def derived_key(name: str) -> Ed25519PrivateKey:
    """The key of this name in all runs."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"workpacket tests: {name}".encode()).digest())


def write_derived_key(path: Path, name: str) -> None:
    """What `ssh-keygen -t ed25519` makes, and the public key beside it."""
    key = derived_key(name)
    path.touch(0o600)
    as_openssh = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, *as_openssh))
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".pub").write_bytes(public + b" test\n")
