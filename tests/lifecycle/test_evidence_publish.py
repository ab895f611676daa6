"""What a proof printed is shown where it was run, and gets into a pull request only when somebody publishes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from lifecycle.governed import Governed, forge
from workpacket.model.canonical import Json

NAME = "WP-1-Greeting-v1"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the proofs are written for a POSIX system")


def prove(governed: Governed, *proofs: str) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    options = [word for proof in proofs for word in ("--prove", proof)]
    governed.done("submit", NAME, "--as", "coder", "--record-only", *options)


def test_trace_shows_the_last_lines_where_they_are_kept(governed: Governed) -> None:
    prove(governed, "1=seq 30", "2=true")
    shown = governed.done("trace", NAME).out
    assert "    evidence   met: seq 30\n      | ... 20 lines before\n      | 21\n" in shown
    assert "      | 30\n  criterion 2" in shown
    (log,) = (end for end in governed.json("trace", NAME)["data"]["logs"].values() if end)
    assert log.split("\\n")[:2] == ["1", "2"]


def test_in_another_clone_the_trace_does_without_them(governed: Governed) -> None:
    prove(governed, "1=seq 30")
    shutil.rmtree(governed.root / ".git" / "workpacket" / "proofs")
    shown = governed.done("trace", NAME).out
    assert "evidence   met: seq 30\n  criterion 2" in shown
    assert governed.json("trace", NAME)["data"]["logs"] == {}
    result = governed("evidence", "publish", NAME)
    assert (result.status, result.codes) == (3, ["evidence_not_kept"])


def test_trace_says_that_a_proof_was_stopped(governed: Governed) -> None:
    prove(governed, "1=true")
    governed.git("switch", "--quiet", "main")
    path = ".GOV/policy/policy.toml"
    governed.write(path, f"{governed.read(path)}\n[evidence]\ntimeout_seconds = 1\n")
    governed.git("add", path)
    governed.git("commit", "--quiet", "--message", "policy", "--", path)
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.done("submit", NAME, "--as", "coder", "--record-only", "--prove", "1=sleep 60")
    assert "not_met: sleep 60  stopped at its time limit" in governed.done("trace", NAME).out


def test_what_is_published_is_markdown_that_shows_everything_as_it_is(governed: Governed) -> None:
    prove(governed, "1=printf 'one\\n```\\n<b>\\033[31mred\\n'", "2=printf 'a`b'")
    text = governed.done("evidence", "publish", NAME).out
    assert text.startswith(f"## Evidence for {NAME}\n")
    assert "\n  ````text\n  one\n  ```\n  <b>\\u001b[31mred\n  ````\n" in text
    assert "`` printf 'a`b' `` ended with 0 at " in text


def test_a_secret_that_is_known_only_now_is_taken_out_as_well(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove(governed, "1=printf 'correct-horse-battery\\n'")
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    assert "correct-horse" not in governed.done("evidence", "publish", NAME).out


def test_it_writes_a_new_file_and_never_over_one(governed: Governed) -> None:
    prove(governed, "1=echo hello")
    governed.done("evidence", "publish", NAME, "--out", "evidence.md")
    assert "  hello\n" in governed.read("evidence.md")
    assert governed("evidence", "publish", NAME, "--out", "evidence.md").codes == ["file_unwritable"]


def test_a_proof_that_printed_nothing_is_published_as_that(governed: Governed) -> None:
    prove(governed, "1=true")
    assert "It printed nothing." in governed.done("evidence", "publish", NAME).out


def test_an_event_of_before_is_valid_and_shown_with_the_end_that_it_holds(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    row: dict[str, Json] = {"criterion": "The name is printed.", "result": "met", "command": "just test"}
    row |= {"exit_code": 0, "log_sha256": "a" * 64, "log_tail": "3 passed\n"}
    forge(governed, NAME, "evidence.recorded", {"evidence": [row]})
    governed.done("check")
    assert "met: just test\n      | 3 passed\n" in governed.done("trace", NAME).out
    assert "  3 passed\n" in governed.done("evidence", "publish", NAME).out
    assert governed.done("submit", NAME, "--as", "coder", "--prove", "2=true").status == 0


def test_a_log_that_was_taken_out_of_the_whole_history_is_begun_again(governed: Governed) -> None:
    prove(governed, "all=true")
    governed.commit("proved")
    command = [
        "git",
        "filter-branch",
        "--index-filter",
        f"git rm -r -q --cached --ignore-unmatch .GOV/log/{NAME}",
        "--",
        "--all",
    ]
    environment = {**os.environ, "FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(command, cwd=governed.root, env=environment, check=True, capture_output=True)
    for kept in governed.git("for-each-ref", "--format=%(refname)", "refs/original").split():
        governed.git("update-ref", "-d", kept)
    assert governed.git("log", "--oneline", "--all", "--", f".GOV/log/{NAME}") == ""
    governed.done("adopt")
    governed.commit("adopted")
    governed.done("check")
    governed.done("log", "verify")
    assert governed.state(NAME).lane == "IN_PROGRESS"


def test_a_place_that_was_recorded_earlier_is_suspect_once_it_changes(governed: Governed) -> None:
    prove(governed, "1=src/greet.py:1")
    governed.commit("recorded")
    governed.done("submit", NAME, "--as", "coder", "--prove", "2=true")
    assert "suspect" not in governed.done("trace", NAME).out
    governed.write("src/greet.py", "print('other')\n")
    assert "suspect: src/greet.py has changed since" in governed.done("trace", NAME).out
