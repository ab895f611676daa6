"""What a person probably meant by a command, an argument or an option that does not exist."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING

from workpacket.cli.commands import COMMANDS, MODULES, below, resolve
from workpacket.errors import WorkpacketError
from workpacket.model.ids import WorkPacketId
from workpacket.model.wording import FORMER, typed_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    """Return the error for a command line that begins with no command."""
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
    """Return the command line with the first word that is most like `first`."""
    spellings = {name.partition(" ")[0] for name in MODULES}
    alike = [word for word in _numbers_of(first) if word in spellings or resolve([word])[0]]
    if alike:
        return [alike[0], *rest]
    # People who forget the first word type the name.
    near = get_close_matches(first, [*COMMANDS, *map(typed_as, COMMANDS), *spellings, *FORMER], n=1, cutoff=_ALIKE)
    return [*typed_as(near[0]).split(), *(rest if _is_id(rest[:1]) else ())] if near else []


def _second_meant(first: str, rest: list[str]) -> str:
    """Return what was meant by a second word that the first does not have."""
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


def argument_meant(typed: str, given: str) -> str:
    """Return what was meant by `workpacket log WP-1-Parser-v1` and its like: the command below that shows a packet."""
    if f"{typed}s" in MODULES:
        return _whole([*f"{typed}s".split(), given])
    shows = any(word == "show" for word, _ in below(typed))
    return _whole([*typed.split(), "show", given]) if shows and (not given or _is_id([given])) else ""


def option_meant(name: str, known: Iterable[str], *, titled: bool) -> str:
    """Return what was meant by an unknown option; '' if nothing is like it. `titled`: the command takes a title."""
    other = _OTHER_OPTIONS.get(name, "")
    if other == _TITLE and titled:
        return other
    if other in known:
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
