"""Reports made without a repository: of hostile words, and of very many packets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workpacket.audit.overview import Audit, Auditor
from workpacket.audit.packet_row import AuditedPacket
from workpacket.audit.tracing import AuditFacts, KnownCommit, SignedDecision
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event, read_log
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.plan import Moment
from workpacket.problem import Location, Problem
from workpacket.report.audit_data import PacketTexts
from workpacket.report.audit_page import PageFiles, inert, render_audit_page
from workpacket.report.catalogue import catalogue
from workpacket.shell.audit import page_file
from workpacket.text.source import Source

NOW = "2026-03-01T00:00:00Z"
ATTACKS = (
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "<!--<script>",
    "]]><svg onload=window.harmed=1>",
    "\"' onmouseover=window.harmed=1 x='",
    "\u2028window.harmed = 1\u2029",
    "javascript:window.harmed=1",
    "\u202egnirts\u202c \x1b[31m \x00 \udcff",
    "&lt;script&gt; &#60;script&#62; {{7*7}} ${window.harmed=1}",
)


def render(packets: dict[str, PacketFacts], **more: Any) -> str:
    texts = PacketTexts(inert)
    made = audit_of(packets, visit=texts.take, **more)
    files = PageFiles(page_file("audit.css"), page_file("audit.js"))
    return "".join(render_audit_page(made, texts, catalogue(), files))


def audit_of(
    packets: dict[str, PacketFacts], *, visit: Callable[[AuditedPacket], None] | None = None, **more: Any
) -> Audit:
    facts = AuditFacts(**{"name": "", "now": NOW, "packets": packets, "policy": LifecyclePolicy(), **more})
    governed = Facts(Moment(NOW, "", ""), Actor("ann", "human"), "test", LifecyclePolicy(), packets, frozenset(packets))
    auditor = Auditor(visit)
    auditor.take(facts)
    return auditor.made(facts, governed, catalogue())


def packet(name: str, what: str = "Work") -> PacketFacts:
    """A packet that says these words everywhere, in its file and in its log."""
    said = what.encode("utf-8", "ignore").decode()
    writer = EventWriter(Actor("ann", "human"), NOW, "0190a5de-ac96-774b-bcce-000000000001", "test")
    begun = NewLogEvent("created", {"lane_from": None, "lane_to": "STUB", "base": name[:-3]})
    created = next_event(writer, name, begun, after=())
    given_up = NewLogEvent("abandoned", {"lane_from": "STUB", "lane_to": "ABANDONED", "reason": said})
    events = (created, next_event(writer, name, given_up, after=(created,)))
    text = f"""# Task Packet: {name}

## METADATA
- WP_ID: {name}

## SCOPE
- What: {what}

## QUALITY_GATE
### DONE_MEANS
- {what}

## EVIDENCE_MAPPING
- REQUIREMENT: "{what}"
  - EVIDENCE: {what}
"""
    log = read_log(name, {f"{event.id}.json": event.encode() for event in events})
    return PacketFacts(WorkPacketId(name), log, packet_source=Source(f".GOV/task_packets/{name}.md", text))


def hostile_audit() -> Audit:
    return audit_of(**_hostile())


def hostile_page() -> str:
    return render(**_hostile())


def _hostile() -> dict[str, Any]:
    """Every place that a stranger can write to holds every attack."""
    packets: dict[str, PacketFacts] = {}
    findings: list[Problem] = []
    decisions: dict[str, list[SignedDecision]] = {}
    for number, attack in enumerate(ATTACKS):
        name = f"WP-1-Attack{number}-v1"
        packets[name] = packet(name, attack)
        findings.append(Problem("run_zombie", attack, Location(f".GOV/log/{name}/{attack}", 1, 1), attack))
        decisions[name] = [
            SignedDecision(attack, "approve", attack, attack, attack, NOW, NOW, attack, attack, ((attack, attack),))
        ]
    head = KnownCommit("a" * 40, NOW, ATTACKS[0], " ".join(ATTACKS), True)
    rewritten = {name: [(attack, attack, attack)] for name, attack in zip(packets, ATTACKS, strict=True)}
    return {
        "packets": packets, "findings": findings, "decisions": decisions, "name": ATTACKS[0], "target": ATTACKS[1],
        "head": head, "rewritten": rewritten,
    }  # fmt: skip


def many_packets(count: int) -> str:
    return render({name: packet(name) for name in (f"WP-1-Part-{number}-v1" for number in range(count))})
