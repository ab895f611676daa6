"""The runs of packets, with what the store of runs here says of each."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.bridges.run_endings import ending_of
from workpacket.ledger.state import PacketState
from workpacket.report.linked_runs import LinkedRun, linked_runs, seen
from workpacket.runtime.processes import is_certainly_dead
from workpacket.runtime.stores.contract import Store


def with_store(
    state: PacketState, store: Store, identity: str, leases: Mapping[str, str], *, unfinished: bool
) -> tuple[LinkedRun, ...]:
    """`leases` are the holders of the streams that are held."""
    open_here = {run.run for run in state.open_runs if run.store == identity}
    found = linked_runs(state, unfinished=unfinished)
    return tuple(_as_seen(run, store, leases) if run.run in open_here else run for run in found)


def _as_seen(run: LinkedRun, store: Store, leases: Mapping[str, str]) -> LinkedRun:
    holder = leases.get(run.run, "")
    if store.head(run.run) is None:
        return seen(run, "not begun")
    if holder and not is_certainly_dead(holder):
        return seen(run, "live")
    ending = ending_of(store, run.run)
    if ending is not None:
        return seen(run, "ended", ending.code)
    began, blocked = store.latest("runs", run.run), store.latest("blocks", run.run)
    if began is not None and blocked is not None and blocked.version > began.version:
        return seen(run, "blocked", str(blocked.values().get("code", "")))
    return seen(run, "stale")
