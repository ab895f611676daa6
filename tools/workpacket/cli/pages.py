"""Reference pages in Markdown, written from the declarations of commands and from the schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from workpacket.cli.commands import COMMANDS
from workpacket.cli.main import load
from workpacket.cli.options import COMMON_OPTIONS, Command, Option, written

_NOTE = "<!-- Written by `just reference`; edit the code, not this page. -->"


def commands_page() -> str:
    """Return docs/reference/commands.md."""
    parts = [
        "# Commands\n",
        f"{_NOTE}\n",
        "Every command takes these options:\n",
        *_options(COMMON_OPTIONS),
        "\nExit statuses are explained in [codes](codes.md).",
    ]
    for name, _, _ in COMMANDS:
        parts += ["", *_command(load(name))]
    return "\n".join(parts) + "\n"


def _command(command: Command) -> Iterator[str]:
    arguments = f" {command.arguments}" if command.arguments else ""
    yield f"## {command.name}\n"
    yield f"{command.summary[0].upper()}{command.summary[1:]}.\n"
    if command.description:
        yield f"{command.description.strip()}\n"
    yield f"```sh\nworkpacket {command.name}{arguments} [OPTIONS]\n```\n"
    own = [option for option in command.options if option not in COMMON_OPTIONS]
    if own:
        yield from _options(own)
        yield ""
    yield "Examples:\n"
    yield "\n".join(["```sh", *command.examples, "```"])


def _options(options: Iterable[Option]) -> Iterator[str]:
    yield "| option | meaning |"
    yield "|---|---|"
    for option in options:
        name = written(option).replace("|", "\\|")
        yield f"| `{name}` | {option.help} |"


def schemas_page(names: Iterable[str], read: Callable[[str], bytes]) -> str:
    """docs/reference/schemas.md"""
    rows = ["# Schemas\n", f"{_NOTE}\n", "| name | what it describes |", "|---|---|"]
    for name in names:
        schema = json.loads(read(name))
        rows.append(f"| [{name}](../../schemas/{name}.schema.json) | {schema['title']}: {schema['description']} |")
    rows.append("\n`workpacket schema NAME` prints one; `--draft-07` prints its version for editors.")
    return "\n".join(rows) + "\n"
