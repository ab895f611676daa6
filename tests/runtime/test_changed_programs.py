"""A program that changed while its run was interrupted: what it no longer asks for is named before the run is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from runtime.worlds import Crash, World
from workpacket.runtime import NotDone, Run, RunBlocked
from workpacket.runtime.resume.observe import ResumePolicy


@pytest.fixture
def world() -> World:
    return World()


def interrupted(world: World, program: Callable[[Run], None]) -> str:
    with world.crashing(world.runtime.run("load")) as run:
        program(run)
        world.crash()
    return run.id


def both(world: World) -> Callable[[Run], None]:
    def program(run: Run) -> None:
        run.step("customers", world.note, "customers")
        run.step("orders", world.note, "orders")

    return program


def only_orders(world: World) -> Callable[[Run], None]:
    return lambda run: print(run.step("orders", world.note, "orders"))


def rows(world: World, count: int) -> Callable[[Run], None]:
    def program(run: Run) -> None:
        for number in range(count):
            run.step("row", world.note, str(number))

    return program


def permitted(world: World) -> str:
    """A run that a person lets finish without the step that its program left out."""
    stream = interrupted(world, both(world))
    with pytest.raises(RunBlocked), world.runtime.run("load") as run:
        only_orders(world)(run)
    _, (question,) = world.runtime.waiting(stream)
    assert "customers" in question.question
    world.runtime.confirm(stream, question.digest, yes=True)
    return stream


def test_a_run_is_not_finished_without_a_step_that_an_earlier_attempt_did(world: World) -> None:
    stream = interrupted(world, both(world))
    with pytest.raises(RunBlocked, match="customers") as blocked, world.runtime.run("load") as run:
        only_orders(world)(run)
    assert blocked.value.code == "needs_confirmation"
    assert world.runtime.state(stream).status == "stopped"


def test_a_person_may_let_it_finish(world: World) -> None:
    stream = permitted(world)
    with world.runtime.run("load") as run:
        only_orders(world)(run)
    assert world.runtime.state(stream).status == "completed"


def test_the_yes_covers_only_what_was_named(world: World) -> None:
    permitted(world)
    with pytest.raises(RunBlocked, match="customers, orders"), world.runtime.run("load"):
        pass


def test_the_owner_of_the_runs_may_allow_it_in_advance(world: World) -> None:
    stream = interrupted(world, both(world))
    world.policy = ResumePolicy(allow_unasked=True)
    with world.runtime.run("load") as run:
        only_orders(world)(run)
    assert world.runtime.state(stream).status == "completed"


def test_fewer_calls_of_one_name_are_noticed(world: World) -> None:
    interrupted(world, rows(world, 3))
    with pytest.raises(RunBlocked, match="row#3"), world.runtime.run("load") as run:
        rows(world, 2)(run)


def test_effects_and_waits_count_too(world: World) -> None:
    def program(run: Run) -> None:
        run.effect("mail", world.note, "mail", key="k")
        run.sleep(1)

    interrupted(world, program)
    with pytest.raises(RunBlocked, match="mail, sleep"), world.runtime.run("load"):
        pass


def test_an_effect_that_was_asked_for_again_elsewhere_by_its_key_is_not_missing(world: World) -> None:
    def refused(_: str) -> str:
        raise NotDone

    def program(run: Run) -> None:
        with suppress(NotDone):
            run.effect("send", refused, "mail", key="k")
        if not world.calls:
            run.effect("send", world.note, "mail", key="k")

    interrupted(world, program)
    with world.runtime.run("load") as run:
        program(run)
    assert world.calls == ["mail"]


def test_a_program_that_goes_on_from_its_cursor_asks_for_nothing_before_it(world: World) -> None:
    def program(run: Run) -> None:
        if run.cursor() is None:
            run.step("first", world.note, "first")
            run.checkpoint({"at": 1})
        run.step("second", world.note, "second")

    stream = interrupted(world, program)
    with world.runtime.run("load") as run:
        program(run)
    assert world.runtime.state(stream).status == "completed"


def test_what_was_done_for_inputs_that_a_person_replaced_need_not_be_asked_for(world: World) -> None:
    with world.crashing(world.runtime.run("load", inputs={"month": 10})) as run:
        run.step("customers", world.note, "customers")
        world.crash()
    with pytest.raises(RunBlocked) as blocked:
        world.runtime.run("load", inputs={"month": 11})
    world.runtime.confirm(run.id, str(blocked.value.details["subject"]), yes=True)
    with world.runtime.run("load", inputs={"month": 11}) as run:
        run.step("orders", world.note, "orders")
    assert world.runtime.state(run.id).status == "completed"


# ---- changes made on purpose -------------------------------------------------------------------------------------


def patched(world: World) -> Callable[[Run], None]:
    def program(run: Run) -> None:
        run.step("read", world.note, "read")
        if run.patched("new-format"):
            run.step("convert v2", world.note, "v2")
        else:
            run.step("convert", world.note, "v1")
        run.step("write", world.note, "write")

    return program


def test_a_new_run_takes_the_new_way(world: World) -> None:
    with world.runtime.run("load") as run:
        patched(world)(run)
    assert world.calls == ["read", "v2", "write"]


def test_a_run_that_went_past_the_old_way_stays_on_it(world: World) -> None:
    def old(run: Run) -> None:
        run.step("read", world.note, "read")
        run.step("convert", world.note, "v1")

    stream = interrupted(world, old)
    with world.runtime.run("load") as run:
        patched(world)(run)
    assert world.calls == ["read", "v1", "write"]
    assert world.runtime.state(stream).status == "completed"


def test_a_run_that_had_not_come_to_it_takes_the_new_way_and_keeps_to_it(world: World) -> None:
    interrupted(world, lambda run: print(run.step("read", world.note, "read")))
    with world.crashing(world.runtime.run("load")) as run:
        patched(world)(run)
        world.crash()
    with world.runtime.run("load") as run:
        patched(world)(run)
    assert world.calls == ["read", "v2", "write"]


def test_a_finished_run_answers_as_it_did(world: World) -> None:
    for _ in range(2):
        with world.runtime.run("load", key="1") as run:
            patched(world)(run)
    assert world.calls == ["read", "v2", "write"]


# ---- before anything new is done ---------------------------------------------------------------------------------


def test_nothing_is_done_with_the_result_of_another_call(world: World) -> None:
    """The results of two closures of one name; the changed program asks only for the second one."""

    def program(run: Run) -> None:
        run.step("load", lambda: "customers")
        run.step("load", lambda: "orders")

    def changed(run: Run) -> None:
        orders = run.step("load", lambda: "orders")
        run.effect("send", world.note, orders)

    interrupted(world, program)
    with pytest.raises(RunBlocked, match="load#2") as blocked, world.runtime.run("load") as run:
        changed(run)
    assert blocked.value.code == "needs_confirmation"
    assert world.calls == [], "the result of the other call was sent to nobody"


def test_a_step_that_was_put_in_before_others_is_not_done_without_a_yes(world: World) -> None:
    def changed(run: Run) -> None:
        run.step("customers", world.note, "customers")
        run.step("between", world.note, "between")
        run.step("orders", world.note, "orders")

    stream = interrupted(world, both(world))
    with pytest.raises(RunBlocked, match="orders"), world.runtime.run("load") as run:
        changed(run)
    assert world.calls == ["customers", "orders"]
    (question,) = world.runtime.waiting(stream)[1]
    world.runtime.confirm(stream, question.digest, yes=True)
    with world.runtime.run("load") as run:
        changed(run)
    assert world.calls == ["customers", "orders", "between"]
    assert world.runtime.state(stream).status == "completed"


def test_a_step_that_failed_before_is_tried_again_without_a_question(world: World) -> None:
    def program(run: Run) -> None:
        with suppress(OSError):
            run.step("first", fail)
        run.step("second", world.note, "second")

    def fail() -> None:
        raise OSError

    stream = interrupted(world, program)
    with world.runtime.run("load") as run:
        program(run)
    assert world.runtime.state(stream).status == "completed"


def test_a_step_that_was_late_is_tried_again_without_a_question(world: World) -> None:
    async def program(*, dies: bool) -> None:
        async with world.runtime.async_run("load", key="1") as run:
            with suppress(TimeoutError):
                await asyncio.wait_for(run.step("late", asyncio.sleep, 30), 0.02)
            await run.step("instead", asyncio.sleep, 0)
            if dies:
                raise Crash

    with suppress(Crash):
        asyncio.run(program(dies=True))
    asyncio.run(program(dies=False))
    assert world.runtime.state("load@1").status == "completed"


def test_threads_that_make_calls_of_their_own_come_in_any_order(world: World) -> None:
    """What the second thread did is not missing only because the first one is ahead this time."""

    def one(run: Run) -> None:
        run.step("one", world.note, "one")
        if world.calls.count("two") == 1:
            run.step("one more", world.note, "one more")

    def program(run: Run) -> None:
        one(run)
        thread = threading.Thread(target=lambda: run.step("two", world.note, "two"))
        thread.start()
        thread.join()

    stream = interrupted(world, program)
    assert world.runtime.state(stream).interleaved == {""}
    with world.runtime.run("load") as run:
        program(run)
    assert world.calls == ["one", "two", "one more"]
    assert world.runtime.state(stream).status == "completed"


def test_the_items_of_a_map_are_done_in_any_order(world: World) -> None:
    def item(name: str) -> str:
        if name == "a" and world.calls == ["b"]:
            world.crash()
        return world.note(name)

    with world.crashing(world.runtime.run("load")) as run:
        run.gather(run.call("item", item, "b"), run.call("item", item, "a"), workers=1)
    with world.runtime.run("load") as run:
        world.note("again")
        assert run.gather(run.call("item", item, "b"), run.call("item", item, "a"), workers=1) == ["b", "a"]
