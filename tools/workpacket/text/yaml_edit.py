"""Edit YAML written by people: one value, item or key changes, and every other byte is kept, including comments.

Each function proposes spans to replace, in the existing style, and tries them: the edited text is read again by the
strict loader, and the first proposal after which only the intended part has changed is the result. If there is none,
`CannotEdit` says so.

The check after an edit requires that the document has the intended value, and that nothing else has changed.

`reconciled` changes existing YAML to the wanted value with the smallest edits. Values that are already right are not
touched, however they are written. In a list, items are removed, and added at the end; the value is rewritten, with the
comments inside it, only if that is not sufficient.

Proposals are replacements of characters, best first. A proposal may break the document if its layout is unusual; then
the next one is tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from difflib import SequenceMatcher
from enum import Enum
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Edit
from workpacket.text.source import DATA, Limits, Node, Plain, Scalar, Source, apply_edits
from workpacket.text.yaml_strict import (
    NodePath,
    double_quoted,
    has_plain_shape,
    inline,
    literal,
    load_yaml,
    read_otherwise,
    single_quoted,
    spelled,
    write_yaml,
    written_as_text,
)
from workpacket.value import Value


class Removed(Enum):
    """Represents a removed value."""

    REMOVED = "removed"


REMOVED = Removed.REMOVED
Change: TypeAlias = "Plain | Removed"


def changed_only(before: Node, after: Node, path: NodePath, value: Change) -> bool:
    """Whether `after` is `before` with `value` at `path`, and otherwise equal: values, types and the order of keys.

    A path that ends with a list's length appends to that list; `REMOVED` deletes an item or a key. The empty path is
    the whole document.
    """
    if not path:
        return not isinstance(value, Removed) and _same_value(value, after.plain())
    expected = before.plain()
    inside = expected
    for step in path[:-1]:
        inside = _below(inside, step)
    return _make(inside, path[-1], value) and _same_value(expected, after.plain())


def _below(plain: Plain, step: str | int) -> Plain:
    if isinstance(plain, dict) and isinstance(step, str):
        return plain.get(step)
    if isinstance(plain, list) and isinstance(step, int) and 0 <= step < len(plain):
        return plain[step]
    return None


def _make(inside: Plain, step: str | int, value: Change) -> bool:
    """Make the change in place; return False if that position does not exist."""
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


def _same_value(one: Plain, other: Plain) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same_value(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same_value, one, other))
    return type(one) is type(other) and one == other


Edits: TypeAlias = "tuple[Edit, ...]"

_BLOCK_MARK = lazy_pattern(r"[|>][-+0-9]*")
_FIRST_INDENTATION = lazy_pattern(r"^( +)\S", re.MULTILINE)
_COLON = lazy_pattern(r"[ \t]*:")
_BETWEEN_ITEMS = lazy_pattern(r"[ \t]*,[ \t]*\Z")
_COMMA = lazy_pattern(r"\s*,[ \t]*")
_LAST_COMMA = lazy_pattern(r",\s*\Z")
_STEP = len("  ")
_REST_OF_LINE = lazy_pattern(r"[ \t]*,?[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_ONE_LINE_END = lazy_pattern(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n) *\Z")
_LINE_END = lazy_pattern(r"\r\n|\r|\n|\Z")


class Region(Value):
    """The text of a file, the end of the YAML in it, and the file's line ending."""

    text: str
    end: int
    eol: str

    def line_start(self, offset: int) -> int:
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def before_on_line(self, offset: int) -> str:
        return self.text[self.line_start(offset) : offset]

    def line_end(self, offset: int) -> tuple[int, int]:
        """Return where the line ending after `offset` begins and ends."""
        found = _LINE_END.search(self.text, offset, self.end)
        return found.span() if found else (self.end, self.end)

    def at_line_start(self, offset: int) -> bool:
        return self.text[offset - 1 : offset] in ("\n", "\r")

    def before_line_ends(self, offset: int) -> int:
        """Return `offset` without the line endings just before it."""
        return len(self.text[:offset].rstrip("\r\n"))


def replacing(region: Region, node: Node, value: Scalar) -> list[Edits]:
    """Replace the scalar `node` with `value`."""
    raw = region.text[node.start : node.end]
    spellings = _spellings(value, raw)
    if not raw:
        return [edits for spelling in spellings for edits in _into_nothing(region, node.start, spelling)]
    if raw.startswith(("|", ">")):
        return _replacing_block(region, node, value)
    return [(Edit(node.start, node.end, spelling),) for spelling in spellings]


