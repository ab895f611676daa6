"""Signatures as `ssh-keygen -Y sign` makes them (OpenSSH, PROTOCOL.sshsig), parsed strictly and verified; and the
OpenSSH files that say which key belongs to which person and which keys are revoked.

The checks are never more lenient than `ssh-keygen -Y verify`, and are stricter on these points: only the expected
namespace; an empty reserved field; RSA only with SHA-2 and at its full length; a FIDO signature only with the touch
flag set, which `ssh-keygen` does not check; a signature from a web page only under the rules of `webauthn`, and only
for an approval.

`allowed_signers`: only a strict subset is accepted. Each line has one literal principal and `namespaces=` without
patterns; the only other options are `valid-after` and `valid-before`, in UTC. A person may have several keys, but a key
belongs to one person, and two spellings of one name are refused, because thresholds count people. `ssh-keygen` reads
every file that is accepted here in the same way as this module. One invalid line makes the whole file invalid: half a
list of signers is not the list that was approved.

`revoked_keys`: public keys, one per line. A binary key revocation list is refused: it would be skipped as unreadable,
which is dangerous in this file. Keys too weak to approve may be listed, because only the blob matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from workpacket.approvals.fields import PRINCIPAL, Reader, WireFault, decode_base64, encode_base64, string
from workpacket.approvals.keys import (
    CurvePoint,
    EdwardsPoint,
    PublicKey,
    RsaNumbers,
    ecdsa_holds,
    ed25519_holds,
    read_key_blob,
    read_key_fields,
    rsa_holds,
)
from workpacket.digests import sha256, sha512
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem, WorkpacketError
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
_HASHES = {"sha256": sha256, "sha512": sha512}
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
    """What the token states besides the signature."""

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
        """Whether the key may be copied to its owner's other devices."""
        return bool(self.flags & _MAY_BE_BACKED_UP)


class SshSignature(Value):
    """A parsed signature. `proof` is the output of the key's scheme; for ECDSA, the two encoded numbers. `page` is the
    web page where the signature was made, if any.
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
    """Return None if the key made this signature over `message` and, for a token, a person touched it; otherwise return
    the problem.
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
    return Problem("signature_invalid", f"the signature by {signature.key.fingerprint} does not match these bytes")


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
        raise WorkpacketError("algorithm_forbidden", f"{_told(key)} must not sign with {algorithm}")
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
    """Return the signed bytes: a token adds its statement, and a page adds its client data."""
    if signature.fido is None:
        return wrapped
    return b"".join(
        (
            sha256(signature.key.application.encode()).digest(),
            signature.fido.flags.to_bytes(1, "big"),
            signature.fido.counter.to_bytes(4, "big"),
            sha256(wrapped if signature.page is None else signature.page.client_data).digest(),
        )
    )


def _holds(signature: SshSignature, signed: bytes) -> bool:
    material = signature.key.material
    if isinstance(material, EdwardsPoint):
        return ed25519_holds(material, signature.proof, signed)
    if isinstance(material, CurvePoint):
        return ecdsa_holds(material, signature.proof, signed)
    return rsa_holds(material, _RSA_HASHES[signature.algorithm], signature.proof, signed)


_MALFORMED_SIGNERS = "signers_malformed"

