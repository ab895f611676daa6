"""All kinds of clone, and all mishaps of git."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clones.test_kinds import KINDS, same_answers
from clones.test_mishaps import MISHAPS, led_out
from clones.world import World
from proof.share import share


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
