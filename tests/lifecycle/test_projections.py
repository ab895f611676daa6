"""Board and registry with `[board] commit = "branch"`: git merges the moves of different packets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.world import WITHOUT_LANES, World, adopted
from workpacket.lifecycle.board_sync import sync
from workpacket.lifecycle.claims import claim, release
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import BoardCommit, PacketsPolicy
from workpacket.lifecycle.side_moves import abandon, block
from workpacket.model.layout import BOARD_PATH, REGISTRY_PATH
from workpacket.value import replace

APART = replace(WITHOUT_LANES, packets=PacketsPolicy(board="branch"))
NAMES = ("WP-1-A-v1", "WP-1-B-v1", "WP-1-C-v1")


def laid_out(lane: str = "READY_FOR_DEV", names: tuple[str, ...] = NAMES) -> World:
    world = adopted(dict.fromkeys(names, lane), APART)
    world.do(sync)
    return world


def copy_of(world: World) -> World:
    return World(dict(world.files), world.policy)


def move(name: str, how: str) -> Callable[[Facts], Answer]:
    def decide(facts: Facts) -> Answer:
        packet = facts.packets[name]
        if how == "claim":
            return claim(facts, packet, branch="work", worktree="")
        if how == "block":
            return block(facts, packet, reason="waits", until="later")
        if how == "release":
            return release(facts, packet, reason="no time")
        return abandon(facts, packet, reason="not needed")

    return decide


def moved(world: World, name: str, *hows: str) -> World:
    there = copy_of(world)
    for how in hows:
        assert isinstance(there.do(move(name, how)), Planned), (name, how)
    return there


def merged(folder: Path, path: str, base: World, ours: World, theirs: World) -> str:
    """What git makes of the two versions; it fails where they conflict."""
    files = [folder / "ours", folder / "base", folder / "theirs"]
    for file, world in zip(files, (ours, base, theirs), strict=True):
        file.write_bytes(world.files[path])
    done = subprocess.run(["git", "merge-file", "-p", *map(str, files)], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("theirs", [("claim",), ("claim", "block"), ("abandon",)])
@pytest.mark.parametrize("ours", [("claim",), ("claim", "release"), ("block",)])
@pytest.mark.parametrize("path", [BOARD_PATH, REGISTRY_PATH])
def test_git_merges_the_moves_of_two_packets(
    tmp_path: Path, path: str, ours: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    base = laid_out()
    first, second = moved(base, NAMES[1], *ours), moved(base, NAMES[2], *theirs)
    both = moved(first, NAMES[2], *theirs)
    assert merged(tmp_path, path, base, first, second).encode() == both.files[path]


@pytest.mark.parametrize("path", [BOARD_PATH, REGISTRY_PATH])
def test_git_merges_a_move_with_the_marks_of_a_new_packet(tmp_path: Path, path: str) -> None:
    base = laid_out()
    with_another = adopted(dict.fromkeys((*NAMES, "WP-1-D-v1"), "READY_FOR_DEV"), APART)
    newer = World({**with_another.files, path: base.files[path]}, APART)
    newer.do(sync)
    assert "WP-1-D" in merged(tmp_path, path, base, newer, moved(base, NAMES[2], "claim", "block"))


def test_a_finished_packet_loses_its_marks_when_the_board_is_regenerated() -> None:
    world = moved(laid_out(), NAMES[0], "abandon")
    board = world.files[BOARD_PATH].decode()
    assert board.count(f"<!-- {NAMES[0]} -->") > 1
    world.do(sync)
    board = world.files[BOARD_PATH].decode()
    assert f"<!-- {NAMES[0]} -->" not in board
    assert f"- **[{NAMES[0]}]** - [ABANDONED]" in board
    assert all(f"<!-- {name} -->" in board for name in NAMES[1:])


def test_regenerating_twice_changes_nothing_more() -> None:
    world = moved(moved(laid_out(), NAMES[0], "claim"), NAMES[1], "abandon")
    world.do(sync)
    files = dict(world.files)
    world.do(sync)
    assert world.files == files


def test_marks_of_a_conflict_are_written_once() -> None:
    world = laid_out()
    text = world.files[BOARD_PATH].decode()
    world.files[BOARD_PATH] = text.replace("## In Progress\n", f"## In Progress\n<!-- {NAMES[0]} -->\n").encode()
    world.do(sync)
    assert world.files[BOARD_PATH].decode() == text


def test_rows_of_open_packets_have_an_empty_row_between_them() -> None:
    rows = laid_out().files[REGISTRY_PATH].decode().splitlines()[4:]
    assert [row for row in rows if row != "| | | | |"] == rows[::2]
    world = laid_out("ABANDONED")
    assert "| | | | |" not in world.files[REGISTRY_PATH].decode()


@pytest.mark.parametrize("setting", ["", "base", "never"])
def test_other_settings_leave_the_layout_as_it_is(setting: BoardCommit) -> None:
    policy = replace(APART, packets=PacketsPolicy(board=setting))
    world = adopted(dict.fromkeys(NAMES, "READY_FOR_DEV"), policy)
    world.do(sync)
    assert b"<!--" not in world.files[BOARD_PATH]
    assert b"| | | | |" not in world.files[REGISTRY_PATH]
