"""Which key belongs to which person, and which keys are revoked: the files that OpenSSH also reads.

`allowed_signers`: only a strict subset is accepted. Each line has one literal principal and `namespaces=` without
patterns; the only other options are `valid-after` and `valid-before`, in UTC. A person may have several keys, but a key
belongs to one person, and two spellings of one name are refused, because thresholds count people. `ssh-keygen` reads
every file that is accepted here in the same way. One invalid line makes the whole file invalid: half a list of signers
is not the list that was approved.

`revoked_keys`: public keys, one per line. A binary key revocation list is refused: it would be skipped as unreadable,
which is dangerous in this file. Keys too weak to approve may be listed, because only the blob matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from workpacket.approvals.fields import PRINCIPAL, decode_base64
from workpacket.approvals.keys import PublicKey, read_key_blob, read_key_fields
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.value import Value

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
    """The lines of the file by key blob."""

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
        raise WorkpacketError(_MALFORMED_SIGNERS, "namespaces= may contain only literal names")
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
            _MALFORMED_SIGNERS, f"{option} is not YYYYMMDDZ or YYYYMMDDHHMM[SS]Z; without Z it would be local time"
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
            "principal_ambiguous", f"line {namesake.line} spells the same name {namesake.principal!r}"
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
