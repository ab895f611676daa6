"""The lanes, and the names that people give them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.model.lanes import LANES, SECTIONS, lanes_named, section_key


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
        ("Done", ["VALIDATED", "FAIL", "OUTDATED_ONLY"]),
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
