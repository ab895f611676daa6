"""JSON-Schema-Test-Suite, draft 2020-12: acceptor and judge have the opinion of the suite and of `jsonschema`.

The data is not in this repository; WORKPACKET_SUITES names the folder. Schemas that the loader refuses (references to
other places, anchors, keywords that nothing here uses) are refused on purpose; for what reasons is pinned.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from workpacket.text.schema import compile_acceptor
from workpacket.text.schema_loading import Loader, Schema, UnusableSchema
from workpacket.text.schema_messages import complaints
from workpacket.text.schema_violations import violations

# Formats are only annotations to the suite. Ours are always checked.
CHECKED_BY_US = {
    "invalid date string is only an annotation by default",
    "invalid date-time string is only an annotation by default",
    "invalid uuid string is only an annotation by default",
}

REFUSED_FOR = {
    "are followed": 51,  # a reference to another file, to an anchor or into the middle of a schema
    "unevaluatedItems is not a supported keyword": 28,
    "$dynamicRef is not a supported keyword": 3,
    "$dynamicAnchor is not a supported keyword": 3,
    "$id is not a supported keyword": 7,  # below the root
    "$defs is not a supported keyword": 1,  # below the root
    "contentMediaType is not a supported keyword": 3,
    "contentEncoding is not a supported keyword": 1,
    "specifies the format": 16,
    'does not have `"$schema"': 5,
    "the pattern": 2,  # with \p{...}
}


def folder() -> Path:
    root = os.environ.get("WORKPACKET_SUITES")
    if root is None:
        if "CI" in os.environ:
            pytest.fail("WORKPACKET_SUITES must name the folder of the published suites in CI")
        pytest.skip("WORKPACKET_SUITES is not set")
    return Path(root) / "jsonschema"


@cache
def groups() -> tuple[tuple[str, dict[str, Any]], ...]:
    """File name and group: a schema with its tests."""
    files = sorted(folder().glob("*.json"))
    return tuple((file.stem, group) for file in files for group in json.loads(file.read_bytes()))


def ready(schema: Any) -> Schema:
    return schema if isinstance(schema, bool) else Loader({"it": json.dumps(schema).encode()}.__getitem__).load("it")


def usable() -> Iterator[tuple[str, dict[str, Any], Schema]]:
    for file, group in groups():
        try:
            yield file, group, ready(group["schema"])
        except UnusableSchema:
            continue


def test_the_whole_suite_is_there() -> None:
    assert (len(groups()), sum(len(group["tests"]) for _, group in groups())) >= (383, 1299)


def test_acceptor_and_judge_agree_with_the_suite_and_with_jsonschema() -> None:
    compiled = cases = 0
    for file, group, schema in usable():
        accepts = compile_acceptor(schema)
        stock = Draft202012Validator(group["schema"], registry=Registry())
        compiled += accepts is not None
        for case in group["tests"]:
            value, where = case["data"], f"{file}: {group['description']}: {case['description']}"
            cases += 1
            if case["description"] in CHECKED_BY_US:
                expected = False
            else:
                expected = case["valid"]
                assert stock.is_valid(value) is expected, where
            assert (complaints(schema, value) == []) is expected, where
            assert (violations(schema, value) == ()) is expected, where
            if accepts is not None:
                assert accepts(value) is expected, where

    assert compiled >= 259
    assert cases >= 930


def test_what_has_no_acceptor_is_only_what_floats_make_doubtful() -> None:
    without = Counter(file for file, _, schema in usable() if compile_acceptor(schema) is None)

    assert without == {"multipleOf": 4}


def test_what_is_refused_reaches_elsewhere_or_says_what_no_schema_of_ours_may_say() -> None:
    reasons: Counter[str] = Counter()
    for _, group in groups():
        try:
            ready(group["schema"])
        except UnusableSchema as unusable:
            reasons[next(words for words in REFUSED_FOR if words in str(unusable))] += 1

    assert reasons == REFUSED_FOR
