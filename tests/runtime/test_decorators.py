"""Functions that are steps or effects wherever a run is current, and ordinary functions elsewhere."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import assert_type

import pytest

from runtime.worlds import World
from workpacket.runtime import Retry, Run, RunBlocked
from workpacket.runtime.decorators import effect, step

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@pytest.fixture
def world() -> World:
    return World()


@step
def fetch(month: str) -> list[str]:
    CALLS.append(month)
    return [f"{month}-1", f"{month}-2"]


@effect(key=lambda name, amount: f"invoice-{name}", recovery="keyed")
def pay(name: str, amount: int) -> str:
    CALLS.append(f"{name} {amount}")
    return f"paid {amount}"


@step(name="read", retry=Retry(attempts=3, first=0.1))
def flaky() -> str:
    CALLS.append("tried")
    if len(CALLS) < 3:
        raise OSError("not yet")
    return "read"


@step
async def load(number: int) -> int:
    CALLS.append(str(number))
    return number * 2


def test_a_decorated_function_keeps_its_signature() -> None:
    assert_type(fetch("2026-10"), list[str])
    assert_type(pay("ann", 3), str)
    assert (fetch.__name__, pay.__name__) == ("fetch", "pay")


def test_outside_of_a_run_it_is_an_ordinary_function() -> None:
    assert fetch("2026-10") == fetch("2026-10") == ["2026-10-1", "2026-10-2"]
    assert CALLS == ["2026-10"] * 2


def test_in_a_run_each_call_is_done_once(world: World) -> None:
    with world.crashing(world.runtime.run("pay").__enter__()) as run:
        fetch("2026-10")
        pay("ann", 100)
        run._exit()
        world.crash()
    with world.runtime.run("pay") as run:
        assert fetch("2026-10") == ["2026-10-1", "2026-10-2"]
        assert pay("ann", 100) == "paid 100"
        assert (set(run.state.steps), len(run.state.effects)) == ({"fetch"}, 1)
    assert CALLS == ["2026-10", "ann 100"]


def test_options_are_those_of_the_decorator(world: World) -> None:
    with world.runtime.run("read") as run:
        assert flaky() == "read"
        assert set(run.state.steps) == {"read"}


def test_after_the_run_it_is_an_ordinary_function_again(world: World) -> None:
    with world.runtime.run("outer") as outer:
        with world.runtime.run("inner") as inner:
            fetch("a")
        fetch("b")
    fetch("c")
    assert (set(inner.state.steps), set(outer.state.steps)) == ({"fetch"}, {"fetch"})
    assert CALLS == ["a", "b", "c"]


def test_in_an_async_run_it_is_awaited(world: World) -> None:
    async def program() -> list[int]:
        async with world.runtime.async_run("load") as run:
            found = list(await asyncio.gather(load(1), load(2)))
            assert set(run.state.steps) == {"load", "load#2"}
            return found

    assert asyncio.run(program()) == [2, 4]


def test_a_step_calls_decorated_steps_inside_itself(world: World) -> None:
    @step
    def both() -> int:
        return len(fetch("a")) + len(fetch("b"))

    with world.runtime.run("nest") as run:
        assert both() == 4
        assert set(run.state.steps) == {"both", "both/fetch", "both/fetch#2"}


def test_items_side_by_side_know_their_run(world: World) -> None:
    def outer(month: str) -> int:
        return len(fetch(month))

    with world.runtime.run("side") as run:
        run.map("outer", outer, ["a", "b"])
        assert set(run.state.steps) == {"outer", "outer/fetch", "outer#2", "outer#2/fetch"}


def test_a_thread_without_context_is_refused_instead_of_not_recorded(world: World) -> None:
    refused: list[RunBlocked] = []

    def call() -> None:
        try:
            fetch("2026-10")
        except RunBlocked as error:
            refused.append(error)

    with world.runtime.run("threads") as run:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        assert not run.state.steps
    assert [error.code for error in refused] == ["step_without_context"]
    assert "copy_context" in refused[0].hint
    assert CALLS == []


def test_a_thread_with_the_context_of_its_step_is_counted_there(world: World) -> None:
    def outer() -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(copy_context().run, fetch, "2026-10").result()

    with world.runtime.run("threads") as run:
        run.step("outer", outer)
        assert set(run.state.steps) == {"outer", "outer/fetch"}


def test_a_plain_step_of_such_a_thread_is_refused_while_a_step_is_being_done(world: World) -> None:
    def outer(run: Run) -> str:
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(run.step, "inner", world.note, "x").result())

    with pytest.raises(RunBlocked, match="without the context") as refused, world.runtime.run("threads") as run:
        run.step("outer", outer, run)
    assert refused.value.code == "step_without_context"
    assert world.calls == []


def test_a_thread_of_ones_own_may_do_steps_while_none_is_being_done(world: World) -> None:
    with world.runtime.run("threads") as run, ThreadPoolExecutor(1) as pool:
        pool.submit(run.step, "alone", world.note, "x").result()
        assert set(run.state.steps) == {"alone"}
