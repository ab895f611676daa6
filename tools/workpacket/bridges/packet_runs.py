"""The runs of packets, combined with the local store. Imports little, because the board uses this module too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workpacket.ledger.fold import PacketState
from workpacket.lifecycle.claims import Ending
from workpacket.report.runs import PacketRun, linked_runs, seen
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.stores.contract import Store
from workpacket.value import replace

_OUTCOMES: Final = {"run.completed": "completed", "run.stopped": "stopped", "run.cancelled": "cancelled"}


def ending_of(store: Store, stream: str) -> Ending | None:
    """Return how the last attempt ended; None if it has not."""
    last, head = store.latest("runs", stream), store.head(stream)
    if head is None:
        gone = next((one for one in store.heads(stream, removed=True) if one.stream == stream), None)
        # Only completed runs are ever removed.
        return None if gone is None else Ending("completed", digest=gone.hash, events=gone.version)
    if last is None or last.type not in _OUTCOMES:
        return None
    ending = Ending(_OUTCOMES[last.type], digest=head.hash, events=head.version)
    return replace(ending, code=str(last.values().get("code", ""))) if last.type == "run.stopped" else ending


def with_store(
    state: PacketState, store: Store, identity: str, leases: Mapping[str, str], *, unfinished: bool
) -> tuple[PacketRun, ...]:
    """Combine the runs in the log with the store. `leases` maps held streams to their holders."""
    open_here = {run.run for run in state.open_runs if run.store == identity}
    found = linked_runs(state, unfinished=unfinished)
    return tuple(_as_seen(run, store, leases) if run.run in open_here else run for run in found)


def _as_seen(run: PacketRun, store: Store, leases: Mapping[str, str]) -> PacketRun:
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
