"""The JSON object of every command, held against its schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from report.samples import PACKET, STUB, finding, fix, outcome, outcomes
from workpacket import __version__
from workpacket.problem import Edit
from workpacket.report.json_report import render_check, render_envelope
from workpacket.report.outcome import CheckOutcome
from workpacket.report.terminal import hidden

SCHEMAS = Path(__file__).parents[2] / "schemas"


def load(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return schema


OUTPUT = Draft202012Validator(load("output.schema.json"))
CHECK = Draft202012Validator(load("output.check.schema.json"))


def test_the_object_of_a_check() -> None:
    found = finding(hint="name the heading", end_line=2, end_column=14, fix=fix(Edit(4, 6, "é"), title="fill it"))
    rendered = json.loads(render_check(outcome(found, notes=("a note",)), 1))
    assert rendered == {
        "workpacket": __version__,
        "command": "check",
        "ok": False,
        "exit_code": 1,
        "findings": [
            {
                "code": "empty_field",
                "severity": "error",
                "path": STUB,
                "line": 2,
                "column": 3,
                "end_line": 2,
                "end_column": 14,
                "message": "the field SPEC_ANCHOR is empty",
                "hint": "name the heading",
                "confidence": "certain",
                "fix": {"safe": True, "title": "fill it", "edits": [{"start": 4, "end": 6, "text": "é"}]},
            }
        ],
        "data": {
            "files_checked": 1,
            "files_by_kind": {"stub": 1},
            "files_with_findings": 1,
            "counts": {"error": 1, "warning": 0, "info": 0},
            "fixable": {"safe": 1, "unsafe": 0},
            "fail_on": "error",
            "notes": ["a note"],
        },
    }


def test_findings_are_sorted_by_path_and_place() -> None:
    unsorted = (finding(line=9), finding(line=1), finding(path=PACKET, line=5))
    rendered = json.loads(render_check(outcome(*unsorted), 1))
    assert [(entry["path"], entry["line"]) for entry in rendered["findings"]] == [(PACKET, 5), (STUB, 1), (STUB, 9)]


def test_a_fix_that_json_cannot_carry_says_so() -> None:
    rendered = json.loads(render_check(outcome(finding(fix=fix(Edit(0, 0, "caf\udce9")))), 1))
    assert rendered["findings"][0]["fix"] == {"safe": True, "title": "", "edits": None}


def test_a_text_in_an_edit_and_a_path_stay_exact() -> None:
    edit = Edit(0, 0, "\u202e\x1b\x7f\t")
    rendered = render_check(outcome(finding(path="a\x1b\x7fb.md", fix=fix(edit))), 1)
    entry = json.loads(rendered)["findings"][0]
    assert entry["path"] == "a\x1b\x7fb.md"
    assert entry["fix"]["edits"][0]["text"] == edit.text
    assert "\x7f" not in rendered


def test_the_data_of_any_command_may_hold_anything() -> None:
    data = {"rows": [{"\ud800": "half \udcff"}, None, True, 1.5, 2**70], "text": "\u202e"}
    rendered = render_envelope("any", 0, (), data)
    assert json.loads(rendered)["data"] == {
        "rows": [{"\\ud800": "half \\xff"}, None, True, 1.5, 2**70],
        "text": "\u202e",
    }
    OUTPUT.validate(json.loads(rendered))


@given(outcomes())
def test_any_outcome_is_one_line_of_ascii_that_its_schemas_accept(result: CheckOutcome) -> None:
    exit_code = 1 if result.findings else 0
    rendered = render_check(result, exit_code)
    assert rendered.isascii()
    assert rendered.removesuffix("\n").isprintable()
    value = json.loads(rendered)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    OUTPUT.validate(value)
    CHECK.validate(value)
    for entry in value["findings"]:
        assert hidden().search(entry["message"] + " " + entry["hint"]) is None


@pytest.mark.parametrize("name", ["output.schema.json", "output.check.schema.json"])
def test_the_schemas_are_sound_and_accept_their_own_examples(name: str) -> None:
    schema = load(name)
    Draft202012Validator.check_schema(schema)
    assert schema["examples"]
    for example in schema["examples"]:
        Draft202012Validator(schema).validate(example)


def test_a_finding_is_described_the_same_in_both_schemas() -> None:
    assert load("output.schema.json")["$defs"] == load("output.check.schema.json")["$defs"]


@pytest.mark.parametrize(
    "change",
    [
        {"ok": True},
        {"exit_code": "1"},
        {"surplus": 1},
        {"findings": [{"code": "empty_field"}]},
        {"data": {"files_checked": 1}},
        {"command": "fmt"},
    ],
)
def test_the_schema_of_check_refuses_what_is_no_output_of_check(change: dict[str, Any]) -> None:
    value = json.loads(render_check(outcome(finding()), 1))
    CHECK.validate(value)
    with pytest.raises(ValidationError):
        CHECK.validate(value | change)
