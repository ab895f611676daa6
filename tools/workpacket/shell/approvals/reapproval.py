"""Approvals that no longer count, and the events that replace them.

An event on the base is never rewritten. If an approval or its key was revoked, `reapproved` names new envelopes for the
same event, gate and terms. These are judged by the policy in force when they land. An event that is not on the base
needs no `reapproved`: it can still be removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.facts import Verdict
from workpacket.approvals.policy import GatePolicy
from workpacket.lifecycle.amendment import Withdrawn
from workpacket.lifecycle.gates import terms_of
from workpacket.model.events import LogEvent
from workpacket.problem import Problem
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.base import gate_policy

REAPPROVED = "reapproved"
_TAKEN_BACK = frozenset({"approval_revoked", "key_revoked"})


def unnamed(verdict: Verdict, event: LogEvent, rules: GatePolicy) -> Iterator[Problem]:
    """Report envelopes that satisfy the gate but are not named in the event: a later envelope cannot open a gate
    retroactively.
    """
    named = [voice for voice in verdict.voices if voice.envelope in event.attest]
    if verdict.assurance == "signed" and len({voice.principal for voice in named}) < rules.threshold:
        what = f"the event names {len(named)} of the envelopes that satisfy the gate {verdict.gate}"
        yield Problem("approval_missing", f"{what}; the gate requires {rules.threshold}")


def is_taken_over(approvals: Approvals, event: LogEvent, verdict: Verdict) -> bool:
    """Whether the event fails only because approvals were revoked, and a later event names new ones."""
    if not _taken_back(approvals, event, verdict):
        return False
    log, origin = approvals.log(event.packet), approvals.origin(event)
    later = (each for each in log.events if each.type == REAPPROVED and event.id in log.ancestry(each.parents))
    return any(
        each.text("event") == origin.id and each.text("gate") == verdict.gate and _holds(approvals, each)
        for each in later
    )


def _taken_back(approvals: Approvals, event: LogEvent, verdict: Verdict) -> tuple[str, ...]:
    """Return the envelopes named by the event on the base that were revoked, or whose keys were."""
    if not approvals.place(event).brought_by:
        return ()
    judged = {each.name.partition(".")[0]: {refusal.code for refusal in each.refusals} for each in verdict.judged}
    return tuple(digest for digest in event.attest if judged.get(digest, set()) & _TAKEN_BACK)


def _holds(approvals: Approvals, event: LogEvent) -> bool:
    gate = event.text("gate") or ""
    rules = gate_policy(approvals.place(event).policy, gate)
    verdict = approvals.verdict(event.packet, gate, event)
    return rules is not None and verdict.met and not [*unnamed(verdict, event, rules), *misplaced(approvals, event)]


def misplaced(approvals: Approvals, event: LogEvent) -> Iterator[Problem]:
    """Report a misplaced `reapproved`: the event that it refers to is missing, or never needed an approval."""
    log, origin, gate = approvals.log(event.packet), approvals.origin(event), event.text("gate") or ""
    before = log.ancestry(event.parents)
    named = {digest for each in _line_of(approvals, origin) if each.id in before for digest in each.attest}
    if origin.type == REAPPROVED or origin.id not in before:
        yield Problem("reapproval_unfit", "the event whose approvals it replaces does not precede it")
    elif gate not in approvals.gates(origin):
        yield Problem("reapproval_unfit", f"{origin.type} did not need an approval at the gate {gate}")
    elif not approvals.place(origin).brought_by:
        yield Problem("reapproval_unfit", f"the base does not have {origin.type} yet: remove it, and record it again")
    elif not set(event.texts("replaces")) <= named:
        yield Problem("reapproval_unfit", f"it replaces an envelope that {origin.type} does not use")


def _line_of(approvals: Approvals, origin: LogEvent) -> Iterator[LogEvent]:
    """Yield the event, and those that replaced its approvals."""
    yield origin
    log = approvals.log(origin.packet)
    yield from (each for each in log.events if each.type == REAPPROVED and each.text("event") == origin.id)


def withdrawn(approvals: Approvals, packet: str, gate: str = "") -> Iterator[Withdrawn]:
    """Yield the gates that the packet passed with approvals that no longer count; with `gate`, only that gate."""
    for event in approvals.log(packet).events:
        if event.type == REAPPROVED or not event.attest:
            continue
        for asked in approvals.gates(event):
            if gate in ("", asked) and not any(_counts(approvals, each, asked) for each in _line_of(approvals, event)):
                lost = _lost(approvals, event, asked)
                if lost:
                    now = approvals.verdict(packet, asked, terms=terms_of(event, asked))
                    yield Withdrawn(event, asked, lost, now)


def _counts(approvals: Approvals, event: LogEvent, gate: str) -> bool:
    return gate in approvals.gates(event) and approvals.verdict(event.packet, gate, event).met


def _lost(approvals: Approvals, origin: LogEvent, gate: str) -> tuple[str, ...]:
    """Return the envelopes of the event and of its replacements that no longer count."""
    line = [each for each in _line_of(approvals, origin) if gate in approvals.gates(each)]
    lost = (_taken_back(approvals, each, approvals.verdict(each.packet, gate, each)) for each in line)
    return tuple(sorted({digest for some in lost for digest in some}))
