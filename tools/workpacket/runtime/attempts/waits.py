"""Waits: until a time, or for a signal that someone sends to the run.

A wait begins with a record that says until when it lasts, so it ends at the same instant however often its process is
restarted. It ends with a record of what ended it: the time, or the number of the signal. Each later attempt receives
the same.

A process waits for at most `patience` seconds; then the run stops with the reason `waiting`, and continues when the
program is started again. A worker has little patience: it does other work in the meantime.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import SLICE, Boundary, RecordDraft, Recorder
from workpacket.runtime.attempts.steps import decoded, require_name
from workpacket.runtime.errors import RunBlocked, RunWaiting
from workpacket.runtime.records.jcs import kept
from workpacket.runtime.records.state import WaitRecord

MICROSECONDS = 1_000_000


class OpenWait(NamedTuple):
    """A wait of this process. `timeout` is as requested; `leaves` is when the process stops waiting, in ticks."""

    record: WaitRecord
    timeout: float | None
    leaves: float | None


@dataclass(slots=True)
class Waiter:
    recorder: Recorder
    boundary: Boundary
    patience: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)  # two threads must not take the same signal

    def begin(
        self, step: str, signal: str = "", seconds: float | None = None, until: datetime | None = None
    ) -> OpenWait:
        """Begin a wait, or find the one that an earlier attempt began."""
        record = self.recorder.state.waits.begun.get(step)
        if record is None:
            self.boundary.begin(step)
            data: dict[str, Json] = {"step": step, "signal": signal} if signal else {"step": step}
            if until is not None:
                data["until"] = round(until.timestamp() * MICROSECONDS)
            elif seconds is not None:
                data["until"] = self.recorder.clock.now() + round(seconds * MICROSECONDS)
            self.recorder.record(RecordDraft("wait.begun", data))
            record = self.recorder.state.waits.begun[step]
        if record.signal != signal:
            what = f"waited for {record.signal or 'a time'!r} before, and now for {signal or 'a time'!r}"
            raise RunBlocked(f"{step} {what}", code="step_changed", details={"step": step})
        leaves = None if self.patience is None else self.recorder.clock.ticks() + self.patience
        return OpenWait(record, seconds, leaves)

    def pause(self, wait: OpenWait) -> float:
        """Return for how many seconds to sleep before the wait is looked at again; 0 if it is over."""
        if self._is_over(wait.record):
            return 0.0
        self.boundary.check_now()
        now, until = self.recorder.clock.now(), wait.record.until
        if self._end(wait.record, timed_out=bool(until) and now >= until):
            return 0.0
        left = (until - now) / MICROSECONDS if until else SLICE
        if wait.leaves is not None:
            left = min(left, wait.leaves - self.recorder.clock.ticks())
            if left <= 0:
                raise self._waiting(wait.record)
        return min(left, SLICE)

    def _is_over(self, record: WaitRecord) -> bool:
        return self.recorder.state.waits.begun[record.step].number is not None

    def _end(self, record: WaitRecord, *, timed_out: bool) -> bool:
        """Record what ended the wait, if anything did. A signal that is there wins over the time."""
        with self._lock:
            waits = self.recorder.state.waits
            number = waits.taken.get(record.signal, 0) + 1
            if not record.signal or number > len(waits.signals.get(record.signal, ())):
                if not timed_out:
                    return False
                number = 0
            data: dict[str, Json] = {"step": record.step, "number": number}
            self.recorder.record(RecordDraft("wait.ended", data | ({"signal": record.signal} if record.signal else {})))
            return True

    def received(self, wait: OpenWait) -> Json:
        """Return the value of the signal that ended the wait; raise `TimeoutError` if none came in time."""
        waits = self.recorder.state.waits
        number = waits.begun[wait.record.step].number
        if not number:
            raise TimeoutError(f"no signal {wait.record.signal!r} came within {wait.timeout:g} s")
        value: Json = decoded(self.recorder.store.payload(waits.signals[wait.record.signal][number - 1]), None)
        return value

    def _waiting(self, record: WaitRecord) -> RunWaiting:
        stream, until = self.recorder.stream, record.until or None
        words = [f"for the signal {record.signal!r}"] if record.signal else []
        words += (
            [f"until {datetime.fromtimestamp(until / MICROSECONDS).astimezone():%Y-%m-%d %H:%M:%S %Z}"] if until else []
        )
        hint = f"workpacket runtime signal {stream} {record.signal}" if record.signal else ""
        child, _, _ = record.step.rpartition("/")
        where = f" in {child}" if child else ""
        return RunWaiting(f"{stream} waits {' or '.join(words)}{where}", until=until, hint=hint)


def send_signal(recorder: Recorder, signal: str, value: Json, key: str = "") -> None:
    """Add a signal to the log of a run. One with a key that was sent before is not added again."""
    require_name(signal, "signal")
    state = recorder.state
    if state.status == "completed":
        raise RunBlocked(f"{state.stream} is finished; it receives no signals", code="step_changed")
    recorder.redactor.require_plain("the name of a signal", signal)
    form = kept(value)
    payload = recorder.redactor.unaltered(f"the signal {signal!r}", value, form.text)
    draft = RecordDraft("signal.received", {"signal": signal, "by": recorder.actor}, payload)
    recorder.record(draft, key=f"signal:{signal}:{key}" if key else None)
