"""What of a scan of batch scopes and roles is still to be done. Pure: the facts are gathered by whoever scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from workpacket.bridges.batch_facts import BatchFacts
from workpacket.bridges.role_facts import RoleFacts
from workpacket.bridges.role_records import Fields
from workpacket.runtime.at_work import Caller, at_work


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


class UnfinishedRole(NamedTuple):
    """A role with work left. `blocked_by` are the codes of what has to be settled first.

    `artifacts` are the files that it named, with their digests at its last milestone.
    """

    path: str
    fields: Fields
    blocked_by: tuple[str, ...]
    artifacts: Mapping[str, str]


def unfinished_roles(
    scanned: Iterable[RoleFacts], team: str = "", caller: Callable[[str], Caller] = lambda _: Caller()
) -> tuple[UnfinishedRole, ...]:
    """The roles whose work goes on, of one team or of all; those first that were at work last.

    `caller` is who asks, if it had a role: what it holds itself is not busy.
    """
    found = [_open_role(facts, caller(facts.names[2])) for facts in scanned if facts.is_open]
    chosen = [one for one in found if not team or one.fields.team.casefold() == team.casefold()]
    return tuple(sorted(chosen, key=lambda one: (_moment(one.fields.updated), one.path), reverse=True))


def _moment(updated: str) -> datetime:
    """When a file says that it was written last: a date alone is its first moment, what is no time comes last."""
    try:
        moment = datetime.fromisoformat(updated)
    except ValueError:
        moment = datetime.min
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _open_role(facts: RoleFacts, caller: Caller) -> UnfinishedRole:
    lease = facts.lease
    stops = {
        "role_key_missing": not all(facts.fields),
        "role_zombie": bool(facts.closed_by),
        "role_twice": bool(facts.twins),
        "role_identity_mismatch": facts.is_astray,
        "view_conflict": bool(facts.contradictions),
        "run_busy": lease is not None and at_work(lease.holder, caller) != "",
    }
    blocked_by = tuple(code for code, stop in stops.items() if stop)
    return UnfinishedRole(facts.path, facts.fields, blocked_by, facts.state.artifacts)
