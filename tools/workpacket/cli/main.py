"""The entry point: find the command, run it, and turn a failure into one clear message and an exit status.

Every call pays for the imports here, so there are hardly any.
"""

from __future__ import annotations

import gc
import os
import sys

from workpacket import __version__
from workpacket.cli.commands import COMMANDS, GROUPS, OTHER_NAMES, module_of
from workpacket.model.exits import BROKEN_PIPE, INTERRUPTED
from workpacket.model.layout import GOVERNANCE_FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from workpacket.cli.options import Command


# Commands that are useful in a repository without governance.
_ANYWHERE = frozenset(
    {
        "init",
        "deps",
        "lint-justfile",
        *(name for title, group in GROUPS if title in {"Runs", "Help"} for name, _, _ in group),
    }
)


def console() -> NoReturn:
    """The entry point of the installed `workpacket` script."""
    # Modules and documents are kept until the end: searching them for garbage after every 700 new objects, as Python
    # does by default, costs a cold `check` of one stub 3 % of its CPU time. Servers still collect.
    gc.set_threshold(50_000, 20, 100)
    status = main(sys.argv[1:])
    gc.freeze()  # nor are they searched three more times when the interpreter exits
    sys.exit(status)


def main(words: list[str]) -> int:
    """Run one command line and return its exit status."""
    if sys.stdout is None:
        # The program was started with its output closed: the findings still decide the exit status.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the process ends
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
    if len(words) == 2 and words[0] == "help":
        words = [words[1], "--help"]
    if not words or words[0] in {"-h", "--help", "help"}:
        from workpacket.cli.cached_output import terminal
        from workpacket.cli.options import overview

        print(overview(terminal()[1]))
        return 0 if words else 2
    if words[0] in {"-V", "--version"}:
        print(f"workpacket {__version__}")
        return 0
    command = load(words[0])
    from workpacket.cli.options import own_words, parse

    arguments = parse(command, words[1:]) if not {"-h", "--help"} & set(own_words(words[1:])) else None
    if arguments is None:
        from workpacket.cli.options import command_help

        print(command_help(command))
        return 0
    try:
        return command.run(arguments)
    finally:
        if words[0] not in _ANYWHERE and not os.path.isdir(GOVERNANCE_FOLDER):
            from workpacket.cli.workspace import say_that_nothing_is_governed

            say_that_nothing_is_governed()


def load(name: str) -> Command:
    """Return the declaration of the command called `name`."""
    module = module_of(name)
    if module is None:
        from difflib import get_close_matches

        from workpacket.errors import WorkpacketError

        known = OTHER_NAMES.get(name.casefold())
        near = [known] if known else get_close_matches(name, [command for command, _, _ in COMMANDS], n=1)
        hint = f"did you mean `workpacket {near[0]}`?" if near else "workpacket --help"
        raise WorkpacketError("unknown_command", f"unknown command: {name!r}", hint=hint)
    from importlib import import_module

    found = import_module(f"workpacket.cli.{module}")
    command: Command = found.DECLARED[name] if hasattr(found, "DECLARED") else found.COMMAND
    return command
