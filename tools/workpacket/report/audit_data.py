"""An audit as plain JSON values: what `--format json` prints, and what the page draws packets from.

Every text that a person reads has passed the door here, once for all forms.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.audit.facts import SignedDecision
from workpacket.audit.overview import Audit, AuditFinding, BaseRow
from workpacket.audit.tracing import Evidence, Trace
from workpacket.documents.document import value_of
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.report.escape import escape, without_surrogates

_LONGEST = 600
_SAID = ("holder", "to", "by", "verdict", "reason", "until", "rule", "branch", "commit", "target", "run", "outcome")


def told(text: str) -> str:
    """A text as it is shown: safe, and no longer than anybody reads in a report."""
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


def audit_json(audit: Audit) -> dict[str, Json]:
    """The whole audit."""
    bases: list[Json] = [_base(row) for row in audit.bases]
    packets: list[Json] = [packet_json(audit, name) for name in sorted(audit.facts.packets)]
    gaps: list[Json] = [{"name": gap.name, "done": gap.done, "of": gap.of} for gap in audit.gaps]
    matters: list[Json] = [matter_json(matter) for matter in audit.matters]
    uncovered: list[Json] = [{"title": told(one.title), "line": one.first} for one in audit.uncovered]
    return {
        **head_json(audit),
        "gaps": gaps,
        "matters": matters,
        "bases": bases,
        "requirements": {"count": len(audit.requirements), "uncovered": uncovered},
        "packets": packets,
    }


def head_json(audit: Audit) -> dict[str, Json]:
    head = audit.facts.head
    return {
        "repository": told(audit.facts.name),
        "judged_at": audit.facts.now,
        "head": {"id": head.id, "at": head.at, "title": told(head.title)} if head is not None else None,
        "log_root": audit.root,
        "target": told(audit.facts.target),
        "uncommitted": len(audit.facts.uncommitted),
        "files_checked": audit.facts.files_checked,
    }


def matter_json(matter: AuditFinding) -> dict[str, Json]:
    finding = matter.finding
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": without_surrogates(finding.path),
        "line": finding.line,
        "message": told(finding.message),
        "hint": told(finding.hint),
        "packet": matter.packet,
        "since": matter.since,
        "pending": matter.pending,
        "who": told(matter.who),
    }


def _base(row: BaseRow) -> dict[str, Json]:
    return {
        "base": row.base,
        "active": row.active,
        "lane": row.lane,
        "revisions": [{"id": name, "lane": lane} for name, lane in row.revisions],
        "lineage": [{"later": told(later), "earlier": earlier} for later, earlier in row.lineage],
        "approvals": row.approvals,
        "criteria": {"proved": row.proved, "of": row.criteria},
        "commits": list(row.commits),
    }


def packet_json(audit: Audit, name: str) -> dict[str, Json]:
    packet = audit.facts.packets[name]
    state = packet.state
    said: list[Json] = [told(line) for line in audit.obstacles[name]]
    events: list[Json] = [_event(event, proven=event.id in audit.facts.proven) for event in state.history]
    decided: list[Json] = [_decision(each) for each in audit.facts.decisions.get(name, ())]
    return {
        "id": name,
        "base": packet.id.base,
        "lane": packet.lane,
        "title": told(title_of(packet)),
        "since": state.latest_moves[-1].at if state.latest_moves else "",
        "holder": told(state.lease.holder) if state.lease is not None else "",
        "branch": told(state.assignment.branch),
        "files": _files(packet),
        "heads": list(packet.log.heads),
        "obstacles": said,
        "events": events,
        "decisions": decided,
        "runs": _runs(state),
        **_trace(audit.traces[name]),
    }


def title_of(packet: PacketFacts) -> str:
    document = packet.packet or packet.stub
    return value_of(document.what) if document is not None else ""


def _files(packet: PacketFacts) -> list[Json]:
    sources = (packet.stub_source, packet.refinement_source, packet.packet_source)
    return [source.path for source in sources if source is not None]


def _event(event: LogEvent, *, proven: bool) -> dict[str, Json]:
    said: list[Json] = [[key, told(value)] for key in _SAID if (value := event.text(key))]
    return {
        "id": event.id,
        "at": event.at,
        "type": event.type,
        "from": event.lane_from or "",
        "to": event.lane_to or "",
        "actor": told(event.actor.id),
        "kind": event.actor.kind,
        "proven": proven,
        "signed": len(event.attest),
        "said": said,
    }


def _decision(decision: SignedDecision) -> dict[str, Json]:
    refusals: list[Json] = [{"code": code, "message": told(message)} for code, message in decision.refusals]
    return {
        "gate": told(decision.gate),
        "decision": decision.decision,
        "approver": told(decision.approver),
        "role": told(decision.role),
        "key": decision.key,
        "issued": decision.issued_at,
        "expires": decision.expires_at,
        "envelope": decision.envelope,
        "used_by": decision.used_by,
        "refusals": refusals,
        "covers": decision.covers,
    }


def _runs(state: PacketState) -> list[Json]:
    return [
        {
            "run": told(run.run),
            "linked": run.linked.at,
            "closed": run.closed.at if run.closed is not None else "",
            "outcome": told(run.closed.text("outcome") or "") if run.closed is not None else "",
        }
        for run in state.runs
    ]


def _trace(traced: Trace) -> dict[str, Json]:
    anchors: list[Json] = [
        {
            "name": told(one.name),
            "path": without_surrogates(one.path),
            "first": one.first,
            "last": one.last,
            "state": one.state,
            "why": told(one.why),
        }
        for one in traced.anchors
    ]
    criteria: list[Json] = [
        {"number": one.number, "text": told(one.text), "line": one.line, "evidence": evidence_json(one.evidence)}
        for one in traced.criteria
    ]
    commits: list[Json] = [
        {
            "id": one.id,
            "role": one.role,
            "known": one.seen is not None,
            "on_target": one.seen.on_target if one.seen is not None else False,
            "at": one.seen.at if one.seen is not None else "",
            "title": told(one.seen.title) if one.seen is not None else "",
            "proof": one.event.text("proof") or "",
        }
        for one in traced.commits
    ]
    return {"anchors": anchors, "criteria": criteria, "strays": evidence_json(traced.strays), "commits": commits}


def evidence_json(rows: Sequence[Evidence]) -> list[Json]:
    return [
        {
            "criterion": told(one.criterion),
            "result": one.result,
            "what": told(one.what),
            "exit_code": one.exit_code,
            "log_sha256": one.log_sha256,
            "at": one.at,
            "by": told(one.by),
            "commit": one.commit,
            "suspect": told(one.suspect),
        }
        for one in rows
    ]
