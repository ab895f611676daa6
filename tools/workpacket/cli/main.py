"""The entry point: find the command, run it, and turn a failure into one clear message and an exit status.

Every call pays for the imports here, so there are very few.
"""

from __future__ import annotations

import gc
import os
import sys

from workpacket import __version__
from workpacket.cli.commands import MODULES, below, resolve
from workpacket.model.exits import BROKEN_PIPE, INTERRUPTED
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.model.wording import FORMER, SILENT, typed_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from workpacket.cli.options import Command


# Commands that are useful in a repository without governance.
_ANYWHERE = frozenset({"init", "deps", "lint-justfile", "import", "export", "resume", "explain"})
_FAMILIES_ANYWHERE = ("runtime ", "help ")


def console() -> NoReturn:
    """The entry point of the installed `workpacket` script."""
    # Modules and documents are kept until the end: searching them for garbage after every 700 new objects, as Python
    # does by default, costs a cold `check` of one stub 3 % of its CPU time. Servers still collect.
    gc.set_threshold(50_000, 20, 100)
    status = main(sys.argv[1:])
    patterns = sys.modules.get("workpacket.lazy_pattern")
    if patterns is not None:
        patterns.keep_compiled()
    _leave(status)


def _leave(status: int) -> NoReturn:
    """End the process without freeing its memory piece by piece, which costs a short command 4 % of its time.

    What else Python does at the end is done: functions registered with `atexit` are called, and output is written. If
    another thread is running, or a program that captures the output called this function, it ends as usual.
    """
    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    if not alone or sys.stdout not in (None, sys.__stdout__):
        gc.freeze()  # modules and documents are not searched for garbage three more times
        sys.exit(status)
    atexit = sys.modules.get("atexit")
    if atexit is not None:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):  # the reader is gone; `main` has said so, if it matters
                continue
    os._exit(status)


def main(words: list[str]) -> int:
    """Run one command line and return its exit status."""
    if sys.stdout is None:
        # The program was started with its output closed: the findings still decide the exit status.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - likewise
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe may close it (`workpacket list | head`). But a check whose findings no one saw has not
        # passed, and under `set -o pipefail` a 0 would claim that it did.
        sys.stdout = None
        return BROKEN_PIPE
    except Exception as error:
        from workpacket.cli.failure import report_failure

        return report_failure(error, words)


def _run(words: list[str]) -> int:
    name, count = resolve(words)
    if not name and words[:1] == ["help"] and not words[-1].startswith("-"):
        words = [*words[1:], "--help"]
        name, count = resolve(words)
    if not name:
        return _without_command(words)
    command = load(name)
    from workpacket.cli.options import own_words, parse

    own = own_words(words)
    _say_what_is_typed_now(words[:count], own)
    arguments = parse(command, words[count:]) if not {"-h", "--help"} & set(own) else None
    if arguments is None:
        from workpacket.cli.help import command_help

        print(command_help(command, _columns()))
        return 0
    try:
        return command.run(arguments)
    finally:
        anywhere = name in _ANYWHERE or typed_as(name).startswith(_FAMILIES_ANYWHERE)
        if not anywhere and not os.path.isdir(GOVERNANCE_FOLDER):
            from workpacket.cli.workspace import say_that_nothing_is_governed

            say_that_nothing_is_governed()


def _without_command(words: list[str]) -> int:
    """Print the version, or the help for the program or for a family; anything else is an unknown command."""
    if words[:1] in (["-V"], ["--version"]):
        print(f"workpacket {__version__}")
        return 0
    from workpacket.cli.help import family_help, overview

    if not words or words[0] in {"-h", "--help"}:  # also `help` alone
        print(overview(_columns()))
        return 0 if words else 2
    if below(words[0]) and words[1:] in ([], ["-h"], ["--help"]):
        print(family_help(words[0], _columns()))
        return 0 if words[1:] else 2
    from workpacket.cli.failure import unknown_command

    raise unknown_command(words)


def _columns() -> int | None:
    from workpacket.cli.options import terminal

    return terminal()[1]


def _say_what_is_typed_now(spelling: list[str], own: Sequence[str]) -> None:
    """Tell a person who used an old spelling what the current spelling is."""
    spelled = " ".join(spelling)
    if spelled in FORMER and spelled not in SILENT and "--json" not in own:
        sys.stderr.write(f"note: `workpacket {spelled}` is now `workpacket {FORMER[spelled]}`\n")


def load(name: str) -> Command:
    """Return the declaration of the command called `name`."""
    module = MODULES.get(typed_as(name))
    if not module:
        from workpacket.cli.failure import unknown_command

        raise unknown_command([name])
    found = __import__(f"workpacket.cli.{module}", fromlist=["COMMAND"])
    command: Command = found.DECLARED[name] if hasattr(found, "DECLARED") else found.COMMAND
    return command
