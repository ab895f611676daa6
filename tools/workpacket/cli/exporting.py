"""The part of `export` that opens the store and writes the file."""

from __future__ import annotations

from workpacket.bridges.exporting import export
from workpacket.cli.importing import bridge_of
from workpacket.cli.new_file import write_new
from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import answer, open_runtime, refuse
from workpacket.model.canonical import Json
from workpacket.report.door import escape
from workpacket.runtime.errors import RuntimeFault


def carry_out(arguments: Arguments) -> int:
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
