"""One attempt at a run: what its sync and its async face have in common.

A session holds the lease and the recorder; it knows the steps, effects, checkpoints and questions of the run, and it
ends by writing how it ended. It never calls user code.
"""

from __future__ import annotations

import _thread
import hashlib
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.asking import Ask, Asking, Questions
from workpacket.runtime.attempts.effects import KEYED, EffectPlan, Effects, Recovery, identity
from workpacket.runtime.attempts.recorder import Boundary, RecordDraft, Recorder
from workpacket.runtime.attempts.replay import Replay
from workpacket.runtime.attempts.steps import Options, Steps
from workpacket.runtime.errors import HandedOver, LeaseLost, RedactionFailed, RunBlocked, RunCancelled, RuntimeFault
from workpacket.runtime.ids import Ids, random_id
from workpacket.runtime.records.calls import Scope, argument_hashes, arguments_hash, shown_arguments
from workpacket.runtime.records.failures import described
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.state import CheckpointRecord, Prepared, RunState
from workpacket.runtime.records.values import stored_text, value_of
from workpacket.runtime.stores.contract import Append, Appended, Lease

_SCOPE: ContextVar[Scope | None] = ContextVar("workpacket_scope", default=None)


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """`token` starts one retry from here; it is shown once and only its hash is stored."""

    id: str
    version: int
    token: str = ""


class Lent(NamedTuple):
    """A lease that a worker took with the job, keeps in force, and gives up with it.

    `begun`: whether the run existed when it was taken. `leaving`: whether the worker is told to end. `complete`:
    appends the end of the run, if the job is to be finished in the same transaction.
    """

    lease: Lease
    begun: bool
    leaving: Callable[[], bool]
    complete: Callable[[Append], Appended] | None = None


