"""Two orchestrators at one scope: real processes that live on while the shells of their calls end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridges.scopes import Scoped, scoped
from workpacket.runtime.holders import Caller, at_work, process_ancestry, process_named

# An agent: it runs each line it is given in a shell of its own, and answers with the status and what was said.
AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    done = subprocess.run(["sh", "-c", line.strip() + "; exit $?"], capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout + done.stderr]), flush=True)
"""
COMMAND = f"'{sys.executable}' -m workpacket"


class Agent:
    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def __call__(self, words: str) -> tuple[int, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{COMMAND} {words}\n")
        self.process.stdin.flush()
        status, said = json.loads(self.process.stdout.readline())
        return status, said

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scoped:
    return scoped(tmp_path, capsys)


@pytest.fixture
def agents(scope: Scoped) -> Iterator[tuple[Agent, Agent]]:
    both = (Agent(scope.root), Agent(scope.root))
    yield both
    for agent in both:
        agent.end()


def test_stages_are_begun_by_one_orchestrator_until_it_is_gone(scope: Scoped, agents: tuple[Agent, Agent]) -> None:
    first, second = agents
    assert first("batch begin auth")[0] == 0
    status, said = second("batch begin auth")
    assert (status, "run_busy" in said, "--accept holder" in said) == (44, True, True)
    assert f"/{first.process.pid}/" in said
    assert "--accept holder" in second("resume")[1]
    assert first("batch begin auth")[0] == 0
    first.end()
    assert second("batch begin auth")[0] == 0
    assert scope("begin", "auth") == 44  # this process is above neither


def test_who_knows_that_nobody_is_at_work_takes_the_stages_over(agents: tuple[Agent, Agent]) -> None:
    first, second = agents
    assert first("batch begin auth")[0] == 0
    assert second("batch begin auth --accept holder")[0] == 0
    assert first("batch begin auth")[0] == 44


def test_a_holder_on_another_machine_is_alive_until_a_person_says_otherwise(
    scope: Scoped, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        there.setattr("workpacket.runtime.holders.process_named", lambda pid: f"elsewhere/{pid}/1/another-boot")
        scope.done("begin", "auth")
    assert scope("begin", "auth") == 44
    assert "elsewhere/" in scope.said
    assert "--accept holder" in scope.said
    scope.done("begin", "auth", "--accept", "holder")
    scope.done("begin", "auth")


def test_a_role_has_one_writer_until_it_is_gone(agents: tuple[Agent, Agent]) -> None:
    first, second = agents
    assert first("progress claimed auth backend-eng --team build")[0] == 0
    status, said = second("progress note auth backend-eng mine")
    assert (status, "is its writer" in said) == (44, True)
    assert first("progress note auth backend-eng mine")[0] == 0
    first.end()
    assert second("progress note auth backend-eng mine")[0] == 0


HERE = process_named(os.getpid())
NODE, _, _, PLACE = HERE.split("/")
GONE = f"{NODE}/999999999/1/{PLACE}"


@pytest.mark.parametrize(
    ("holder", "caller", "keeps"),
    [
        ("", Caller(), ""),
        (HERE, Caller(), HERE),
        (HERE, Caller("x", frozenset({HERE})), ""),
        (GONE, Caller(), ""),
        (f"{GONE} {HERE}", Caller("x", frozenset({HERE})), ""),
        (f"{GONE} {HERE}", Caller(), HERE),
        (f"{NODE}/1234/1/{'0' * 36}4026531836", Caller(), ""),
        ("elsewhere/1234/1/another-boot", Caller(), "elsewhere/1234/1/another-boot"),
        ("eng#a", Caller("eng#a"), ""),
        ("eng#a", Caller("eng#b"), "eng#a"),
    ],
    ids=["nobody", "alive", "above-the-caller", "gone", "gone-below-a-common-one", "gone-below-another", "rebooted",
         "other-machine", "same-name", "other-name"],
)  # fmt: skip
def test_what_of_a_holder_keeps_somebody_away(holder: str, caller: Caller, keeps: str) -> None:
    assert at_work(holder, caller) == keeps


def test_the_line_of_a_process_goes_up_to_the_first_of_the_machine() -> None:
    line = process_ancestry(os.getpid())
    assert line[:2] == (HERE, process_named(os.getppid())) or os.getppid() == 1
    assert all(part.split("/")[1] != "1" for part in line)
