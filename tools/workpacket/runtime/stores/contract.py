"""The contract of a store. Three stores ship with the package; `workpacket.runtime.testing` tests the contract for any
other.

A store keeps streams of events, with payloads, leases and an index. The promises, in the order in which an append keeps
them, all inside one transaction:

 1. *Idempotency first.* A request whose key is already in the stream, or whose writer and sequence number are already
    stored, is answered with the stored events, before anything else is examined. If its content differs: `KeyConflict`
    or `WriterConflict`. Therefore a writer that lost the answer may ask again.
 2. *Sequence.* The sequence numbers of a writer have no gaps.
 3. *Fencing.* A request that carries a fence is refused with `LeaseLost` unless that fence is current and its
    lease has not expired. The store's own clock counts, never the caller's. A request without a fence is a message from
    outside (a cancellation, a confirmation) and is accepted at any time.
 4. *Expected version.* If given and not the head: `VersionConflict`.
 5. *All or nothing.* Events, payloads and index entries become visible and durable together; only then does the call
    return. An error means that nothing was written or, after a lost connection, that the writer must ask again (1).

Reading: every event and payload returned was verified against its hash; a mismatch raises `LogDamaged`. The index only
points to events and is never evidence itself. No lock or transaction is held between calls.

The rules of an append that every store shares are pure functions in this module: a store looks up the facts inside its
transaction, calls these functions, and writes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from workpacket.problem import Problem
from workpacket.runtime.errors import (
    KeyConflict,
    LeaseHeld,
    LeaseLost,
    PayloadErased,
    RuntimeFault,
    VersionConflict,
    WriterConflict,
)
from workpacket.runtime.holders import shown_holder
from workpacket.runtime.records.events import Event, IndexEntry, NewEvent, index_of, sealed_event
from workpacket.runtime.records.jcs import address_of


class Append(NamedTuple):
    """A request to append `events` to `stream`. `key` belongs to the first event; the times are only claims."""

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
    """The end of a stream; `fence` is the highest fence ever used to write to it."""

    stream: str
    version: int
    hash: str
    fence: int


class Lease(NamedTuple):
    """The right to write to one stream. Each holder gets a token that is greater than the tokens of all earlier
    holders."""

    stream: str
    token: int
    holder: str
    seconds_left: float


class Store(Protocol):
    """The operations of a store, whose promises are listed in the module docstring. A store may be used by several
    threads.
    """

    def append(self, request: Append) -> Appended: ...

    def head(self, stream: str) -> Head | None: ...

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Yield the events with after < version <= until, verified as a chain up to the head if `until` is None."""
        ...

    def payload(self, event: Event) -> bytes | None:
        """Return the verified payload of an event, or None if it has none; raise `PayloadErased` if it was erased."""
        ...

    def erase(self, digest: str) -> bool:
        """Erase the payload with this address wherever it is used. Return whether there was such a payload."""
        ...

    def heads(
        self, prefix: str = "", *, newest_first: bool = False, limit: int | None = None, removed: bool = False
    ) -> tuple[Head, ...]:
        """Return the streams whose names begin with `prefix`, ordered by name; `removed` also includes those removed by
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
        """For a kind with one entry per stream, return the streams in order, each with the verified event of its entry.
        The event is None if it is missing or damaged, so that one bad stream does not hide the others.
        """
        ...

    def index_kinds(self) -> tuple[str, ...]:
        """Return the kinds that have entries, in order."""
        ...

    def rebuild_index(self) -> None:
        """Rebuild the index from the events."""
        ...

    def acquire(self, stream: str, holder: str, seconds: float, *, over: int | None = None) -> Lease:
        """Take the lease if it is free; `over` is the token of a holder known to be dead. If the lease is not free,
        raise `LeaseHeld`.
        """
        ...

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Renew a lease that has not expired, or raise `LeaseLost`."""
        ...

    def release(self, lease: Lease) -> None:
        """Release the lease. A lease that is no longer held is ignored."""
        ...

    def lease(self, stream: str) -> Lease | None:
        """Return the current lease, if any."""
        ...

    def leases(self) -> tuple[Lease, ...]:
        """Return all current leases, ordered by stream."""
        ...

    def restore(self, events: Iterable[Event], payloads: Iterable[bytes]) -> None:
        """Import a whole stream from another store, with its hashes. A stream that is damaged or already exists is
        refused."""
        ...

    def remove(self, stream: str, head: str) -> None:
        """Remove a stream whose head hash is `head`, for retention, leaving a tombstone so that its name is not
        reused.
        """
        ...

    @property
    def identity(self) -> str:
        """Return what distinguishes this store from other stores that may contain runs with the same names."""
        ...

    def close(self) -> None: ...


class Witness(Protocol):
    """Records the runs of work packets elsewhere. No transaction spans both places, so the witness is notified before
    the store records an attempt, and after the store records the attempt's end.
    """

    def begins(self, store: Store, stream: str, packet: str) -> None:
        """Announce an attempt that is about to be recorded, under the lease on its stream. An error raised here
        prevents the attempt.
        """
        ...

    def ended(self, store: Store, stream: str, packet: str) -> None:
        """Report that the end of an attempt is durable. This never raises an error."""
        ...


