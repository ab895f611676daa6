"""The page of what waits: each kind of thing that needs a person is there, and is gone once it is done."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import STUCK, WORKED, Audited, build
from live.running import with_runs
from live.serving import PATIENCE, Browser, served


@pytest.fixture
def town(tmp_path: Path) -> Audited:
    return build(tmp_path / "town")


@pytest.fixture
def browser(town: Audited) -> Iterator[Browser]:
    with served(town.root, options=("--write", "--as", "coder")) as running:
        yield running.browser()
        assert running.end() == (0, "")


def section(browser: Browser, title: str) -> str:
    """The section with this title; '' if there is none."""
    sections = browser.get("/0/waiting").text.split("<section ")
    return next((one for one in sections if f">{title}</h2>" in one), "")


def soon(browser: Browser, title: str) -> str:
    """The section, as soon as the server has noticed."""
    end = time.monotonic() + PATIENCE
    while not (found := section(browser, title)):
        assert time.monotonic() < end, browser.get("/0/waiting").text
        time.sleep(0.05)
    return found


def gone(browser: Browser, title: str, words: str) -> None:
    end = time.monotonic() + PATIENCE
    while words in section(browser, title):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_files_that_git_could_not_merge_are_listed_until_the_merge_ends(town: Audited, browser: Browser) -> None:
    assert not section(browser, "Conflicts in this work tree")
    start = town.git("branch", "--show-current").strip()
    for branch, words in (("one", "first"), ("two", "second")):
        town.git("switch", "--quiet", "--create", branch, start)
        town.write("src/odd <name>.py", f"print('{words}')\n")
        town.commit(words)
    subprocess.run(["git", "merge", "one"], cwd=town.root, check=False, capture_output=True)
    listed = soon(browser, "Conflicts in this work tree")
    assert "src/odd &lt;name&gt;.py" in listed
    town.git("merge", "--abort")
    gone(browser, "Conflicts in this work tree", "src/odd")


def test_effects_with_an_unknown_outcome_come_before_other_questions(town: Audited, browser: Browser) -> None:
    assert not section(browser, "Effects with an unknown outcome")
    with_runs(town.root, WORKED)
    effects = soon(browser, "Effects with an unknown outcome")
    assert "pay@00000001" in effects
    assert "ask@00000001" not in effects
    assert "ask@00000001" in section(browser, "Questions of runs")
    page = browser.get("/0/waiting").text
    assert page.index("Effects with an unknown outcome") < page.index("Questions of runs")


def test_what_is_blocked_is_offered_to_be_unblocked(browser: Browser) -> None:
    blocked = soon(browser, "Blocked")
    assert STUCK in blocked
    assert "/act/unblock" in blocked
    assert "Done" in browser.act("unblock", "/0/waiting", id=STUCK, reason="licensed").text
    gone(browser, "Blocked", STUCK)


def test_a_lease_that_ends_soon_is_offered_to_its_holder_for_renewal(town: Audited, browser: Browser) -> None:
    policy = town.root / ".GOV/policy/policy.toml"
    before = policy.read_text()
    set_lease(policy, 2)
    town.commit("Short leases")
    for action, fields in (("unblock", {"reason": "licensed"}), ("claim", {"branch": f"wp/{STUCK}"})):
        assert "Done" in browser.act(action, "/0/waiting", id=STUCK, **fields).text
    ending = soon(browser, "Leases that end soon")
    assert STUCK in ending
    assert "held by coder" in ending
    assert "/act/renew" in ending
    with served(town.root, options=("--write", "--as", "bob")) as running:
        others = section(running.browser(), "Leases that end soon")
        assert STUCK in others
        assert "/act/renew" not in others
        assert running.end() == (0, "")
    policy.write_text(before)
    town.commit("Long leases")
    assert "Done" in browser.act("renew", "/0/waiting", id=STUCK).text
    gone(browser, "Leases that end soon", STUCK)


def set_lease(policy: Path, hours: int) -> None:
    policy.write_text(re.sub(r"^lease_hours = \d+", f"lease_hours = {hours}", policy.read_text(), flags=re.MULTILINE))
    assert f"lease_hours = {hours}\n" in policy.read_text()
