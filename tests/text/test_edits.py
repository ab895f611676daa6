"""Span edits: what is named changes, and no other byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.problem import Edit
from workpacket.text.source import DROP_BOM, OverlappingEdits, Source, apply_edits, compatible

TEXT = "0123456789"
SPANS = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(sorted)
EDITS = st.builds(lambda span, text: Edit(span[0], span[1], text), SPANS, st.sampled_from(["", "x", "yz"]))


def edited(*edits: Edit) -> str:
    return apply_edits(Source("file", TEXT), edits).text


def test_edits_are_made_from_the_positions_of_the_old_text() -> None:
    assert edited(Edit(8, 10, ""), Edit(0, 1, "zero"), Edit(5, 5, "-")) == "zero1234-567"


def test_insertions_at_one_place_keep_their_order() -> None:
    assert edited(Edit(3, 3, "a"), Edit(3, 3, "b")) == "012ab3456789"


def test_an_edit_given_twice_is_made_once() -> None:
    assert edited(Edit(3, 3, "a"), Edit(3, 3, "a")) == "012a3456789"


def test_an_insertion_may_touch_a_replacement() -> None:
    assert edited(Edit(3, 5, "-"), Edit(5, 5, "+"), Edit(3, 3, "*")) == "012*-+56789"


@pytest.mark.parametrize(
    "edits", [(Edit(1, 4, ""), Edit(3, 5, "")), (Edit(1, 4, "a"), Edit(1, 4, "b")), (Edit(1, 9, ""), Edit(5, 5, "x"))]
)
def test_edits_of_the_same_characters_are_refused(edits: tuple[Edit, ...]) -> None:
    with pytest.raises(OverlappingEdits, match="two edits of file overlap at offset"):
        edited(*edits)


@pytest.mark.parametrize("edit", [Edit(9, 11, ""), Edit(-2, 0, ""), Edit(5, 4, "")])
def test_an_edit_outside_the_text_is_refused(edit: Edit) -> None:
    with pytest.raises(OverlappingEdits, match="is outside file"):
        edited(edit)


def test_the_byte_order_mark_stays_unless_an_edit_drops_it() -> None:
    source = Source("file", TEXT, bom=True)
    assert apply_edits(source, [Edit(0, 1, "")]).encode() == b"\xef\xbb\xbf123456789"
    assert apply_edits(source, [DROP_BOM, Edit(0, 1, "")]).encode() == b"123456789"


def test_bytes_that_are_not_utf8_outlive_an_edit() -> None:
    source = Source.from_bytes("file", b"\xff\xfe: a\r\n\x80")
    assert apply_edits(source, [Edit(4, 5, "b")]).encode() == b"\xff\xfe: b\r\n\x80"


def test_of_two_groups_that_meet_the_first_is_taken() -> None:
    first, second = (Edit(1, 4, "a"),), (Edit(7, 8, "b"), Edit(3, 5, "c"))
    assert compatible([first, second]) == [first, None]
    assert compatible([second, first]) == [second, None]


def test_an_edit_that_two_groups_share_is_taken_with_the_first() -> None:
    shared, more = Edit(1, 4, "a"), Edit(7, 8, "b")
    assert compatible([(shared,), (shared, more)]) == [(shared,), (more,)]


def test_a_group_that_contradicts_itself_is_not_taken() -> None:
    contradiction, other = (Edit(1, 4, "a"), Edit(2, 3, "b")), (Edit(7, 8, "c"),)
    assert compatible([contradiction, other]) == [None, other]


@given(st.lists(st.lists(EDITS, max_size=3).map(tuple), max_size=5))
def test_compatible_groups_can_be_made_together(groups: list[tuple[Edit, ...]]) -> None:
    taken = [group for group in compatible(groups) if group is not None]
    expected = list(TEXT)
    for edit in (edit for group in taken for edit in group):
        for offset in range(edit.start, edit.end):
            expected[offset] = ""
    removed = "".join(expected)
    text = edited(*(edit for group in taken for edit in group))
    assert "".join(character for character in text if character.isdigit()) == removed
