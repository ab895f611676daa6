"""Span edits: change what is meant and leave every other byte alone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from workpacket.model.findings import Edit
from workpacket.text.source import Source

# A byte order mark stands before offset 0; this edit takes it away.
DROP_BOM = Edit(-1, 0, "")


class OverlappingEdits(ValueError):
    """Two edits want the same characters; applying both would lose one."""


def apply_edits(source: Source, edits: Iterable[Edit]) -> Source:
    """A new source with all edits made. Identical edits count once; insertions at one place keep their order."""
    ordered = sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end))
    bom = source.bom and DROP_BOM not in ordered
    ordered = [edit for edit in ordered if edit != DROP_BOM]
    text = source.text
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise OverlappingEdits(f"the span {edit.start}..{edit.end} lies outside {source.path}")
        if edit.start < position:
            raise OverlappingEdits(f"two edits of {source.path} meet at offset {edit.start}")
        pieces += (text[position : edit.start], edit.text)
        position = edit.end
    pieces.append(text[position:])
    return Source(source.path, "".join(pieces), bom=bom)


def compatible(edits: Iterable[Iterable[Edit]]) -> list[tuple[Edit, ...]]:
    """Of several groups of edits, those that can be made together: earlier groups first, each whole or not at all."""
    taken: list[tuple[Edit, ...]] = []
    spans: list[tuple[int, int]] = []
    seen: set[Edit] = set()
    for group in edits:
        fresh = tuple(edit for edit in dict.fromkeys(group) if edit not in seen)
        if _is_consistent(fresh) and all(not _overlaps(edit, spans) for edit in fresh):
            taken.append(fresh)
            seen.update(fresh)
            spans.extend((edit.start, edit.end) for edit in fresh)
    return taken


def _is_consistent(group: tuple[Edit, ...]) -> bool:
    ordered = sorted(group, key=lambda edit: (edit.start, edit.end))
    return all(later.start >= earlier.end for earlier, later in pairwise(ordered))


def _overlaps(edit: Edit, spans: list[tuple[int, int]]) -> bool:
    return any((edit.start < end and start < edit.end) or edit.start == start for start, end in spans)
