"""Waits of a run: until a time, for a signal, or for a person's answer.

A wait begins with a record that says until when it lasts, so it ends at the same time however often its process is
restarted. It ends with a record of what ended it: the time, or the number of the signal. Each later attempt receives
the same result.

A process waits for at most `patience` seconds; then the run stops with the reason `waiting`, and continues when the
program is started again. A worker has little patience: it does other work in the meantime.

An answer is bound to a digest of the question, target and arguments before redaction. If a different question comes up
at the same place, it is a new question and shows both subjects. The last answer to a question counts, so a "no" can be
withdrawn; the log records who gave each answer.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import SLICE, Boundary, RecordDraft, Recorder
from workpacket.runtime.attempts.steps import Scope, decoded, require_name
from workpacket.runtime.errors import RunBlocked, RunWaiting
from workpacket.runtime.records.events import WaitRecord
from workpacket.runtime.records.jcs import jcs_hash, kept, stored_text
from workpacket.runtime.records.state import RunState
from workpacket.runtime.resume.observe import shown_short, what_was_asked

MICROSECONDS = 1_000_000


class OpenWait(NamedTuple):
    """A wait in this process. `timeout` is as requested; `leaves` is when the process stops waiting, in ticks."""

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
        """Begin a wait, or find the wait that an earlier attempt began."""
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
            what = f"previously waited for {record.signal or 'a time'!r}, and now waits for {signal or 'a time'!r}"
            raise RunBlocked(f"{step} {what}", code="step_changed", details={"step": step})
        leaves = None if self.patience is None else self.recorder.clock.ticks() + self.patience
        return OpenWait(record, seconds, leaves)

    def pause(self, wait: OpenWait) -> float:
        """Return how many seconds to sleep before checking the wait again; 0 if it is over."""
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
        """Record what ended the wait, if anything did. A signal that has arrived takes precedence over the time."""
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
        """Return the value of the signal that ended the wait; raise `TimeoutError` if none arrives in time."""
        waits = self.recorder.state.waits
        number = waits.begun[wait.record.step].number
        if not number:
            raise TimeoutError(f"signal {wait.record.signal!r} did not arrive within {wait.timeout:g} s")
        value: Json = decoded(self.recorder.store.payload(waits.signals[wait.record.signal][number - 1]), None)
        return value

    def _waiting(self, record: WaitRecord) -> RunWaiting:
        stream, until = self.recorder.stream, record.until or None
        words = [f"for the signal {record.signal!r}"] if record.signal else []
        words += (
            [f"until {datetime.fromtimestamp(until / MICROSECONDS).astimezone():%Y-%m-%d %H:%M:%S %Z}"] if until else []
        )
        hint = f"workpacket runtime signal {shlex.quote(stream)} {shlex.quote(record.signal)}" if record.signal else ""
        child, _, _ = record.step.rpartition("/")
        where = f" in {child}" if child else ""
        return RunWaiting(f"{stream} waits {' or '.join(words)}{where}", until=until, hint=hint)


def require_not_moved(state: RunState) -> None:
    """Refuse a message to a run that another store continues: it would never receive it."""
    if state.status == "moved":
        raise RunBlocked(
            f"{state.stream} was moved: exported to {state.moved_to}",
            code="run_moved",
            hint="use the store that imported it; if none did, continue it here: workpacket resume "
            + shlex.quote(state.stream),
        )


def send_signal(recorder: Recorder, signal: str, value: Json, key: str = "") -> None:
    """Add a signal to a run's log. A signal whose key has already been sent is not added again."""
    require_name(signal, "signal")
    state = recorder.state
    if state.status == "completed":
        raise RunBlocked(
            f"{state.stream} is finished; it can receive no more signals",
            code="step_changed",
            hint="send the signal to a run that is not finished: workpacket runtime runs list",
        )
    require_not_moved(state)
    recorder.redactor.require_plain("the name of a signal", signal)
    form = kept(value)
    payload = recorder.redactor.unaltered(f"the signal {signal!r}", value, form.text)
    draft = RecordDraft("signal.received", {"signal": signal, "by": recorder.actor}, payload)
    recorder.record(draft, key=f"signal:{signal}:{key}" if key else None)


Ask = Callable[[str, str], bool | None]


class Asking(NamedTuple):
    """A question, and what a person must see. `binding` is what the answer covers in addition to the question; `within`
    is the path of the step in which it is asked.
    """

    question: str
    kind: str
    place: str
    binding: Json
    arguments: Json
    name: str = ""
    target: str = ""
    child: str = ""
    within: str = ""


