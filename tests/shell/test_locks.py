"""The writers' lock, with real processes."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from git.scratch import make_repository
from workpacket.git.repository import Repository
from workpacket.problem import WorkpacketError
from workpacket.shell.transactions.transaction import writer_at_work, writer_lock

TOOLS = Path(__file__).parents[2] / "tools"
HOLDER = """
import sys, time
from pathlib import Path
from workpacket.git.repository import Repository
from workpacket.shell.transactions.transaction import writer_lock
root = Path(sys.argv[1])
with writer_lock(Repository(root, root / ".git", root / ".git"), "activate WP-1-Kettle-v1"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


@pytest.fixture
def holder(repository: Repository) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(repository.root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str], how: int = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_who_waits_in_vain_is_told_who_writes_and_since_when(
    repository: Repository, holder: subprocess.Popen[str]
) -> None:
    assert writer_at_work(repository)
    begun = time.monotonic()
    with pytest.raises(WorkpacketError) as caught, writer_lock(repository, "claim", wait=0.1):
        pass
    assert time.monotonic() - begun < 5
    end(holder)
    message = caught.value.message
    assert caught.value.code == "lock_held"
    assert "activate WP-1-Kettle-v1" in message
    assert f"process {holder.pid} on " in message
    assert ", since 20" in message


def test_the_lock_comes_free_with_its_process(repository: Repository, holder: subprocess.Popen[str]) -> None:
    end(holder)
    assert not writer_at_work(repository)
    with writer_lock(repository, "claim", wait=0):
        assert writer_at_work(repository)
    assert not writer_at_work(repository)


def test_a_waiting_writer_goes_on_when_the_lock_comes_free(
    repository: Repository, holder: subprocess.Popen[str]
) -> None:
    ender = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill {holder.pid}"])
    with writer_lock(repository, "claim", wait=20):
        pass
    ender.wait()
    end(holder)


def test_the_lock_is_given_back_after_an_error(repository: Repository) -> None:
    with pytest.raises(RuntimeError), writer_lock(repository, "claim"):
        raise RuntimeError
    with writer_lock(repository, "claim", wait=0):
        pass


def test_where_nobody_ever_wrote_nobody_is_at_work(repository: Repository) -> None:
    assert not writer_at_work(repository)
    assert not (repository.common_dir / "workpacket").exists()


def test_a_holder_that_has_not_said_who_it_is_is_still_a_holder(repository: Repository) -> None:
    with writer_lock(repository, "claim"):
        for said in (b"", b"{", b"[]", b'{"pid": 1}'):
            (repository.common_dir / "workpacket" / "lock").write_bytes(said)
            with pytest.raises(WorkpacketError, match="an unknown process"), writer_lock(repository, "x", wait=0):
                pass


def test_a_lock_that_cannot_be_opened_is_told(repository: Repository) -> None:
    (repository.common_dir / "workpacket").write_bytes(b"in the way")
    with pytest.raises(WorkpacketError) as caught, writer_lock(repository, "claim"):
        pass
    assert caught.value.code == "lock_unavailable"


def test_a_file_system_without_locks_is_told(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_file: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(WorkpacketError) as caught, writer_lock(repository, "claim"):
        pass
    assert caught.value.code == "unsuitable_file_system"


def test_a_full_disk_leaves_the_holder_nameless_but_holding(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: int, _length: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with writer_lock(repository, "claim"):
        assert writer_at_work(repository)
