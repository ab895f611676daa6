"""JSONTestSuite: what must be refused is refused, what must be accepted is, and nothing ends in a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.suites.published import suite
from text.reading import exactly
from workpacket.text.json_strict import load_json
from workpacket.text.source import Loaded, Source

# Valid JSON that we refuse on purpose: the file, the code, and why.
REFUSED_ON_PURPOSE = {
    "y_object_duplicated_key.json": ("json_duplicate_key", "readers keep the first or the last value as they like"),
    "y_object_duplicated_key_and_value.json": ("json_duplicate_key", "the same, by accident without effect"),
}

# Of the cases that a reader may judge as it likes, those that we accept.
ACCEPTED = {
    "i_number_double_huge_neg_exp.json": "a number too small for a float is zero, everywhere",
    "i_number_real_underflow.json": "the same",
    "i_structure_UTF-8_BOM_empty_object.json": "with a warning, as RFC 8259 allows",
}


def load(path: Path) -> Loaded:
    loaded = load_json(Source.from_bytes(path.name, path.read_bytes()))
    assert loaded.root is not None or loaded.faults
    return loaded


def cases(kind: str) -> list[Path]:
    found = sorted(suite("json").glob(f"{kind}_*.json"))
    assert len(found) > 30, f"the suite has far more cases of kind {kind}"
    return found


def test_every_case_that_is_no_json_is_refused() -> None:
    assert [path.name for path in cases("n") if load(path).root is not None] == []


def test_every_case_that_is_json_is_read_as_the_standard_library_reads_it() -> None:
    refused = {}
    for path in cases("y"):
        loaded = load(path)
        if loaded.root is None:
            refused[path.name] = {fault.code for fault in loaded.faults}
        else:
            assert exactly(loaded.root.plain()) == exactly(json.loads(path.read_bytes())), path.name
    assert refused == {name: {code} for name, (code, _) in REFUSED_ON_PURPOSE.items()}


def test_the_cases_left_to_the_reader_are_refused_but_for_a_few() -> None:
    assert {path.name for path in cases("i") if load(path).root is not None} == ACCEPTED.keys()


@pytest.mark.parametrize("name", ["n_structure_100000_opening_arrays.json", "n_structure_open_array_object.json"])
def test_the_bombs_are_stopped_at_the_limit(name: str) -> None:
    assert {fault.code for fault in load(suite("json") / name).faults} == {"limit_depth"}
