"""An audit for a terminal and as Markdown: what is wrong, since when, and who must act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from workpacket.audit.overview import Audit, AuditFinding
from workpacket.model.reasons import Reason
from workpacket.model.wording import counted
from workpacket.problem import Severity
from workpacket.report.audit_data import title_of, told

_SHOWN = 20


class Group(NamedTuple):
    """All findings of one code. `since` is the earliest time of those that have one."""

    code: str
    severity: Severity
    title: str
    matters: tuple[AuditFinding, ...]
    since: str
    who: tuple[str, ...]

    @property
    def when(self) -> str:
        """Since when, in words; '' if unknown."""
        if self.since:
            return f"since {self.since[:10]}"
        return "not committed" if any(matter.pending for matter in self.matters) else ""


def groups(matters: Sequence[AuditFinding], reasons: Mapping[str, Reason]) -> list[Group]:
    """By code, the most severe first."""
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
    """Whether anything is wrong, in one sentence."""
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
    """The number of packets in each lane, in the order of the lanes."""
    counts = Counter(packet.lane or "no log" for packet in audit.facts.packets.values())
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
    yield f"{counted(len(facts.packets), 'packet')}, {head}; log root {audit.root[:16]}"
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
    yield f"- {counted(len(facts.packets), 'packet')}, {counted(facts.files_checked, 'file')} checked"
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
    for name in sorted(facts.packets):
        packet = facts.packets[name]
        reason = " ".join(audit.obstacles[name])
        yield f"| {name} | {packet.lane or '-'} | {cell(title_of(packet))} | {cell(reason)} |"


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#!&~"})


def cell(text: str) -> str:
    """A text of a document as the text of a cell: nothing in it is markup."""
    return told(text).translate(_MARKS)
