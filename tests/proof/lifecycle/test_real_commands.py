"""The real commands in real processes, killed at every call that changes the disk; the next command puts it right."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern
from proof.share import share

ROOT = Path(__file__).parents[3]
CALLS = ("mkdir", "mkdirat", "write", "fsync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir")
FIRST, SECOND, THIRD, FOURTH = "WP-1-First-v1", "WP-1-Second-v1", "WP-1-Third-v1", "WP-1-Fourth-v1"
REPORT = ".GOV/report.md"

# What is typed, and the lane in which the packet is afterwards.
COMMANDS = (
    (("new", FOURTH), FOURTH, "STUB"),
    (("create-task-packet", FIRST), FIRST, "READY_FOR_DEV"),
    (("claim", SECOND, "--branch", "b"), SECOND, "IN_PROGRESS"),
    (("submit", THIRD, "--as", "coder", "--prove", "all=true"), THIRD, "IN_REVIEW"),
    (("supersede", SECOND, "--by", FIRST), SECOND, "SUPERSEDED"),
)


@pytest.fixture
def template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Governed, Path]:
    """A repository in which each of the commands can succeed."""
    governed = govern(tmp_path / "template", monkeypatch, capsys)
    governed.begin()
    for name in (SECOND, THIRD):
        governed.activate(name)
    governed.stub(FIRST)
    governed.refine(FIRST)
    governed.done("refine", FIRST, "--present")
    governed.sign(FIRST)
    governed.work(THIRD)
    return governed, tmp_path


def run(repository: Path, words: tuple[str, ...], *strace: str) -> int:
    program = "import sys; from workpacket.cli.main import main; sys.exit(main(sys.argv[1:]))"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tools"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    command = [*strace, sys.executable, "-c", program, *words]
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, check=False).returncode


def places(repository: Path, words: tuple[str, ...], log: Path) -> Iterator[tuple[str, int]]:
    """Every call of the command that changes the disk, by its name and number."""
    assert run(repository, words, "strace", "-o", str(log), "-e", f"trace={','.join(CALLS)}") == 0
    counted: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        match = re.match(r"(\w+)\(", line)
        if match and match[1] in CALLS:
            counted[match[1]] += 1
            yield match[1], counted[match[1]]


@pytest.mark.parametrize(("words", "name", "lane"), COMMANDS, ids=[words[0] for words, _, _ in COMMANDS])
def test_a_kill_leaves_all_or_nothing(
    template: tuple[Governed, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    name: str,
    lane: str,
) -> None:
    governed, folder = template
    before = governed.files()
    traced = shutil.copytree(governed.root, folder / "traced")
    ends: Counter[str] = Counter()
    for number, (call, which) in enumerate(share(list(places(traced, words, folder / "trace")))):
        copy = shutil.copytree(governed.root, folder / str(number))
        struck = f"inject={call}:signal=KILL:when={which}"
        assert run(copy, words, "strace", "-o", os.devnull, "-e", f"trace={call}", "-e", struck) != 0
        monkeypatch.chdir(copy)
        found = Governed(copy, governed.capture, governed.clock)
        said = found.done("board", "sync").out
        assert "everything says what the log says" in said, (call, which)
        assert not list((copy / ".git" / "workpacket" / "tx").glob("*"))
        if found.files() == before:
            ends["before"] += 1
        else:
            assert found.state(name).lane == lane, (call, which)
            ends["after"] += 1
        shutil.rmtree(copy)
    assert set(ends) == {"before", "after"}
