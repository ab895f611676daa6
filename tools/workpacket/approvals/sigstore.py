"""Verify what CI attests, offline, against the authority that the base's policy pins in `[evidence.ci]`.

CI does not have its own key: an authority issues it a certificate that is valid for minutes and states the workflow
(`identity`) and the provider that vouches for it (`issuer`), as Sigstore's Fulcio does. The attestation file is:

    {"bundle": ..., "commit": ..., "digest": ..., "identity": ..., "issuer": ...}

The bundle is Sigstore's, version 0.3: a DSSE envelope with an in-toto test result about the commit, the certificate,
and the entry of a transparency log, which says when the signature was made. `digest` is the SHA-256 of the statement.
What the file says about itself must agree with the bundle, and the bundle with the policy.

A signature counts only if a log with the pinned key saw it while the certificate was valid, so a key that leaks later
is useless. Not verified: the inclusion proof of the log, the certificate's entry in a log of certificates, and
timestamps of other kinds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NoReturn

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError

from workpacket.approvals.envelope import PAYLOAD_TYPE, STATEMENT_TYPE, TEST_RESULT, pae
from workpacket.approvals.fields import COMMIT, SHA256, Fields, decode_base64, load_json
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json, NotCanonical, canonical_bytes
from workpacket.model.event_types import LONGEST_ATTESTATION
from workpacket.problem import WorkpacketError
from workpacket.value import Value

CODE: Final = "replay_attestation_invalid"
MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_KEYS: Final = ("bundle", "commit", "digest", "identity", "issuer")
_ENTRY: Final = ("dsse", "0.0.1")
# The extensions in which Fulcio names the provider: a bare string, and its successor in DER.
_ISSUER_BARE: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_ISSUER: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_UTF8_STRING: Final = b"\x0c"
_LENGTH_FOLLOWS: Final = b"\x81"

_URI = lazy_pattern(r"[a-z][a-z0-9+.-]*:[\x21-\x7e]{1,1000}")
_PEM = lazy_pattern(r"[\x20-\x7e\n]{1,20000}")
_NUMBER = lazy_pattern(r"0|[1-9][0-9]{0,15}")


class TrustedCi(Value):
    """The `[evidence.ci]` table: whose attestations count. `certificates` and `log_key` are PEM; `faults` are errors in
    the table; if there are any, no attestation counts.
    """

    issuer: str = ""
    identity: str = ""
    certificates: str = ""
    log_key: str = ""
    faults: tuple[str, ...] = ()


def read_trusted_ci(table: object) -> TrustedCi:
    faults: list[str] = []
    fields = Fields(table, "evidence.ci", faults)
    said = (
        fields.text("issuer", _URI, "a URI"),
        fields.text("identity", _URI, "a URI"),
        fields.text("certificates", _PEM, "certificates in PEM format"),
        fields.text("log_key", _PEM, "a public key in PEM format"),
    )
    fields.end()
    return TrustedCi(*said, tuple(faults))


class Attested(Value):
    """A verified attestation. `result` is taken from the in-toto test result: PASSED, WARNED or FAILED; `failed` are
    the tests that it lists. `configuration` maps names to the digests of what the statement is about.
    """

    issuer: str
    identity: str
    commit: str
    digest: str
    result: str
    signed_at: datetime
    configuration: Mapping[str, str]
    failed: tuple[str, ...]


class _Found(Value):
    """What a statement says."""

    commit: str
    result: str
    configuration: Mapping[str, str]
    failed: tuple[str, ...]


class _Bundle(Value):
    """A parsed bundle; nothing in it is trusted yet."""

    payload: bytes
    signature: bytes
    leaf: x509.Certificate
    entry: Mapping[str, object]


def _refuse(message: str) -> NoReturn:
    raise WorkpacketError(CODE, message)


def attestation_file(bundle: bytes) -> bytes:
    """Return the attestation file for a bundle, filled in from the bundle itself; raise WorkpacketError if it is not a
    bundle. Nothing is verified here: readers do that, because they know the policy.
    """
    document = _json(bundle)
    read = _bundle(document)
    said: dict[str, Json] = {
        "bundle": document,  # type: ignore[dict-item]  # it was JSON a moment ago
        "commit": _statement(read.payload).commit,
        "digest": hashlib.sha256(read.payload).hexdigest(),
        "identity": _identity(read.leaf),
        "issuer": _issuer(read.leaf),
    }
    try:
        data = canonical_bytes(said) + b"\n"
    except NotCanonical as fault:
        _refuse(f"the bundle has no canonical form: {fault}")
    if len(data) > LONGEST_ATTESTATION:
        _refuse(f"the attestation has {len(data)} bytes; at most {LONGEST_ATTESTATION} are allowed")
    return data


def verify_attestation(data: bytes, trusted: TrustedCi | None) -> Attested:
    """Return what the attestation file proves; raise WorkpacketError if it proves nothing."""
    if trusted is None:
        _refuse("the policy on the base has no [evidence.ci] table, so attestations do not count")
    if trusted.faults:
        _refuse(f"the [evidence.ci] table on the base is invalid: {trusted.faults[0]}")
    said = _closed(_json(data), "the attestation", _KEYS)
    bundle = _bundle(said["bundle"])
    signed_at = _logged(bundle, trusted)
    _require_issued(bundle.leaf, trusted, signed_at)
    identity, issuer = _identity(bundle.leaf), _issuer(bundle.leaf)
    if (issuer, identity) != (trusted.issuer, trusted.identity):
        _refuse(
            f"it was signed by {identity}, certified by {issuer}; the policy on the base requires "
            f"{trusted.identity} and {trusted.issuer}"
        )
    _require_signature(bundle.leaf.public_key(), bundle.signature, pae(bundle.payload), "the statement")
    found = _statement(bundle.payload)
    digest = hashlib.sha256(bundle.payload).hexdigest()
    proved = {"commit": found.commit, "digest": digest, "identity": identity, "issuer": issuer}
    for key, value in proved.items():
        if said[key] != value:
            _refuse(f"the file gives {key} as {str(said[key])[:200]!r}, but its bundle has {value!r}")
    return Attested(issuer, identity, found.commit, digest, found.result, signed_at, found.configuration, found.failed)


def _json(data: bytes) -> object:
    if len(data) > LONGEST_ATTESTATION:
        _refuse(f"the file has more than {LONGEST_ATTESTATION} bytes")
    try:
        return load_json(data)
    except WorkpacketError as fault:
        _refuse(f"the file cannot be read: {fault.message}")


def _bundle(value: object) -> _Bundle:
    bundle = _closed(value, "the bundle", ("dsseEnvelope", "mediaType", "verificationMaterial"))
    if bundle["mediaType"] != MEDIA_TYPE:
        _refuse(f"the bundle's type is {str(bundle['mediaType'])[:100]!r}, not {MEDIA_TYPE!r}")
    # A timestamp may be beside the log entry; it is not read.
    material = _table(bundle["verificationMaterial"], "verificationMaterial")
    entry = _table(_only(material.get("tlogEntries"), "tlogEntries"), "tlogEntries[0]")
    envelope = _closed(bundle["dsseEnvelope"], "dsseEnvelope", ("payload", "payloadType", "signatures"))
    if envelope["payloadType"] != PAYLOAD_TYPE:
        _refuse(f"the payload type is {str(envelope['payloadType'])[:100]!r}, not {PAYLOAD_TYPE!r}")
    signature = _table(_only(envelope["signatures"], "signatures"), "signatures[0]")
    leaf = _bytes(_table(material.get("certificate"), "certificate").get("rawBytes"), "certificate")
    try:
        certificate = x509.load_der_x509_certificate(leaf)
    except ValueError as fault:
        _refuse(f"the certificate cannot be read: {fault}")
    return _Bundle(_bytes(envelope["payload"], "payload"), _bytes(signature.get("sig"), "sig"), certificate, entry)


def _logged(bundle: _Bundle, trusted: TrustedCi) -> datetime:
    """Return the time at which the pinned log saw exactly this signature of this statement by this certificate."""
    entry = bundle.entry
    promise = _table(entry.get("inclusionPromise"), "inclusionPromise")
    time, body = _number(entry.get("integratedTime"), "integratedTime"), entry.get("canonicalizedBody")
    log_id = _bytes(_table(entry.get("logId"), "logId").get("keyId"), "keyId")
    key = _log_key(trusted.log_key)
    known = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if hashlib.sha256(known).digest() != log_id:
        _refuse("the log entry comes from a log that the policy on the base does not pin")
    logged = _bytes(body, "canonicalizedBody")
    signed: dict[str, Json] = {
        "body": str(body),
        "integratedTime": time,
        "logID": log_id.hex(),
        "logIndex": _number(entry.get("logIndex"), "logIndex"),
    }
    signature = _bytes(promise.get("signedEntryTimestamp"), "signedEntryTimestamp")
    _require_signature(key, signature, canonical_bytes(signed), "the log entry")
    _require_same(bundle, _json(logged))
    return datetime.fromtimestamp(time, UTC)


def _require_same(bundle: _Bundle, body: object) -> None:
    """Require that the log entry is about this bundle.

    The digest of the whole envelope is not compared, because it covers bytes that the bundle does not keep.
    """
    entry = _table(body, "the log entry")
    kind = entry.get("kind"), entry.get("apiVersion")
    if kind != _ENTRY:
        _refuse(f"the log entry is of kind {str(kind)[:100]}, not {_ENTRY}")
    spec = _table(entry.get("spec"), "spec")
    digest = {"algorithm": "sha256", "value": hashlib.sha256(bundle.payload).hexdigest()}
    signature = _table(_only(spec.get("signatures"), "signatures in the log entry"), "signatures in the log entry")
    try:
        verifier = x509.load_pem_x509_certificate(_bytes(signature.get("verifier"), "verifier"))
    except ValueError as fault:
        _refuse(f"the certificate in the log entry cannot be read: {fault}")
    logged = spec.get("payloadHash"), _bytes(signature.get("signature"), "signature"), verifier
    if logged != (digest, bundle.signature, bundle.leaf):
        _refuse("the log entry is for a different statement, signature or certificate")


def _require_issued(leaf: x509.Certificate, trusted: TrustedCi, signed_at: datetime) -> None:
    """Require that a pinned authority issued the leaf certificate, and that both certificates were valid when the
    statement was signed. Each pinned certificate counts as an authority, even if another certificate issued it.
    """
    try:
        pinned = x509.load_pem_x509_certificates(trusted.certificates.encode())
    except ValueError as fault:
        _refuse(f"the certificates in [evidence.ci] on the base cannot be read: {fault}")
    # The defaults are those for web servers, whose authorities do not issue certificates for signing code.
    authority_rules = (
        ExtensionPolicy.permit_all()
        .require_present(x509.BasicConstraints, Criticality.CRITICAL, None)
        .require_present(x509.KeyUsage, Criticality.AGNOSTIC, _require_issuing)
    )
    leaf_rules = (
        ExtensionPolicy.permit_all()
        .require_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _require_code_signing)
        .require_present(x509.SubjectAlternativeName, Criticality.AGNOSTIC, None)
    )
    rules = PolicyBuilder().store(Store(pinned)).time(signed_at.replace(tzinfo=None))
    rules = rules.extension_policies(ca_policy=authority_rules, ee_policy=leaf_rules)
    try:
        rules.build_client_verifier().verify(leaf, [])
    except (VerificationError, x509.DuplicateExtension, ValueError) as fault:
        reason = str(fault).partition(" (encountered")[0]
        _refuse(
            "the certificate was not issued by an authority that the policy pins, "
            f"or was not valid at {signed_at}: {reason}"
        )


def _require_issuing(_policy: object, _of: x509.Certificate, usage: x509.KeyUsage) -> None:
    if not usage.key_cert_sign:
        raise ValueError("its issuer is not allowed to issue certificates")


def _require_code_signing(_policy: object, _of: x509.Certificate, usage: x509.ExtendedKeyUsage) -> None:
    if ExtendedKeyUsageOID.CODE_SIGNING not in usage:
        raise ValueError("it is not a code-signing certificate")


def _identity(leaf: x509.Certificate) -> str:
    """Return the only name in the certificate, which must be a URI: Fulcio identifies people by email address."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        _refuse("the certificate contains no identity")
    found = list(names)
    if len(found) != 1 or not isinstance(found[0], x509.UniformResourceIdentifier):
        _refuse("the certificate does not contain exactly one URI identity")
    return found[0].value


