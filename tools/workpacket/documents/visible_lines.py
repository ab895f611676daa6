"""The lines of a register that a reader of the rendered page sees: not those in fences and comments.

Board, registry and audit are read line by line, as every tool that edits them does: an entry is one line, a row is one
line, and ten thousand of them are read in no time. What stands in a fence or in an HTML comment is an example or a note
and no entry. A fence or a comment that is never closed hides nothing, since one forgotten mark must not empty a board.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.source import Source

_FENCE = lazy_pattern(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^\r\n]*)")
_COMMENT_START = "<!--"
_COMMENT_END = "-->"


class Line(NamedTuple):
    """One line without its end. `number` counts from 1, `start` is its offset."""

    number: int
    start: int
    text: str


def visible_lines(source: Source) -> Iterator[Line]:
    """The visible lines in order, blank ones included."""
    hidden = _hidden_lines(source) if _may_hide(source.text) else frozenset()
    text = source.text
    starts = source.line_starts
    ends = [*starts[1:], len(text)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if number not in hidden:
            yield Line(number, start, text[start:end].rstrip("\r\n"))


def _may_hide(text: str) -> bool:
    return "```" in text or "~~~" in text or _COMMENT_START in text


def _hidden_lines(source: Source) -> frozenset[int]:
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    hidden: set[int] = set()
    fence_ends = _fence_ends(lines)
    # From here on no comment is closed any more, so none needs to be looked for.
    last_comment_end = max((index for index, line in enumerate(lines) if _COMMENT_END in line), default=-1)
    index = 0
    while index < len(lines):
        end = fence_ends.get(index)
        if end is None and index <= last_comment_end:
            end = _comment_end(lines, index)
        if end is None:
            index += 1
            continue
        first = index if lines[index].lstrip(" ").startswith((_COMMENT_START, "`", "~")) else index + 1
        hidden.update(range(first + 1, end + 2))
        index = end + 1
    return frozenset(hidden)


def _fence_ends(lines: list[str]) -> dict[int, int]:
    """For each line that may open a fence, the line that would close it; both as indexes.

    Backwards, so that a file full of fences that are never closed is read in one pass: `closing` holds the lines that
    may close a fence, nearest last, and of these only ones longer than all nearer ones.
    """
    marks = [(index, match) for index, line in enumerate(lines) if (match := _FENCE.match(line))]
    ends: dict[int, int] = {}
    closing: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}
    for index, match in reversed(marks):
        character, length, info = match["marks"][0], len(match["marks"]), match["info"]
        if character != "`" or "`" not in info:
            nearest = next((at for at, size in reversed(closing[character]) if size >= length), None)
            if nearest is not None:
                ends[index] = nearest
        if not info.strip():
            while closing[character] and closing[character][-1][1] <= length:
                closing[character].pop()
            closing[character].append((index, length))
    return ends


def _comment_end(lines: list[str], index: int) -> int | None:
    """The index of the line on which a comment ends that begins on line `index` and is not closed there."""
    line = lines[index]
    start = line.rfind(_COMMENT_START)
    if start < 0:
        return None
    if _COMMENT_END in line[start:]:
        return index if line.strip().startswith(_COMMENT_START) and line.rstrip().endswith(_COMMENT_END) else None
    return next((later for later in range(index + 1, len(lines)) if _COMMENT_END in lines[later]), None)
