"""Events: the hash chain that reveals alterations of a stream, the index of the latest events, the kinds of records.

    hash = sha256( canonical header || LF || data )

The header is canonical JSON of every field except `data` and `hash`. It includes the address of the payload and the
hash of the previous event, so an event vouches for its payload and for its whole past. Only the address of a payload is
hashed, so a chain still verifies after a payload is erased. `data` is the canonical text (RFC 8785) as stored, so that
verification never depends on how a later version would write it.

The index is a pure function of the log: an entry never contains a fact, only the version of the event that does, so a
lost or stale index does no harm and can be rebuilt at any time. The incremental and the rebuilt index are equal because
the later event for a key wins.

A kind of record states its fields, the sensitivity of each, its schema version, and how older versions are read. The
schemas are closed: unlisted fields are dropped before storage, and the record counts them. `public` fields are
structure (names we choose, counts, digests) and are stored as they are; `scan` fields may contain anything and are
searched for secrets; `hash` fields are stored only as their hash; `drop` fields are never stored.

To change a record, raise its `schema_version`, write the upcaster that converts an old one, and keep a recorded history
with the old one under tests/corpora/histories. Stored events are never rewritten. See docs/runtime/evolving.md.

The ids of questions are numbers in the order in which the questions arose. Anyone who can write to a store can add an
answer to it. If a run has a verifier, an answer counts only with a person's signature over `AnswerToJudge.covered`: the
run, the question, its text, the digest of the arguments, and the answer. An answer that does not count is kept in the
log, and the question stays open.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, cast

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, NewerSchema, PayloadErased
from workpacket.runtime.records.jcs import address_of, jcs_text, quoted, value_in
from workpacket.value import NOTHING, Value

CHAIN_FORMAT = 1
GENESIS = "0" * 64


class NewEvent(NamedTuple):
    """An event to append. `type_version` is the schema version of this kind of record."""

    type: str
    data: str
    type_version: int = 1
    payload: bytes | None = None


class Event(NamedTuple):
    """A stored event. Times are microseconds since 1970 in UTC, and are only claims: nothing is ordered by them."""

    stream: str
    version: int
    type: str
    type_version: int
    occurred_at: int
    recorded_at: int
    actor: str
    writer: str
    writer_seq: int
    key: str | None
    fence: int
    data: str
    payload: str | None
    previous: str
    hash: str

    def values(self) -> Mapping[str, Json]:
        """Return the data as a value. Do not modify it: the same object may be returned again."""
        return _values_in(self.data)


@functools.lru_cache(maxsize=8)
def _values_in(data: str) -> Mapping[str, Json]:
    """Return the parsed data. The index and the state both read an event that was just written, but it is parsed only
    once.
    """
    return cast("Mapping[str, Json]", value_in(data))


# All fields of an event except its hash, in order.
Hashed = tuple[str, int, str, int, int, int, str, str, int, str | None, int, str, str | None, str]


def event_hash(event: Event) -> str:
    """Return the hash that the event must have."""
    return _hash_of(event[:-1])


def _hash_of(fields: Hashed) -> str:
    # Written by hand, with the keys in canonical order: an encoder takes four times as long, and every event written or
    # read is hashed. `:d` rejects anything but integers, `quoted` anything but text.
    stream, version, kind, kind_version, occurred, recorded, actor, writer, seq, key, fence, data, payload, previous = (
        fields
    )
    text = (
        f'{{"actor":{quoted(actor)},"fence":{fence:d},"key":{"null" if key is None else quoted(key)},'
        f'"occurred_at":{occurred:d},"payload":{"null" if payload is None else quoted(payload)},'
        f'"previous":{quoted(previous)},"recorded_at":{recorded:d},"stream":{quoted(stream)},"type":{quoted(kind)},'
        f'"type_version":{kind_version:d},"v":{CHAIN_FORMAT},"version":{version:d},"writer":{quoted(writer)},'
        f'"writer_seq":{seq:d}}}\n{data}'
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed_event(fields: Hashed) -> Event:
    return Event(*fields, _hash_of(fields))


@dataclass(slots=True)
class Chain:
    """Verifies the events of one stream in order; the events it returns can be trusted."""

    stream: str
    version: int = 0
    hash: str = GENESIS

    def check(self, event: Event) -> Event:
        if event.stream != self.stream:
            raise LogDamaged(self.stream, event.version, f"the record belongs to stream {event.stream!r}")
        if event.version != self.version + 1:
            raise LogDamaged(self.stream, event.version, f"the preceding version {self.version + 1} is missing")
        if event.previous != self.hash:
            raise LogDamaged(self.stream, event.version, "it does not follow the preceding event")
        require_intact(event)
        self.version, self.hash = event.version, event.hash
        return event


def require_intact(event: Event) -> Event:
    """Return the event if its hash proves that it is unaltered."""
    try:
        intact = event_hash(event) == event.hash
    except (TypeError, ValueError):  # a damaged column may not even be text
        intact = False
    if not intact:
        raise LogDamaged(event.stream, event.version, "its content does not match its hash")
    return event


def verified(stream: str, events: Iterable[Event], after: int = 0, previous: str = GENESIS) -> Iterator[Event]:
    """Yield the events in order, each one verified."""
    chain = Chain(stream, after, previous)
    for event in events:
        yield chain.check(event)


def require_payload(event: Event, found: Sequence[object] | None) -> bytes:
    """Return the payload, from the first column of `found`, if it has the address in the event; None if it was erased.

    A damaged store may return anything.
    """
    if found is None:
        raise LogDamaged(event.stream, event.version, "its payload is missing")
    stored = found[0]
    if stored is None:
        raise PayloadErased(f"{event.stream}, version {event.version}: the payload was erased")
    if not isinstance(stored, bytes) or address_of(stored) != event.payload:
        raise LogDamaged(event.stream, event.version, "its payload does not match its address")
    return stored


class IndexEntry(NamedTuple):
    kind: str
    stream: str
    key: str
    version: int
    status: str


class Indexed(NamedTuple):
    """How a type of event is indexed: as `kind`, under the value of its field `key_field` ('' means one entry per
    stream).
    """

    kind: str
    key_field: str
    status: str


INDEXED: dict[str, Indexed] = {
    "run.started": Indexed("runs", "", "open"),
    "attempt.started": Indexed("runs", "", "open"),
    "run.stopped": Indexed("runs", "", "stopped"),
    "run.blocked": Indexed("blocks", "code", "blocked"),
    "run.cancelled": Indexed("runs", "", "cancelled"),
    "run.completed": Indexed("runs", "", "completed"),
    "run.handed_over": Indexed("runs", "", "handed_over"),
    "cancel.requested": Indexed("cancellations", "", "requested"),
    "checkpoint": Indexed("checkpoints", "name", "saved"),
    "effect.intended": Indexed("effects", "effect", "intended"),
    "effect.started": Indexed("effects", "effect", "started"),
    "effect.succeeded": Indexed("effects", "effect", "succeeded"),
    "effect.failed": Indexed("effects", "effect", "failed"),
    "effect.receipt": Indexed("effects", "effect", "succeeded"),
    "effect.doubted": Indexed("effects", "effect", "started"),
    "effect.resolved": Indexed("effects", "effect", "resolved"),
    "batch.begun": Indexed("batches", "batch", "begun"),
    "batch.completed": Indexed("batches", "batch", "completed"),
    "git.observed": Indexed("git_refs", "ref", "observed"),
    "lockfile_changed": Indexed("dep_changes", "", "changed"),
}


def types_of(kind: str) -> tuple[str, ...]:
    """Return the types of the events that write entries of this kind."""
    return tuple(name for name, indexed in INDEXED.items() if indexed.kind == kind)


def entry_of(event: Event) -> IndexEntry | None:
    """Return the entry that this event writes, if its type is indexed."""
    indexed = INDEXED.get(event.type)
    if indexed is None:
        return None
    key = str(event.values().get(indexed.key_field, "")) if indexed.key_field else ""
    return IndexEntry(indexed.kind, event.stream, key, event.version, indexed.status)


def index_of(events: Iterable[Event]) -> dict[tuple[str, str, str], IndexEntry]:
    """Return the whole index, built from events alone."""
    entries: dict[tuple[str, str, str], IndexEntry] = {}
    for event in events:
        entry = entry_of(event)
        if entry is not None:
            entries[entry.kind, entry.stream, entry.key] = entry
    return entries


Sensitivity = Literal["public", "scan", "hash", "drop"]
Data = Mapping[str, Json]
Upcaster = Callable[[Data], Data]


class RecordKind(Value):
    """A kind of record. `upcasters[n]` converts the data from schema version n to n + 1; version 0 is a record without
    a version.
    """

    type: str
    fields: Mapping[str, Sensitivity]
    schema_version: int = 1
    upcasters: Mapping[int, Upcaster] = NOTHING

    def guarded(self, data: Data) -> list[str]:
        """Return the names in `data` whose values must not be stored verbatim."""
        public = self._public
        return [name for name in data if name not in public]

    @cached_property
    def _public(self) -> frozenset[str]:
        return frozenset(name for name, sensitivity in self.fields.items() if sensitivity == "public")

    def __post_init__(self) -> None:
        missing = set(range(min(self.upcasters, default=self.schema_version), self.schema_version)) - set(
            self.upcasters
        )
        if missing:
            raise ValueError(f"{self.type}: no upcaster from schema version {sorted(missing)}")


def _kind(name: str, public: str = "", *, scan: str = "", hashed: str = "", drop: str = "") -> RecordKind:
    fields: dict[str, Sensitivity] = dict.fromkeys(public.split(), "public")
    fields |= dict.fromkeys(scan.split(), "scan")
    fields |= dict.fromkeys(hashed.split(), "hash")
    fields |= dict.fromkeys(drop.split(), "drop")
    return RecordKind(name, fields)


def _named(data: Data) -> Data:
    """Add the name that a checkpoint lacked before schema version 1."""
    return {"name": "", **data}


_EFFECT = "effect step kind args_hash args opaque target_hash compensable"

CORE: tuple[RecordKind, ...] = (
    _kind(
        "run.started",
        "inputs scope code_version budget repository workdir fork_of carried_from base_commit",
        scan="name packet allow_deps program",
    ),
    _kind(
        "attempt.started",
        "attempt decision interrupted inputs code_version scope budget repository workdir",
        scan="holder allow_deps",
        drop="env argv",
    ),
    _kind("step.started", "step processes"),
    _kind(
        "step.completed",
        "step args opaque version result_hash redactions ms tries maybe_repeated alone child carried_from",
    ),
    _kind("step.failed", "step try ms final maybe_repeated alone", scan="error raised"),
    RecordKind(
        "checkpoint",
        {
            "id": "public", "name": "scan", "kind": "public", "counters": "public", "preconditions": "scan",
            "token_hash": "public", "carried_from": "public", "child": "public",
        },
        upcasters={0: _named},
    ),
    _kind("checkpoint.prepared", "checkpoint milestone_index base", scan="milestone_title tier verification_commands"),
    _kind("checkpoint_complete", "checkpoint milestone_index commit tree changed found sidecar_written"),
    _kind("checkpoint_sidecar_write_failed", "sha", scan="path error"),
    _kind("resume_checkpoint_selected", "source sha milestone_index relation", scan="skipped"),
    _kind("lockfile_changed", "base", scan="lockfiles allow warnings"),
    _kind("effect.intended", _EFFECT, scan="target"),
    _kind("effect.started", f"{_EFFECT} attempt repeated", scan="target key"),
    _kind("effect.succeeded", f"{_EFFECT} result_hash redactions by_probe carried_from", scan="target unkept"),
    _kind("effect.receipt", "effect step result_hash redactions", scan="unkept"),
    _kind("effect.matched", "effect step args opaque target_hash"),
    _kind("effect.doubted", f"{_EFFECT} carried_from", scan="target key"),
    _kind("effect.failed", "effect step definite", scan="error raised"),
    _kind("effect.resolved", "effect choice result_hash carried_from envelope", scan="by note"),
    _kind("confirmation.requested", "subject place kind redactions", scan="question name target child"),
    _kind("confirmation.given", "subject answer envelope", scan="by note"),
    _kind("wait.begun", "step until carried_from", scan="signal"),
    _kind("wait.ended", "step number carried_from", scan="signal"),
    _kind("signal.received", "carried_from", scan="signal by"),
    _kind("patch.applied", "carried_from", scan="patch"),
    _kind("calls.interleaved", "scope carried_from"),
    _kind("value.published", "number scope child carried_from", scan="name"),
    _kind("retry_token.consumed", "token_hash checkpoint"),
    _kind("cancel.requested", scan="reason by"),
    _kind("run.blocked", "code decision subject"),
    _kind("run.stopped", "code in_flight", scan="error"),
    _kind("run.handed_over", "code", scan="to by"),
    _kind("run.cancelled", "in_flight", scan="reason"),
    _kind("run.completed", "steps effects"),
    _kind("payload.erased", "digest", scan="reason by"),
    _kind("rolled_back", "had has"),
)  # fmt: skip

KINDS: Mapping[str, RecordKind] = {kind.type: kind for kind in CORE}


def current(event: Event, kinds: Mapping[str, RecordKind] = KINDS) -> Data:
    """Return the data of an event in the newest schema; raise `NewerSchema` if a later version wrote it."""
    kind = kinds.get(event.type)
    if kind is None or event.type_version > kind.schema_version:
        raise NewerSchema(
            f"{event.stream}, version {event.version}: {event.type} {event.type_version} is unknown to this version",
            details={"stream": event.stream, "version": event.version, "type": event.type},
        )
    data = event.values()
    if event.type_version < kind.schema_version:
        for version in range(event.type_version, kind.schema_version):
            data = kind.upcasters[version](data)
    return data


def text(data: Data, name: str) -> str:
    value = data.get(name, "")
    return value if type(value) is str else str(value or "")


def number(data: Data, name: str) -> int:
    value = data.get(name, 0)
    return value if isinstance(value, int) else 0


def texts_by_key(data: Data, name: str) -> dict[str, str]:
    value = data.get(name)
    return {key: str(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def members(data: Data, name: str) -> Mapping[str, Json]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def texts(data: Data, name: str) -> tuple[str, ...]:
    value = data.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def scope_of(step: str) -> str:
    """Return the path of the scope in which a step, effect or wait was called."""
    path, slash, _ = step.rpartition("/")
    return path + slash


class WaitRecord(NamedTuple):
    """A wait for a time or a signal. `until` is its last microsecond, 0 for none. `number` says which signal of this
    name the wait received: 0 for none, None while it lasts.
    """

    step: str
    signal: str
    until: int
    begun: Event
    number: int | None = None
    ended: Event | None = None


@dataclass(slots=True)
class Waits:
    """Waits by step, and signals by name in the order in which they arrived. A wait takes the oldest signal left."""

    begun: dict[str, WaitRecord] = field(default_factory=dict)
    signals: dict[str, list[Event]] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    def apply(self, event: Event, data: Data) -> None:
        step, signal = text(data, "step"), text(data, "signal")
        if event.type == "signal.received":
            self.signals.setdefault(signal, []).append(event)
        elif event.type == "wait.begun":
            self.begun[step] = WaitRecord(step, signal, number(data, "until"), event)
        elif step in self.begun:
            taken = number(data, "number")
            self.begun[step] = self.begun[step]._replace(number=taken, ended=event)
            self.taken[signal] = max(self.taken.get(signal, 0), taken)


CHANGE = "change"
COMPENSATED = "compensated"  # the error of an effect that was undone


class AskedQuestion(NamedTuple):
    """A question that a person was asked. `event` contains its subject; `before` is the earlier question at the same
    place.

    `kind` says whether the program asked (`program`, `effect`), or whether a difference prevented the run from
    continuing (`change`).
    """

    id: str
    subject: str
    text: str
    kind: str
    place: str
    name: str
    target: str
    before: str
    event: Event
    child: str = ""


class LastAnswer(NamedTuple):
    """An answer to a question. `by` is the name of the person who signed it; if no one did, a claimed name."""

    answer: str
    by: str
    note: str
    at: int
    signed: bool = False

    @property
    def proof(self) -> str:
        return "signed" if self.signed else "claimed"

    @property
    def shown_by(self) -> str:
        """Return who answered, and how that is known."""
        return f"{self.by or 'a person'} ({self.proof})"


class AnswerToJudge(NamedTuple):
    """An answer with everything that its signature covers.

    `subject` is the digest of question, target and arguments before redaction, or the id of an effect; `shown` is the
    digest of what was stored of the arguments; `result` is the digest of a value given with the answer. `envelope` has
    the signature; '' if there is none. `at` is the time of the record, in microseconds since 1970.
    """

    run: str
    subject: str
    question: str
    shown: str
    answer: str
    result: str
    note: str
    envelope: str
    at: int

    def covered(self) -> bytes:
        """Return the bytes whose digest the person signs."""
        said: dict[str, Json] = {name: value for name, value in self._asdict().items() if name not in _NOT_COVERED}
        return jcs_text({"v": 1, **said}).encode("utf-8")


_NOT_COVERED = frozenset({"envelope", "at"})


class JudgedAnswer(NamedTuple):
    """The result of verifying an answer. Unless refused, the answer counts as given by `signer` or, if that is '', by
    the person it claims to come from.

    `nonce` occurs in one signature only: an answer that was withdrawn cannot be replayed.
    """

    signer: str = ""
    nonce: str = ""
    refusal: str = ""


class AnswerVerifier(Protocol):
    def judge(self, answer: AnswerToJudge) -> JudgedAnswer:
        """Say whether the answer counts, and who signed it."""
        ...


def take_in(
    questions: dict[str, AskedQuestion], asked_at: dict[str, str], event: Event, data: Data, where: tuple[str, str]
) -> None:
    """Add a question by its kind and place. Ids are numbers in the order in which questions arose."""
    kind, place = where
    subject = text(data, "subject")
    known = questions.get(subject)
    last = asked_at.pop(place, "")
    before = last if last != subject else (known.before if known is not None else "")
    id_ = known.id if known is not None else f"q{len(questions) + 1}"
    words, name, target = text(data, "question"), text(data, "name"), text(data, "target")
    child = text(data, "child").rstrip("/")
    questions[subject] = AskedQuestion(id_, subject, words, kind, place, name, target, before, event, child)
    asked_at[place] = subject
