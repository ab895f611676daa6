"""Every kind of clone gives the answers of an ordinary one, or names what it lacks and the command that gets it.

Here are a few kinds; all of them are in the proofs (tests/proof/clones).
"""

from __future__ import annotations

import random
import time

import pytest

from clones.world import World, read_kinds

KINDS = {kind.id: kind for kind in read_kinds()}
HERE = (
    "autocrlf-true-present",
    "autocrlf-true-absent",
    "info-eol-crlf",
    "stale-main",
    "renamed-no-head",
    "sparse-index",
    "shallow-single",
    "partial-trees",
    "not-owned",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("clones"))


@pytest.mark.share(9)
@pytest.mark.parametrize("name", HERE)
def test_a_clone_of_this_kind_answers_as_any_other(world: World, name: str) -> None:
    same_answers(world, name)


def test_a_clone_of_some_kind_answers_as_any_other(world: World) -> None:
    seed = time.time_ns()
    name = random.Random(seed).choice([kind.id for kind in KINDS.values() if not kind.world])
    print(f"{name} (seed {seed})")
    same_answers(world, name)


def test_the_list_has_sixty_kinds_and_no_name_twice() -> None:
    kinds = read_kinds()
    assert len(kinds) >= 60
    assert len(KINDS) == len(kinds)


def same_answers(world: World, name: str) -> None:
    kind = KINDS[name]
    with world.clone(kind) as clone:
        assert world.wrong(clone, clone.answers()) == {}
        if kind.remedy:
            clone.shell(kind.remedy)
            answers, usual = clone.answers(), world.usual()
            assert {command: answer for command, answer in answers.items() if answer != usual[command]} == {}
