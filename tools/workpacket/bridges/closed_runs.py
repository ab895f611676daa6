"""Runs that ended, as the logs of their packets say it, compared with their streams here.

`run.closed` keeps the hash that the stream had when the run ended. Who can write the store can compute all hashes in it
anew; the log in git is the place outside of it that they do not reach, and a store that was put back shows by it too.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.git.repository import Repository
from workpacket.ledger.state import Run
from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.stores.contract import Store
from workpacket.shell.governing.run_links import linked_packets


def differing_ends(repository: Repository, store: Store) -> Iterator[str]:
    """Every run of this store that did not end here as the log says."""
    identity = store.identity
    for state in linked_packets(repository):
        for run in state.runs:
            what = _difference(store, run) if run.store == identity else ""
            if what:
                yield f"{run.run}: by the log of {state.packet} {what}"


def _difference(store: Store, run: Run) -> str:
    digest = (run.closed.text("stream_sha256") or "") if run.closed is not None else ""
    count = run.closed.data.get("events") if run.closed is not None else None
    if not digest or not isinstance(count, int):
        return ""
    head = store.head(run.run)
    head = head or next((one for one in store.heads(run.run, removed=True) if one.stream == run.run), None)
    if head is None or head.version < count:
        return f"it ended with {count} events, and the store has {head.version if head is not None else 0}"
    found = head.hash if head.version == count else _hash_at(store, run.run, count)
    return f"it ended as {digest[:12]}, and the store has {found[:12]}" if found and found != digest else ""


def _hash_at(store: Store, stream: str, version: int) -> str:
    """'' where it cannot be read: what was removed, and what the check of the store names."""
    try:
        return next((event.hash for event in store.read(stream, version - 1, version)), "")
    except LogDamaged:
        return ""
