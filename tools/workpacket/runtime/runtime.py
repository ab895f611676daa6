"""The entry point to the runtime: open a store, start, resume and inspect runs, and act on them from outside."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import RecordDraft, Recorder
from workpacket.runtime.attempts.session import BorrowedLease
from workpacket.runtime.attempts.starter import RunRequest, RunSpec, RunStarter, Settings, wanted_run
from workpacket.runtime.attempts.waits import require_not_moved, send_signal
from workpacket.runtime.catalog import RESERVED, RunLine, RunSummary, lines_of, removable, state_of, summary_of
from workpacket.runtime.errors import ReceiptRedacted, ReceiptUnkept, RunBlocked
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.records.events import KINDS, AnswerToJudge, Event
from workpacket.runtime.records.jcs import hash_of, kept, value_of
from workpacket.runtime.records.redaction import clean_data
from workpacket.runtime.records.state import CheckpointRecord, Choice, RunState, fold
from workpacket.runtime.resume.decide import Decision
from workpacket.runtime.resume.observe import UNSETTLED, OpenQuestion, cannot_undo, choices_about, open_questions
from workpacket.runtime.run import Run
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.place import store_at, store_path, store_url, work_tree_of

if TYPE_CHECKING:
    from workpacket.runtime.async_run import AsyncRun

__all__ = ["NO_VALUE", "Choice", "NoValue", "Runtime", "Settings", "Sign"]

Sign = Callable[[AnswerToJudge], str]


class NoValue:
    """The absence of a value, where None is a valid value."""


NO_VALUE = NoValue()


class Runtime:
    def __init__(self, store: Store, settings: Settings | None = None, *, workdir: str | None = None) -> None:
        self.store = store
        self.settings = settings or Settings()
        self._workdir = workdir

    @classmethod
    def open(cls, where: str | Path | None = None, settings: Settings | None = None) -> Runtime:
        """Open the runtime for the given file or URL; otherwise for WORKPACKET_STORE, or for this folder's project."""
        settings = settings or Settings()
        where = where or store_url() or None
        if isinstance(where, str) and "://" in where:
            # Runs of several machines: the location of the work tree does not identify the machine of a run.
            return cls(store_at(where), settings)
        from workpacket.runtime.stores.sqlite.store import SQLiteStore  # import sqlite3 only when it is used

        here = Path.cwd()
        path = store_path(here) if where is None else Path(where)
        return cls(SQLiteStore(path, clock=settings.clock), settings, workdir=str(work_tree_of(here) or here))

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    # ---- runs ----------------------------------------------------------------------------------------------------

    def run(self, name: str, **request: Unpack[RunRequest]) -> Run:
        """Begin a run, or continue the unfinished run with this name. `RunRequest` lists the options."""
        return Run(self._opening().open(wanted_run(name, request, self._workdir)))

    def run_lent(self, lent: BorrowedLease, name: str, **request: Unpack[RunRequest]) -> Run:
        """Begin a run under a lease that the caller holds and releases: a worker's lease, taken with the job."""
        return Run(replace(self._opening(), lent=lent).open(wanted_run(name, request, self._workdir)))

    def async_run(self, name: str, **request: Unpack[RunRequest]) -> AsyncRun:
        """Return the run for async code: `async with rt.async_run(...) as run`."""
        return self.async_run_lent(None, name, **request)

    def async_run_lent(self, lent: BorrowedLease | None, name: str, **request: Unpack[RunRequest]) -> AsyncRun:
        """Like `async_run`, under a lease that the caller holds and releases."""
        from workpacket.runtime.async_run import AsyncRun  # import asyncio only when it is used

        opening, wanted = replace(self._opening(), lent=lent), wanted_run(name, request, self._workdir)
        return AsyncRun(lambda: opening.open(wanted))

    def resume(self, run_id: str) -> Run:
        """Continue this run; the recorded name, inputs and scope apply unless others are given."""
        return Run(self._opening().resume(self._existing(run_id), RunSpec("", workdir=self._workdir)))

    def plan(self, run_id: str, name: str = "", **request: Unpack[RunRequest]) -> Decision:
        """Return what a resume would decide, with every check, without writing anything.

        If no name is given, only the log is used.
        """
        wanted = wanted_run(name, request, self._workdir) if name else RunSpec("", workdir=self._workdir)
        _, decision = self._opening().plan(self._existing(run_id), wanted)
        return decision

    def waiting(self, run_id: str) -> tuple[Decision, tuple[OpenQuestion, ...]]:
        """Return the decision according to the log, and the questions that are waiting for a person, each with the
        digest for its answer.
        """
        state, decision = self._opening().plan(self._existing(run_id), RunSpec("", workdir=self._workdir))
        return decision, open_questions(self.store, state, decision)

    def state(self, run_id: str, *, at: str = "") -> RunState:
        """Return the state of a run now, or at one of its checkpoints."""
        state = state_of(self.store, self._existing(run_id), self.settings.verifier)
        if not at:
            return state
        point = self._checkpoint(state, at)
        return fold(self.store.read(run_id, 0, point.version), verifier=self.settings.verifier)

    def runs(self, prefix: str = "") -> tuple[RunLine, ...]:
        """List all runs, read from the index; `catalog.lines_of` describes what the index leaves out."""
        return lines_of(self.store, prefix)

    def summary(self, run_id: str) -> RunSummary:
        """Summarize one run, read from its whole log."""
        return summary_of(self.store, self._existing(run_id))

    def published(self, run_id: str, *, at: str = "") -> dict[str, Json]:
        """Return the values that the run has published, by name; names in a child run begin with the name of the
        child."""
        state = self.state(run_id, at=at)
        return {name: self._value_of(event) for name, event in state.published.items()}

    def query(self, run_id: str, name: str, default: Json = None) -> Json:
        """Return the value that the run last published under this name. Reading it does not disturb the run."""
        event = self.state(run_id).published.get(name)
        return default if event is None else self._value_of(event)

    def _value_of(self, event: Event) -> Json:
        payload = self.store.payload(event)
        return None if payload is None else value_of(payload)

    # ---- from outside --------------------------------------------------------------------------------------------

    def cancel(self, run_id: str, reason: str) -> None:
        """Ask the run to stop at its next step boundary. If no one is working on it, it is cancelled immediately."""
        recorder = self._outsider(run_id)
        require_not_moved(recorder.state)
        recorder.record(RecordDraft("cancel.requested", {"reason": reason, "by": self.settings.actor}))
        lease = self.store.lease(run_id)
        if lease is None or is_certainly_dead(lease.holder):
            recorder.record(RecordDraft("run.cancelled", {"reason": reason}))
            self.tell_end(run_id, recorder.state.packet)

    def confirm(self, run_id: str, subject: str, *, yes: bool, note: str = "", sign: Sign | None = None) -> None:
        """Answer the question `subject` (from a decision, or from `run.confirm`). The answer covers exactly that
        question. `sign` returns an envelope with a person's signature over the answer, for runs with a verifier.
        """
        answer = "yes" if yes else "no"
        data: dict[str, Json] = {"subject": subject, "answer": answer, "by": self.settings.actor, "note": note}
        self._record_answer(self._outsider(run_id), RecordDraft("confirmation.given", data), sign)

    def settle(
        self,
        run_id: str,
        effect: str,
        choice: Choice,
        note: str = "",
        *,
        value: Json | NoValue = NO_VALUE,
        sign: Sign | None = None,
    ) -> None:
        """Record the outcome of an effect in doubt, or what to do about the effect; `sign` is as in `confirm`.

        `value`, with `mark_done`, is the receipt that the program receives; the default is None. If an effect is known
        to have happened but its receipt was not kept, only a value can be recorded.
        """
        recorder = self._outsider(run_id)
        open_receipts = {record.effect: record for record in recorder.state.open_receipts}
        record = recorder.state.effects.get(effect)
        if record is None or (effect not in open_receipts and record.status not in UNSETTLED):
            raise RunBlocked(f"{run_id} has no effect {effect} with an unknown outcome", code="effect_outcome_unknown")
        if effect not in open_receipts and choice not in choices_about(record):
            raise cannot_undo(record, run_id)
        if effect in open_receipts and isinstance(value, NoValue):
            fault = ReceiptRedacted if open_receipts[effect].redactions else ReceiptUnkept
            raise fault("the effect is known to have happened; only its result is missing",
                        hint="provide the result: mark-done with a value")  # fmt: skip
        if choice != "mark_done" and not isinstance(value, NoValue):
            raise ValueError("a value can only be given with mark-done")
        data: dict[str, Json] = {"effect": effect, "choice": choice, "by": self.settings.actor, "note": note}
        payload = None
        if not isinstance(value, NoValue):
            form = kept(value)
            payload = self.settings.redactor.unaltered("the value", value, form.text)
            data["result_hash"] = form.meaning if payload == form.stored else hash_of(payload)
        self._record_answer(recorder, RecordDraft("effect.resolved", data, payload), sign)

    def signal(self, run_id: str, name: str, value: Json = None, *, key: str = "") -> None:
        """Send a signal to a run, for its next `wait_for(name)`. A signal with a key is sent only once."""
        send_signal(self._outsider(run_id), name, value, key)

    def hand_over(self, run_id: str, to: str) -> int:
        """Record that this run, or LangGraph thread, continues in another store. Return the last version of its log to
        be exported. A run that has already been handed over is not recorded twice, and a finished run needs no record.
        """
        if self._existing(run_id).startswith(f"{RESERVED}/"):
            return self._hand_over_thread(run_id, to)
        lease = self._opening().take_lease(run_id)
        try:
            recorder = self._outsider(run_id)
            state, recorder.lease = recorder.state, lease
            if state.status == "completed":
                return state.version
            if state.status != "moved":
                recorder.record(self._moved(to))
        finally:
            self.store.release(lease)
        self.tell_end(run_id, state.packet)
        return self._before_move(run_id)

    def _hand_over_thread(self, thread: str, to: str) -> int:
        head = self.store.head(thread)
        assert head is not None  # a thread that exists is never without events
        if self.store.latest("runs", thread) is None:
            recorder = self.settings.recorder(self.store, RunState(thread, head.version), thread)
            recorder.record(self._moved(to), expected_version=head.version)
        return self._before_move(thread)

    def _moved(self, to: str) -> RecordDraft:
        return RecordDraft("run.handed_over", {"code": "run_moved", "to": to, "by": self.settings.actor})

    def _before_move(self, stream: str) -> int:
        last = self.store.latest("runs", stream)
        assert last is not None  # it was just recorded
        return last.version - 1

    def purge(self, run_id: str, version: int, reason: str) -> bool:
        """Erase the payload of one event wherever it is used. The log keeps the payload's hash and records who erased
        the payload and why.
        """
        recorder = self._outsider(run_id)
        (event,) = self.store.read(run_id, version - 1, version)
        if event.payload is None:
            return False
        data = {"digest": event.payload, "reason": reason, "by": self.settings.actor}
        recorder.record(RecordDraft("payload.erased", data))
        return self.store.erase(event.payload)

    def fork(self, run_id: str, checkpoint: str, *, key: str) -> str:
        """Start a new run from a checkpoint of `run_id`, and return its id. Finished effects remain finished."""
        state = state_of(self.store, self._existing(run_id), self.settings.verifier)
        opening = self._opening()
        return opening.fork(state, self._checkpoint(state, checkpoint), key)

    def prune(self, before: int) -> tuple[str, ...]:
        """Remove the runs that finished before the given time (microseconds since 1970), for retention."""
        heads = {head.stream: head for head in self.store.heads()}
        gone = removable(self.runs(), before)
        for stream in gone:
            self.tell_end(stream, stream.rpartition("/")[0])  # afterwards, the way it ended could no longer be read
            self.store.remove(stream, heads[stream].hash)
        return gone

    # ---- parts ---------------------------------------------------------------------------------------------------

    def promised(self) -> Mapping[str, Json]:
        """Return what a checkpoint made now would require for resuming."""
        return self._opening().promised()

    def tell_end(self, stream: str, packet: str) -> None:
        """Tell the witness that an attempt has ended."""
        self._opening().tell_end(stream, packet)

    def _opening(self) -> RunStarter:
        return RunStarter(self.store, self.settings)

    def _existing(self, run_id: str) -> str:
        if self.store.head(run_id) is None:
            raise RunBlocked(f"run {run_id!r} not found", code="checkpoint_missing", details={"run": run_id})
        return run_id

    @staticmethod
    def _checkpoint(state: RunState, reference: str) -> CheckpointRecord:
        point = state.checkpoint(reference)
        if point is None:
            raise RunBlocked(f"{state.stream} has no checkpoint {reference!r}", code="checkpoint_missing")
        return point

    def _outsider(self, run_id: str) -> Recorder:
        """Return a recorder without a lease, whose messages are accepted at any time."""
        state = state_of(self.store, self._existing(run_id), self.settings.verifier)
        return self.settings.recorder(self.store, state, run_id)

    def _record_answer(self, recorder: Recorder, draft: RecordDraft, sign: Sign | None) -> None:
        """Record an answer, signed by `sign` if it is given. An answer that would not count is refused instead."""
        stored = clean_data(KINDS[draft.type], draft.data, self.settings.redactor)  # as it will be read back
        answer = recorder.state.answer_in(stored, self.settings.clock.now())
        if sign is not None:
            answer = answer._replace(envelope=sign(answer))
        refusal = recorder.state.judged(answer).refusal
        if refusal:
            raise RunBlocked(
                f"the answer {answer.answer!r} was not stored: {refusal}",
                code="needs_confirmation",
                hint=f"workpacket resume {shlex.quote(recorder.stream)}",
            )
        said: dict[str, Json] = {"envelope": answer.envelope} if answer.envelope else {}
        recorder.record(RecordDraft(draft.type, {**draft.data, **said}, draft.payload))
