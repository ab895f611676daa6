"""Commands whose answer is cached until something that it depends on changes. The code that computes an answer is
imported only when needed.
"""

from __future__ import annotations

import os

from workpacket.cli.options import FETCH, Arguments, Command, Option, chosen, usage
from workpacket.cli.workspace import Output, open_workspace, run_cached, show, show_fresh
from workpacket.shell.tree import find_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, TypeVar

    T = TypeVar("T")


def _show_all(arguments: Arguments) -> int:
    if arguments.flag("fetch"):
        from workpacket.cli.read_only import fetch_first

        fetch_first(arguments)
    # Only `status` says what waits for the person who asks.
    return run_cached(arguments, "overview", _who_asks if arguments.command.name == "status" else tuple)


_STATUS = Command(
    "status",
    _show_all,
    options=(FETCH,),
    description="""
Counts the packets in each lane, and lists what is waiting for you or for someone else, and for how long; who holds
what; runs that need attention; hand edits of the board; and packets that others have moved.""",
    examples=("workpacket status", "workpacket status --fetch"),
)


_NEXT = Command(
    "next",
    _show_all,
    options=(
        Option("for", "include packets held by this actor, and leave out packets assigned to others", value="NAME"),
        FETCH,
    ),
    description="Sorted by the number of packets waiting for them, then by risk, then by age.",
    examples=("workpacket next", "workpacket next --for coder-1"),
)


LIMIT = Option("limit", "show at most this many packets", value="N")
# Of `search`, without --limit.
SHOWN = 50

WORK_KINDS = ("stub", "packet", "work_package")


def limited(arguments: Arguments, chosen: Sequence[T], unless_told: int | None = None) -> tuple[Sequence[T], int]:
    """Return as many entries as requested, and the number of remaining ones."""
    text = arguments.value("limit")
    if text and (not text.isdecimal() or not int(text)):
        raise usage(arguments.command, "invalid_value", f"invalid --limit {text!r}: expected a positive number")
    most = int(text) if text else unless_told or len(chosen)
    return chosen[:most], max(len(chosen) - most, 0)


def _run_list(arguments: Arguments) -> int:
    workspace = open_workspace()
    cache = workspace.open_cache()
    files = [found for found in find_documents(workspace.root) if found.kind in WORK_KINDS]

    def compute() -> Output:
        from workpacket.cli.listing import list_work

        return list_work(arguments, workspace.root, files, cache)

    try:
        if workspace.is_partial:
            from workpacket.cli.read_only import say_what_is_missing

            say_what_is_missing(workspace.root)
            return show_fresh(compute())
        return show(arguments, workspace, files, cache, compute)
    finally:
        cache.close()


_LIST = Command(
    "list",
    _run_list,
    arguments="[PATTERN...]",
    description="Patterns are matched against ids; `*` matches any characters.",
    options=(
        Option("lane", "only packets in this lane", value="LANE", many=True),
        Option("kind", "only this kind", choices=WORK_KINDS),
        Option("revisions-of", "only revisions of this base id", value="BASE_WP_ID"),
        Option("risk", "only packets with this risk tier", value="TIER"),
        Option("depends-on", "only packets that depend on this one", value="WP_ID"),
        Option("holder", "only packets that this actor holds", value="NAME"),
        Option("mine", "only packets that you hold"),
        Option("blocked", "only blocked packets"),
        Option("since", "only packets with an event on or after this date", value="DATE"),
        LIMIT,
        Option("as", "who you are (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
    ),
    examples=(
        "workpacket list --lane READY_FOR_DEV",
        "workpacket list --mine",
        "workpacket list 'WP-1-*' --json",
    ),
)


def _run_search(arguments: Arguments) -> int:
    from workpacket.cli.search import run

    return run(arguments)


_SEARCH = Command(
    "search",
    _run_search,
    arguments="WORD...",
    description="""
Finds packets whose ids, titles, documents and events contain all the words, in any order and in any case. Packets with
the words in their id or title come first. Each packet is shown with the first lines that contain a word.""",
    options=(Option("limit", f"show at most this many packets (default: {SHOWN})", value="N"),),
    examples=("workpacket search parser", "workpacket search rate limit --json"),
)


# Like `cli.packet_command.ACTING`, which takes too long to import for read-only commands.
_KINDS = ("human", "agent", "ci")


EXPORTS = ("html", "csv", "json")


def _run_board(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "sync", "move", "export"))
    if action == "show":
        return _show_all(arguments)
    if action == "export":
        from workpacket.cli.overview import export

        return export(arguments)
    from workpacket.cli.registers import move_entry, sync_board

    return sync_board(arguments) if action == "sync" else move_entry(arguments)


