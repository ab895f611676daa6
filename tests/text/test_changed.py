"""The proof after an edit: this change, and no other."""

from __future__ import annotations

import pytest

from text.reading import source_of
from workpacket.text.source import Node
from workpacket.text.yaml_edit import REMOVED, Change, changed_only
from workpacket.text.yaml_strict import NodePath, load_yaml

BEFORE = "a: {b: 1, c: [x, y]}\nd: 2\n"


def tree(text: str) -> Node:
    root = load_yaml(source_of(text)).root
    assert root is not None
    return root


@pytest.mark.parametrize(
    ("after", "path", "value"),
    [
        ("a: {b: 3, c: [x, y]}\nd: 2\n", ("a", "b"), 3),
        ("a: {b: 1, c: [x, z]}\nd: 2\n", ("a", "c", 1), "z"),
        ("a: {b: 1, c: [x, y, z]}\nd: 2\n", ("a", "c", 2), "z"),
        ("a: {b: 1, c: [y]}\nd: 2\n", ("a", "c", 0), REMOVED),
        ("a: {c: [x, y]}\nd: 2\n", ("a", "b"), REMOVED),
        ("a: {b: 1, c: [x, y], e: {f: []}}\nd: 2\n", ("a", "e"), {"f": []}),
        ("a: {b: 1, c: [x, y]}\nd: 2 # comments do not count\n", ("d",), 2),
        ("[x]", (), ["x"]),
    ],
)
def test_the_change_that_was_meant_is_recognised(after: str, path: NodePath, value: Change) -> None:
    assert changed_only(tree(BEFORE), tree(after), path, value)


@pytest.mark.parametrize(
    ("after", "path", "value"),
    [
        (BEFORE, ("d",), 3),
        (BEFORE, ("d",), "2"),
        (BEFORE, ("d",), True),
        ("a: {b: 1, c: [x, y]}\nd: '2'\n", ("a", "b"), 1),
        ("a: {b: 3, c: [x]}\nd: 2\n", ("a", "b"), 3),
        ("d: 2\na: {b: 3, c: [x, y]}\n", ("a", "b"), 3),
        ("a: {b: 1, c: [x, y, z]}\nd: 2\n", ("a", "c", 3), "z"),
        ("a: {b: 1, c: [x, y, z]}\nd: 2\n", ("a", "c", -1), "z"),
        ("a: {b: 1, c: [x, y]}\nd: 2\n", ("a", "c", 2), REMOVED),
        ("a: {b: 1, c: [x, y]}\nd: 2\n", ("e",), REMOVED),
        (BEFORE, ("d", "e"), 1),
        (BEFORE, ("a", "c", "b"), 1),
        (BEFORE, ("a", "c", 7, "b"), 1),
        (BEFORE, ("e", "f"), 1),
        (BEFORE, (), 1),
        (BEFORE, (), REMOVED),
    ],
)
def test_any_other_change_is_not(after: str, path: NodePath, value: Change) -> None:
    assert not changed_only(tree(BEFORE), tree(after), path, value)
