"""A parsed value that remembers its place.

Every reader (YAML, JSON, TOML, the Markdown kinds) makes a tree of nodes, so that one schema validator and one set of
rules can handle all of them and still point to line and column.

Every strict loader returns a tree of nodes, or why there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from workpacket.problem import Location, Problem
from workpacket.text.source import Limits, Source
from workpacket.value import Value

Scalar: TypeAlias = "None | bool | int | float | str"
Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"


class Node:
    """A scalar, a list of nodes or a mapping of nodes, at [start, end) of its source.

    For a mapping, `keys` has the position of each key. A node that the reader derived (a title, a file name) has the
    span of the text it was derived from.
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
        """Return the entries of a mapping; an empty mapping for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """Return the items of a list; an empty list for anything else."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str | None:
        """Return the string of a string node."""
        return self.value if isinstance(self.value, str) else None

    def get(self, *path: str | int) -> Node | None:
        """Return the node at `path` below this one, if it exists."""
        node: Node | None = self
        for step in path:
            if node is None:
                return None
            node = node._child(step)
        return node

    def items_at(self, *path: str | int) -> list[Node]:
        """Return the items of the list at `path`; an empty list if there is none."""
        node = self.get(*path)
        return node.items if node is not None else []

    def mapping_at(self, *path: str | int) -> dict[str, Node]:
        """Return the entries of the mapping at `path`; an empty mapping if there is none."""
        node = self.get(*path)
        return node.mapping if node is not None else {}

    def string_at(self, *path: str | int) -> str:
        """Return the string at `path`, or '' if there is none."""
        node = self.get(*path)
        return node.text or "" if node is not None else ""

    def nearest(self, path: tuple[str | int, ...]) -> Node:
        """Return the node at `path`, or the innermost one on the way to it."""
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
        """Return the value without positions, as a JSON library would."""
        value = self.value
        if isinstance(value, dict):
            return {key: node.plain() for key, node in value.items()}
        if isinstance(value, list):
            return [node.plain() for node in value]
        return value

    def walk(self) -> Iterator[Node]:
        """Yield this node and every node below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node.value, dict):
                stack.extend(reversed(node.value.values()))
            elif isinstance(node.value, list):
                stack.extend(reversed(node.value))


class Loaded(Value):
    """A tree, or the reasons why there is none.

    A document is never partly loaded: if any fault is an error, `root` is None. Only a fault that the catalogue calls a
    warning (`json_byte_order_mark`) can accompany a tree.
    """

    root: Node | None
    faults: tuple[Problem, ...] = ()


def unreadable(text: str, start: int, limits: Limits) -> list[Problem]:
    """Return why `text`, at `start` of its source, cannot be read at all: too long, or not UTF-8."""
    if len(text) > limits.size:
        return [limits.size_fault(start)]
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        return [_not_utf8(text, error.start, start)]
    return [limits.size_fault(start)] if size > limits.size else []


def _not_utf8(text: str, first: int, start: int) -> Problem:
    broken = sum(1 for character in text if "\ud800" <= character <= "\udfff")
    byte = ord(text[first]) & 0xFF
    others = f", and {broken - 1} more after it" if broken > 1 else ""
    message = f"the byte 0x{byte:02X} is not UTF-8{others}"
    return Problem("text_not_utf8", message, Location.span(start + first, start + first + 1))


def duplicate_key(code: str, source: Source, key: str, first: tuple[int, int], again: tuple[int, int]) -> Problem:
    """Return the fault of a key that occurs twice in one mapping, at `first` and at `again`."""
    line, later = source.line_and_column(first[0])[0], source.line_and_column(again[0])[0]
    where = f"twice on line {line}" if line == later else f"on line {line} and again on line {later}"
    return Problem(code, f"the key {key!r} occurs {where}", Location.span(*again), "keep only one of them")
