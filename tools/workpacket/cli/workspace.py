"""The repository that a command works in, how to name files in it, and output that is cached until something that it
depends on changes.

Usually nothing has changed since the last call of `check` or `list`, so the fast path is short: look at the files,
compare, and print. Rules and readers are imported only by the function that computes the output.

Also a progress bar on the terminal, for work that takes longer than a second.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from workpacket.cli.options import terminal
from workpacket.documents.places import ROOTS
from workpacket.git.discovery import locate
from workpacket.model.layout import BASELINE_PATH, GOVERNANCE_FOLDER, POLICY_PATH
from workpacket.problem import WorkpacketError
from workpacket.shell.cache import Cache, CachedOutput, RestsOn
from workpacket.shell.tree import Found, find_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workpacket.cli.options import Arguments

    Files = Sequence[Found]

_PATIENCE = 1.0
_INTERVAL = 0.1
_WIDTH = 30


class Workspace:
    """`root` is the top of the work tree; `git_dir` is the work tree's own git directory, and `common_dir` is the one
    that all work trees share; both are None without git.
    """

    __slots__ = ("common_dir", "git_dir", "here", "root")

    def __init__(self, root: str, git_dir: str | None, common_dir: str | None, here: str) -> None:
        self.root = root
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.here = here

    def open_cache(self, folder: str = "") -> Cache:
        """Open the cache, in this folder or the one that WORKPACKET_CACHE_DIR names, if any."""
        return open_cache(self.git_dir, self.common_dir, folder and os.path.join(self.here, folder))

    @property
    def is_partial(self) -> bool:
        """Whether governed files are missing from the work tree, so the output may be incomplete."""
        from workpacket.git.discovery import may_hide

        if not may_hide(self.git_dir, GOVERNANCE_FOLDER):
            return False
        from workpacket.shell.held import hidden

        return hidden(self.root) is not None

    def relative(self, word: str) -> str:
        """Return a path given on the command line, relative to the repository; '' for the repository itself."""
        full = os.path.join(self.here, word)
        path = _below(self.root, full)
        if path is None:
            # An editor names files by the path that its user opened, which may include a link to the repository.
            folder, name = (full, "") if os.path.isdir(full) else os.path.split(full)
            path = _below(os.path.realpath(self.root), os.path.join(os.path.realpath(folder), name))
        if path is None:
            raise WorkpacketError(
                "path_outside_repository",
                f"{word!r} is outside the repository",
                hint=f"the repository is {self.root}",
            )
        return path


def _below(root: str, full: str) -> str | None:
    """Return the path relative to `root`, or '' for `root` itself; None if the path is outside `root`."""
    path = os.path.relpath(full, root).replace(os.sep, "/")
    if path == ".." or path.startswith("../") or os.path.isabs(path):
        return None
    return "" if path == "." else path


def open_workspace(*, named: bool = False) -> Workspace:
    """Return the repository that contains the current directory; outside git, the nearest folder with governance
    documents, or, if files are `named`, the current directory itself.
    """
    here = os.getcwd()
    try:
        found = locate(here)
    except WorkpacketError as error:
        # Documents can also be checked without git, or with a broken git, but not if the environment names a
        # repository.
        folder = None if os.environ.get("GIT_DIR") else _governed_folder(here)
        if folder is not None:
            return Workspace(folder, None, None, here)
        if named and error.code == "no_repository" and not os.environ.get("GIT_DIR"):
            return Workspace(here, None, None, here)
        if error.code != "no_repository" or os.environ.get("GIT_DIR"):
            raise
        raise WorkpacketError(
            "no_repository",
            f"{here} is not in a git repository, and no parent folder contains {GOVERNANCE_FOLDER}",
            hint="go to your repository, or create one with `git init`",
        ) from error
    return Workspace(found.root, found.git_dir, found.common_dir, here)


def _governed_folder(here: str) -> str | None:
    folder = here
    while not os.path.isdir(os.path.join(folder, GOVERNANCE_FOLDER)):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def open_cache(git_dir: str | None, common_dir: str | None, folder: str = "") -> Cache:
    from workpacket.shell.package_files import package_digest, package_fingerprint

    tree = os.path.basename(git_dir) if git_dir is not None and git_dir != common_dir else ""
    folder = folder or os.environ.get("WORKPACKET_CACHE_DIR", "")
    if folder:
        return Cache(folder, package_digest(), (), tree=tree)
    return Cache(common_dir, package_fingerprint(), tree=tree)


def write_new(target: str, data: bytes) -> None:
    try:
        with open(target, "xb") as file:
            file.write(data)
    except FileExistsError:
        raise WorkpacketError("file_unwritable", f"{target} already exists and was not overwritten", path=target,
                              hint="choose a different file, or remove the old one") from None  # fmt: skip


def write_report(workspace: Workspace, word: str, text: str) -> None:
    """Write a report, replacing an earlier report, but never a governance document."""
    from workpacket.documents.places import kind_of

    path = os.path.join(workspace.here, word)
    if kind_of(os.path.relpath(path, workspace.root).replace(os.sep, "/")) is not None:
        message = f"{word} is in a folder for governance documents"
        raise WorkpacketError("invalid_value", message, hint="name another file")
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        message = f"cannot write the report to {word}: {error.strerror}"
        raise WorkpacketError("file_unwritable", message, hint="choose a file in an existing folder") from error


def is_governed(folders: Sequence[str] = ROOTS) -> bool:
    """Whether this repository, or a folder above it, has governance documents; also true outside any repository."""
    try:
        root = open_workspace().root
    except WorkpacketError:
        return True
    return any(os.path.isdir(os.path.join(root, folder)) for folder in folders)


def say_that_nothing_is_governed() -> None:
    """Print a note for users who have not begun yet, except below a governed folder or outside any repository."""
    if not is_governed():
        sys.stderr.write("note: this repository is not governed yet; to start: workpacket init\n")


def progress_bar() -> Callable[[int, int], None]:
    """Return a function to call with (done, all). It draws on standard error, so that the output remains clean."""
    if not sys.stderr.isatty():
        return lambda _done, _all: None
    started = drawn = time.monotonic()

    def draw(done: int, everything: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if done >= everything:
            if drawn > started:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
        elif now - started > _PATIENCE and now - drawn > _INTERVAL:
            drawn = now
            filled = _WIDTH * done // everything
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done} of {everything} files")
            sys.stderr.flush()

    return draw


# Files other than documents on which every output depends.
SETTINGS_FILES = ("pyproject.toml", POLICY_PATH, BASELINE_PATH)


class Output:
    """A command's output, its exit status, and what both depend on besides the documents."""

    __slots__ = ("rests_on", "status", "text")

    def __init__(self, text: str, status: int, rests_on: RestsOn | None = None) -> None:
        self.text = text
        self.status = status
        self.rests_on = rests_on or RestsOn()


