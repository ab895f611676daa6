"""Checkpoints in files, and the log, which is authoritative: a file is a view of a stream.

A foreign file is read completely or not at all, and is kept with every unknown key, so it can be written again. A
bridge consists of two pure functions and a list of what its format cannot represent; this module appends to the log for
all bridges. An import is planned as a whole, then appended. The file is compared with the stream:

    no stream                           genesis: everything is appended
    the same                            unchanged: nothing is appended
    more, and the same up to there      extended: the rest is appended, as an event log grows
    anything else                       the import is refused with `view_conflict`; nothing from any file is appended

A crash between the appends of two streams leaves the first one imported; a repeated import continues after it.

`CheckpointDesk` is the common base of the checkpoints of batches and roles. The log is written first, then the file. A
file may therefore be *late*: its writer was killed in between, and it matches an earlier state of the log. Any other
difference *contradicts* the log, and work stops until a person accepts the file (`adopt`) or has it rewritten from the
log (`restore`). A file that has no log is imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from workpacket.model.canonical import Json
from workpacket.model.plan import FileChange, Plan
from workpacket.model.wording import typed_as
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.runtime.attempts.recorder import RecordDraft, cleaned
from workpacket.runtime.errors import LogDamaged, RedactionFailed, RunBlocked
from workpacket.runtime.holders import Caller
from workpacket.runtime.records.events import Data, Event, RecordKind, current
from workpacket.runtime.records.jcs import jcs_hash, stored_text, value_of
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Append, Lease, Store
from workpacket.shell.actor import moment
from workpacket.shell.package_files import schemas
from workpacket.shell.transactions.transaction import Transaction
from workpacket.text.source import Node, Source


class StreamRecord(NamedTuple):
    """A stored record, without its secrets.

    `writer` identifies the command that wrote it; `payload` is a foreign file.
    """

    type: str
    data: Data
    version: int
    writer: str
    actor: str
    payload: Json = None


V = TypeVar("V")


@dataclass(slots=True)
class CheckpointState(ABC, Generic[V]):
    """The state of a stream. `earlier` are the views that the file may still show if its writer was killed."""

    kinds: ClassVar[Mapping[str, RecordKind]]

    version: int = 0
    earlier: list[V] = field(default_factory=list)
    writer: str = ""

    @property
    @abstractmethod
    def logged(self) -> V:
        """Return the expected content of the file."""

    @property
    def has_file(self) -> bool:
        """Whether the file must exist."""
        return True

    @abstractmethod
    def change(self, record: StreamRecord) -> None:
        """Apply this record to the state."""

    def apply(self, record: StreamRecord) -> None:
        if record.writer != self.writer:
            self.earlier, self.writer = [], record.writer
        self.earlier.append(self.logged)
        self.change(record)
        self.version = record.version

    def compared(self, stated: V | None, differences: Callable[[V, V], list[str]]) -> tuple[tuple[str, ...], bool]:
        """Return how the file (None if missing) differs from the log, and whether it is only behind the log."""
        if not self.version:
            return (), False
        if stated is None:
            return (), self.has_file
        different = differences(self.logged, stated)
        late = bool(different) and any(not differences(view, stated) for view in self.earlier)
        return (() if late else tuple(different)), late


S = TypeVar("S", bound="CheckpointState[Any]")


def state_of(kind: Callable[[], S], store: Store, stream: str) -> S:
    """Replay every record of the stream; raise `LogDamaged` or `NewerSchema` if one is damaged or too new."""
    state = kind()
    for event in store.read(stream):
        state.apply(record_of(store, event, state.kinds))
    return state


def record_of(store: Store, event: Event, kinds: Mapping[str, RecordKind]) -> StreamRecord:
    payload = store.payload(event) if event.payload is not None else None
    values = value_of(payload) if payload is not None else None
    return StreamRecord(event.type, current(event, kinds), event.version, event.writer, event.actor, values)


class StreamLog:
    """The right to append to a stream. Records are durable when `append` returns."""

    def __init__(self, runtime: Runtime, stream: str, kinds: Mapping[str, RecordKind]) -> None:
        self._store = runtime.store
        self._chosen = runtime.settings
        self.stream = stream
        self._kinds = kinds
        self._writer = runtime.settings.ids()
        self._seq = 0

    def append(self, *drafts: RecordDraft, expected_version: int, lease: Lease | None = None) -> list[StreamRecord]:
        """Append all records or none; raise `VersionConflict` if the stream has changed since it was read. Payloads are
        stored unchanged: the caller must make sure that they contain no secrets.
        """
        chosen = self._chosen
        now = chosen.clock.now()
        news = tuple(cleaned(draft, self._kinds, chosen.redactor)[0] for draft in drafts)
        request = Append(
            self.stream, news, self._writer, self._seq + 1, chosen.actor, now, now,
            fence=lease.token if lease is not None else None, expected_version=expected_version,
        )  # fmt: skip
        appended = self._store.append(request)
        self._seq += len(drafts)
        return [record_of(self._store, event, self._kinds) for event in appended.events]


class CheckpointFacts(Protocol):
    """The facts before an operation. `operand` is the checkpoint as given on the command line."""

    @property
    def path(self) -> str: ...
    @property
    def operand(self) -> str: ...
    @property
    def stream(self) -> str: ...
    @property
    def state(self) -> CheckpointState[Any]: ...
    @property
    def contradictions(self) -> Sequence[str]: ...
    @property
    def late(self) -> bool: ...
    @property
    def is_unlogged(self) -> bool:
        """Whether there is a file, but no log yet."""
        ...


F = TypeVar("F", bound=CheckpointFacts)


@dataclass(slots=True)
class CheckpointDesk(ABC, Generic[F]):
    """One command operating on a checkpoint. `caller` is the person or process that it works for; `said` contains notes
    for the person."""

    command: ClassVar[str]

    runtime: Runtime
    transaction: Transaction
    caller: Caller
    said: list[str] = field(default_factory=list, init=False)
    facts: F = field(init=False)
    log: StreamLog = field(init=False)

    def __post_init__(self) -> None:
        self.look()

    @abstractmethod
    def gather(self) -> F:
        """Return the current facts."""

    def look(self) -> None:
        self.facts = self.gather()
        self.log = StreamLog(self.runtime, self.facts.stream, self.facts.state.kinds)

    @abstractmethod
    def take_over(self) -> None:
        """Write the view from the log to the file."""

    @abstractmethod
    def write(self) -> None:
        """Update the file from the log, and reread it."""

    def record(self, type_: str, data: Mapping[str, Json], *, lease: Lease | None = None, payload: Json = None) -> None:
        """Append to the log; on return, the record is durable and the state is updated."""
        state = self.facts.state
        kept = None if payload is None else stored_text(payload).encode("utf-8")
        for record in self.log.append(RecordDraft(type_, data, kept), expected_version=state.version, lease=lease):
            state.apply(record)

    def replace_files(self, *changes: FileChange) -> None:
        """Replace all of the files or none of them."""
        self.transaction.apply(Plan(self.command, moment().tx, changes))
        self.look()

    def refuse_contradictions(self) -> None:
        if self.facts.contradictions:
            raise view_conflict(self.command, self.facts)

    def catch_up(self) -> None:
        """Import a file that has no log, and rewrite one that is late."""
        if self.facts.is_unlogged:
            self.take_over()
            self.said.append(f"{self.facts.path} was imported into the log")
        if self.facts.late:
            self.write()
            self.said.append(f"{self.facts.path} was outdated and has been rewritten")


def view_conflict(command: str, facts: CheckpointFacts) -> RunBlocked:
    """Return the refusal to continue with a file that contradicts the log."""
    typed = f"workpacket {typed_as(command)}"
    hint = f"{typed} restore {facts.operand}, or {typed} adopt {facts.operand} if the file is correct"
    details: dict[str, Json] = {"contradictions": list(facts.contradictions)}
    return RunBlocked(
        f"{facts.path}: {'; '.join(facts.contradictions)}", code="view_conflict", hint=hint, details=details
    )


class Foreign(NamedTuple):
    """One checkpoint as stated in its file. `stream` is its stream in the log: `<format>/<key>`."""

    format: str
    stream: str
    values: Mapping[str, Json]


class Bridge(Protocol):
    """One foreign format. `lossy` lists what the format cannot represent and what is therefore lost on export."""

    name: str
    lossy: tuple[str, ...]

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        """Return the whole content of the file, or everything that is wrong with it; never only part of the content."""
        ...

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """Return the canonical file. For a file that was canonical, `write(read(file)) == file`."""
        ...


def stream_named(form: str, *key: str) -> str:
    """Return the stream of a checkpoint. The parts of the key are quoted, so that '/' and '@' have no special
    meaning.
    """
    from urllib.parse import quote  # slows start-up, and most uses only read

    return "/".join((form, *(quote(part, safe=" :#+=,()") for part in key)))


def misfits(root: Node, schema: str, code: str = "") -> Iterator[Problem]:
    """Yield schema violations with their locations; if `code` is given, all of them have that code."""
    for wrong in schemas().violations(schema, root.plain()):
        place = Location.span(*root.nearest(wrong.location.keys).span)
        yield Problem(code or wrong.code, wrong.message, place, wrong.hint)


def refusal_of_file(source: Source, problem: Problem, path: str = "") -> WorkpacketError:
    """Return the refusal for an invalid file, with a message that says where the fault is."""
    found = source.placed(problem)
    message = f"{found.path}:{found.line}:{found.column}: {found.message}"
    return WorkpacketError(found.code, message, hint=found.hint, path=path)


# Each format, with the module and class of its bridge, which is imported on first use.
BRIDGES: dict[str, str] = {
    "batch": "batch_facts.BatchBridge",
    "commit": "commit_checkpoints.CommitBridge",
    "role": "role_facts.RoleBridge",
    "runstate": "checkpoint_files.RunStateBridge",
    "session": "checkpoint_files.SessionBridge",
    "step": "checkpoint_files.StepBridge",
}


def bridge_named(name: str) -> Bridge:
    """Return the bridge for a format in `BRIDGES`."""
    module, _, cls = BRIDGES[name].partition(".")
    bridge: Bridge = getattr(import_module(f"workpacket.bridges.{module}"), cls)()
    return bridge


IMPORTED = RecordKind(
    "checkpoint.imported", {"format": "public", "position": "public", "digest": "public", "file": "scan"}
)
KINDS = {IMPORTED.type: IMPORTED}

Outcome = Literal["genesis", "unchanged", "extended"]


@runtime_checkable
class OfRuns(Protocol):
    """A bridge whose checkpoints this store also manages: the file is a view of the stream's state."""

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """Return the current checkpoint for this key; None if the store does not have it."""
        ...

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether a file matches the stream's state."""
        ...


