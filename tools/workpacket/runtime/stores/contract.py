"""The contract of a store. We have three stores; `workpacket.runtime.testing` tests most of the contract for any store.

A store keeps streams of events, with payloads, leases and an index. The promises, in the order in which an append keeps
them, all inside one transaction:

 1. *Idempotency first.* A request whose key is already in the stream, or whose writer and sequence number are already
    stored, is answered with the stored events, before anything else is examined. If its content differs: `KeyConflict`
    or `WriterConflict`. Therefore a writer that lost the answer may ask again.
 2. *Sequence.* The sequence numbers of a writer have no gaps.
 3. *Fencing.* A request that carries a fence is refused with `LeaseLost` unless that fence is the one in force and its
    lease has not ended. The store's own clock decides, never the caller's. A request without a fence is a message from
    outside (a cancellation, a confirmation) and is accepted at any time.
 4. *Expected version.* If given and not the head: `VersionConflict`.
 5. *All or nothing.* Events, payloads and index entries become visible and durable together; only then does the call
    return. An error means that nothing was written or, after a lost connection, that the writer must ask again (1).

Reading: every event and payload returned was verified against its hash; a mismatch raises `LogDamaged`. The index only
points to events and is never evidence itself. No lock or transaction is held between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from workpacket.runtime.records.events import Event, IndexEntry, NewEvent


class Append(NamedTuple):
    """A request to append `events` to `stream`. `key` belongs to the first of them; the times are claims."""

    stream: str
    events: tuple[NewEvent, ...]
    writer: str
    writer_seq: int
    actor: str
    occurred_at: int
    recorded_at: int
    key: str | None = None
    fence: int | None = None
    expected_version: int | None = None


class Appended(NamedTuple):
    events: tuple[Event, ...]
    duplicate: bool


class Head(NamedTuple):
    """The end of a stream; `fence` is the highest fence that ever wrote to it."""

    stream: str
    version: int
    hash: str
    fence: int


class Lease(NamedTuple):
    """The right to write to one stream. Each holder gets a greater token than all earlier holders."""

    stream: str
    token: int
    holder: str
    seconds_left: float


class Store(Protocol):
    """The operations of a store, whose promises are listed in the module docstring. A store may be used from several
    threads.
    """

    def append(self, request: Append) -> Appended: ...

    def head(self, stream: str) -> Head | None: ...

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Yield the events with after < version <= until, verified as a chain up to the head when `until` is None."""
        ...

    def payload(self, event: Event) -> bytes | None:
        """Return the verified payload of an event, None if it has none; raise `PayloadErased` if it was erased."""
        ...

    def erase(self, digest: str) -> bool:
        """Erase the payload with this address wherever it is used. Return whether there was one."""
        ...

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        """Return the streams whose names begin with `prefix`, ordered by name; `removed` adds those removed by
        retention, whose names are not reused.
        """
        ...

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        """Return the index entries of a kind, ordered by stream and version."""
        ...

    def latest(self, kind: str, stream: str) -> Event | None:
        """Return the verified event of the newest index entry of a kind in a stream."""
        ...

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        """For a kind with one entry per stream, return each stream, in order, with the verified event of its entry.

        The event is None if it is missing or damaged, so that one bad stream does not hide the others.
        """
        ...

    def rebuild_index(self) -> None:
        """Rebuild the index from the events."""
        ...

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        """Take the lease if it is free; `over` is the token of a holder known to be dead. Otherwise raise
        `LeaseHeld`.
        """
        ...

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Renew a lease that is still in force, or raise `LeaseLost`."""
        ...

    def release(self, lease: Lease) -> None:
        """Release the lease. A lease that is no longer held is ignored."""
        ...

    def lease(self, stream: str) -> Lease | None:
        """Return the lease in force, if any."""
        ...

    def leases(self) -> tuple[Lease, ...]:
        """Return all leases in force, ordered by stream."""
        ...

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        """Import a whole stream from another store, with its hashes. A stream that exists or is damaged is refused."""
        ...

    def remove(self, stream: str, head: str) -> None:
        """Remove a stream whose head hash is `head`, for retention, leaving a tombstone so that its name is not
        reused.
        """
        ...

    @property
    def identity(self) -> str:
        """Return what distinguishes this store from another one that may contain runs with the same names."""
        ...

    def close(self) -> None: ...


class Witness(Protocol):
    """Records elsewhere the runs that belong to work packets.

    No transaction spans both places, so it is notified of an attempt before the store is, and of its end afterwards.
    """

    def begins(self, store: Store, stream: str, packet: str) -> None:
        """Announce an attempt that is about to be recorded, under the lease of its stream. An error raised here
        prevents the attempt.
        """
        ...

    def ended(self, store: Store, stream: str, packet: str) -> None:
        """Report that the end of an attempt is durable. Raises nothing."""
        ...


def lost_events(store: Store, stream: str) -> int:
    """Return how many events a stream of this name had in a part that the store lost; 0 if none is known.

    The attribute is looked up because `isinstance` would not see it on a wrapped store.
    """
    lost: Callable[[str], int] | None = getattr(store, "lost", None)
    return 0 if lost is None else lost(stream)


@runtime_checkable
class ErasesAtOnce(Protocol):
    """A store that can group many erasures in one transaction; in other stores, each erasure is a transaction of its
    own.
    """

    def erase_all(self, digests: Iterable[str]) -> None: ...