def beginning_a_list(region: Region, node: Node, value: Plain) -> list[Edits]:
    """Begin a list of one item, replacing null or an omitted value."""
    if node.start == node.end:
        return _into_nothing(region, node.start, inline([value]))
    return [(Edit(node.start, node.end, inline([value])),)]


def appending(region: Region, holder: Node, value: Plain) -> list[Edits]:
    """Append an item to a list."""
    if region.text[holder.start] != "[":
        return [_lines_after(region, holder, write_yaml([value]))]
    if not holder.items:
        return [(Edit(holder.start + 1, holder.start + 1, inline(value)),)]
    last = holder.items[-1]
    proposals: list[Edits] = [(Edit(last.end, last.end, f", {inline(value)}"),)]
    margin = region.before_on_line(last.start)
    if not margin.strip():
        at = region.line_end(last.end)[0]
        added = f"{region.eol}{margin}{inline(value)}"
        if _COMMA.match(region.text, last.end):
            proposals.insert(0, (Edit(at, at, added + ","),))
        else:
            proposals.insert(0, (Edit(last.end, last.end, ","), Edit(at, at, added)))
    return proposals


def inserting(region: Region, holder: Node, key: str, value: Plain) -> list[Edits]:
    """Append an entry to a mapping."""
    if region.text[holder.start] != "{":
        return [_lines_after(region, holder, write_yaml({key: value}))]
    entry = inline({key: value})[1:-1]
    if not holder.mapping:
        return [(Edit(holder.start + 1, holder.start + 1, entry),)]
    last = list(holder.mapping.values())[-1]
    return [(Edit(at, at, f", {entry}"),) for at in (last.end, holder.end - 1)]


def removing(region: Region, holder: Node, index: int, key: tuple[int, int] | None) -> list[Edits]:
    """Remove an item from the list that is the value of `key`, if there is one."""
    if region.text[holder.start] == "[":
        return _out_of_brackets(region, holder, index)
    item = holder.items[index]
    dash = _dash(region, holder, index)
    if len(holder.items) == 1:
        emptied: Edits = (Edit(holder.start, region.before_line_ends(item.end), "[]"),)
        colon = _COLON.match(region.text, key[1]) if key else None
        if colon is None:
            return [emptied]
        return [(Edit(colon.end(), colon.end(), " []"), _whole_lines(region, dash, item.end)), emptied]
    if not region.before_on_line(dash).strip():
        return [(_whole_lines(region, dash, item.end),)]
    # The first item of a list inside a list: the next item moves up, unless a comment is in the way.
    following = _dash(region, holder, index + 1)
    clear = _ONE_LINE_END.match(region.text[item.end : following])
    return [(Edit(dash, following, ""),)] if clear else []


def replacing_value(region: Region, node: Node, key: tuple[int, int], value: Plain) -> list[Edits]:
    """Replace the value of `key` with `value`: on the key's line if it fits there, otherwise as a block below it."""
    colon = _COLON.match(region.text, key[1])
    after = colon.end() if colon else node.start
    end = max(after, region.before_line_ends(node.end))
    one_line: Edits = (Edit(after, end, f" {inline(value)}"),)
    if region.text[node.start : node.start + 1] in ("[", "{"):
        return [(Edit(node.start, node.end, inline(value)),), one_line]
    if not isinstance(value, (dict, list)) or not value:
        return [one_line]
    margin = " " * (len(region.before_on_line(key[0])) + _STEP)
    lines = "".join(region.eol + margin + line if line else region.eol for line in write_yaml(value).split("\n")[:-1])
    return [(Edit(after, end, lines),), one_line]


def removing_key(region: Region, key: tuple[int, int], node: Node) -> list[Edits]:
    """Remove an entry from a mapping."""
    if not region.before_on_line(key[0]).strip():
        return [(_whole_lines(region, key[0], max(key[1], node.end)),)]
    comma = _COMMA.match(region.text, node.end)
    before = _LAST_COMMA.search(region.text[: key[0]])
    proposals: list[Edits] = [(Edit(key[0], comma.end(), ""),)] if comma else []
    return [*proposals, (Edit(before.start() if before else key[0], node.end, ""),)]


def _out_of_brackets(region: Region, holder: Node, index: int) -> list[Edits]:
    items = holder.items
    item = items[index]
    proposals: list[Edits] = []
    rest = _REST_OF_LINE.match(region.text, item.end)
    if rest and not region.before_on_line(item.start).strip():
        proposals.append((Edit(region.line_start(item.start), rest.end(), ""),))
    if index and _BETWEEN_ITEMS.match(region.text[items[index - 1].end : item.start]):
        proposals.append((Edit(items[index - 1].end, item.end, ""),))
    comma = _COMMA.match(region.text, item.end)
    proposals.append((Edit(item.start, comma.end() if comma else item.end, ""),))
    return proposals


