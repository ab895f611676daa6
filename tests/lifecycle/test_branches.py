"""Work on two branches at once, then merged: nothing of the log is lost, and contradictions are seen, not hidden."""

from __future__ import annotations

import random
from pathlib import Path

from ledger.stories import verify_tree
from lifecycle.moves import any_move, move
from lifecycle.real_merges import Merges
from lifecycle.world import WITH_LANES, WITHOUT_LANES, World, adopted, errors, merged, of_the_log
from workpacket.ledger.verify import Vouching
from workpacket.lifecycle.board_sync import sync
from workpacket.lifecycle.moves import Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.side_moves import resolve
from workpacket.lifecycle.transitions import is_legal
from workpacket.model.event_types import FORKED

NAMES = ["WP-1-A-v1", "WP-1-B-v1", "WP-1-C-v1"]
PAIRS = 60


def base(policy: LifecyclePolicy = WITHOUT_LANES) -> World:
    lanes = ("READY_FOR_DEV", "IN_PROGRESS", "IN_REVIEW")
    world = adopted({**dict(zip(NAMES, lanes, strict=True)), "WP-1-Successor-v9": "READY_FOR_DEV"}, policy)
    world.do(sync)
    return world


def some_work(world: World, chance: random.Random, count: int) -> set[str]:
    """The packets that were moved."""
    moved = set()
    for _ in range(count):
        kind, name, actor = any_move(chance, NAMES)
        before = world.state(name).lane
        world.do(move(kind, name), actor)
        if world.state(name).lane != before:
            moved.add(name)
    return moved


def tried_pairs(count: int, seed: int, folder: Path, *, by_git: int = 1) -> int:
    """How many packets came out forked of so many random pairs of branches; one in `by_git` is merged by git itself.

    Every second pair is of a repository whose policy adds lanes.
    """
    chance, forks, merges = random.Random(seed), 0, Merges(folder)
    starts = [base(policy) for policy in (WITHOUT_LANES, WITH_LANES)]
    roots = [merges.commit(start) for start in starts]
    for number in range(count):
        start, root = starts[number % 2], roots[number % 2]
        ours, theirs = start.branch(), start.branch()
        mine, others = some_work(ours, chance, 5), some_work(theirs, chance, 5)
        one, conflicts = merged(ours, theirs, start)
        other, _ = merged(theirs, ours, start)
        assert not of_the_log(conflicts)
        if number % by_git == 0:
            assert_git_agrees(merges, (merges.commit(ours, root), merges.commit(theirs, root)), (one, other))
        for name in NAMES:
            assert one.log(name) == other.log(name)
            assert one.log(name).keys() == ours.log(name).keys() | theirs.log(name).keys()
            assert one.state(name) == other.state(name)
            if one.state(name).forked:
                forks += 1
                listed = [finding for finding in one.state(name).findings if finding.code == "packet_forked"]
                assert all(move.id[:12] in listed[0].message for move in one.state(name).latest_moves)
                assert name in mine & others
            elif name not in mine & others:
                expected = ours if name in mine else theirs
                assert one.state(name).lane == expected.state(name).lane
        for world in (one, other):
            assert_drawn_anew(world)
    return forks


def assert_git_agrees(merges: Merges, commits: tuple[str, str], worlds: tuple[World, World]) -> None:
    """Merged either way by git, the log is without a conflict and the same as in memory."""
    for (left, right), world in zip((commits, commits[::-1]), worlds, strict=True):
        by_git, conflicting = merges.merge(left, right)
        assert not of_the_log(conflicting)
        assert by_git == {path: world.files[path] for path in of_the_log(world.files)}


def assert_drawn_anew(world: World) -> None:
    """After `board sync` the board says what the log says, and the log has no fault but its forks."""
    answer = world.do(sync)
    assert isinstance(answer, Planned)
    board = world.board()
    for name in NAMES:
        state = world.state(name)
        if state.lane != FORKED:
            assert board[name] == state.lane
        for event in state.history:
            if event.moves_lane:
                came_from = event.lane_to if event.type == "unblocked" else None
                assert is_legal(
                    event.type, event.lane_from, event.lane_to, came_from=came_from, lanes=world.policy.lanes
                )
    logs = {path: data for path, data in world.files.items() if path.startswith(".GOV/log/")}
    assert {finding.code for finding in errors(verify_tree(logs, lambda _event: Vouching()))} <= {"packet_forked"}
    again = sync(world.facts())
    assert not list(again.plan.all_changes())


def test_random_pairs_of_branches_never_conflict_in_the_log(tmp_path: Path) -> None:
    assert tried_pairs(PAIRS, seed=1, folder=tmp_path, by_git=10) > 0


def test_parallel_work_in_added_lanes_is_merged_like_any_other() -> None:
    """One side tries a packet and finds it good, the other claims another: no conflict, and both on the board."""
    start = base(WITH_LANES)
    start.do(move("PASS", "WP-1-C-v1"), "judge")
    ours, theirs = start.branch(), start.branch()
    ours.do(move("advance", "WP-1-C-v1"))
    theirs.do(move("claim", "WP-1-A-v1"), "bob")
    world, _ = merged(ours, theirs, start)
    assert_drawn_anew(world)
    assert (world.board()["WP-1-C-v1"], world.board()["WP-1-A-v1"]) == ("UAT", "IN_PROGRESS")


def test_to_advance_and_to_go_back_at_once_is_a_fork_that_is_settled_in_an_added_lane() -> None:
    start = base(WITH_LANES)
    start.do(move("PASS", "WP-1-C-v1"), "judge")
    ours, theirs = start.branch(), start.branch()
    ours.do(move("advance", "WP-1-C-v1"))
    theirs.do(move("reopen", "WP-1-C-v1"))
    world, _ = merged(ours, theirs, start)
    assert world.state("WP-1-C-v1").forked
    assert isinstance(world.do(lambda f: resolve(f, f.packets["WP-1-C-v1"], lane="UAT", reason="it is good")), Planned)
    assert_drawn_anew(world)
    assert world.board()["WP-1-C-v1"] == "UAT"


def test_two_claims_on_two_branches_are_a_fork_until_somebody_settles_it() -> None:
    start = base()
    ours, theirs = start.branch(), start.branch()
    ours.do(move("claim", "WP-1-A-v1"), "ann")
    theirs.do(move("claim", "WP-1-A-v1"), "bob")
    world, _ = merged(ours, theirs, start)
    assert world.state("WP-1-A-v1").forked
    assert not isinstance(world.do(move("release", "WP-1-A-v1")), Planned)
    answer = world.do(lambda f: resolve(f, f.packets["WP-1-A-v1"], lane="IN_PROGRESS", reason="we talked"))
    assert isinstance(answer, Planned)
    assert world.state("WP-1-A-v1").lane == "IN_PROGRESS"
    assert world.state("WP-1-A-v1").findings == ()
