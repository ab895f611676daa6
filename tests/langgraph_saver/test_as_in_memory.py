"""Time travel ends as with LangGraph's InMemorySaver: the same graph, the same steps, the same outcome on both savers.

A share of all cases, in which every two of story, way and durability meet, and every graph meets every way with every
durability. `tests/proof/runtime/test_time_travel.py` takes all of them.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from langgraph_saver.stories import DURABILITIES, GRAPHS, STORIES, WAYS, Case, require_same_end

SHARE = [
    Case(story, [*GRAPHS][(number // 2 + turn) % len(GRAPHS)], WAYS[(number + turn) % 2], durability)
    for number, story in enumerate(STORIES)
    for turn, durability in enumerate(DURABILITIES)
]


def test_the_share_leaves_no_pair_out() -> None:
    assert {(case.story, case.way) for case in SHARE} == {*product(STORIES, WAYS)}
    assert {(case.story, case.durability) for case in SHARE} == {*product(STORIES, DURABILITIES)}
    assert {case[1:] for case in SHARE} == {*product(GRAPHS, WAYS, DURABILITIES)}


@pytest.mark.share(8)
@pytest.mark.parametrize("case", SHARE, ids=str)
def test_it_ends_as_with_the_saver_in_memory(case: Case, tmp_path: Path) -> None:
    require_same_end(case, tmp_path)
