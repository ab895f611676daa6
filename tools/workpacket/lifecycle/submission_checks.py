"""Judge a submission in a change: whether its evidence proves the criteria, and whether its commit is the work.

The event is not trusted: it is compared with the criteria and the scope of the packet, and with git's data on the
commit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set

from workpacket.lifecycle.gates import outside
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.problem import Location, Problem
from workpacket.value import Value


class SubmittedWork(Value):
    """What the packet and git say about a submission.

    `changed` are the paths that the commit changes, None if the commit is missing here. `older` says that it was on the
    base before the work was claimed, `amended` that the packet got another contract after the submission. `same` are
    the commits with proofs that contain the same work; `absent` the places named as proof that the commit lacks.
    """

    criteria: Sequence[str]
    scope: Sequence[str]
    changed: Sequence[str] | None
    older: bool = False
    amended: bool = False
    same: Set[str] = frozenset()
    absent: Set[str] = frozenset()


def submission_faults(event: LogEvent, work: SubmittedWork) -> Iterator[Problem]:
    """Yield faults, each with the code of the condition that a waiver may lift."""
    commit = (event.text("commit") or "")[:12]
    if work.changed is None:
        yield Problem("changes_unknown", f"the commit {commit} is missing here, so it is unknown what was submitted")
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
    """Report faults of evidence. The last row about a criterion counts, as in a submission by a person."""
    last = {_folded(row["criterion"]): row for row in rows}
    wanted = {_folded(criterion): criterion for criterion in work.criteria}
    for criterion in last.keys() - wanted.keys():
        yield Problem("evidence_missing", f"{criterion[:100]!r} is not a criterion of the packet")
    for folded, criterion in wanted.items():
        row = last.get(folded)
        fault = "has no evidence" if row is None else next(_faults_of(row, work), "")
        if fault:
            yield Problem("evidence_missing", f"{criterion[:100]!r} {fault}")
    if wanted and not any(row["result"] == "met" for row in last.values()):
        yield Problem("evidence_missing", "no criterion was met")


def _faults_of(row: Mapping[str, Json], work: SubmittedWork) -> Iterator[str]:
    """Yield what prevents a row from proving its criterion. What it calls itself proves nothing."""
    if row["result"] == "not_applicable":
        if not row.get("reason"):
            yield "does not apply, but no reason is given"
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
        yield "is called met, but neither a command nor a place shows it"
    yield from (f"was not met: {place} is not in the commit" for place in named if place in work.absent)
    commit = row.get("commit")
    if commit is not None and commit not in work.same:
        yield f"was proved at {str(commit)[:12]}, which contains different work"


def _folded(text: Json) -> str:
    return " ".join(unicodedata.normalize("NFC", str(text)).split())