def _issuer(leaf: x509.Certificate) -> str:
    """Return the provider that vouched for the identity; the old and the new extension must name the same provider."""
    found = {each.oid: each.value for each in leaf.extensions if each.oid in {_ISSUER, _ISSUER_BARE}}
    told = {
        _utf8(value.value) if oid == _ISSUER else value.value
        for oid, value in found.items()
        if isinstance(value, x509.UnrecognizedExtension)
    }
    if len(told) != 1:
        _refuse("the certificate does not contain exactly one issuer")
    return told.pop().decode("utf-8", "replace")


def _utf8(der: bytes) -> bytes:
    """Return the contents of a DER string of at most 255 bytes; b'' if the bytes are anything else."""
    start = 3 if der[1:2] == _LENGTH_FOLLOWS else 2
    contents = der[start:]
    expected = _UTF8_STRING + (_LENGTH_FOLLOWS if len(contents) >= 0x80 else b"") + bytes([len(contents) & 0xFF])
    return contents if der[:start] == expected and len(contents) <= 0xFF else b""


def _statement(payload: bytes) -> _Found:
    statement = _closed(_json(payload), "the statement", ("_type", "predicate", "predicateType", "subject"))
    if (statement["_type"], statement["predicateType"]) != (STATEMENT_TYPE, TEST_RESULT):
        _refuse(f"the statement is of type {str(statement['predicateType'])[:200]!r}, not a test result")
    subject = _table(_only(statement["subject"], "subject"), "subject[0]")
    digest = _closed(subject.get("digest"), "the subject's digest", ("gitCommit",))["gitCommit"]
    if not isinstance(digest, str) or not COMMIT.fullmatch(digest):
        _refuse("the statement's subject is not a commit")
    predicate = _table(statement["predicate"], "predicate")
    result, listed, failed = (predicate.get(key) for key in ("result", "configuration", "failedTests"))
    if result not in {"PASSED", "WARNED", "FAILED"} or not isinstance(listed, list) or not isinstance(failed, list):
        _refuse("the statement does not contain both a result and what the result applies to")
    configuration = {}
    for row in (_table(each, "configuration") for each in listed):
        text = _table(row.get("digest"), "digest").get("sha256")
        if isinstance(text, str) and SHA256.fullmatch(text):
            configuration[str(row.get("name"))] = text
    return _Found(digest, str(result), configuration, tuple(map(str, failed)))


