"""The registry as the log tells it: which packet of a base is in force, its revisions, how well it is proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.audit.facts import AuditFacts
from workpacket.audit.tracing import Trace
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.plans.moving import in_force
from workpacket.value import Value, replace


class BaseRow(Value):
    """One base. `active` is '' where nobody can say which revision counts. `lineage` are (later, earlier) pairs."""

    base: str
    active: str
    lane: str
    revisions: tuple[tuple[str, str], ...]
    lineage: tuple[tuple[str, str], ...]
    approvals: int
    proved: int
    criteria: int
    commits: tuple[str, ...]


def base_rows(facts: AuditFacts, governed: Facts, traces: Mapping[str, Trace]) -> list[BaseRow]:
    by_base: dict[str, list[PacketFacts]] = {}
    for packet in facts.packets.values():
        by_base.setdefault(packet.id.base, []).append(packet)
    return [_row(facts, governed, traces, base, by_base[base]) for base in sorted(by_base)]


def _row(
    facts: AuditFacts, governed: Facts, traces: Mapping[str, Trace], base: str, revisions: list[PacketFacts]
) -> BaseRow:
    revisions.sort(key=lambda packet: packet.id.revision or 1)
    # Of one base at a time: `in_force` looks through all packets that it is given.
    row = in_force(governed_of(governed, revisions), base, {}, {})
    active = row.id if row is not None else ""
    traced = traces.get(active)
    criteria = traced.criteria if traced is not None else ()
    superseded = [(packet.state.superseded_by, packet.id.text) for packet in revisions if packet.state.superseded_by]
    commits = [commit.id for packet in revisions for commit in traces[packet.id.text].commits]
    counting = [each for each in facts.decisions.get(active, ()) if each.decision == "approve" and not each.refusals]
    return BaseRow(
        base,
        active,
        facts.packets[active].lane if active else "",
        tuple((packet.id.text, packet.lane) for packet in revisions),
        tuple(superseded),
        len(counting),
        sum(criterion.proved for criterion in criteria),
        len(criteria),
        tuple(dict.fromkeys(commits)),
    )


def governed_of(governed: Facts, packets: Sequence[PacketFacts]) -> Facts:
    """The same facts about these packets only."""
    return replace(governed, packets={packet.id.text: packet for packet in packets})
