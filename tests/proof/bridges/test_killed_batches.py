"""`workpacket runtime batch`, killed before and after each thing that lasts: the next call names it and goes on."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from bridges.scopes import TASKS, Scoped, scoped
from proof.share import share


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    return scoped(tmp_path, capsys)


PHASES = ("testers", "implementers", "reviewers")
MOMENTS = ("before", "after")


@pytest.mark.parametrize(("phase", "number", "when"), share(list(product(PHASES, (1, 2), MOMENTS))))
def test_a_kill_while_a_phase_begins_is_continued(scope: Scoped, phase: str, number: int, when: str) -> None:
    for before in PHASES:
        if before == phase:
            break
        scope.phase(before)
    scope.killed(number, when, "begin", "auth")
    scope.done("begin", "auth")
    status = scope.status()
    assert (status["phase"], status["late"], status["contradictions"]) == (phase, False, [])
    assert status["incomplete"]


@pytest.mark.parametrize(("number", "when"), share(list(product((1, 2, 3, 4), MOMENTS))))
def test_a_kill_while_a_batch_is_completed_never_loses_nor_doubles_the_commit(
    scope: Scoped, number: int, when: str
) -> None:
    scope.phases()
    scope.killed(number, when, "complete", "auth")
    recorded = (number, when) != (1, "before")
    ended = (number, when) == (4, "after")
    assert scope.status()["completing"] is (recorded and not ended)
    if not ended:
        scope.done("complete", "auth")
    assert scope.git("rev-list", "--count", "HEAD").strip() == "2"
    assert scope.status()["view"]["last_batch"] == "1"
    assert scope.text("tasks.yaml") == TASKS.replace("pending", "completed", 2)
    assert scope.git("status", "--porcelain") == ""
    scope.done("begin", "auth")
