"""What `check` remembers of approvals is used, ends when it must, and never says what a fresh check would not say."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import timedelta

import pytest

from shell.approvals.story import Story
from shell.approvals.tampering import AT_REST, RESTLESS, Meddler
from workpacket.shell import cache
from workpacket.shell.approvals import check, event_approvals


@pytest.fixture
def settled(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """An approved activation that the base holds."""
    Meddler(story, monkeypatch, 0).begin(settled=True)
    return story


def refused_to_judge(*_: object) -> object:
    raise AssertionError("judged again")


def test_nothing_is_looked_at_again_while_all_is_as_it_was(settled: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "RACY_NS", AT_REST)
    first = settled.run("check")
    monkeypatch.setattr(check, "spoken_against", refused_to_judge)

    assert settled.run("check") == first


def test_an_event_that_was_sound_is_not_judged_again_for_the_sake_of_another_file(
    settled: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "RACY_NS", RESTLESS)
    settled.run("check")
    settled.write(".GOV/task_packets/stubs/WP-1-Other-v1.md", "# Work Packet Stub: WP-1-Other-v1\n")
    monkeypatch.setattr(event_approvals, "rested_upon", refused_to_judge)

    assert settled.run("check").status == 1


@pytest.mark.parametrize("words", [("check", "--no-cache"), ("check", "--base", "main"), ("approvals", "verify")])
def test_what_ci_asks_is_judged_every_time(
    settled: Story, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    settled.run("check")
    settled.run(*words)
    monkeypatch.setattr(event_approvals, "rested_upon", refused_to_judge)

    assert settled.run(*words).status == 9


@pytest.mark.parametrize("words", [("check", "--no-cache"), ("check", "--base", "main")])
def test_a_cache_that_says_that_all_is_well_does_not_hide_a_finding_from_ci(
    settled: Story, words: tuple[str, ...]
) -> None:
    settled.write(".GOV/task_packets/stubs/WP-1-Other-v1.md", "# Work Packet Stub: WP-1-Other-v1\n")
    settled.commit("a stub that says nothing")
    before = settled.run(*words)
    settled.run("check")
    (path,) = (settled.root / ".git/workpacket/cache").glob("*.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as tampered, tampered:
        tampered.execute(
            "UPDATE kept SET value = '[]' || substr(value, instr(value, char(10))) WHERE kind = 'examined'"
        )
        tampered.execute("DELETE FROM kept WHERE kind = 'output'")

    assert "section_missing" in before.out
    assert settled.run(*words) == before
    assert "section_missing" not in settled.run("check").out, "the cache was not tampered with"


def test_an_approval_that_the_base_does_not_hold_yet_is_judged_every_time(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddler = Meddler(story, monkeypatch, 0)
    meddler.begin(settled=False)
    monkeypatch.setattr(cache, "RACY_NS", AT_REST)
    story.run("check")
    monkeypatch.setattr(event_approvals, "rested_upon", refused_to_judge)

    assert story.run("check").status == 9


OF_THE_OUTPUT, OF_THE_VERDICTS = AT_REST, RESTLESS


@pytest.mark.parametrize(
    ("memory", "act"),
    [
        (OF_THE_OUTPUT, Meddler.revoke_the_key),
        (OF_THE_OUTPUT, Meddler.set_main_back),
        (OF_THE_VERDICTS, Meddler.revoke_the_key),
        (OF_THE_VERDICTS, Meddler.revoke_the_approval),
        (OF_THE_VERDICTS, Meddler.have_alice_commit_the_refinement_first),
        (OF_THE_VERDICTS, Meddler.edit_an_envelope),
        (OF_THE_VERDICTS, Meddler.edit_an_event),
        (OF_THE_VERDICTS, Meddler.leave_a_stray_event),
        (OF_THE_VERDICTS, Meddler.set_main_back),
    ],
    ids=lambda value: "" if isinstance(value, int) else value.__name__,
)
def test_what_speaks_against_it_afterwards_ends_what_was_remembered(
    settled: Story, monkeypatch: pytest.MonkeyPatch, memory: int, act: Callable[[Meddler], None]
) -> None:
    meddler = Meddler(settled, monkeypatch, 1)
    monkeypatch.setattr(cache, "RACY_NS", memory)
    meddler.see_the_policy()
    before = settled.run("check")
    act(meddler)
    after = settled.run("check")

    assert after == settled.run("check", "--no-cache")
    assert after != before


@pytest.mark.parametrize("days", [2, 60])
def test_an_approval_that_expires_before_it_reaches_the_base_ends_what_was_remembered(
    story: Story, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    meddler = Meddler(story, monkeypatch, 1)
    meddler.begin(settled=False)
    monkeypatch.setattr(cache, "RACY_NS", AT_REST)
    before = story.run("check")
    meddler.later = timedelta(days=days)
    after = story.run("check")

    assert after == story.run("check", "--no-cache")
    assert (after != before) == (days > 30)


@pytest.mark.parametrize("seed", range(1))
def test_a_check_that_remembers_says_what_a_fresh_one_says(
    story: Story, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    meddle(story, monkeypatch, seed, acts=6)


def meddle(story: Story, monkeypatch: pytest.MonkeyPatch, seed: int, acts: int) -> None:
    meddler = Meddler(story, monkeypatch, seed)
    meddler.begin(settled=seed % 4 != 1)
    done: list[str] = []
    for _ in range(acts):
        warm, cold = meddler.differs()
        assert warm == cold, done
        done.append(meddler.act())
    warm, cold = meddler.differs()
    assert warm == cold, done
