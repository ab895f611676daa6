"""A run for async code: the same rules, awaited. The store is called in threads, so that the event loop never waits for
it.

Steps must be async functions, because a sync function would block the loop; wrap it in `asyncio.to_thread`. Gathered
steps get their keys when they are called, not when they begin, so the keys are the same in every attempt.
"""

from __future__ import annotations

import asyncio
from _thread import get_ident
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar, overload

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import EffectOptions, EffectPlan, Recovery
from workpacket.runtime.attempts.session import SavedCheckpoint, Session
from workpacket.runtime.attempts.steps import Call, Failed, Stored
from workpacket.runtime.attempts.waits import OpenWait
from workpacket.runtime.errors import NotDone
from workpacket.runtime.run import BaseRun, returnable

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
Item = TypeVar("Item")

TICK = 0.2  # seconds between two checks for cancellation while waiting


class AsyncRun(BaseRun):
    def __init__(self, opening: Callable[[], Session]) -> None:
        self._opening = opening

    async def __aenter__(self) -> AsyncRun:
        super().__init__(await asyncio.to_thread(self._opening))
        self._session.home = get_ident()
        self._enter()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> Literal[False]:
        self._exit()
        # Shielded: the end of the run is recorded however the task was cancelled.
        await asyncio.shield(asyncio.to_thread(self._session.end, error))
        return False

    def _line(self) -> int:
        return id(asyncio.current_task())

    # ---- steps ---------------------------------------------------------------------------------------------------

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[None, None, T]: ...
    @overload
    def step(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[None, None, T]: ...
    def step(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run the step once: a later attempt returns the stored result without calling the function."""
        return self._perform(self._call(first, args, kwargs))

    async def _perform(self, call: Call[Any]) -> Any:
        steps = self._session.steps
        begun = await _begun(partial(steps.begin, call), partial(steps.leave, call.key))
        while isinstance(begun, Call):
            leave = self._session.enter(call)
            try:
                value = await call.function(*call.args, **call.kwargs)
            except Exception as error:
                begun, wait = await asyncio.to_thread(steps.fail, begun, error)
                await self._wait(wait)
            except BaseException as error:
                steps.leave(begun.key, error)
                raise
            else:
                await asyncio.to_thread(self._session.finish, begun, value)
                return value
            finally:
                leave()
        if isinstance(begun, Failed):
            await _fail_again(begun.error)
        return begun.value

    @overload
    async def map(
        self, name: str, function: Callable[[Item], Awaitable[T]], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["raise"] = "raise",
    ) -> list[T]: ...  # fmt: skip
    @overload
    async def map(
        self, name: str, function: Callable[[Item], Awaitable[T]], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["return"],
    ) -> list[T | Exception]: ...  # fmt: skip
    async def map(
        self, name: str, function: Callable[[Item], Awaitable[Any]], items: Sequence[Item], workers: int = 4, *,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Any]:  # fmt: skip
        """Run one step for each item, `workers` at a time; return their results in order.

        With `errors="return"`, all steps run, and an exception raised by a step takes the place of its result.
        """
        calls = [self._call(name, (function, item), {}) for item in items]
        return await side_by_side(self._perform, calls, workers, errors)

    @overload
    def child(
        self, name: str, job: Callable[Concatenate[AsyncRun, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[None, None, T]: ...
    @overload
    def child(
        self, job: Callable[Concatenate[AsyncRun, P], Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[None, None, T]: ...
    def child(self, first: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a child run once; see `Run.child`. To run several concurrently, await them with `asyncio.gather`."""
        return self._perform(self._child(first, args, kwargs))

    async def _wait(self, seconds: float) -> None:
        while seconds > 0:
            await asyncio.sleep(min(seconds, TICK))
            seconds -= TICK
            await self._check()

    async def _check(self) -> None:
        await asyncio.to_thread(self._session.boundary.check_now)

    # ---- effects -------------------------------------------------------------------------------------------------

    async def effect(  # each one is a named property of a single effect
        self,
        name: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        key: str | None = None,
        recovery: Recovery = "manual",
        target: str = "",
        confirm: bool = False,
        probe: Callable[[], Awaitable[T]] | None = None,
        compensate: Callable[[], Awaitable[object]] | None = None,
        **kwargs: Any,
    ) -> T:
        """Run an effect. The intent is stored before it and the outcome after it; the effect is never silently
        repeated."""
        how = EffectOptions(key=key, recovery=recovery, target=target, probe=probe, compensate=compensate)
        plan = self._effect_plan(name, function, args, kwargs, how)
        done: T = await self._carry_out(plan, confirm=confirm)
        return done

    async def _carry_out(self, plan: EffectPlan, *, confirm: bool) -> Any:
        return await self._act(await apart(self._session, self._session.allowed, plan, confirm=confirm))

    async def _act(self, plan: EffectPlan) -> Any:
        effects = self._session.effects
        reached = await asyncio.to_thread(effects.reach, plan)
        if isinstance(reached, Failed):
            await _fail_again(reached.error)
        if isinstance(reached, Stored):
            return reached.value
        if reached in {"look", "probe"} and plan.probe is not None:
            try:
                found = await plan.probe()
            except NotDone as error:
                if reached == "look":
                    raise effects.no_receipt(plan, "; its probe does not find it") from error
            else:
                if reached == "probe":
                    await asyncio.to_thread(effects.succeed, plan, found, by_probe=True)
                return found
        if reached == "compensate" and plan.compensate is not None:
            await plan.compensate()
            await asyncio.to_thread(effects.compensated, plan)
        return await self._attempt(plan, repeated=reached == "repeat")

    async def _attempt(self, plan: EffectPlan, *, repeated: bool) -> Any:
        effects, tries, clock = self._session.effects, 0, self._session.recorder.clock
        began = clock.ticks()
        while True:
            await _begun(partial(effects.start, plan, repeated=repeated), partial(effects.leave, plan))
            try:
                value = await plan.function(*plan.args, **plan.kwargs)
            except Exception as error:
                tries += 1
                await self._wait(await asyncio.to_thread(effects.fail, plan, error, tries, clock.ticks() - began))
                repeated = not isinstance(error, NotDone)
            except BaseException as error:
                effects.leave(plan, error)
                raise
            else:
                await asyncio.shield(asyncio.to_thread(effects.succeed, plan, value))
                return value

    # ---- checkpoints, boundaries, questions ----------------------------------------------------------------------

    async def checkpoint(
        self,
        cursor: Json = None,
        *,
        name: str = "",
        kind: str = "run",
        preconditions: Mapping[str, Json] | None = None,
        token: bool = False,
    ) -> SavedCheckpoint:
        """Make everything so far durable, and record `cursor` as the next action."""
        return await apart(
            self._session, self._session.checkpoint, cursor, name, kind, preconditions or {}, with_token=token
        )

    async def cursor(self, default: Json = None) -> Json:
        """Return the cursor of the last checkpoint, or `default`. The run then continues from there."""
        return await apart(self._session, self._session.cursor, default)

    async def boundary(self, items: AsyncIterable[Item]) -> AsyncIterator[Item]:
        """Yield the items one by one; if the run is cancelled, it ends between two items."""
        await self._check()
        async for item in items:
            yield item
            await self._check()

    async def confirm(self, question: str, about: Json = None) -> None:
        """Continue only if a person says yes; without an answer, the run stops here and can be resumed. While the
        question is open, the run does not finish, whatever the program catches.
        """
        await apart(self._session, self._session.confirm, question, about)

    async def accept_unknown(self, key: str) -> None:
        """Accept that it will remain unknown whether an effect happened; see `Run.accept_unknown`."""
        await apart(self._session, self._session.accept_unknown, key)

    async def publish(self, name: str, value: Json) -> None:
        """Publish a value under a name, replacing the previous one: `Runtime.query` and `runs show` read it."""
        await apart(self._session, self._session.publish, name, value)

    # ---- a program that changes ----------------------------------------------------------------------------------

    async def patched(self, name: str) -> bool:
        """Whether to take the new path at a change to the program: not in a run that an older program took past it."""
        return await apart(self._session, self._session.patched, name)

    # ---- waits ---------------------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Wait for this long, counted from the first attempt; the process may be restarted in the meantime."""
        self._scope()
        await self._wait_out(await apart(self._session, self._session.sleep, seconds))

    async def sleep_until(self, instant: datetime) -> None:
        """Wait until a point in time, which must have a time zone."""
        self._scope()
        await self._wait_out(await apart(self._session, self._session.sleep, until=instant))

    async def wait_for(self, signal: str, *, timeout: float | None = None) -> Json:
        """Return the value of the next signal with this name; raise `TimeoutError` if none arrives in time."""
        self._scope()
        wait = await apart(self._session, self._session.wait_for, signal, timeout)
        await self._wait_out(wait)
        return await asyncio.to_thread(self._session.waiter.received, wait)

    async def _wait_out(self, wait: OpenWait) -> None:
        while (pause := await asyncio.to_thread(self._session.waiter.pause, wait)) > 0:
            await asyncio.sleep(pause)


def apart(session: Session, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
    """Make a call in a thread, where it belongs to the same step, child run or run as in this task."""
    context = session.context_here()
    return asyncio.get_running_loop().run_in_executor(None, partial(context.run, call, *args, **kwargs))


async def side_by_side(
    perform: Callable[[C], Awaitable[T]], calls: Sequence[C], workers: int, errors: Literal["raise", "return"]
) -> list[T | Exception]:
    """Perform the calls, `workers` at a time; return their results in order. With `errors="return"`, an exception takes
    the place of a result; otherwise the first one ends the calls that are left.
    """
    free = asyncio.Semaphore(workers)

    async def one(call: C) -> T | Exception:
        async with free:
            try:
                return await perform(call)
            except Exception as error:
                if errors == "raise":
                    raise
                return returnable(error)

    tasks = [asyncio.ensure_future(one(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _begun(begin: Callable[[], T], leave: Callable[[BaseException], None]) -> T:
    """Begin a step or effect in a thread. If the task is cancelled in the meantime, the step or effect counts as begun
    and abandoned."""
    beginning = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError as error:
        if not beginning.cancelled():
            await asyncio.wait([beginning])
            beginning.exception()  # of a step that could not be begun; the cancellation is raised instead
        leave(error)
        raise


async def _fail_again(error: BaseException) -> NoReturn:
    """Raise the recorded error again; if the task was cancelled at that time, for example by a timeout, wait to be
    cancelled again.
    """
    if isinstance(error, asyncio.CancelledError):
        await asyncio.get_running_loop().create_future()
    raise error
