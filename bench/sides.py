"""A side is one revision of the package in its own environment, with the repositories that it is measured in.

One side is this tree; with `--compare` there is a second, checked out with `git worktree`. Both run the benchmark of
this tree, so that the same work is measured. Each has its own repositories, because caches depend on the revision.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from bench.timing import OUR_PATIENCE, NotMeasured, Run, run

ROOT = Path(__file__).parent.parent
Figures = Mapping[str, float]
Made = TypeVar("Made")

_LAUNCHER = "#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"


class Side:
    """`sources` contains tools/workpacket; everything that is created goes below `scratch`."""

    def __init__(self, sources: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.python = str(scratch / "environment" / "bin" / "python")
        self.workpacket = str(scratch / "environment" / "bin" / "workpacket")
        self._settings = {
            # The configuration of the person who runs this is neither read nor changed.
            "XDG_CONFIG_HOME": str(scratch / "settings"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            # Compile the modules, as an installation would.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        self._made: dict[str, object] = {}
        self._closing = ExitStack()
        scratch.mkdir(parents=True)
        self._make_environment(sources)

    def _make_environment(self, sources: Path) -> None:
        """Make an environment with the dependencies of the running one, and the package as a wheel installs it."""
        folder = self.scratch / "environment"
        venv.create(folder, symlinks=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = folder / "lib" / version / "site-packages"
        paths = "".join(f"{line}\n" for line in (sysconfig.get_path("purelib"), ROOT))
        (packages / "side.pth").write_text(paths, encoding="utf-8")
        unneeded = shutil.ignore_patterns("__pycache__")
        shutil.copytree(sources / "tools" / "workpacket", packages / "workpacket", ignore=unneeded)
        if (sources / "schemas").is_dir():
            shutil.copytree(sources / "schemas", packages / "workpacket" / "schemas")
        compiled = [self.python, "-m", "compileall", "-q", str(packages / "workpacket")]
        subprocess.run(compiled, check=True, capture_output=True)
        project = tomllib.loads((sources / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        module, _, function = project["scripts"]["workpacket"].partition(":")
        launcher = Path(self.workpacket)
        launcher.write_text(_LAUNCHER.format(python=self.python, module=module, function=function), encoding="utf-8")
        launcher.chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self._settings}

    def made(self, name: str, make: Callable[[Path], Made]) -> Made:
        """Return what `make` created at a path of this name in the first call. A failure is not tried again."""
        if name not in self._made:
            try:
                with self._settings_of_this_process():
                    self._made[name] = make(self.scratch / name)
            except Exception as error:
                self._made[name] = error if isinstance(error, NotMeasured) else _failed(name, error)
        found = self._made[name]
        if isinstance(found, NotMeasured):
            raise found
        return found  # type: ignore[return-value]  # the name says what it is

    def when_done(self, action: Callable[[], object]) -> None:
        self._closing.callback(action)

    def run(
        self, command: Sequence[str], folder: Path, *, statuses: Sequence[int] = (0,), patience: float = OUR_PATIENCE
    ) -> Run:
        return run(command, folder, statuses=statuses, environment=self.environment, patience=patience)

    def figures(self, module: str, *arguments: str) -> Figures:
        """Run `python -m MODULE ARGUMENTS`, which measures within the process; return its last line, parsed as JSON."""
        command = [self.python, "-m", module, *arguments]
        last = self.run(command, self.scratch).output.strip().splitlines()[-1:] or ["nothing"]
        try:
            figures = json.loads(last[0])
        except ValueError:
            raise NotMeasured(f"{module} printed no figures: {last[0]}") from None
        assert isinstance(figures, dict)
        return figures

    @contextmanager
    def _settings_of_this_process(self) -> Iterator[None]:
        """Set the environment of this process, which the package reads while repositories are made."""
        before = {name: os.environ.get(name) for name in self._settings}
        os.environ.update(self._settings)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class UnknownRevision(Exception):
    """The commit does not exist in the repository."""


def commit_of(repository: Path, revision: str) -> str:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    if found.returncode:
        raise UnknownRevision(f"unknown revision {revision!r}; --compare expects a commit, branch or tag")
    return found.stdout.strip()


@contextmanager
def laid_out(repository: Path, commit: str, folder: Path) -> Iterator[Path]:
    """Check out a commit as a git work tree that is removed afterwards."""
    git = ["git", "-C", str(repository), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=False, capture_output=True)


def _failed(name: str, error: Exception) -> NotMeasured:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else b""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said or ""
    reason = (text.strip().splitlines() or [f"{type(error).__name__}: {error}"])[-1]
    return NotMeasured(f"preparing {name} failed: {reason}")
