"""The pages about runs with a store on a PostgreSQL server: runs, the queue with its rates, workers, and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from audit.audited import WORKED, build
from langgraph_saver.worlds import SETTINGS, conversation
from live.serving import PATIENCE, Browser, served
from workpacket.runtime.langgraph import WorkpacketSaver

JOBS = """
def double(run):
    run.step("double", lambda: 2)

def bad(run):
    run.step("bad", lambda: 1 // 0)

TASKS = {"double": double, "bad": bad}
"""


class Place(NamedTuple):
    root: Path
    browser: Browser
    environment: dict[str, str]

    def call(self, *words: str) -> None:
        command = [sys.executable, "-P", "-m", "workpacket", "runtime", *words]
        subprocess.run(command, cwd=self.root, env=self.environment, check=True, capture_output=True)

    def soon(self, path: str, words: str) -> str:
        """The page, as soon as it has these words."""
        end = time.monotonic() + PATIENCE
        while words not in (page := self.browser.get(path).text):
            assert time.monotonic() < end, page
            time.sleep(0.1)
        return page

    def gone(self, path: str, words: str) -> None:
        end = time.monotonic() + PATIENCE
        while words in (page := self.browser.get(path).text):
            assert time.monotonic() < end, page
            time.sleep(0.1)


@pytest.fixture
def place(tmp_path: Path, url: str) -> Iterator[Place]:
    root = build(tmp_path / "town").root
    (root / "jobs.py").write_text(JOBS, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "WORKPACKET_STORE": url}
    with served(root, options=("--write", "--as", "ann"), environment=environment) as running:
        yield Place(root, running.browser(), environment)
        assert running.end() == (0, "")


def test_the_queue_its_rates_and_a_job_that_failed_for_good(place: Place) -> None:
    place.call("queue", "offer", "double", "--once", "a")
    place.call("queue", "offer", "bad", "--once", "b", "--tries", "1")
    page = place.soon("/0/runs", "bad@b")
    assert "double@a" in page
    place.call("worker", "jobs:TASKS", "--until-empty")
    page = place.soon("/0/runs", "queue revive")
    assert "1 completed in the last 5 minutes (0.2 a minute)" in page
    assert "worker_failed" in page
    assert "ZeroDivisionError" in place.browser.get("/0/run/bad@b").text
    job = page.partition("workpacket runtime queue revive ")[2].partition("<")[0]
    assert "Done" in place.browser.act("revive", "/0/runs", job=job).text
    place.gone("/0/runs", "queue revive")


def test_a_thread_is_listed_with_its_packet_and_its_records(place: Place) -> None:
    with WorkpacketSaver.open(place.environment["WORKPACKET_STORE"], settings=SETTINGS) as saver:
        conversation(saver, f"{WORKED}/chat", 3)
        conversation(saver, "<b>loose", 1)
    page = place.soon("/0/runs", "chat")
    assert f'href="{place.browser.prefix}/0/packet/{WORKED}"' in page
    assert "<b>loose" not in page
    links = [part.partition('"')[0] for part in page.split('href="') if "/run/langgraph" in part.partition('"')[0]]
    assert len(links) == 2
    for link in links:
        shown = place.browser.get(link)
        assert shown.status == 200
        assert "langgraph.checkpoint" in shown.text
