"""No timing here (see bench/): only that work grows with the log and not with its square."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import remembered
from ledger.stories import Story
from workpacket.ledger import log
from workpacket.ledger.fold import fold
from workpacket.model.events import LogEvent


def calls_made(work: Callable[[], object]) -> int:
    """How many Python calls it takes: the same on every machine."""
    count = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def braided(rounds: int) -> Story:
    """Branches that merge again and again: the case that a careless walk of the graph makes quadratic."""
    story = Story()
    story.tell("created", "activated")
    tips: tuple[LogEvent, ...] = (story.events[-1],)
    for _ in range(rounds):
        left = story.add("waived", after=tips)
        right = story.add("evidence.recorded", after=tips)
        tips = (left, right)
    return story


def test_reading_and_folding_a_braid_grows_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "decode_event", remembered.really_decode)
    short, long = braided(50), braided(200)
    assert calls_made(lambda: fold(long.read())) < 5 * calls_made(lambda: fold(short.read()))
