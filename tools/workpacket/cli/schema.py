"""`workpacket schema`: the JSON Schema of a document kind, or of what a command answers with --json."""

from __future__ import annotations

import json
import os
import sys

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.shell.fingerprint import schema_folder

_ENDING = ".schema.json"
_ANSWERS = "commands"  # the folder of what commands answer with --json


def run(arguments: Arguments) -> int:
    folder = schema_folder()
    kinds = _names(folder)
    names = [*kinds, *(f"{_ANSWERS}/{name}" for name in _names(os.path.join(folder, _ANSWERS)))]
    if not arguments.words:
        sys.stdout.write(
            _object({"schemas": [*names]}) if arguments.flag("json") else "".join(f"{name}\n" for name in names)
        )
        return 0
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "name one schema")
    name = arguments.words[0]
    if name not in names:
        raise WorkpacketError("invalid_value", f"there is no schema {name!r}", hint=f"one of: {', '.join(names)}")
    if arguments.flag("draft-07") and name not in kinds:
        raise usage(arguments.command, "conflicting_options", "only the schemas of documents have a twin")
    parts = [folder, "draft-07"] if arguments.flag("draft-07") else [folder]
    with open(os.path.join(*parts, name + _ENDING), encoding="utf-8") as stream:
        text = stream.read()
    sys.stdout.write(_object({"schema": json.loads(text)}) if arguments.flag("json") else text)
    return 0


def _names(folder: str) -> list[str]:
    return sorted(name.removesuffix(_ENDING) for name in os.listdir(folder) if name.endswith(_ENDING))


def _object(data: dict[str, Json]) -> str:
    from workpacket.report.json_report import render_envelope

    return render_envelope("schema", 0, [], data)


COMMAND = Command(
    "schema",
    "print the JSON Schema of a document kind, or of what a command answers",
    run,
    arguments="[NAME]",
    description="""
Without a name, the names of all schemas. `commands/NAME` is `data` of what the command NAME prints with --json, and
`output` the object around it.""",
    options=(Option("draft-07", "the twin for editors that know nothing newer than draft-07"),),
    examples=("workpacket schema", "workpacket schema stub", "workpacket schema commands/claim"),
)
