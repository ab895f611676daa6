"""The runs of packets, for commands that show packets: the store is opened only where a log has an open link."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.errors import WorkpacketError
from workpacket.ledger.state import PacketState
from workpacket.model.lanes import lane_of_token
from workpacket.report.linked_runs import LinkedRun, linked_runs


def runs_of(states: Mapping[str, PacketState], *, ask_store: bool = True) -> dict[str, tuple[LinkedRun, ...]]:
    """By packet, of those that have any. What the store cannot say, because it cannot be read, the log says alone."""
    some = {name: state for name, state in states.items() if state.runs}
    found = None
    if ask_store and any(state.open_runs for state in some.values()):
        try:
            found = _with_store(some)
        except (WorkpacketError, OSError):
            found = None  # `doctor` says what is wrong with the store
    if found is None:
        found = {name: linked_runs(state, unfinished=_unfinished(state)) for name, state in some.items()}
    return {name: runs for name, runs in found.items() if runs}


def _with_store(states: Mapping[str, PacketState]) -> dict[str, tuple[LinkedRun, ...]]:
    from workpacket.bridges.packet_runs import with_store
    from workpacket.cli.store_door import open_runtime

    with open_runtime() as runtime:
        store = runtime.store
        identity, held = store.identity, {lease.stream: lease.holder for lease in store.leases()}
        return {
            name: with_store(state, store, identity, held, unfinished=_unfinished(state))
            for name, state in states.items()
        }


def _unfinished(state: PacketState) -> bool:
    lane = lane_of_token(state.lane)
    return lane is None or lane.unfinished
