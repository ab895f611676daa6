"""The same as tests/langgraph_saver/test_as_in_memory.py, in full: 14 stories, 6 graphs, 2 ways, 3 durabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_saver.stories import CASES, Case, require_same_end
from proof.share import stride


def test_the_table_is_whole() -> None:
    assert len({*CASES}) == 504


@pytest.mark.parametrize("case", CASES[:: stride(7)], ids=str)
def test_it_ends_as_with_the_saver_in_memory(case: Case, tmp_path: Path) -> None:
    require_same_end(case, tmp_path)
