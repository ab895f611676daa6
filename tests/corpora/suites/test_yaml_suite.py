"""yaml-test-suite: every case is read with the published value or refused, never with another value.

Two published results are compared. `tree` is the stream of events: of it we take the structure and the text of every
scalar, which leaves no room for opinions about types. `json` is the value: there our rule that dates, fractions and
ornamented numbers are text makes a string of what others call a number, and `same_value` allows exactly that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from corpora.suites.published import suite
from text.reading import PARSERS, parsed_by
from workpacket.text.source import Node, Source
from workpacket.text.yaml_strict import load_yaml

# Cases that the suite calls errors and we read, in the one way in which they can be read.
READ_ALTHOUGH_WRONG = {
    "9C9N": "brackets that go on at the margin: common in real files, and read so by every parser in use",
    "QB6E": "quoted text that goes on at the margin: the same",
    "DK95/1": "quoted text that goes on behind a tab: the same",
    "S98Z": "blank lines of a block that has no other: it is empty, however they are indented",
}

# Codes that say "this is YAML, and we do not read it". Any other refusal of a valid case must be in the table below.
OUTSIDE_OUR_YAML = {
    "yaml_alias",
    "yaml_anchor",
    "yaml_bare_block",
    "yaml_directive",
    "yaml_duplicate_key",
    "yaml_key_not_text",
    "yaml_merge_key",
    "yaml_question_mark",
    "yaml_several_documents",
    "yaml_tab",
    "yaml_tag",
    "yaml_unfinished_block",
}

# Valid cases in which the parsers give up, each with why nobody will miss it.
BEYOND_THE_PARSERS = {
    **dict.fromkeys(
        ["2JQS", "CFD4", "NHX8", "NKF9", "S3PD", "SM9W/1", "UKK6"],
        "an empty key; where the parsers read one, we refuse it with a code of its own",
    ),
    **dict.fromkeys(
        ["4MUZ", "4MUZ/1", "4MUZ/2", "5MUD", "9SA2", "K3WX", "NJ66", "UT92", "VJP3/1"],
        "a key in braces whose ':' stands on another line",
    ),
    **dict.fromkeys(
        ["58MP", "5T43", "DBG4", "HM87"],
        "a plain scalar in brackets that begins with ':'",
    ),
    **dict.fromkeys(
        ["4ABK", "FRK4"],
        "a plain key in brackets whose ':' touches what comes next",
    ),
    **dict.fromkeys(
        ["7Z25", "HWV9", "M7A3", "QT73"],
        "several documents, or none, told apart by '...' alone",
    ),
    **dict.fromkeys(
        ["8XYN", "W5VH"],
        "an anchor with a name beyond letters and digits, and anchors are refused anyway",
    ),
}
# To libyaml the first is a lone question mark, which we refuse with a code of its own.
BEYOND_PYYAML = {"JR7V": "a lone '?' in brackets"}


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    tree: list[str] | None
    json: str | None


def cases() -> Iterator[Case]:
    for path in sorted(suite("yaml").glob("*.yaml")):
        inherited: dict[str, str] = {}
        entries = yaml.load(path.read_text("utf-8"), yaml.CBaseLoader)
        for number, entry in enumerate(entries):
            # A later entry of a file states only what differs from the one before it.
            inherited = {**{key: value for key, value in inherited.items() if key != "fail"}, **entry}
            name = path.stem if number == 0 else f"{path.stem}/{number}"
            tree = None if inherited.get("fail") == "true" else unmarked(inherited["tree"]).splitlines()
            yield Case(name, unmarked(inherited["yaml"]), tree, inherited.get("json"))


def unmarked(text: str) -> str:
    """The text that a case means: the suite writes visible signs for blanks, tabs and line ends."""
    text = re.sub("—*»", "\t", text.replace("␣", " "))
    return re.sub("∎\n$", "", text.replace("←", "\r").replace("⇔", "\ufeff").replace("↵", ""))


def structure(tree: list[str]) -> object:
    """What the published events build: lists, mappings, the text of scalars; where there is no document, nothing."""
    lines = iter(line.strip(" ") if not line.lstrip(" ").startswith("=VAL") else line.lstrip(" ") for line in tree)
    documents = list(_items(lines, "-STR"))
    assert len(documents) <= 1
    return documents[0] if documents else ""


def _items(lines: Iterator[str], end: str) -> Iterator[object]:
    for line in lines:
        if line.startswith(end):
            return
        if line.startswith("+DOC"):
            yield next(iter(list(_items(lines, "-DOC"))), None)
        elif line.startswith("+SEQ"):
            yield list(_items(lines, "-SEQ"))
        elif line.startswith("+MAP"):
            entries = list(_items(lines, "-MAP"))
            yield dict(zip(map(_frozen, entries[::2]), entries[1::2], strict=True))
        elif line.startswith("=VAL"):
            yield _unescaped(re.sub(r"^=VAL (?:&\S+ )?(?:<[^>]*> )?[:'\"|>]", "", line))
        elif not line.startswith("+STR"):
            yield line


def _frozen(key: object) -> object:
    return key if isinstance(key, str) else repr(key)


def _unescaped(text: str) -> str:
    letters = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "\\": "\\"}
    return re.sub(r"\\(.)", lambda match: letters[match[1]], text)


def texts(source: Source, node: Node) -> object:
    """Our tree in the same form: every scalar as its text."""
    if isinstance(node.value, dict):
        return {key: texts(source, child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [texts(source, child) for child in node.value]
    return node.value if isinstance(node.value, str) else source.text[node.start : node.end]


def same_value(ours: object, theirs: object) -> bool:
    """Equal, or the text of what they call a number."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same_value(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same_value, ours, theirs))
    if isinstance(ours, str) and isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        return number(ours) == theirs
    return type(ours) is type(theirs) and ours == theirs


