"""Async runs follow the same rules; their steps may be gathered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from runtime.worlds import Crash, World
from workpacket.runtime import NotDone, Retry, RunBlocked, RunCancelled, Runtime
from workpacket.runtime.async_run import AsyncRun
from workpacket.runtime.attempts.steps import Steps
from workpacket.runtime.stores.memory import MemoryStore


def play(world: World, program: Any, **request: Any) -> Any:
    """One life of an async program; a `Crash` inside ends it as the end of a process would."""

    async def life() -> Any:
        run = world.runtime.async_run("flow", **request)
        await run.__aenter__()
        try:
            result = await program(run)
        except Crash:
            run._session._over.set()
            world.clock.advance(60)
            return "crashed"
        except BaseException as error:
            await run.__aexit__(type(error), error, None)
            raise
        await run.__aexit__(None, None, None)
        return result

    return asyncio.run(life())


async def note(world: World, what: str) -> str:
    await asyncio.sleep(0)
    return world.note(what)


async def crash(world: World) -> str:
    await asyncio.sleep(0)
    raise Crash


def test_gathered_steps_have_the_same_keys_in_every_attempt_and_are_done_once() -> None:
    world = World()

    async def program(run: Any) -> Any:
        done = await asyncio.gather(*[run.step("load", note, world, str(n)) for n in range(5)])
        if run.attempt == 1:
            raise Crash
        return done

    # The world cannot be hashed, so it is not compared; the number is.
    assert play(world, program) == "crashed"
    assert play(world, program) == ["0", "1", "2", "3", "4"]
    assert sorted(world.calls) == ["0", "1", "2", "3", "4"]


def test_a_step_in_flight_is_reported() -> None:
    world = World()

    async def program(run: Any) -> Any:
        await run.step("first", note, world, "1")
        await run.step("second", crash if run.attempt == 1 else note, world, *([] if run.attempt == 1 else ["2"]))
        return run.repeated

    assert play(world, program) == "crashed"
    assert play(world, program) == ("second",)


def test_nested_steps_keep_their_place() -> None:
    world = World()

    async def outer(run: Any) -> str:
        inner: str = await run.step("inner", note, world, "inner")
        if run.attempt == 1:
            raise Crash
        return f"outer of {inner}"

    async def program(run: Any) -> Any:
        return await run.step("outer", outer, run)

    assert play(world, program) == "crashed"
    assert play(world, program) == "outer of inner"
    assert world.calls == ["inner"]


def test_retry_cursor_confirmation_and_checkpoint_work_as_in_sync_code() -> None:
    world = World(ask=lambda _, __: True)
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 2:
            raise OSError
        return "done"

    async def program(run: Any) -> Any:
        assert await run.cursor(0) == 0
        assert await run.using(retry=Retry(attempts=2, first=0.01)).step(flaky) == "done"
        await run.checkpoint({"at": 1})
        await run.confirm("Go on?")
        return await run.cursor()

    assert play(world, program) == {"at": 1}


def test_a_stream_ends_between_two_chunks_when_the_run_is_cancelled() -> None:
    world = World()

    async def chunks() -> AsyncIterator[int]:
        for number in range(5):
            yield number

    async def program(run: Any) -> Any:
        async for number in run.boundary(chunks()):
            world.note(str(number))
            if number == 1:
                world.runtime.cancel(run.id, "enough")

    with pytest.raises(RunCancelled):
        play(world, program)
    assert world.calls == ["0", "1"]
    assert world.runtime.state("flow@00000001").status == "cancelled"


def test_a_cancelled_task_writes_how_the_run_ended() -> None:
    world = World()

    async def program(run: Any) -> Any:
        await run.step("first", note, world, "1")
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        play(world, program)
    assert world.runtime.state("flow@00000001").stop_code == "user_stopped"


@pytest.mark.parametrize(
    ("recovery", "found", "calls"), [("probe", True, []), ("probe", False, ["k"]), ("keyed", 0, ["k"])]
)
def test_effects_recover_as_in_sync_code(recovery: Any, found: bool, calls: list[str]) -> None:
    world = World()

    async def probe() -> str:
        if found:
            return "found"
        raise NotDone

    async def send(key: str) -> str:
        if world.runtime.state("flow@00000001").attempt == 1:
            raise Crash
        return world.note(key)

    async def program(run: Any) -> Any:
        return await run.effect("send", send, key="k", recovery=recovery, probe=probe)

    assert play(world, program) == "crashed"
    assert play(world, program) == ("found" if found else "k")
    assert world.calls == calls


def test_effects_are_settled_compensated_confirmed_and_retried_as_in_sync_code() -> None:
    world = World()

    async def program(run: Any) -> Any:
        async def send() -> str:
            if run.attempt == 1:
                raise Crash
            return await note(world, "sent")

        async def undo() -> None:
            await note(world, "undone")

        await run.effect("send", send, compensate=undo)
        return await run.effect("send", send, compensate=undo, key="second")

    assert play(world, program) == "crashed"
    (record,) = world.runtime.state("flow@00000001").unknown_effects
    world.runtime.settle("flow@00000001", record.effect, "compensate")
    with pytest.raises(RunBlocked):
        play(world, program)
    with pytest.raises(RunBlocked):
        play(world, program)
    assert world.calls == ["undone"]
    world.runtime.settle("flow@00000001", record.effect, "retry")
    assert play(world, program) == "sent"
    assert world.calls == ["undone", "sent", "sent"]


def test_an_effect_waits_for_its_confirmation_and_certain_failures_are_retried() -> None:
    world = World()

    async def flaky() -> str:
        if world.note("try") and len(world.calls) == 1:
            raise NotDone
        return "receipt"

    async def program(run: Any) -> Any:
        return await run.using(retry=Retry(attempts=2, first=0.01)).effect("send", flaky, confirm=True)

    with pytest.raises(RunBlocked) as caught:
        play(world, program)
    world.runtime.confirm("flow@00000001", str(caught.value.details["subject"]), yes=True)
    assert play(world, program) == "receipt"
    assert world.calls == ["try", "try"]


def test_a_map_does_at_most_so_many_at_a_time_and_keeps_their_order() -> None:
    world = World()

    active: list[int] = []
    most: list[int] = []

    async def load(number: int) -> int:
        active.append(number)
        most.append(len(active))
        await asyncio.sleep(0.01)
        active.remove(number)
        return number * 2

    async def program() -> list[int]:
        async with world.runtime.async_run("map") as run:
            return await run.map("load", load, range(6), workers=2)

    assert asyncio.run(program()) == [0, 2, 4, 6, 8, 10]
    assert max(most) == 2


def test_a_map_returns_failures_in_their_places_if_asked() -> None:
    world = World()

    async def load(number: int) -> int:
        if number == 1:
            raise OSError("not there")
        return number

    async def program() -> list[int | Exception]:
        async with world.runtime.async_run("map") as run:
            return await run.map("load", load, [0, 1, 2], errors="return")

    assert [str(one) for one in asyncio.run(program())] == ["0", "not there", "2"]


def test_a_map_that_fails_leaves_nothing_running() -> None:
    world = World()

    async def load(number: int) -> int:
        if number == 0:
            raise OSError("not there")
        await asyncio.sleep(60)
        return number

    async def program() -> None:
        async with world.runtime.async_run("map") as run:
            await run.map("load", load, [0, 1, 2])

    with pytest.raises(OSError, match="not there"):
        asyncio.run(asyncio.wait_for(program(), 10))


def test_an_async_run_sleeps_and_receives_signals() -> None:
    runtime = Runtime(MemoryStore())

    async def program() -> object:
        async with runtime.async_run("wait") as run:
            await asyncio.to_thread(runtime.signal, run.id, "paid", 7)
            await run.sleep(0.01)
            return await run.wait_for("paid", timeout=5)

    assert asyncio.run(program()) == 7


def test_a_step_that_was_cancelled_while_it_began_times_out_again_in_the_finished_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    begin = Steps.begin

    def slowly(self: Steps, call: Any) -> Any:
        begun = begin(self, call)
        if call.key == "late" and not self.replaying:
            time.sleep(0.3)
        return begun

    monkeypatch.setattr(Steps, "begin", slowly)

    async def program() -> str:
        async with world.runtime.async_run("load", key="1") as run:
            try:
                await asyncio.wait_for(run.step("late", asyncio.sleep, 30), 0.05)
            except TimeoutError:
                return await run.step("instead", asyncio.sleep, 0, "instead")
        raise AssertionError("it was not late")

    assert [asyncio.run(program()), asyncio.run(program())] == ["instead", "instead"]


# Every method that is awaited, called while a step of another task is in progress.
BESIDE_A_STEP: dict[str, Any] = {
    "accept_unknown": lambda run: run.accept_unknown("lost"),
    "call with consent": lambda run: run.effect("asked", returned, confirm=True, key="asked"),
    "checkpoint": lambda run: run.checkpoint({"page": 1}),
    "child": lambda run: run.child("job", child),
    "confirm": lambda run: run.confirm("go on?"),
    "cursor": lambda run: run.cursor("begin"),
    "effect": lambda run: run.effect("act", returned),
    "map": lambda run: run.map("each", returned, [1, 2]),
    "patched": lambda run: run.patched("newer"),
    "publish": lambda run: run.publish("pages", 1),
    "sleep": lambda run: run.sleep(0),
    "wait_for": lambda run: run.wait_for("paid", timeout=60),
}


async def returned(*_: Any, **__: Any) -> int:
    return 1


async def child(run: AsyncRun) -> int:
    await run.publish("inside", 1)
    return await run.step("inner", returned)


@pytest.mark.parametrize("inside", [False, True], ids=["of the run", "of a child"])
@pytest.mark.parametrize("method", sorted(BESIDE_A_STEP))
def test_each_method_can_be_called_while_a_step_of_another_task_is_in_progress(method: str, inside: bool) -> None:
    world = World(ask=lambda *_: True)

    async def program(run: AsyncRun) -> None:
        with suppress(TimeoutError):
            await run.effect("lost", late, key="lost")
        if run.attempt == 1 and run.state.status != "completed":
            world.runtime.signal(run.id, "paid", 7)
        go, done = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            go.set()
            await done.wait()

        async def beside(here: AsyncRun) -> None:
            await BESIDE_A_STEP[method](here)

        step = asyncio.create_task(run.step("slow", slow))
        await asyncio.wait([step, asyncio.create_task(go.wait())], return_when=asyncio.FIRST_COMPLETED)
        try:
            await (run.child("beside", beside) if inside else beside(run))
        finally:
            done.set()
            await step
        if method != "accept_unknown":
            await run.accept_unknown("lost")

    async def late() -> None:
        raise TimeoutError

    for _ in range(2):  # the second time, everything is answered from the log
        play(world, program, key="1")
    (stream,) = [line.id for line in world.runtime.runs()]
    state = world.runtime.state(stream)
    assert state.status == "completed"
    assert all(name.startswith(("slow", "beside", "job", "each")) for name in state.steps), sorted(state.steps)
    if method == "publish":
        assert world.runtime.query(stream, "beside/pages" if inside else "pages") == 1
