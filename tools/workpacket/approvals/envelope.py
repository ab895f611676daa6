"""The statement that a person signs, and the file that carries it with its signature.

The statement is an in-toto Statement v1 whose predicate approves or rejects specific bytes, for one gate and a limited
time. The payload is canonical JSON, so one statement has one sequence of bytes; any other encoding is refused. Parsing
only shows that the statement is well formed; `verify` judges whether it is authentic, applicable and in time. Version 2
adds the contract of the packet. Version 1 covered only the refinement; it remains readable, and counts for those events
on the base that used version 1.

The file is a DSSE envelope with exactly one SSH signature, canonical JSON and one newline, named after its own SHA-256,
so that edits are detected and one approval is one file. The signature is over the pre-authentication encoding (PAE),
which includes the payload's type; `sig` is the SSHSIG blob, whose base64 is the body of the armored text that
`ssh-keygen` reads. An envelope is parsed only once, here, and nothing in it is trusted yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property

from workpacket.approvals.fields import (
    COMMIT,
    NAME,
    PRINCIPAL,
    REPOSITORY,
    SHA256,
    Fields,
    decode_base64,
    encode_base64,
    load_json,
    read_instant,
    write_instant,
)
from workpacket.approvals.sshsig import SshSignature, check_signature, read_signature
from workpacket.digests import sha256
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json, NotCanonical, canonical_bytes
from workpacket.model.layout import envelope_name
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import Value

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
# The predicate of what tests showed, which machines state about a commit.
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
STATEMENT_VERSION = 2
PREDICATE_TYPES = {1: "urn:workpacket:approval:v1", STATEMENT_VERSION: "urn:workpacket:approval:v2"}
PREDICATE_TYPE = PREDICATE_TYPES[STATEMENT_VERSION]

DEFAULT_VALIDITY = timedelta(days=14)
NONCE_BYTES = 16

DECISIONS = ("approve", "reject", "revoke")

PACKET = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_DECISION = lazy_pattern("|".join(DECISIONS))
_NONCE = lazy_pattern(r"[0-9a-f]{32}")
_TEXT = lazy_pattern(r"[^\x00-\x1f\x7f-\x9f]{1,240}")
_CONSTANT = lazy_pattern(re.escape(STATEMENT_TYPE))
_PREDICATE = lazy_pattern("|".join(map(re.escape, PREDICATE_TYPES.values())))
_EARLIEST, _LATEST = (instant.replace(tzinfo=UTC) for instant in (datetime.min, datetime.max))


class Subject(Value):
    """The approved raw bytes: those of the file `name`, or those of an envelope for `revoke`."""

    name: str
    sha256: str

    def __lt__(self, other: Subject) -> bool:
        return (self.name, self.sha256) < (other.name, other.sha256)


class Spec(Value):
    """The passage in the specification that the work implements, and the digest of the version that was read."""

    anchor: str
    sha256: str


class RepositoryName(Value):
    """A repository. The name distinguishes forks; the root commit distinguishes repositories with the same name."""

    name: str
    root_commit: str


class Statement(Value):
    """A signed statement, with the state that the signer saw: the heads of the packet's log, the base revision, and the
    digest of its `policy.toml`.

    `contract` is the digest of the packet's contract; None at the `policy` gate and in version 1 statements.
    """

    subjects: tuple[Subject, ...]
    packet: str
    gate: str
    decision: str
    role: str
    approver: str
    repository: RepositoryName
    base: str
    spec: Spec | None
    policy: str
    log_heads: tuple[str, ...]
    scope: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    nonce: str
    contract: str | None = None
    version: int = STATEMENT_VERSION

    @property
    def covers(self) -> str:
        """Return what the person has seen and approved, for display."""
        return "contract" if self.version > 1 else "refinement only"

    def payload(self) -> bytes:
        """Return the canonical bytes; raise `NotCanonical` if there are none."""
        return canonical_bytes(_as_json(self))


def read_statement(payload: bytes) -> Statement | Problem:
    """Return the statement in a payload, or everything that is wrong with its form."""
    try:
        document = load_json(payload)
    except WorkpacketError as refused:
        return refused.problem
    faults: list[str] = []
    statement = _statement(Fields(document, "", faults))
    if faults:
        return Problem("statement_malformed", "; ".join(faults))
    try:
        canonical = statement.payload()
    except NotCanonical as fault:
        return Problem("statement_malformed", str(fault))
    # Two parsers may read one text in two ways, for example if a key occurs twice; only one encoding leaves no choice.
    if canonical != payload:
        return Problem(
            "statement_not_canonical", "the payload is not the canonical form of the statement that it contains"
        )
    return statement


def _statement(fields: Fields) -> Statement:
    fields.text("_type", _CONSTANT, f"'{STATEMENT_TYPE}'")
    named = fields.text("predicateType", _PREDICATE, f"'{PREDICATE_TYPE}'")
    version = next((number for number, name in PREDICATE_TYPES.items() if name == named), STATEMENT_VERSION)
    subjects = tuple(_subject(each) for each in fields.tables("subject"))
    # One approval has one sequence of bytes: with two orders, it would have two digests, and a revocation names one.
    if list(subjects) != sorted(set(subjects)):
        fields.fault("subject", "is not sorted by name, or contains a name twice")
    predicate = fields.inner("predicate")
    fields.end()
    statement = _predicate(predicate, subjects, version)
    predicate.end()
    if statement.expires_at <= statement.issued_at:
        predicate.fault("expiresAt", "is not after issuedAt")
    return statement


def _predicate(fields: Fields, subjects: tuple[Subject, ...], version: int) -> Statement:
    return Statement(
        subjects=subjects,
        packet=fields.text("packet", PACKET, "the id of a packet"),
        gate=fields.text("gate", NAME, "the name of a gate"),
        decision=fields.text("decision", _DECISION, "one of " + ", ".join(DECISIONS)),
        role=fields.text("role", NAME, "the name of a role"),
        approver=fields.text("approver", PRINCIPAL, "a literal principal"),
        repository=_repository(fields.inner("repository")),
        base=fields.text("base", COMMIT, "a commit"),
        spec=_spec(fields),
        policy=fields.text("policy", SHA256, "a SHA-256 digest"),
        log_heads=_sorted(fields, "logHeads", SHA256, "event ids"),
        scope=_sorted(fields, "scope", _TEXT, "paths"),
        issued_at=_instant(fields, "issuedAt", _EARLIEST),
        expires_at=_instant(fields, "expiresAt", _LATEST),
        nonce=fields.text("nonce", _NONCE, f"{NONCE_BYTES} bytes in lower-case hexadecimal"),
        contract=_contract(fields) if version > 1 else None,
        version=version,
    )


def _contract(fields: Fields) -> str | None:
    """Return the contract; None if the gate is not about a packet. The key itself is required."""
    return None if fields.is_null("contract") else fields.text("contract", SHA256, "a SHA-256 digest")


def _subject(fields: Fields) -> Subject:
    name = fields.text("name", _TEXT, "a path")
    digest = fields.inner("digest")
    fields.end()
    sha256 = digest.text("sha256", SHA256, "a SHA-256 digest")
    digest.end()
    return Subject(name, sha256)


def _repository(fields: Fields) -> RepositoryName:
    name = fields.text("name", REPOSITORY, "the name of a repository")
    root_commit = fields.text("rootCommit", COMMIT, "a commit")
    fields.end()
    return RepositoryName(name, root_commit)


def _spec(fields: Fields) -> Spec | None:
    """Return the specification; None if the gate is not about a specification. The key itself is required."""
    if fields.is_null("spec"):
        return None
    inner = fields.inner("spec")
    anchor = inner.text("anchor", _TEXT, "an anchor")
    sha256 = inner.text("sha256", SHA256, "a SHA-256 digest")
    inner.end()
    return Spec(anchor, sha256)


def _sorted(fields: Fields, key: str, form: re.Pattern[str], what: str) -> tuple[str, ...]:
    values = fields.texts(key, form, what)
    if list(values) != sorted(values):
        fields.fault(key, "is not sorted")
    return values


def _instant(fields: Fields, key: str, otherwise: datetime) -> datetime:
    text = fields.text(key, _TEXT, "an instant")
    instant = read_instant(text)
    if instant is None and text:
        fields.fault(key, "is not a time in the form 2026-01-31T12:00:00Z")
    return instant or otherwise


def _as_json(statement: Statement) -> Json:
    spec = statement.spec
    contract: dict[str, Json] = {"contract": statement.contract} if statement.version > 1 else {}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": each.name, "digest": {"sha256": each.sha256}} for each in statement.subjects],
        "predicateType": PREDICATE_TYPES[statement.version],
        "predicate": {
            **contract,
            "packet": statement.packet,
            "gate": statement.gate,
            "decision": statement.decision,
            "role": statement.role,
            "approver": statement.approver,
            "repository": {"name": statement.repository.name, "rootCommit": statement.repository.root_commit},
            "base": statement.base,
            "spec": None if spec is None else {"anchor": spec.anchor, "sha256": spec.sha256},
            "policy": statement.policy,
            "logHeads": list(statement.log_heads),
            "scope": list(statement.scope),
            "issuedAt": write_instant(statement.issued_at),
            "expiresAt": write_instant(statement.expires_at),
            "nonce": statement.nonce,
        },
    }


PAYLOAD_TYPE = "application/vnd.in-toto+json"
_FINGERPRINT = lazy_pattern(r"SHA256:[A-Za-z0-9+/]{43}")


class Envelope(Value):
    """A parsed envelope. `digest` is the SHA-256 of the file, by which events and revocations refer to it."""

    digest: str
    payload: bytes
    key_id: str
    signature: bytes


def pae(payload: bytes) -> bytes:
    """Return the bytes that are signed for this payload."""
    kind = PAYLOAD_TYPE.encode("ascii")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def write_envelope(payload: bytes, key_id: str, signature: bytes) -> tuple[str, bytes]:
    """Return the file name and the bytes of the envelope."""
    content = canonical_bytes(
        {
            "payload": encode_base64(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key_id, "sig": encode_base64(signature)}],
        }
    )
    data = content + b"\n"
    return envelope_name(sha256(data).hexdigest()), data


def read_envelope(name: str, data: bytes) -> Envelope | Problem:
    """Return the envelope parsed from the bytes of file `name` (without folders)."""
    try:
        return _read(name, data)
    except WorkpacketError as refused:
        return refused.problem.at(name)


def _read(name: str, data: bytes) -> Envelope:
    digest = sha256(data).hexdigest()
    # The name is how events and revocations refer to it.
    if name != envelope_name(digest):
        raise WorkpacketError("envelope_renamed", f"the content or the file name was changed: the digest is {digest}")
    envelope = _closed(load_json(data), "the envelope", ("payload", "payloadType", "signatures"))
    kind = envelope["payloadType"]
    if kind != PAYLOAD_TYPE:
        raise WorkpacketError("payload_type_wrong", f"the payload type is {str(kind)[:80]!r}, not {PAYLOAD_TYPE!r}")
    payload = _bytes(envelope["payload"], "payload")
    signatures = envelope["signatures"]
    if not isinstance(signatures, list) or not signatures:
        raise WorkpacketError("signature_missing", "the envelope has no signature")
    # Each signature is a person's own, and must be revocable alone.
    if len(signatures) > 1:
        raise WorkpacketError(
            "signature_surplus",
            f"the envelope has {len(signatures)} signatures; each person needs their own envelope",
        )
    signature = _closed(signatures[0], "the signature", ("keyid", "sig"))
    key_id = signature["keyid"]
    if not isinstance(key_id, str) or not _FINGERPRINT.fullmatch(key_id):
        raise WorkpacketError("envelope_malformed", "keyid is not the SHA256 fingerprint of a key")
    blob = _bytes(signature["sig"], "sig")
    # Otherwise one approval could have many files with different digests, and a revocation would name only one of
    # them.
    if data != write_envelope(payload, key_id, blob)[1]:
        raise WorkpacketError("envelope_not_canonical", "the envelope is not canonical JSON followed by one newline")
    return Envelope(digest, payload, key_id, blob)


def _closed(value: object, what: str, keys: tuple[str, ...]) -> dict[str, object]:
    if not isinstance(value, dict) or sorted(value) != sorted(keys):
        raise WorkpacketError(
            "envelope_malformed", f"{what} is not an object with exactly these keys: {', '.join(keys)}"
        )
    return value


def _bytes(value: object, what: str) -> bytes:
    if not isinstance(value, str):
        raise WorkpacketError("envelope_malformed", f"{what} is not a string")
    try:
        return decode_base64(value)
    except ValueError as fault:
        raise WorkpacketError("envelope_malformed", f"{what} is {fault}") from None


class Parts(Value):
    """The parts of a well-formed envelope; any of them may be unreadable."""

    envelope: Envelope
    signature: SshSignature | Problem
    statement: Statement | Problem

    @cached_property
    def unreadable(self) -> tuple[Problem, ...]:
        return tuple(part for part in (self.signature, self.statement) if isinstance(part, Problem))

    @cached_property
    def broken(self) -> Problem | None:
        """Return what is wrong with a readable signature over the statement's bytes."""
        if isinstance(self.signature, Problem):
            return None
        return check_signature(self.signature, pae(self.envelope.payload))


