"""Proposals for `yaml_edit`: which characters to replace by what, best first.

Nothing here proves anything. A proposal may even break the document in some odd layout; it is tried, and then the next.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.findings import Edit
from workpacket.text.node import Node, Plain, Scalar
from workpacket.text.plain_scalars import read_otherwise
from workpacket.text.yaml_write import (
    double_quoted,
    has_plain_shape,
    inline,
    literal,
    single_quoted,
    spelled,
    write_yaml,
)
from workpacket.value import Value

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
    """The text of a file, in which YAML ends at `end`, and the line end that the file uses."""

    text: str
    end: int
    eol: str

    def line_start(self, offset: int) -> int:
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def before_on_line(self, offset: int) -> str:
        return self.text[self.line_start(offset) : offset]

    def line_end(self, offset: int) -> tuple[int, int]:
        """Where the line end after `offset` begins and ends."""
        found = _LINE_END.search(self.text, offset, self.end)
        return found.span() if found else (self.end, self.end)

    def at_line_start(self, offset: int) -> bool:
        return self.text[offset - 1 : offset] in ("\n", "\r")

    def before_line_ends(self, offset: int) -> int:
        """`offset`, or what it is without the line ends just before it."""
        return len(self.text[:offset].rstrip("\r\n"))


def replacing(region: Region, node: Node, value: Scalar) -> list[Edits]:
    """Put `value` where the scalar `node` stands."""
    raw = region.text[node.start : node.end]
    spellings = _spellings(value, raw)
    if not raw:
        return [edits for spelling in spellings for edits in _into_nothing(region, node.start, spelling)]
    if raw.startswith(("|", ">")):
        return _replacing_block(region, node, value)
    return [(Edit(node.start, node.end, spelling),) for spelling in spellings]


def beginning_a_list(region: Region, node: Node, value: Plain) -> list[Edits]:
    """Put a list of one item where null stands, or nothing."""
    if node.start == node.end:
        return _into_nothing(region, node.start, inline([value]))
    return [(Edit(node.start, node.end, inline([value])),)]


def appending(region: Region, holder: Node, value: Plain) -> list[Edits]:
    """Add an item to the end of a list."""
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
    """Add an entry to the end of a mapping."""
    if region.text[holder.start] != "{":
        return [_lines_after(region, holder, write_yaml({key: value}))]
    entry = inline({key: value})[1:-1]
    if not holder.mapping:
        return [(Edit(holder.start + 1, holder.start + 1, entry),)]
    last = list(holder.mapping.values())[-1]
    return [(Edit(at, at, f", {entry}"),) for at in (last.end, holder.end - 1)]


def removing(region: Region, holder: Node, index: int, key: tuple[int, int] | None) -> list[Edits]:
    """Take an item out of the list that is the value of `key`, if it is the value of one."""
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
    # The first item of a list inside a list: the next one moves up, if no comment stands in its way.
    following = _dash(region, holder, index + 1)
    clear = _ONE_LINE_END.match(region.text[item.end : following])
    return [(Edit(dash, following, ""),)] if clear else []


def replacing_value(region: Region, node: Node, key: tuple[int, int], value: Plain) -> list[Edits]:
    """Put `value` where the value of `key` stands: on its line if it fits there, else as a block below it."""
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
    """Take an entry out of a mapping."""
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
    """The '-' of an item: it stands under the first one, where the list begins."""
    if index == 0:
        return holder.start
    column = len(region.before_on_line(holder.start))
    dashes = re.finditer("-", region.text[holder.items[index - 1].end : holder.items[index].start])
    offsets = [holder.items[index - 1].end + dash.start() for dash in dashes]
    return next(offset for offset in reversed(offsets) if len(region.before_on_line(offset)) == column)


def _whole_lines(region: Region, start: int, end: int) -> Edit:
    """Delete all lines from the one of `start` to the one of `end`."""
    first = region.line_start(start)
    last = end if region.at_line_start(end) else region.line_end(end)[1]
    if last == region.end and not region.at_line_start(last):
        first = region.before_line_ends(first)
    return Edit(first, last, "")


def _lines_after(region: Region, holder: Node, lines: str) -> Edits:
    """Add lines below a block list or mapping, as far to the right as it begins."""
    margin = " " * len(region.before_on_line(holder.start))
    added = [margin + line if line else line for line in lines.split("\n")[:-1]]
    if region.at_line_start(holder.end):
        return (Edit(holder.end, holder.end, "".join(line + region.eol for line in added)),)
    at = region.line_end(holder.end)[0]
    return (Edit(at, at, "".join(region.eol + line for line in added)),)


def _into_nothing(region: Region, at: int, spelling: str) -> list[Edits]:
    """Where a value is left out: after the ':' or '-', or after a key in braces that has not even a ':'."""
    blanks = len(region.text[at:]) - len(region.text[at:].lstrip(" "))
    line_end = region.line_end(at)[0]
    rest = line_end if at + blanks == line_end else at
    return [(Edit(at, rest, f" {spelling}"),), (Edit(at, at, f": {spelling}"),)]


def _replacing_block(region: Region, node: Node, value: Scalar) -> list[Edits]:
    """In place of a block of text: another block, or one line; the comment after its mark stays."""
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
    """The ways to write `value` on one line, best first, where `raw` stood: its quotes stay if they can hold it."""
    if not isinstance(value, str):
        return [spelled(value)]
    spellings = [double_quoted(value)]
    single = single_quoted(value)
    needs_escapes = "\\" in value or '"' in value
    if single and (raw.startswith("'") or (needs_escapes and not raw.startswith('"'))):
        spellings.insert(0, single)
    # A date may follow a date without quotes; new guesswork for other readers may not begin.
    no_new_guess = read_otherwise(value) in (None, read_otherwise(raw))
    if not raw.startswith(("'", '"')) and has_plain_shape(value) and no_new_guess:
        spellings.insert(0, value)
    return spellings
