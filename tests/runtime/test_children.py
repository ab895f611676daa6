"""Child runs: a call of the parent with a program, cursor and published values of its own, in the parent's log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import assert_type

import pytest

from runtime.worlds import World
from workpacket.runtime import AsyncRun, Retry, Run, RunBlocked, RunCancelled, Runtime, RunWaiting, Settings
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.stores.contract import Append, Appended
from workpacket.runtime.stores.memory import MemoryStore


@pytest.fixture
def world() -> World:
    return World()


def importing(world: World) -> Callable[..., str]:
    def job(run: Run, month: str, *, upper: bool = False) -> str:
        rows = run.step("read", world.note, f"read {month}")
        sent = run.effect("send", world.note, f"sent {month}", recovery="keyed", key=f"send {month}")
        return f"{rows}, {sent}".upper() if upper else f"{rows}, {sent}"

    return job


def impatient(world: World) -> Runtime:
    return Runtime(world.store, Settings(actor="tester", clock=world.clock, patience=0, lease_seconds=59))


# ---- a child is one call -----------------------------------------------------------------------------------------


def test_the_result_of_a_child_is_that_of_its_program(world: World) -> None:
    with world.runtime.run("year") as run:
        assert assert_type(run.child(importing(world), "May", upper=True), str) == "READ MAY, SENT MAY"
        assert run.child("again", importing(world), "June") == "read June, sent June"
    assert sorted(run.state.steps) == ["again", "again/read", "job", "job/read"]


def test_a_child_that_is_done_is_not_done_again(world: World) -> None:
    with world.crashing(world.runtime.run("year")) as run:
        run.child("May", importing(world), "May")
        run.step("die", world.crash)
    with world.runtime.run("year") as run:
        assert run.child("May", importing(world), "May") == "read May, sent May"
        run.step("die", world.note, "went on")
    assert world.calls == ["read May", "sent May", "went on"]


def test_a_child_goes_on_after_what_it_did_and_is_not_reported_as_repeated(world: World) -> None:
    def job(run: Run) -> list[str]:
        first = run.step("first", world.note, "first")
        second = run.step("second", lambda: world.note("second") if "died" in world.calls else die())
        return [first, second]

    def die() -> str:
        world.note("died")
        world.crash()
        return ""

    with world.crashing(world.runtime.run("year")) as run:
        run.child(job)
    with world.runtime.run("year") as run:
        assert run.child(job) == ["first", "second"]
        assert run.repeated == ("job/second",)
    assert world.calls == ["first", "died", "second"]


def test_a_child_asked_for_with_other_arguments_is_refused(world: World) -> None:
    with world.crashing(world.runtime.run("year")) as run:
        run.child("import", importing(world), "May")
        run.step("die", world.crash)
    with pytest.raises(RunBlocked, match="import was done with different values"), world.runtime.run("year") as run:
        run.child("import", importing(world), "June")


def test_a_child_that_failed_raises_in_its_parent_and_can_be_tried_again(world: World) -> None:
    def job(run: Run) -> str:
        run.step("read", world.note, "read")
        if world.calls.count("tried") < 2:
            world.note("tried")
            raise OSError("not yet")
        return "done"

    with world.runtime.run("year") as run:
        with pytest.raises(OSError, match="not yet"):
            run.child("once", job)
        assert run.using(retry=Retry(attempts=2, first=0.001)).child("again", job) == "done"
    assert world.calls == ["read", "tried", "read", "tried"], "the second try of `again` receives its step"


def test_children_run_side_by_side(world: World) -> None:
    with world.runtime.run("year") as run:
        calls = [run.call_child("import", importing(world), month) for month in ("May", "June", "July")]
        results = run.gather(*calls, workers=3)
    assert results == [f"read {month}, sent {month}" for month in ("May", "June", "July")]
    assert "import#3/read" in run.state.steps


def test_children_have_children(world: World) -> None:
    def year(run: Run) -> list[str]:
        return [run.child("month", importing(world), month) for month in ("May", "June")]

    with world.runtime.run("decade") as run:
        assert run.child("year", year) == ["read May, sent May", "read June, sent June"]
    assert "year/month#2/read" in run.state.steps


def test_children_in_async_code() -> None:
    world = World()

    async def note(what: str) -> str:
        return world.note(what)

    async def job(run: AsyncRun, month: str) -> str:
        return await run.step("read", note, month)

    async def program() -> list[str]:
        async with world.runtime.async_run("year", key="1") as run:
            assert_type(await run.child("first", job, "May"), str)
            return list(await asyncio.gather(*[run.child("import", job, month) for month in ("June", "July")]))

    assert asyncio.run(program()) == ["June", "July"]
    assert asyncio.run(program()) == ["June", "July"], "a finished run returns what its children returned"
    assert sorted(world.calls) == ["July", "June", "May"]


def test_a_child_costs_one_lease_and_one_append_more_than_its_calls(world: World) -> None:
    appends: list[str] = []

    class Counting(MemoryStore):
        def append(self, request: Append) -> Appended:
            appends.extend([",".join(event.type for event in request.events)])
            return super().append(request)

    world.store = Counting(world.clock)

    def job(run: Run) -> str:
        return run.step("read", world.note, "read")

    with world.runtime.run("year") as run:
        run.step("before", world.note, "before")
        appends.clear()
        run.child(job)
        assert appends == ["step.completed", "step.completed"]
        assert [lease.stream for lease in world.store.leases()] == [run.id]


# ---- what is its own ---------------------------------------------------------------------------------------------


def pages(world: World) -> Callable[[Run, str], list[str]]:
    def job(run: Run, what: str) -> list[str]:
        point = run.cursor()
        seen = [str(one) for one in point] if isinstance(point, list) else []
        while len(seen) < 3:
            seen.append(run.step("page", world.note, f"{what} {len(seen)}"))
            run.checkpoint([*seen])
            if world.calls == ["a 0", "a 1", "a 2", "b 0", "b 1"]:
                world.note("died")
                world.crash()
        return seen

    return job


def test_each_child_has_a_cursor_of_its_own(world: World) -> None:
    def program(run: Run) -> object:
        assert run.cursor("none") == "none", "a checkpoint of a child is none of its parent"
        return [run.child("a", pages(world), "a"), run.child("b", pages(world), "b")]

    with world.crashing(world.runtime.run("year", key="1")) as run:
        program(run)
    for _ in range(2):
        with world.runtime.run("year", key="1") as run:
            assert program(run) == [["a 0", "a 1", "a 2"], ["b 0", "b 1", "b 2"]]
    assert world.calls == ["a 0", "a 1", "a 2", "b 0", "b 1", "died", "b 2"]


def test_a_child_that_no_longer_asks_for_what_it_did_is_not_finished(world: World) -> None:
    def both(run: Run) -> None:
        run.step("customers", world.note, "customers")
        run.step("orders", world.note, "orders")
        world.crash()

    with world.crashing(world.runtime.run("year")) as run:
        run.child("load", both)
    with pytest.raises(RunBlocked, match="load/customers") as blocked, world.runtime.run("year") as run:
        run.child("load", lambda run: run.step("orders", world.note, "orders"))
    assert blocked.value.code == "needs_confirmation"
    (question,) = world.runtime.waiting(run.id)[1]
    assert question.child == "load"
    world.runtime.confirm(run.id, question.digest, yes=True)
    with world.runtime.run("year") as run:
        assert run.child("load", lambda run: run.step("orders", world.note, "orders")) == "orders"


def test_a_patch_is_decided_for_each_child(world: World) -> None:
    def old(run: Run) -> str:
        found = run.step("way", world.note, "old")
        world.crash()
        return found

    def new(run: Run) -> str:
        return run.step("new way", world.note, "new") if run.patched("new") else run.step("way", world.note, "old")

    with world.crashing(world.runtime.run("year")) as run:
        run.child("a", old)
    with world.runtime.run("year") as run:
        assert [run.child("a", new), run.child("b", new)] == ["old", "new"]


# ---- what it shares with its parent ------------------------------------------------------------------------------


def test_a_wait_of_a_child_shows_in_its_parent(world: World) -> None:
    def job(run: Run) -> object:
        return run.wait_for("paid")

    waiting = pytest.raises(RunWaiting, match=r"year@1 waits for the signal 'paid' in import")
    with waiting, impatient(world).run("year", key="1") as run:
        run.child("import", job)
    assert [wait.step for wait in world.runtime.state("year@1").open_waits] == ["import/wait for paid"]
    world.runtime.signal("year@1", "paid", 100)
    with impatient(world).run("year", key="1") as run:
        assert run.child("import", job) == 100


def test_a_question_of_a_child_shows_in_its_parent_and_names_it(world: World) -> None:
    def job(run: Run) -> str:
        run.confirm("Send?", {"to": "ann"})
        return "sent"

    with pytest.raises(RunBlocked, match=r"Send\?"), world.runtime.run("year", key="1") as run:
        run.child("import", job)
    (question,) = world.runtime.waiting("year@1")[1]
    assert (question.question, question.child) == ("Send?", "import")
    world.runtime.confirm("year@1", question.digest, yes=True)
    with world.runtime.run("year", key="1") as run:
        assert run.child("import", job) == "sent"


def cancelled_inside(world: World) -> Callable[[Run], str]:
    def job(run: Run) -> str:
        run.step("first", lambda: world.runtime.cancel(run.id, "no longer wanted"))
        world.clock.advance(1)
        return run.step("second", world.note, "second")

    return job


def test_a_child_is_cancelled_with_its_parent(world: World) -> None:
    with pytest.raises(RunCancelled), world.runtime.run("year") as run:
        run.child(cancelled_inside(world))
    assert world.calls == []


def test_a_child_may_come_to_its_end_before_its_cancelled_parent_stops(world: World) -> None:
    def program(run: Run) -> None:
        assert run.using(on_cancel="finish").child(cancelled_inside(world)) == "second"
        world.clock.advance(1)
        run.step("third", world.note, "third")

    with pytest.raises(RunCancelled), world.runtime.run("year") as run:
        program(run)
    assert world.calls == ["second"]
    assert world.runtime.state(run.id).status == "cancelled"


# ---- values for others to read -----------------------------------------------------------------------------------


def test_a_published_value_is_read_while_another_process_holds_the_run(world: World) -> None:
    with world.runtime.run("year") as run:
        assert world.runtime.query(run.id, "progress", "nothing yet") == "nothing yet"
        run.publish("progress", {"done": 1})
        run.publish("progress", {"done": 2})
        assert world.runtime.query(run.id, "progress") == {"done": 2}
        run.child("import", lambda run: run.publish("progress", 7))
        assert world.runtime.published(run.id) == {"progress": {"done": 2}, "import/progress": 7}


def test_a_later_attempt_publishes_nothing_a_second_time(world: World) -> None:
    def program(run: Run, last: int) -> None:
        for number in range(last):
            run.publish("progress", number)

    with world.crashing(world.runtime.run("year", key="1")) as run:
        program(run, 3)
        world.crash()
    with world.runtime.run("year", key="1") as run:
        program(run, 2)
        assert world.runtime.query(run.id, "progress") == 2, "the program has not come further than before"
        run.publish("progress", "third")
        run.publish("progress", "fourth")
    assert world.runtime.query("year@1", "progress") == "fourth"
    published = [event.type for event in world.store.read("year@1")].count("value.published")
    assert published == 4
    with world.runtime.run("year", key="1") as run:
        run.publish("progress", "of a finished run")
    assert world.runtime.query("year@1", "progress") == "fourth"


def test_a_value_with_a_secret_is_not_published(world: World) -> None:
    with world.crashing(world.runtime.run("year")) as run:
        with pytest.raises(RedactionFailed):
            run.publish("token", "ghp_" + "A" * 36)
        assert world.runtime.published(run.id) == {}


def test_a_fork_keeps_the_published_values(world: World) -> None:
    with world.crashing(world.runtime.run("year")) as run:
        run.publish("progress", 1)
        run.checkpoint(name="here")
        world.crash()
    assert world.runtime.query(world.runtime.fork(run.id, "here", key="again"), "progress") == 1
