"""Runs as their authors see them: done once, resumed, refused when something changed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from runtime.worlds import World
from workpacket.runtime import NotDone, Retry, Run, RunBlocked, RunCancelled
from workpacket.runtime.errors import LeaseLost, StoreUnavailable, VersionConflict


@pytest.fixture
def world() -> World:
    return World()


def types(world: World, stream: str) -> list[str]:
    return [event.type for event in world.store.read(stream)]


def test_a_step_that_is_done_is_not_done_again_after_a_crash(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        assert run.step("fetch", world.note, "rows") == "rows"
        run.step("die", world.crash)
    with world.runtime.run("import") as run:
        assert run.attempt == 2
        assert run.step("fetch", world.note, "rows") == "rows"
        run.step("die", world.note, "went on")
    assert world.calls == ["rows", "went on"]


def test_the_step_that_was_in_flight_is_reported_as_possibly_repeated(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        run.step("first", world.note, "1")
        run.step("second", world.crash)
    with world.runtime.run("import") as run:
        run.step("first", world.note, "1")
        run.step("second", world.note, "2")
        run.step("third", world.note, "3")
        assert run.repeated == ("second",)
    events = list(world.store.read("import@00000001"))
    flagged = [e.values()["step"] for e in events if e.values().get("maybe_repeated")]
    assert flagged == ["second"]


def test_after_a_clean_stop_nothing_is_reported_as_repeated(world: World) -> None:
    def stopped(run: Run) -> None:
        run.step("first", world.note, "1")
        raise ValueError

    with pytest.raises(ValueError), world.runtime.run("import") as run:
        stopped(run)
    with world.runtime.run("import") as run:
        run.step("first", world.note, "1")
        run.step("second", world.note, "2")
        assert run.repeated == ()


def test_a_step_that_was_broken_off_by_a_person_is_reported_when_it_is_done_again(world: World) -> None:
    def interrupted() -> None:
        world.note("half")
        raise KeyboardInterrupt

    def work(run: Run) -> None:
        run.step("first", world.note, "1")
        run.step("second", interrupted)

    with pytest.raises(KeyboardInterrupt), world.runtime.run("import") as run:
        work(run)
    assert world.runtime.state(run.id).stop_code == "user_stopped"
    with world.runtime.run("import") as run:
        run.step("first", world.note, "1")
        run.step("second", world.note, "2")
        assert run.repeated == ("second",)


def test_a_step_whose_result_could_not_be_stored_is_reported_when_it_is_done_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any) -> Any:
        monkeypatch.undo()
        raise StoreUnavailable("the disk is full", code="disk_full")

    def work() -> None:
        monkeypatch.setattr(world.store, "append", full)

    with pytest.raises(StoreUnavailable), world.runtime.run("import") as run:
        run.step("work", work)
    state = world.runtime.state(run.id)
    assert (state.stop_code, state.in_flight) == ("disk_full", {"work"})
    with world.runtime.run("import") as run:
        run.step("work", world.note, "again")
        assert run.repeated == ("work",)
    assert world.runtime.state(run.id).in_flight == set()


def test_a_finished_run_is_followed_by_a_new_one(world: World) -> None:
    for number in (1, 2):
        with world.runtime.run("import") as run:
            assert run.id == f"import@{number:08d}"
            run.step("fetch", world.note, "rows")
    assert world.calls == ["rows", "rows"]


def test_a_keyed_run_is_done_once_for_good(world: World) -> None:
    for _ in range(3):
        with world.runtime.run("import", key="2026-10") as run:
            assert run.step("fetch", world.note, "rows") == "rows"
    assert world.calls == ["rows"]
    assert types(world, "import@2026-10") == ["run.started", "step.completed", "run.completed"]


def test_several_may_read_a_finished_run_at_the_same_time(world: World) -> None:
    with world.runtime.run("import", key="2026-10") as run:
        run.step("fetch", world.note, "rows")
    with world.runtime.run("import", key="2026-10") as one, world.runtime.run("import", key="2026-10") as other:
        assert one.step("fetch", world.note, "rows") == other.step("fetch", world.note, "rows") == "rows"
    assert world.calls == ["rows"]


def test_nothing_is_added_to_a_finished_run(world: World) -> None:
    with world.runtime.run("import", key="2026-10") as run:
        run.step("fetch", world.note, "rows")
        run.checkpoint("middle")
    version = run.state.version
    for act in ("step", "effect"):
        with world.runtime.run("import", key="2026-10") as run:
            run.checkpoint("middle")
            with pytest.raises(RunBlocked, match="is finished"):
                getattr(run, act)("more", world.note, "more")
    assert world.calls == ["rows"]
    assert world.runtime.state(run.id).version == version


def test_a_loop_counts_its_steps(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        for item in ("a", "b"):
            run.step("load", world.note, item)
        run.step("load", world.crash)
    with world.runtime.run("import") as run:
        assert [run.using(changed="redo").step("load", world.note, item) for item in ("a", "b", "c")] == ["a", "b", "c"]
        assert list(run.state.steps) == ["load", "load#2", "load#3"]
    assert world.calls == ["a", "b", "c"]


def test_a_nested_step_is_stored_though_its_parent_is_not(world: World) -> None:
    def outer(run: Any, *, die: bool) -> str:
        inner = run.step("inner", world.note, "inner")
        if die:
            world.crash()
        return f"outer of {inner}"

    with world.crashing(world.runtime.run("nest")) as run:
        run.step("outer", outer, run, die=True)
    with world.runtime.run("nest") as run:
        assert run.using(changed="redo").step("outer", outer, run, die=False) == "outer of inner"
    assert world.calls == ["inner"]


def test_steps_side_by_side_keep_their_order_and_are_each_done_once(world: World) -> None:
    with world.crashing(world.runtime.run("side")) as run:
        assert run.map("load", world.note, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
        world.crash()
    with world.runtime.run("side") as run:
        assert run.map("load", world.note, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
    assert sorted(world.calls) == ["a", "b", "c", "d"]


def test_each_step_of_an_interrupted_gather_may_have_been_in_flight(world: World) -> None:
    with world.crashing(world.runtime.run("side")) as run:
        run.gather(run.call("a", world.crash), run.call("b", world.crash), workers=1)
    with world.runtime.run("side") as run:
        run.gather(run.call("a", world.note, "a"), run.call("b", world.note, "b"))
        assert sorted(run.repeated) == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        ({"inputs": {"month": "2026-11"}}, "inputs_changed", "month"),
        ({"inputs": {"month": "2026-10", "more": 1}}, "inputs_changed", "more"),
        ({"code_version": "2"}, "code_changed", "'1' -> '2'"),
        ({"scope": ["src", "docs"]}, "scope_widened", "docs"),
        ({"scope": []}, "scope_widened", "no scope"),
        ({"repository": "other"}, "identity_changed", "other"),
        ({"checkpoint": "nowhere"}, "checkpoint_missing", "nowhere"),
        ({"retry_token": "made up"}, "checkpoint_missing", "token"),
    ],
)
def test_what_changed_since_the_run_began_is_named(world: World, change: dict[str, Any], code: str, named: str) -> None:
    request: dict[str, Any] = {
        "inputs": {"month": "2026-10"}, "code_version": "1", "scope": ["src"], "repository": "root",
    }  # fmt: skip
    with world.crashing(world.runtime.run("import", **request)) as run:
        run.step("die", world.crash)
    with pytest.raises(RunBlocked, match=named) as caught:
        world.runtime.run("import", **(request | change))
    assert caught.value.code == code
    assert types(world, "import@00000001")[-1] == "run.blocked"


def test_a_confirmed_difference_lets_the_run_go_on_and_no_other_one(world: World) -> None:
    with world.crashing(world.runtime.run("import", inputs={"month": 10})) as run:
        world.crash()
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", inputs={"month": 11})
    world.runtime.confirm("import@00000001", str(caught.value.details["subject"]), yes=True)
    with pytest.raises(RunBlocked):
        world.runtime.run("import", inputs={"month": 12})
    with world.runtime.run("import", inputs={"month": 11}) as run:
        assert run.attempt == 2


def test_what_was_confirmed_is_what_is_recorded_from_then_on(world: World) -> None:
    world.ask = lambda _, __: True
    for repository, month in (("here", 10), ("there", 11)):
        with world.crashing(world.runtime.run("import", inputs={"month": month}, repository=repository)):
            world.crash()
    world.ask = None
    with world.runtime.run("import", inputs={"month": 11}, repository="there") as run:
        assert run.attempt == 3


def test_changed_inputs_are_shown_old_and_new_unless_they_are_sensitive(world: World) -> None:
    old: dict[str, Any] = {"month": 10, "db_password": "old one", "note": "x ghp_" + "A" * 36, "gone": 1}
    new: dict[str, Any] = {"month": 11, "db_password": "new one", "note": "y ghp_" + "B" * 36, "came": 2}
    with world.crashing(world.runtime.run("import", inputs=old)):
        world.crash()
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", inputs=new)
    assert caught.value.details["changes"] == {
        "month": {"old": 10, "new": 11},
        "db_password": {"old": "[not shown]", "new": "[not shown]"},
        "note": {"old": "x [redacted:github-token]", "new": "y [redacted:github-token]"},
        "gone": {"old": 1},
        "came": {"new": 2},
    }
    (begin,) = world.store.read("import@00000001", 0, 1)
    assert b"old one" not in (world.store.payload(begin) or b"")
    world.runtime.purge("import@00000001", 1, "personal data")
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", inputs=old | {"month": 12})
    assert caught.value.details["changes"] == {"month": {"new": 12}}


def test_a_denied_difference_blocks(world: World) -> None:
    with world.crashing(world.runtime.run("import", inputs={"month": 10})):
        world.crash()
    world.ask = lambda _, __: False
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", inputs={"month": 11})
    assert caught.value.code == "confirmation_denied"


def test_the_person_at_the_terminal_is_asked(world: World) -> None:
    with world.crashing(world.runtime.run("import", inputs={"month": 10})):
        world.crash()
    asked: list[str] = []

    def ask(question: str, _: str) -> bool:
        asked.append(question)
        return True

    world.ask = ask
    with world.runtime.run("import", inputs={"month": 11}) as run:
        assert run.attempt == 2
    assert "inputs_changed: month" in asked[0]


def test_a_step_called_with_other_arguments_is_refused_by_name(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        run.step("fetch", world.note, what="a")
        world.crash()
    with pytest.raises(RunBlocked, match=r"fetch.*argument 'what'") as caught, world.runtime.run("import") as run:
        run.step("fetch", world.note, what="b")
    assert caught.value.code == "step_changed"
    with world.runtime.run("import") as run:
        assert run.using(changed="redo").step("fetch", world.note, what="b") == "b"
        assert run.using(changed="redo").step("other", world.note, what="c") == "c"


def test_a_step_of_another_version_is_refused(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        run.using(version="1").step("fetch", world.note, what="a")
        world.crash()
    with pytest.raises(RunBlocked, match="version '1' -> '2'"), world.runtime.run("import") as run:
        run.using(version="2").step("fetch", world.note, what="a")


def test_the_cursor_of_the_last_checkpoint_is_where_the_loop_goes_on(world: World) -> None:
    def program() -> None:
        with world.crashing(world.runtime.run("stream")) as run:
            run.step("prepare", world.note, "prepare")
            start = run.cursor(0)
            assert isinstance(start, int)
            for offset in range(start, 4):
                run.step("chunk", world.note, f"chunk {offset}")
                run.checkpoint(offset + 1)
                if offset == 1 and run.attempt == 1:
                    world.crash()

    program()
    program()
    assert world.calls == ["prepare", "chunk 0", "chunk 1", "chunk 2", "chunk 3"]


def test_a_retry_token_is_good_for_one_attempt(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        token = run.checkpoint("here", token=True).token
        world.crash()
    with world.crashing(world.runtime.run("import", retry_token=token)):
        world.crash()
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", retry_token=token)
    assert caught.value.code == "retry_token_spent"


def test_a_token_of_a_run_that_does_not_exist_never_starts_afresh(world: World) -> None:
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import", retry_token="made up")
    assert caught.value.code == "checkpoint_missing"
    assert world.store.heads() == ()


def test_a_failing_step_is_tried_again_as_its_policy_says(world: World) -> None:
    def flaky() -> str:
        world.note("try")
        if len(world.calls) < 3:
            raise OSError("not yet")
        return "done"

    before = world.clock.ticks()
    with world.runtime.run("import") as run:
        assert run.using(retry=Retry(attempts=3, first=1, factor=2)).step("load", flaky) == "done"
    assert world.clock.ticks() - before >= 3
    failures = [e.values() for e in world.store.read("import@00000001") if e.type == "step.failed"]
    assert [(f["try"], f["final"], f["error"]) for f in failures] == [
        (1, False, "OSError: not yet"),
        (2, False, "OSError: not yet"),
    ]


def test_after_the_last_try_the_error_itself_comes_out_and_the_run_can_go_on(world: World) -> None:
    def broken() -> str:
        raise KeyError("x")

    with pytest.raises(KeyError), world.runtime.run("import") as run:
        run.using(retry=Retry(attempts=2, first=0.1)).step("load", broken)
    state = world.runtime.state("import@00000001")
    assert (state.status, state.stop_code) == ("stopped", "worker_failed")
    with world.runtime.run("import") as run:
        assert run.step("load", world.note, "mended") == "mended"


def test_a_cancelled_run_ends_at_the_next_boundary_and_can_be_resumed_in_so_many_words(world: World) -> None:
    def load(run: Run) -> None:
        for number in run.boundary(range(5)):
            run.step("load", world.note, str(number))
            if number == 1:
                world.runtime.cancel(run.id, "enough")

    with pytest.raises(RunCancelled, match="enough"), world.runtime.run("import") as run:
        load(run)
    assert world.calls == ["0", "1"]
    with pytest.raises(RunBlocked) as caught:
        world.runtime.run("import")
    assert caught.value.code == "run_cancelled"
    world.runtime.confirm("import@00000001", str(caught.value.details["subject"]), yes=True)
    with world.runtime.run("import") as run:
        for number in run.boundary(range(5)):
            run.step("load", world.note, str(number))
    assert world.calls == ["0", "1", "2", "3", "4"]


def test_a_run_nobody_works_on_is_cancelled_at_once(world: World) -> None:
    with world.crashing(world.runtime.run("import")):
        world.crash()
    world.runtime.cancel("import@00000001", "not needed")
    assert world.runtime.state("import@00000001").status == "cancelled"
    with world.runtime.run("import", fresh=True) as run:
        assert run.id == "import@00000002"


def test_two_processes_do_not_work_on_one_run(world: World) -> None:
    with world.runtime.run("import"):
        with pytest.raises(RunBlocked) as caught:
            world.runtime.run("import")
        assert caught.value.code == "run_busy"


def test_a_process_whose_lease_ended_cannot_write(world: World) -> None:
    run = world.runtime.run("import")
    run._session._over.set()
    world.clock.advance(60)
    with pytest.raises(LeaseLost):
        run.step("late", world.note, "late")
    assert types(world, run.id) == ["run.started"]


def test_a_question_waits_for_its_answer_across_attempts(world: World) -> None:
    with pytest.raises(RunBlocked) as caught, world.runtime.run("deploy") as run:
        run.confirm("Deploy?", {"to": "production"})
    assert caught.value.code == "needs_confirmation"
    world.runtime.confirm("deploy@00000001", str(caught.value.details["subject"]), yes=True)

    def deploys_twice() -> None:
        with world.runtime.run("deploy") as run:
            run.confirm("Deploy?", {"to": "production"})
            run.confirm("Deploy?", {"to": "another place"})

    with pytest.raises(RunBlocked, match="another place"):
        deploys_twice()


def test_the_budget_of_steps_ends_the_run_and_can_be_raised(world: World) -> None:
    def load(run: Run) -> None:
        for number in range(3):
            run.step("load", world.note, str(number))

    with pytest.raises(RunBlocked) as caught, world.runtime.run("import", steps=2) as run:
        load(run)
    assert caught.value.code == "max_ticks"
    with pytest.raises(RunBlocked) as again:
        world.runtime.run("import", steps=2)
    assert again.value.code == "max_ticks"
    with world.runtime.run("import", steps=3) as run:
        for number in range(3):
            run.step("load", world.note, str(number))


@pytest.mark.parametrize(
    ("value", "place"),
    [((1, 2), "/: tuple"), ({"a": [{1}]}, "/a/0: set"), ({"x": float("nan")}, "/x: nan"), (2**60, "/: the integer")],
)
def test_a_result_that_would_come_back_as_something_else_is_refused(world: World, value: object, place: str) -> None:
    with pytest.raises(TypeError, match=place), world.runtime.run("import") as run:
        run.step("load", lambda: value)


def test_a_result_comes_back_exactly_as_it_was(world: World) -> None:
    value = {"b": 1.0, "a": -0.0, "z": [1e300, True, None, "ü\U0001f600"]}
    with world.crashing(world.runtime.run("import")) as run:
        first = run.step("load", lambda: value)
        world.crash()
    with world.runtime.run("import") as run:
        assert repr(run.step("load", lambda: first)) == repr(value)


def test_a_fork_goes_on_from_the_checkpoint_without_repeating_anything(world: World) -> None:
    with world.runtime.run("import", inputs={"month": 10}) as run:
        run.step("fetch", world.note, "rows")
        run.effect("mail", world.note, "mail")
        run.effect("bill", world.note, "bill", key="bill-10")
        run.checkpoint("middle", name="m1")
        run.step("late", world.note, "late")
    stream = world.runtime.fork(run.id, "m1", key="second-try")
    with world.runtime.run("import", key="second-try", inputs={"month": 10}) as run:
        assert run.id == stream
        assert run.cursor() == "middle"
    with world.runtime.run("import", key="second-try", inputs={"month": 10}) as run:
        pass
    assert world.calls == ["rows", "mail", "bill", "late"]


def test_forked_steps_and_effects_are_stored(world: World) -> None:
    with world.runtime.run("import") as run:
        run.step("fetch", world.note, "rows")
        run.effect("mail", world.note, "mail")
        run.effect("bill", world.note, "bill", key="bill-10")
        run.checkpoint("middle", name="m1")
    world.runtime.fork(run.id, "m1", key="b")
    with world.runtime.run("import", key="b") as run:
        run.step("fetch", world.note, "rows")
        run.effect("mail", world.note, "mail")
        run.effect("bill", world.note, "bill", key="bill-10")
        run.step("more", world.note, "more")
    assert world.calls == ["rows", "mail", "bill", "more"]


def test_the_state_at_a_checkpoint_can_be_looked_at(world: World) -> None:
    with world.runtime.run("import") as run:
        run.step("first", world.note, "1")
        run.checkpoint(name="m1")
        run.step("second", world.note, "2")
    assert set(world.runtime.state(run.id, at="m1").steps) == {"first"}
    assert set(world.runtime.state(run.id).steps) == {"first", "second"}


def test_a_purged_result_blocks_and_can_be_done_again(world: World) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        run.step("fetch", world.note, "rows")
        world.crash()
    assert world.runtime.purge("import@00000001", 2, "personal data")
    with pytest.raises(Exception, match="erased"), world.runtime.run("import") as run:
        run.step("fetch", world.note, "rows")
    assert "payload.erased" in types(world, "import@00000001")
    with world.runtime.run("import") as run:
        assert run.using(changed="redo").step("fetch", world.note, "rows") == "rows"
    assert world.calls == ["rows", "rows"]


def test_planning_writes_nothing(world: World) -> None:
    with world.crashing(world.runtime.run("import", inputs={"a": 1})):
        world.crash()
    before = types(world, "import@00000001")
    decision = world.runtime.plan("import@00000001", "import", inputs={"a": 2})
    assert (decision.action, decision.code) == ("CONFIRM", "inputs_changed")
    assert types(world, "import@00000001") == before


def test_an_effect_raising_not_done_may_be_tried_again(world: World) -> None:
    def send() -> str:
        world.note("send")
        if len(world.calls) == 1:
            raise NotDone("queue full")
        return "receipt"

    with world.runtime.run("mail") as run:
        assert run.using(retry=Retry(attempts=2, first=0.1)).effect("send", send) == "receipt"
        assert run.repeated == ()


def test_the_number_of_a_run_that_was_removed_is_not_given_again() -> None:
    world = World()
    with world.runtime.run("a", fresh=True):
        pass
    with world.runtime.run("a", fresh=True):
        pass
    removed = world.runtime.prune(world.clock.now() + 1)
    assert removed == ("a@00000001", "a@00000002")
    with world.runtime.run("a") as run:
        assert run.id == "a@00000003"


def test_the_key_of_a_run_that_was_removed_is_refused_by_name() -> None:
    world = World()
    with world.runtime.run("a", key="once"):
        pass
    world.runtime.prune(world.clock.now() + 1)
    with pytest.raises(VersionConflict) as caught:
        world.runtime.run("a", key="once")
    assert (caught.value.code, caught.value.hint[:8]) == ("key_conflict", "give the")


def test_side_by_side_what_failed_can_stand_beside_what_did_not(world: World) -> None:
    failing = {"b"}

    def load(name: str) -> str:
        if name in failing:
            raise OSError(f"{name} is not there")
        return world.note(name)

    def work(run: Run) -> list[str | Exception]:
        return run.map("load", load, ["a", "b", "c"], errors="return")

    with world.crashing(world.runtime.run("side")) as run:
        a, b, c = work(run)
        assert (a, str(b), c) == ("a", "b is not there", "c")
        world.crash()
    failing.clear()
    with world.runtime.run("side", key="") as run:
        assert work(run) == ["a", "b", "c"]
    assert world.calls == ["a", "c", "b"]


def test_what_stops_the_run_is_never_handed_back_as_a_result(world: World) -> None:
    def ask(name: str) -> None:
        run.confirm(f"go on with {name}?")

    with pytest.raises(RunBlocked), world.runtime.run("side") as run:
        run.map("ask", ask, ["a", "b"], errors="return")


def test_a_finished_run_returns_the_same_failures(world: World) -> None:
    def load(name: str) -> str:
        if name == "b":
            raise OSError(f"{name} is not there")
        return name

    def work() -> list[str]:
        with world.runtime.run("side", key="1") as run:
            return [str(one) for one in run.map("load", load, ["a", "b"], errors="return")]

    assert work() == work() == ["a", "b is not there"]


@pytest.mark.parametrize("named", [{"key": "may"}, {"begun_as": "elsewhere"}])
def test_a_run_that_is_named_is_not_begun_afresh(world: World, named: Any) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"omit fresh, or choose another key"):
            world.runtime.run("import", fresh=True, **named)
        with world.runtime.run("import", **named) as run:
            assert run.step("fetch", world.note, "rows") == "rows"
    assert world.calls == ["rows"]


def killed_in_step_one(world: World, program: Any) -> None:
    with world.crashing(world.runtime.run("import")) as run:
        program(run, world.crash)


def test_a_step_after_the_one_that_was_in_progress_is_not_reported(world: World) -> None:
    """The second attempt repeats the first step and is stopped by a question; the second step was never begun."""

    def program(run: Run, one: Any) -> tuple[str, ...]:
        run.step("one", one)
        run.confirm("go on?")
        run.step("two", world.note, "two")
        run.step("three", world.note, "three")
        return run.repeated

    killed_in_step_one(world, program)

    def again(run: Run) -> tuple[str, ...]:
        return program(run, lambda: world.note("one"))

    with pytest.raises(RunBlocked), world.runtime.run("import") as run:
        again(run)
    (question,) = world.runtime.waiting("import@00000001")[1]
    world.runtime.confirm("import@00000001", question.digest, yes=True)
    with world.runtime.run("import") as run:
        assert again(run) == ("one",)
    assert world.calls == ["one", "two", "three"]
    flagged = [e.values()["step"] for e in world.store.read("import@00000001") if e.values().get("maybe_repeated")]
    assert flagged == ["one"]


@pytest.mark.parametrize("recovery", ["manual", "keyed", "probe"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_step_after_an_effect_that_was_killed_is_not_reported(world: World, recovery: Any, inside: bool) -> None:
    def work(run: Run, act: Any) -> None:
        run.effect("send", act, recovery=recovery, probe=lambda: "found")
        run.step("after", world.note, "after")

    def program(run: Run, act: Any) -> tuple[str, ...]:
        if inside:
            run.step("outer", work, run, act)
        else:
            work(run, act)
        return run.repeated

    killed_in_step_one(world, program)
    if recovery == "manual":
        (record,) = world.runtime.state("import@00000001").unknown_effects
        world.runtime.settle("import@00000001", record.effect, "mark_done")
    with world.runtime.run("import") as run:
        found = program(run, lambda: world.note("sent"))
    send = "outer/send" if inside else "send"
    expected = {"outer"} if inside else set()
    assert set(found) == expected | ({send} if recovery == "keyed" else set())


def test_a_step_after_an_effect_that_the_program_gave_up_is_reported(world: World) -> None:
    def cut() -> None:
        raise KeyboardInterrupt

    def program(run: Run, act: Any, step: Any) -> tuple[str, ...]:
        with suppress(KeyboardInterrupt):
            run.effect("send", act, recovery="keyed")
        run.step("after", step)
        return run.repeated

    with world.crashing(world.runtime.run("import")) as run:
        program(run, cut, world.crash)
    with world.runtime.run("import") as run:
        assert program(run, lambda: None, lambda: None) == ("after", "send")


def test_steps_beside_each_other_stay_in_doubt_until_each_is_done(world: World) -> None:
    with world.crashing(world.runtime.run("side")) as run:
        run.gather(run.call("a", world.crash), run.call("b", world.crash), workers=1)

    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError), world.runtime.run("side") as run:
        run.gather(run.call("a", fails), run.call("b", world.note, "b"), workers=1)
    with world.runtime.run("side") as run:
        run.gather(run.call("a", world.note, "a"), run.call("b", world.note, "b"), workers=1)
        assert run.repeated == ("a", "b")


def test_every_repeated_step_of_the_run_is_reported_and_again_when_it_is_finished(world: World) -> None:
    def program(run: Run, dies: str) -> tuple[str, ...]:
        for name in ("one", "two", "three"):
            run.step(name, world.crash if name == dies else lambda: None)
        return run.repeated

    for dies in ("one", "two", "three"):
        with world.crashing(world.runtime.run("import", key="k")) as run:
            program(run, dies)
    for _ in range(2):
        with world.runtime.run("import", key="k") as run:
            assert program(run, "") == ("one", "three", "two")


def test_another_try_in_the_same_attempt_is_not_reported(world: World) -> None:
    def flaky() -> str:
        if len(world.calls) < 2:
            world.note("try")
            raise TimeoutError
        return "receipt"

    for _ in range(2):
        with world.runtime.run("mail", key="k") as run:
            retrying = run.using(retry=Retry(attempts=3, first=0.01))
            assert retrying.effect("send", flaky, key="x", recovery="keyed") == "receipt"
            assert run.repeated == ()


def test_a_caught_failure_that_is_tried_again_and_killed_is_reported(world: World) -> None:
    def fails() -> None:
        raise ValueError

    def program(run: Run, one: Any, act: Any) -> tuple[str, ...]:
        with suppress(ValueError):
            run.step("one", one)
        run.effect("send", act, recovery="keyed")
        return run.repeated

    with world.crashing(world.runtime.run("import")) as run:
        program(run, fails, world.crash)
    with world.crashing(world.runtime.run("import")) as run:
        program(run, world.crash, lambda: None)
    with world.runtime.run("import") as run:
        assert program(run, lambda: None, lambda: None) == ("one", "send")


def test_steps_in_a_step_that_was_never_begun_are_not_reported(world: World) -> None:
    def outer(run: Run) -> None:
        run.step("inner", world.note, "inner")

    def program(run: Run, act: Any) -> tuple[str, ...]:
        run.step("one", act)
        run.step("outer", outer, run)
        return run.repeated

    killed_in_step_one(world, program)
    with world.runtime.run("import") as run:
        assert program(run, lambda: None) == ("one",)
