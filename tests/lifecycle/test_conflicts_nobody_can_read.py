"""A conflict that cannot be told apart is left to a person, however the lines of the file end."""

from __future__ import annotations

import pytest

from workpacket.lifecycle.board_sync import without_conflicts
from workpacket.text.source import Source

BOARD = ".GOV/roles_shared/TASK_BOARD.md"
UNDERLINED = "<<<<<<< HEAD\nTitle\n=======\n- a\n=======\n- b\n>>>>>>> other\n"
PLAIN = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_heading_underlined_within_a_conflict_is_not_taken_for_its_middle(end: str) -> None:
    text = UNDERLINED.replace("\n", end)
    assert without_conflicts(Source(BOARD, text)).text == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_entries_of_both_sides_of_the_board_are_kept(end: str) -> None:
    assert without_conflicts(Source(BOARD, PLAIN.replace("\n", end))).text == f"- a{end}- b{end}"
