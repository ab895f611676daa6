"""What a finding says can be acted on: the messages that a reviewer named, and every message about a choice.

`messages.jsonl` has a fault a line, planted as in `planted_in_repository.jsonl`: the number of the message in the
review, what the message with its hint must contain (`says`) and must not (`never`), and how many findings there are
(`count`). `also` changes other files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.archive import Case, read_case
from rules.test_planted_defects import HERE, changed, judged, planted
from workpacket.documents import batch, gate_logs, role_progress
from workpacket.documents.document import KINDS
from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN
from workpacket.rules.batch import SEVERITIES
from workpacket.rules.rule import DocumentRule, ReferenceRule, all_rules
from workpacket.text.schema import SchemaSet

SCHEMAS = HERE.parents[1] / "schemas"

MESSAGES: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "messages.jsonl").read_text("utf-8").splitlines()
]


def with_fault(row: dict[str, Any]) -> Case:
    case = planted({**row, "defect": str(row["number"])})
    for path, edits in row.get("also", ()):
        case.files[path] = changed({"edits": edits}, case.files[path].decode()).encode()
    return case


@pytest.mark.parametrize("row", MESSAGES, ids=[f"{row['number']}-{row['code']}" for row in MESSAGES])
def test_a_message_says_what_is_wrong_and_what_to_do(row: dict[str, Any], tmp_path: Path) -> None:
    found = [one for one in judged(with_fault(row), tmp_path) if one.code in row["code"].split("|")]
    said = "\n".join(f"{one.message} {one.hint}" for one in found)
    assert bool(found) == (row.get("count") != 0)
    assert len(found) == row.get("count", len(found)), said
    assert [words for words in row["says"] if words not in said] == [], said
    assert [words for words in row["never"] if words in said] == [], said


# The codes about a value that is not one of a few: words of the message, and the values.
CHOICES: dict[str, tuple[str, Collection[str]]] = {
    "packet_status_unknown": ("is not a lane", [lane.title for lane in BUILT_IN.lanes if not lane.derived]),
    "board_token_unknown": ("is not a lane token", [ACTIVE_TOKEN, *BUILT_IN.tokens]),
    "registry_board_malformed": (
        "does not name a section",
        [section.heading.partition(" (")[0] for section in BUILT_IN.sections],
    ),
    "batch_status_unknown": ("unknown status", batch.STATUSES),
    "role_status_unknown": ("the status is", role_progress.STATUSES),
    "role_phase_foreign": ("is not one of", role_progress.PHASES),
    "validator_gate_unknown": ("unknown gate", gate_logs.GATES),
    "gate_value_unknown": ("unknown verdict", gate_logs.VERDICTS),
    "verdict_unknown": ("the verdict is", gate_logs.VERDICTS),
    "batch_severity_unknown": ("the severity is", SEVERITIES),
}
# Codes about names that authors choose.
OPEN = {
    *("anchor_chapter_unknown", "section_unknown", "metadata_field_unknown", "board_section_unknown"),
    "lane_neighbour_unknown",
}


@pytest.mark.parametrize("code", sorted(CHOICES))
def test_a_message_about_a_choice_names_every_choice(code: str, tmp_path: Path) -> None:
    words, choices = CHOICES[code]
    cases = [read_case(path) for path in sorted((HERE / "cases" / code).glob("bad*.txt"))]
    # Lanes and phases of a policy are not those that are built in.
    cases = [case for case in cases if not any(name.endswith("policy.toml") for name in case.files)]
    found = [one for number, case in enumerate(cases) for one in judged(case, tmp_path / str(number))]
    said = [f"{one.message} {one.hint}" for one in found if one.code == code and words in one.message]
    assert said
    assert [(choice, text) for text in said for choice in choices if choice not in text] == []


def choices_of(schema: Any, path: str = "") -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """The parts of a schema that allow only some words: by an enumeration, or by a pattern with `x-allowed`."""
    if isinstance(schema, dict):
        words = schema.get("x-allowed") or schema.get("enum") or []
        if words and all(isinstance(word, str) for word in words):
            yield path, words, schema
        for key, inner in schema.items():
            yield from choices_of(inner, f"{path}/{key}")


WITH_CHOICES = [
    pytest.param(words, schema, id=f"{name}{path}")
    for name in sorted({kind.name for kind in KINDS} | {"common"})
    for path, words, schema in choices_of(json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))
]


@pytest.mark.parametrize(("words", "schema"), WITH_CHOICES)
def test_a_schema_that_allows_some_words_names_them(words: list[str], schema: dict[str, Any]) -> None:
    alone = {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.org/alone"}
    judge = SchemaSet(lambda _name: json.dumps(alone).encode())
    assert [judge.violations("alone", word) for word in words] == [()] * len(words)
    (violation,) = judge.violations("alone", "neither of them")
    assert [word for word in words if word not in violation.message] == []


def test_every_pattern_that_lists_words_says_which() -> None:
    listed = [
        (kind.name, path)
        for kind in KINDS
        for path, schema in patterns_of(json.loads((SCHEMAS / f"{kind.name}.schema.json").read_text("utf-8")))
        if re.search(r"[A-Z]{2,}\|[A-Z]{2,}", schema["pattern"]) and "x-allowed" not in schema
    ]
    assert listed == []


def patterns_of(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield path, schema
        for key, inner in schema.items():
            yield from patterns_of(inner, f"{path}/{key}")


def test_every_rule_about_an_unknown_value_is_a_choice_or_open() -> None:
    codes = {rule.code() for rule in all_rules() if issubclass(rule, DocumentRule | ReferenceRule)}
    about = {code for code in codes if code.endswith(("_unknown", "_foreign"))}
    # Ids and tasks are looked up, and files are found or not.
    looked_up = {code for code in about if code.endswith(("dependency_unknown", "task_unknown", "item_unknown"))}
    assert about - looked_up - CHOICES.keys() - OPEN == set()
