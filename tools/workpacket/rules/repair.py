"""Makes fixes, and proves that nothing else changed.

Edits are chosen so that none overlaps another, applied from the end, and the text is read again. The new tree of values
may differ from the old one only where an edit touched it; otherwise nothing is repaired and the caller is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workpacket.documents.reading import read_document
from workpacket.model.findings import Edit, Finding
from workpacket.text.edits import apply_edits, compatible
from workpacket.text.node import Node
from workpacket.text.source import Source


@dataclass(frozen=True, slots=True)
class Repair:
    """The repaired source. `edits` were made; `left` are findings whose fix must wait for another round."""

    source: Source
    edits: tuple[Edit, ...]
    left: int


class MeaningChanged(ValueError):
    """A fix would have changed a value that it was not about."""


def repair(source: Source, kind: str, findings: Sequence[Finding], *, unsafe: bool) -> Repair:
    """Makes the fixes of `findings`: the safe ones, or all."""
    fixes = [finding.fix for finding in findings if finding.fix is not None and (finding.fix.safe or unsafe)]
    groups = compatible(fix.edits for fix in fixes)
    edits = tuple(dict.fromkeys(edit for group in groups for edit in group))
    if not edits:
        return Repair(source, (), 0)
    repaired = apply_edits(source, edits)
    _prove(source, repaired, kind, edits)
    return Repair(repaired, edits, len(fixes) - len(groups))


def _prove(before: Source, after: Source, kind: str, edits: Sequence[Edit]) -> None:
    old, new = read_document(kind, before).root, read_document(kind, after).root
    if old is None or new is None:
        if old is not new:
            raise MeaningChanged(f"{before.path}: after the fixes the document could no longer be read")
        return
    changed = untouched_change(old, new, edits)
    if changed is not None:
        raise MeaningChanged(
            f"{before.path}: the fixes would change {'/'.join(map(str, changed))}, which they are not about"
        )


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
