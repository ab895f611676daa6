"""The state of a batch scope: the batch in progress, its stages, and the changes that each record of the log makes.
Pure.

A batch goes through three phases, and each phase has units: one per task for testers and implementers, one per reviewer
for reviewers. The start of a unit is logged before anyone works on it, so that after a crash the log shows what was in
progress. The cursor is computed from the units and never stored; that keeps it correct in three cases:

- a unit that failed keeps the cursor in its phase; other units that succeeded remain done;
- a rejected review moves the cursor back to the implementers of the tasks it names, and all reviewers review again;
- the next batch has its own units and starts with its testers.

A reviewer who does not answer has not approved: the unit remains open.

Each record that changes the checkpoint contains the resulting view, so the expected content of the file is known for
every point in the log, whichever version of the program wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from workpacket.bridges import foreign
from workpacket.bridges.foreign import CheckpointState, StreamRecord
from workpacket.documents.batch_writing import BatchView, document_of, view_of, view_of_json
from workpacket.model.canonical import Json
from workpacket.runtime.records.events import KINDS as KINDS_OF_RUNS
from workpacket.runtime.records.events import Data, RecordKind, Sensitivity
from workpacket.text.source import Plain
from workpacket.value import NOTHING, Value, replace

_COUNTED = re.compile(r"(?P<number>[0-9]{1,15})(?P<letter>[a-y]?)\Z")


def label_after(last: str, used: Collection[str] = ()) -> str:
    """Return `4` after `3`, and `5b` after `5a`; other labels get a number appended. Never returns a label in
    `used`."""
    label = _following(last) if last else "1"
    while label in used:
        label = _following(label)
    return label


def _following(label: str) -> str:
    counted = _COUNTED.match(label)
    if counted is None:
        head, dash, number = label.rpartition("-")
        return f"{head}-{int(number) + 1}" if dash and number.isdecimal() and len(number) < 16 else f"{label}-2"
    if counted["letter"]:
        return counted["number"] + chr(ord(counted["letter"]) + 1)
    return str(int(counted["number"]) + 1)


Phase = Literal["testers", "implementers", "reviewers"]
Outcome = Literal["ok", "failed", "rejected", "timed_out"]
State = Literal["waiting", "begun", "ok", "failed", "rejected", "timed_out"]

PHASES: tuple[Phase, ...] = ("testers", "implementers", "reviewers")
OUTCOMES: tuple[Outcome, ...] = ("ok", "failed", "rejected", "timed_out")
ANYBODY = "review"  # the only unit of the reviewers if none is named


class Stage(Value):
    """The progress of one unit in one phase. `holder` is the last actor to start it."""

    state: State = "waiting"
    tries: int = 0
    holder: str = ""


_WAITING = Stage()


class BatchUnderWay(Value):
    """The batch in progress."""

    label: str
    tasks: tuple[str, ...]
    parallel: bool = False
    reviewers: tuple[str, ...] = ()
    stages: Mapping[tuple[Phase, str], Stage] = NOTHING
    rejections: int = 0

    def units(self, phase: Phase) -> tuple[str, ...]:
        return self.tasks if phase != "reviewers" else self.reviewers or (ANYBODY,)

    def stage(self, phase: Phase, unit: str) -> Stage:
        return self.stages.get((phase, unit), _WAITING)

    @property
    def cursor(self) -> Phase | None:
        """Return the first phase that has unfinished work; None if the batch can be completed."""
        return next((phase for phase in PHASES if self._open(phase)), None)

    @property
    def open_units(self) -> tuple[str, ...]:
        """Return the unfinished units of the current phase."""
        return self._open(self.cursor) if self.cursor is not None else ()

    def _open(self, phase: Phase) -> tuple[str, ...]:
        return tuple(unit for unit in self.units(phase) if self.stage(phase, unit).state != "ok")

    def begun(self, phase: Phase, units: Iterable[str], holder: str = "") -> BatchUnderWay:
        return self._with({(phase, unit): Stage("begun", self.stage(phase, unit).tries + 1, holder) for unit in units})

    def ended(self, phase: Phase, units: Iterable[str], outcome: Outcome, tasks: Iterable[str] = ()) -> BatchUnderWay:
        """Return the batch with these units finished. `tasks` are the rejected ones; by default, all tasks."""
        changed = {(phase, unit): replace(self.stage(phase, unit), state=outcome, holder="") for unit in units}
        if outcome != "rejected":
            return self._with(changed)
        again = tuple(tasks) or self.tasks
        changed |= {("implementers", task): self._reopened("implementers", task, "rejected") for task in again}
        changed |= {("reviewers", one): self._reopened("reviewers", one, "waiting") for one in self.units("reviewers")}
        return replace(self._with(changed), rejections=self.rejections + 1)

    def _reopened(self, phase: Phase, unit: str, state: State) -> Stage:
        return replace(self.stage(phase, unit), state=state, holder="")

    def _with(self, changed: Mapping[tuple[Phase, str], Stage]) -> BatchUnderWay:
        return replace(self, stages={**self.stages, **changed})

    def as_far_as(self, phase: Phase, incomplete: Iterable[Json]) -> BatchUnderWay:
        """Return the batch as described by a checkpoint without a log: everything before the cursor is done. All units
        of a phase are started together, so if some are listed as incomplete, the others are done.
        """
        batch = self
        for before in PHASES[: PHASES.index(phase)]:
            batch = batch.ended(before, self.units(before), "ok")
        listed = [stage for stage in incomplete if isinstance(stage, Mapping) and stage.get("phase") == phase]
        named = {str(stage.get("task") or stage.get("reviewer") or "") for stage in listed}
        left = [unit for unit in self.units(phase) if unit in named]
        if left:
            batch = batch.ended(phase, [unit for unit in self.units(phase) if unit not in named], "ok")
        return batch.begun(phase, left)

    def incomplete(self) -> tuple[Json, ...]:
        """Return the stages that were started and did not succeed, as the checkpoint lists them."""
        cursor = self.cursor
        if cursor is None:
            return ()
        key = "reviewer" if cursor == "reviewers" else "task"
        found = ((unit, self.stage(cursor, unit).state) for unit in self.open_units)
        return tuple({"phase": cursor, key: unit, "state": state} for unit, state in found if state != "waiting")


def phase_named(word: object) -> Phase | None:
    return next((phase for phase in PHASES if phase == word), None)


def outcome_named(word: object) -> Outcome:
    return next((outcome for outcome in OUTCOMES if outcome == word), "failed")


IMPORTED = "batch.imported"
BEGUN = "batch.begun"
STAGES_BEGUN = "batch.stages_begun"
STAGES_ENDED = "batch.stages_ended"
COMPLETING = "batch.completing"
COMPLETED = "batch.completed"
ACCEPTED = "batch.accepted"
LOCKFILE_CHANGED = "lockfile_changed"

STREAMS = "batch/"
# The name of the phase when all three are complete and the batch waits to be completed.
ALL_PHASES_DONE = "complete"


def stream_of(folder: str) -> str:
    """Return the stream for the scope in this folder of the repository. An '@' would make it look like a run."""
    return f"{STREAMS}{folder.replace('%', '%25').replace('@', '%40')}"


def folder_of(stream: str) -> str:
    return stream.removeprefix(STREAMS).replace("%40", "@").replace("%25", "%")


def _kind(name: str, public: str, scan: str) -> RecordKind:
    fields: dict[str, Sensitivity] = dict.fromkeys(public.split(), "public")
    fields |= dict.fromkeys(scan.split(), "scan")
    return RecordKind(name, fields)


KINDS: Mapping[str, RecordKind] = foreign.KINDS | {
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
    """Facts that were true when the log was last written, and must still be true for the work to continue."""

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
    """A batch whose completion was started: its files may or may not have been written, and its commit may or may not
    exist."""

    id: str
    label: str
    tasks: tuple[str, ...]
    head: str
    message: str


@dataclass(slots=True)
class BatchState(CheckpointState[BatchView]):
    """The view of a scope and the batch in progress.

    `checkpoint_commit` is the commit that dependencies are compared with: the last batch's commit, or else the commit
    at which the log began ('' before the first commit, or None if unknown). The dependencies in `allow_deps` may change
    in the current batch.

    `stated` are the values in the file last imported into the log, and `stated_view` is its view.
    """

    kinds = KINDS

    view: BatchView = field(default_factory=BatchView)
    batch: BatchUnderWay | None = None
    completing: Completing | None = None
    recorded: Preconditions = field(default_factory=Preconditions)
    labels: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    stated: Mapping[str, Json] | None = None
    stated_view: BatchView | None = None
    checkpoint_commit: str | None = None
    allow_deps: tuple[str, ...] = ()

    @property
    def logged(self) -> BatchView:
        return self.view

    @property
    def has_file(self) -> bool:
        return bool(self.view.last_batch or self.view.next)

    def change(self, record: StreamRecord) -> None:
        data = record.data
        view = data.get("view")
        if isinstance(view, Mapping):
            self.view = view_of_json(view)
        if "preconditions" in data:
            self.recorded = _preconditions(data["preconditions"])
            if record.type == COMPLETED or self.checkpoint_commit is None:
                self.checkpoint_commit = self.recorded.commit
        if isinstance(record.payload, Mapping):
            self.stated = record.payload
        if record.type == foreign.IMPORTED.type and self.stated is not None:
            document = document_of(cast("Plain", dict(self.stated)))
            self.view, self.recorded = view_of(document), Preconditions()
            data = {"reviewers": list(document.reviewers)}
        if record.type in _GENESES:
            self.stated_view = self.view
        reduce = _REDUCERS.get(record.type)
        if reduce is not None:  # other records consist entirely of their view
            reduce(self, data)


def imported(view: BatchView, reviewers: Iterable[str]) -> BatchState:
    """Return the state of a checkpoint that has no log yet."""
    state = BatchState(view=view)
    _imported(state, {"reviewers": list(reviewers)})
    return state


def _text(data: Data, name: str) -> str:
    return str(data.get(name) or "")


def _texts(data: Data, name: str) -> tuple[str, ...]:
    return tuple(str(item) for item in cast("Sequence[Json]", data.get(name) or ()))


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


_GENESES = frozenset({IMPORTED, foreign.IMPORTED.type})
_REDUCERS = {
    IMPORTED: _imported,
    foreign.IMPORTED.type: _imported,
    BEGUN: _begun,
    STAGES_BEGUN: _stages_begun,
    STAGES_ENDED: _stages_ended,
    COMPLETING: _completing,
    COMPLETED: _completed,
    ACCEPTED: _accepted,
}
