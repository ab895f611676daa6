"""The runs of packets, for commands that show packets: the store is opened only where a log has an open link."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.errors import WorkpacketError
from workpacket.ledger.fold import PacketState
from workpacket.model.lanes import lane_of_token
from workpacket.report.runs import PacketRun, linked_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.runtime.stores.contract import Store

_PATIENCE = 3.0  # seconds


def runs_of(states: Mapping[str, PacketState], *, ask_store: bool = True) -> dict[str, tuple[PacketRun, ...]]:
    """By packet, for packets with runs. If the store cannot be read, only the log is used."""
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


def _with_store(states: Mapping[str, PacketState]) -> dict[str, tuple[PacketRun, ...]] | None:
    """None if there is no store."""
    from workpacket.bridges.packet_runs import with_store

    store = _store()
    if store is None:
        return None
    try:
        identity, held = store.identity, {lease.stream: lease.holder for lease in store.leases()}
        return {
            name: with_store(state, store, identity, held, unfinished=_unfinished(state))
            for name, state in states.items()
        }
    finally:
        store.close()


def _store() -> Store | None:
    """Opened directly, because the runtime around it would cost more than the board, which must be fast."""
    from pathlib import Path

    from workpacket.runtime.stores.place import server_url, store_path

    if server_url():
        from workpacket.runtime.stores.place import store_on_server

        return store_on_server(server_url(), patience=_PATIENCE)
    path = store_path(Path.cwd())
    if not path.exists():
        return None
    from workpacket.runtime.stores.sqlite.store import SQLiteStore

    return SQLiteStore(path, timeout=_PATIENCE)


def cache_dependencies(shown: Mapping[str, tuple[PacketRun, ...]]) -> tuple[bool, list[str]]:
    """Whether the output stays correct until a file changes, and which files besides the log. It does not for a live
    run, whose process may end at any time. Runs that are not live only change in the store.
    """
    states = {run.state for runs in shown.values() for run in runs}
    if states <= {"blocked"}:
        return True, []
    from pathlib import Path

    from workpacket.runtime.stores.place import server_url, store_path

    if server_url() or "live" in states:
        return False, []
    path = str(store_path(Path.cwd()))
    return True, [path, f"{path}-wal"]


def _unfinished(state: PacketState) -> bool:
    lane = lane_of_token(state.lane)
    return lane is None or lane.unfinished
