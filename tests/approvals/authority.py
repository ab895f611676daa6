"""An authority and a log of the test's own, which issue and sign as Sigstore's Fulcio and Rekor do."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from workpacket.approvals.envelope import PAYLOAD_TYPE, pae
from workpacket.approvals.sigstore import TrustedCi
from workpacket.model.canonical import Json, canonical_bytes

NOW: Final = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
ISSUER: Final = "https://token.example.org"
IDENTITY: Final = "https://forge.example/o/r/.github/workflows/workpacket-replay.yml@refs/heads/main"
PEM: Final = serialization.Encoding.PEM
DER: Final = serialization.Encoding.DER
INFO: Final = serialization.PublicFormat.SubjectPublicKeyInfo
_BARE: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_NAMED: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_BUILT_BY: Final = ObjectIdentifier("1.3.6.1.4.1.57264.1.9")


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def utf8_string(text: str) -> bytes:
    """As DER writes it."""
    data = text.encode()
    return b"\x0c" + (b"\x81" if len(data) > 127 else b"") + bytes([len(data)]) + data


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Party:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Any

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(PEM).decode()


def authority(
    name: str,
    issuer: Party | None = None,
    *,
    ends: timedelta = timedelta(days=3650),
    is_one: bool = True,
    issues: bool = True,
) -> Party:
    key, subject = new_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before((NOW - timedelta(days=365)).replace(tzinfo=None))
        .not_valid_after((NOW + ends).replace(tzinfo=None))
        .add_extension(x509.BasicConstraints(ca=is_one, path_length=None), critical=True)
        .add_extension(_usage(issues=issues), critical=True)
    )
    return Party(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def _usage(*, issues: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not issues, key_cert_sign=issues, crl_sign=issues, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


@dataclass
class Leaf:
    """What the certificate of a workflow says."""

    names: list[x509.GeneralName] = field(default_factory=lambda: [x509.UniformResourceIdentifier(IDENTITY)])
    issuers: list[tuple[ObjectIdentifier, bytes]] = field(
        default_factory=lambda: [(_BARE, ISSUER.encode()), (_NAMED, utf8_string(ISSUER)), (_BUILT_BY, utf8_string("x"))]
    )
    begins: datetime = NOW - timedelta(minutes=1)
    purpose: ObjectIdentifier = ExtendedKeyUsageOID.CODE_SIGNING
    subject: str = ""
    key: Any = field(default_factory=new_key)

    def issued_by(self, issuer: Party | None) -> Party:
        key, named = self.key, [x509.NameAttribute(NameOID.COMMON_NAME, self.subject)] if self.subject else []
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(named))
            .issuer_name(issuer.certificate.subject if issuer else x509.Name([]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self.begins.replace(tzinfo=None))
            .not_valid_after((self.begins + timedelta(minutes=10)).replace(tzinfo=None))
            .add_extension(_usage(issues=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([self.purpose]), critical=False)
        )
        if self.names:
            builder = builder.add_extension(x509.SubjectAlternativeName(self.names), critical=True)
        for oid, value in self.issuers:
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, value), critical=False)
        return Party(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


class Ci:
    """A root, what it issues with, and a log."""

    def __init__(self) -> None:
        self.root = authority("root")
        self.issuing = authority("issuing", self.root)
        self.log = new_key()

    @property
    def log_key(self) -> str:
        return self.log.public_key().public_bytes(PEM, INFO).decode()

    def trusted(self) -> TrustedCi:
        return TrustedCi(ISSUER, IDENTITY, self.root.pem + self.issuing.pem, self.log_key)

    def policy(self, more: str = "") -> str:
        """The table of the policy that pins them."""
        pins = self.trusted()
        return (
            f'[evidence.ci]\nissuer = "{pins.issuer}"\nidentity = "{pins.identity}"\n'
            f'certificates = """\n{pins.certificates}"""\nlog_key = """\n{pins.log_key}"""\n{more}'
        )

    def bundle(self, statement: bytes, leaf: Party | None = None, at: datetime = NOW) -> dict[str, Any]:
        leaf = leaf or Leaf().issued_by(self.issuing)
        kind = [ec.ECDSA(hashes.SHA256())] if isinstance(leaf.key, ec.EllipticCurvePrivateKey) else []
        signature = leaf.key.sign(pae(statement), *kind)
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": base64_of(leaf.certificate.public_bytes(DER))},
                "tlogEntries": [self.entry(statement, signature, leaf, at)],
            },
            "dsseEnvelope": {
                "payload": base64_of(statement),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": base64_of(signature)}],
            },
        }

    def entry(self, statement: bytes, signature: bytes, leaf: Party, at: datetime) -> dict[str, Any]:
        signed = {"signature": base64_of(signature), "verifier": base64_of(leaf.certificate.public_bytes(PEM))}
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": "0" * 64},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(statement).hexdigest()},
            "signatures": [signed],
        }
        body = base64_of(json.dumps({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}).encode())
        public = self.log.public_key().public_bytes(DER, INFO)
        return {
            "logIndex": "7",
            "logId": {"keyId": base64_of(hashlib.sha256(public).digest())},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(int(at.timestamp())),
            "inclusionPromise": {"signedEntryTimestamp": base64_of(self.promise(body, int(at.timestamp())))},
            "canonicalizedBody": body,
        }

    def promise(self, body: str, time: int) -> bytes:
        public = self.log.public_key().public_bytes(DER, INFO)
        said: dict[str, Json] = {
            "body": body,
            "integratedTime": time,
            "logID": hashlib.sha256(public).hexdigest(),
            "logIndex": 7,
        }
        return self.log.sign(canonical_bytes(said), ec.ECDSA(hashes.SHA256()))
