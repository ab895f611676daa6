"""`mcp`: the commands that an agent needs, as a Model Context Protocol server.

Each call runs one command in its own process, with the key of the account that started the server, and under one name,
chosen when the server starts. The caller's values are positional arguments or option values, never options. There is no
tool that approves, waives, overrides or answers a question of a run.

An answer contains the command's JSON object as structured content, and one page of it as text. That text quotes
documents, so it is marked as data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import COMMIT
from workpacket.problem import WorkpacketError
from workpacket.shell.package_files import schema_folder

PACKET: Final = {"type": "string", "pattern": "^WP-[A-Za-z0-9.-]{1,100}$"}
_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 2000}
_PAGE: Final = {"type": "integer", "minimum": 1, "maximum": 1000}
# What a list of tools leaves out: agents read the list in each session, and a call that breaks a limit is told so.
_LIMITS: Final = frozenset({"pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"})
_VERDICTS: Final = ("PASS", "FAIL", "CHANGES", "OUTDATED_ONLY")


class Tool(NamedTuple):
    """One tool. `words` turns its arguments into a command line, which includes the actor if the tool is `writing`."""

    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    words: Callable[[Mapping[str, Any]], tuple[list[str], list[str]]]
    writing: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The schema against which calls are checked."""
        return {
            "type": "object",
            "properties": {**self.properties, "page": _PAGE},
            "required": [*self.required],
            "additionalProperties": False,
        }

    @property
    def listed(self) -> dict[str, Any]:
        """The schema as agents read it."""
        return {
            "type": "object",
            "properties": _brief({**self.properties, "page": _PAGE}),
            "required": [*self.required],
        }


def _brief(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            key: _brief({"": value})[""] if key == "items" else value
            for key, value in one.items()
            if key not in _LIMITS
        }
        for name, one in properties.items()
    }


def _prove(given: Mapping[str, Any]) -> list[str]:
    return [f"--prove={proof}" for proof in given.get("prove", ())]


def _judged(given: Mapping[str, Any]) -> list[str]:
    return [f"--{name}={given[name]}" for name in ("report", "reference", "reason") if name in given]


# The words before the positional arguments, and these.
TOOLS: Final[Mapping[str, Tool]] = {
    "next": Tool("Lists the packets that can be started, most urgent first.", {}, (), lambda _: (["next"], [])),
    "show": Tool(
        "Shows a packet: what to do and why, criteria and proofs, scope, holder, and what is missing.",
        {"id": PACKET},
        ("id",),
        lambda given: (["show"], [given["id"]]),
    ),
    "why": Tool(
        "Lists what keeps a packet from entering its next lane, and the command that resolves each item.",
        {"id": PACKET},
        ("id",),
        lambda given: (["why"], [given["id"]]),
    ),
    "search": Tool(
        "Finds packets whose ids, titles, documents and events contain all the words.",
        {"words": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 20}},
        ("words",),
        lambda given: (["search"], given["words"]),
    ),
    "start": Tool(
        "Claims a packet and creates its branch. If the policy requires an approval, a person must give it first.",
        {"id": PACKET},
        ("id",),
        lambda given: (["start"], [given["id"]]),
        writing=True,
    ),
    "note": Tool(
        "Adds a note to the packet's log.",
        {"id": PACKET, "text": _TEXT},
        ("id", "text"),
        lambda given: (["packet", "note"], [given["id"], given["text"]]),
        writing=True,
    ),
    "done": Tool(
        "Runs the packet's proofs and submits the committed work.",
        {
            "id": PACKET,
            "prove": {
                "type": "array",
                "items": {**_TEXT, "pattern": "^[0-9]+=."},
                "maxItems": 50,
                "description": "N=COMMAND or N=PATH:LINE, for criteria without a proof in the packet.",
            },
        },
        ("id",),
        lambda given: (["done", *_prove(given)], [given["id"]]),
        writing=True,
    ),
    "verdict": Tool(
        "Judges someone else's work that is in review. It never replaces an approval that the policy requires.",
        {
            "id": PACKET,
            "verdict": {"type": "string", "enum": [*_VERDICTS]},
            "report": {**_TEXT, "description": "A file in the repository."},
            "reference": {**_TEXT, "description": "Where the requested changes are described."},
            "reason": {**_TEXT, "description": "Can replace the report for a light packet."},
        },
        ("id", "verdict"),
        lambda given: (["verdict", *_judged(given)], [given["id"], given["verdict"]]),
        writing=True,
    ),
}

