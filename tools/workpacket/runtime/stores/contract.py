"""What a store promises. Three stores keep it; `workpacket.runtime.testing` tests most of it for any store.

A store keeps streams of events and, beside them, payloads, leases and an index. The promises, in the order in which an
append keeps them, all inside one transaction:

 1. *Idempotency first.* A request whose key is already in the stream, or whose writer and sequence number are already
    stored, is answered with what is stored, before anything else is looked at. If it says something else: `KeyConflict`
    or `WriterConflict`. So a writer that lost the answer may ask again.
 2. *Sequence.* The sequence numbers of a writer have no gaps.
 3. *Fencing.* A request that carries a fence is refused with `LeaseLost` unless that fence is the one in force and its
    lease has not ended. The store's own clock decides, never the caller's. A request without a fence is a message from
    outside (a cancellation, a confirmation) and is let in at any time.
 4. *Expected version.* If given and not the head: `VersionConflict`.
 5. *All or nothing.* Events, payloads and index entries become visible and durable together; only then does the call
    return. An error means that nothing was written, or, after a lost connection, that the writer must ask again (1).

Reading: every event and payload handed out was verified against its hash; what does not verify raises `LogDamaged`.
The index only points at events and never vouches for anything itself. No lock and no transaction is held between calls.
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
    """The end of a stream; `fence` is the highest that ever wrote to it."""

    stream: str
    version: int
    hash: str
    fence: int


class Lease(NamedTuple):
    """The right to write to one stream. Each holder gets a greater token than every holder before."""

    stream: str
    token: int
    holder: str
    seconds_left: float


class Store(Protocol):
    """See the module docstring for what each call promises. A store may be used from several threads."""

    def append(self, request: Append) -> Appended: ...

    def head(self, stream: str) -> Head | None: ...

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """The events with after < version <= until, verified as a chain up to the head when `until` is None."""
        ...

    def payload(self, event: Event) -> bytes | None:
        """The payload of an event, verified; None if the event has none; `PayloadErased` if it was erased."""
        ...

    def erase(self, digest: str) -> bool:
        """Forget the payload with this address wherever it is used. True if there was one."""
        ...

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        """The streams whose name begins with `prefix`, in order of their names; with `removed` also those that were
        removed, whose names are not used again."""
        ...

    def entries(self, kind: str, *, stream: str | None = None, status: str | None = None) -> tuple[IndexEntry, ...]:
        """The index entries of a kind, ordered by stream and version."""
        ...

    def latest(self, kind: str, stream: str) -> Event | None:
        """The verified event behind the newest index entry of a kind in a stream."""
        ...

    def newest(self, kind: str, prefix: str = "") -> tuple[tuple[str, Event | None], ...]:
        """For a kind with one entry per stream: each stream, in order, with the verified event its entry points at.

        None where that event is missing or damaged: one bad stream does not hide the others.
        """
        ...

    def rebuild_index(self) -> None:
        """Make the index anew from the events."""
        ...

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        """Take the lease if nobody holds it; `over` names the token of a holder known to be dead. Else `LeaseHeld`."""
        ...

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Prolong a lease that is still in force, or `LeaseLost`."""
        ...

    def release(self, lease: Lease) -> None:
        """Give the lease up; giving up one that is no longer held changes nothing."""
        ...

    def lease(self, stream: str) -> Lease | None:
        """The lease in force, if any."""
        ...

    def leases(self) -> tuple[Lease, ...]:
        """All leases in force, in order of their streams."""
        ...

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        """Take over a whole stream from another store, hashes and all. Refused if the stream exists or is damaged."""
        ...

    def remove(self, stream: str, head: str) -> None:
        """Retention: forget a stream whose head hash is `head`, keeping a tombstone so that its name is not reused."""
        ...

    @property
    def identity(self) -> str:
        """What tells this store from another one that may hold runs of the same names."""
        ...

    def close(self) -> None: ...


class Witness(Protocol):
    """Keeps a record, in another place, of the runs that belong to work packets.

    No transaction spans both places. So it is told of an attempt before the store is, and of its end after.
    """

    def begins(self, store: Store, stream: str, packet: str) -> None:
        """An attempt is about to be recorded, under the lease of its stream. What this raises keeps it from it."""
        ...

    def ended(self, store: Store, stream: str, packet: str) -> None:
        """The end of an attempt is durable. Raises nothing."""
        ...


def lost_events(store: Store, stream: str) -> int:
    """How many events a stream of this name had in what the store lost; 0 if nothing is known of one.

    Asked of the attribute: a store that another one watches over would not be seen to have it by `isinstance`.
    """
    lost: Callable[[str], int] | None = getattr(store, "lost", None)
    return 0 if lost is None else lost(stream)


@runtime_checkable
class ErasesAtOnce(Protocol):
    """A store to which many erasures are one transaction: elsewhere each is one."""

    def erase_all(self, digests: Iterable[str]) -> None: ...
