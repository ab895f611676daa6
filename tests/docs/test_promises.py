"""Each sentence about approvals that promises something names the test that would fail, and that test is there.

`promises.jsonl` holds, line by line, what a page says and the tests: a file, `file.py::test`, or `list.jsonl::case`.
Every row of the tables of attacks and refusals, and every numbered rule, needs a line. So does every sentence of
`PAGES` outside of tables and code; one that promises nothing has `no_promise` in place of tests. In the sections of
`ADVICE`, which tell people what to do or what the tool does not do, only sentences with one of the words of `PROMISING`
need a line. `test_claims.py` looks after docs/guarantees.md, whose tables name the tests themselves.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from architecture.source_tree import ROOT

PROMISES: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests/docs/promises.jsonl").read_text("utf-8").splitlines()
]
# Of these sections each row of a table, and each numbered item, is a promise.
SECTIONS = {
    "docs/security.md": ("Attacks and defenses",),
    "docs/approvals/protect.md": ("What the check refuses",),
    "docs/approvals/format.md": ("The rules",),
}


PAGES = ("docs/security.md", "docs/guarantees.md", "docs/approvals/protect.md", "docs/approvals/format.md")
ADVICE = {
    "A secret in the log", "What a touch does not prove", "The limits", "What the protected branch must require",
    "Settings by host", "Limits", "What a signature cannot do", "How the tests are tested",
}  # fmt: skip
PROMISING = re.compile(r"\b(?:never|refused|errors?|nothing|always|detect(?:s|ed)?|reports?)\b")


def flat(text: str) -> str:
    return " ".join(text.split())


def section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text("utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: str(promise["says"])[:50])
def test_what_is_promised_is_said_and_has_a_test(promise: dict[str, Any]) -> None:
    assert flat(promise["says"]) in flat((ROOT / promise["page"]).read_text("utf-8"))
    assert bool(promise.get("tests")) is not promise.get("no_promise", False)
    for place in promise.get("tests", ()):
        path, _, name = place.partition("::")
        assert (ROOT / path).exists(), place
        assert not name or name in names_in(path), place


def names_in(path: str) -> set[str]:
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".jsonl"):
        return {json.loads(line)["id"] for line in text.splitlines() if line.strip()}
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("page", "heading"), [(page, each) for page, some in SECTIONS.items() for each in some])
def test_each_row_and_rule_is_tied_to_a_test(page: str, heading: str) -> None:
    lines = re.findall(r"^(?:\| (?!---).*|\d+\. .*(?:\n {3}.*)*)$", section(page, heading), re.MULTILINE)
    rows = [line for line in lines if not line.startswith(("| attack |", "| what |"))]
    assert len(rows) > 3
    said = [flat(promise["says"]) for promise in PROMISES if promise["page"] == page]
    assert [row for row in rows if not any(each in flat(row) for each in said)] == []


def sentences(page: str) -> Iterator[tuple[str, str]]:
    """The heading above each sentence outside of tables and code, and the sentence."""
    text = re.sub(r"^ *```.*?^ *```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    heading = ""
    for block in map(str.strip, re.split(r"\n(?=\s*(?:[-*] |\d+\. ))|\n\s*\n", text)):
        if block.startswith("#"):
            heading = block.lstrip("# ")
        elif not block.startswith("|"):
            said = flat(re.sub(r"^(?:[-*]|\d+\.) ", "", block))
            yield from ((heading, each) for each in re.split(r"(?<=[.:])\s+(?=[A-Z`*\[(])", said) if each)


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_that_promises_something_is_tied_to_a_test(page: str) -> None:
    said = [flat(promise["says"]) for promise in PROMISES if promise["page"] == page]
    found = [each for heading, each in sentences(page) if heading not in ADVICE or PROMISING.search(each)]
    assert len(found) > 2
    left = [one for one in found if not one.endswith(":") and not any(each in one or one in each for each in said)]
    assert left == [], "add a line to tests/docs/promises.jsonl"


def test_sentences_are_told_apart() -> None:
    assert ("The limits", "A signature can't stop an agent from writing code.") in sentences("docs/security.md")
    assert not any(each.startswith("|") or "```" in each for page in PAGES for _, each in sentences(page))


def test_each_sentence_about_a_validated_packet_names_tests_that_are_there() -> None:
    page = (ROOT / "docs/approvals/proves.md").read_text("utf-8")
    rows = [row.strip("|\n").split("|") for row in re.findall(r"^\| .*\n", page, re.MULTILINE)[1:]]
    assert len(rows) > 8
    for sentence, attack, shown in rows:
        assert sentence.strip()
        assert attack.strip()
        places = re.findall(r"`(tests/[^`]+)`", shown)
        assert places, sentence
        for place in places:
            path, _, name = place.partition("::")
            assert (ROOT / path).exists(), place
            assert not name or name in names_in(path), place