def lost_events(store: Store, stream: str) -> int:
    """Return how many events a stream with this name had before the store lost it; 0 if no loss is known. The method is
    looked up by name because `isinstance` would not find it on a wrapped store.
    """
    lost: Callable[[str], int] | None = getattr(store, "lost", None)
    return 0 if lost is None else lost(stream)


LINES = "#lines 1"  # the name of what was derived from all runs; what was derived from one has the name of its stream


@runtime_checkable
class KeepsDerived(Protocol):
    """A store that keeps what was derived from the log, so that it need not be derived each time.

    Nothing derived is evidence: it is used only while the hash of the chain that it was derived from is current, and
    losing it costs nothing but time.
    """

    def derived(self, name: str) -> bytes | None:
        """Return what was kept under this name; None if there is nothing, or if it is damaged."""
        ...

    def keep_derived(self, name: str, content: bytes) -> None: ...

    def head(self, stream: str) -> Head | None: ...

    def read(self, stream: str, after: int = 0, until: int | None = None) -> Iterator[Event]: ...

    def events_at(self, stream: str, versions: Sequence[int]) -> list[Event]:
        """Return the events with these versions that exist, in order, each verified individually."""
        ...

    def stored_payloads(self, events: Iterable[Event]) -> dict[str, bytes]:
        """Return, by address, those payloads of these events that were not erased. They are not verified."""
        ...

    def ends(self, prefix: str = "") -> dict[str, str]:
        """Return the hash at the end of each stream, by stream name and in that order. The rows are not checked for
        damage."""
        ...


@runtime_checkable
class ErasesAtOnce(Protocol):
    """A store that can group many erasures in one transaction; in other stores, each erasure is a separate
    transaction."""

    def erase_all(self, digests: Iterable[str]) -> None: ...


def name_was_used(stream: str) -> VersionConflict:
    return VersionConflict(
        f"{stream} was removed by retention, and its name cannot be reused",
        code="key_conflict", hint="give the run a different key, or omit the key, so that the run gets a number",
    )  # fmt: skip


def lease_held(stream: str, holder: str, token: int, left: float) -> LeaseHeld:
    """Return the error for an `acquire` while another holder has the lease."""
    return LeaseHeld(
        f"{shown_holder(holder)} is working on {stream}; the lease lasts for another {left:.0f} s, and is being "
        "renewed",
        details={"stream": stream, "holder": holder, "token": token, "seconds_left": left},
    )


def require_same_as_stored(request: Append, stored: Sequence[Event], *, by_key: bool) -> None:
    """Require that a repeated request has the same content as the first one."""
    wanted = [(new.type, new.type_version, new.data, _address(new)) for new in request.events]
    if wanted == [(event.type, event.type_version, event.data, event.payload) for event in stored]:
        return
    first = stored[0] if stored else None
    if by_key:
        raise KeyConflict(
            f"{request.stream}: the key {request.key!r} is already used for a different "
            f"{(first.type if first else 'record')}",
            details={"stream": request.stream, "key": request.key, "version": first.version if first else 0},
        )
    raise WriterConflict(
        f"writer {request.writer} has already used the sequence number {request.writer_seq} for a different request",
        details={"stream": request.stream, "writer": request.writer, "writer_seq": request.writer_seq},
    )


def require_next_in_sequence(request: Append, last_seq: int) -> None:
    if request.writer_seq != last_seq + 1:
        raise WriterConflict(
            f"writer {request.writer} is at {last_seq}, so {request.writer_seq} cannot be its next sequence number",
            details={"stream": request.stream, "writer": request.writer, "writer_seq": request.writer_seq},
        )


def require_fence(request: Append, token: int, seconds_left: float, last_fence: int) -> None:
    """Require a current fence that is not older than the last one the stream has seen."""
    if request.fence is None:
        return
    if request.fence != token or request.fence < last_fence:
        why = f"lease {request.fence} of {request.stream} was taken over (now {max(token, last_fence)})"
    elif seconds_left <= 0:
        why = f"lease {request.fence} of {request.stream} expired {-seconds_left:.1f} s ago"
    else:
        return
    raise LeaseLost(why, details={"stream": request.stream, "fence": request.fence, "in_force": token})


def require_version(request: Append, version: int) -> None:
    if request.expected_version is not None and request.expected_version != version:
        raise VersionConflict(
            f"{request.stream} is at version {version}, not {request.expected_version}: another writer wrote first",
            details={"stream": request.stream, "version": version},
        )


def events_to_store(request: Append, version: int, previous: str) -> tuple[Event, ...]:
    """Return the events to store in the stream after `version`, whose hash is `previous`."""
    stored: list[Event] = []
    stream, news, writer, seq, actor, occurred_at, recorded_at, key, fence, _ = request
    for offset, (kind, data, kind_version, payload) in enumerate(news):
        address = None if payload is None else address_of(payload)
        own_key = key if offset == 0 else None
        event = sealed_event(
            (
                stream, version + offset + 1, kind, kind_version, occurred_at, recorded_at, actor, writer, seq + offset,
                own_key, fence or 0, data, address, previous,
            )
        )  # fmt: skip
        stored.append(event)
        previous = event.hash
    return tuple(stored)


