"""One batch on its way through its three phases. Pure: what follows from what was begun and how it ended.

Each phase has units: testers and implementers a task each, reviewers a reviewer each. A unit is begun in the log before
anybody works on it, so that after a crash nobody has to guess what was under way. The cursor is computed from the
units and never stored as a fact of its own; that is what keeps it right in the three cases where a cursor that is
carried along goes wrong:

- a unit that failed keeps the cursor in its phase; the units beside it that ended well stay done;
- a rejected review takes the cursor back to the implementers of the tasks it names, and every reviewer looks again;
- the next batch has units of its own and begins with its testers.

A reviewer who gives no answer has approved nothing: the unit stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.value import NOTHING, Value, replace

Phase = Literal["testers", "implementers", "reviewers"]
Outcome = Literal["ok", "failed", "rejected", "timed_out"]
State = Literal["waiting", "begun", "ok", "failed", "rejected", "timed_out"]

PHASES: tuple[Phase, ...] = ("testers", "implementers", "reviewers")
OUTCOMES: tuple[Outcome, ...] = ("ok", "failed", "rejected", "timed_out")
ANYBODY = "review"  # the one unit of the reviewers where no reviewer is named


class Stage(Value):
    """How far one unit is in one phase. `holder` is who began it last."""

    state: State = "waiting"
    tries: int = 0
    holder: str = ""


_WAITING = Stage()


class BatchUnderWay(Value):
    """The batch that was begun and is not complete."""

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
        """The first phase in which something is left to do; None if the batch can be completed."""
        return next((phase for phase in PHASES if self._open(phase)), None)

    @property
    def open_units(self) -> tuple[str, ...]:
        """What is left to do in the phase of the cursor."""
        return self._open(self.cursor) if self.cursor is not None else ()

    def _open(self, phase: Phase) -> tuple[str, ...]:
        return tuple(unit for unit in self.units(phase) if self.stage(phase, unit).state != "ok")

    def begun(self, phase: Phase, units: Iterable[str], holder: str = "") -> BatchUnderWay:
        return self._with({(phase, unit): Stage("begun", self.stage(phase, unit).tries + 1, holder) for unit in units})

    def ended(self, phase: Phase, units: Iterable[str], outcome: Outcome, tasks: Iterable[str] = ()) -> BatchUnderWay:
        """`tasks` are those that a rejection is about; none named are all of them."""
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
        """The batch as a checkpoint without a log says it is: all before the cursor is done.

        All units of a phase are begun together, so where some are incomplete, those that are not named are done.
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
        """The stages that were begun and did not end well, as the checkpoint lists them."""
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
