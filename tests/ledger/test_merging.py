"""Branches that worked in parallel, merged as sets of files: nothing conflicts, everybody folds the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.stories import Story, files_of
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log
from workpacket.model.events import LogEvent

# What can be done in each lane, and the lane it leads to: enough of the table to make lifelike branches.
MOVES: dict[str, tuple[tuple[str, str], ...]] = {
    "READY_FOR_DEV": (("claimed", "IN_PROGRESS"), ("blocked", "BLOCKED"), ("abandoned", "ABANDONED")),
    "IN_PROGRESS": (("submitted", "IN_REVIEW"), ("released", "READY_FOR_DEV"), ("blocked", "BLOCKED")),
    "IN_REVIEW": (("verdict.given", "MERGE_PENDING"), ("verdict.given", "FAIL"), ("verdict.given", "IN_PROGRESS")),
    "MERGE_PENDING": (("merged", "VALIDATED"), ("reopened", "IN_PROGRESS")),
    "FAIL": (("claimed", "IN_PROGRESS"),),
    "BLOCKED": (("unblocked", "READY_FOR_DEV"),),
}
VERDICTS = {"MERGE_PENDING": "PASS", "FAIL": "FAIL", "IN_PROGRESS": "CHANGES"}
NOTES = ("evidence.recorded", "waived", "run.linked", "refinement.recorded", "lease.renewed", "prepared")


def work(shared: Story, lane: str, chance: random.Random, steps: int) -> tuple[list[LogEvent], list[LogEvent]]:
    """What one branch adds to the shared history: its events, and those of them that move the lane."""
    branch = Story()
    branch.events = list(shared.events)
    moves: list[LogEvent] = []
    for _ in range(steps):
        if chance.random() < 0.4 or lane not in MOVES:
            branch.add(chance.choice(NOTES), at=f"2026-02-{chance.randint(1, 28):02}T00:00:00Z")
            continue
        kind, goal = chance.choice(MOVES[lane])
        extra: dict[str, Any] = {"verdict": VERDICTS[goal]} if kind == "verdict.given" else {}
        if kind == "claimed":
            extra = {"holder": chance.choice(("bob", "cem"))}
        moves.append(branch.add(kind, lane_from=lane, lane_to=goal, **extra))
        lane = goal
    return branch.events[len(shared.events) :], moves


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 25))
def test_any_history_folds_alike_in_any_order_and_stays_explained(seed: int, steps: int) -> None:
    """Many branches, merged and branched again at random, with moves that need not even be legal."""
    chance = random.Random(seed)
    story = Story()
    story.add("created")
    for _ in range(steps):
        parents = tuple(chance.sample(story.events, k=min(len(story.events), chance.choice((1, 1, 1, 2, 3)))))
        seen = fold(story.log().as_of(event.id for event in parents))
        if seen.forked:
            story.add("fork.resolved", after=parents, moves=sorted(move.id for move in seen.latest_moves))
            continue
        kind = chance.choice((*NOTES, "claimed", "released", "blocked", "submitted"))
        lane: dict[str, Any] = {} if kind in NOTES else {"lane_from": seen.lane}
        story.add(kind, after=parents, **lane)
    files = list(story.files().items())
    state = fold(read_log(story.packet, dict(files)))
    chance.shuffle(files)
    assert fold(read_log(story.packet, dict(files))) == state
    log = story.log()
    views = [log.ancestry([move.id]) for move in state.latest_moves]
    apart = frozenset().union(*views) - frozenset.intersection(*views)
    assert state.forked == contradict(state.latest_moves, [log.by_id[identity] for identity in apart])
    assert state.forked == any(finding.code == "packet_forked" for finding in state.findings)
    assert "log_lane_gap" not in {finding.code for finding in state.findings}


NAMING = {"claimed", "released", "handed_over", "submitted", "merged", "verdict.given", "fork.resolved"}


def contradict(ends: Sequence[LogEvent], apart: Iterable[LogEvent]) -> bool:
    """Whether last moves differ, or one of them has a holder, a commit or a verdict on its way, of those `apart`."""
    differ = len({(move.type, move.lane_from, move.lane_to) for move in ends}) > 1
    return len(ends) > 1 and (differ or any(move.type in NAMING for move in apart))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), left_steps=st.integers(0, 6), right_steps=st.integers(0, 6))
def test_merged_branches_never_conflict_and_fold_alike(seed: int, left_steps: int, right_steps: int) -> None:
    chance = random.Random(seed)
    shared = Story()
    shared.tell("created", "activated")
    left, left_moves = work(shared, "READY_FOR_DEV", chance, left_steps)
    right, right_moves = work(shared, "READY_FOR_DEV", chance, right_steps)

    base, ours, theirs = files_of(*shared.events), files_of(*left), files_of(*right)
    # Git conflicts where both sides add one path with different contents; here equal paths are equal contents.
    assert all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())

    merged_here = {**base, **ours, **theirs}
    merged_there = dict(sorted({**theirs, **base, **ours}.items(), key=lambda _file: chance.random()))
    here, there = fold(read_log(shared.packet, merged_here)), fold(read_log(shared.packet, merged_there))
    assert here == there

    # Stated anew, apart from the program: both branches moved on their own, and their last moves differ, or what led
    # to them does.
    ours_alone = [move for move in left_moves if move not in right_moves]
    theirs_alone = [move for move in right_moves if move not in left_moves]
    ends = [moves[-1] for moves in (ours_alone, theirs_alone) if moves]
    forked = contradict(ends, [*ours_alone, *theirs_alone])
    assert here.forked == forked
    if forked:
        assert set(ends) == set(here.latest_moves)
        listed = next(finding for finding in here.findings if finding.code == "packet_forked")
        assert all(move.id[:12] in listed.message for move in ends)
    else:
        assert here.findings == ()
        assert here.lane == (ends or left_moves or shared.events)[-1].lane_to