@dataclass(slots=True)
class Questions:
    recorder: Recorder
    boundary: Boundary
    ask: Ask | None = None
    replaying: bool = False  # the run is finished: no one is asked any more
    _times: dict[tuple[str, str], int] = field(default_factory=dict)
    _unanswered: dict[str, tuple[str, RunBlocked]] = field(default_factory=dict)  # in this attempt: where, by subject

    def place(self, scope: Scope, question: str) -> str:
        """Return the place in the program at which a question is asked; it is the same in every attempt that takes the
        same path."""
        number = self._times[scope.path, question] = self._times.get((scope.path, question), 0) + 1
        return jcs_hash([scope.path, question, number])

    def put(self, asking: Asking) -> None:
        """Continue only if a person has agreed to exactly this; the answer is remembered."""
        bound = stored_text([self.recorder.stream, asking.question, asking.binding])
        subject = hashlib.sha256(bound.encode("utf-8")).hexdigest()
        # It may have been answered since the last look, by `resume --yes`, or its "no" may have been taken back.
        if self.recorder.state.confirmations.get(subject) != "yes":
            self.recorder.catch_up()
        answer = self.recorder.state.confirmations.get(subject)
        if answer is None:
            self._store(asking, subject)
            try:
                answer = self._answered_at_hand(asking, subject)
            except RunBlocked as blocked:
                if not self.replaying:
                    self._unanswered[subject] = asking.within, blocked
                raise
        self._unanswered.pop(subject, None)
        if answer != "yes":
            raise self._denied(asking, subject)

    def require_answered(self, within: str, what: str) -> None:
        """Refuse to finish a run, or a step or child run with this path, whose program went on although a question had
        no answer: a later attempt would not ask again.
        """
        for path, blocked in self._unanswered.values():
            if path.startswith(within):
                raise RunBlocked(
                    f"{what} is not finished: {blocked.message}",
                    code=blocked.code,
                    hint=blocked.hint,
                    details=blocked.details,
                )

    def _denied(self, asking: Asking, subject: str) -> RunBlocked:
        state = self.recorder.state
        question, given = state.questions.get(subject), state.answers.get(subject)
        by = given.shown_by if given is not None else ""
        take_back = (
            f"workpacket resume {shlex.quote(self.recorder.stream)} {question.id} --yes --confirm {subject}"
            if question
            else ""
        )
        return RunBlocked(
            f"{by or 'a person'} said no: {asking.question}",
            code="confirmation_denied",
            hint=f"to withdraw it: {take_back}" if take_back else "",
            details={"subject": subject, "by": by},
        )

    def _store(self, asking: Asking, subject: str) -> None:
        state = self.recorder.state
        if state.asked_at.get(asking.place) == subject:
            return
        if self.replaying:
            if subject not in state.questions:
                self.boundary.check()
            return
        content: Json = {"arguments": asking.arguments}
        cleaned, redactions = self.recorder.redactor.clean_value(content, stored_text(content))
        data: dict[str, Json] = {
            "subject": subject, "place": asking.place, "kind": asking.kind, "question": asking.question,
        }  # fmt: skip
        said = (("name", asking.name), ("target", asking.target), ("child", asking.child))
        data |= {name: value for name, value in said if value}
        if redactions:
            data["redactions"] = redactions
        self.recorder.record(RecordDraft("confirmation.requested", data, stored_text(cleaned).encode("utf-8")))

    def _answered_at_hand(self, asking: Asking, subject: str) -> str:
        question = self.recorder.state.questions[subject]
        cleaned, _ = self.recorder.redactor.clean_value(asking.arguments, json.dumps(asking.arguments))
        words = f"{asking.question}{_difference(self.recorder, question.before, cleaned)}"
        said = self.ask(words, subject) if self.ask is not None and not self.replaying else None
        if said is None:
            refused = self.recorder.state.refused_answers.get(subject, "")
            raise RunBlocked(
                f"waiting for a person: {words}{f' (the last answer does not count: {refused})' if refused else ''}",
                code="needs_confirmation",
                hint=f"workpacket resume {shlex.quote(self.recorder.stream)}",
                details={"subject": subject, "question": question.id, "arguments": cleaned},
            )
        answer = "yes" if said else "no"
        given: dict[str, Json] = {"subject": subject, "answer": answer, "by": self.recorder.actor}
        self.recorder.record(RecordDraft("confirmation.given", given))
        return answer


def _difference(recorder: Recorder, before: str, arguments: Json) -> str:
    """Describe what the question is about, and what it was about when it was last asked here."""
    now = f" {shown_short(arguments)}" if arguments not in (None, {}) else ""
    earlier = recorder.state.questions.get(before)
    if earlier is None:
        return f":{now}" if now else ""
    answer = {"yes": "confirmed", "no": "denied"}.get(recorder.state.confirmations.get(before, ""), "asked")
    old = shown_short(what_was_asked(recorder.store, earlier).get("arguments"))
    return f": {answer} previously for {old}, now asked{(f' for{now}' if now else ' without arguments')}"