def show(
    arguments: Arguments,
    workspace: Workspace,
    files: Files,
    cache: Cache,
    compute: Callable[[], Output],
    deciding: Callable[[], tuple[str, ...] | None] = tuple,
) -> int:
    """Write the output of the command; compute it only if something that it depends on has changed (`CachedOutput`)."""
    request = (workspace.here, arguments.command.name, arguments.given, terminal())
    cached = CachedOutput(cache, workspace.root, files, request, deciding, _now)
    known = cached.recall()
    if known is not None:
        status, text = known
        sys.stdout.write(_with_ages(text))
        return status
    output = compute()
    sys.stdout.write(_with_ages(output.text))
    cached.keep(output.status, output.text, output.rests_on | RestsOn(SETTINGS_FILES))
    return output.status


# Cached text has moments between two of these; when it is printed, each becomes the time since then.
AGE = "\x1f"


def _with_ages(text: str) -> str:
    if AGE not in text:
        return text
    from workpacket.model.wording import age

    now, parts = _now(), text.split(AGE)
    return "".join(age(part, now) if number % 2 else part for number, part in enumerate(parts))


def _now() -> str:
    from workpacket.shell.actor import moment  # few outputs depend on the time

    return moment().now


def show_fresh(output: Output) -> int:
    """Write output without caching it, because its dependencies cannot be listed."""
    sys.stdout.write(_with_ages(output.text))
    return output.status


# Everything below .GOV is recorded as whole folders (`read_only.output`), which halves the time for ten thousand files.
_ELSEWHERE = tuple(folder for folder in ROOTS if folder != GOVERNANCE_FOLDER)


class GarbageCollectionOff:
    """Turn off garbage collection for commands that read all documents, which remain in memory until the end anyway. In
    an audit of a thousand packets, garbage collection would take two fifths of the time.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._before:
            gc.enable()


def run_cached(arguments: Arguments, module: str, deciding: Callable[[], tuple[str, ...] | None] = tuple) -> int:
    """Run `compute(arguments, cache)` from a command-line module that is imported only if something has changed."""
    workspace = open_workspace()
    cache = workspace.open_cache()

    def compute() -> Output:
        with GarbageCollectionOff():
            # importlib would be imported in every call, also where nothing is computed.
            output: Output = __import__(f"workpacket.cli.{module}", fromlist=["compute"]).compute(arguments, cache)
            return output

    try:
        if workspace.is_partial:
            return show_fresh(compute())  # and this is printed every time
        return show(arguments, workspace, find_documents(workspace.root, _ELSEWHERE), cache, compute, deciding)
    finally:
        cache.close()
