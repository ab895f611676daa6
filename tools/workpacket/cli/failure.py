"""Report the failure of a command: one clear message, and an exit status from the catalogue. For a command, an argument
or an option that does not exist, the message says what the person probably meant.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
import tempfile
import traceback
from difflib import get_close_matches
from typing import TYPE_CHECKING

from workpacket import __version__
from workpacket.cli.commands import COMMANDS, MODULES, below, resolve
from workpacket.cli.options import own_words
from workpacket.model import exits
from workpacket.model.ids import WorkPacketId
from workpacket.model.wording import FORMER, typed_as
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import Style, render_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workpacket.cli.options import Command


_REFUSED_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def report_failure(error: Exception, words: list[str]) -> int:
    """Report the error on standard error, or as a JSON object if requested."""
    if not isinstance(error, WorkpacketError):
        error = _unexpected(error, words)
    reason = catalogue().get(error.code)
    status = reason.exit_code if reason is not None else exits.INTERNAL
    if "--json" in own_words(words):
        sys.stdout.write(render_envelope(resolve(words)[0] or words[0], status, [error.problem], {}))
    else:
        colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        sys.stderr.write(render_failure(error, Style(colour=colour)))
    return status


def _unexpected(error: Exception, words: list[str]) -> WorkpacketError:
    """Return the error for a bug in workpacket, with a log to attach to a report. Operating system errors are not
    bugs."""
    if isinstance(error, OSError) and error.errno in _REFUSED_OUTPUT and error.filename is None:
        message = f"cannot write the output: {error.strerror}"
        # Otherwise Python would try to write the rest at exit, and fail again.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open until the process ends
        return WorkpacketError("file_unwritable", message, hint="free some space, or write somewhere else")
    if isinstance(error, FileNotFoundError) and error.filename is None and _nowhere():
        message = "the current directory no longer exists"
        return WorkpacketError("no_repository", message, hint="change to an existing directory, then try again")
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
        return WorkpacketError("file_unwritable", message, hint="check permissions and free space, then try again")
    with tempfile.NamedTemporaryFile("w", prefix="workpacket-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(f"workpacket {__version__} on Python {sys.version}\narguments: {words!r}\n\n")
        log.write("".join(traceback.format_exception(error)))
    return WorkpacketError(
        "internal_error", f"{type(error).__name__}: {error}", hint=f"please report it with the log in {log.name}"
    )


def _nowhere() -> bool:
    """Whether the current directory was deleted. A deleted directory can still be read through `.`."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


# Commands that other tools call, for people who type them anyway.
OTHER_NAMES = {
    "add": "new",
    "archive": "packet abandon",
    "assign": "packet handover",
    "branch": "start",
    "checkout": "start",
    "close": "done",
    "complete": "done",
    "create": "new",
    "delete": "packet abandon",
    "edit": "refine",
    "find": "search",
    "finish": "done",
    "fix": "check --fix",
    "format": "fmt",
    "grep": "search",
    "info": "show",
    "lint": "check",
    "log-verify": "log verify",
    "ls": "list",
    "move": "packet rename",
    "mv": "packet rename",
    "packets": "list",
    "remove": "packet abandon",
    "review": "verdict",
    "rm": "packet abandon",
    "sign": "approve",
    "stubs": "list --kind stub",
    "switch": "start",
    "take": "claim",
    "tasks": "list",
    "todo": "next",
    "undo": "packet reopen",
    "validate": "check",
    "verify": "approvals verify",
    "version": "--version",
    "view": "show",
}
# What git does, and workpacket leaves to it.
GITS = {
    "commit": "git commit, or --commit with the command that writes",
    "diff": "git diff for files, workpacket packet contract WP_ID for what was approved",
    "fetch": "git fetch",
    "merge": "git merge for the branch, then workpacket packet merged WP_ID if the packet needs it",
    "pull": "git pull",
    "push": "git push",
    "rebase": "git rebase",
    "stash": "git stash",
}
# Options that other tools have: what is typed here. A title is an argument.
_TITLE = "the title, in quotes and without an option"
_OTHER_OPTIONS = {
    "-m": _TITLE,
    "-n": "--limit",
    "-t": _TITLE,
    "--assignee": "--holder",
    "--author": "--as",
    "--commit-message": "--commit",
    "--desc": "--what",
    "--description": "--what",
    "--dry-run": "--check",
    "--files": "--scope",
    "--full": "--form full",
    "--html": "--out audit.html",
    "--light": "--form light",
    "--message": _TITLE,
    "--name": _TITLE,
    "--path": "--scope",
    "--state": "--lane",
    "--status": "--lane",
    "--test": "--prove",
    "--title": _TITLE,
    "--user": "--as",
}
# Fewer common letters than this, and a suggestion misleads more often than it helps.
_ALIKE = 0.7


