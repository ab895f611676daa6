"""A run for sync code. docs/runtime/tutorial.md shows how to use it."""

from __future__ import annotations

import copy
import inspect
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self, TypeVar, overload

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import EffectOptions, EffectPlan, Recovery
from workpacket.runtime.attempts.session import SavedCheckpoint, Session
from workpacket.runtime.attempts.steps import Call, Failed, Options, Retry, Scope, Stored, name_and_function
from workpacket.runtime.attempts.waits import OpenWait
from workpacket.runtime.errors import NotDone, RunBlocked, RuntimeFault, StepFailed
from workpacket.runtime.records.jcs import Codec
from workpacket.runtime.records.state import RunState

if TYPE_CHECKING:
    from workpacket.runtime.attempts.relay import Outcome

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


_CURRENT: ContextVar[BaseRun | None] = ContextVar("workpacket_run", default=None)
_OPEN: dict[str, int] = {}  # the runs in whose `with` block this process is, each with the thread that entered it


def current_run(name: str) -> BaseRun | None:
    """Return the run whose `with` block is being executed, if any. `name` is the function that was called in the
    block."""
    run = _CURRENT.get()
    if run is None and _OPEN and get_ident() not in _OPEN.values():
        raise RunBlocked(
            f"{name} was called in a thread without the run's context, so the call would not be recorded",
            code="step_without_context",
            hint="use run.map or run.gather, or start the thread with contextvars.copy_context().run; outside the "
            f"run, call {name}.__wrapped__",
        )
    return run


