"""Judged work that landed as it was judged is done, decided about the landing: asked of trees without a command.

`tests/lifecycle/test_landed_work.py` asks the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.repositories import Tree
from judging.test_coverage_of_changes import OLD, WORK, A, B, Kitchen, page, place
from workpacket.lifecycle.policy import CoveragePolicy, LifecyclePolicy
from workpacket.shell.judging import landed_work
from workpacket.shell.judging.landed_work import landed

POLICY = LifecyclePolicy(coverage=CoveragePolicy("required"))


@pytest.fixture
def kitchen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kitchen]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    kitchen = Kitchen(tmp_path / "repository")
    kitchen.packet(A, "created", "activated")
    yield kitchen
    kitchen.written.close()


def done(kitchen: Kitchen, tip: str) -> frozenset[str]:
    """Asked twice: of what was decided, and of what is remembered."""
    repository = kitchen.written.stored()
    logs = {name: story.log() for name, story in kitchen.stories.items()}
    first = landed(repository, tip, logs, POLICY)
    assert landed(repository, tip, logs, POLICY) == first
    return first


def test_work_that_landed_as_it_was_judged_is_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    merged = kitchen.commit(WORK, base, verdict)
    assert done(kitchen, merged) == {A}
    assert done(kitchen, kitchen.commit(WORK, base)) == {A}, "squashed"


def test_it_stays_done_whatever_is_changed_later(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    landing = kitchen.commit(WORK, base)
    assert done(kitchen, kitchen.commit({**WORK, "src/b.py": "later\n"}, landing)) == {A}


def test_work_that_was_changed_on_the_way_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    _, verdict = kitchen.judged(WORK, base)
    changed = {**WORK, "src/b.py": "evil\n"}
    assert done(kitchen, kitchen.commit(changed, base, verdict)) == frozenset()
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, base)) == frozenset()


def test_before_it_lands_or_without_a_branch_it_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    assert done(kitchen, base) == frozenset()
    assert done(kitchen, "") == frozenset()


def test_the_first_commit_of_a_history_has_nothing_to_be_compared_with(kitchen: Kitchen) -> None:
    kitchen.judged(WORK, kitchen.commit(OLD))
    assert done(kitchen, kitchen.commit(WORK)) == frozenset()


def test_work_that_was_not_judged_is_not_done(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.add("claimed")
    kitchen.add("submitted", commit=kitchen.commit(WORK, base))
    assert done(kitchen, kitchen.commit(WORK, base)) == frozenset()


def test_each_packet_is_decided_by_the_landing_that_brought_its_verdict(kitchen: Kitchen) -> None:
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    first = kitchen.commit(WORK, base)
    both: Tree = {**WORK, "lib/b.py": "b\n"}
    kitchen.judged(both, first, B)
    second = kitchen.commit({**both, "lib/b.py": "evil\n"}, first)
    assert done(kitchen, second) == {A}
    assert done(kitchen, kitchen.commit(both, first)) == {A, B}


def test_events_that_came_later_do_not_speak_for_the_landing(kitchen: Kitchen) -> None:
    """Else a packet that is held today would answer for what came along then."""
    kitchen.packet(B, "created", "activated", scope="`lib/`")
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    landing = kitchen.commit({**WORK, "lib/x": "evil\n"}, base)
    kitchen.add("claimed", B)
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, landing)) == frozenset()


def test_with_very_many_packets_the_whole_log_is_looked_at(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landed_work, "_FEW", 0)
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    assert done(kitchen, kitchen.commit(WORK, base)) == {A}


def test_a_verdict_that_was_taken_back_and_brought_again_is_decided_by_the_last_time(kitchen: Kitchen) -> None:
    base = kitchen.commit(OLD)
    kitchen.judged(WORK, base)
    first = kitchen.commit(WORK, base)
    told, kitchen.stories = kitchen.stories, {}
    begun = {event.path: event.encode() for event in told[A].events[:2]}
    back = kitchen.written.commit({**OLD, **begun, place(A): page(A)}, first)
    kitchen.stories = told
    assert done(kitchen, kitchen.commit({**WORK, "lib/x": "evil\n"}, back)) == frozenset()
    assert done(kitchen, kitchen.commit(WORK, back)) == {A}


def test_a_standing_packet_answers_by_the_day_of_the_landing(kitchen: Kitchen) -> None:
    """Not by the day on which somebody asks: two clones would come to two answers, and work be undone by a date."""
    base = kitchen.commit(OLD)
    kitchen.packet(B, "created", "activated", scope="`lock.json`, Standing until 1970-02-01")
    _, verdict = kitchen.judged(WORK, base)
    assert done(kitchen, kitchen.commit({**WORK, "lock.json": "1"}, base, verdict)) == {A}