def unknown_command(words: Sequence[str]) -> WorkpacketError:
    """Return the error for a command line that does not begin with a command."""
    spelled = " ".join(words[:2]) if below(words[0]) else words[0]
    message = f"unknown command: {spelled!r}"
    return WorkpacketError("unknown_command", message, hint=_command_meant(list(words)) or "workpacket --help")


def _command_meant(words: list[str]) -> str:
    first, rest = words[0].casefold(), words[1:]
    if first in GITS:
        return f"use git for this: {GITS[first]}"
    if first.startswith("-"):
        found = next((place for place in range(1, len(words)) if resolve(words[place:])[0]), 0)
        meant = [*words[found:], *words[:found]] if found else []
    elif below(first) and rest:
        return _second_meant(first, rest)
    elif first in OTHER_NAMES:
        meant = [*OTHER_NAMES[first].split(), *(rest if _is_id(rest[:1]) else ())]
    else:
        meant = ["show", words[0]] if _is_id(words[:1]) else _alike(first, rest)
    return _whole(meant) if meant else ""


def _alike(first: str, rest: Sequence[str]) -> list[str]:
    """Return the command line with its first word replaced by the command most like `first`."""
    spellings = {name.partition(" ")[0] for name in MODULES}
    alike = [word for word in _numbers_of(first) if word in spellings or resolve([word])[0]]
    if alike:
        return [alike[0], *rest]
    # People who forget the first word type the name.
    near = get_close_matches(first, [*COMMANDS, *map(typed_as, COMMANDS), *spellings, *FORMER], n=1, cutoff=_ALIKE)
    return [*typed_as(near[0]).split(), *(rest if _is_id(rest[:1]) else ())] if near else []


def _second_meant(first: str, rest: list[str]) -> str:
    """Return what was meant by a second word that the first word does not accept."""
    if _is_id(rest[:1]):
        return _whole(["show", rest[0]])
    second = rest[0].casefold()
    near = get_close_matches(second, [word for word, _ in below(first)], n=1, cutoff=_ALIKE)
    if near:
        return _whole([first, near[0], *rest[1:]])
    if resolve([second])[0]:
        return _whole([second, *rest[1:]])
    if second in OTHER_NAMES or second in GITS:
        return _command_meant([second, *rest[1:]])
    return f"workpacket help {first}"


def argument_meant(command: Command, given: str, known: Sequence[str] = ()) -> str:
    """Return what was meant by an argument: one of the `known` words, the command that shows a packet (`workpacket log
    WP-1-Parser-v1`), or an option; '' if nothing resembles it.
    """
    typed = command.typed
    near = nearest_of(given, [*known, *(word for word, _ in below(typed))] if known else [])
    if near:
        return _whole([*typed.split(), near])
    if _is_id([given]) and not (known and below(typed)):
        return _whole(["show", given])
    if f"{typed}s" in MODULES:
        return _whole([*f"{typed}s".split(), given])
    if any(word == "show" for word, _ in below(typed)) and (not given or _is_id([given])):
        return _whole([*typed.split(), "show", given])
    options = {option.name for option in command.options}
    meant = "out" if given.endswith(_WRITTEN) else "base"
    return f"did you mean `--{meant} {shlex.quote(given)}`?" if meant in options and given and not known else ""


# What a report is written to.
_WRITTEN = (".csv", ".html", ".json", ".md", ".txt")


def nearest_of(given: str, known: Iterable[str]) -> str:
    """Return the known word that this one resembles, in any case; '' if there is none."""
    words = {word.casefold(): word for word in known}
    near = get_close_matches(given.casefold(), [*words], n=1, cutoff=_ALIKE)
    return words[near[0]] if near else ""


def option_meant(name: str, known: Iterable[str], *, titled: bool) -> str:
    """Return what was meant by an unknown option; '' if nothing resembles it. `titled`: the command takes a title."""
    other = _OTHER_OPTIONS.get(name, "")
    if other == _TITLE and titled:
        return other
    if other.partition(" ")[0] in known:
        return other
    near = get_close_matches(name, [*known], n=1, cutoff=_ALIKE)
    return near[0] if near else ""


def _numbers_of(word: str) -> list[str]:
    """Return the word in the singular and in the plural."""
    singular = f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
    return [singular, f"{word}s"]


def _is_id(words: Sequence[str]) -> bool:
    return bool(words) and WorkPacketId.try_parse(words[0]) is not None


def _whole(words: Sequence[str]) -> str:
    return f"did you mean `workpacket {shlex.join(words)}`?"