def _dash(region: Region, holder: Node, index: int) -> int:
    """Return the '-' of an item. It is aligned with the '-' of the first item, where the list begins."""
    if index == 0:
        return holder.start
    column = len(region.before_on_line(holder.start))
    dashes = re.finditer("-", region.text[holder.items[index - 1].end : holder.items[index].start])
    offsets = [holder.items[index - 1].end + dash.start() for dash in dashes]
    return next(offset for offset in reversed(offsets) if len(region.before_on_line(offset)) == column)


def _whole_lines(region: Region, start: int, end: int) -> Edit:
    """Delete all lines from the one with `start` to the one with `end`."""
    first = region.line_start(start)
    last = end if region.at_line_start(end) else region.line_end(end)[1]
    if last == region.end and not region.at_line_start(last):
        first = region.before_line_ends(first)
    return Edit(first, last, "")


def _lines_after(region: Region, holder: Node, lines: str) -> Edits:
    """Add lines below a block list or mapping, with its indentation."""
    margin = " " * len(region.before_on_line(holder.start))
    added = [margin + line if line else line for line in lines.split("\n")[:-1]]
    if region.at_line_start(holder.end):
        return (Edit(holder.end, holder.end, "".join(line + region.eol for line in added)),)
    at = region.line_end(holder.end)[0]
    return (Edit(at, at, "".join(region.eol + line for line in added)),)


def _into_nothing(region: Region, at: int, spelling: str) -> list[Edits]:
    """Fill in an omitted value: after the ':' or '-', or after a key in braces that has no ':'."""
    blanks = len(region.text[at:]) - len(region.text[at:].lstrip(" "))
    line_end = region.line_end(at)[0]
    rest = line_end if at + blanks == line_end else at
    return [(Edit(at, rest, f" {spelling}"),), (Edit(at, at, f": {spelling}"),)]


def _replacing_block(region: Region, node: Node, value: Scalar) -> list[Edits]:
    """Replace a block of text with another block or with one line; the comment after its indicator is kept."""
    raw = region.text[node.start : node.end]
    mark = _BLOCK_MARK.match(raw)
    mark_end = node.start + (mark.end() if mark else 1)
    body = min(region.line_end(mark_end)[1], node.end)
    proposals: list[Edits] = [
        (Edit(node.start, mark_end, spelling), Edit(body, node.end, "")) for spelling in _spellings(value, "")
    ]
    block = literal(value) if isinstance(value, str) else None
    margin = _FIRST_INDENTATION.search(raw)
    if block and margin:
        lines = "".join((margin[1] + line if line else line) + region.eol for line in block[1:])
        proposals.insert(0, (Edit(node.start, mark_end, block[0]), Edit(body, node.end, lines)))
    return proposals


def _spellings(value: Scalar, raw: str) -> list[str]:
    """Return the ways to write `value` on one line in place of `raw`, best first. The quotes of `raw` are kept if
    possible."""
    if not isinstance(value, str):
        return [spelled(value)]
    spellings = [double_quoted(value)]
    single = single_quoted(value)
    needs_escapes = "\\" in value or '"' in value
    if single and (raw.startswith("'") or (needs_escapes and not raw.startswith('"'))):
        spellings.insert(0, single)
    # An unquoted date may follow another; no new ambiguity for other parsers may be introduced.
    no_new_guess = read_otherwise(value) in (None, read_otherwise(raw))
    if not raw.startswith(("'", '"')) and has_plain_shape(value) and no_new_guess:
        spellings.insert(0, value)
    return spellings


class CannotEdit(ValueError):
    """Raised if no edit makes this change and no other."""


class YamlText(Value):
    """The YAML in [start, end) of `source`, loaded: a whole file, or its front matter."""

    source: Source
    root: Node
    start: int
    end: int
    limits: Limits

    def edited(self, edits: Edits) -> YamlText:
        """Return the text after `edits`, which must lie inside the YAML; raise `CannotEdit` if it is no longer YAML."""
        source = apply_edits(self.source, edits)
        end = self.end + len(source.text) - len(self.source.text)
        return yaml_text(source, start=self.start, end=end, limits=self.limits)

    @property
    def region(self) -> Region:
        return Region(self.source.text, self.end, self.source.eol)


def yaml_text(source: Source, *, start: int = 0, end: int | None = None, limits: Limits = DATA) -> YamlText:
    """Return the YAML in [start, end) of `source`; raise `CannotEdit` if the strict loader refuses it."""
    end = len(source.text) if end is None else end
    loaded = load_yaml(source, start=start, end=end, limits=limits)
    if loaded.root is None:
        fault = loaded.faults[0]
        line, column = source.line_and_column(fault.start)
        raise CannotEdit(f"{source.path}:{line}:{column}: {fault.message}")
    return YamlText(source, loaded.root, start, end, limits)


