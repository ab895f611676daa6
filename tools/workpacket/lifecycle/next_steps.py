"""Next steps: the conditions that keep a packet from its next lane, and the work that is ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workpacket.lifecycle.activation import activation_unmet
from workpacket.lifecycle.authorship import coders
from workpacket.lifecycle.claims import claim_refusal
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ends_unjudged, lease_held
from workpacket.lifecycle.moves import added_unmet
from workpacket.lifecycle.review import Work, merging, submit_refusal, verdict_refusal
from workpacket.lifecycle.transitions import forward_command, forward_transition, lane_retired, move_unmet, transition
from workpacket.model.lanes import HELD, WAITING
from workpacket.problem import Problem
from workpacket.value import Value

_RISK = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}


class PacketStatus(Value):
    """The lane of a packet, the command that moves it on, and what prevents that move."""

    id: str
    lane: str
    command: str
    unmet: tuple[Problem, ...]


def why(facts: Facts, packet: PacketFacts, work: Work, branch: str = "") -> PacketStatus:
    """Return the status of the packet, with every condition that keeps it from its next lane."""
    name, lane = packet.id.text, packet.lane
    if waits_for_merge(facts, packet):
        from workpacket.lifecycle.contract_drift import contract_unmet

        return PacketStatus(name, lane, merging(facts, packet), contract_unmet(packet))
    return PacketStatus(
        name,
        lane,
        forward_command(name, lane, facts.policy.lanes, light=packet.light),
        _unmet(facts, packet, work, branch),
    )


def waits_for_merge(facts: Facts, packet: PacketFacts) -> bool:
    """Whether the work is submitted, and finished once it is merged, because the policy requires no verdict."""
    return not packet.landed and ends_unjudged(packet.outline, facts.policy)


def _unmet(facts: Facts, packet: PacketFacts, work: Work, branch: str) -> tuple[Problem, ...]:
    from workpacket.lifecycle.contract_drift import contract_unmet

    lanes = facts.policy.lanes
    row = forward_transition(packet.lane, lanes)
    if not packet.lane or packet.state.forked or not packet.state.sound:
        return move_unmet(packet.state, row or transition("claim"), lanes)
    gates: Mapping[str, Callable[[], tuple[Problem, ...]]] = {
        "activate": lambda: activation_unmet(facts, packet)[0],
        "claim": lambda: claim_refusal(facts, packet, branch),
        "submit": lambda: submit_refusal(facts, packet, work),
        "verdict": lambda: verdict_refusal(facts, packet, "PASS", report="", reference=""),
    }
    if lanes.lane(packet.lane) is None:
        return (lane_retired(packet.id.text, packet.lane),)
    if row is None:
        return contract_unmet(packet)
    gate = gates.get(row.command)
    found = gate() if gate is not None else tuple(added_unmet(facts, packet, row))
    return tuple(dict.fromkeys((*contract_unmet(packet), *found)))


class Ready(Value):
    """Work that can be started now. `waiting` is the number of packets that are waiting for it."""

    id: str
    lane: str
    command: str
    risk: str
    waiting: int
    since: str


def ready(facts: Facts, agent: str = "") -> list[Ready]:
    """Return ready work. Work that the agent holds or may judge, or that anyone may advance, comes first; within each
    group, work is sorted by the number of waiting packets, by risk and by age.
    """
    waiting, done = _dependents(facts), _satisfied(facts)
    ready_ones = (packet for packet in facts.packets.values() if _is_ready(facts, packet, agent, done))
    rows = [_row(facts, packet, waiting) for packet in ready_ones]
    return sorted(
        rows, key=lambda row: (row.lane == "READY_FOR_DEV", -row.waiting, _RISK.get(row.risk, 3), row.since, row.id)
    )


def _row(facts: Facts, packet: PacketFacts, waiting: Mapping[str, int]) -> Ready:
    said = packet.risk.split()
    name = packet.id.text
    since = packet.glance.began
    count = waiting.get(name, 0) + (waiting.get(packet.id.base, 0) if packet.id.base != name else 0)
    return Ready(
        name,
        packet.lane,
        forward_command(name, packet.lane, facts.policy.lanes, light=packet.light),
        said[0] if said else "",
        count,
        since,
    )


def _is_ready(facts: Facts, packet: PacketFacts, agent: str, done: frozenset[str]) -> bool:
    state = packet.glance
    if not state.sound or state.forked:
        return False
    holder = lease_held(state, facts.moment.now)
    if packet.lane in HELD:
        mine = agent in {holder, state.assignee}
        return bool(agent) and (not _worked(facts, packet, agent) if packet.lane == "IN_REVIEW" else mine)
    if facts.policy.lanes.is_added(packet.lane):
        return True
    if packet.lane != "READY_FOR_DEV" or holder or _is_standing(packet):
        return False
    if state.assignee and agent and state.assignee != agent:
        return False
    return done.issuperset(packet.dependencies())


def _worked(facts: Facts, packet: PacketFacts, agent: str) -> bool:
    """Whether the agent may not judge the work, because it was done by the agent or another actor of the same
    person."""
    workers = coders(packet.log.events)
    if agent in workers or facts.policy.actor_tables is None:
        return agent in workers
    return any(facts.policy.actors.why_not_apart(agent, worker) for worker in workers)


def _is_standing(packet: PacketFacts) -> bool:
    """Whether this is a standing packet, which covers small changes and is never claimed."""
    # Older events do not say it; only the packet does.
    return packet.glance.standing or (
        packet.packet_source is not None and "Standing until " in packet.packet_source.text
    )


def _satisfied(facts: Facts) -> frozenset[str]:
    """Return the packets that satisfy dependencies, and their base ids."""
    done = [packet.id for packet in facts.packets.values() if packet.lane in facts.policy.satisfied_by]
    return frozenset(name for wp_id in done for name in (wp_id.text, wp_id.base))


def _dependents(facts: Facts) -> dict[str, int]:
    """Return, for each packet, the number of unfinished packets that are waiting for it."""
    counts: dict[str, int] = {}
    for packet in facts.packets.values():
        if packet.lane in WAITING:
            for name in packet.dependencies():
                counts[name] = counts.get(name, 0) + 1
    return counts