class EnvelopeFile(Value):
    """A file in `.GOV/attestations/`; `name` does not include folders."""

    name: str
    data: bytes

    @cached_property
    def parts(self) -> Parts | Problem:
        envelope = read_envelope(self.name, self.data)
        if isinstance(envelope, Problem):
            return envelope
        return Parts(envelope, read_signature(envelope.signature), read_statement(envelope.payload))

    @property
    def claim(self) -> Statement | None:
        """Return the statement, trusted or not; None if it cannot be read."""
        if isinstance(self.parts, Problem) or isinstance(self.parts.statement, Problem):
            return None
        return self.parts.statement


class Selection:
    """Many envelopes, read once, in the given order. `claims` has the statement of each readable envelope. Filtering by
    claim is safe: an approval that claims another packet would be refused anyway, and a rejection or revocation that
    claims another packet does not apply here. Unreadable envelopes claim nothing; `log verify` reports them.
    """

    def __init__(self, files: Iterable[EnvelopeFile]) -> None:
        self._about: dict[tuple[str, str], list[EnvelopeFile]] = {}
        self._revoking: dict[str, list[EnvelopeFile]] = {}
        claims: dict[str, Statement] = {}
        for file in files:
            said = file.claim
            if said is None:
                continue
            claims[file.name] = said
            if said.decision == "revoke":
                for digest in {subject.sha256 for subject in said.subjects}:
                    self._revoking.setdefault(digest, []).append(file)
            else:
                self._about.setdefault((said.packet, said.gate), []).append(file)
        self.claims: Mapping[str, Statement] = claims

    def about(self, packet: str, gate: str) -> tuple[EnvelopeFile, ...]:
        """Return the envelopes about this gate of this packet, and all revocations of them."""
        own = self._about.get((packet, gate), [])
        revoking = (each for file in own for each in self._revoking.get(file.name.partition(".")[0], ()))
        return tuple(dict.fromkeys((*own, *revoking)))
