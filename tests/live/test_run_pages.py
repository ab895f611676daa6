"""The pages about runs: what they show, and what can be done there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import WORKED, Audited, build
from live.running import SECRET, waiting_run, with_runs
from live.serving import Browser, served

NIGHTLY = f"{WORKED}/nightly@00000001"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    made = build(tmp_path_factory.mktemp("runs") / "town")
    with_runs(made.root, WORKED)
    return made


@pytest.fixture(scope="module")
def browser(town: Audited) -> Iterator[Browser]:
    with served(town.root, options=("--write", "--as", "ann")) as running:
        yield running.browser()
        assert running.end() == (0, "")


def runs_of(root: Path) -> dict[str, str]:
    said = subprocess.run([sys.executable, "-m", "workpacket", "runtime", "runs", "list", "--json"], cwd=root,
                          capture_output=True, check=True)  # fmt: skip
    return {one["run"]: one["state"] for one in json.loads(said.stdout)["data"]["runs"]}


def test_the_list_says_which_runs_need_somebody(browser: Browser) -> None:
    page = browser.get("/0/runs").text
    assert "1 completed in the last 60 minutes" in page
    for words in (NIGHTLY, "needs_confirmation", "effect_outcome_unknown", "worker_failed"):
        assert words in page


def test_a_run_is_shown_as_a_tree_and_as_a_time_line(browser: Browser) -> None:
    page = browser.get(f"/0/run/{NIGHTLY}").text
    tree = page.partition('id="tree-title"')[2].partition("</section>")[0]
    steps = re.sub(r"<[^>]+>", " ", tree)
    assert re.search(r"parts\s+child run.*parse.*inner\s+child run.*deep.*mail\s+effect", steps, re.DOTALL)
    assert tree.count('<ul class="tree">') == 3
    assert page.count('<rect class="bar') == 6
    for words in ("Published parts/rows", f'href="{browser.prefix}/0/packet/{WORKED}"', "run.completed"):
        assert words in page


def test_inputs_and_results_are_shown_as_they_are_stored(browser: Browser) -> None:
    page = browser.get(f"/0/run/{NIGHTLY}").text
    assert "[redacted:name]" in page
    assert "[not shown]" in page
    assert "2026-10" in page
    assert SECRET not in page
    assert "hunter2" not in page


def test_a_stopped_run_says_why_and_what_is_usually_done(browser: Browser) -> None:
    page = browser.get("/0/run/import@00000001").text
    assert "worker_failed: " in page
    assert "IndexError" in page
    assert "start its program again" in page


def test_a_question_is_answered_where_it_is_asked(browser: Browser, town: Audited) -> None:
    page = browser.get("/0/waiting").text
    assert "Effects with an unknown outcome" in page
    assert "workpacket resume ask@00000001" in page
    digest = re.search(r'name="question" value="q1">\n<input type="hidden" name="confirm" value="([0-9a-f]+)"', page)
    assert digest is not None
    old = browser.act("answer", "/0/waiting", id="ask@00000001", question="q1", confirm="0" * 64, answer="yes")
    assert "Failed" in old.text
    done = browser.act("answer", "/0/waiting", id="ask@00000001", question="q1", confirm=digest[1], answer="yes")
    assert "Done" in done.text
    assert "Send 3 mails?" not in browser.get("/0/waiting").text


def test_an_unknown_effect_is_settled(browser: Browser) -> None:
    page = browser.get("/0/run/pay@00000001").text
    digest = re.search(r'name="confirm" value="([^"]+)"', page)
    assert digest is not None
    browser.act("answer", "/0/run/pay@00000001", id="pay@00000001", question="charge", confirm=digest[1],
                answer="mark-done")  # fmt: skip
    assert "effect.resolved" in browser.get("/0/run/pay@00000001").text


def test_a_run_is_forked_from_one_of_its_checkpoints(browser: Browser, town: Audited) -> None:
    page = browser.get("/0/run/import@00000001").text
    point = re.search(r'<option value="([0-9a-f]{16})">', page)
    assert point is not None
    made = browser.act("fork", "/0/run/import@00000001", id="import@00000001", at=point[1], once="again")
    assert "Done" in made.text
    assert "import@again" in runs_of(town.root)
    again = browser.act("fork", "/0/run/import@00000001", id="import@00000001", at=point[1], once="again")
    assert "already names a run" in again.text


def test_a_run_is_cancelled_and_the_stores_are_settled(browser: Browser, town: Audited) -> None:
    assert "Done" in browser.act("cancel", "/0/run/import@00000001", id="import@00000001", reason="enough").text
    assert runs_of(town.root)["import@00000001"] == "cancelled"
    assert "Done" in browser.act("settle", "/0/runs").text
    told = browser.act("unlink", "/0/runs", run=NIGHTLY, reason="lost").text
    assert "Done" not in told.partition("<main")[2].partition("</h1>")[0]


def test_the_record_of_a_run_is_verified(browser: Browser) -> None:
    page = browser.get(f"/0/run/{NIGHTLY}").text
    assert f"workpacket runtime runs verify {NIGHTLY}" in page
    assert "Done" in browser.act("verify", f"/0/run/{NIGHTLY}", id=NIGHTLY).text


def test_a_signal_is_sent_to_a_run_that_waits_and_its_log_is_followed(browser: Browser, town: Audited) -> None:
    with waiting_run(town.root) as process:
        page = soon(browser, "/0/run/order@00000001", "for the signal paid")
        assert "workpacket runtime signal order@00000001 paid" in page
        assert "Workers" in browser.get("/0/runs").text
        done = browser.act("signal", "/0/run/order@00000001", id="order@00000001", signal="paid", value='{"sum": 7}')
        assert "Done" in done.text
        assert process.stdout is not None
        assert process.stdout.readline() == "{'sum': 7}\n"
        process.wait(20)
    soon(browser, "/0/run/order@00000001", "run.completed")


def soon(browser: Browser, address: str, words: str) -> str:
    """The page, as soon as it has these words."""
    end = time.monotonic() + 10
    while words not in (page := browser.get(address).text):
        assert time.monotonic() < end, page
        time.sleep(0.1)
    return page
