"""Holds the JSON object of a command against its schema: `schemas/output.schema.json`, and of `data` its own.

As a plugin it does so in all tests: whatever a command answers with `--json` inside the test process has to fit.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from workpacket.cli.commands import COMMANDS
from workpacket.model.canonical import Json
from workpacket.model.wording import FORMER
from workpacket.problem import Problem
from workpacket.report import json_report

SCHEMAS = Path(__file__).parents[1] / "schemas"
ANSWERS = SCHEMAS / "commands"
# Writes the examples of every schema from the answers in that test.
WRITE = "WORKPACKET_WRITE_EXAMPLES=1 pytest tests/cli/test_answers.py"
# The forms that many commands have; `common.schema.json` defines them.
COMMON = ("failed", "refused", "stopped")

_given: list[dict[str, Any]] = []


def load(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return schema


def path_of(command: str) -> Path:
    return ANSWERS / f"{command}.schema.json"


@cache
def _shared() -> Registry[Any]:
    contents = load(ANSWERS / "common.schema.json")
    registry: Registry[Any] = Registry().with_resource(contents["$id"], Resource.from_contents(contents))
    return registry


@cache
def _output() -> Draft202012Validator:
    return Draft202012Validator(load(SCHEMAS / "output.schema.json"))


@cache
def forms_of(command: str) -> Mapping[str, Draft202012Validator]:
    """What `data` may be, by the name of each form; `failed` is for all commands, `refused` and `stopped` for many."""
    schema = load(path_of(command))
    forms = {}
    for branch in schema["anyOf"]:
        name = branch["$ref"].rpartition("/")[2]
        forms[name] = Draft202012Validator({**schema, "anyOf": [branch]}, registry=_shared())
    return forms


def form_of(answer: Mapping[str, Any]) -> str:
    """The first form of its command that fits the object. Raises AssertionError that says what does not fit."""
    _output().validate(answer)
    command, data = answer["command"], answer["data"]
    assert path_of(command).exists(), missing(command)
    fitting = next((name for name, form in forms_of(command).items() if form.is_valid(data)), "")
    assert fitting, f"{path_of(command).relative_to(SCHEMAS.parent)} has no form that fits {json.dumps(data)[:2000]}"
    return fitting


def own_forms(command: str) -> list[str]:
    """The forms that the schema of a command defines itself."""
    references = [branch["$ref"] for branch in load(path_of(command))["anyOf"]]
    return [reference.rpartition("/")[2] for reference in references if reference.startswith("#")]


def common_forms() -> Mapping[str, Draft202012Validator]:
    """The forms that many commands have."""
    reference = load(path_of("common"))["$id"] + "#/$defs/"
    return {name: Draft202012Validator({"$ref": reference + name}, registry=_shared()) for name in COMMON}


def missing(command: str) -> str:
    if " " in command:
        return (
            f"`{command}` has two words: enter {{{command.rsplit(maxsplit=1)[-1]!r}: {command!r}}} in _NEVER_ALONE of"
            f" tools/workpacket/model/wording.py; its schema is then {command.rsplit(maxsplit=1)[-1]}.schema.json"
        )
    return (
        f"there is no schemas/commands/{command}.schema.json. Write it: `data` of `workpacket {command} --json` has one"
        f" of the forms in its anyOf. Copy schemas/commands/cancel.schema.json, give $id, title, description and one"
        f" definition for each answer (closed, each property described); what several commands share is in"
        f" common.schema.json: `refused` for gates, `stopped` for runs, `failed` always. Then reach every form in"
        f" tests/cli/test_answers.py, write its examples ({WRITE}), and run `just reference`."
    )


_LONG = 1_200
_LISTED = 2


def write_examples(answers: Iterable[Mapping[str, Any]], folder: str) -> None:
    """Write an example of every form that has none into the schemas: of the answers that were really given, the
    longest that can still be read at a glance, without the names of the machine. An example that is still valid stays,
    so that the change shows only what is new.
    """
    given: dict[tuple[str, str], list[Any]] = {}
    for answer in answers:
        given.setdefault((answer["command"], form_of(answer)), []).append(_portable(answer["data"], folder))
    for command in sorted({command for command, _ in given}):
        schema, forms = load(path_of(command)), forms_of(command)
        valid = {
            name: example
            for example in schema.get("examples", [])
            for name in own_forms(command)
            if forms[name].is_valid(example)
        }
        if len(valid) < len(own_forms(command)):
            examples = [valid.get(name) or _best(given[command, name]) for name in own_forms(command)]
            _save(path_of(command), schema | {"examples": examples, "$defs": schema.pop("$defs", {})})
    common = load(path_of("common"))
    for name in COMMON:
        if not common["$defs"][name].get("examples"):
            found = [data for _, form in given if form == name for data in given[_, form]]
            _save(path_of("common"), common | {"$defs": _with_example(common["$defs"], name, _best(found))})


def _with_example(forms: Mapping[str, Any], name: str, example: Any) -> dict[str, Any]:
    return {**forms, name: {**forms[name], "examples": [example]}}


def _save(path: Path, schema: Mapping[str, Any]) -> None:
    kept = {key: value for key, value in schema.items() if value or key != "$defs"}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _best(given: Iterable[Any]) -> Any:
    by_length = sorted(given, key=_length)
    readable = [data for data in by_length if _length(data) <= _LONG]
    return readable[-1] if readable else _shortened(by_length[0])


def _length(data: Any) -> int:
    return len(json.dumps(data))


def _shortened(data: Any) -> Any:
    """The same answer with fewer entries in its lists."""
    if isinstance(data, dict):
        return {key: _shortened(value) for key, value in data.items()}
    return [_shortened(value) for value in data[:_LISTED]] if isinstance(data, list) else data


def _portable(data: Any, folder: str) -> Any:
    text = re.sub(re.escape(folder) + r"/\d+", "/repository", json.dumps(data))
    for name, instead in ((sys.executable, "python"), (folder, "/repository"), (socket.gethostname(), "host")):
        text = text.replace(name, instead)
    text = re.sub(r"/(?:dev/shm|tmp)/[^/\" ]*", "/server", text)
    return json.loads(text)


_render = json_report.render_envelope


def _watched(command: str, exit_code: int, findings: Iterable[Problem], data: Mapping[str, Json]) -> str:
    text = _render(command, exit_code, findings, data)
    answer = json.loads(text)
    if answer["command"] in {*COMMANDS, *FORMER}:
        _given.append(answer)
    return text


json_report.render_envelope = _watched  # before the commands import it


@pytest.fixture(autouse=True)
def answers_fit_their_schemas() -> Iterator[None]:
    _given.clear()
    yield
    for answer in _given:
        form_of(answer)
