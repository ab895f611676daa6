"""Which approvals were used already, and by what."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.approvals.policy import POLICY_GATE
from workpacket.ledger.log import Log
from workpacket.lifecycle.approval_terms import CONSUMING
from workpacket.model.events import Event
from workpacket.shell.approvals.events import earlier, gates_asked
from workpacket.shell.approvals.policy_history import policy_states
from workpacket.shell.base.revision import known_to, policy_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.approvals.facts import Approvals


def policy_changes(approvals: Approvals) -> Mapping[str, frozenset[str]]:
    """The approvals of changes that have arrived on the base since they were given."""
    states = policy_states(approvals.repository, approvals.base.commit)
    used: dict[str, frozenset[str]] = {}
    for said in approvals.claims.values():
        if said.gate == POLICY_GATE and said.subjects in states:
            commits = frozenset(states[said.subjects])
            used[said.nonce] = commits - known_to(approvals.repository, said.base, commits)
    return used


def consumptions(approvals: Approvals, log: Log, consumer: Event | None) -> Mapping[str, frozenset[str]]:
    """Which events used which nonce. An event of another packet cannot use one of this packet."""
    arrived = approvals.arrivals(consumer.packet) if consumer is not None else {}
    settled = arrived.get(consumer.path) if consumer is not None else None
    used: dict[str, set[str]] = {}
    for event in log.events:
        if not event.attest:
            continue
        gates = gates_asked(event, policy_at(approvals.repository, approvals.policy_commit(event)).policy)
        if settled is not None and event != consumer and not earlier(arrived.get(event.path), settled):
            continue
        for digest in event.attest:
            said = approvals.claims.get(f"{digest}.dsse.json")
            if said is not None and (event.type in CONSUMING or said.gate in gates):
                used.setdefault(said.nonce, set()).add(event.id)
    return {nonce: frozenset(events) for nonce, events in used.items()}