@runtime_checkable
class AmongOthers(Protocol):
    """A bridge whose checkpoints share a folder with files of other kinds."""

    def other_kind(self, path: str, data: bytes) -> str:
        """Describe the file if its name or fields show that it should not be imported; return '' otherwise."""
        ...


class Placed(NamedTuple):
    """A checkpoint, the file that it was read from, and its position in that file."""

    checkpoint: Foreign
    file: str
    position: int


class ImportPlan(NamedTuple):
    stream: str
    known: int
    new: tuple[Placed, ...]

    @property
    def outcome(self) -> Outcome:
        if not self.new:
            return "unchanged"
        return "extended" if self.known else "genesis"


def plan_import(store: Store, bridge: Bridge, placed: Iterable[Placed]) -> tuple[ImportPlan, ...]:
    """Return what an import would append; raise `RunBlocked` with `view_conflict` if a view differs from its stream."""
    streams: dict[str, list[Placed]] = {}
    for one in placed:
        streams.setdefault(one.checkpoint.stream, []).append(one)
    return tuple(_planned(store, bridge, stream, found) for stream, found in streams.items())


def append_planned(runtime: Runtime, planned: Sequence[ImportPlan]) -> None:
    """Append the planned records; raise `VersionConflict` if another writer appended to a stream in the meantime."""
    for plan in planned:
        for one in plan.new:
            require_no_secret(one.checkpoint, one.file, runtime.settings.redactor)
    for plan in planned:
        if plan.new:
            _append(runtime, plan)


