"""What `check` remembers of approvals is used, ends when it must, and never says what a fresh check would not say."""

from __future__ import annotations

import pytest

from approving.story import Story
from approving.tampering import AT_REST, RESTLESS, Meddler
from workpacket.cli import remembered
from workpacket.shell.approvals import check, sound_before


@pytest.fixture
def settled(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """An approved activation that the base holds."""
    Meddler(story, monkeypatch, 0).begin(settled=True)
    return story


def refused_to_judge(*_: object) -> object:
    raise AssertionError("judged again")


def test_nothing_is_looked_at_again_while_all_is_as_it_was(settled: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "RACY_NS", AT_REST)
    first = settled.run("check")
    monkeypatch.setattr(check, "spoken_against", refused_to_judge)

    assert settled.run("check") == first


def test_an_event_that_was_sound_is_not_judged_again_for_the_sake_of_another_file(
    settled: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "RACY_NS", RESTLESS)
    settled.run("check")
    settled.write(".GOV/task_packets/stubs/WP-1-Other-v1.md", "# Work Packet Stub: WP-1-Other-v1\n")
    monkeypatch.setattr(sound_before, "rested_upon", refused_to_judge)

    assert settled.run("check").status == 1


@pytest.mark.parametrize("words", [("check", "--no-cache"), ("check", "--base", "main"), ("approvals", "verify")])
def test_what_ci_asks_is_judged_every_time(
    settled: Story, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    settled.run("check")
    settled.run(*words)
    monkeypatch.setattr(sound_before, "rested_upon", refused_to_judge)

    assert settled.run(*words).status == 9


def test_an_approval_that_the_base_does_not_hold_yet_is_judged_every_time(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddler = Meddler(story, monkeypatch, 0)
    meddler.begin(settled=False)
    monkeypatch.setattr(remembered, "RACY_NS", AT_REST)
    story.run("check")
    monkeypatch.setattr(sound_before, "rested_upon", refused_to_judge)

    assert story.run("check").status == 9


@pytest.mark.parametrize("seed", range(3))
def test_a_check_that_remembers_says_what_a_fresh_one_says(
    story: Story, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    meddle(story, monkeypatch, seed, acts=8)


def meddle(story: Story, monkeypatch: pytest.MonkeyPatch, seed: int, acts: int) -> None:
    meddler = Meddler(story, monkeypatch, seed)
    meddler.begin(settled=seed % 4 != 2)
    done: list[str] = []
    for _ in range(acts):
        warm, cold = meddler.differs()
        assert warm == cold, done
        done.append(meddler.act())
    warm, cold = meddler.differs()
    assert warm == cold, done
