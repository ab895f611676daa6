"""Apply fixes, and prove that nothing else changed.

Edits are chosen so that none overlap, applied from the end, and the text is read again. The new tree of values may
differ from the old one only where an edit touched it; a fix for which this cannot be proved is not applied. The result
is then compared by independent readers (`text.second_reading`), which know nothing of the rule behind the fix: if they
see any other change, the whole file is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple, TypeAlias

from workpacket.documents.reading import read_document
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.problem import Edit, Fix, Problem
from workpacket.text.edits import DROP_BOM, apply_edits, compatible
from workpacket.text.node import Node
from workpacket.text.source import Source

EditGroup: TypeAlias = tuple[Edit, ...]
Path: TypeAlias = tuple[str | int, ...]


class RepairRefused(Exception):
    """Raised if a repair would change more than its findings name; the message gives the details."""


class Repair(NamedTuple):
    """A source after a repair, and the repaired findings."""

    source: Source
    made: tuple[Problem, ...] = ()


def repair(
    source: Source, kind: str, findings: Sequence[Problem], *, unsafe: bool, lanes: LaneTable = BUILT_IN
) -> Repair:
    """Return the source with the fixes of `findings` applied: the safe ones, or all. Fixes that could not be proved are
    left out.

    Raises RepairRefused if a fix does not fit the file, or if other readers see a change that no finding names.
    """
    wanted = [(finding, finding.fix) for finding in findings if finding.fix and (finding.fix.safe or unsafe)]
    for finding, fix in wanted:
        _refuse_misfit(source, finding, fix)
    groups = compatible(fix.edits for _, fix in wanted)
    kept = _proved(source, kind, [group for group in groups if group is not None], lanes)
    edits = [edit for group in kept for edit in group]
    if not edits:
        return Repair(source)
    after = apply_edits(source, edits)
    if after.encode() == source.encode():
        return Repair(source)
    # Both libraries are imported only if something is repaired.
    from workpacket.text.second_reading import unexpected_change

    said = unexpected_change(source, after, edits)
    if said:
        raise RepairRefused(said)
    made = frozenset(kept)
    # Read from the bytes, like the findings of the next round: one byte order mark may follow another.
    after = Source.from_bytes(source.path, after.encode())
    return Repair(after, tuple(finding for (finding, _), group in zip(wanted, groups, strict=True) if group in made))


def _refuse_misfit(source: Source, finding: Problem, fix: Fix) -> None:
    """Require that edits are inside the file, and on the lines of their finding; white space may extend to adjacent
    blank lines.
    """
    ordered = sorted((edit.start, edit.end) for edit in fix.edits)
    fits = all(first[1] <= second[0] for first, second in pairwise(ordered))
    for edit in fix.edits if fits else ():
        if edit == DROP_BOM:
            continue
        fits = 0 <= edit.start <= edit.end <= len(source.text)
        if fits and (edit.text.strip() or source.text[edit.start : edit.end].strip()):
            lines = source.line_and_column(edit.start)[0], source.line_and_column(edit.end)[0]
            fits = finding.line <= lines[0] and lines[1] <= max(finding.location.end_line, finding.line)
        if not fits:
            break
    if not fits:
        raise RepairRefused(f"the fix of {finding.code} on line {finding.line} extends beyond its lines")


def _proved(source: Source, kind: str, groups: Sequence[EditGroup], lanes: LaneTable) -> list[EditGroup]:
    """Return the groups of edits that change only what they touch: usually all, otherwise those found by bisection."""
    edits = [edit for group in groups for edit in group]
    if not edits or only_touched_changed(source, apply_edits(source, edits), kind, edits, lanes):
        return list(groups)
    half = len(groups) // 2
    if not half:
        return []
    return [*_proved(source, kind, groups[:half], lanes), *_proved(source, kind, groups[half:], lanes)]


def only_touched_changed(
    before: Source, after: Source, kind: str, edits: Sequence[Edit], lanes: LaneTable = BUILT_IN
) -> bool:
    """Whether every value that differs was touched by an edit, and the document can still be read."""
    old, new = read_document(kind, before, lanes).root, read_document(kind, after, lanes).root
    if old is None or new is None:
        return old is new
    return untouched_change(old, new, edits) is None


def untouched_change(old: Node, new: Node, edits: Sequence[Edit]) -> Path | None:
    """Return a place of the tree whose value differs although no edit touched it.

    For a deleted value, an edit must touch its old place; for a new one, its new place.
    """
    changes = _Changes(edits)
    waiting: list[tuple[Path, Node | None, Node | None]] = [((), old, new)]
    while waiting:
        path, before, after = waiting.pop()
        if before is not None and after is not None and before.plain() == after.plain():
            continue
        pairs = _pairs(before, after)
        if pairs:
            waiting.extend(((*path, step), first, second) for step, first, second in pairs)
        elif not ((before and changes.touched_before(before)) or (after and changes.touched_after(after))):
            return path
    return None


class _Changes:
    """The places of the edits, in the text before and after them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        ordered = sorted(set(edits) - {DROP_BOM}, key=lambda edit: (edit.start, edit.end))
        self._before = [(edit.start, edit.end) for edit in ordered]
        self._after: list[tuple[int, int]] = []
        moved = 0
        for edit in ordered:
            start = edit.start + moved
            self._after.append((start, start + len(edit.text)))
            moved += len(edit.text) - (edit.end - edit.start)

    def touched_before(self, node: Node) -> bool:
        return any(start <= node.end and node.start <= end for start, end in self._before)

    def touched_after(self, node: Node) -> bool:
        return any(start <= node.end and node.start <= end for start, end in self._after)


def _pairs(before: Node | None, after: Node | None) -> list[tuple[str | int, Node | None, Node | None]]:
    """Pair the parts of two values; if one of the two has no parts, there are no pairs."""
    if isinstance((before or after or _NOTHING).value, dict):
        first, second = (before or _NOTHING).mapping, (after or _NOTHING).mapping
        if (before is None or isinstance(before.value, dict)) and (after is None or isinstance(after.value, dict)):
            return [(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    lists = [node.items for node in (before, after) if node is not None and isinstance(node.value, list)]
    if len(lists) == 2:
        return [(index, first, second) for index, (first, second) in enumerate(zip_longest(*lists))]
    return []


_NOTHING = Node(None, 0, 0)
