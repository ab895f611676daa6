"""Bringing YAML that people wrote to what it should say, with the smallest changes that do it.

Values that are right already are not touched, however they are written. Of a list, items go and items are added to its
end; only if that is not enough is a value written anew, and with it the comments inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from difflib import SequenceMatcher

from workpacket.text.node import Node, Plain
from workpacket.text.plain_scalars import NodePath, written_as_text
from workpacket.text.yaml_edit import (
    CannotEdit,
    YamlText,
    append_item,
    insert_key,
    remove_item,
    remove_key,
    set_scalar,
    set_value,
)

IsText = Callable[[NodePath], bool]


def reconciled(text: YamlText, path: NodePath, wanted: Plain, is_text: IsText) -> YamlText:
    """`text` with `wanted` at `path`. Where `is_text` says so, `2` and `"2"` are the same; `CannotEdit` if need be."""
    node = _read(text, is_text).get(*path)
    if node is None:
        return text.edited(insert_key(text, path[:-1], str(path[-1]), wanted))
    have = node.plain()
    if _same(have, wanted):
        return text
    if isinstance(have, dict) and isinstance(wanted, dict) and have:
        return _mapping(text, path, wanted, is_text)
    if isinstance(have, list) and isinstance(wanted, list) and have:
        with suppress(CannotEdit):
            return _list(text, path, (have, wanted))
    if isinstance(wanted, (dict, list)) or isinstance(have, (dict, list)):
        return text.edited(set_value(text, path, wanted))
    return text.edited(set_scalar(text, path, wanted))


def _mapping(text: YamlText, path: NodePath, wanted: dict[str, Plain], is_text: IsText) -> YamlText:
    node = text.root.get(*path)
    for key in [key for key in (node.mapping if node is not None else {}) if key not in wanted]:
        text = text.edited(remove_key(text, (*path, key)))
    for key, value in wanted.items():
        text = reconciled(text, (*path, key), value, is_text)
    return text


def _list(text: YamlText, path: NodePath, values: tuple[list[Plain], list[Plain]]) -> YamlText:
    """Items taken out, last one first, and items added to the end; `CannotEdit` if one would have to stand between."""
    have, wanted = values
    kept: list[Plain] = []
    gone: list[int] = []
    matcher = SequenceMatcher(None, [repr(item) for item in have], [repr(item) for item in wanted], autojunk=False)
    for tag, start, end, _, __ in matcher.get_opcodes():
        if tag == "equal":
            kept += have[start:end]
        elif tag != "insert":
            gone += range(start, end)
    if kept != wanted[: len(kept)]:
        raise CannotEdit("an item would have to stand between others")
    if kept:
        for index in reversed(gone):
            text = text.edited(remove_item(text, (*path, index)))
    elif gone:
        return text.edited(set_value(text, path, wanted))
    for item in wanted[len(kept) :]:
        text = text.edited(append_item(text, path, item))
    return text


def _read(text: YamlText, is_text: IsText) -> Node:
    return written_as_text(text.source, text.root, is_text)


def _same(one: Plain, other: Plain) -> bool:
    """Equal in value and type; the order of keys does not count."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
