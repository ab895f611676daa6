"""All kinds of clone, all mishaps of git, and stories of a team."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from clones.test_kinds import KINDS, same_answers
from clones.test_mishaps import MISHAPS, led_out
from clones.world import World
from proof.share import bounded, share
from simulation.story import tell
from simulation.team import Stage


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("clones"))


@pytest.fixture(scope="module")
def of_sha256(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_DEFAULT_HASH", "sha256")
        yield World(tmp_path_factory.mktemp("sha256"))


@pytest.mark.parametrize("name", share([name for name, kind in KINDS.items() if not kind.world]))
def test_a_clone_of_every_kind_answers_as_any_other(world: World, name: str) -> None:
    same_answers(world, name)


def test_a_clone_with_sha256_objects_answers_as_any_other(of_sha256: World) -> None:
    same_answers(of_sha256, "sha256")


@pytest.mark.parametrize("name", share(list(MISHAPS)))
def test_a_command_leads_out_of_every_mishap(world: World, name: str) -> None:
    led_out(world, name)


def test_stories_of_a_team_end_without_a_fault(tmp_path_factory: pytest.TempPathFactory) -> None:
    """For half a minute in CI, always the same ones, and for an hour at night, from a seed that is new each time."""
    seed = 0 if bounded() else time.time_ns() % 2**32
    end = time.monotonic() + (25 if bounded() else 3600)
    stage = Stage(tmp_path_factory.mktemp("stories"))
    while time.monotonic() < end:
        outcome = stage.play(tell(seed))
        assert not outcome.fault, str(outcome)
        seed += 1
