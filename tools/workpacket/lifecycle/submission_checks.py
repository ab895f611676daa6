"""Judging a submission that a change brings: does its evidence prove the criteria, and is its commit the work?

What the event says of itself is not asked: it is compared with the criteria and the scope of the packet, and with what
git says of the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from workpacket.evidence.comparison import Fault
from workpacket.lifecycle.gates import outside
from workpacket.lifecycle.proofs import folded, is_complete, unlike_demand
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.lifecycle.contract import Demand


class SubmittedWork(Value):
    """What the packet and git say of a submission.

    `changed` are the paths that the commit changes, None if the commit is not here. `older` says that it was on the
    base before the work was claimed, `amended` that the packet was given another contract after the submission. `same`
    are the commits, of those at which something was proved, that hold the same work; `absent` the places named as
    proof which the commit does not have. `demands` are the proofs that the contract demands, by criterion, and
    `required` says that it has to demand one of each.
    """

    criteria: Sequence[str]
    scope: Sequence[str]
    changed: Sequence[str] | None
    older: bool = False
    amended: bool = False
    same: Set[str] = frozenset()
    absent: Set[str] = frozenset()
    demands: Mapping[str, Demand] = NOTHING
    required: bool = False


def submission_faults(event: LogEvent, work: SubmittedWork) -> Iterator[Problem]:
    """Each with the code of the condition that a waiver may lift."""
    commit = (event.text("commit") or "")[:12]
    if work.changed is None:
        yield Problem("changes_unknown", f"the commit {commit} is not here, so no one can say what was submitted")
        return
    if work.older:
        yield Problem("changes_unknown", f"the commit {commit} is on the base and older than the claim")
    if work.amended:
        return
    yield from _evidence_faults(evidence_rows(event), work)
    for path in outside(work.changed, work.scope):
        yield Problem("outside_scope", f"{path} is outside the scope", Location(path))


def evidence_rows(event: LogEvent) -> list[Mapping[str, Json]]:
    listed = event.data.get("evidence")
    return [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []


def _evidence_faults(rows: Sequence[Mapping[str, Json]], work: SubmittedWork) -> Iterator[Problem]:
    """The last row about a criterion counts, as it does where a person submits."""
    last = {folded(row["criterion"]): row for row in rows}
    wanted = {folded(criterion): criterion for criterion in work.criteria}
    for criterion in last.keys() - wanted.keys():
        yield Problem("evidence_missing", f"{criterion[:100]!r} is not a criterion of the packet")
    for wanted_as, criterion in wanted.items():
        for problem in _criterion_faults(last.get(wanted_as), work.demands.get(wanted_as), work):
            yield Problem(problem.code, f"{criterion[:100]!r} {problem.text}")
    if wanted and not any(row["result"] == "met" for row in last.values()):
        yield Problem("evidence_missing", "no criterion was met")


def _criterion_faults(row: Mapping[str, Json] | None, demand: Demand | None, work: SubmittedWork) -> Iterator[Fault]:
    """What keeps the last row about a criterion from proving it, as evidence and as what the contract demands."""
    unlike = list(unlike_demand(row or {}, demand, required=work.required))
    if row is None and not (unlike and not is_complete(demand)):
        yield Fault("evidence_missing", "has no evidence")
        return
    looked_at = demand is not None and not demand.command and is_complete(demand)
    fault = next(_faults_of(row, work), "") if row is not None and not looked_at else ""
    if fault:
        yield Fault("evidence_missing", fault)
    yield from (Fault(each.code, f"is not proved: {each.text}") for each in unlike)


def _faults_of(row: Mapping[str, Json], work: SubmittedWork) -> Iterator[str]:
    """What keeps a row from proving its criterion. What it calls itself proves nothing."""
    if row["result"] == "not_applicable":
        if not row.get("reason"):
            yield "does not apply, and no reason is given"
        return
    if row["result"] != "met":
        yield "was not met"
    if row.get("limit") == "time":
        yield "was not met: its command was stopped"
    elif "command" in row and row.get("exit_code") != 0:
        yield f"was not met: its command ended with {row.get('exit_code', 'no exit code')}"
    places = row.get("proof")
    named = places if isinstance(places, list) else []
    if "command" not in row and not named:
        yield "is called met, and neither a command nor a place shows it"
    yield from (f"was not met: {place} is not in the commit" for place in named if place in work.absent)
    commit = row.get("commit")
    if commit is not None and commit not in work.same:
        yield f"was proved at {str(commit)[:12]}, which is other work"
