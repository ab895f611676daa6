"""Writes everything that is generated: `just reference`, after a change of rules, commands, events, lanes or schemas.

In the order in which one follows from the other: the schema of events and the lanes that other schemas list; the
draft-07 twins of the schemas, which editors need; the reference pages and the digests of what `init` writes, to which
lines are added and from which none is removed; and what `init` has written in this repository. Tests compare.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import author_reference
from draft07 import twin
from workpacket.bridges.foreign import formats_page
from workpacket.cli.commands import COMMANDS
from workpacket.cli.init import instructions, read_package, skills
from workpacket.cli.main import load
from workpacket.cli.options import COMMON_OPTIONS, Command, Option, written
from workpacket.lifecycle.gates import bearing
from workpacket.lifecycle.init import AGENTS, find_blocks, known_digest, marked, with_block
from workpacket.lifecycle.starter_documents import (
    DIALECTS,
    GOV_JUST,
    HANDSHAKE,
    POLICY_SCHEMA,
    StarterTexts,
    dialect_files,
    protocols,
    starting_files,
)
from workpacket.lifecycle.transitions import TRANSITIONS
from workpacket.model.event_types import event_schema
from workpacket.model.lanes import ACTIVE_TOKEN, LANES
from workpacket.report.catalogue import catalogue
from workpacket.report.explain import render_codes_page
from workpacket.shell.package_files import SHIPPED

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
TWINS = SCHEMAS / "draft-07"
SUFFIX = ".schema.json"

Files = dict[Path, bytes]


def schemas() -> Files:
    """Return the schema of events, the one that lists lanes, and the one that lists the moves that may have a gate; the
    other parts of the last two are written by hand.
    """
    common: dict[str, Any] = json.loads(read_schema("common"))
    lanes = [lane.token for lane in LANES]
    common["$defs"]["lane"]["enum"] = lanes
    common["$defs"]["board_token"]["enum"] = [*lanes, ACTIVE_TOKEN]
    policy: dict[str, Any] = json.loads(read_schema("policy"))
    gate = policy["properties"]["lifecycle"]["properties"]["gates"]["additionalProperties"]
    gate["properties"]["on"]["anyOf"][0]["enum"] = [row.typed for row in bearing(TRANSITIONS)]
    written = {"common": common, "event": event_schema(), "policy": policy}
    return {path_of(name): as_json(schema) for name, schema in written.items()}


def twins() -> Files:
    return {TWINS / f"{name}{SUFFIX}": twin(name, read_schema) for name in schema_names()}


def pages() -> Files:
    """Return the reference pages, and the digests of what `init` writes."""
    folder = ROOT / "docs" / "reference"
    return {
        folder / "codes.md": render_codes_page(catalogue()).encode(),
        folder / "commands.md": commands_page().encode(),
        folder / "runtime.md": f"{author_reference.page()}\n".encode(),
        folder / "schemas.md": schemas_page(schema_names(), read_schema).encode(),
        ROOT / "docs" / "runtime" / "formats.md": formats_page().encode(),
        Path(SHIPPED): shipped(package()),
    }


def own_governance() -> Files:
    """Return the files that `init` wrote in this repository and that were not edited."""
    texts = package()
    files = {GOV_JUST: texts.gov_just, POLICY_SCHEMA: texts.schemas["policy"]}
    files |= dict(protocols()) | dict(dialect_files(HANDSHAKE, texts))
    agents = (ROOT / AGENTS).read_text("utf-8")
    files[AGENTS] = with_block(agents, find_blocks(agents) or (), texts.instructions)
    return {ROOT / path: text.encode() for path, text in files.items()}


# Each may read the output of those before it.
STEPS: Final[tuple[Callable[[], Files], ...]] = (schemas, twins, pages, own_governance)


def generated() -> Files:
    """Return every generated file with its content."""
    return {path: content for step in STEPS for path, content in step().items()}


def package() -> StarterTexts:
    return read_package(instructions(), skills())


def shipped(texts: StarterTexts) -> bytes:
    """Return the digests of all versions that `init` has written and may update: earlier ones and the present ones."""
    known = {(path, digest) for path, digests in texts.shipped.items() for digest in digests}
    known.add((AGENTS, known_digest(marked(texts.instructions))))
    for dialect in DIALECTS:
        ours = [file for file in starting_files(dialect, texts) if file.ours]
        known |= {(file.path, known_digest(file.text)) for file in ours}
        known |= {(file.path, known_digest(file.stem)) for file in ours if file.stem}
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(known)).encode()


def schema_names() -> list[str]:
    return [path.name.removesuffix(SUFFIX) for path in sorted(SCHEMAS.glob(f"*{SUFFIX}"))]


def path_of(name: str) -> Path:
    return SCHEMAS / f"{name}{SUFFIX}"


def read_schema(name: str) -> bytes:
    return path_of(name).read_bytes()


def as_json(value: object) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def left_over() -> Iterator[Path]:
    """Return the twins of schemas that no longer exist."""
    names = schema_names()
    return (path for path in TWINS.glob(f"*{SUFFIX}") if path.name.removesuffix(SUFFIX) not in names)


def main() -> None:
    for step in STEPS:
        for path, content in step().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in left_over():
        path.unlink()


_NOTE = "<!-- Written by `just reference`; edit the code, not this page. -->"


def commands_page() -> str:
    """docs/reference/commands.md"""
    parts = [
        "# Commands\n",
        f"{_NOTE}\n",
        "Every command takes these options:\n",
        *_options(COMMON_OPTIONS),
        "\nExit statuses are explained in [codes](codes.md).",
    ]
    for name in COMMANDS:
        parts += ["", *_command(load(name))]
    return "\n".join(parts) + "\n"


def _command(command: Command) -> Iterator[str]:
    arguments = f" {command.arguments}" if command.arguments else ""
    yield f"## {command.typed}\n"
    yield f"{command.summary[0].upper()}{command.summary[1:]}.\n"
    if command.description:
        yield f"{command.description.strip()}\n"
    yield f"```sh\nworkpacket {command.typed}{arguments} [OPTIONS]\n```\n"
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
    rows.append("\n`workpacket help schema NAME` prints one; `--draft-07` prints its version for editors.")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
