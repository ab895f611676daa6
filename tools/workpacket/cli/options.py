"""Parse command lines according to declarations, from which the help, the reference page and completion are also
generated. `argparse` would take a third of the time allowed for `check` of an unchanged file, and declarations that are
data can be tested for completeness.
"""

from __future__ import annotations

import os
import sys

from workpacket.cli.commands import MODULES, SUMMARIES, below
from workpacket.model.wording import FORMER_OPTIONS, SILENT, typed_as
from workpacket.problem import WorkpacketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from workpacket.report.terminal import Style


class Option:
    """`--name`, or `--name VALUE` if `value` is set. `many` options may be given several times.

    The value of an `optional` option may be omitted at the end or before another option.
    """

    __slots__ = ("choices", "help", "many", "name", "optional", "short", "value")

    def __init__(
        self,
        name: str,
        help: str,
        *,
        value: str = "",
        choices: Sequence[str] = (),
        short: str = "",
        many: bool = False,
        optional: bool = False,
    ) -> None:
        self.name = name
        self.help = help
        self.value = value or ("|".join(choices) if choices else "")
        self.choices = tuple(choices)
        self.short = short
        self.many = many
        self.optional = optional


class Command:
    """One command: its arguments, and the function that executes it and returns the exit status."""

    __slots__ = ("arguments", "description", "examples", "name", "options", "run")

    def __init__(
        self,
        name: str,
        run: Callable[[Arguments], int],
        *,
        arguments: str = "",
        options: Sequence[Option] = (),
        description: str = "",
        examples: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.run = run
        self.arguments = arguments
        self.options = (*options, *COMMON_OPTIONS)
        self.description = description
        self.examples = tuple(examples)

    @property
    def summary(self) -> str:
        """Return the command's line in the table of commands."""
        return SUMMARIES[self.typed]

    @property
    def typed(self) -> str:
        """Return the command as typed; `name` is used in JSON answers, schemas and the log."""
        return typed_as(self.name)


class Arguments:
    """The parsed command line: positional words, flags and values."""

    __slots__ = ("_values", "command", "given", "words")

    def __init__(self, command: Command, given: Sequence[str]) -> None:
        self.command = command
        self.given = list(given)
        self.words: list[str] = []
        self._values: dict[str, list[str]] = {}

    def add(self, option: Option, value: str) -> None:
        self._values.setdefault(option.name, []).append(value)

    def flag(self, name: str) -> bool:
        return name in self._values

    def value(self, name: str, default: str = "") -> str:
        """Return the last value given for an option."""
        return self._values[name][-1] if name in self._values else default

    def all_of(self, name: str) -> list[str]:
        """Return all values given for an option, as given."""
        return list(self._values.get(name, ()))

    def values(self, name: str) -> list[str]:
        """Return all values given for an option; commas separate values too."""
        return [part for value in self._values.get(name, ()) for part in value.split(",") if part]

    def style(self, stream: TextIO) -> Style:
        """Return the color setting and width for output to the stream, from --color or the terminal."""
        from workpacket.report.terminal import Style

        is_terminal, width, wish = terminal(stream)
        choice = self.value("color", "auto")
        if choice == "auto":
            choice = wish or ("always" if is_terminal else "never")
        return Style(width=width, colour=choice == "always")


def terminal(stream: TextIO | None = None) -> tuple[bool, int | None, str]:
    """Return three things: whether the output (or another stream) goes to a terminal, the terminal's width, and the
    color settings of the environment.
    """
    stream = stream or sys.stdout
    wish = "never" if os.environ.get("NO_COLOR") else "always" if os.environ.get("FORCE_COLOR") else ""
    if not stream.isatty():
        return False, None, wish
    if not wish and os.environ.get("TERM") == "dumb":
        wish = "never"
    try:
        # A terminal without a set size (a pty of CI or of a container) reports 0.
        return True, os.get_terminal_size(stream.fileno()).columns or None, wish
    except OSError:
        return True, None, wish


# Values that are never left empty on purpose: an unset variable in a script would lose a criterion, or its proof.
_NEEDS_TEXT = frozenset({"COMMAND", "HEADING", "PATH", "WP_ID"})
_WRITTEN = frozenset({"TEXT", "NAME", "TIER", "HEADING", "WP_ID", "VERSION", "ID"})
# Arguments that are paths, or words for another program.
_NOT_WRITTEN = ("PATH", "FILE", "FOLDER", "PROGRAM", "WORD", "MODULE")
COMMON_OPTIONS = (
    Option("json", "print one JSON object instead of text"),
    Option("color", "when to color the output", choices=("auto", "always", "never")),
    Option("help", "show this help", short="h"),
)
# Of commands that show what other clones have done.
FETCH = Option("fetch", "first fetch the branches and claims from the main remote")


def parse(command: Command, words: Sequence[str]) -> Arguments:
    """Parse `words` according to the declaration of `command`; invalid input raises an error with a usage code."""
    given = Arguments(command, words)
    known = {f"--{option.name}": option for option in command.options}
    former = {f"--{FORMER_OPTIONS[one.name]}": one for one in command.options if one.name in FORMER_OPTIONS}
    known |= {f"-{option.short}": option for option in command.options if option.short}
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            given.words += reversed(waiting)
            break
        if not word.startswith("-") or word == "-":
            given.words.append(word)
            continue
        name, equals, value = word.partition("=")
        option = known.get(name) or former.get(name)
        if option is None:
            raise _unknown(command, name, known)
        if name not in known and option.name not in SILENT and "--json" not in own_words(words):
            sys.stderr.write(f"note: `{name}` is now `--{option.name}`\n")
        _take(given, option, value if equals else None, waiting)
    if given.words and not command.arguments:
        from workpacket.cli.failure import argument_meant

        what = f"unexpected argument: {given.words[0]!r}"
        raise usage(command, "unexpected_argument", what, argument_meant(command, given.words[0]))
    if not all(map(str.isascii, given.words)) and not any(kind in command.arguments for kind in _NOT_WRITTEN):
        for word in filter(_has_other_bytes, given.words):
            raise usage(command, "invalid_value", f"{word!r} is not valid UTF-8")
    return given


def _has_other_bytes(value: str) -> bool:
    """Whether the value, as typed, is not UTF-8. Paths may contain any bytes; everything else is written to documents
    and logs.
    """
    return any("\udc80" <= char <= "\udcff" for char in value)


def subcommand(arguments: Arguments, known: Sequence[str]) -> str:
    """Return the first word, which must be one of `known`, and remove it from `words`."""
    given = chosen(arguments, known)
    del arguments.words[0]
    return given


def chosen(arguments: Arguments, known: Sequence[str]) -> str:
    """Return the first word, which must be one of `known`, without removing it from `words`."""
    given = arguments.words[0] if arguments.words else ""
    if given not in known:
        code = "invalid_value" if given else "missing_argument"
        from workpacket.cli.failure import argument_meant

        command = arguments.command
        every = ", ".join((*known, *(word for word, _ in below(command.typed))))
        what = f"invalid argument {given!r}: expected one of {every}" if given else f"say which: {every}"
        first = f"such as: workpacket {command.typed} {known[0]}" if not given else ""
        raise usage(command, code, what, argument_meant(command, given, known) or first)
    # In `a FILE | b | c`, nothing follows b and c.
    alone = [form.split("|") for form in arguments.command.arguments.split(" | ") if " " not in form]
    if len(arguments.words) > 1 and any(given in words for words in alone):
        from workpacket.cli.failure import argument_meant

        more = arguments.words[1]
        what = f"unexpected argument after {given}: {more!r}"
        raise usage(arguments.command, "unexpected_argument", what, argument_meant(arguments.command, more))
    return given


def own_words(words: Sequence[str]) -> Sequence[str]:
    """Return the words before `--`; those after it belong to another program."""
    return words[: words.index("--")] if "--" in words else words


def usage(command: Command, code: str, what: str, hint: str = "") -> WorkpacketError:
    """Return the error for an invalid command line; `code` is its reason code."""
    hint = hint or f"workpacket {command.typed} --help"
    return WorkpacketError(code, f"workpacket {command.typed}: {what}", hint=hint)


def _take(given: Arguments, option: Option, value: str | None, waiting: list[str]) -> None:
    if not option.value:
        if value is not None:
            raise usage(given.command, "unexpected_argument", f"--{option.name} does not take a value")
        given.add(option, "")
        return
    if value is None and option.optional and (not waiting or waiting[-1].startswith("-")):
        value = ""
    elif value is None:
        if not waiting:
            raise usage(given.command, "missing_argument", f"--{option.name} needs a value: {option.value}")
        value = waiting.pop()
    if option.choices and value not in option.choices:
        from workpacket.cli.failure import nearest_of

        known, near = ", ".join(option.choices), nearest_of(value, option.choices)
        what = f"--{option.name} takes {known}; not {value!r}" + (f"; did you mean {near}?" if near else "")
        raise usage(given.command, "invalid_value", what)
    if option.value == "REV" and not value:
        # An unset variable in a script would otherwise judge no change at all, and pass.
        raise usage(given.command, "invalid_value", f"--{option.name} requires a revision")
    if (option.value in _NEEDS_TEXT or (option.many and option.value == "TEXT")) and not value.strip():
        raise usage(given.command, "invalid_value", f"--{option.name} requires a text")
    if not value.isascii() and option.value in _WRITTEN and _has_other_bytes(value):
        raise usage(given.command, "invalid_value", f"the value of --{option.name} is not valid UTF-8")
    if not option.many and given.flag(option.name):
        raise usage(given.command, "conflicting_options", f"--{option.name} was given twice")
    given.add(option, value)


def _unknown(command: Command, name: str, known: dict[str, Option]) -> WorkpacketError:
    from workpacket.cli.failure import option_meant

    meant = option_meant(name, known, titled="TITLE" in command.arguments)
    what = f"unknown option: {name}" + (f"; did you mean {meant}?" if meant else "")
    return usage(command, "unknown_option", what, "" if meant else _who_has(command, name))


def _who_has(command: Command, name: str) -> str:
    """Return the command in the same module that has this option, such as `list` for an option of `search`."""
    module = MODULES.get(command.typed, "")
    declared: dict[str, Command] = getattr(sys.modules.get(f"workpacket.cli.{module}"), "DECLARED", {})
    for other in declared.values():
        if name.startswith("--") and any(option.name == name[2:] for option in other.options):
            return f"`workpacket {other.typed}` has {name}; see workpacket {command.typed} --help"
    return ""


def written(option: Option) -> str:
    """Return an option as written: `-s, --select CODE`."""
    short = f"-{option.short}, " if option.short else ""
    value = f"[{option.value}]" if option.optional else option.value
    return f"{short}--{option.name}" + (f" {value}" if value else "")
