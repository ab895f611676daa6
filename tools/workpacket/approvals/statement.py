"""The statement that a person signs: an in-toto Statement v1 whose predicate approves or rejects specific bytes, for
one gate and a limited time.

The payload is canonical JSON, so one statement has one sequence of bytes; any other encoding is refused. Parsing only
shows that the statement is well formed; `verify` judges whether it is authentic, applicable and in time.

Version 2 adds the contract of the packet. Version 1 covered only the refinement; it remains readable, and counts for
events on the base that used it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from workpacket.approvals.fields import (
    COMMIT,
    NAME,
    PRINCIPAL,
    REPOSITORY,
    SHA256,
    Fields,
    load_json,
    read_instant,
    write_instant,
)
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json, NotCanonical, canonical_bytes
from workpacket.problem import Problem
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
_CONSTANT = re.compile(re.escape(STATEMENT_TYPE))
_PREDICATE = re.compile("|".join(map(re.escape, PREDICATE_TYPES.values())))
_EARLIEST, _LATEST = (instant.replace(tzinfo=UTC) for instant in (datetime.min, datetime.max))


class Subject(Value):
    """The approved raw bytes: those of the file `name`, or those of an envelope for `revoke`."""

    name: str
    sha256: str

    def __lt__(self, other: Subject) -> bool:
        return (self.name, self.sha256) < (other.name, other.sha256)


class Spec(Value):
    """The place in the specification that the work implements, and the digest of the version that was read."""

    anchor: str
    sha256: str


class RepositoryName(Value):
    """A repository. The name tells forks apart; the root commit tells apart repositories with the same name."""

    name: str
    root_commit: str


class Statement(Value):
    """A signed statement, with what the signer saw: the heads of the packet's log, the base revision, the digest of its
    `policy.toml`.

    `contract` is the digest of the packet's contract; None at the gate `policy` and in a statement of version 1.
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
    statement = _read(Fields(document, "", faults))
    if faults:
        return Problem("statement_malformed", "; ".join(faults))
    try:
        canonical = statement.payload()
    except NotCanonical as fault:
        return Problem("statement_malformed", str(fault))
    if canonical != payload:
        return Problem(
            "statement_not_canonical", "the payload is not the canonical form of the statement that it contains"
        )
    return statement


def _read(fields: Fields) -> Statement:
    fields.text("_type", _CONSTANT, f"'{STATEMENT_TYPE}'")
    named = fields.text("predicateType", _PREDICATE, f"'{PREDICATE_TYPE}'")
    version = next((number for number, name in PREDICATE_TYPES.items() if name == named), STATEMENT_VERSION)
    subjects = tuple(_subject(each) for each in fields.tables("subject"))
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
    """Return the specification; None if the gate is not about one. The key itself is required."""
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
        fields.fault(key, "is not a time of the form 2026-01-31T12:00:00Z")
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
