"""Span edits: change only what is intended and leave every other byte alone.

A command's plan makes its own edits and is judged as a whole. A repair relies on a finding, so its edits can only be
made from a `TextRun`: characters that are adjacent in the source.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from workpacket.problem import Edit, Fix
from workpacket.text.source import Source

# A byte order mark precedes offset 0; this edit removes it.
DROP_BOM = Edit(-1, 0, "")
BLANK = " \t\r\n"
_LINE_ENDS = ("\r", "\n")


class OverlappingEdits(ValueError):
    """Raised if two edits change the same characters, because applying both would lose one."""


class NotTogether(ValueError):
    """Raised if the characters are not one run, or if their replacement would join two lines or split one."""


class Replacement:
    """A run and the text to write in its place. Only `TextRun` creates one."""

    __slots__ = ("run", "text")

    def __init__(self, run: TextRun, text: str) -> None:
        self.run = run
        self.text = text

    @property
    def edit(self) -> Edit:
        return Edit(self.run.start + self.run.offset, self.run.end + self.run.offset, self.text)


class TextRun:
    """Characters [start, end) of a text, all on one line or all blank. `offset` is where the text begins in its source.

    A value that a reader assembled from several lines is not a run of any text: `quoting` returns None for it.
    """

    __slots__ = ("end", "offset", "start", "text")

    def __init__(self, text: str, start: int, end: int, offset: int = 0) -> None:
        if not 0 <= start <= end <= len(text):
            raise NotTogether(f"{start}..{end} is outside the text, which has {len(text)} characters")
        body = text[start:end]
        if _has_line_end(body) and body.strip(BLANK):
            raise NotTogether(f"{start}..{end} is not on one line")
        self.text = text
        self.start = start
        self.end = end
        self.offset = offset

    @classmethod
    def quoting(cls, text: str, start: int, quoted: str) -> TextRun | None:
        """Return the run that begins at `start` and reads as `quoted`; None if the text there differs."""
        if start < 0 or not quoted or _has_line_end(quoted) or not text.startswith(quoted, start):
            return None
        return cls(text, start, start + len(quoted))

    @classmethod
    def on_line(cls, text: str, start: int, end: int) -> TextRun | None:
        """Return the run [start, end); None if it is not on one line."""
        try:
            run = cls(text, start, end)
        except NotTogether:
            return None
        return None if _has_line_end(run.words) else run

    @property
    def words(self) -> str:
        return self.text[self.start : self.end]

    @property
    def is_blank(self) -> bool:
        return not self.words.strip(BLANK)

    def part(self, start: int, end: int | None = None) -> TextRun:
        """Return part of the run, counted from its first character."""
        length = self.end - self.start
        last = length if end is None else end
        if not 0 <= start <= last <= length:
            raise NotTogether(f"{start}..{last} is outside the text, which has {length} characters")
        return TextRun(self.text, self.start + start, self.start + last, self.offset)

    def replaced_by(self, text: str) -> Replacement:
        if self.is_blank:
            # If nothing is left between two lines, they become one.
            alone = self.start == 0 or self.text[self.start - 1] in _LINE_ENDS or self.end == len(self.text)
            if _has_line_end(self.words) and not _has_line_end(text) and not alone:
                raise NotTogether(f"removing {self.start}..{self.end} would join two lines")
        elif _has_line_end(text):
            raise NotTogether(f"the edit at {self.start}..{self.end} would split a line")
        return Replacement(self, text)

    def deleted(self) -> Replacement:
        return self.replaced_by("")

    def followed_by(self, text: str) -> Replacement:
        return TextRun(self.text, self.end, self.end, self.offset).replaced_by(text)


def fix_of(
    span: tuple[int, int], replacements: Iterable[Replacement], *, safe: bool, title: str = "", bom: bool = False
) -> Fix | None:
    """Return the fix of a finding about `span`; None if there is nothing to replace, or if it exceeds the finding's
    lines.
    """
    made = tuple(replacements)
    edits = tuple(replacement.edit for replacement in made)
    if bom:
        return Fix((DROP_BOM, *edits), safe=safe, title=title)
    if not made or not _is_consistent(edits) or not all(_is_own(span, replacement) for replacement in made):
        return None
    return Fix(edits, safe=safe, title=title)


def _is_own(span: tuple[int, int], replacement: Replacement) -> bool:
    """Whether the replacement stays on the lines of `span`; white space may also change on adjacent blank lines."""
    run = replacement.run
    text = run.text
    start, end = span[0] - run.offset, max(span) - run.offset
    while start > 0 and text[start - 1] not in _LINE_ENDS:
        start -= 1
    while end < len(text) and text[end] not in _LINE_ENDS:
        end += 1
    if run.is_blank and not replacement.text.strip(BLANK):
        while start > 0 and text[start - 1] in BLANK:
            start -= 1
        while end < len(text) and text[end] in BLANK:
            end += 1
    return start <= run.start and run.end <= end


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """Return a new source with all edits applied. Identical edits count once; insertions at one place keep their
    order.
    """
    ordered = sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))
    bom = source.bom and DROP_BOM not in ordered
    ordered = [edit for edit in ordered if edit != DROP_BOM]
    text = source.text
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise OverlappingEdits(f"the span {edit.start}..{edit.end} is outside {source.path}")
        if edit.start < position:
            raise OverlappingEdits(f"two edits of {source.path} overlap at offset {edit.start}")
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    pieces.append(text[position:])
    return Source(source.path, "".join(pieces), bom=bom)


def compatible(edits: Iterable[Iterable[Edit]]) -> list[tuple[Edit, ...] | None]:
    """Return what each group of edits adds to the earlier ones; None for a group that conflicts with them."""
    taken: list[tuple[Edit, ...] | None] = []
    spans: list[tuple[int, int]] = []
    seen: set[Edit] = set()
    for group in edits:
        fresh = tuple(edit for edit in dict.fromkeys(group) if edit not in seen)
        if not _is_consistent(fresh) or any(_overlaps(edit, spans) for edit in fresh):
            taken.append(None)
        else:
            taken.append(fresh)
            seen.update(fresh)
            spans.extend((edit.start, edit.end) for edit in fresh)
    return taken


def _is_consistent(group: tuple[Edit, ...]) -> bool:
    ordered = sorted(group, key=lambda edit: (edit.start, edit.end))
    return all(later.start >= earlier.end for earlier, later in pairwise(ordered))


def _overlaps(edit: Edit, spans: list[tuple[int, int]]) -> bool:
    return any((edit.start < end and start < edit.end) or edit.start == start for start, end in spans)