RESOURCES: Final = {
    "workpacket://board": ("The board", ["board", "show"]),
    "workpacket://status": ("The repository on one screen", ["status"]),
    "workpacket://requirements": (
        "The requirements of the specification and their proofs",
        ["report", "requirements"],
    ),
}
TEMPLATES: Final = {
    "workpacket://packet/{id}": ("A packet", ["show"]),
    "workpacket://code/{code}": ("What a reason code means", ["explain"]),
    "workpacket://anchor/{heading}": (
        "A section of the specification, and the packets that depend on it",
        ["trace", "impact"],
    ),
}
# For each part of an address: the command that knows all its values, and how to find them in the answer.
COMPLETIONS: Final[Mapping[str, tuple[Sequence[str], Callable[[Mapping[str, Any]], Iterable[str]]]]] = {
    "id": (["list"], lambda data: (work["id"] for work in data.get("work", ()))),
    "heading": (["report", "requirements"], lambda data: (row["requirement"] for row in data.get("requirements", ()))),
    "code": (["explain", "--all"], lambda data: (reason["code"] for reason in data.get("codes", ()))),
}
# Of use to people only; the schemas with everything are printed by `help schema commands/NAME`.
_SAID: Final = frozenset({"title", "description", "examples", "$id", "$schema"})
_SHARED: Final = "common.schema.json#/$defs/"


def output_schema(name: str) -> dict[str, Any]:
    """Return the schema of a tool's structured content: what the command of this name prints with --json."""
    folder = os.path.join(schema_folder(), "commands")
    own, common = (_read(os.path.join(folder, f"{one}.schema.json")) for one in (name, "common"))
    definitions: dict[str, Any] = {}
    data = _bundled(own, own["$defs"], common["$defs"], definitions)
    return {
        "type": "object",
        "properties": {
            "workpacket": {"type": "string"},
            "command": {"type": "string"},
            "ok": {"type": "boolean"},
            "exit_code": {"type": "integer"},
            "findings": {"type": "array", "items": {"type": "object"}},
            "data": {key: data[key] for key in data if key != "$defs"},
        },
        "required": ["ok", "exit_code", "findings", "data"],
        "$defs": definitions,
    }


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as stream:
        schema: dict[str, Any] = json.load(stream)
    return schema


def _bundled(
    part: Any, own: Mapping[str, Any], common: Mapping[str, Any], definitions: dict[str, Any], *, named: bool = False
) -> Any:
    """Return part of a schema without the texts that only people read; the schemas that it refers to are added to the
    definitions. `named`: the keys are names of properties.
    """
    if isinstance(part, list):
        return [_bundled(one, own, common, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: value for key, value in part.items() if named or (key not in _SAID and key != "$defs")}
    reference = kept.get("$ref")
    if isinstance(reference, str) and not named:
        shared = reference.startswith(_SHARED) or own is common
        short = reference.rpartition("/")[2]
        name, known = (f"common.{short}", common) if shared else (short, own)
        if name not in definitions:
            definitions[name] = {}  # a definition may refer to itself
            definitions[name] = _bundled(known[short], known, common, definitions)
        kept["$ref"] = f"#/$defs/{name}"
    return {
        key: value if key in {"$ref", "enum", "const", "required"} and not named
        else _bundled(value, own, common, definitions, named=key in {"properties", "patternProperties"} and not named)
        for key, value in kept.items()
    }  # fmt: skip


PROMPTS: Final = {
    "orchestrator": "You plan: read `next`, pick the most urgent packets, and give each to one agent. Do none of the "
    "work yourself, and never approve: ask a person.",
    "coder": "You do the work of one packet: `start` it, read it with `show`, change only files in its scope, commit, "
    "and call `done`. If a call is refused, do what each condition requires. Never judge your own work.",
    "validator": "You judge work in review, but never your own: read the packet with `show`, compare the change with "
    "each criterion, run its proofs yourself, write a report, and call `verdict`. Change nothing else.",
}


def _run(arguments: Arguments) -> int:
    if arguments.words:
        raise usage(arguments.command, "unexpected_argument", "it takes only options")
    name = arguments.value("as")
    actor, commit = ("--as", name) if name else (), ("--commit",) if arguments.flag("commit") else ()
    try:
        if arguments.value("http"):
            from workpacket.cli.mcp_http import serve_http

            return serve_http(actor, commit, _port(arguments))
        from workpacket.cli.mcp_server import serve
    except ImportError as error:
        message = f"the server needs the extra workpacket[mcp]: {error}"
        raise WorkpacketError("extra_missing", message, hint="pip install 'workpacket[mcp]'") from error
    return serve(actor, commit)


def _port(arguments: Arguments) -> int:
    text = arguments.value("http")
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise usage(arguments.command, "invalid_value", "--http requires a port from 0 to 65535")
    return int(text)


COMMAND = Command(
    "mcp",
    _run,
    description="""
Serves eight tools on standard input and output, for agents that have no shell: next, show, why, search, start, note,
done and verdict. No tool can approve, waive, override, answer a question of a run, or act under a name other than the
server's. If only an approval is missing, the client is asked to show a page for it to a person, if it can.

With --http, it serves the same tools over HTTP, on this machine only, to clients that send the token that it prints, or
the one in WORKPACKET_MCP_TOKEN. Needs the extra workpacket[mcp].""",
    options=(
        Option("http", "serve streamable HTTP on this port of 127.0.0.1; 0 for any free port", value="PORT"),
        COMMIT,
        Option("as", "the actor (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"),
    ),
    examples=("workpacket mcp --as coder-1", "workpacket mcp --http 8765 --as coder-1"),
)
