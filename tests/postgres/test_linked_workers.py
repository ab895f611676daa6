"""A worker of the queue and the packet whose runs it does: linked before each begins, closed after it has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern

NAME = "WP-1-Greeting-v1"
JOBS = """
from pathlib import Path

def good(run):
    events = Path(".GOV/log/WP-1-Greeting-v1").glob("*.json")
    assert any('"run.linked"' in (text := event.read_text()) and run.id in text for event in events)

def bad(run):
    run.step("bad", lambda: 1 // 0)

TASKS = {"good": good, "bad": bad}
"""


@pytest.fixture
def governed(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    governed = govern(tmp_path, monkeypatch, capsys)
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.write("jobs.py", JOBS)
    monkeypatch.setenv("WORKPACKET_STORE", url)
    return governed


def runs(governed: Governed) -> dict[str, str]:
    """Each run of the packet by its log, with its outcome, '' of one that is open."""
    return {
        run.run: (run.closed.text("outcome") or "") if run.closed is not None else ""
        for run in governed.state(NAME).runs
    }


def test_a_worker_links_the_runs_that_it_does(governed: Governed) -> None:
    for task in ("good", "bad"):
        governed.done("runtime", "queue", "offer", task, "--once", "k", "--packet", NAME, "--tries", "1")
    assert runs(governed) == {}
    governed.done("runtime", "worker", "jobs:TASKS", "--until-empty")
    assert runs(governed) == {f"{NAME}/good@k": "completed", f"{NAME}/bad@k": "stopped"}


def test_a_worker_does_not_begin_a_run_of_a_packet_that_is_blocked(governed: Governed) -> None:
    governed.done("runtime", "queue", "offer", "good", "--once", "k", "--packet", NAME)
    governed.done("block", NAME, "--reason", "x", "--until", "y", "--as", "coder")
    governed.done("runtime", "worker", "jobs:TASKS", "--until-empty")
    (job,) = governed.json("runtime", "queue", "list")["data"]["jobs"]
    assert (job["state"], job["reason"]) == ("dead", "packet_not_active")
    assert runs(governed) == {}