def number(text: str) -> float:
    prefix = re.match(r"0[xo]", text)
    return int(text, 0) if prefix else float(text)


@pytest.mark.parametrize("parser", PARSERS)
def test_every_case_is_read_with_the_published_value_or_refused(parser: str) -> None:
    count = 0
    with parsed_by(parser):
        for case in cases():
            source = Source(case.name, case.text)
            loaded = load_yaml(source)
            if loaded.root is None or case.tree is None:
                continue
            count += 1
            assert texts(source, loaded.root) == structure(case.tree), case.name
            if case.json and case.json.strip():
                assert same_value(loaded.root.plain(), json.loads(case.json)), case.name
    assert count > 120


@pytest.mark.parametrize("parser", PARSERS)
def test_what_the_suite_calls_an_error_is_refused(parser: str) -> None:
    with parsed_by(parser):
        wrong = [case for case in cases() if case.tree is None]
        read = {case.name for case in wrong if load_yaml(Source(case.name, case.text)).root is not None}
    assert len(wrong) > 80
    assert read == READ_ALTHOUGH_WRONG.keys()


@pytest.mark.parametrize("parser", PARSERS)
def test_a_valid_case_is_refused_only_for_a_stated_reason(parser: str) -> None:
    refused = {}
    with parsed_by(parser):
        for case in cases():
            codes = {fault.code for fault in load_yaml(Source(case.name, case.text)).faults}
            if case.tree is not None and codes and not codes & OUTSIDE_OUR_YAML:
                refused[case.name] = codes
    assert refused.keys() == {*BEYOND_THE_PARSERS, *(BEYOND_PYYAML if parser == "pyyaml" else ())}


def test_both_parsers_read_the_same_cases() -> None:
    read = []
    for parser in PARSERS:
        with parsed_by(parser):
            read.append({case.name for case in cases() if load_yaml(Source(case.name, case.text)).root is not None})
    assert read[0] == read[1]
