"""A parsed value that remembers where it stands.

Every reader (YAML, JSON, TOML, the Markdown kinds) makes a tree of nodes, so that one schema validator and one set of
rules can speak of all of them and still point at line and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Scalar: TypeAlias = "None | bool | int | float | str"
Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"


class Node:
    """A scalar, a list of nodes or a mapping of nodes, at [start, end) of its source.

    `keys` holds, for a mapping, where each key stands. A node that the reader derived from elsewhere (a title, a file
    name) has the span of what it was derived from.
    """

    __slots__ = ("end", "keys", "start", "value")

    def __init__(
        self,
        value: Scalar | list[Node] | dict[str, Node],
        start: int,
        end: int,
        keys: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.value = value
        self.start = start
        self.end = end
        self.keys = keys

    def __repr__(self) -> str:
        return f"Node({self.value!r}, {self.start}, {self.end})"

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def mapping(self) -> dict[str, Node]:
        """The entries of a mapping; of anything else, none."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The items of a list; of anything else, none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str | None:
        """The string of a string node."""
        return self.value if isinstance(self.value, str) else None

    def get(self, *path: str | int) -> Node | None:
        """The node at `path` below this one, if it is there."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node._child(step)
        return node

    def items_at(self, *path: str | int) -> list[Node]:
        """The items of the list at `path`; none where there is no list."""
        node = self.get(*path)
        return node.items if node is not None else []

    def mapping_at(self, *path: str | int) -> dict[str, Node]:
        """The entries of the mapping at `path`; none where there is no mapping."""
        node = self.get(*path)
        return node.mapping if node is not None else {}

    def string_at(self, *path: str | int) -> str:
        """The string at `path`, '' where there is none."""
        node = self.get(*path)
        return node.text or "" if node is not None else ""

    def nearest(self, path: tuple[str | int, ...]) -> Node:
        """The node at `path`, or the innermost one on the way to it."""
        node = self
        for step in path:
            child = node._child(step)
            if child is None:
                break
            node = child
        return node

    def _child(self, step: str | int) -> Node | None:
        if isinstance(step, str):
            return self.value.get(step) if isinstance(self.value, dict) else None
        if isinstance(self.value, list) and -len(self.value) <= step < len(self.value):
            return self.value[step]
        return None

    def plain(self) -> Plain:
        """The value without positions, as a JSON library would give it."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.plain() for key, node in value.items()}
        if isinstance(value, list):
            return [node.plain() for node in value]
        return value

    def walk(self) -> Iterator[Node]:
        """This node and every node below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node.value, dict):
                stack.extend(reversed(node.value.values()))
            elif isinstance(node.value, list):
                stack.extend(reversed(node.value))
