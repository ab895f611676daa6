"""A node: a value, and where it stands."""

from __future__ import annotations

import pytest

from text.reading import source_of
from workpacket.text.source import Node
from workpacket.text.yaml_strict import load_yaml


@pytest.fixture
def root() -> Node:
    loaded = load_yaml(source_of("a: {b: [x, {c: 1}]}\nd: two\n")).root
    assert loaded is not None
    return loaded


def test_a_path_leads_to_a_node_or_nowhere(root: Node) -> None:
    found = root.get("a", "b", 1, "c")
    assert found is not None
    assert found.value == 1
    for path in [("x",), ("a", 0), ("a", "b", 2), ("a", "b", "c"), ("d", "e"), ("x", "y")]:
        assert root.get(*path) is None
    last = root.get("a", "b", -1)
    assert last is not None
    assert last.plain() == {"c": 1}


def test_the_nearest_node_is_the_innermost_on_the_way(root: Node) -> None:
    assert root.nearest(("a", "b", 7, "c")) is root.get("a", "b")
    assert root.nearest(("a", "b", 0)) is root.get("a", "b", 0)
    assert root.nearest(("x",)) is root


def test_of_a_value_of_another_kind_there_are_no_parts(root: Node) -> None:
    scalar = root.mapping["d"]
    assert (scalar.text, scalar.mapping, scalar.items) == ("two", {}, [])
    assert (root.text, root.items) == (None, [])


def test_it_walks_in_the_order_of_the_text(root: Node) -> None:
    nodes = list(root.walk())
    assert [node.start for node in nodes] == sorted(node.start for node in nodes)
    assert [node.value for node in nodes if isinstance(node.value, (str, int))] == ["x", 1, "two"]


def test_it_shows_its_value_and_place(root: Node) -> None:
    assert repr(root.mapping["d"]) == "Node('two', 23, 26)"
    assert root.mapping["d"].span == (23, 26)
