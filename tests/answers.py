"""Holds the JSON object of a command against its schema: `schemas/output.schema.json`, and of `data` its own.

As a plugin it does so in all tests: whatever a command answers with `--json` inside the test process has to fit.
"""

from __future__ import annotations

import json
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
    """The one form of its command that the object has. Raises AssertionError that says what does not fit."""
    _output().validate(answer)
    command, data = answer["command"], answer["data"]
    assert path_of(command).exists(), missing(command)
    fitting = [name for name, form in forms_of(command).items() if form.is_valid(data)]
    assert fitting, f"{path_of(command).relative_to(SCHEMAS.parent)} has no form that fits {json.dumps(data)[:2000]}"
    return fitting[0]


def missing(command: str) -> str:
    return (
        f"there is no schemas/commands/{command}.schema.json. Write it: `data` of `workpacket {command} --json` has one"
        f" of the forms in its anyOf. Copy schemas/commands/cancel.schema.json, give $id, title, description and one"
        f" definition for each answer (closed, each property described); what several commands share is in"
        f" common.schema.json: `refused` for gates, `stopped` for runs, `failed` always. Then reach every form in"
        f" tests/cli/test_answers.py, and run `just reference`."
    )


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