def _log_key(pem: str) -> ec.EllipticCurvePublicKey:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        _refuse("log_key in [evidence.ci] on the base cannot be read")
    return key if isinstance(key, ec.EllipticCurvePublicKey) else _refuse("log_key is not an ECDSA key")


def _require_signature(key: object, signature: bytes, message: bytes, what: str) -> None:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        _refuse("the certificate's key is not an ECDSA key")
    try:
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        _refuse(f"the signature does not match {what}")


def _closed(value: object, what: str, keys: tuple[str, ...]) -> Mapping[str, object]:
    table = _table(value, what)
    if sorted(table) != sorted(keys):
        _refuse(f"{what} does not have exactly the keys {', '.join(keys)}")
    return table


def _table(value: object, what: str) -> Mapping[str, object]:
    return value if isinstance(value, dict) else _refuse(f"{what} is missing or is not an object")


def _only(value: object, what: str) -> object:
    return (
        value[0]
        if isinstance(value, list) and len(value) == 1
        else _refuse(f"{what} is not a list with exactly one item")
    )


def _bytes(value: object, what: str) -> bytes:
    try:
        return decode_base64(value) if isinstance(value, str) else _refuse(f"{what} is not a string")
    except ValueError as fault:
        _refuse(f"{what} is {fault}")


def _number(value: object, what: str) -> int:
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else _refuse(f"{what} is not a number")
