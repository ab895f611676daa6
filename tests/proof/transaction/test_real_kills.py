"""A real process, a real file system: killed, or refused by the disk, at every storage system call.

`strace` strikes at the n-th call of a kind. What was written before the kill is seen by the next process, as after any
crash of a process; losses of power are simulated in tests/shell/test_crash_safety.py.
"""

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

from proof.share import share
from proof.transaction.worker import MARKER
from shell.crashes import AFTER, BEFORE

STORAGE_CALLS = (
    "openat", "mkdir", "mkdirat", "write", "fsync", "fchmod", "rename", "renameat", "renameat2", "unlink", "unlinkat",
    "rmdir", "ftruncate", "flock", "lseek", "close", "getdents64", "read",
)  # fmt: skip
REFUSALS = (
    "no_space_left", "disk_failed", "permission_denied", "transaction_unfinished", "lock_unavailable",
    "unsuitable_file_system", "lock_held", "repository_unreadable", "no_repository", "path_is_link", "path_not_a_file",
)  # fmt: skip
WORKER = Path(__file__).with_name("worker.py")
ROOT = WORKER.parents[3]


def run(repository: Path, work: str, *strace: str) -> tuple[int, str]:
    """How the worker ended (-9: killed) and what it said."""
    command = [*strace, sys.executable, "-X", "frozen_modules=on", str(WORKER), str(repository), work]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'tools'}:{ROOT / 'tests'}",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    return done.returncode, done.stdout


def trace(repository: Path, work: str, log: Path) -> Iterator[tuple[str, int]]:
    """Every storage call of the program proper: its name and which one of that name it is, from the process's start."""
    status, _ = run(repository, work, "strace", "-o", str(log), "-e", f"trace=file,{','.join(STORAGE_CALLS)}")
    assert status == 0
    counted: Counter[str] = Counter()
    begun = False
    for line in log.read_text().splitlines():
        if str(MARKER) in line:
            begun = True
            continue
        match = re.match(r"(\w+)\(", line)
        if match and match[1] in STORAGE_CALLS:
            counted[match[1]] += 1
            if begun and "exit_group" not in line:
                yield match[1], counted[match[1]]


def strike(repository: Path, work: str, call: str, number: int, what: str) -> tuple[int, str]:
    return run(
        repository, work, "strace", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}"
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("template") / "repository"
    for path, content in BEFORE.items():
        if content is not None:
            (repository / path).parent.mkdir(parents=True, exist_ok=True)
            (repository / path).write_bytes(content)
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    return repository


@pytest.fixture
def copies(template: Path, tmp_path: Path) -> Iterator[Path]:
    def fresh() -> Iterator[Path]:
        number = 0
        while True:
            number += 1
            copy = tmp_path / str(number)
            shutil.copytree(template, copy)
            yield copy
            shutil.rmtree(copy)

    return fresh()


def verdict(repository: Path) -> str:
    found: dict[str, bytes | None] = {}
    for path in repository.rglob("*"):
        name = path.relative_to(repository).as_posix()
        if not name.startswith(".git/") and name != ".git":
            found[name] = None if path.is_dir() else path.read_bytes()
    journals = list((repository / ".git" / "workpacket" / "tx").glob("*"))
    if journals:
        return "mixed"
    return "before" if found == BEFORE else "after" if found == AFTER else "mixed"


def test_the_proof_looks_at_the_right_thing(copies: Iterator[Path], tmp_path: Path) -> None:
    repository = next(copies)
    assert verdict(repository) == "before"
    calls = Counter(name for name, _ in trace(repository, "apply", tmp_path / "trace"))
    assert verdict(repository) == "after"
    assert calls["fsync"] >= 14
    assert calls["unlinkat"] >= 2
    assert sum(calls[name] for name in ("rename", "renameat", "renameat2")) == 4


def test_a_kill_at_every_storage_call_leaves_all_or_nothing(copies: Iterator[Path], tmp_path: Path) -> None:
    verdicts: Counter[str] = Counter()
    for call, number in share(list(trace(next(copies), "apply", tmp_path / "trace"))):
        repository = next(copies)
        status, _ = strike(repository, "apply", call, number, "signal=KILL")
        assert status in (-9, 137), (call, number)
        assert run(repository, "recover") == (0, "done")
        verdicts[verdict(repository)] += 1
    assert set(verdicts) == {"before", "after"}
    print(dict(verdicts))


def test_a_second_kill_during_recovery_leaves_all_or_nothing(copies: Iterator[Path], tmp_path: Path) -> None:
    """Killed when half of the files are in place, and again at every call of the recovery."""
    renames = [place for place in trace(next(copies), "apply", tmp_path / "trace") if place[0].startswith("rename")]
    verdicts: Counter[str] = Counter()
    for call, number in renames[1:]:
        first = next(copies)
        strike(first, "apply", call, number, "signal=KILL")
        traced = list(trace(shutil.copytree(first, tmp_path / "traced"), "recover", tmp_path / "trace"))
        for again, which in share(traced[::3]):
            repository = shutil.copytree(first, tmp_path / "struck")
            strike(repository, "recover", again, which, "signal=KILL")
            assert run(repository, "recover") == (0, "done")
            verdicts[verdict(repository)] += 1
            shutil.rmtree(repository)
        shutil.rmtree(tmp_path / "traced")
    assert set(verdicts) == {"after"}
    print(dict(verdicts))


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EACCES"])
def test_an_error_at_every_storage_call_leaves_all_or_nothing(
    copies: Iterator[Path], tmp_path: Path, error: str
) -> None:
    verdicts: Counter[tuple[int, str]] = Counter()
    for call, number in share(list(trace(next(copies), "apply", tmp_path / "trace"))):
        repository = next(copies)
        status, said = strike(repository, "apply", call, number, f"error={error}")
        if status != 0:
            assert said in REFUSALS, (call, number, said)
            assert run(repository, "recover") == (0, "done")
        ending = verdict(repository)
        assert ending == "after" if status == 0 else ending in ("before", "after"), (call, number, said)
        verdicts[status, ending] += 1
    assert (1, "before") in verdicts
    print({f"{status} {ending}": count for (status, ending), count in verdicts.items()})