@dataclass(slots=True)
class Session:
    recorder: Recorder
    seconds: float
    preconditions: Callable[[], Mapping[str, Json]] = dict
    ask: Ask | None = None
    ids: Ids = random_id
    replay_only: bool = False
    lent: Lent | None = None
    on_end: Callable[[str, str], None] | None = None
    steps: Steps = field(init=False)
    effects: Effects = field(init=False)
    boundary: Boundary = field(init=False)
    root: Scope = field(init=False)
    replay: Replay | None = field(init=False)
    questions: Questions = field(init=False)
    _over: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self.boundary = Boundary(self.recorder, self.lent.leaving if self.lent else bool, self.replay_only)
        self.steps = Steps(self.recorder, self.boundary, self.replay_only)
        self.effects = Effects(self.recorder, self.boundary, self.replay_only)
        self.replay = Replay(self.recorder) if self.replay_only else None
        self.questions = Questions(self.recorder, self.boundary, self.ask, self.replay_only)
        self.root = Scope(self)

    @property
    def state(self) -> RunState:
        return self.recorder.state

    # ---- where the code is ---------------------------------------------------------------------------------------

    def scope(self) -> Scope:
        present = _SCOPE.get()
        return present if present is not None and present.owner is self else self.root

    def enter(self, scope: Scope) -> Callable[[], None]:
        """Make `scope` the present one; call the result to leave it."""
        token = _SCOPE.set(scope)
        return lambda: _SCOPE.reset(token)

    # ---- lease ---------------------------------------------------------------------------------------------------

    def keep_lease(self) -> None:
        """Renew the lease in the background for as long as this process is really running."""
        if self.lent is None:
            # threading.Thread.start() waits until the thread runs; on a busy machine that delays the first step.
            _thread.start_new_thread(self._renew_until_over, ())

    def _renew_until_over(self) -> None:
        while not self._over.wait(self.seconds / 3):
            lease = self.recorder.lease
            try:
                if lease is not None:
                    self.recorder.store.renew(lease, self.seconds)
            except LeaseLost:
                return  # the next record is refused by the store and says so
            except RuntimeFault:
                continue  # the store was busy; there are two more tries before the lease ends

    def leave(self) -> None:
        """Leave the run as it is, its lease in force: another process of the same holder goes on."""
        self._over.set()

    def release(self) -> None:
        self._over.set()
        lease: Lease | None = self.recorder.lease
        if lease is not None and self.lent is None:
            with suppress(RuntimeFault):  # a lease that cannot be given up ends by itself
                self.recorder.store.release(lease)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def checkpoint(
        self,
        cursor: Json,
        name: str,
        kind: str,
        preconditions: Mapping[str, Json],
        *,
        with_token: bool,
        first: tuple[RecordDraft, ...] = (),
    ) -> SavedCheckpoint:
        """`first` are records that become durable together with the checkpoint: all of them, or none."""
        payload = self.cursor_bytes(cursor, name)
        if self.replay is not None:
            made = self.replay.checkpoint(name, kind, payload)
            return SavedCheckpoint(made.id, made.version)
        scope = self.scope()
        token = self.ids() if with_token else ""
        data: dict[str, Json] = {
            "id": self.ids()[:16],
            "name": name,
            "kind": kind,
            "counters": {f"{scope.path}{key}": number for key, number in sorted(scope.counters.items())},
            "preconditions": {**self.preconditions(), **preconditions},
        }
        if token:
            data["token_hash"] = token_hash(token)
        *_, event = self.recorder.record(*first, RecordDraft("checkpoint", data, payload))
        return SavedCheckpoint(str(data["id"]), event.version, token)

    def cursor_bytes(self, cursor: Json, name: str) -> bytes:
        """How a cursor is kept; one that holds a secret could not be, and is refused."""
        text = stored_text({"cursor": cursor})
        _, found = self.recorder.redactor.clean_value({"cursor": cursor}, text)
        if found:
            raise RedactionFailed(f"the cursor of the checkpoint {name!r} holds a secret and could not be resumed from")
        return text.encode("utf-8")

    def cursor(self, default: Json) -> Json:
        """Where the last checkpoint says to go on; from here on, steps are counted as they were there."""
        point = self.state.latest_checkpoint if self.replay is None else self.replay.latest
        if point is None:
            return default
        scope = self.scope()
        for name, number in point.counters.items():
            if name.startswith(scope.path) and "/" not in name[len(scope.path) :]:
                own = name[len(scope.path) :]
                scope.counters[own] = max(scope.counters.get(own, 0), number)
        return cursor_of(self.recorder, point)

    # ---- effects and questions -----------------------------------------------------------------------------------

    def effect_plan(
        self,
        name: str,
        call: tuple[tuple[object, ...], Mapping[str, object]],
        named: tuple[str | None, Recovery, str],
        options: Options,
        after: tuple[Callable[[], Any] | None, Callable[[], Any] | None],
    ) -> EffectPlan:
        key, recovery, target = named
        step = self.scope().next_key(name)
        target = target or name
        asked: tuple[dict[str, str], list[str]] | None = None
        if key is None:
            args_hash = arguments_hash(*call)
        else:
            args_hash = KEYED + jcs_hash(key)
            # What the function is told the key by is not one of the arguments that the key stands beside.
            asked = argument_hashes(call[0], {name: value for name, value in call[1].items() if name != "key"})
        effect = identity(self.recorder.stream, step, recovery, target, args_hash)
        return EffectPlan(effect, step, recovery, target, args_hash, options, *after, asked)

    def confirm(self, question: str, about: Json) -> None:
        """Go on only after a person has said yes to exactly this; the answer is remembered."""
        place = self.questions.place(self.scope(), question)
        self.questions.put(Asking(question, "program", place, about, about))

    def confirm_effect(
        self, plan: EffectPlan, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """The same for an effect: name, target and arguments are what is shown and what the answer holds for."""
        hashes, opaque = argument_hashes(args, kwargs)
        binding: Json = {"effect": plan.effect, "arguments": dict(hashes), "opaque": list(opaque)}
        arguments = shown_arguments(args, kwargs)
        self.questions.put(Asking(f"{name}: {plan.target}", "effect", plan.step, binding, arguments, name, plan.target))

    def allowed(
        self, plan: EffectPlan, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> EffectPlan:
        """The effect, if need be after a person has agreed to do it once more for other inputs."""
        if not self.effects.done_for_other_inputs(plan):
            return plan
        self.confirm_effect(plan, name, args, kwargs)
        return plan._replace(options=replace(plan.options, changed="redo"))

    # ---- the end -------------------------------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> None:
        """Write how the attempt ended and give up the lease. Never hides `error` behind an error of its own."""
        try:
            if not self.replay_only:
                self._write_end(error)
                self._tell_end()
        except RuntimeFault:
            if error is None:
                raise
        finally:
            self.release()

    def _tell_end(self) -> None:
        """While the lease is held: nobody has begun another attempt yet."""
        if self.on_end is not None:
            self.on_end(self.recorder.stream, self.state.packet)

    def _write_end(self, error: BaseException | None) -> None:
        if error is None:
            self._tell_cut_short()
            self._require_known_outcomes()
            done: dict[str, Json] = {"steps": len(self.state.steps), "effects": len(self.state.effects)}
            self.recorder.record(RecordDraft("run.completed", done), append=self.lent.complete if self.lent else None)
        else:
            in_flight: list[Json] = list(self.steps.in_flight)
            if isinstance(error, RunCancelled):
                end = RecordDraft("run.cancelled", {"reason": error.reason, "in_flight": in_flight})
            else:
                facts: dict[str, Json] = {"code": stop_code(error), "error": described(error), "in_flight": in_flight}
                end = RecordDraft("run.stopped", facts)
            self.recorder.record(end)

    def _tell_cut_short(self) -> None:
        """What was begun and left, as by a time limit, has failed in a run that ends without it."""
        drafts = [*self.steps.cut_short(), *self.effects.cut_short()]
        if drafts:
            self.recorder.record(*drafts)

    def _require_known_outcomes(self) -> None:
        """A run is not finished while nobody knows whether it did something. Reading again does no harm."""
        unknown = sorted(f"{e.step}: {e.target}" for e in self.state.unknown_effects if e.kind != "read")
        if not unknown:
            return
        blocked = RunBlocked(
            f"{self.recorder.stream} is not finished: nobody knows whether {', '.join(unknown)} happened",
            code="effect_outcome_unknown",
            hint=f"workpacket resume {self.recorder.stream}",
        )
        stop: dict[str, Json] = {"code": blocked.code, "error": described(blocked), "in_flight": []}
        self.recorder.record(RecordDraft("run.stopped", stop))
        self._tell_end()
        raise blocked


def stop_code(error: BaseException) -> str:
    """The stop reason that an exception stands for."""
    if isinstance(error, RuntimeFault):
        return error.code
    if isinstance(error, HandedOver):
        return "handed_over"
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
        return "user_stopped"
    return "worker_timeout" if isinstance(error, TimeoutError) else "worker_failed"


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8")).hexdigest()


def cursor_of(recorder: Recorder, point: CheckpointRecord | Prepared) -> Json:
    payload = recorder.store.payload(point.event)
    value = value_of(payload) if payload is not None else {}
    return value.get("cursor") if isinstance(value, Mapping) else None
