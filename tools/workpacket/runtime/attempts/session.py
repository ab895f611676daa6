"""One attempt at a run: the part that sync and async code share.

A session holds the lease and the recorder, tracks the run's steps, effects, checkpoints and questions, and records how
the attempt ended. It never calls user code. If a finished run is requested again, the session returns the results of
the last attempt: where it continued and what it marked.
"""

from __future__ import annotations

import _thread
import hashlib
import shlex
import threading
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import KEYED, EffectOptions, EffectPlan, Effects, identity, user_key
from workpacket.runtime.attempts.recorder import FINISHING, Boundary, FinishedSteps, RecordDraft, Recorder, asked_for
from workpacket.runtime.attempts.steps import (
    LONGEST_NAME,
    Call,
    Options,
    Scope,
    Steps,
    arguments_hash,
    effect_hashes,
    require_name,
    shown_arguments,
)
from workpacket.runtime.attempts.waits import Ask, Asking, OpenWait, Questions, Waiter
from workpacket.runtime.errors import HandedOver, LeaseLost, RunBlocked, RunCancelled, RuntimeFault
from workpacket.runtime.holders import Ids, random_id
from workpacket.runtime.records.failures import described
from workpacket.runtime.records.jcs import address_of, jcs_hash, kept, stored_text, value_of
from workpacket.runtime.records.state import CheckpointRecord, Prepared, RunState, StepRecord
from workpacket.runtime.stores.contract import Append, Appended, Lease
from workpacket.value import Value, replace


