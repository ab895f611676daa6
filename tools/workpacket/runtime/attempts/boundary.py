"""Where a run may end: between steps and chunks, never between an intent and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workpacket.runtime.attempts.recorder import Recorder
from workpacket.runtime.errors import HandedOver, RunBlocked, RunCancelled

FRESH = 0.005  # seconds for which what was just read of the log is taken to be the present
SLICE = 0.2


@dataclass(slots=True)
class Boundary:
    recorder: Recorder
    leaving: Callable[[], bool] = bool  # whether whoever does this run is told to end: by default never
    replaying: bool = False  # the run is finished: nothing can end it between two pieces any more

    def check_now(self) -> None:
        """The same as `check` on a fresh view of the log, where no new work is about to begin."""
        if self.replaying:
            return
        self.recorder.catch_up()
        self.check()

    def check(self) -> None:
        """Before new work: raise if the run is finished, cancelled or handed over, or its deadline has passed."""
        recorder = self.recorder
        if recorder.clock.ticks() - recorder.last_contact > FRESH:
            recorder.catch_up()
        if recorder.state.status == "completed":
            raise RunBlocked(f"{recorder.stream} is finished; nothing is added to it", code="step_changed")
        if recorder.state.cancel_reason is not None:
            raise RunCancelled(recorder.state.cancel_reason)
        if self.leaving():
            raise HandedOver
        until = recorder.state.budget.get("until")
        if isinstance(until, int) and recorder.clock.now() > until:
            raise RunBlocked("the deadline of the run has passed", code="timeout")
        steps = recorder.state.budget.get("steps")
        if isinstance(steps, int) and len(recorder.state.steps) >= steps:
            raise RunBlocked(f"the run has done its {steps} steps", code="max_ticks")

    def wait(self, seconds: float) -> None:
        """Sleep, waking up often enough to notice a cancellation."""
        ends = self.recorder.clock.ticks() + seconds
        while (left := ends - self.recorder.clock.ticks()) > 0:
            self.recorder.clock.sleep(min(left, SLICE))
            self.check()
