"""Edits of YAML written by people: one value, item or key changes, and every other byte stays, comments included.

Each function proposes spans to replace, in the style that stands there, and tries them: the edited text is read again
by the strict loader, and the first proposal after which only the intended thing has changed is the answer. If there is
none, `CannotEdit` says so.
"""

from __future__ import annotations

from workpacket.text import yaml_spans
from workpacket.text.changed import REMOVED, Change, changed_only
from workpacket.text.edits import apply_edits
from workpacket.text.limits import DATA, Limits
from workpacket.text.node import Node, Plain, Scalar
from workpacket.text.plain_scalars import NodePath
from workpacket.text.source import Source
from workpacket.text.yaml_spans import Edits, Region
from workpacket.text.yaml_strict import load_yaml
from workpacket.value import Value


class CannotEdit(ValueError):
    """There is no edit that makes this change and no other."""


class YamlText(Value):
    """The YAML in [start, end) of `source`, loaded: a whole file, or the front matter of one."""

    source: Source
    root: Node
    start: int
    end: int
    limits: Limits

    def edited(self, edits: Edits) -> YamlText:
        """The text after `edits`, all of which lie in it; `CannotEdit` if it is no longer YAML."""
        source = apply_edits(self.source, edits)
        end = self.end + len(source.text) - len(self.source.text)
        return yaml_text(source, start=self.start, end=end, limits=self.limits)

    @property
    def region(self) -> Region:
        return Region(self.source.text, self.end, self.source.eol)


def yaml_text(source: Source, *, start: int = 0, end: int | None = None, limits: Limits = DATA) -> YamlText:
    """The YAML in [start, end) of `source`; `CannotEdit` if the strict loader refuses it."""
    end = len(source.text) if end is None else end
    loaded = load_yaml(source, start=start, end=end, limits=limits)
    if loaded.root is None:
        fault = loaded.faults[0]
        line, column = source.line_and_column(fault.start)
        raise CannotEdit(f"{source.path}:{line}:{column}: {fault.message}")
    return YamlText(source, loaded.root, start, end, limits)


def set_scalar(text: YamlText, path: NodePath, value: Scalar) -> Edits:
    """Put `value` in place of the scalar at `path`, in its style of quotes as far as it can hold the value."""
    node = _at(text, path)
    if isinstance(node.value, (dict, list)):
        raise CannotEdit(f"{_place(text, node)}: here is a list or mapping, not a single value")
    if type(node.value) is type(value) and node.value == value:
        return ()
    return _first_that_holds(text, yaml_spans.replacing(text.region, node, value), path, value)


def append_item(text: YamlText, path: NodePath, value: Plain) -> Edits:
    """Add `value` to the end of the list at `path`; where the value is left out, a list begins."""
    node = _at(text, path)
    if node.value is None:
        return _first_that_holds(text, yaml_spans.beginning_a_list(text.region, node, value), path, [value])
    if not isinstance(node.value, list):
        raise CannotEdit(f"{_place(text, node)}: here is no list")
    return _first_that_holds(text, yaml_spans.appending(text.region, node, value), (*path, len(node.value)), value)


def remove_item(text: YamlText, path: NodePath) -> Edits:
    """Take away the item at `path`, with the comment on its line; a list that becomes empty is written `[]`."""
    node = _at(text, path)
    holder = _at(text, path[:-1])
    if not isinstance(holder.value, list) or not isinstance(path[-1], int):
        raise CannotEdit(f"{_place(text, node)}: here is no item of a list")
    above = _at(text, path[:-2]) if len(path) > 1 else None
    key = above.keys.get(str(path[-2])) if above is not None and above.keys is not None else None
    return _first_that_holds(text, yaml_spans.removing(text.region, holder, path[-1], key), path, REMOVED)


def insert_key(text: YamlText, path: NodePath, key: str, value: Plain) -> Edits:
    """Add `key: value` to the end of the mapping at `path`, which has no such key yet."""
    node = _at(text, path)
    if not isinstance(node.value, dict):
        raise CannotEdit(f"{_place(text, node)}: here is no mapping")
    if key in node.value:
        raise CannotEdit(f"{_place(text, node)}: the key {key!r} is there already")
    return _first_that_holds(text, yaml_spans.inserting(text.region, node, key, value), (*path, key), value)


def set_value(text: YamlText, path: NodePath, value: Plain) -> Edits:
    """Put `value`, which may be a list or mapping, in place of the value of the key at `path`.

    Comments inside of what is replaced go with it; where a smaller change does, make that one.
    """
    node = _at(text, path)
    if not isinstance(node.value, (dict, list)) and not isinstance(value, (dict, list)):
        return set_scalar(text, path, value)
    proposals = yaml_spans.replacing_value(text.region, node, _key_of(text, path), value)
    return _first_that_holds(text, proposals, path, value)


def remove_key(text: YamlText, path: NodePath) -> Edits:
    """Take away the entry at `path`, with the comment on its line."""
    node = _at(text, path)
    return _first_that_holds(text, yaml_spans.removing_key(text.region, _key_of(text, path), node), path, REMOVED)


def _key_of(text: YamlText, path: NodePath) -> tuple[int, int]:
    """Where the key at `path` stands."""
    holder = _at(text, path[:-1])
    if holder.keys is None or path[-1] not in holder.keys:
        raise CannotEdit(f"{_place(text, holder)}: here is no key {path[-1]!r}")
    return holder.keys[str(path[-1])]


def _at(text: YamlText, path: NodePath) -> Node:
    node = text.root.get(*path)
    if node is None or any(isinstance(step, int) and step < 0 for step in path):
        raise CannotEdit(f"{text.source.path}: nothing stands at {'/'.join(map(str, path))}")
    return node


def _first_that_holds(text: YamlText, proposals: list[Edits], path: NodePath, value: Change) -> Edits:
    for edits in proposals:
        try:
            after = text.edited(edits)
        except CannotEdit:
            continue
        if changed_only(text.root, after.root, path, value):
            return edits
    node = text.root.nearest(path)
    raise CannotEdit(f"{_place(text, node)}: this change cannot be made without touching more; make it by hand")


def _place(text: YamlText, node: Node) -> str:
    line, column = text.source.line_and_column(node.start)
    return f"{text.source.path}:{line}:{column}"