def _run_show(arguments: Arguments) -> int:
    # The id of a work package of spec-kitty, WP07, ends in two digits; of most packets, it does not.
    if arguments.words and arguments.words[0][-2:].isdecimal():
        from workpacket.cli.packet_command import is_package_id

        if is_package_id(arguments.words[0]):
            from workpacket.cli.implement import show as show_package

            return show_package(arguments)
    return run_cached(arguments, "show", lambda: _deciding(arguments))


# What can change the actor, besides the settings of git.
_ASKING = ("WORKPACKET_ACTOR", "WORKPACKET_ACTOR_KIND", "CI", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


def _who_asks() -> tuple[str, ...] | None:
    """Return what the environment says about the actor, which determines whether they may judge the packet."""
    if "GIT_CONFIG_COUNT" in os.environ or "GIT_CONFIG_PARAMETERS" in os.environ:
        return None
    return tuple(f"{name}={os.environ.get(name)}" for name in _ASKING)


def compares_work_tree(arguments: Arguments, git_dir: str | None) -> bool:
    """Whether the branch of this packet is checked out: if so, the differences from HEAD are part of the cache key."""
    try:
        with open(f"{git_dir}/HEAD", encoding="utf-8") as file:
            branch = file.read().removeprefix("ref: refs/heads/").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return False  # also outside of git, where there is nothing to compare
    return branch.startswith("wp/") and arguments.words[:1] in ([], [branch.removeprefix("wp/")])


def _deciding(arguments: Arguments) -> tuple[str, ...] | None:
    who, place = _who_asks(), open_workspace()
    if who is None or not compares_work_tree(arguments, place.git_dir):
        return who
    from workpacket.git.run import run_git

    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return (*who, run_git(place.root, *words).text)


_SHOW = Command(
    "show",
    _run_show,
    arguments="[WP_ID]",
    description="""
Shows what to do and why, the criteria and their proofs, where to work, who holds the packet, what happened last, and
what is missing for the next lane. Without --full, long lists are truncated. With --at, shows only what the log said
then.""",
    options=(
        Option("full", "show long lists in full"),
        Option("at", "show the packet as of this date, event or revision", value="DATE|EVENT|REV"),
        Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
        Option("actor-kind", "the kind of actor", choices=_KINDS),
    ),
    examples=("workpacket show WP-1-Parser-v1", "workpacket show WP-1-Parser-v1 --at 2026-03-01"),
)


_BOARD = Command(
    "board",
    _run_board,
    arguments="show | sync [WP_ID...] | move WP_ID LANE | export",
    description="""
`sync` makes status lines, board and registry match the log, and adds missing sections. With --adopt, hand edits of the
board are recorded as moves if they need only a reason. `move` makes such a move from the command line. `show` displays
the lanes side by side on a terminal; `export` writes a page that needs neither a network nor scripts, or a table of all
packets as CSV or JSON. In CSV, text that a spreadsheet would run as a formula has an apostrophe in front.""",
    options=(
        Option("adopt", "record hand edits as moves instead of undoing them"),
        Option("at", "show: as of this date or revision", value="DATE|REV"),
        Option("out", "export: write to this file, which must not exist yet (default: standard output)", value="FILE"),
        Option("format", "export: the format (default: taken from the file name, otherwise html)", choices=EXPORTS),
        Option("reason", "the reason, as text", value="TEXT"),
        Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
        Option("actor-kind", "the kind of actor", choices=_KINDS),
    ),
    examples=(
        "workpacket board show",
        "workpacket board export --out board.html",
        "workpacket board export --format csv",
        "workpacket board sync",
        "workpacket board sync --adopt",
        'workpacket board move WP-1-Parser-v1 BLOCKED --reason "no test data"',
    ),
)


DECLARED: Final = {command.name: command for command in (_STATUS, _NEXT, _LIST, _SEARCH, _SHOW, _BOARD)}
