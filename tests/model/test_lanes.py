"""The lanes, and the names that people give them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workpacket
from workpacket.model.lanes import ACTIVE_TOKEN, LANES, SECTIONS, lanes_named, section_key


def tokens(text: str) -> list[str]:
    return [lane.token for lane in lanes_named(text)]


@pytest.mark.parametrize(
    ("status", "lanes"),
    [
        ("Ready for Dev", ["READY_FOR_DEV"]),
        ("READY FOR DEV 🔴", ["READY_FOR_DEV"]),
        ("In-Progress (revalidation required)", ["IN_PROGRESS"]),
        ("in_progress", ["IN_PROGRESS"]),
        ("STUB (NOT READY FOR DEV)", ["STUB"]),
        ("STUB (Not Activated)", ["STUB"]),
        ("Done", ["VALIDATED", "FAIL", "MERGED", "OUTDATED_ONLY"]),
        ("Done [FAIL]", ["FAIL"]),
        ("VALIDATED ✅", ["VALIDATED"]),
        ("for_review", ["IN_REVIEW"]),
        ("planned", ["READY_FOR_DEV"]),
        ("canceled", ["ABANDONED"]),
        ("Almost there", []),
        ("", []),
        ("[somewhere] Blocked", []),
    ],
)
def test_a_status_names_its_lanes(status: str, lanes: list[str]) -> None:
    assert tokens(status) == lanes


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.token)
def test_a_lane_is_named_by_its_token_its_title_and_its_aliases(lane: object) -> None:
    known = next(each for each in LANES if each is lane)
    for name in (known.token, known.title, *known.aliases):
        assert tokens(name) == [known.token], name


def test_every_lane_has_its_section_on_the_board() -> None:
    assert {lane.section for lane in LANES} <= {section.key for section in SECTIONS}


@given(st.text(max_size=60))
def test_any_text_names_lanes_or_none(text: str) -> None:
    assert set(lanes_named(text)) <= set(LANES)
    assert section_key(text) == section_key(section_key(text))


_MAY_NAME_LANES = ("model/lanes.py", "lifecycle/transitions.py")


def test_what_is_asked_of_several_lanes_is_a_property_of_each() -> None:
    """A lane that is added is a row: a list of lanes in another module would be forgotten."""
    package = Path(workpacket.__file__).parent
    found = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).as_posix() not in _MAY_NAME_LANES
        for line in _lines_that_list_lanes(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "make it a property of Lane in tools/workpacket/model/lanes.py"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ('X = frozenset({"STUB", "ABANDONED"})', [1]),
        ('X = {"STUB": 1, "FAIL": 2}', [1]),
        ('def f(x):\n    return x in ("IN_REVIEW", "BLOCKED")', [2]),
        ('X = ("PASS", "FAIL", "CHANGES", "OUTDATED_ONLY")', []),
        ('X = ("STUB", "stub")', []),
    ],
)
def test_a_list_of_lanes_is_seen(code: str, lines: list[int]) -> None:
    assert list(_lines_that_list_lanes(code)) == lines


def _lines_that_list_lanes(code: str) -> Iterator[int]:
    # FAIL and OUTDATED_ONLY are verdicts too.
    verdicts = {"FAIL", "OUTDATED_ONLY"}
    if sum(lane.token in code for lane in LANES) < 2:  # to parse every module takes a second
        return
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Set | ast.Tuple | ast.List | ast.Dict):
            continue
        items = node.keys if isinstance(node, ast.Dict) else node.elts
        words = {item.value for item in items if isinstance(item, ast.Constant)}
        named = words & {lane.token for lane in LANES}
        if len(named) > 1 and not named <= verdicts:
            yield node.lineno


@pytest.mark.parametrize(("name", "more"), [("lane", []), ("board_token", [ACTIVE_TOKEN])])
def test_the_schemas_list_every_lane(name: str, more: list[str]) -> None:
    path = Path(__file__).parents[2] / "schemas/common.schema.json"
    listed = json.loads(path.read_text(encoding="utf-8"))["$defs"][name]["enum"]
    assert listed == [*(lane.token for lane in LANES), *more], f"edit $defs/{name} in schemas/common.schema.json"
