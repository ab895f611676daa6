"""SARIF, held against the schema of the standard and against what the schema cannot say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from jsonschema import Draft7Validator

from report.samples import PACKET, REASONS, STUB, finding, fix, outcome, outcomes
from workpacket.model import exits
from workpacket.problem import Edit
from workpacket.report.ci import FINGERPRINT, ROOT, relative_uri, render_sarif
from workpacket.report.outcome import CheckOutcome

STANDARD = Path(__file__).parent / "sarif_standard" / "sarif-schema-2.1.0.json"
VALIDATOR = Draft7Validator(json.loads(STANDARD.read_text(encoding="utf-8")))


def run_of(result: CheckOutcome, exit_code: int = 1, **options: int) -> dict[str, Any]:
    log = json.loads(render_sarif(result, REASONS, exit_code, **options))
    VALIDATOR.validate(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def test_a_result_has_its_rule_level_place_and_fix() -> None:
    found = finding(hint="fill it", end_line=2, end_column=14, fix=fix(Edit(4, 6, "x"), title="fill it"))
    run = run_of(outcome(found))
    (result,) = run["results"]
    artifact = {"uri": STUB, "uriBaseId": ROOT}
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "empty_field"
    assert result["level"] == "error"
    assert result["message"]["text"] == "the field SPEC_ANCHOR is empty\nHelp: fill it"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": artifact,
        "region": {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 14},
    }
    assert result["fixes"][0]["description"]["text"] == "fill it (safe)"
    assert result["fixes"][0]["artifactChanges"] == [
        {
            "artifactLocation": artifact,
            "replacements": [{"deletedRegion": {"charOffset": 4, "charLength": 2}, "insertedContent": {"text": "x"}}],
        }
    ]


def test_a_rule_carries_what_the_registry_says_of_it() -> None:
    (rule,) = run_of(outcome(finding("stale_cell", "error")))["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "A cell of the registry is stale."
    assert rule["defaultConfiguration"]["level"] == "warning"
    assert "Run `workpacket board registry sync`." in rule["help"]["markdown"]
    assert rule["properties"] == {"tags": ["cross-file"], "problem.severity": "warning"}


def test_every_result_has_a_location_because_github_refuses_a_file_in_which_one_has_none() -> None:
    whole, repository = finding(line=0, column=0), finding(path="", line=0, column=0)
    places = [entry["locations"][0]["physicalLocation"] for entry in run_of(outcome(whole, repository))["results"]]
    assert places == [
        {"artifactLocation": {"uri": ".GOV", "uriBaseId": ROOT}, "region": {"startLine": 1}},
        {"artifactLocation": {"uri": STUB, "uriBaseId": ROOT}, "region": {"startLine": 1}},
    ]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/ä%.md", "a%20b/%C3%A4%25.md"),
        ("c:d.md", "c%3Ad.md"),
        ("q?x#y.md", "q%3Fx%23y.md"),
        ("caf\udce9.md", "caf%E9.md"),
        ("\u202e.md", "%E2%80%AE.md"),
        ("half\ud800.md", "half%5Cud800.md"),
    ],
)
def test_a_path_is_a_relative_percent_encoded_uri(path: str, uri: str) -> None:
    assert relative_uri(path) == uri


def test_a_name_that_is_not_utf_8_comes_back_byte_for_byte() -> None:
    name = bytes(range(1, 256)).replace(b"/", b"")
    assert unquote_to_bytes(relative_uri(name.decode("utf-8", "surrogateescape"))) == name


def test_results_beyond_the_limit_are_cut_from_the_mildest_and_a_notification_says_how_many() -> None:
    found = [finding(severity="info", line=line) for line in range(1, 5)] + [
        finding(line=9),
        finding("stale_cell", "warning"),
    ]
    run = run_of(outcome(*found), limit=3)
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "warning"
    assert notification["message"]["text"].startswith("3 of 6 findings are not in this file")


def test_nothing_is_said_of_a_cut_that_did_not_happen() -> None:
    run = run_of(outcome(finding(), notes=("a note",)), limit=1)
    assert [entry["message"]["text"] for entry in run["invocations"][0]["toolExecutionNotifications"]] == ["a note"]


def test_a_run_that_could_not_look_is_not_called_successful() -> None:
    assert run_of(outcome(finding()), exits.FINDINGS)["invocations"][0]["executionSuccessful"] is True
    assert run_of(outcome(files={}), exits.ENVIRONMENT)["invocations"][0]["executionSuccessful"] is False


def fingerprints(result: CheckOutcome) -> list[str]:
    return [entry["partialFingerprints"][FINGERPRINT] for entry in run_of(result)["results"]]


def test_a_finding_keeps_its_fingerprint_when_lines_are_added_above_it() -> None:
    before = outcome(finding(line=2), lines={(STUB, 2): "- SPEC_ANCHOR:"})
    after = outcome(finding(line=7, message="now on line 7"), lines={(STUB, 7): "  - SPEC_ANCHOR:"})
    assert fingerprints(before) == fingerprints(after)


def test_equal_lines_files_and_codes_have_fingerprints_of_their_own() -> None:
    same = [finding(line=line) for line in (1, 2)]
    others = [finding("stale_cell", line=1), finding(path=PACKET, line=1)]
    lines = {(STUB, 1): "x", (STUB, 2): "x", (PACKET, 1): "x"}
    assert len(set(fingerprints(outcome(*same, *others, lines=lines)))) == 4


def test_a_fix_that_sarif_cannot_carry_is_left_out() -> None:
    assert "fixes" not in run_of(outcome(finding(fix=fix(Edit(0, 0, "caf\udce9")))))["results"][0]


@settings(max_examples=60)
@given(outcomes())
def test_any_outcome_is_valid_sarif_in_printable_ascii(result: CheckOutcome) -> None:
    rendered = render_sarif(result, REASONS, 1)
    assert rendered.isascii()
    assert rendered.removesuffix("\n").isprintable()
    run = run_of(result)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    assert len(run["results"]) == len(result.findings)
    for entry in run["results"]:
        assert rules[entry["ruleIndex"]] == entry["ruleId"]
        region = entry["locations"][0]["physicalLocation"]["region"]
        end = (region.get("endLine", 10**9), region.get("endColumn", 10**9))
        assert end >= (region["startLine"], region.get("startColumn", 1))