def set_scalar(text: YamlText, path: NodePath, value: Scalar) -> Edits:
    """Replace the scalar at `path` with `value`, keeping its quotes if they can contain the value."""
    node = _at(text, path)
    if isinstance(node.value, (dict, list)):
        raise CannotEdit(f"{_place(text, node)}: this is a list or mapping, not a single value")
    if type(node.value) is type(value) and node.value == value:
        return ()
    return _first_that_holds(text, replacing(text.region, node, value), path, value)


def append_item(text: YamlText, path: NodePath, value: Plain) -> Edits:
    """Append `value` to the list at `path`; an omitted value becomes a list."""
    node = _at(text, path)
    if node.value is None:
        return _first_that_holds(text, beginning_a_list(text.region, node, value), path, [value])
    if not isinstance(node.value, list):
        raise CannotEdit(f"{_place(text, node)}: this is not a list")
    return _first_that_holds(text, appending(text.region, node, value), (*path, len(node.value)), value)


def remove_item(text: YamlText, path: NodePath) -> Edits:
    """Remove the item at `path`, with the comment on its line; a list that becomes empty is written as `[]`."""
    node = _at(text, path)
    holder = _at(text, path[:-1])
    if not isinstance(holder.value, list) or not isinstance(path[-1], int):
        raise CannotEdit(f"{_place(text, node)}: this is not a list item")
    above = _at(text, path[:-2]) if len(path) > 1 else None
    key = above.keys.get(str(path[-2])) if above is not None and above.keys is not None else None
    return _first_that_holds(text, removing(text.region, holder, path[-1], key), path, REMOVED)


def insert_key(text: YamlText, path: NodePath, key: str, value: Plain) -> Edits:
    """Append `key: value` to the mapping at `path`, which has no such key yet."""
    node = _at(text, path)
    if not isinstance(node.value, dict):
        raise CannotEdit(f"{_place(text, node)}: this is not a mapping")
    if key in node.value:
        raise CannotEdit(f"{_place(text, node)}: the key {key!r} already exists")
    return _first_that_holds(text, inserting(text.region, node, key, value), (*path, key), value)


def set_value(text: YamlText, path: NodePath, value: Plain) -> Edits:
    """Replace the value of the key at `path` with `value`, which may be a list or mapping.

    Comments inside the replaced part are lost; prefer a smaller change if one is sufficient.
    """
    node = _at(text, path)
    if not isinstance(node.value, (dict, list)) and not isinstance(value, (dict, list)):
        return set_scalar(text, path, value)
    proposals = replacing_value(text.region, node, _key_of(text, path), value)
    return _first_that_holds(text, proposals, path, value)


def remove_key(text: YamlText, path: NodePath) -> Edits:
    """Remove the entry at `path`, with the comment on its line."""
    node = _at(text, path)
    return _first_that_holds(text, removing_key(text.region, _key_of(text, path), node), path, REMOVED)


def _key_of(text: YamlText, path: NodePath) -> tuple[int, int]:
    """Return the position of the key at `path`."""
    holder = _at(text, path[:-1])
    if holder.keys is None or path[-1] not in holder.keys:
        raise CannotEdit(f"{_place(text, holder)}: there is no key {path[-1]!r} here")
    return holder.keys[str(path[-1])]


def _at(text: YamlText, path: NodePath) -> Node:
    node = text.root.get(*path)
    if node is None or any(isinstance(step, int) and step < 0 for step in path):
        raise CannotEdit(f"{text.source.path}: there is nothing at {'/'.join(map(str, path))}")
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
    raise CannotEdit(f"{_place(text, node)}: this change cannot be made without changing other text; make it by hand")


def _place(text: YamlText, node: Node) -> str:
    line, column = text.source.line_and_column(node.start)
    return f"{text.source.path}:{line}:{column}"


IsText = Callable[[NodePath], bool]


def reconciled(text: YamlText, path: NodePath, wanted: Plain, is_text: IsText) -> YamlText:
    """Return `text` with `wanted` at `path`. At a path that `is_text` accepts, `2` and `"2"` are the same. May raise
    `CannotEdit`.
    """
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
    """Remove items, last one first, and append items; raise `CannotEdit` if an item would have to be inserted in
    between.
    """
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
        raise CannotEdit("an item would have to be inserted between other items")
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
    """Whether the two are equal in value and type, regardless of key order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
