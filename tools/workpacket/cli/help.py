"""The `--help` output of the whole program, of a family such as `packet`, and of one command.

All of it fits the width of the terminal.
"""

from __future__ import annotations

from workpacket import __version__
from workpacket.cli.commands import GROUPS, SUMMARIES, below
from workpacket.cli.options import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from workpacket.cli.options import Command

# A table keeps its two columns only while the right one has this much room.
_LEAST_ROOM = 30


def overview(columns: int | None = None) -> str:
    """Return the output of `workpacket --help`, wrapped for a terminal of the given width; None means no wrapping."""
    title = f"workpacket {__version__}: governs work done by people and AI agents in a git repository"
    lines = [*_wrapped(title, columns), "", "usage: workpacket COMMAND [ARGUMENTS]"]
    groups = [(title, [(typed, about) for typed, _, about in rows if " " not in typed]) for title, rows in GROUPS]
    width = max(len(typed) for _, rows in groups for typed, _ in rows)
    for title, rows in groups:
        lines += ["", f"{title}:", *_table(rows, columns, width)]
    about = "`workpacket COMMAND --help` shows the options of a command, and `workpacket explain CODE` explains a code."
    return "\n".join([*lines, "", *_wrapped(about, columns)])


def family_help(word: str, columns: int | None = None) -> str:
    """Return the help for a first word that must be followed by a second one."""
    lines = [
        *_wrapped(f"workpacket {word}: {SUMMARIES[word]}", columns),
        "",
        f"usage: workpacket {word} {'[COMMAND]' if word == 'help' else 'COMMAND'} [ARGUMENTS]",
        "",
        "commands:",
        *_table(below(word), columns),
    ]
    about = f"`workpacket {word} COMMAND --help` shows the options of a command."
    return "\n".join([*lines, "", *_wrapped(about, columns)])


def command_help(command: Command, columns: int | None = None) -> str:
    """Return the output of `workpacket COMMAND --help`."""
    arguments = f" {command.arguments}" if command.arguments else ""
    lines = [
        *_wrapped(f"workpacket {command.typed}: {command.summary}", columns),
        "",
        *_wrapped(f"usage: workpacket {command.typed}{arguments} [OPTIONS]", columns),
    ]
    if command.description:
        lines += ["", *_paragraphs(command.description.strip(), columns)]
    options = [(written(option), option.help) for option in command.options]
    lines += ["", "options:", *_table(options, columns)]
    if more := below(command.typed):
        lines += ["", "commands below it:", *_table(more, columns)]
    if command.examples:
        # An example is one line to copy, however long it is.
        lines += ["", "examples:", *(f"  {example}" for example in command.examples)]
    return "\n".join(lines)


def _table(rows: Sequence[tuple[str, str]], columns: int | None, width: int = 0) -> list[str]:
    """Return lines with two columns. On a narrow terminal, the second column begins on the line below a long first
    column."""
    width = width or max(len(left) for left, _ in rows)
    if columns:
        width = min(width, max(columns - _LEAST_ROOM - 4, 6))
    lines = []
    for left, right in rows:
        first, *rest = _wrapped(right, columns - width - 4 if columns else None)
        if len(left) > width:
            lines += [
                *(f"  {line}" for line in _wrapped(left, columns - 2 if columns else None)),
                f"{'':{width + 4}}{first}",
            ]
        else:
            lines.append(f"  {left:<{width}}  {first}")
        lines += [f"{'':{width + 4}}{line}" for line in rest]
    return lines


def _paragraphs(text: str, columns: int | None) -> list[str]:
    if columns is None:
        return text.split("\n")
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += ["", *_wrapped(" ".join(paragraph.split()), columns)]
    return lines[1:]


def _wrapped(text: str, columns: int | None) -> list[str]:
    if columns is None:
        return [text]
    from workpacket.report.terminal import wrap

    return wrap(text, columns)
