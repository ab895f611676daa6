"""What the contract demands is written by a command, and a submission is proved again by somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evidence.test_submission import NAME, PACKET, REQUIRED, RUN, STUB, at_work, do
from lifecycle.governed import TOKENS_COUNT, Governed, forge
from workpacket.model.canonical import Json
from workpacket.shell.governing.proof_process import account_of

REPLAY = ("evidence", "replay", NAME, "--yes")


def test_a_demand_is_written_below_its_criterion_and_another_takes_its_place(governed: Governed) -> None:
    governed.begin(policy=TOKENS_COUNT + REQUIRED)
    governed.stub(NAME)
    for demand in (("--command", "pytest tests", "--tests", "a, b"), ("--command", RUN, "--paths", "tests/")):
        governed.done("evidence", "demand", NAME, "1", *demand)
    governed.done("evidence", "demand", NAME, "2", "--exempt", "it is seen by looking")
    assert f"- The name is printed.\n  - PROVED_BY: `{RUN}`\n  - PATHS: tests/\n- It ends" in governed.read(STUB)
    assert "- It ends with a line feed.\n  - EXEMPT: it is seen by looking\n" in governed.read(STUB)
    contract = governed.json("packet", "contract", NAME)["data"]["contract"]
    assert contract["criteria"] == ["The name is printed.", "It ends with a line feed."]
    assert [row["command"] for row in contract["evidence"]] == [RUN, ""]


@pytest.mark.parametrize("words", [("3", "--command", "x"), ("0", "--exempt", "x")])
def test_a_criterion_that_does_not_exist_is_refused(governed: Governed, words: tuple[str, ...]) -> None:
    governed.begin()
    governed.stub(NAME)
    assert governed.refused("evidence", "demand", NAME, *words) == ["evidence_missing"]


@pytest.mark.parametrize("words", [("x", "--command", "x"), ("1",), ("1", "--tests", "x")])
def test_a_demand_says_what_is_run_or_why_nothing_is(governed: Governed, words: tuple[str, ...]) -> None:
    governed.begin()
    governed.stub(NAME)
    assert governed("evidence", "demand", NAME, *words).status == 2


@pytest.mark.long
def test_a_replay_comes_to_the_same_and_the_policy_can_ask_for_it(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`", more=REQUIRED + 'replay = "second-party"\n')
    do(governed)
    assert governed("evidence", "replay", NAME, "--yes").codes == ["replay_unmatched"]
    governed.done("submit", NAME, "--as", "coder")
    governed.write("report.md", "Good.\n")
    governed.commit("submitted")
    assert governed("evidence", "replay", NAME).status == 2
    said = governed.done(*REPLAY, "--as", "victor").out
    assert "the same results" in said
    judge = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    assert governed.refused(*judge) == ["replay_missing"]
    governed.done(*REPLAY, "--record", "--as", "coder")
    assert governed.refused(*judge) == ["replay_missing"]
    governed.done(*REPLAY, "--record", "--as", "victor")
    governed.done(*judge)
    governed.commit("judged")
    assert governed("check", "--base", "main").status == 0


@pytest.mark.long
def test_a_replay_of_what_was_never_so_is_told(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`", more=REQUIRED + 'replay = "second-party"\n')
    do(governed, "def test_name():\n    assert True\n")
    commit = governed.git("rev-parse", "HEAD").strip()
    row: dict[str, Json] = {
        "criterion": "The name is printed.", "result": "met", "command": RUN, "exit_code": 0, "commit": commit,
        "runner": "pytest", "needed": ["tests/test_greet.py::test_name"], "outcomes": {"needed": 1},
        "base": governed.git("merge-base", "main", "HEAD").strip(), "execution": "measured",
    }  # fmt: skip
    exempt: dict[str, Json] = {
        "criterion": "It ends with a line feed.",
        "result": "met",
        "exempt": "it is seen by looking",
    }
    lanes = {"lane_from": "IN_PROGRESS", "lane_to": "IN_REVIEW"}
    forge(governed, NAME, "submitted", {"commit": commit, "evidence": [row, exempt], **lanes})
    governed.commit("forged")
    result = governed(*REPLAY, "--as", "victor")
    assert result.status == 1
    assert "The name is printed.: met in the log, but tests/test_greet.py::test_name also passes without" in result.out
    governed.done(*REPLAY, "--record", "--as", "victor")
    governed.write("report.md", "Good.\n")
    judge = ("verdict", NAME, "PASS", "--report", "report.md", "--as", "victor")
    assert governed.refused(*judge) == ["replay_missing"]


def test_proofs_by_exit_code_and_by_place_are_replayed_too(governed: Governed) -> None:
    at_work(governed, "", "", more="")
    do(governed)
    governed.done("submit", NAME, "--as", "coder", "--prove", "1=test -s src/greet.py", "--prove", "2=src/greet.py:1")
    governed.commit("submitted")
    found = governed.json(*REPLAY)["data"]
    assert found["differences"] == []
    assert PACKET in governed.files()
    governed.write(".GOV/log/WP-1-Other-v1/0.json", "[]")
    governed.write(".GOV/log/WP-1-Other-v1/1.json", "{")
    governed.commit("what is no event")
    said = governed.done("evidence", "replay", "--base", "main", "--yes").out
    assert f"{NAME} at " in said
    assert said.endswith("the same results\n1 submission replayed\n")
    governed.git("switch", "--quiet", "main")
    assert governed.done("evidence", "replay", "--base", "main", "--yes").out == "0 submissions replayed\n"


@pytest.mark.parametrize(
    "words",
    [
        ("--base", "main", NAME), ("--base", "main", "--record"), ("--base", "main", "--json"), (),
        (NAME, "--commands-as", "no-such-account"), (NAME, "--commands-as", "root"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_a_usage_error(governed: Governed, words: tuple[str, ...]) -> None:
    governed.begin()
    assert governed("evidence", "replay", "--yes", *words).status == 2


def test_only_root_runs_commands_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ValueError, match="is root itself"):
        account_of("0")
    assert account_of("nobody").uid > 0
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ValueError, match="only root"):
        account_of("nobody")


def test_an_account_that_can_change_what_is_loaded_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        monkeypatch.setattr("os.geteuid", lambda: 0)
    assert account_of("nobody").uid > 0
    tools = tmp_path / "tools"
    for mode, exposed in ((0o755, False), (0o757, True), (0o1757, True)):
        tools.mkdir(exist_ok=True)
        tools.chmod(mode)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        if exposed:
            with pytest.raises(ValueError, match=f"nobody can write to {tools}, from which programs are loaded"):
                account_of("nobody")
        else:
            assert account_of("nobody").uid > 0
    # Files in a sticky folder are replaced only by their owners, so it may be further up, as /tmp is.
    (tools / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tools / "bin"))
    assert account_of("nobody").uid > 0
    tools.chmod(0o757)
    with pytest.raises(ValueError, match=f"nobody can write to {tools}"):
        account_of("nobody")
