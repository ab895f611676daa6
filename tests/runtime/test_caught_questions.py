"""A program that catches the refusal of a question and goes on does not finish: the question is asked until it is
answered, wherever in the run it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from runtime.worlds import World
from workpacket.runtime import Run, RunBlocked
from workpacket.runtime.async_run import AsyncRun

NAME = "year@1"


def quietly(ask: Callable[[], object]) -> str:
    try:
        ask()
    except Exception:  # what such a program does
        return "went on"
    return "asked"


async def quietly_async(asked: Any) -> str:
    try:
        await asked
    except Exception:
        return "went on"
    return "asked"


def in_the_run(run: Run) -> object:
    return quietly(lambda: run.confirm("Send?"))


def behind_any_exception(run: Run) -> object:
    with suppress(BaseException):
        run.confirm("Send?")
    return run.step("more", lambda: "more")


def about_an_effect(run: Run) -> object:
    return quietly(lambda: run.effect("Send?", lambda: "sent", confirm=True))


def in_a_step(run: Run) -> object:
    return run.step("outer", in_the_run, run)


def in_a_step_in_a_step(run: Run) -> object:
    return run.step("outer", lambda: run.step("inner", in_the_run, run))


def in_a_child(run: Run) -> object:
    return run.child("import", in_the_run)


def in_a_child_of_a_child(run: Run) -> object:
    return run.child("import", lambda child: child.child("deeper", in_the_run))


def in_a_child_in_a_step(run: Run) -> object:
    return run.step("outer", lambda: run.child("import", in_the_run))


def in_a_map(run: Run) -> object:
    return run.map("each", lambda _: quietly(lambda: run.confirm("Send?")), [1])


def in_a_map_with_returned_errors(run: Run) -> object:
    return run.map("each", lambda _: run.confirm("Send?"), [1], errors="return")


def around_a_map(run: Run) -> object:
    return quietly(lambda: run.map("each", lambda _: run.confirm("Send?"), [1]))


def in_a_gather(run: Run) -> object:
    return run.gather(run.call("one", in_the_run, run), run.call("two", in_the_run, run))


def around_a_step(run: Run) -> object:
    return quietly(lambda: run.step("outer", lambda: run.confirm("Send?")))


def around_a_child(run: Run) -> object:
    return quietly(lambda: run.child("import", lambda child: child.confirm("Send?")))


SYNC = (
    in_the_run, behind_any_exception, about_an_effect, in_a_step, in_a_step_in_a_step, in_a_child,
    in_a_child_of_a_child, in_a_child_in_a_step, in_a_map, in_a_map_with_returned_errors, around_a_map, in_a_gather,
    around_a_step, around_a_child,
)  # fmt: skip


async def async_in_the_run(run: AsyncRun) -> object:
    return await quietly_async(run.confirm("Send?"))


async def async_about_an_effect(run: AsyncRun) -> object:
    async def send() -> str:
        return "sent"

    return await quietly_async(run.effect("Send?", send, confirm=True))


async def async_in_a_step(run: AsyncRun) -> object:
    return await run.step("outer", async_in_the_run, run)


async def async_in_a_child(run: AsyncRun) -> object:
    return await run.child("import", async_in_the_run)


async def async_in_a_map(run: AsyncRun) -> object:
    async def each(_: int) -> object:
        return await async_in_the_run(run)

    return await run.map("each", each, [1])


async def async_beside_others(run: AsyncRun) -> object:
    async def ask() -> None:
        await run.confirm("Send?")

    found = await asyncio.gather(run.step("asks", ask), run.step("works", asyncio.sleep, 0), return_exceptions=True)
    return len(found)


ASYNC = (
    async_in_the_run, async_about_an_effect, async_in_a_step, async_in_a_child, async_in_a_map, async_beside_others,
)  # fmt: skip


def played(world: World, program: Any) -> object:
    if program in SYNC:
        with world.runtime.run("year", key="1") as run:
            return program(run)

    async def main() -> object:
        async with world.runtime.async_run("year", key="1") as run:
            return await program(run)

    return asyncio.run(main())


@pytest.mark.parametrize("program", [*SYNC, *ASYNC], ids=lambda program: str(program.__name__))
@pytest.mark.parametrize("answer", [True, False])
def test_a_run_does_not_finish_before_its_question_is_answered(program: Any, answer: bool) -> None:
    world = World()
    for _ in range(2):
        with pytest.raises(RunBlocked) as caught:
            played(world, program)
        assert caught.value.code == "needs_confirmation"
        assert "Send?" in caught.value.message
        assert caught.value.hint.startswith("workpacket resume")
        assert world.runtime.state(NAME).status == "stopped"
    (question,) = world.runtime.state(NAME).open_questions
    world.runtime.confirm(NAME, question.subject, yes=answer)
    # What it does after a "no" that it catches is its own affair.
    with suppress(RunBlocked):
        played(world, program)
    if answer:
        assert world.runtime.state(NAME).status == "completed"
    assert not world.runtime.state(NAME).open_questions


def test_a_question_that_is_asked_again_and_answered_in_the_same_attempt_is_not_open() -> None:
    world = World()
    with world.runtime.run("year", key="1") as run:
        with pytest.raises(RunBlocked) as caught:
            run.confirm("Send?", {"to": "ann"})
        world.runtime.confirm(NAME, str(caught.value.details["subject"]), yes=True)
        run.confirm("Send?", {"to": "ann"})
    assert world.runtime.state(NAME).status == "completed"


def test_an_answer_that_comes_after_the_program_went_on_is_for_the_next_attempt() -> None:
    world = World()

    def program() -> None:
        with world.runtime.run("year", key="1") as run:
            try:
                run.confirm("Send?")
            except RunBlocked as blocked:
                world.runtime.confirm(NAME, str(blocked.details["subject"]), yes=True)
            else:
                run.step("send", world.note, "sent")

    with pytest.raises(RunBlocked):
        program()
    program()
    assert world.calls == ["sent"]
    assert world.runtime.state(NAME).status == "completed"
