"""The common base of the checkpoints of batches and roles: a stream of the log, and a file that is a view of it. The
log is written first, then the file. A file may therefore be *late*: its writer was killed in between, and it matches an
earlier state of the log. Any other difference *contradicts* the log, and work stops until a person accepts the file
(`adopt`) or has it rewritten from the log (`restore`). A file that has no log is imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from workpacket.model.canonical import Json
from workpacket.model.plan import FileChange, Plan
from workpacket.model.wording import typed_as
from workpacket.runtime.attempts.recorder import RecordDraft, cleaned
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.holders import Caller
from workpacket.runtime.records.events import Data, Event, RecordKind, current
from workpacket.runtime.records.jcs import stored_text, value_of
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Append, Lease, Store
from workpacket.shell.actor import moment
from workpacket.shell.transactions.transaction import Transaction


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
        """Append all or none, if the stream has not changed since it was read; otherwise raise `VersionConflict`.
        Payloads are stored unchanged: the caller must make sure that they contain no secret.
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
    """The facts before an operation. `operand` names the checkpoint on the command line."""

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
        """Whether there is a file but no log yet."""
        ...


F = TypeVar("F", bound=CheckpointFacts)


@dataclass(slots=True)
class CheckpointDesk(ABC, Generic[F]):
    """One command that is running on a checkpoint. `caller` is the person or process that it works for; `said` contains
    notes for the person."""

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
        """Write the view in the log to the file."""

    @abstractmethod
    def write(self) -> None:
        """Update the file from the log, and read it again."""

    def record(self, type_: str, data: Mapping[str, Json], *, lease: Lease | None = None, payload: Json = None) -> None:
        """Append to the log; when this returns, the record is durable and the state is updated."""
        state = self.facts.state
        kept = None if payload is None else stored_text(payload).encode("utf-8")
        for record in self.log.append(RecordDraft(type_, data, kept), expected_version=state.version, lease=lease):
            state.apply(record)

    def replace_files(self, *changes: FileChange) -> None:
        """Replace all of the files or none."""
        self.transaction.apply(Plan(self.command, moment().tx, changes))
        self.look()

    def refuse_contradictions(self) -> None:
        if self.facts.contradictions:
            raise view_conflict(self.command, self.facts)

    def catch_up(self) -> None:
        """Import a file without a log, and rewrite a late one."""
        if self.facts.is_unlogged:
            self.take_over()
            self.said.append(f"{self.facts.path} was imported into the log")
        if self.facts.late:
            self.write()
            self.said.append(f"{self.facts.path} was outdated and has been rewritten")


def view_conflict(command: str, facts: CheckpointFacts) -> RunBlocked:
    """Return the refusal to continue from a file that contradicts the log."""
    typed = f"workpacket {typed_as(command)}"
    hint = f"{typed} restore {facts.operand}, or {typed} adopt {facts.operand} if the file is right"
    details: dict[str, Json] = {"contradictions": list(facts.contradictions)}
    return RunBlocked(
        f"{facts.path}: {'; '.join(facts.contradictions)}", code="view_conflict", hint=hint, details=details
    )
