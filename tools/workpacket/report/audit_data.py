"""An audit as plain JSON values: the output of `--format json`, and the data of the page.

Every string that a person reads is sanitized here, for all formats at once. This module also renders an audit for a
terminal and as Markdown: what is wrong, since when, and who must act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import compress, decompress

from workpacket.audit.overview import Audit, AuditFinding, BaseRow
from workpacket.audit.packet_row import AuditedPacket, title_of, waits_for, who_approved, who_judged
from workpacket.audit.tracing import Anchor, AuditFacts, Criterion, SignedDecision, Trace
from workpacket.documents.document import value_of
from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.proofs import Evidence
from workpacket.model.canonical import Json
from workpacket.model.events import LogEvent
from workpacket.model.reasons import Reason
from workpacket.model.wording import counted
from workpacket.problem import Severity
from workpacket.report.runs import page_of
from workpacket.report.terminal import escape, escape_lines, without_surrogates

_LONGEST = 600
_SAID = ("holder", "to", "by", "verdict", "reason", "until", "rule", "branch", "commit", "target", "run", "outcome")

_SHOWN = 20


def told(text: str) -> str:
    """Return a string for display: sanitized, and shortened to a readable length."""
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


def told_lines(text: str) -> str:
    """Return a multi-line string for display."""
    return escape_lines(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


class PacketTexts:
    """The JSON of each packet, compressed: that of ten thousand packets takes up sixty megabytes."""

    def __init__(self, encode: Callable[[Json], str]) -> None:
        self._encode = encode
        self._texts: dict[str, bytes] = {}

    def take(self, audited: AuditedPacket) -> None:
        self._texts[audited.name] = compress(self._encode(packet_json(audited)).encode(), _FAST)

    def text(self, name: str, audit: Audit) -> str:
        text = decompress(self._texts[name]).decode()
        # Whether a packet is doubted is known only after all packets were audited. In JSON, quotes inside a string are
        # escaped, so nothing but this key looks like it.
        return text.replace(_UNDOUBTED, _DOUBTED, 1) if name in audit.doubted else text

    def spliced(self, envelope: str, names: Iterable[str], audit: Audit) -> Iterator[str]:
        """Yield the text of an object whose last list of packets is empty, with these packets in it."""
        before, _, after = envelope.rpartition(_NO_PACKETS)
        yield f"{before}{_NO_PACKETS[:-1]}"
        for number, name in enumerate(names):
            yield f"{',' if number else ''}{self.text(name, audit)}"
        yield f"]{after}"


_FAST = 1
_NO_PACKETS = '"packets":[]'
_UNDOUBTED, _DOUBTED = '"doubted":false', '"doubted":true'


def audit_json(audit: Audit) -> dict[str, Json]:
    """Return the whole audit except its packets, whose texts are spliced in."""
    bases: list[Json] = bases_json(audit)
    gaps: list[Json] = [{"name": gap.name, "done": gap.done, "of": gap.of} for gap in audit.gaps]
    matters: list[Json] = [matter_json(matter) for matter in audit.matters]
    uncovered: list[Json] = [{"title": told(one.title), "line": one.first} for one in audit.uncovered]
    return {
        **head_json(audit),
        "gaps": gaps,
        "matters": matters,
        "bases": bases,
        "requirements": {"count": len(audit.requirements), "uncovered": uncovered, "rows": requirements_json(audit)},
        "packets": [],
    }


def bases_json(audit: Audit) -> list[Json]:
    return [_base(row) for row in audit.bases]


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
        "forge": audit.facts.forge,
    }


def requirements_json(audit: Audit) -> list[Json]:
    return [
        {"title": told(row.requirement.title), "line": row.requirement.first, "packets": list(row.packets)}
        for row in audit.requirements
    ]


MATRIX_HEADS = (
    "requirement", "line", "packet", "lane", "number", "criterion", "evidence", "result", "commit", "suspect",
)  # fmt: skip


def matrix_rows(audit: Audit, criteria_of: Mapping[str, Sequence[Criterion]]) -> Iterator[tuple[str | int, ...]]:
    """Yield a row for each piece of evidence, by requirement, packet and criterion; missing values are blank."""
    for row in audit.requirements:
        title, line = told(row.requirement.title), row.requirement.first
        if not row.packets:
            yield title, line, *[""] * (len(MATRIX_HEADS) - 2)
        for name in row.packets:
            start = (title, line, name, audit.packets[name].lane)
            criteria = criteria_of[name]
            for one in criteria:
                for each in one.evidence or (None,):
                    proof = (told(each.what), each.result, each.commit, told(each.suspect)) if each else ("",) * 4
                    yield *start, one.number, told(one.text), *proof
            if not criteria:
                yield *start, *[""] * (len(MATRIX_HEADS) - len(start))


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


def packet_json(audited: AuditedPacket) -> dict[str, Json]:
    facts, packet, name = audited.facts, audited.packet, audited.name
    state = packet.state
    said: list[Json] = [told(line) for line in audited.obstacles]
    events: list[Json] = [_event(event, proven=event.id in facts.proven) for event in state.history]
    decided: list[Json] = [_decision(each) for each in facts.decisions.get(name, ())]
    rewritten: list[Json] = [
        {"part": part, "before": told(before), "after": told(after)}
        for part, before, after in facts.rewritten.get(name, ())
    ]
    return {
        "id": name,
        "base": packet.id.base,
        "lane": packet.lane,
        "title": told(title_of(packet)),
        "since": state.latest_moves[-1].at if state.latest_moves else "",
        "why": told(_why(packet)),
        "holder": told(state.lease.holder) if state.lease is not None else "",
        "branch": told(state.assignment.branch),
        "waits_for": waits_for(facts, packet),
        "approved_by": told(who_approved(facts, packet)),
        "judged_by": told(who_judged(facts, packet)),
        "rewritten": rewritten,
        "doubted": False,
        "files": _files(packet),
        "heads": list(packet.log.heads),
        "obstacles": said,
        "events": events,
        "decisions": decided,
        "runs": _runs(state, facts.policy.temporal_ui),
        **_trace(audited.trace, facts),
    }


def _why(packet: PacketFacts) -> str:
    document = packet.packet or packet.stub
    return value_of(document.why) if document is not None else ""


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


def _runs(state: PacketState, pages: str) -> list[Json]:
    return [
        {
            "run": told(run.run),
            "linked": run.linked.at,
            "closed": run.closed.at if run.closed is not None else "",
            "outcome": told(run.closed.text("outcome") or "") if run.closed is not None else "",
            "page": page_of(run, pages),
        }
        for run in state.runs
    ]


def _trace(traced: Trace, facts: AuditFacts) -> dict[str, Json]:
    anchors: list[Json] = [
        {
            "name": told(one.name),
            "path": without_surrogates(one.path),
            "first": one.first,
            "last": one.last,
            "state": one.state,
            "why": told(one.why),
            "excerpt": told_lines(_excerpt(one, facts)),
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


def _excerpt(anchor: Anchor, facts: AuditFacts) -> str:
    """Return the current text of the passage; '' if it no longer exists."""
    there = facts.specifications.get(anchor.path) or facts.specification
    if there is None or there.path != anchor.path or anchor.first < 1:
        return ""
    last = min(anchor.last, there.line_count, anchor.first + _LONGEST)
    return "\n".join(there.line(number) for number in range(anchor.first, last + 1)).strip()


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
            "output": told_lines(one.log_tail),
        }
        for one in rows
    ]


class Group(NamedTuple):
    """All findings with one code. `since` is the earliest known time."""

    code: str
    severity: Severity
    title: str
    matters: tuple[AuditFinding, ...]
    since: str
    who: tuple[str, ...]

    @property
    def when(self) -> str:
        """Return the time in human-readable form; '' if unknown."""
        if self.since:
            return f"since {self.since[:10]}"
        return "not committed" if any(matter.pending for matter in self.matters) else ""


def groups(matters: Sequence[AuditFinding], reasons: Mapping[str, Reason]) -> list[Group]:
    """Return the findings by code, most severe first."""
    by_code: dict[tuple[str, Severity], list[AuditFinding]] = {}
    for matter in matters:
        by_code.setdefault((matter.finding.code, matter.finding.severity), []).append(matter)
    return [
        Group(
            code,
            severity,
            reasons[code].title,
            tuple(found),
            min((one.since for one in found if one.since), default=""),
            tuple(dict.fromkeys(one.who for one in found)),
        )
        for (code, severity), found in by_code.items()
    ]


def sentence(audit: Audit) -> str:
    """Return one sentence that says whether anything is wrong."""
    counts = Counter(matter.finding.severity for matter in audit.matters)
    grave = [matter for matter in audit.matters if matter.finding.severity != "info"]
    if not grave:
        return "Nothing is wrong."
    concerned = {matter.packet for matter in grave} - {""}
    elsewhere = any(not matter.packet for matter in grave)
    places = [counted(len(concerned), "packet")] * bool(concerned) + ["other files"] * elsewhere
    where = f" in {' and '.join(places)}" if concerned else ""
    parts = [counted(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
    return f"{' and '.join(parts)}{where}."


def lanes_of(audit: Audit) -> list[tuple[str, int]]:
    """Return the number of packets in each lane, in lane order."""
    counts = Counter(row.lane or "no log" for row in audit.packets.values())
    order = list(audit.lane_order)
    return sorted(counts.items(), key=lambda one: (order.index(one[0]) if one[0] in order else len(order), one[0]))


def place(matter: AuditFinding) -> str:
    finding = matter.finding
    return told(f"{finding.path}:{finding.line}" if finding.line else finding.path)


def render_audit_text(audit: Audit, reasons: Mapping[str, Reason]) -> str:
    return "\n".join(_lines(audit, reasons)) + "\n"


def _lines(audit: Audit, reasons: Mapping[str, Reason]) -> Iterator[str]:
    facts = audit.facts
    yield sentence(audit)
    head = f"commit {facts.head.id[:12]} of {facts.head.at}" if facts.head is not None else "no commit yet"
    yield f"{counted(len(audit.packets), 'packet')}, {head}; log root {audit.root[:16]}"
    if facts.uncommitted:
        yield f"{counted(len(facts.uncommitted), 'file')} not committed"
    yield ""
    for group in groups(audit.matters, reasons):
        when = f", {group.when}" if group.when else ""
        yield f"{group.severity}: {group.title} ({group.code}): {len(group.matters)}{when}"
        yield f"  to act: {', '.join(told(who) for who in group.who[:5])}"
        shown = group.matters[: _SHOWN if group.severity != "info" else 3]
        for matter in shown:
            yield f"  {place(matter)}: {told(matter.finding.message)}"
        if len(shown) < len(group.matters):
            yield f"  and {len(group.matters) - len(shown)} more"
    if audit.matters:
        yield ""
    yield from (f"{lane:<16}{count:>6}" for lane, count in lanes_of(audit))
    yield ""
    yield from (f"{gap.name}: {gap.done} of {gap.of}" for gap in audit.gaps if gap.of)
    yield "next: workpacket audit --out report.html"


def render_audit_markdown(audit: Audit, reasons: Mapping[str, Reason]) -> str:
    return "\n".join(_markdown(audit, reasons)) + "\n"


def _markdown(audit: Audit, reasons: Mapping[str, Reason]) -> Iterator[str]:
    facts = audit.facts
    yield f"# Audit{f' of {cell(facts.name)}' if facts.name else ''}"
    yield ""
    yield f"**{sentence(audit)}**"
    yield ""
    if facts.head is not None:
        yield f"- Commit `{facts.head.id}` of {facts.head.at}"
    yield f"- Log root `{audit.root}`"
    yield f"- {counted(len(audit.packets), 'packet')}, {counted(facts.files_checked, 'file')} checked"
    yield from ("", "## What is wrong", "")
    if not audit.matters:
        yield "Nothing was found."
    for group in groups(audit.matters, reasons):
        yield from (f"### {group.title} ({group.code})", "")
        when = f", {group.when}" if group.when else ""
        who = ", ".join(cell(name) for name in group.who)
        yield f"{group.severity}, {len(group.matters)} found{when}; to act: {who}"
        yield from ("", "| Place | Packet | What |", "|---|---|---|")
        for matter in group.matters:
            yield f"| {cell(place(matter))} | {matter.packet} | {cell(matter.finding.message)} |"
        yield ""
    yield from ("", "## How far it is", "", "| What | Done | Of |", "|---|---:|---:|")
    yield from (f"| {gap.name} | {gap.done} | {gap.of} |" for gap in audit.gaps)
    yield from ("", "## Packets", "", "| Packet | Lane | Title | Why it is waiting |", "|---|---|---|---|")
    for name, row in audit.packets.items():
        yield f"| {name} | {row.lane or '-'} | {cell(row.title)} | {cell(' '.join(row.obstacles))} |"


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#!&~"})


def cell(text: str) -> str:
    """Return a string from a document as the text of a table cell, in which nothing is markup."""
    return told(text).translate(_MARKS)
