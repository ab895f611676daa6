"""The records of a batch scope, and the state that follows from them. Pure.

Each record that changes the checkpoint holds the view as it is from then on, so what the file may say is known for
every moment of the log, whichever version of the program wrote it. The file is written after the record; a file that
is as the log was before its last command is only late and is written anew, any other one contradicts the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from workpacket.bridges import importing
from workpacket.bridges.batch_phases import PHASES, BatchUnderWay, outcome_named, phase_named
from workpacket.bridges.stream_log import Record
from workpacket.documents.batch_view import BatchView, view_of, view_of_json
from workpacket.documents.batch_writing import document_of
from workpacket.model.canonical import Json
from workpacket.runtime.records.kinds import KINDS as KINDS_OF_RUNS
from workpacket.runtime.records.kinds import Data, Kind, Sensitivity
from workpacket.text.node import Plain
from workpacket.value import NOTHING, Value, replace

IMPORTED = "batch.imported"
BEGUN = "batch.begun"
STAGES_BEGUN = "batch.stages_begun"
STAGES_ENDED = "batch.stages_ended"
COMPLETING = "batch.completing"
COMPLETED = "batch.completed"
ACCEPTED = "batch.accepted"
LOCKFILE_CHANGED = "lockfile_changed"

STREAMS = "batch/"
# What stands for a phase when all three are done and the batch waits to be completed.
ALL_PHASES_DONE = "complete"


def stream_of(folder: str) -> str:
    """The stream of the scope in this folder of the repository. An '@' would make it look like a run."""
    return f"{STREAMS}{folder.replace('%', '%25').replace('@', '%40')}"


def folder_of(stream: str) -> str:
    return stream.removeprefix(STREAMS).replace("%40", "@").replace("%25", "%")


def _kind(name: str, public: str, scan: str) -> Kind:
    fields: dict[str, Sensitivity] = dict.fromkeys(public.split(), "public")
    fields |= dict.fromkeys(scan.split(), "scan")
    return Kind(name, fields)


KINDS: Mapping[str, Kind] = importing.KINDS | {
    kind.type: kind
    for kind in (
        _kind(IMPORTED, "digest adopted", "view reviewers preconditions"),
        _kind(BEGUN, "", "batch tasks parallel reviewers view preconditions holder allow_deps"),
        _kind(STAGES_BEGUN, "phase", "batch units view holder allow_deps"),
        _kind(STAGES_ENDED, "phase outcome", "batch units tasks view note"),
        _kind(COMPLETING, "id", "batch tasks head view message"),
        _kind(COMPLETED, "id commit", "batch preconditions"),
        _kind(ACCEPTED, "names", "view reviewers preconditions"),
        KINDS_OF_RUNS[LOCKFILE_CHANGED],
    )
}


class Preconditions(Value):
    """What held when the log was written to last, and has to hold for the work to go on."""

    branch: str = ""
    commit: str = ""
    tree: str = ""
    base_commit: str = ""
    definitions: Mapping[str, str] = NOTHING
    config: str = ""

    def as_json(self) -> dict[str, Json]:
        texts = ("branch", "commit", "tree", "base_commit", "config")
        return {**{name: getattr(self, name) for name in texts}, "definitions": dict(self.definitions)}


def _preconditions(stored: Json) -> Preconditions:
    values = stored if isinstance(stored, Mapping) else {}
    definitions = values.get("definitions")
    return Preconditions(
        **{name: str(values.get(name) or "") for name in ("branch", "commit", "tree", "base_commit", "config")},
        definitions={k: str(v) for k, v in definitions.items()} if isinstance(definitions, Mapping) else {},
    )


class Completing(Value):
    """A batch whose completion was begun: its files may be written or not, its commit may be there or not."""

    id: str
    label: str
    tasks: tuple[str, ...]
    head: str
    message: str


@dataclass(slots=True)
class BatchState:
    """`earlier` are the views that the file may still show because its writer was killed.

    `checkpoint_commit` is the commit that dependencies are compared with: that of the last batch, else the one at which
    the log began ('' before the first commit, None if it does not say). `allow_deps` may change in the batch under way.

    `stated` are the values of the file that was taken into the log last, `stated_view` what it said.
    """

    version: int = 0
    view: BatchView = field(default_factory=BatchView)
    earlier: list[BatchView] = field(default_factory=list)
    batch: BatchUnderWay | None = None
    completing: Completing | None = None
    recorded: Preconditions = field(default_factory=Preconditions)
    labels: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    stated: Mapping[str, Json] | None = None
    stated_view: BatchView | None = None
    checkpoint_commit: str | None = None
    allow_deps: tuple[str, ...] = ()
    _writer: str = ""

    def apply(self, record: Record) -> None:
        data = record.data
        if record.writer != self._writer:
            self.earlier, self._writer = [self.view], record.writer
        else:
            self.earlier.append(self.view)
        view = data.get("view")
        if isinstance(view, Mapping):
            self.view = view_of_json(view)
        if "preconditions" in data:
            self.recorded = _preconditions(data["preconditions"])
            if record.type == COMPLETED or self.checkpoint_commit is None:
                self.checkpoint_commit = self.recorded.commit
        if isinstance(record.payload, Mapping):
            self.stated = record.payload
        if record.type == importing.IMPORTED.type and self.stated is not None:
            document = document_of(cast("Plain", dict(self.stated)))
            self.view, self.recorded = view_of(document), Preconditions()
            data = {"reviewers": list(document.reviewers)}
        if record.type in _GENESES:
            self.stated_view = self.view
        _REDUCERS.get(record.type, _nothing)(self, data)
        self.version = record.version


def fold(records: Iterable[Record]) -> BatchState:
    state = BatchState()
    for record in records:
        state.apply(record)
    return state


def imported(view: BatchView, reviewers: Iterable[str]) -> BatchState:
    """The state of a checkpoint that has no log yet."""
    state = BatchState(view=view)
    _imported(state, {"reviewers": list(reviewers)})
    return state


def _text(data: Data, name: str) -> str:
    return str(data.get(name) or "")


def _texts(data: Data, name: str) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("Sequence[Json]", data.get(name) or ()))


def _nothing(_: BatchState, __: Data) -> None:
    """A record whose whole meaning is its view."""


def _accepted(state: BatchState, data: Data) -> None:
    if state.batch is not None:
        state.batch = replace(state.batch, reviewers=_texts(data, "reviewers"))


def _imported(state: BatchState, data: Data) -> None:
    view = state.view
    all_done = view.phase == ALL_PHASES_DONE
    phase = PHASES[-1] if all_done else phase_named(view.phase)
    state.batch = state.completing = None
    if phase is not None and view.next is not None:
        batch = BatchUnderWay(
            view.next.label, view.next.tasks, len(view.next.tasks) > 1, _texts(data, "reviewers")
        ).as_far_as(phase, view.incomplete)
        state.batch = batch.ended(phase, batch.units(phase), "ok") if all_done else batch
    if view.last_batch:
        state.labels.add(view.last_batch)


def _begun(state: BatchState, data: Data) -> None:
    label = _text(data, "batch")
    state.labels.add(label)
    state.notes = []
    tasks = _texts(data, "tasks")
    state.batch = BatchUnderWay(label, tasks, data.get("parallel") is True, _texts(data, "reviewers"))
    state.batch = state.batch.begun("testers", tasks, _text(data, "holder"))
    state.allow_deps = _texts(data, "allow_deps")


def _stages_begun(state: BatchState, data: Data) -> None:
    phase = phase_named(data.get("phase"))
    if state.batch is not None and phase is not None:
        state.batch = state.batch.begun(phase, _texts(data, "units"), _text(data, "holder"))
        state.allow_deps = _texts(data, "allow_deps") or state.allow_deps


def _stages_ended(state: BatchState, data: Data) -> None:
    phase = phase_named(data.get("phase"))
    if state.batch is not None and phase is not None:
        outcome = outcome_named(data.get("outcome"))
        state.batch = state.batch.ended(phase, _texts(data, "units"), outcome, _texts(data, "tasks"))
    if _text(data, "note"):
        state.notes.append(_text(data, "note"))


def _completing(state: BatchState, data: Data) -> None:
    state.completing = Completing(
        _text(data, "id"), _text(data, "batch"), _texts(data, "tasks"), _text(data, "head"), _text(data, "message")
    )


def _completed(state: BatchState, _: Data) -> None:
    state.batch = state.completing = None
    state.notes = []


_GENESES = frozenset({IMPORTED, importing.IMPORTED.type})
_REDUCERS = {
    IMPORTED: _imported,
    importing.IMPORTED.type: _imported,
    BEGUN: _begun,
    STAGES_BEGUN: _stages_begun,
    STAGES_ENDED: _stages_ended,
    COMPLETING: _completing,
    COMPLETED: _completed,
    ACCEPTED: _accepted,
}
