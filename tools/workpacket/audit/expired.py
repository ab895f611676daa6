"""Find what the passage of time, or a later change, has made doubtful in a log; for `check` and the audit.

- a file whose digest is in the log, such as a verdict's report or an approved refinement, has changed;
- the evidence of a submission shows that nothing ran, or does not say how it ended;
- a run was never closed, although the work on its packet has ended;
- a waiver expired while the work was still in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.ledger.fold import SETS_CONTRACT, PacketState, fold
from workpacket.ledger.log import Log
from workpacket.lifecycle.proofs import evidence_rows
from workpacket.lifecycle.review import Report, is_vouched_for, report_of
from workpacket.model.events import LogEvent
from workpacket.model.lanes import lane_of_token
from workpacket.model.reason_tables.integrity import AUDIT_BY_CODE
from workpacket.problem import Location, Problem
from workpacket.rules.packet import EvidenceExitCodeMissing, EvidenceRanNothing, ran_nothing

# Returns the digest of a file as it is now, None if the file is missing.
DigestOf = Callable[[str], str | None]

_TELLING: Final = frozenset(
    {"activated", "evidence.recorded", "overridden", "run.linked", "submitted", "verdict.given", "waived"}
)


def named_files(log: Log) -> Iterator[tuple[LogEvent, str, str]]:
    """Yield the files that the log depends on now, with their recorded digests: event, path, SHA-256. Only the latest
    verdict counts, and the latest activation or amendment. A signed refinement is not listed: its signature decides.
    """
    latest: dict[str, LogEvent] = {}
    for event in log.events:
        if event.type == "verdict.given":
            latest["report"] = event
        elif event.type in SETS_CONTRACT:
            latest["refinement"] = event
    for key, event in latest.items():
        file = event.data.get(key)
        if isinstance(file, Mapping) and not (key == "refinement" and event.attest):
            yield event, str(file["path"]), str(file["sha256"])


def standing_faults(log: Log, digest_of: DigestOf, now: str, reports: Sequence[Report]) -> Iterator[Problem]:
    """Yield all such findings in one log; `reports` are those of the verdicts in all logs."""
    if not any(event.type in _TELLING for event in log.events):
        return
    yield from _changed_files(log, digest_of, reports)
    yield from _evidence_faults(log)
    state = fold(log)
    yield from _zombies(state)
    yield from _expired(state, now)


def next_expiry(log: Log, now: str) -> str:
    """Return when the first waiver that is still in force ends, which may change the answer; '' if there is none."""
    ends = (event.text("expires_at") or "" for event in log.events if event.type in {"overridden", "waived"})
    return min((end for end in ends if end > now), default="")


def unfinished(lane: str) -> bool:
    """Whether work in this lane is or may be in progress; true for an unknown lane."""
    known = lane_of_token(lane)
    return known is None or known.unfinished


def _changed_files(log: Log, digest_of: DigestOf, reports: Sequence[Report]) -> Iterator[Problem]:
    for event, path, expected in named_files(log):
        present = digest_of(path)
        report = report_of(event)
        if present == expected or (report is not None and is_vouched_for(report, present, reports)):
            continue
        what = "is gone" if present is None else "has changed since"
        code = "evidence_changed" if event.type == "verdict.given" else "approved_file_changed"
        yield audit_finding(
            code, path, 0, f"{event.type} of {log.packet} at {event.at} depends on this file, which {what}"
        )


def _evidence_faults(log: Log) -> Iterator[Problem]:
    for event in log.events:
        for row in evidence_rows(event):
            criterion = str(row["criterion"])[:100]
            if row["result"] != "met" or not row.get("command"):
                continue
            if "exit_code" not in row:
                message = f"{criterion!r} is marked as met by a command whose exit code is not recorded"
                yield _of_rule(EvidenceExitCodeMissing, event.path, message)
            if nothing := ran_nothing(str(row.get("log_tail", ""))):
                message = f"{criterion!r} is marked as met, but according to the log {nothing!r}"
                yield _of_rule(EvidenceRanNothing, event.path, message)


def _of_rule(rule: type[EvidenceExitCodeMissing] | type[EvidenceRanNothing], path: str, message: str) -> Problem:
    return Problem(rule.code(), message, Location(path, 1, 1), rule.reason().remedy, severity=rule.severity)


def _zombies(state: PacketState) -> Iterator[Problem]:
    if unfinished(state.lane):
        return
    for run in state.open_runs:
        message = f"run {run.run} was never closed, although {state.packet} is {state.lane}"
        yield audit_finding("run_zombie", run.linked.path, 1, message)


def _expired(state: PacketState, now: str) -> Iterator[Problem]:
    if not unfinished(state.lane):
        return
    for event in state.waivers:
        end = event.text("expires_at") or ""
        if end <= now:
            message = f"the waiver of {event.text('rule')} for {state.packet} expired on {end}"
            yield audit_finding("waiver_expired", event.path, 1, message)


def audit_finding(code: str, path: str, line: int, message: str) -> Problem:
    """Return a finding from the audit's reason table, with the remedy of its code."""
    reason = AUDIT_BY_CODE[code]
    return Problem(code, message, Location(path, line, 1 if line else 0), reason.remedy, severity=reason.severity)
