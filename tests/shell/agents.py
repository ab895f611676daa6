"""A real ssh-agent for a test, and keys made by the real ssh-keygen."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from workpacket.approvals.sshsig import NAMESPACE, armor
from workpacket.shell.keys import run_openssh


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


def second_opinion(blob: bytes, message: bytes, principal: str, signers: bytes, at: datetime) -> bool | None:
    """What `ssh-keygen -Y verify` says with this content of allowed_signers; None if the tool is not here.

    It judges less than we do (touch flags, roles, time of use), so its yes is no approval. Its no to our yes is an
    alarm.
    """
    tool = shutil.which("ssh-keygen")
    if tool is None:
        return None
    with tempfile.TemporaryDirectory(prefix="workpacket-") as folder:
        signers_path, signature_path = (Path(folder, name) for name in ("allowed_signers", "signature"))
        signers_path.write_bytes(signers)
        signature_path.write_text(armor(blob), "ascii")
        when = at.astimezone(UTC).strftime("verify-time=%Y%m%d%H%M%SZ")
        options = ["-n", NAMESPACE, "-I", principal, "-f", str(signers_path), "-s", str(signature_path), "-O", when]
        status, _ = run_openssh([tool, "-Y", "verify", *options], message)
    return status == 0