# To OpenSSH, a principal may be a pattern or a list. The key would then belong to several people.
_PATTERN_CHARACTERS = frozenset("*?!,")
_LINE = lazy_pattern(
    r'(\S+)[ \t]+((?:[^\s"]|"[^"]*")+)[ \t]+([a-z0-9@.-]+)[ \t]+([A-Za-z0-9+/=]+)'
    r"(?:[ \t][^\x00-\x08\x0b-\x1f\x7f]*)?"
)
_OPTION = lazy_pattern(r'([a-z-]+)="([^"]*)"(?:,|\Z)')
_NAMESPACE = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
_DATE = lazy_pattern(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?Z", re.ASCII)
_OPTIONS = ("namespaces", "valid-after", "valid-before")


class Signer(Value):
    """One line: the key, its owner, its namespaces, and the times from which (inclusive) and until which (exclusive) it
    is valid.
    """

    principal: str
    key: PublicKey
    namespaces: tuple[str, ...]
    valid_after: datetime | None
    valid_before: datetime | None
    line: int

    def valid_at(self, instant: datetime) -> bool:
        return not (
            (self.valid_after is not None and instant < self.valid_after)
            or (self.valid_before is not None and instant >= self.valid_before)
        )

    @property
    def may_approve(self) -> bool:
        return NAMESPACE in self.namespaces


class Signers(Value):
    """The lines of the file, keyed by key blob."""

    by_key: Mapping[bytes, Signer]


def read_allowed_signers(data: bytes, path: str = "allowed_signers") -> Signers | tuple[Problem, ...]:
    """Return the signers, or every error in the file and no signers."""
    by_key: dict[bytes, Signer] = {}
    spellings: dict[str, Signer] = {}
    faults: list[Problem] = []
    for number, line in meaningful_lines(data):
        try:
            signer = _read_line(line, number)
            _require_distinct(signer, by_key, spellings)
        except WorkpacketError as refused:
            faults.append(refused.problem.at(path, number))
    return tuple(faults) or Signers(by_key)


def meaningful_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither empty nor comments, with their numbers; bytes that are not UTF-8 are shown as
    escapes.
    """
    # Split only where OpenSSH splits. `splitlines` also splits at a form feed or U+2028, so a line could be seen by
    # one reader and not by the other.
    for number, line in enumerate(data.decode("utf-8", "backslashreplace").split("\n"), 1):
        if line.strip(" \t") and not line.startswith("#"):
            yield number, line


def _read_line(line: str, number: int) -> Signer:
    match = _LINE.fullmatch(line)
    if match is None:
        raise WorkpacketError(_MALFORMED_SIGNERS, 'expected: principal namespaces="..." key-type base64-key')
    principal, options, kind, encoded = match.groups()
    if _PATTERN_CHARACTERS & set(principal):
        raise WorkpacketError(
            "principal_pattern", f"{principal!r} is a pattern or a list; each line must name one person literally"
        )
    if not PRINCIPAL.fullmatch(principal):
        raise WorkpacketError(_MALFORMED_SIGNERS, f"{principal!r} is not a literal principal")
    values = _read_options(options)
    namespaces = tuple(values["namespaces"].split(",")) if "namespaces" in values else ()
    if not all(_NAMESPACE.fullmatch(each) for each in namespaces):
        raise WorkpacketError(_MALFORMED_SIGNERS, "namespaces= must contain only literal names")
    if not namespaces:
        raise WorkpacketError(
            _MALFORMED_SIGNERS, "namespaces= is missing: without it, the key would be valid for every purpose"
        )
    key = read_key_fields(kind, encoded)
    return Signer(principal, key, namespaces, _date(values, "valid-after"), _date(values, "valid-before"), number)


def _read_options(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _OPTION.match(text, position)
        if match is None or match.group(1) not in _OPTIONS:
            raise WorkpacketError(
                _MALFORMED_SIGNERS, f"invalid options: expected {', '.join(_OPTIONS)}, each with a quoted value"
            )
        if match.group(1) in values:
            raise WorkpacketError(_MALFORMED_SIGNERS, f"option {match.group(1)} appears twice")
        values[match.group(1)] = match.group(2)
        position = match.end()
    if text.endswith(","):
        raise WorkpacketError(_MALFORMED_SIGNERS, "the options end with a trailing comma")
    return values


def _date(values: dict[str, str], option: str) -> datetime | None:
    if option not in values:
        return None
    match = _DATE.fullmatch(values[option])
    if match is None:
        raise WorkpacketError(
            _MALFORMED_SIGNERS, f"{option} is not YYYYMMDDZ or YYYYMMDDHHMM[SS]Z; without Z, it would be local time"
        )
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise WorkpacketError(_MALFORMED_SIGNERS, f"{option} is not a valid date or time") from None


def _require_distinct(signer: Signer, by_key: dict[bytes, Signer], spellings: dict[str, Signer]) -> None:
    """Add the signer to both tables; each key and each spelling may occur only once."""
    same_key = by_key.setdefault(signer.key.blob, signer)
    if same_key is not signer:
        raise WorkpacketError(
            "key_shared", f"the key is also on line {same_key.line}; each key belongs to one person, on one line"
        )
    namesake = spellings.setdefault(signer.principal.casefold(), signer)
    if namesake.principal != signer.principal:
        raise WorkpacketError(
            "principal_ambiguous", f"line {namesake.line} spells the same name differently: {namesake.principal!r}"
        )


_MALFORMED_REVOCATIONS = "revoked_keys_malformed"


def read_revoked_keys(data: bytes, path: str = "revoked_keys") -> frozenset[bytes] | tuple[Problem, ...]:
    """Return the blobs of the revoked keys, or every error in the file."""
    blobs: set[bytes] = set()
    faults: list[Problem] = []
    for number, line in meaningful_lines(data):
        fields = line.split()
        blob = _blob(fields)
        if blob is None:
            faults.append(
                Problem(_MALFORMED_REVOCATIONS, "expected a public key: key-type base64-key", Location(path, number))
            )
        else:
            blobs.add(blob)
    return tuple(faults) or frozenset(blobs)


def _blob(fields: list[str]) -> bytes | None:
    if len(fields) < 2:
        return None
    try:
        blob = decode_base64(fields[1])
    except ValueError:
        return None
    kind = fields[0].encode()
    # The word before the key must name its type, or the two could be read as different keys.
    if not blob.startswith(len(kind).to_bytes(4, "big") + kind):
        return None
    try:
        read_key_blob(blob)
    except WorkpacketError as refused:
        # A key that is too weak to approve, or of a kind that never could, may be listed. Other bytes may
        # not: they would revoke nothing, and OpenSSH refuses such a list.
        return None if refused.code == "key_malformed" else blob
    return blob