def imported(store: Store, stream: str) -> tuple[Placed, ...]:
    """Return the imported checkpoints in the stream, in order."""
    if store.head(stream) is None:
        return ()
    return tuple(_placed(store, event) for event in store.read(stream) if event.type == IMPORTED.type)


def _planned(store: Store, bridge: Bridge, stream: str, found: Sequence[Placed]) -> ImportPlan:
    held = [one.checkpoint for one in imported(store, stream)]
    if isinstance(bridge, OfRuns):
        held = list(bridge.from_runs(store, stream.partition("/")[2])) or held
    pairs = list(zip(held, [one.checkpoint for one in found], strict=False))
    for number, (old, new) in enumerate(pairs, start=1):
        if not (bridge.same(old, new) if isinstance(bridge, OfRuns) else alike(old, new)):
            raise _conflict(stream, found[0].file, f"checkpoint {number}", _differences(old.values, new.values))
    if len(held) > len(found):
        raise _conflict(
            stream,
            found[0].file,
            f"the stream contains {len(held)} checkpoints, but the file contains {len(found)}",
            {},
        )
    return ImportPlan(stream, len(held), tuple(found[len(held) :]))


def alike(held: Foreign, found: Foreign) -> bool:
    """Whether two checkpoints agree on every key."""
    return jcs_hash(held.values) == jcs_hash(found.values)


def _conflict(stream: str, file: str, what: str, differences: dict[str, Json]) -> RunBlocked:
    named = f": {', '.join(differences)}" if differences else ""
    return RunBlocked(f"{file} differs from stream {stream}, {what}{named}", code="view_conflict",
                      details={"stream": stream, "file": file, "differences": differences})  # fmt: skip


