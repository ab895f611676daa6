"""Makes or updates `.venv` for just.py, installs into it, and says in one line what went wrong.

The stamp says "unfinished" until the end, so that an interrupted set-up is done again from
an empty folder. A lock separates concurrent calls; the installers inherit it, so it is held until
the last of them has exited even if this process is killed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

UNFINISHED = b"unfinished\n"

# What pip prints in each of these cases, and the message for a person. Every index has uv, so if it is not found,
# the index was not reached.
_KNOWN_FAILURES = (
    (r"No space left on device", "the disk is full (no space left on device)"),
    (r"CERTIFICATE_VERIFY_FAILED", "the certificate of the package index is not trusted; PIP_CERT can name yours"),
    (
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|requirement uv \(from versions: none\)",
        "no connection to the package index; once .venv is complete, recipes work without one",
    ),
)


class CannotSetUp(Exception):
    """The development environment can't be made; the message is one line for a person."""


def set_up(root: str, stamp: str, fingerprint: bytes, is_ready: Callable[[], bool]) -> None:
    """Bring `.venv` below `root` to the state that `fingerprint` describes."""
    _require_standard_modules()
    with _lock(Path(root, ".venv.lock")) as inherited:
        if is_ready():
            return
        environment = _Environment(Path(root), Path(stamp), inherited)
        environment.begin(fingerprint)
        environment.install()
        environment.finish(fingerprint)


def _require_standard_modules() -> None:
    """Check for two modules that Linux distributions package separately from Python."""
    for module in ("venv", "ensurepip"):
        if find_spec(module) is None:
            package = f"python3.{sys.version_info.minor}-venv"
            raise CannotSetUp(
                f"{sys.executable} has no module {module}; install it (Debian, Ubuntu: apt install {package})"
            )


class _Environment:
    """The virtual environment while it is made or updated."""

    def __init__(self, root: Path, stamp: Path, inherited: tuple[int, ...]) -> None:
        self.root = root
        self.stamp = stamp
        self.folder = stamp.parent
        self.inherited = inherited
        self.programs = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.programs / "python"

    def begin(self, fingerprint: bytes) -> None:
        """Keep the result of a finished set-up at this path with this Python; otherwise begin with an empty folder."""
        if not self.stamp.exists() and self.folder.exists() and any(self.folder.iterdir()):
            raise CannotSetUp(f"{self.folder} was not made by tools/just.py; move it away and run this again")
        place = fingerprint.partition(b"\n")[0]
        keeps = self.stamp.exists() and self.stamp.read_bytes().partition(b"\n")[0] == place and self.python.exists()
        self.folder.mkdir(exist_ok=True)
        self.stamp.write_bytes(UNFINISHED)
        if keeps:
            return
        self._empty()
        _tell(f"making {self.folder} with Python {sys.version.split()[0]}")
        # In a virtual environment, which may be this one, use the Python that it was made from.
        python = getattr(sys, "_base_executable", None) or sys.executable
        self._require("making .venv", python, "-I", "-m", "venv", "--without-pip", self.folder)
        # venv could do this too, but would not say what went wrong.
        self._require("making .venv", self.python, "-I", "-m", "ensurepip", "--upgrade")

    def _empty(self) -> None:
        for entry in self.folder.iterdir():
            if entry == self.stamp:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def install(self) -> None:
        """Install the build and development tools first, so that building the package needs no network."""
        _tell("installing the development tools; this takes a while the first time only")
        installer = self._installer(_requirements(self.root / "pyproject.toml"))
        package = ("--no-deps", "--no-build-isolation", "--editable", self.root)
        self._require("installing the package", *installer, *package)
        # An editable install compiles nothing; a file that does not compile is for the tests to report.
        self._run(self.python, "-I", "-m", "compileall", "-q", self.root / "tools" / "workpacket")

    def _installer(self, requirements: list[str]) -> tuple[str | Path, ...]:
        """Install `requirements` and return the command that succeeded.

        uv takes a tenth of pip's time, but does not read pip's configuration, which may name a mirror or a proxy.
        """
        pip = (self.python, "-I", "-m", "pip", "install", "--quiet")
        uv = (self.programs / "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", self.python)
        self._require("installing uv", *pip, "uv")
        if self._run(*uv, *requirements).returncode == 0:
            return uv
        self._require("installing the development tools", *pip, *requirements)
        return pip

    def finish(self, fingerprint: bytes) -> None:
        new = self.stamp.with_suffix(".new")
        new.write_bytes(fingerprint)
        new.replace(self.stamp)

    def _require(self, purpose: str, *command: str | Path) -> None:
        result = self._run(*command)
        if result.returncode:
            raise CannotSetUp(f"{purpose} failed: {_in_one_line(result.stdout)}")

    def _run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment.setdefault("PIP_RETRIES", "2")
        environment.setdefault("UV_SYSTEM_CERTS", "1")  # only the system knows the certificate of an inspecting proxy
        environment.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=self.inherited,
            check=False,
        )


def _requirements(pyproject: Path) -> list[str]:
    """Return everything that pyproject.toml requires to build, run and develop the package."""
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    return [*table["build-system"]["requires"], *table["project"]["dependencies"], *table["dependency-groups"]["dev"]]


def _in_one_line(output: str) -> str:
    for pattern, meaning in _KNOWN_FAILURES:
        if re.search(pattern, output):
            return meaning
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["no message"])[-1]


def _tell(message: str) -> None:
    print(f"just.py: {message}", file=sys.stderr, flush=True)


@contextmanager
def _lock(path: Path) -> Iterator[tuple[int, ...]]:
    """Hold the lock; yield the file descriptors that child processes should inherit."""
    with path.open("a+b") as file:
        if not _try_lock(file.fileno(), wait=False):
            _tell("another call is setting up .venv; waiting for it")
            while not _try_lock(file.fileno(), wait=True):
                pass
        yield () if os.name == "nt" else (file.fileno(),)


def _try_lock(descriptor: int, *, wait: bool) -> bool:
    if sys.platform == "win32":
        import msvcrt

        with suppress(OSError):  # it gives up after ten seconds
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            return True
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
