"""`mcp`: the commands that an agent needs, as a Model Context Protocol server.

Each call runs one command in its own process, with the key of the account that started the server, and under one name,
chosen when the server starts. The caller's values are positional arguments or option values, never options. There is no
tool that approves, waives, overrides or answers a question of a run.

An answer contains the command's JSON object as structured content, and one page of it as text. That text quotes
documents, so it is marked as data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import COMMIT
from workpacket.problem import WorkpacketError

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
            "reason": {**_TEXT, "description": "For a light packet, can be given instead of a report."},
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
}
PROMPTS: Final = {
    "orchestrator": "You plan: read `next`, pick the most urgent packets, and give each to one agent. Do none of the "
    "work yourself, and never approve: ask a person.",
    "coder": "You do the work of one packet: `start` it, read it with `show`, change only files in its scope, commit, "
    "and call `done`. If a call is refused, do what each condition says. Never judge your own work.",
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
