"""Output that is cached until something that it depends on changes. Usually nothing has changed since the last call of
`check` or `list`, so the fast path is short: look at the files, compare, and print. Rules and readers are imported only
by the function that computes.
"""

from __future__ import annotations

import gc
import sys

from workpacket.cli.options import terminal
from workpacket.cli.workspace import open_workspace
from workpacket.documents.places import ROOTS
from workpacket.model.layout import BASELINE_PATH, GOVERNANCE_FOLDER, POLICY_PATH
from workpacket.shell.cache import Cache, CachedOutput, RestsOn
from workpacket.shell.tree import Found, find_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workpacket.cli.options import Arguments
    from workpacket.cli.workspace import Workspace

    Files = Sequence[Found]


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
    """Turn off garbage collection for commands that read all documents, which stay in memory until the end anyway. In
    an audit of a thousand packets, collecting would take two fifths of the time.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._before:
            gc.enable()


def run_cached(arguments: Arguments, module: str, deciding: Callable[[], tuple[str, ...] | None] = tuple) -> int:
    """Run `compute(arguments, cache)` of a module of the command line, imported only if something has changed."""
    workspace = open_workspace()
    cache = Cache(workspace.common_dir, workspace.fingerprint)

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
