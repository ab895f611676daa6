"""Claims that all clones see: a lease in the store that the policy names, taken before the log is written.

The log in git remains authoritative and records who holds what, but clones learn of each other's logs only by merging,
when two people may already have done the work. The store knows at once. If it cannot be reached, the claim is still
made, with a note that it is uncertain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from workpacket.cli.options import Arguments
from workpacket.cli.packet_command import actor_of, packet_command, refuse
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.model.canonical import Json
from workpacket.problem import Problem
from workpacket.report.escape import escape
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import gather, here
from workpacket.shell.held import look
from workpacket.value import replace

if TYPE_CHECKING:
    from workpacket.runtime.stores.contract import Store  # the runtime is imported where a policy asks for it

Decide = Callable[[Facts, PacketFacts], Answer]

PATIENCE = 3.0  # seconds for which a person waits for a server that does not answer
AWAY = "store_busy"


class _Team(NamedTuple):
    """The store named by the policy; None with the reason if it cannot be reached."""

    store: Store | None
    why: str
    hours: int


def claim_for_all(arguments: Arguments, decide: Decide) -> int:
    """Execute a claim or a renewal while no other clone can make one."""
    # Before anything is asked of a server.
    look(here(), head=False).require_visible()
    team = _team()
    if team is None:
        return packet_command(arguments, decide)
    if team.store is None:
        return packet_command(arguments, _noting(decide, "unseen", _unseen(team.why)))
    try:
        return _claim(arguments, decide, team.store, team.hours)
    finally:
        team.store.close()


def sync_team_claim(arguments: Arguments, status: int) -> int:
    """After a command that moved a packet, keeps the shared claim only while someone works on the packet. `status` is
    that of the command.
    """
    team = _team() if status == 0 else None
    if team is not None and team.store is not None:
        try:
            _sync(arguments, team.store, team.hours)
        finally:
            team.store.close()
    elif team is not None:
        sys.stderr.write(f"note: {escape(team.why)}; in other clones the claim ends with its lease\n")
    return status


def _sync(arguments: Arguments, store: Store, hours: int) -> None:
    """A clone may only release claims that it knows: the holder must be named in its log."""
    from workpacket.runtime.errors import LeaseHeld

    stream = _name_of(arguments)
    packet = gather(here(), [stream.removeprefix("packet/")], actor_of(arguments, here())).packets
    state = packet[stream.removeprefix("packet/")].state
    held = store.lease(stream)
    if state.lane != "IN_PROGRESS" or state.lease is None:
        if held is not None and held.holder in state.holders:
            store.release(held)
        return
    holder = state.lease.holder
    try:
        store.acquire(stream, holder, hours * 3600.0, over=held.token if held and held.holder == holder else None)
    except LeaseHeld as other:
        said = f"{other.details['holder']} holds {state.packet} in another clone, while {holder} holds it in this one"
        sys.stderr.write(f"note: {escape(said)}; agree on who continues, and have the other one release it\n")


def _claim(arguments: Arguments, decide: Decide, store: Store, hours: int) -> int:
    from workpacket.runtime.errors import LeaseHeld

    stream = _name_of(arguments)
    packet = stream.removeprefix("packet/")
    actor = actor_of(arguments, here()).id
    before = store.lease(stream)
    over = before.token if before is not None and before.holder == actor else None
    try:
        lease = store.acquire(stream, actor, hours * 3600.0, over=over)
    except LeaseHeld as held:
        holder, left = held.details["holder"], held.details["seconds_left"]
        until = f"for another {float(str(left)) / 3600:.1f} hours at most"
        unmet = Problem("claimed_by_other", f"{holder} holds {packet} in another clone, {until}", hint="git pull")
        return refuse(arguments, packet, (unmet,))
    status = 9
    try:
        status = packet_command(arguments, _noting(decide, "taken", ""))
        return status
    finally:
        if status != 0 and over is None:
            store.release(lease)


def _name_of(arguments: Arguments) -> str:
    return f"packet/{packet_called(str(here().root), arguments.words[0]).text}"


def _team() -> _Team | None:
    """None if the policy of the base does not name a store."""
    policy = read_base_policy(here()).lifecycle
    if not policy.claim_store:
        return None
    url = os.environ.get(policy.claim_store, "")
    if not url:
        return _Team(None, f"{policy.claim_store} is not set here", policy.lease_hours)
    from workpacket.runtime.errors import RuntimeFault
    from workpacket.runtime.stores.place import store_on_server

    try:
        return _Team(store_on_server(url, patience=PATIENCE), "", policy.lease_hours)
    except RuntimeFault as fault:
        if fault.code != AWAY:
            raise
        return _Team(None, "the team's store does not answer", policy.lease_hours)


def _unseen(why: str) -> str:
    return (
        f"{why}: other clones and this one cannot see each other's claims; if someone else claims the packet too, "
        "`workpacket check` reports it when the branches are merged"
    )


def _noting(decide: Decide, word: str, note: str) -> Decide:
    def noted(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        if not isinstance(answer, Planned):
            return answer
        data: dict[str, Json] = {**answer.data, "shared_claim": word}
        return replace(answer, data=data, notes=(*answer.notes, *([note] if note else [])))

    return noted