def _differences(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    sides = {"stream": old, "file": new}
    changed = [key for key in sorted({*old, *new}) if key not in old or key not in new or old[key] != new[key]]
    return {key: {side: values[key] for side, values in sides.items() if key in values} for key in changed}


def require_no_secret(checkpoint: Foreign, file: str, redactor: Redactor) -> None:
    if redactor.clean_value(checkpoint.values, stored_text(checkpoint.values))[1]:
        raise RedactionFailed(f"{file} contains a secret; remove it, then import the file")


def _append(runtime: Runtime, plan: ImportPlan) -> None:
    head = runtime.store.head(plan.stream)
    drafts = [
        RecordDraft(IMPORTED.type, genesis_of(one), stored_text(one.checkpoint.values).encode("utf-8"))
        for one in plan.new
    ]
    StreamLog(runtime, plan.stream, KINDS).append(*drafts, expected_version=0 if head is None else head.version)


def genesis_of(one: Placed) -> dict[str, Json]:
    """Return the data of the record that imports a checkpoint into the log; its payload is the checkpoint's values."""
    values = one.checkpoint.values
    return {"format": one.checkpoint.format, "position": one.position, "digest": jcs_hash(values), "file": one.file}


def _placed(store: Store, event: Event) -> Placed:
    record = record_of(store, event, KINDS)
    data, values, position = record.data, record.payload, record.data.get("position")
    if not isinstance(values, Mapping) or not isinstance(position, int):
        raise LogDamaged(event.stream, event.version, "it contains no checkpoints")
    return Placed(Foreign(str(data.get("format")), event.stream, values), str(data.get("file")), position)


class Exported(NamedTuple):
    keys: tuple[str, ...]
    data: bytes


def export(store: Store, bridge: Bridge, key: str) -> Exported:
    """Return the file for one key, or for all keys from one file: `key` may be empty or end before a '/'."""
    own = bridge.from_runs(store, key) if isinstance(bridge, OfRuns) and key else ()
    found = own or _imported(store, bridge, key)
    keys = tuple(dict.fromkeys(one.stream.partition("/")[2] for one in found))
    return Exported(keys, bridge.write(found))


def _imported(store: Store, bridge: Bridge, key: str) -> tuple[Foreign, ...]:
    prefix = f"{bridge.name}/{key}"
    found: list[Placed] = []
    for head in store.heads(prefix):
        if not key or head.stream == prefix or head.stream.startswith(f"{prefix}/"):
            found += _held(store, bridge, head.stream)
    if not found:
        raise WorkpacketError("checkpoint_missing", f"the log contains no {bridge.name} checkpoint {key!r}",
                              hint=f"workpacket log import {bridge.name} PATH")  # fmt: skip
    if any(one.checkpoint.stream == prefix for one in found):  # a key that is complete names that checkpoint alone
        found = [one for one in found if one.checkpoint.stream == prefix]
    files = sorted({one.file for one in found})
    if len(files) > 1:
        keys = sorted({one.checkpoint.stream.partition("/")[2] for one in found})
        raise WorkpacketError("checkpoint_missing", f"{key or bridge.name!r} is ambiguous; it matches several files: "
                              f"{', '.join(files)}", hint=f"name one of {', '.join(keys)}")  # fmt: skip
    return tuple(one.checkpoint for one in sorted(found, key=lambda one: one.position))


def _held(store: Store, bridge: Bridge, stream: str) -> list[Placed]:
    """Return the content of the stream: its current state if this store manages such streams, otherwise what was
    imported.
    """
    found = list(imported(store, stream))
    own = bridge.from_runs(store, stream.partition("/")[2]) if isinstance(bridge, OfRuns) else ()
    return [Placed(one, found[-1].file if found else stream, 0) for one in own] or found


_HEAD = """# Checkpoints in other formats

Generated by `just reference`. `workpacket log import FORMAT PATH...` imports checkpoint files of another format into
the log, and `workpacket log export FORMAT [KEY]` writes them again. An invalid file is refused with line and column,
and no part of it is imported. Unknown keys are kept. A file in its canonical form is exported byte for byte as it was
imported.

A checkpoint belongs to the stream `<format>/<key>`. If the stream does not exist, the import begins it. Importing the
same file again changes nothing, and an event log to which events were only added extends the stream; anything else is
refused with `view_conflict`. A file that contains a secret is refused with `redaction_failed`.

An export lacks what the format cannot represent:
"""


def formats_page() -> str:
    """Return docs/runtime/formats.md, generated from the bridges."""
    from inspect import cleandoc

    parts = [_HEAD]
    for name in sorted(BRIDGES):
        bridge = bridge_named(name)
        about = cleandoc(type(bridge).__doc__ or "").strip()
        lost = "".join(f"- {what}\n" for what in bridge.lossy) or "- nothing\n"
        parts.append(f"\n## {name}\n\n{about}\n\nLost:\n\n{lost}")
    return "".join(parts)
