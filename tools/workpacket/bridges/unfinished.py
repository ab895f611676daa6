"""What of a scan of batch scopes is still to be done. Pure: the facts are gathered by whoever scans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workpacket.bridges.batch_facts import BatchFacts


class UnfinishedBatch(NamedTuple):
    """A scope with work left. `blocked_by` are the names of what has to be settled first."""

    folder: str
    label: str
    phase: str
    tasks: tuple[str, ...]
    blocked_by: tuple[str, ...]


def unfinished_batches(scanned: Iterable[BatchFacts]) -> tuple[UnfinishedBatch, ...]:
    """The scopes whose work goes on: a completion cut short, a batch under way, or a next one that can begin."""
    return tuple(found for facts in scanned if (found := _unfinished(facts)) is not None)


def _unfinished(facts: BatchFacts) -> UnfinishedBatch | None:
    stale = tuple(dict.fromkeys(one.aspect for one in facts.stale if one.blocks))
    blocked = (*(("view",) if facts.contradictions else ()), *stale)
    state = facts.state
    if state.completing is not None:
        return UnfinishedBatch(facts.folder, state.completing.label, "completing", state.completing.tasks, blocked)
    if state.batch is not None:
        phase = state.batch.cursor or "complete"
        return UnfinishedBatch(facts.folder, state.batch.label, phase, state.batch.open_units, blocked)
    plan = facts.scope.next
    if not plan.pending:
        return None
    problems = tuple(problem.code for problem in plan.problems)
    label = state.view.next.label if state.view.next is not None else ""
    return UnfinishedBatch(facts.folder, label, "", plan.batch, (*blocked, *problems))
