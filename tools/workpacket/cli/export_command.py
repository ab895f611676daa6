"""`workpacket export`: checkpoints of the log in a foreign form."""

from __future__ import annotations

from workpacket.bridges.foreign import export
from workpacket.cli.import_command import bridge_of
from workpacket.cli.open_store import answer, open_runtime, refuse
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.workspace import write_new
from workpacket.model.canonical import Json
from workpacket.report.escape import escape
from workpacket.runtime.errors import RuntimeFault


def run(arguments: Arguments) -> int:
    bridge = bridge_of(arguments)
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "name one key")
    try:
        with open_runtime() as runtime:
            exported = export(runtime.store, bridge, arguments.words[0] if arguments.words else "")
    except RuntimeFault as fault:
        return refuse(arguments, fault)
    target = arguments.value("out")
    data: dict[str, Json] = {
        "format": bridge.name, "keys": list(exported.keys), "lossy": list(bridge.lossy), "out": target,
    }  # fmt: skip
    if target:
        write_new(target, exported.data)
        return answer(arguments, f"{len(exported.data)} bytes written to {escape(target)}\n", data)
    text = exported.data.decode("utf-8")
    return answer(arguments, text, {**data, "text": text})


COMMAND = Command(
    "export",
    "write checkpoints of the log in a foreign form",
    run,
    arguments="FORMAT [KEY]",
    description="""
Without a key, or with the beginning of one up to a '/', everything that came out of one file. What the form cannot
carry is listed by --json and in docs/runtime/formats.md.""",
    options=(Option("out", "write into this file, which must not exist yet", value="FILE"),),
    examples=("workpacket export step --out mission.events.jsonl", "workpacket export session review-42"),
)
