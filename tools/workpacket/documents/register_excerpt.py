"""A register without most of its lines, for a command that moves one packet out of ten thousand.

Reading a board or a registry is one pass over its lines, and nine tenths of a move were spent on lines about other
packets. So lines that can have no part in it are left out before the register is read: of a long run of entries or rows
in the form that is written here, all but the first, the last, and those that hold one of the names in question. Such a
line neither begins nor ends a section or a table, and the register that is left has the same sections, tables and
places to add a line, the very same entries of the packets in question, and the owner's words. The edits are then moved
to where the lines stand in the whole text.

Wherever that is not obvious, the excerpt is the whole register: with a fence or a comment, which may hide lines; with
a carriage return; with entries in another form, or a table under another header. That both ways make the same edits is
proved by the tests.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from workpacket.model.findings import Edit
from workpacket.text.source import Source

# Below this size, reading all of a register takes no longer than looking for what to leave out.
_MUCH = 16 * 1024
_HIDING = ("```", "~~~", "<!--", "\r")


class Excerpt:
    """`source` is what is to be read. `whole_edits` moves edits of it to where they belong in the whole text."""

    def __init__(self, whole: Source, spans: Sequence[tuple[int, int]]) -> None:
        self.source = whole
        # Where each piece begins in the excerpt, and how far from there it lies in the whole.
        self._starts = [0]
        self._shifts = [0]
        if len(spans) > 1:
            text = whole.text
            self.source = Source(whole.path, "".join([text[start:end] for start, end in spans]), bom=whole.bom)
            for (_, end), (start, _) in pairwise(spans):
                self._shifts.append(self._shifts[-1] + start - end)
                self._starts.append(start - self._shifts[-1])

    def whole_edits(self, edits: Iterable[Edit]) -> list[Edit]:
        """Each lies in one piece: whole lines were left out, and none of them next to a line that is edited away."""
        moved = []
        for edit in edits:
            shift = self._shifts[bisect_right(self._starts, edit.start) - 1]
            moved.append(Edit(edit.start + shift, edit.end + shift, edit.text))
        return moved


def board_excerpt(board: Source, names: Iterable[str]) -> Excerpt:
    """What of the board has to do with the packets of these ids."""
    # An entry is an entry in whatever section it stands. Quantifiers are possessive, so a line is looked at once.
    form = r"- \*\*\[WP-[A-Za-z0-9.-]*+(?<=[A-Za-z0-9])\]\*\* - \[[A-Z_]++\](?![(\[])[^\n]*+\n"
    return _excerpt(board, rf"^(?P<run>(?:{form}){{4,}}+)", names)


def registry_excerpt(registry: Source, bases: Iterable[str]) -> Excerpt:
    """What of the registry has to do with these bases."""
    # Below this header, whatever follows directly and begins with a pipe is a row of the registry.
    header = r"\| *+Base WP ID *+\| *+Active Packet *+\| *+Task Board *+\| *+Notes *+\|\n\|[-:]{3,}+\|[-:|]++\n"
    return _excerpt(registry, rf"^{header}(?P<run>(?:\|[^\n]*+\n){{4,}}+)", bases)


def _excerpt(source: Source, runs: str, names: Iterable[str]) -> Excerpt:
    """`runs` matches, as its group `run`, whole lines of which those between the first and the last may be left out."""
    text = source.text
    if len(text) < _MUCH or any(mark in text for mark in _HIDING):
        return Excerpt(source, [(0, len(text))])
    wanted = tuple(names)
    spans: list[tuple[int, int]] = []
    begin = 0
    for start, end in (match.span("run") for match in re.finditer(runs, text, re.MULTILINE)):
        position, last = text.index("\n", start) + 1, text.rindex("\n", start, end - 1) + 1
        named = {line for name in wanted for line in _lines_with(text, name, position, last)}
        for first, behind in (*sorted(named), (last, end)):
            if first > position:
                spans.append((begin, position))
                begin = first
            position = behind
    return Excerpt(source, [*spans, (begin, len(text))])


def _lines_with(text: str, name: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The lines between two places that hold the name, whatever it is a part of."""
    at = text.find(name, start, end)
    while at >= 0:
        line_end = text.index("\n", at) + 1
        yield text.rindex("\n", 0, at) + 1, line_end
        at = text.find(name, line_end, end)