class BaseRun:
    """The part that sync and async code share, because it never waits."""

    def __init__(self, session: Session, options: Options | None = None) -> None:
        self._session = session
        self._options = options or Options()
        self._outer: BaseRun | None = None  # the run in whose `with` block this one was entered

    @property
    def id(self) -> str:
        return self._session.recorder.stream

    @property
    def attempt(self) -> int:
        return self._session.state.attempt

    @property
    def state(self) -> RunState:
        """Return the state according to the log so far. The caller must not change the state."""
        return self._session.state

    @property
    def repeated(self) -> tuple[str, ...]:
        """Return, sorted, the steps and effects of the run that may have been done twice: an attempt did them although
        an earlier one had begun them, or may have begun them, and left no outcome."""
        return self._session.repeated

    def using(
        self,
        *,
        retry: Retry | None = None,
        version: str | None = None,
        changed: Literal["block", "redo"] | None = None,
        codec: Codec[Any] | None = None,
        on_cancel: Literal["stop", "finish"] | None = None,
    ) -> Self:
        """Return this run with different options for the steps and child runs called through it."""
        present, run = self._options, copy.copy(self)
        run._options = Options(
            retry or present.retry,
            present.version if version is None else version,
            changed or present.changed,
            codec or present.codec,
            on_cancel or present.on_cancel,
        )
        return run

    def _enter(self) -> None:
        self._outer = _CURRENT.get()
        _CURRENT.set(self)
        _OPEN[self.id] = get_ident()

    def _exit(self) -> None:
        _CURRENT.set(self._outer)
        _OPEN.pop(self.id, None)

    def _call(self, first: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[Any]:
        name, function, rest = name_and_function(first, args)
        scope = self._scope()
        # Checked now, not when the step begins: several steps that are called in parallel may all have been in
        # progress.
        first = not scope.reached_new_work
        return Call(scope.next_key(name), scope, function, rest, kwargs, self._options, first)

    def _scope(self) -> Scope:
        """Return the scope of a call that is made now, by this thread or task."""
        scope = self._session.scope()
        self._session.note_line(scope, self._line())
        return scope

    def _line(self) -> int:
        return get_ident()

    def _child(self, first: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[Any]:
        call, run = self._call(first, args, kwargs), copy.copy(self)
        run._options = Options()
        return call._replace(function=partial(call.function, run), child=True)

    def _effect_plan(
        self, name: str, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any],
        how: EffectOptions,
    ) -> EffectPlan:  # fmt: skip
        """Return the plan for the requested effect; a function with a `key` parameter receives the effect's key."""
        self._scope()
        if how["key"] is not None and takes_key(function):
            kwargs["key"] = how["key"]
        return self._session.effect_plan(name, function, args, kwargs, self._options, how)


def session_of(run: BaseRun) -> Session:
    """Return the session of a run, for the modules of the package that build other kinds of runs on it."""
    return run._session


def carry_out(run: Any, plan: tuple[Any, ...], how: EffectOptions, *, confirm: bool) -> Any:
    """Carry out a call as an effect of a sync or async run; for an async run, the caller awaits the result."""
    return run._carry_out(run._effect_plan(*plan, how), confirm=confirm)


class Run(BaseRun):
    def __enter__(self) -> Run:
        self._enter()
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> Literal[False]:
        self._exit()
        self._session.end(error)
        return False

    # ---- steps ---------------------------------------------------------------------------------------------------

    @overload
    def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def step(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def step(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run the step once: a later attempt returns the stored result without calling the function."""
        return self._perform(self._call(first, args, kwargs))

    @overload
    def call(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]: ...
    @overload
    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]: ...
    def call(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the step without running it, for `gather`."""
        return self._call(first, args, kwargs)

    @overload
    def gather(self, *calls: Call[T], workers: int = 4, errors: Literal["raise"] = "raise") -> list[T]: ...
    @overload
    def gather(self, *calls: Call[T], workers: int = 4, errors: Literal["return"]) -> list[T | Exception]: ...
    def gather(self, *calls: Call[Any], workers: int = 4, errors: Literal["raise", "return"] = "raise") -> list[Any]:
        """Run several steps in parallel threads; return their results in call order.

        When a step fails, the steps that have begun are finished, the others do not begin, and the exception is raised.
        With `errors="return"`, all steps run, and an exception raised by a step takes the place of its result. A later
        attempt tries that step again; a finished run returns the exception.
        """
        from concurrent.futures import ThreadPoolExecutor  # slows start-up, and few runs need it
        from contextvars import copy_context

        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="workpacket-step") as pool:
            perform = self._perform if errors == "raise" else self._outcome
            futures = [pool.submit(copy_context().run, perform, call) for call in calls]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    @overload
    def map(
        self, name: str, function: Callable[[Item], T], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["raise"] = "raise",
    ) -> list[T]: ...  # fmt: skip
    @overload
    def map(
        self, name: str, function: Callable[[Item], T], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["return"],
    ) -> list[T | Exception]: ...  # fmt: skip
    def map(
        self, name: str, function: Callable[[Item], Any], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Any]:  # fmt: skip
        """Run one step for each item, in parallel, `workers` at a time; see `gather`."""
        calls = [self.call(name, function, item) for item in items]
        return (
            self.gather(*calls, workers=workers)
            if errors == "raise"
            else self.gather(*calls, workers=workers, errors=errors)
        )

    @overload
    def child(self, name: str, job: Callable[Concatenate[Run, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def child(self, job: Callable[Concatenate[Run, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def child(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a child run once: `job` receives the run, whose steps, cursor, patches and published values are then
        those of the child.

        It belongs to the log and the lease of this run, which therefore shows its questions and waits. If this run is
        cancelled, the child stops too, or finishes first: `run.using(on_cancel="finish").child(...)`.
        """
        return self._perform(self._child(first, args, kwargs))

    @overload
    def call_child(
        self, name: str, job: Callable[Concatenate[Run, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Call[T]: ...
    @overload
    def call_child(self, job: Callable[Concatenate[Run, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]: ...
    def call_child(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the child run without running it, for `gather`."""
        return self._child(first, args, kwargs)

    def _outcome(self, call: Call[T]) -> T | Exception:
        try:
            return self._perform(call)
        except Exception as error:
            return returnable(error)

    def _perform(self, call: Call[T]) -> T:
        session = self._session
        begun = session.steps.begin(call)
        while isinstance(begun, Call):
            leave = session.enter(call)
            try:
                value = call.function(*call.args, **call.kwargs)
            except Exception as error:
                begun, wait = session.steps.fail(begun, error)
                session.boundary.wait(wait)
            except BaseException as error:
                session.steps.leave(begun.key, error)
                raise
            else:
                session.finish(begun, value)
                return value
            finally:
                leave()
        if isinstance(begun, Failed):
            raise begun.error
        stored: T = begun.value
        return stored

    def command(
        self, name: str, argv: Sequence[str], *, cwd: Path | None = None, timeout: float | None = None
    ) -> Outcome:
        """Run a program as a step, in its own process group; a cancellation stops the whole group."""
        from workpacket.runtime.attempts.relay import run_command  # import subprocess only when it is used

        def execute(argv: list[str]) -> Outcome:
            return run_command(argv, self._session.boundary.check_now, cwd=cwd, timeout=timeout)

        return self.step(name, execute, list(argv))

    # ---- effects -------------------------------------------------------------------------------------------------

    def effect(  # each one is a named property of a single effect
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        key: str | None = None,
        recovery: Recovery = "manual",
        target: str = "",
        confirm: bool = False,
        probe: Callable[[], T] | None = None,
        compensate: Callable[[], object] | None = None,
        **kwargs: Any,
    ) -> T:
        """Run an effect. The intent is stored before it and the outcome after it; the effect is never silently
        repeated.

        `key` identifies the effect (a function with a `key` parameter receives it); `recovery` says what may be done if
        the process dies during the effect; a person may then have `compensate` undo it; see `effects`.
        """
        how = EffectOptions(key=key, recovery=recovery, target=target, probe=probe, compensate=compensate)
        plan = self._effect_plan(name, function, args, kwargs, how)
        done: T = self._carry_out(plan, confirm=confirm)
        return done

    def _carry_out(self, plan: EffectPlan, *, confirm: bool) -> Any:
        return self._act(self._session.allowed(plan, confirm=confirm))

    def _act(self, plan: EffectPlan) -> Any:
        effects = self._session.effects
        reached = effects.reach(plan)
        if isinstance(reached, Failed):
            raise reached.error
        if isinstance(reached, Stored):
            return reached.value
        if reached in {"look", "probe"} and plan.probe is not None:
            try:
                found = plan.probe()
            except NotDone as error:
                if reached == "look":
                    raise effects.no_receipt(plan, "; its probe does not find it") from error
            else:
                if reached == "probe":
                    effects.succeed(plan, found, by_probe=True)
                return found
        if reached == "compensate" and plan.compensate is not None:
            plan.compensate()
            effects.compensated(plan)
        return self._attempt(plan, repeated=reached == "repeat")

    def _attempt(self, plan: EffectPlan, *, repeated: bool) -> Any:
        effects, tries, clock = self._session.effects, 0, self._session.recorder.clock
        began = clock.ticks()
        while True:
            effects.start(plan, repeated=repeated)
            try:
                value = plan.function(*plan.args, **plan.kwargs)
            except Exception as error:
                tries += 1
                self._session.boundary.wait(effects.fail(plan, error, tries, clock.ticks() - began))
                repeated = not isinstance(error, NotDone)
            except BaseException as error:
                effects.leave(plan, error)
                raise
            else:
                effects.succeed(plan, value)
                return value

    # ---- checkpoints, boundaries, questions ----------------------------------------------------------------------

    def checkpoint(
        self,
        cursor: Json = None,
        *,
        name: str = "",
        kind: str = "run",
        preconditions: Mapping[str, Json] | None = None,
        token: bool = False,
    ) -> SavedCheckpoint:
        """Make everything so far durable, and record `cursor` as the next action."""
        return self._session.checkpoint(cursor, name, kind, preconditions or {}, with_token=token)

    def cursor(self, default: Json = None) -> Json:
        """Return the cursor of the last checkpoint, or `default`. The run then continues from there."""
        return self._session.cursor(default)

    def boundary(self, items: Iterable[Item] = ()) -> Iterator[Item]:
        """Yield the items one by one; if the run is cancelled, it ends between two items."""
        self._session.boundary.check_now()
        for item in items:
            yield item
            self._session.boundary.check_now()

    def confirm(self, question: str, about: Json = None) -> None:
        """Continue only if a person says yes; without an answer, the run stops here and can be resumed. While the
        question is open, the run does not finish, whatever the program catches.
        """
        self._session.confirm(question, about)

    def accept_unknown(self, key: str) -> None:
        """Accept that it will remain unknown whether an effect happened; otherwise, the unknown outcome keeps the run
        from finishing.

        `key` is the key of the effect or, if it has none, its name. A later attempt fails at the effect with the same
        error.
        """
        self._session.accept_unknown(key)

    def publish(self, name: str, value: Json) -> None:
        """Publish a value under a name, replacing the previous one: `Runtime.query` and `runs show` read it."""
        self._session.publish(name, value)

    # ---- a program that changes ----------------------------------------------------------------------------------

    def patched(self, name: str) -> bool:
        """Whether to take the new path at the program change named `name`.

        True in runs that reach the change for the first time, and in their later attempts; False in a run that an older
        program had already taken further.
        """
        return self._session.patched(name)

    # ---- waits ---------------------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Wait for this long, counted from the first attempt; the process may be restarted in the meantime."""
        self._scope()
        self._wait_out(self._session.sleep(seconds))

    def sleep_until(self, instant: datetime) -> None:
        """Wait until a point in time, which must have a time zone."""
        self._scope()
        self._wait_out(self._session.sleep(until=instant))

    def wait_for(self, signal: str, *, timeout: float | None = None) -> Json:
        """Return the value of the next signal with this name, from `Runtime.signal` or `workpacket runtime signal`.

        Each wait takes one signal, the oldest first. Raises `TimeoutError` if none arrives within `timeout` seconds,
        counted from the first attempt.
        """
        self._scope()
        wait = self._session.wait_for(signal, timeout)
        self._wait_out(wait)
        return self._session.waiter.received(wait)

    def _wait_out(self, wait: OpenWait) -> None:
        while (pause := self._session.waiter.pause(wait)) > 0:
            self._session.recorder.clock.sleep(pause)


def returnable(error: Exception) -> Exception:
    """Return an error raised by a step; raise one that stops the whole run."""
    if isinstance(error, RuntimeFault) and not isinstance(error, StepFailed):
        raise error
    return error


def takes_key(function: Callable[..., object]) -> bool:
    # The code object of a plain function (one without `__wrapped__` or a signature of its own) gives the same result as
    # `inspect.signature`, which would make an effect with a key take 12 % more CPU time.
    if isinstance(function, FunctionType) and not function.__dict__:
        code = function.__code__
        return "key" in code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "key" and p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters)
