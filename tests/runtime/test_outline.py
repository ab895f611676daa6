"""A long run is opened from its outline: the events besides its finished steps. It behaves as if all had been read."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.run_uses import ASYNC_USES, USES, async_performed, lasting, performed
from runtime.test_replay import ended
from runtime.worlds import Crash, World
from workpacket.runtime import RunBlocked, Runtime, Settings
from workpacket.runtime.attempts import recorder as outline_module
from workpacket.runtime.attempts import recorder as recorder_module
from workpacket.runtime.attempts.recorder import FinishedSteps, keep_outline, outlined_state
from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.records.state import RunState, fold
from workpacket.runtime.run import Run
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore

RUN = "all@once"


class KeepingStore(MemoryStore):
    """A store in memory that keeps derived data."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.kept: dict[str, bytes] = {}

    def derived(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def keep_derived(self, name: str, content: bytes) -> None:
        self.kept[name] = content

    def events_at(self, stream: str, versions: Sequence[int]) -> list[Event]:
        return [event for event in self.read(stream) if event.version in versions]

    def stored_payloads(self, events: Iterable[Event]) -> dict[str, bytes]:
        found = ((event.payload, self._payloads.get(event.payload)) for event in events if event.payload)
        return {digest: stored for digest, stored in found if stored is not None}

    def ends(self, prefix: str = "") -> dict[str, str]:
        return {head.stream: head.hash for head in self.heads(prefix)}


def world_of(events: Sequence[Event], source: World, outlined: int) -> World:
    """A machine whose store holds these events, as after a kill, and an outline of the first `outlined` of them."""
    world = World(ask=lambda question, _: not question.startswith("No?"))
    world.store = store = KeepingStore(world.clock)
    world.ids = (f"{number + 10_000 * len(events):032x}" for number in range(1, 10_000))
    assert isinstance(source.store, MemoryStore)
    store.restore(events, [payload for payload in source.store._payloads.values() if payload is not None])
    world.clock.advance(60)
    keep_outline(store, fold(events[:outlined]), events[outlined - 1])
    assert outlined_state(store, RUN) is not None, "the outline is not used, so nothing is tested"
    return world


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read two events at a time, so that even a short run is read in several parts."""
    monkeypatch.setattr(outline_module, "BATCH", 2)


@pytest.mark.parametrize(("uses", "program"), [(USES, performed), (ASYNC_USES, async_performed)], ids=["sync", "async"])
@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(data=st.data())
def test_a_run_killed_anywhere_and_opened_from_an_outline_ends_with_the_same_answers(
    uses: Sequence[str], program: Callable[[World, Sequence[str]], dict[str, Any]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(list(uses)))
    whole = World(ask=lambda question, _: not question.startswith("No?"))
    first = program(whole, order)
    events = list(whole.store.read(RUN))
    kept = data.draw(st.integers(1, len(events)))
    world = world_of(events[:kept], whole, data.draw(st.integers(1, kept)))
    again = ended(program, world, order)
    assert lasting(again) == lasting(first)
    finished = list(world.store.read(RUN))
    assert program(world, order) == again
    assert list(world.store.read(RUN)) == finished


@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(data=st.data())
def test_the_state_from_an_outline_is_the_state_of_the_whole_log(data: st.DataObject) -> None:
    whole = World(ask=lambda question, _: not question.startswith("No?"))
    performed(whole, data.draw(st.permutations(list(USES))))
    events = list(whole.store.read(RUN))
    world = world_of(events, whole, data.draw(st.integers(1, len(events))))
    opened = outlined_state(world.store, RUN)
    assert opened is not None
    assert len(opened.steps) == len(fold(events).steps)
    assert opened == fold(events)


# ---- a run with many steps -----------------------------------------------------------------------------------------


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    monkeypatch.setattr(outline_module, "BATCH", 50)
    monkeypatch.setattr(recorder_module, "EVERY", 100)
    with Runtime.open(tmp_path / "runs.db", Settings(redactor=Redactor())) as opened:
        yield opened


def attempt(runtime: Runtime, program: Callable[[Run], object]) -> Any:
    """Run the program in an attempt that ends before its run does, as if the process were killed."""
    with suppress(Crash), runtime.run("long", key="one") as run:
        answer = program(run)
        raise Crash
    return answer


def loads(steps: int) -> Callable[[Run], list[Any]]:
    return lambda run: [load(run, number) for number in range(steps)]


def load(run: Run, number: int) -> Any:
    return run.step("load", lambda number: {"n": number}, number)


def opened(runtime: Runtime) -> RunState:
    state = outlined_state(runtime.store, "long@one")
    assert state is not None
    return state


def test_a_program_gets_each_result_again_and_goes_on(runtime: Runtime) -> None:
    attempt(runtime, loads(1000))
    assert isinstance(opened(runtime).steps, FinishedSteps)
    done: list[int] = []

    def note(number: int) -> dict[str, int]:
        done.append(number)
        return {"n": number}

    with runtime.run("long", key="one") as run:
        steps = run.state.steps
        assert isinstance(steps, FinishedSteps)
        assert [run.step("load", note, number) for number in range(1500)] == [{"n": number} for number in range(1500)]
        assert steps._all is None, "all steps were read at once, although they were asked for in their order"
        assert not any(steps._waiting.values())
        assert len(steps) == 1500
    assert done == list(range(1000, 1500))
    assert runtime.state("long@one").status == "completed"


def test_results_in_another_order_are_those_of_the_same_steps(runtime: Runtime) -> None:
    attempt(runtime, loads(300))

    def backwards(run: Run) -> list[Any]:
        called = [run.call("load", lambda number: {"n": number}, number) for number in range(300)]
        return [run._perform(call) for call in reversed(called)]

    assert attempt(runtime, backwards) == [{"n": number} for number in reversed(range(300))]


def test_too_many_steps_that_are_not_asked_for_are_all_read(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_module, "MOST_WAITING", 60)
    attempt(runtime, loads(300))

    def last_and_first(run: Run) -> list[Any]:
        called = [run.call("load", lambda number: {"n": number}, number) for number in range(300)]
        return [run._perform(called[299]), run._perform(called[0])]

    assert attempt(runtime, last_and_first) == [{"n": 299}, {"n": 0}]


def test_steps_in_parallel_threads_get_their_own_results(runtime: Runtime) -> None:
    def parallel(run: Run) -> list[Any]:
        return run.map("load", lambda number: {"n": number}, range(300), workers=8)

    first = attempt(runtime, parallel)
    attempt(runtime, loads(300))
    assert attempt(runtime, parallel) == first == [{"n": number} for number in range(300)]


def test_a_program_that_asks_for_less_is_asked_about_it(runtime: Runtime) -> None:
    attempt(runtime, loads(300))

    def less(run: Run) -> None:
        loads(299)(run)
        run.step("store", lambda: None)

    with pytest.raises(RunBlocked, match="no longer asks for load#300"):
        attempt(runtime, less)


def test_a_step_with_other_arguments_is_refused(runtime: Runtime) -> None:
    attempt(runtime, loads(300))
    with pytest.raises(RunBlocked, match="step load#200"):
        attempt(runtime, lambda run: [load(run, number if number != 199 else -1) for number in range(300)])


def test_a_step_that_is_done_again_finds_the_steps_in_it(runtime: Runtime) -> None:
    done: list[str] = []

    def program(version: str) -> Callable[[Run], None]:
        def body(run: Run) -> None:
            loads(200)(run)
            outer = run.using(version=version, changed="redo")
            outer.step("outer", lambda: [run.step("inner", done.append, str(number)) for number in range(3)])

        return body

    attempt(runtime, program("1"))
    attempt(runtime, program("2"))
    assert done == ["0", "1", "2"], "a step inside of the one that was done again was done again too"


def test_a_damaged_result_is_never_handed_out(runtime: Runtime) -> None:
    attempt(runtime, loads(300))
    assert isinstance(runtime.store, SQLiteStore)
    with runtime.store.access.writing as db:
        db.execute("UPDATE payloads SET bytes = CAST(replace(bytes, ':150}', ':151}') AS BLOB)")
    got: list[Any] = []
    with pytest.raises(LogDamaged, match="payload"):
        attempt(runtime, lambda run: got.extend(load(run, number) for number in range(300)))
    assert len(got) <= 150


def test_a_damaged_event_stops_the_program_before_its_step(runtime: Runtime) -> None:
    attempt(runtime, loads(300))
    assert isinstance(runtime.store, SQLiteStore)
    with runtime.store.access.writing as db:
        db.execute("DROP TRIGGER events_stay_as_they_are")
        db.execute("UPDATE events SET data = replace(data, '\"ms\":0', '\"ms\":1') WHERE position & 4294967295 = 150")
    with pytest.raises(LogDamaged):
        attempt(runtime, loads(300))
    assert runtime.plan("long@one").code == "log_damaged"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM derived",
        "UPDATE derived SET content = CAST(replace(content, '[', ' ') AS BLOB)",
        "UPDATE derived SET content = x'5b5d', digest = x'00'",
    ],
    ids=["lost", "changed", "replaced"],
)
def test_without_a_sound_outline_the_whole_log_is_read(runtime: Runtime, damage: str) -> None:
    expected = attempt(runtime, loads(300))
    assert isinstance(runtime.store, SQLiteStore)
    with runtime.store.access.writing as db:
        db.execute(damage)
    assert outlined_state(runtime.store, "long@one") is None
    assert attempt(runtime, loads(300)) == expected


def test_an_outline_of_another_log_is_not_used(runtime: Runtime, tmp_path: Path) -> None:
    attempt(runtime, loads(300))
    assert isinstance(runtime.store, SQLiteStore)
    content = runtime.store.derived("long@one")
    assert content is not None
    with Runtime.open(tmp_path / "other.db", Settings(redactor=Redactor())) as other:
        attempt(other, loads(300))
        assert isinstance(other.store, SQLiteStore)
        other.store.keep_derived("long@one", content)
        assert outlined_state(other.store, "long@one") is None


@pytest.mark.long
def test_memory_does_not_grow_with_the_finished_steps(runtime: Runtime) -> None:
    def after(steps: int) -> int:
        attempt(runtime, loads(steps))
        tracemalloc.start()

        def measured(run: Run) -> int:
            for number in range(steps):
                load(run, number)
            return tracemalloc.get_traced_memory()[0]

        try:
            taken: int = attempt(runtime, measured)
        finally:
            tracemalloc.stop()
        return taken

    few, many = after(500), after(3000)
    assert many < few + 100_000, f"{few} bytes after 500 steps, {many} after 3000"