class Replay:
    """Returns checkpoints in the order in which they were made, so that `cursor` gives the same answers as in the last
    attempt.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        began = recorder.state.attempt_began
        made = recorder.state.checkpoints
        self._before = [point for point in made if point.version < began]
        self._ahead = [point for point in made if point.version > began]
        self._given: list[CheckpointRecord] = []

    def latest_of(self, child: str) -> CheckpointRecord | None:
        """Return the checkpoint from which the attempt would have continued at this point."""
        known = [point for point in (*self._before, *self._given) if point.child == child]
        return max(known, key=lambda point: point.version, default=None)

    def checkpoint(self, child: str, name: str, kind: str, payload: bytes) -> CheckpointRecord:
        """Return the checkpoint made by this call: the next one with the same cursor; otherwise the next one with the
        same name.
        """
        wanted = (child, name, kind)
        alike = [point for point in self._ahead if (point.child, point.name, point.kind) == wanted]
        exact = [point for point in alike if point.event.payload == address_of(payload)]
        if not alike:
            stream = self._recorder.stream
            raise RunBlocked(f"{stream} is finished; it did not create the checkpoint {name!r}", code="step_changed")
        # Steps are not repeated, so the checkpoints inside them are not repeated either: earlier ones are skipped.
        latest = self.latest_of(child)
        later = [point for point in exact if latest is None or point.version > latest.version]
        found = (later or exact or alike)[0]
        self._ahead.remove(found)
        self._given.append(found)
        return found


_SCOPE: ContextVar[Scope | None] = ContextVar("workpacket_scope", default=None)


class SavedCheckpoint(Value):
    """`token` starts one retry from here; it is shown once and only its hash is stored."""

    id: str
    version: int
    token: str = ""


class BorrowedLease(NamedTuple):
    """A lease that a worker takes with a job, renews, and releases with it. `begun`: whether the run existed when the
    lease was taken. `leaving`: whether the worker was asked to stop. `complete`: appends the end of the run if the job
    is to be finished in that same transaction.
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
    lent: BorrowedLease | None = None
    on_end: Callable[[str, str], None] | None = None
    patience: float | None = None
    allow_unasked: bool = True  # in a run whose program is one process, that of the policy
    steps: Steps = field(init=False)
    effects: Effects = field(init=False)
    boundary: Boundary = field(init=False)
    root: Scope = field(init=False)
    replay: Replay | None = field(init=False)
    questions: Questions = field(init=False)
    waiter: Waiter = field(init=False)
    home: int = field(default_factory=get_ident)  # the thread whose calls belong to no step unless they are in one
    _programs: dict[str, Scope] = field(init=False)  # the scopes of the run and of the child runs that are being done
    _done_before: Mapping[str, Mapping[str, str]] = field(init=False)
    _inside: dict[int, Scope] = field(default_factory=dict, init=False)  # the steps that are being done
    _over: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self.boundary = Boundary(
            self.recorder, self.lent.leaving if self.lent else bool, self.replay_only, self._before_new_work
        )
        self.steps = Steps(self.recorder, self.boundary, self.replay_only)
        self.effects = Effects(self.recorder, self.boundary, self.replay_only)
        self.replay = Replay(self.recorder) if self.replay_only else None
        self.questions = Questions(self.recorder, self.boundary, self.ask, self.replay_only)
        self.waiter = Waiter(self.recorder, self.boundary, self.patience)
        self.root = Scope(self)
        self._programs = {"": self.root}
        steps = self.state.steps
        self._done_before = done_before(self.state, {} if isinstance(steps, FinishedSteps) else steps)

    @property
    def state(self) -> RunState:
        return self.recorder.state

    @property
    def repeated(self) -> tuple[str, ...]:
        """Return, sorted, the steps and effects of the run that an attempt repeated although an earlier one may already
        have done them."""
        found, begun = set(self.steps.repeated), set[Json]()
        for event in self.recorder.store.read(self.recorder.stream):
            data = event.values()
            if event.type == "attempt.started":
                begun.clear()
            elif event.type == "effect.started":  # except for another try in the same attempt
                if data.get("repeated") is True and data["effect"] not in begun:
                    found.add(str(data["step"]))
                begun.add(data["effect"])
            elif data.get("maybe_repeated") is True and "carried_from" not in data:
                found.add(str(data["step"]))
        return tuple(sorted(found))

    # ---- where the code is ---------------------------------------------------------------------------------------

    def scope(self) -> Scope:
        present = _SCOPE.get()
        if present is not None and present.owner is self:
            return present
        if self._inside and get_ident() != self.home:
            raise RunBlocked(
                "this thread was started without the context of its step, so the call cannot be assigned to a step",
                code="step_without_context",
                hint="use run.map or run.gather, or start the thread with contextvars.copy_context().run",
            )
        return self.root

    def context_here(self) -> Context:
        """Return a context for a thread in which calls belong to the same scope as this call."""
        context = copy_context()
        context.run(_SCOPE.set, self.scope())
        return context

    def enter(self, call: Call[Any]) -> Callable[[], None]:
        """Enter the step; call the returned function to leave it."""
        scope = call.scope.inner(call)
        # Nothing in a step that no attempt has begun can have been in progress.
        scope.reached_new_work = not call.child and call.key not in self.steps.repeated
        token = _SCOPE.set(scope)
        finishing = FINISHING.set(True) if call.options.on_cancel == "finish" else None
        self._inside[id(scope)] = scope
        if call.child:
            self._programs[scope.path] = scope

        def leave() -> None:
            del self._inside[id(scope)]
            self._programs.pop(scope.path, None)
            _SCOPE.reset(token)
            if finishing is not None:
                FINISHING.reset(finishing)

        return leave

    def note_line(self, scope: Scope, line: int) -> None:
        """Record, once, that several threads or tasks make a program's calls: the order of the calls then differs
        between attempts.
        """
        scope.line = scope.line or line
        if scope.line == line or scope.around is not None or scope.path in self.state.interleaved:
            return
        if not self.replay_only:
            self.recorder.record(RecordDraft("calls.interleaved", {"scope": scope.path}))

    def finish(self, call: Call[Any], value: Any) -> None:
        """Store the result of a step, unless a question that was asked in it is open. A child run is not finished
        before its program has repeated every call recorded in it.
        """
        self.questions.require_answered(f"{call.key}/", call.key)
        if call.child and not self.replay_only:
            scope = self.scope()
            self._require_asked(scope, self.unasked(scope))
        self.steps.finish(call, value)

    # ---- lease ---------------------------------------------------------------------------------------------------

    def keep_lease(self) -> None:
        """Renew the lease in the background while this process is running."""
        if self.lent is None:
            # threading.Thread.start() waits until the thread runs: on a busy machine that delays the first step, and a
            # run of one step takes 10 % more CPU time (median of 15 interleaved pairs).
            _thread.start_new_thread(self._renew_until_over, ())

    def _renew_until_over(self) -> None:
        while not self._over.wait(self.seconds / 3):
            lease = self.recorder.lease
            try:
                if lease is not None:
                    self.recorder.store.renew(lease, self.seconds)
            except LeaseLost:
                return  # the store refuses the next record and gives the reason
            except RuntimeFault:
                continue  # the store was busy; there are two more tries before the lease ends

    def leave(self) -> None:
        """Leave the run unchanged and its lease held, for another process of the same holder."""
        self._over.set()

    def release(self) -> None:
        # First, so that the thread does not renew a lease that was released.
        self._over.set()
        lease: Lease | None = self.recorder.lease
        if lease is not None and self.lent is None:
            with suppress(RuntimeFault):  # a lease that cannot be released expires
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
        """Make a checkpoint. `first` are records that become durable together with the checkpoint: all of them or
        none."""
        payload = self.cursor_bytes(cursor, name)
        scope = self.scope()
        child = scope.of_run.path
        if self.replay is not None:
            made = self.replay.checkpoint(child, name, kind, payload)
            return SavedCheckpoint(made.id, made.version)
        token = self.ids() if with_token else ""
        data: dict[str, Json] = {
            "id": self.ids()[:16],
            "name": name,
            "kind": kind,
            "counters": {f"{scope.path}{key}": number for key, number in sorted(scope.counters.items())},
            "preconditions": {**self.preconditions(), **preconditions},
        }
        if child:
            data["child"] = child
        if token:
            data["token_hash"] = token_hash(token)
        *_, event = self.recorder.record(*first, RecordDraft("checkpoint", data, payload))
        return SavedCheckpoint(str(data["id"]), event.version, token)

    def cursor_bytes(self, cursor: Json, name: str) -> bytes:
        """Encode a cursor for storage. A cursor that contains a secret is encrypted or refused."""
        value: Json = {"cursor": cursor}
        return self.recorder.redactor.unaltered(f"the cursor of checkpoint {name!r}", value, stored_text(value))

    def cursor(self, default: Json) -> Json:
        """Return where the last checkpoint says to continue; from then on, steps are counted from the checkpoint's
        counts."""
        scope = self.scope()
        child = scope.of_run.path
        point = self.state.latest_of(child) if self.replay is None else self.replay.latest_of(child)
        if point is None:
            return default
        for name, number in point.counters.items():
            if name.startswith(scope.path) and "/" not in name[len(scope.path) :]:
                own = name[len(scope.path) :]
                scope.counters[own] = max(scope.counters.get(own, 0), number)
        return cursor_of(self.recorder, point)

    # ---- effects and questions -----------------------------------------------------------------------------------

    def effect_plan(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
        options: Options, how: EffectOptions,
    ) -> EffectPlan:  # fmt: skip
        key, recovery, target = how["key"], how["recovery"], how["target"] or name
        step = self.scope().next_key(name)
        asked: tuple[dict[str, str], list[str]] | None = None
        if key is None:
            args_hash = arguments_hash(args, kwargs)
        else:
            args_hash = KEYED + jcs_hash(key)
            # The parameter through which the function receives its key is not one of the compared arguments.
            asked = effect_hashes(args, {name: kwargs[name] for name in kwargs if name != "key"} if kwargs else kwargs)
        effect = identity(self.recorder.stream, step, recovery, target, args_hash)
        return EffectPlan(
            effect, step, recovery, target, args_hash, options, function, args, kwargs, how["probe"], how["compensate"],
            asked, key,
        )  # fmt: skip

    def confirm(self, question: str, about: Json) -> None:
        """Continue only after a person has agreed to exactly this; the answer is remembered."""
        scope = self.scope()
        place = self.questions.place(scope, question)
        child = scope.of_run.path
        self.questions.put(Asking(question, "program", place, about, about, child=child, within=scope.path))

    def accept_unknown(self, key: str) -> None:
        """Accept that the outcome of an effect remains unknown. The effect is identified by its key, or by its step."""
        named = {user_key(self.recorder.stream, KEYED + jcs_hash(key))}
        steps = {f"{self.scope().path}{key}", key}
        found = [e for e in self.state.effects.values() if e.effect in named or e.step in steps]
        if not found:
            raise RunBlocked(
                f"{self.recorder.stream} has no effect with the key or step {key!r}",
                code="effect_outcome_unknown",
                hint=f"workpacket runtime runs show {shlex.quote(self.recorder.stream)}",
            )
        for effect in found:
            if not self.replay_only and effect.status in {"started", "failed_unknown"}:
                self.effects.accept_unknown(effect)

    def confirm_effect(self, plan: EffectPlan) -> None:
        """Confirm an effect: its name, target and arguments are shown, and the answer covers exactly those."""
        hashes, opaque = effect_hashes(plan.args, plan.kwargs)
        binding: Json = {"effect": plan.effect, "arguments": dict(hashes), "opaque": list(opaque)}
        shown = shown_arguments(plan.args, plan.kwargs)
        question = f"{plan.name}: {plan.target}"
        child = self.scope().of_run.path
        within = self.scope().path
        self.questions.put(Asking(question, "effect", plan.step, binding, shown, plan.name, plan.target, child, within))

    def allowed(self, plan: EffectPlan, *, confirm: bool) -> EffectPlan:
        """Return the effect after asking for any required consent: because of `confirm`, or again because the inputs
        changed.
        """
        if self.effects.done_for_other_inputs(plan):
            self.confirm_effect(plan)
            plan = plan._replace(options=replace(plan.options, changed="redo"))
        if confirm and self.effects.intend(plan):
            self.confirm_effect(plan)
        return plan

    # ---- waits ---------------------------------------------------------------------------------------------------

    def sleep(self, seconds: float | None = None, until: datetime | None = None) -> OpenWait:
        if until is not None and until.tzinfo is None:
            raise ValueError("an instant needs a time zone, such as datetime.now(UTC) + timedelta(hours=1)")
        return self.waiter.begin(self.scope().next_key("sleep"), seconds=seconds, until=until)

    def wait_for(self, signal: str, timeout: float | None) -> OpenWait:
        require_name(signal, "signal")
        return self.waiter.begin(self.scope().next_key(f"wait for {signal}"[:LONGEST_NAME]), signal, timeout)

    # ---- published values ----------------------------------------------------------------------------------------

    def publish(self, name: str, value: Json) -> None:
        """Record a value for others to read. A later attempt that reaches this point again publishes nothing."""
        require_name(name, "value")
        scope = self.scope()
        # No step has a name with this character, so the numbers of steps stay as they are.
        counter = f"#{name}"
        times = scope.counters[counter] = scope.counters.get(counter, 0) + 1
        if self.replay_only or times <= self.state.times_published.get(scope.path + name, 0):
            return
        form = kept(value)
        redactor = self.recorder.redactor
        redactor.require_plain("the name of a value", name)
        # The name of the value counts, as that of a key in a mapping does.
        redactor.unaltered(f"the value {name!r}", {name: value}, stored_text({name: value}))
        payload = redactor.unaltered(f"the value {name!r}", value, form.text)
        data: dict[str, Json] = {"name": name, "number": times}
        data |= {field: path for field, path in (("scope", scope.path), ("child", scope.of_run.path)) if path}
        self.boundary.check()
        self.recorder.record(RecordDraft("value.published", data, payload))

    # ---- the end -------------------------------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> None:
        """Record how the attempt ended, and release the lease. An error here never masks `error`."""
        if isinstance(error, RuntimeFault) and not error.run:
            error.run = self.recorder.stream
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
        """Report the end while the lease is still held, before another attempt can begin."""
        if self.on_end is not None:
            self.on_end(self.recorder.stream, self.state.packet)

    def _write_end(self, error: BaseException | None) -> None:
        if error is None:
            self._tell_cut_short()
            self._or_stop(self._require_known_outcomes)
            self._or_stop(lambda: self.questions.require_answered("", self.recorder.stream))
            if not self.allow_unasked:
                self._require_asked(self.root, self.unasked(self.root), finishing=True)
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
        """In a run that ends, record as failed every step or effect that was begun and abandoned, for example because
        of a timeout.
        """
        drafts = [*self.steps.cut_short(), *self.effects.cut_short()]
        if drafts:
            self.recorder.record(*drafts)

    def _require_known_outcomes(self) -> None:
        """Refuse to finish a run while the outcome of an effect is unknown. Read-only effects do not count."""
        unknown = sorted(f"{e.step}: {e.target}" for e in self.state.unknown_effects if e.kind != "read")
        if not unknown:
            return
        raise RunBlocked(
            f"{self.recorder.stream} is not finished: it is unknown whether {', '.join(unknown)} happened",
            code="effect_outcome_unknown",
            hint=f"workpacket resume {shlex.quote(self.recorder.stream)}",
        )

    # ---- a program that changed ----------------------------------------------------------------------------------

    def unasked(self, scope: Scope) -> list[str]:
        """Return what earlier attempts did in the run or child run, outside of any step, that its program has not asked
        for in this attempt.

        Calls before the cursor at which the program continued are counted as asked for.
        """
        asked, steps = scope.counters, self.state.steps
        done = self._done_before.get(scope.path, {})
        if isinstance(steps, FinishedSteps):
            done = {**done_before(self.state, steps.not_handed_out(), only_steps=True).get(scope.path, {}), **done}
        missing: list[str] = []
        for key, effect in done.items():
            name, _, number = key.partition("#")
            if int(number or 1) > asked.get(name, 0) and effect not in self.effects.asked:
                missing.append(f"{scope.path}{key}")
        return sorted(missing)

    def patched(self, name: str) -> bool:
        """Whether the program takes its new path at this change: False in a run that an older version has already taken
        past it."""
        require_name(name, "patch")
        scope = self.scope().of_run
        patch = scope.path + name
        if patch in self.state.patches:
            return True
        if self.unasked(scope):
            return False
        self.boundary.check()
        self.recorder.record(RecordDraft("patch.applied", {"patch": patch}))
        return True

    def _before_new_work(self, place: str) -> None:
        """Ask a person before a program does something new without having asked for what was done after this point: the
        results that it was given may belong to other calls.
        """
        self.steps.tell_left()
        self.effects.tell_left()
        path, slash, _ = place.rpartition("/")
        scope = self._programs.get(path + slash)
        if scope is None or scope.caught_up or self.allow_unasked or scope.path in self.state.interleaved:
            return
        if not self.state.has_begun(place) and asked_for(self.state.steps, place) is None:
            # An effect with a key is known by it, wherever it is requested.
            keyed = {e.step for e in self.state.effects.values() if e.args_hash.startswith(KEYED)}
            keyed = {one for one in keyed - self.state.waits.begun.keys() if asked_for(self.state.steps, one) is None}
            self._require_asked(scope, [one for one in self.unasked(scope) if one not in keyed])
            scope.caught_up = True

    def _require_asked(self, scope: Scope, missing: Sequence[str], *, finishing: bool = False) -> None:
        """Ask a person before finishing a run or child run whose program no longer makes the calls that an earlier
        attempt made: the results that it was given may belong to other calls.
        """
        if not missing:
            return
        question = (
            f"continue even though the program no longer asks for {', '.join(missing)}, which has already been done?"
        )
        about: list[Json] = list(missing)
        place, path = f"{scope.path}unasked", scope.path
        asking = Asking(question, "program", place, about, None, child=path, within=path)
        if finishing:
            self._or_stop(lambda: self.questions.put(asking))
        else:
            self.questions.put(asking)

    def _or_stop(self, check: Callable[[], None]) -> None:
        """Check whether the run may finish; if not, it is stopped."""
        try:
            check()
        except RunBlocked as blocked:
            stop: dict[str, Json] = {"code": blocked.code, "error": described(blocked), "in_flight": []}
            self.recorder.record(RecordDraft("run.stopped", stop))
            self._tell_end()
            raise


def done_before(
    state: RunState, steps: Mapping[str, StepRecord], *, only_steps: bool = False
) -> dict[str, dict[str, str]]:
    """Return what was done since inputs were last replaced, keyed by scope and position: the effect, or '' for anything
    else."""
    since = state.inputs_changed_at
    done = {key: "" for key, record in steps.items() if record.event.version >= since}
    if not only_steps:
        done |= {key: "" for key, wait in state.waits.begun.items() if wait.begun.version >= since}
        begun = [one for one in state.effects.values() if one.status != "intended" and one.event.version >= since]
        done |= {one.step: one.effect for one in begun}
    by_scope: dict[str, dict[str, str]] = {}
    for key, effect in done.items():
        path, slash, place = key.rpartition("/")
        by_scope.setdefault(path + slash, {})[place] = effect
    return by_scope


def stop_code(error: BaseException) -> str:
    """Return the stop reason for an exception."""
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
