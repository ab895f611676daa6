"""Output that is shown again as long as nothing it was made from has changed.

Most calls of `check` and `list` change nothing since the last one. The way to that answer is short: look at the files,
compare, print. Rules and readers are imported only by the function that computes.
"""

from __future__ import annotations

import os
import sys
import time

from workpacket.shell.cache import RACY_NS, Cache, Shown
from workpacket.shell.tree import Found, look_at, look_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workpacket.cli.options import Arguments
    from workpacket.cli.workspace import Workspace

    Files = Sequence[Found]

# Files other than documents on which every output rests.
SETTINGS_FILES = ("pyproject.toml", ".GOV/policy/policy.toml")


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


def show(arguments: Arguments, workspace: Workspace, files: Files, cache: Cache, compute: Callable[[], Output]) -> int:
    """Writes the output of the command, computed only if any file differs from the last time."""
    started = time.time_ns()
    # In this form even names that are not UTF-8 can be stored.
    request = repr((workspace.root, workspace.here, arguments.command.name, arguments.given, terminal()))
    shown = cache.shown(request)
    if shown is not None and shown.state == _state(workspace.root, files, shown.extras):
        sys.stdout.write(shown.output)
        return shown.status
    output = compute()
    sys.stdout.write(output.text)
    extras = sorted({*SETTINGS_FILES, *output.extras})
    if output.repeatable and _at_rest(workspace.root, files, extras, started):
        state = _state(workspace.root, files, extras)
        cache.show(request, Shown(state, extras, output.status, output.text))
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


def _state(root: str, files: Files, extras: Sequence[str]) -> str:
    """Changes when any of the files does."""
    looked_at = [*files, *(found for path in extras for found in _looked_at(root, path))]
    lines = [f"{found.path}\t{found.state}\t{found.problem}" for found in looked_at]
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8")


def _looked_at(root: str, path: str) -> list[Found]:
    """The file; of a folder, which ends with '/', every file below it."""
    return look_below(root, path.rstrip("/")) if path.endswith("/") else [look_at(root, path)]


def _at_rest(root: str, files: Files, extras: Sequence[str], started: int) -> bool:
    """Whether every file had been left alone for a while when it was read: git's rule for racily clean entries."""
    times = [found.mtime_ns for found in files]
    times += [found.mtime_ns for path in extras for found in _looked_at(root, path)]
    return max(times, default=0) + RACY_NS < started
