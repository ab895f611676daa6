"""Help texts, written from the declarations."""

from __future__ import annotations

from workpacket import __version__
from workpacket.cli.commands import COMMANDS
from workpacket.cli.options import Command, Option


def overview() -> str:
    """`workpacket --help`."""
    width = max(len(name) for name, _, _ in COMMANDS)
    lines = [
        f"workpacket {__version__}: governs work done by people and AI agents in a git repository",
        "",
        "usage: workpacket COMMAND [ARGUMENTS]",
        "",
        *(f"  {name:<{width}}  {summary}" for name, _, summary in COMMANDS),
        "",
        "`workpacket COMMAND --help` shows the options of a command, `workpacket explain CODE` what a code means.",
    ]
    return "\n".join(lines)


def command_help(command: Command) -> str:
    """`workpacket COMMAND --help`."""
    arguments = f" {command.arguments}" if command.arguments else ""
    lines = [
        f"workpacket {command.name}: {command.summary}",
        "",
        f"usage: workpacket {command.name}{arguments} [OPTIONS]",
    ]
    if command.description:
        lines += ["", command.description.strip()]
    names = [written(option) for option in command.options]
    width = max(map(len, names))
    lines += [
        "",
        "options:",
        *(f"  {name:<{width}}  {option.help}" for name, option in zip(names, command.options, strict=True)),
    ]
    if command.examples:
        lines += ["", "examples:", *(f"  {example}" for example in command.examples)]
    return "\n".join(lines)


def written(option: Option) -> str:
    """An option as one writes it: `-s, --select CODE`."""
    short = f"-{option.short}, " if option.short else ""
    value = f"[{option.value}]" if option.optional else option.value
    return f"{short}--{option.name}" + (f" {value}" if value else "")
