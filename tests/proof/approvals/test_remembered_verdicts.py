"""Long runs of meddling: a check that remembers never says what a fresh one does not."""

from __future__ import annotations

import pytest

from proof.share import share
from shell.approvals.story import Story
from shell.approvals.test_remembered_verdicts import meddle


@pytest.mark.parametrize("seed", share(range(100, 196)))
def test_a_check_that_remembers_says_what_a_fresh_one_says(
    story: Story, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    meddle(story, monkeypatch, seed, acts=10)
