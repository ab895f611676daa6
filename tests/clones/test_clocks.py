"""An event from a clock that was wrong stops nobody once the base has it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from clones.world import Kind, World
from workpacket.lifecycle.gates import lease_held

ORDINARY = Kind("ordinary", "an ordinary clone", ("git clone -q $HUB $CLONE",))
WRONG = {
    "a year behind": timedelta(days=-365),
    "ten minutes behind": timedelta(minutes=-10),
    "ten minutes ahead": timedelta(minutes=10),
    "a year ahead": timedelta(days=365),
    "in 2038": timedelta(days=365 * 12),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("clocks"))


@pytest.mark.share(9)
@pytest.mark.parametrize("by", WRONG.values(), ids=WRONG)
def test_a_claim_from_a_wrong_clock_stops_nobody_once_it_is_on_the_base(world: World, by: timedelta) -> None:
    with world.clone(ORDINARY) as clone:
        right = clone.clock.now
        clone.clock.now = right + by
        assert clone.run("claim", clone.names["READY"], "--as", "coder").status == 0
        clone.shell("git add -A && git commit -q -m claimed && git update-ref refs/remotes/origin/main HEAD")
        clone.clock.now = right
        noted = clone.run("packet", "note", clone.names["READY"], "Go on.", "--as", "ann")
        assert noted.status == 0, noted
        assert ("the clock of the machine that wrote it was ahead" in noted.out) == (by > timedelta())
        assert clone.run("check").status == 0
        assert clone.run("log", "verify").status == 0


def test_an_event_from_a_clock_ahead_that_is_not_on_the_base_is_refused(world: World) -> None:
    with world.clone(ORDINARY) as clone:
        right = clone.clock.now
        clone.clock.now = right + timedelta(days=365)
        assert clone.run("claim", clone.names["READY"], "--as", "coder").status == 0
        clone.shell("git add -A && git commit -q -m claimed")
        clone.clock.now = right
        assert "clock_behind" in clone.run("packet", "note", clone.names["READY"], "No.", "--as", "ann").err
        assert "event_ahead" in clone.run("check", "--base", "origin/main").out


def test_a_lease_from_a_clock_ahead_holds_nothing(world: World) -> None:
    with world.clone(ORDINARY) as clone:
        name = clone.names["READY"]
        clone.clock.now += timedelta(days=365)
        assert clone.run("claim", name, "--as", "coder").status == 0
        state = clone.state(name)
        assert lease_held(state, f"{clone.clock.now:%Y-%m-%dT%H:%M:%SZ}") == "coder"
        assert lease_held(state, "2026-03-02T00:00:00Z") == ""
