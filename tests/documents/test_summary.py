"""A circle is found where there is one, and every circle that is named is one."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.summary import circles

GRAPHS = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=4), max_size=6)


def is_circular(edges: dict[str, list[str]]) -> bool:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        return True
    return False


@given(GRAPHS)
def test_a_circle_is_found_exactly_where_there_is_one(edges: dict[str, list[str]]) -> None:
    found = list(circles(edges, edges))

    assert bool(found) is is_circular(edges)
    for circle in found:
        assert circle[0] == circle[-1]
        assert len(set(circle)) == len(circle) - 1
        assert all(other in edges[one] for one, other in pairwise(circle))


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": ["a"]}, [["a", "a"]]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, [["b", "c", "b"]]),
        ({"a": ["b", "c"], "b": ["a"], "c": ["a"]}, [["a", "b", "a"], ["a", "c", "a"]]),
        ({"a": ["b"], "b": ["unknown"]}, []),
    ],
)
def test_a_circle_begins_and_ends_with_the_name_that_it_comes_back_to(
    edges: dict[str, list[str]], expected: list[list[str]]
) -> None:
    assert list(circles(edges, edges)) == expected


def test_a_very_long_line_is_walked_without_recursion() -> None:
    edges = {str(number): [str(number + 1)] for number in range(20_000)}

    assert list(circles(edges, edges)) == []
    assert [len(circle) for circle in circles({**edges, "20000": ["0"]}, edges)] == [20_002]
