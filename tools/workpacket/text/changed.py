"""The proof after an edit: the document says what was meant, and nothing else has changed."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from workpacket.text.node import Node, Plain
from workpacket.text.plain_scalars import NodePath


class Removed(Enum):
    """Stands for the value of something that is there no more."""

    REMOVED = "removed"


REMOVED = Removed.REMOVED
Change: TypeAlias = "Plain | Removed"


def changed_only(before: Node, after: Node, path: NodePath, value: Change) -> bool:
    """Whether `after` is `before` with `value` at `path` and all else equal: values, types and the order of keys.

    A path that ends with the length of a list appends to it; `REMOVED` takes an item or a key away. The empty path is
    the whole document.
    """
    if not path:
        return not isinstance(value, Removed) and _same(value, after.plain())
    expected = before.plain()
    inside = expected
    for step in path[:-1]:
        inside = _below(inside, step)
    return _make(inside, path[-1], value) and _same(expected, after.plain())


def _below(plain: Plain, step: str | int) -> Plain:
    if isinstance(plain, dict) and isinstance(step, str):
        return plain.get(step)
    if isinstance(plain, list) and isinstance(step, int) and 0 <= step < len(plain):
        return plain[step]
    return None


def _make(inside: Plain, step: str | int, value: Change) -> bool:
    """Make the change in place; false if there is no such place."""
    if isinstance(inside, dict) and isinstance(step, str):
        there = step in inside
        if isinstance(value, Removed):
            inside.pop(step, None)
            return there
        inside[step] = value
        return True
    if not isinstance(inside, list) or not isinstance(step, int) or not 0 <= step <= len(inside):
        return False
    there = step < len(inside)
    inside[step : step + 1] = [] if isinstance(value, Removed) else [value]
    return there or value is not REMOVED


def _same(one: Plain, other: Plain) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
