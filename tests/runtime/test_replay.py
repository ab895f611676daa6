"""A finished run that is asked again gives the same answers and writes nothing; so does one killed anywhere on the way.

`run_uses` has a use of each public method. A method without one fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.run_uses import ASYNC_USES, USES, async_performed, lasting, performed
from runtime.worlds import World
from workpacket.runtime.async_run import AsyncRun
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.events import Event
from workpacket.runtime.run import Run
from workpacket.runtime.stores.memory import MemoryStore

RUN = "all@once"
Performed = Callable[[World, Sequence[str]], dict[str, Any]]
FACES: tuple[tuple[type, Sequence[str], Performed], ...] = (
    (Run, tuple(USES), performed),
    (AsyncRun, tuple(ASYNC_USES), async_performed),
)
BOTH = pytest.mark.parametrize(("face", "uses", "program"), FACES, ids=["sync", "async"])
# What is no call of its own: they are asked in every program.
IN_EVERY_PROGRAM = {"attempt", "repeated"}


def answering(question: str, _: str) -> bool:
    return not question.startswith("No?")


def world_of(events: Sequence[Event] = (), source: World | None = None) -> World:
    """A machine whose store holds these events, as after a kill behind the last of them."""
    world = World(ask=answering)
    world.ids = (f"{number:032x}" for number in count(1 + 10_000 * len(events)))
    if source is not None:
        assert isinstance(source.store, MemoryStore)
        payloads = [payload for payload in source.store._payloads.values() if payload is not None]
        world.store.restore(events, payloads)
        world.clock.advance(60)
    return world


def events_of(world: World) -> list[Event]:
    return list(world.store.read(RUN))


def ended(program: Performed, world: World, uses: Sequence[str]) -> dict[str, Any]:
    """The program started again until it ends, by a person who knows that what is in doubt did not happen."""
    try:
        return program(world, uses)
    except RunBlocked as blocked:
        if blocked.code != "effect_outcome_unknown":
            raise
        for effect in world.runtime.state(RUN).unknown_effects:
            world.runtime.settle(RUN, effect.effect, "retry")
        return program(world, uses)


@BOTH
def test_each_public_method_has_a_use(face: type, uses: Sequence[str], program: Performed) -> None:
    public = {name for name in dir(face) if not name.startswith("_")}
    assert public - IN_EVERY_PROGRAM == {name.split()[0] for name in uses}


@pytest.mark.parametrize(
    ("program", "use"),
    [(program, use) for _, uses, program in FACES for use in uses],
    ids=[f"{face.__name__}-{use}" for face, uses, _ in FACES for use in uses],
)
def test_a_finished_run_gives_each_answer_again_and_writes_nothing(program: Performed, use: str) -> None:
    world = world_of()
    first = program(world, [use])
    before = events_of(world)
    assert [program(world, [use]), program(world, [use])] == [first, first]
    assert events_of(world) == before


@BOTH
@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(data=st.data())
def test_a_run_killed_between_any_two_records_ends_with_the_same_answers(
    face: type, uses: Sequence[str], program: Performed, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(uses))
    whole = world_of()
    first = program(whole, order)
    events = events_of(whole)
    for kept in data.draw(st.sets(st.integers(1, len(events)), min_size=1, max_size=4)):
        world = world_of(events[:kept], whole)
        again = ended(program, world, order)
        assert lasting(again) == lasting(first)
        finished = events_of(world)
        assert program(world, order) == again
        assert events_of(world) == finished


@pytest.mark.long
@BOTH
def test_a_kill_behind_each_record_of_a_run_with_every_method(
    face: type, uses: Sequence[str], program: Performed
) -> None:
    whole = world_of()
    first = program(whole, uses)
    events = events_of(whole)
    different = {}
    for kept in range(1, len(events) + 1):
        world = world_of(events[:kept], whole)
        again = ended(program, world, uses)
        finished = events_of(world)
        if lasting(again) != lasting(first) or program(world, uses) != again or events_of(world) != finished:
            different[kept] = events[kept - 1].type
    assert different == {}


def test_what_a_finished_run_never_did_is_refused_and_writes_nothing() -> None:
    world = world_of()
    performed(world, ["step"])
    before = events_of(world)
    with pytest.raises(RunBlocked, match="is finished"), world.runtime.run("all", key="once") as run:
        run.effect("new", world.note, "new", confirm=True)
    with pytest.raises(RunBlocked, match="is finished"), world.runtime.run("all", key="once") as run:
        run.confirm("Never asked?")
    with pytest.raises(RunBlocked, match="is finished"), world.runtime.run("all", key="once") as run:
        run.checkpoint("never made")
    assert events_of(world) == before


def test_a_finished_run_gives_no_results_for_other_inputs() -> None:
    world = World()
    with world.runtime.run("report", key="monthly", inputs={"month": 1, "of": "ann"}) as run:
        assert run.step("write", lambda: world.note("January")) == "January"
    with pytest.raises(RunBlocked, match="different values for month") as refused:
        world.runtime.run("report", key="monthly", inputs={"month": 2, "of": "ann"})
    assert refused.value.code == "inputs_changed"
    for again in (world.runtime.run("report", key="monthly", inputs={"of": "ann", "month": 1.0}),
                  world.runtime.resume("report@monthly")):  # fmt: skip
        with again as run:
            assert run.step("write", lambda: world.note("February")) == "January"
    assert world.calls == ["January"]
