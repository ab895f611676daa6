"""Output that is shown again as long as nothing it was made from has changed.

Most calls of `check` and `list` change nothing since the last one. The way to that answer is short: look at the files,
compare, print. Rules and readers are imported only by the function that computes.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from importlib import import_module

from workpacket.cli.workspace import open_workspace
from workpacket.documents.places import ROOTS
from workpacket.model.layout import GOVERNANCE_FOLDER, POLICY_PATH
from workpacket.shell.checking.cache import RACY_NS, Cache, Shown
from workpacket.shell.folder_state import describe, unchanged
from workpacket.shell.tree import Found, find_documents, look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workpacket.cli.options import Arguments
    from workpacket.cli.workspace import Workspace

    Files = Sequence[Found]


# Files other than documents on which every output rests.
SETTINGS_FILES = ("pyproject.toml", POLICY_PATH)


class Output:
    """What a command writes, and its exit status.

    `extras` are the files besides the documents on which it rests. What has effects is not `repeatable`.
    """

    __slots__ = ("extras", "repeatable", "status", "text")

    def __init__(self, text: str, status: int, extras: Sequence[str] = (), *, repeatable: bool = True) -> None:
        self.text = text
        self.status = status
        self.extras = extras
        self.repeatable = repeatable


def show(
    arguments: Arguments,
    workspace: Workspace,
    files: Files,
    cache: Cache,
    compute: Callable[[], Output],
    deciding: Callable[[], tuple[str, ...] | None] = tuple,
) -> int:
    """Writes the output of the command, computed only if any file differs from the last time.

    `deciding` tells what else it rests on; None for what cannot be told.
    """
    started = time.time_ns()
    decides = deciding()
    # In this form even names that are not UTF-8 can be stored.
    request = repr((workspace.root, workspace.here, arguments.command.name, arguments.given, terminal(), decides))
    shown = cache.shown(request) if decides is not None else None
    if shown is not None and _is_as_it_was(workspace.root, files, shown):
        sys.stdout.write(shown.output)
        return shown.status
    output = compute()
    sys.stdout.write(output.text)
    extras = sorted({*SETTINGS_FILES, *output.extras})
    if output.repeatable and decides is not None and deciding() == decides:
        looked_at = [*files, *_single(workspace.root, extras)]
        folders = [describe(workspace.root, folder) for folder in _folders(extras)]
        # Whether all had been left alone for a while when it was read: git's rule for racily clean entries.
        newest = max([*(found.mtime_ns for found in looked_at), *(folder.newest for folder in folders)], default=0)
        if newest + RACY_NS < started:
            described = [folder.text for folder in folders]
            cache.show(request, Shown(_state(looked_at), extras, described, output.status, output.text))
    return output.status


def show_fresh(output: Output) -> int:
    """Writes what rests on more than files can tell, and remembers nothing of it."""
    sys.stdout.write(output.text)
    return output.status


def terminal() -> tuple[bool, int | None, str]:
    """Whether output goes to a terminal, how wide that is, and what the environment says of colour."""
    wish = "never" if os.environ.get("NO_COLOR") else "always" if os.environ.get("FORCE_COLOR") else ""
    if not sys.stdout.isatty():
        return False, None, wish
    if not wish and os.environ.get("TERM") == "dumb":
        wish = "never"
    try:
        # A terminal that nobody gave a size to (a pty of CI, of a container) says 0.
        return True, os.get_terminal_size(sys.stdout.fileno()).columns or None, wish
    except OSError:
        return True, None, wish


def _is_as_it_was(root: str, files: Files, shown: Shown) -> bool:
    """Whether nothing that the output rested on has changed."""
    if shown.state != _state([*files, *_single(root, shown.extras)]):
        return False
    described = zip(_folders(shown.extras), shown.folders, strict=False)
    return all(unchanged(root, folder, text) for folder, text in described)


def _state(looked_at: Files) -> str:
    """Changes when any of the files does."""
    lines = [f"{found.path}\t{found.state}\t{found.problem}" for found in looked_at]
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8")


def _single(root: str, extras: Sequence[str]) -> list[Found]:
    return [look_at(root, path) for path in extras if not path.endswith("/")]


def _folders(extras: Sequence[str]) -> list[str]:
    """Those that end with '/' are folders, and stand for everything below them."""
    return [path.rstrip("/") for path in extras if path.endswith("/")]


# What lies below .GOV is described as whole folders (`looked_at`), which takes half as long for ten thousand files.
_ELSEWHERE = tuple(folder for folder in ROOTS if folder != GOVERNANCE_FOLDER)


class GarbageCollectionOff:
    """For commands that read all documents: these stay in memory until the end, so a search for garbage finds none.

    In an audit of a thousand packets it would take two fifths of the time.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._before:
            gc.enable()


def run_cached(arguments: Arguments, module: str) -> int:
    """Run `compute(arguments)` of a module of the command line, which is imported only if something has changed."""
    workspace = open_workspace()
    cache = Cache(workspace.common_dir, workspace.fingerprint)

    def compute() -> Output:
        with GarbageCollectionOff():
            output: Output = import_module(f"workpacket.cli.{module}").compute(arguments)
            return output

    try:
        if workspace.is_partial:
            return show_fresh(compute())  # which says so every time
        return show(arguments, workspace, find_documents(workspace.root, _ELSEWHERE), cache, compute)
    finally:
        cache.close()
