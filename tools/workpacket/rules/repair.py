"""Makes fixes, and proves that nothing else changed.

Edits are chosen so that none overlaps another, applied from the end, and the text is read again. The new tree of values
may differ from the old one only where an edit touched it. A fix of which that cannot be shown is not made.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.documents.reading import read_document
from workpacket.model.findings import Edit, Finding
from workpacket.text.edits import apply_edits, compatible
from workpacket.text.node import Node
from workpacket.text.source import Source

EditGroup = tuple[Edit, ...]


def repair(source: Source, kind: str, findings: Sequence[Finding], *, unsafe: bool) -> Source:
    """The source with the fixes of `findings` made: the safe ones, or all. What could not be proved is left out."""
    fixes = [finding.fix for finding in findings if finding.fix is not None and (finding.fix.safe or unsafe)]
    edits = [edit for group in _proved(source, kind, compatible(fix.edits for fix in fixes)) for edit in group]
    return apply_edits(source, edits) if edits else source


def _proved(source: Source, kind: str, groups: Sequence[EditGroup]) -> list[EditGroup]:
    """The groups that change nothing but what they touch: all of them as a rule; else those found by halving."""
    edits = [edit for group in groups for edit in group]
    if not edits or only_touched_changed(source, apply_edits(source, edits), kind, edits):
        return list(groups)
    half = len(groups) // 2
    return [*_proved(source, kind, groups[:half]), *_proved(source, kind, groups[half:])] if half else []


def only_touched_changed(before: Source, after: Source, kind: str, edits: Sequence[Edit]) -> bool:
    """Whether every value that differs was touched by an edit, and the document can still be read."""
    old, new = read_document(kind, before).root, read_document(kind, after).root
    if old is None or new is None:
        return old is new
    return untouched_change(old, new, edits) is None


def untouched_change(old: Node, new: Node, edits: Sequence[Edit]) -> tuple[str | int, ...] | None:
    """A place of the tree whose value differs although no edit touched it."""
    waiting: list[tuple[tuple[str | int, ...], Node, Node | None]] = [((), old, new)]
    while waiting:
        path, before, after = waiting.pop()
        if after is not None and before.plain() == after.plain():
            continue
        children = _children(before)
        if after is not None and children and [step for step, _ in children] == [step for step, _ in _children(after)]:
            waiting.extend(((*path, step), child, after.get(step)) for step, child in children)
        elif not any(edit.start <= before.end and before.start <= edit.end for edit in edits):
            return path
    return None


def _children(node: Node) -> list[tuple[str | int, Node]]:
    return [*node.mapping.items(), *enumerate(node.items)]
