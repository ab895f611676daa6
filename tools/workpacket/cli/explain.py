"""Built-in documentation: `explain` for reason codes, `schema` for document kinds and answers."""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.model.canonical import Json
from workpacket.model.reasons import Reason, StopReason
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.explain import facts_of, nearest_codes, render_codes_page, render_explanation
from workpacket.report.json_report import render_envelope
from workpacket.shell.package_files import schema_folder


def _run_explain(arguments: Arguments) -> int:
    codes = catalogue()
    if arguments.flag("all"):
        every: list[Json] = [_as_json(reason) for reason in codes.values()]
        as_object = arguments.flag("json")
        sys.stdout.write(render_envelope("explain", 0, [], {"codes": every}) if as_object else render_codes_page(codes))
        return 0
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "expected one CODE, such as evidence_missing")
    word = arguments.words[0]
    if word not in codes:
        near = nearest_codes(word, codes)
        hint = f"did you mean {' or '.join(near)}?" if near else "`workpacket explain --all` lists every code"
        raise WorkpacketError("unknown_code", f"unknown code: {word!r}", hint=hint)
    reason = codes[word]
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("explain", 0, [], _as_json(reason)))
        return 0
    from workpacket.cli.checking import style_of

    sys.stdout.write(render_explanation(reason, style_of(arguments)))
    return 0


def _as_json(reason: Reason) -> dict[str, Json]:
    words: dict[str, Json] = {
        "code": reason.code,
        "title": reason.title,
        "explanation": reason.explanation,
        "remedy": reason.remedy,
    }
    if isinstance(reason, StopReason):
        words |= {"diagnosis": reason.diagnosis, "remedies": list(reason.remedies)}
    return {**words, **dict(facts_of(reason))}


_EXPLAIN = Command(
    "explain",
    _run_explain,
    arguments="[CODE]",
    options=(Option("all", "print the reference page for all codes, as Markdown"),),
    examples=("workpacket explain byte_order_mark", "workpacket explain --all > docs/reference/codes.md"),
)


_ENDING = ".schema.json"
_ANSWERS = "commands"  # the folder with the schemas of --json answers


def _run_schema(arguments: Arguments) -> int:
    folder = schema_folder()
    kinds = _names(folder)
    names = [*kinds, *(f"{_ANSWERS}/{name}" for name in _names(os.path.join(folder, _ANSWERS)))]
    if not arguments.words:
        sys.stdout.write(
            _object({"schemas": [*names]}) if arguments.flag("json") else "".join(f"{name}\n" for name in names)
        )
        return 0
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "expected one schema")
    name = arguments.words[0]
    if name not in names:
        raise WorkpacketError("invalid_value", f"unknown schema: {name!r}", hint=f"one of: {', '.join(names)}")
    if arguments.flag("draft-07") and name not in kinds:
        raise usage(arguments.command, "conflicting_options", "only document schemas have a draft-07 version")
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


_SCHEMA = Command(
    "schema",
    _run_schema,
    arguments="[NAME]",
    description="""
Without a name, lists the names of all schemas. `commands/NAME` describes `data` in the --json output of command NAME,
and `output` describes the object around it.""",
    options=(Option("draft-07", "the draft-07 version, for older editors"),),
    examples=("workpacket help schema", "workpacket help schema stub", "workpacket help schema commands/claim"),
)


DECLARED: Final = {command.name: command for command in (_EXPLAIN, _SCHEMA)}