def _address(new: NewEvent) -> str | None:
    return None if new.payload is None else address_of(new.payload)


class OfferedJob(NamedTuple):
    """A run to execute. `request` is what its worker needs to know, as JSON. At most `limit` jobs in one `lane` are
    active at a time.
    """

    stream: str
    request: str
    priority: int
    lane: str | None
    limit: int
    delay: float
    max_tries: int


class ClaimedJob(NamedTuple):
    """A claimed job with the token of the lease taken with it, and whether its stream already exists."""

    id: int
    stream: str
    request: str
    token: int
    attempt: int
    max_tries: int
    begun: bool


class QueueItem(NamedTuple):
    """One line of the queue. `reason` says why the job is waiting again or dead."""

    id: int
    stream: str
    state: str
    priority: int
    tries: int
    reason: str
    detail: str


class JobNews(Protocol):
    def wait(self, seconds: float) -> None:
        """Wait until there may be a job, but at most this many seconds."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class KeepsJobs(Protocol):
    """A store that also keeps queues, each with a name."""

    def offer_job(self, queue: str, job: OfferedJob) -> None:
        """Put a job into the queue, unless the queue already has one for the same stream."""
        ...

    def claim_job(self, queue: str, holder: str, seconds: float, finished: tuple[int, int] | None) -> ClaimedJob | None:
        """Claim the next job and the lease on its stream, after removing the job `finished`, which is passed with its
        token."""
        ...

    def append_last(
        self, request: Append, job: int, queue: str, holder: str, seconds: float | None
    ) -> tuple[Appended, ClaimedJob | None]:
        """Append the end of a run, remove its job, release its lease, and, unless `seconds` is None, claim the next
        job."""
        ...

    def settle_job(
        self, job: int, token: int, state: str, delay: float, reason: str, detail: str, *, tried: bool
    ) -> bool:
        """Set the state (done, waiting, delayed, dead) of a job that is held with this token; return False if the job
        is not held with it."""
        ...

    def refresh_jobs(self, queue: str) -> None:
        """Put back into the queue the jobs whose delay has elapsed and those whose lease has expired."""
        ...

    def revive_job(self, job: int) -> bool:
        """Return a dead job to the queue, with its full number of tries restored."""
        ...

    def jobs(self, queue: str) -> tuple[QueueItem, ...]: ...

    def job_news(self, queue: str) -> JobNews: ...


@runtime_checkable
class Verifiable(Protocol):
    """A store that can verify more than its contents: for example, the pages of a file. Codes are stop reasons."""

    def problems(self) -> tuple[Problem, ...]:
        """Verify everything, including the contents."""
        ...


class StoreCheck(NamedTuple):
    """One line of `runtime doctor`: what was checked, what is wrong, and what was found."""

    name: str
    problems: tuple[Problem, ...]
    found: str


@runtime_checkable
class Inspectable(Protocol):
    """A store whose environment `runtime doctor` should check: versions, durability, rights."""

    @property
    def shown(self) -> str:
        """Return the location, without a password."""
        ...

    def checks(self) -> Iterator[StoreCheck]: ...


def problems_of(store: Store) -> tuple[Problem, ...]:
    """Return everything that is wrong with a store, as far as the store can tell."""
    return store.problems() if isinstance(store, Verifiable) else tuple(contents_of(store))


def contents_of(store: Store) -> list[Problem]:
    """Read and verify every event and payload, one after the other: only the index is held as a whole."""
    problems: list[Problem] = []
    wanted = index_of(event for head in store.heads() for event in _intact(store, head.stream, problems))
    return problems + _index(store, set(wanted.values()))


def stream_problems(store: Store, stream: str) -> list[Problem]:
    """Return the problems of one stream."""
    problems: list[Problem] = []
    for _ in _intact(store, stream, problems):
        pass
    return problems


def _intact(store: Store, stream: str, problems: list[Problem]) -> Iterator[Event]:
    """Yield the intact events of a stream; what is wrong with it is added to `problems`."""
    try:
        for event in store.read(stream):
            yield event
            problems += _payload(store, event)
    except RuntimeFault as fault:
        problems.append(Problem(fault.code, fault.message))


def _payload(store: Store, event: Event) -> list[Problem]:
    try:
        store.payload(event)
    except PayloadErased:
        return []  # intentional
    except RuntimeFault as fault:
        return [Problem(fault.code, fault.message)]
    return []


def _index(store: Store, wanted: set[IndexEntry]) -> list[Problem]:
    kinds = {entry.kind for entry in wanted} | set(store.index_kinds())
    present = {entry for kind in kinds for entry in store.entries(kind)}
    if wanted == present:
        return []
    return [
        Problem(
            "store_corrupt",
            f"the index differs from the log in {len(wanted ^ present)} entries; rebuild it: "
            "workpacket runtime doctor --repair-index",
        )
    ]
