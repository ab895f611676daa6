"""A real ssh-agent for a test, and keys made by the real ssh-keygen."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running_agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent of the test's own, in place of the person's; its socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="a-") as folder:
        socket = Path(folder) / "s"
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                if socket.exists():
                    break
                time.sleep(0.01)
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            yield
        finally:
            agent.terminate()
            agent.wait()


def make_key_file(path: Path, passphrase: str = "", kind: str = "ed25519", *options: str) -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path), *options]
    subprocess.run(command, check=True)
    return path


def add_to_agent(path: Path, *options: str) -> None:
    environment = os.environ | {"SSH_ASKPASS_REQUIRE": "never"}
    subprocess.run(["ssh-add", "-q", *options, str(path)], check=True, env=environment)
