"""A Temporal server of our own, on loopback, with its state in a file, so that a killed server loses nothing."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("temporal")
_ATTRIBUTES = ("WorkpacketPacket=Keyword", "WorkpacketLane=Keyword")


class TemporalServer:
    """`temporal server start-dev` without its pages. It is stopped by the number of its own process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wp-temporal-"))
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            str(PROGRAM), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self.port),
            "--db-filename", str(self.folder / "temporal.db"), "--log-level", "error",
        ]  # fmt: skip
        for attribute in _ATTRIBUTES:
            command += ["--search-attribute", attribute]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_ready()

    def kill(self) -> None:
        """End it as a crash would, without a farewell."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process = None

    def remove(self) -> None:
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        """The port is open before the namespace can be used, so a command is asked until it succeeds."""
        assert self.process is not None
        ask = [str(PROGRAM), "operator", "namespace", "describe", "-n", "default", "--address", self.address]
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text("utf-8", "replace")[-2000:])
            if _is_open(self.port) and subprocess.run(ask, capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("the Temporal server did not become ready")


def _is_open(port: int) -> bool:
    with closing(socket.socket()) as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
        return port
