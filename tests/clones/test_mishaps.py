"""For everything that git did to the log there is a command that leads out, and a command that names it.

Here are a few mishaps; all of them are in the proofs (tests/proof/clones).
"""

from __future__ import annotations

import random
import time

import pytest

from clones.world import Kind, World, read_mishaps

MISHAPS = {mishap.id: mishap for mishap in read_mishaps()}
HERE = ("revert-claim", "revert-landing", "stash-untracked", "reflog-expired", "merge-ours", "event-edited-committed")
ORDINARY = Kind("ordinary", "an ordinary clone", ("git clone -q $HUB $CLONE",))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("mishaps"))


@pytest.mark.share(8)
@pytest.mark.parametrize("name", HERE)
def test_a_command_leads_out_of_this_mishap(world: World, name: str) -> None:
    led_out(world, name)


def test_a_command_leads_out_of_some_mishap(world: World) -> None:
    seed = time.time_ns()
    name = random.Random(seed).choice(list(MISHAPS))
    print(f"{name} (seed {seed})")
    led_out(world, name)


def test_the_list_has_the_forty_mishaps_and_more_and_no_name_twice() -> None:
    assert len(read_mishaps()) == len(MISHAPS) == 56


def test_what_is_brought_back_is_shown_before_and_only_that_of_the_packet_named(world: World) -> None:
    with world.clone(ORDINARY) as clone:
        for line in ("workpacket claim $READY --as coder", "git add -A && git commit -q -m claimed"):
            clone.step(line)
        clone.shell("git reset -q --hard HEAD~1")
        before = clone.shell("git status --porcelain")
        shown = clone.run("log", "recover")
        assert "no branch has it" in shown.out
        assert shown.out.endswith("next: workpacket log recover --write\n")
        assert clone.shell("git status --porcelain") == before
        other = clone.run("log", "recover", clone.names["LANDED"], "--write")
        assert "no events in git are missing here" in other.out
        assert clone.run("log", "recover", clone.names["READY"], "--write").status == 0
        assert ".GOV/log/" in clone.shell("git status --porcelain")


def test_an_event_on_another_branch_is_not_lost(world: World) -> None:
    with world.clone(ORDINARY) as clone:
        clone.shell("git switch -q -c side")
        clone.step("workpacket claim $READY --as coder")
        clone.shell("git add -A && git commit -q -m claimed && git switch -q main")
        assert "no events in git are missing" in clone.run("log", "recover").out


def led_out(world: World, name: str) -> None:
    with world.clone(ORDINARY) as clone:
        assert clone.play(MISHAPS[name]) == []
