"""The work queue of a PostgreSQL store: runs are offered, workers claim them, and what cannot be finished is kept.

Claiming a job takes the lease of its run in the same transaction. A worker that dies loses the lease, and the job waits
again: whoever claims it next resumes the run at its checkpoint. What is finished leaves the queue; the run itself says
how it ended. A job that failed too often, or that only a person can help, is dead: it stays, with its reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.catalog import stream_prefix
from workpacket.runtime.clock import random_id
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.stores.contract import Append, Appended, Lease, Store
from workpacket.runtime.stores.postgres.access import Row
from workpacket.runtime.stores.postgres.reader import News
from workpacket.runtime.stores.postgres.store import PostgresStore


class Offer(NamedTuple):
    """A run that is to be done, the highest priority first. Of one `lane` at most `limit` are at work at a time."""

    name: str
    packet: str = ""
    key: str = ""
    inputs: Mapping[str, Json] | None = None
    priority: int = 0
    delay: float = 0.0
    lane: str | None = None
    limit: int = 1
    max_tries: int = 5


class Job(NamedTuple):
    """A claimed job: the run it is about, whether that was begun before, and the lease that was taken with it."""

    id: int
    name: str
    packet: str
    key: str
    inputs: Mapping[str, Json]
    attempt: int
    max_tries: int
    lease: Lease
    begun: bool


class QueueItem(NamedTuple):
    """A line of the queue. `reason` is why it waits again or is dead."""

    id: int
    stream: str
    state: str
    priority: int
    tries: int
    reason: str
    detail: str


class Queue:
    def __init__(self, store: PostgresStore, name: str = "default") -> None:
        self.store = store
        self.name = name

    def offer(self, offer: Offer) -> str:
        """Offer a run; gives its id. One that is offered already is not offered twice."""
        key = offer.key or random_id()
        stream = stream_prefix(offer.name, offer.packet) + key
        inputs = dict(offer.inputs or {})
        request = stored_text({"name": offer.name, "packet": offer.packet, "key": key, "inputs": inputs})
        self.store.access.require_writable()
        self.store.access.one(
            "SELECT {s}.offer_1(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (self.store.project, self.name, stream, request, offer.priority, offer.lane, offer.limit, offer.delay,
             offer.max_tries),
        )  # fmt: skip
        return stream

    def claim(self, holder: str, seconds: float, *, finished: Job | None = None) -> Job | None:
        """Take the next job and the lease of its run; `finished` leaves the queue in the same transaction."""
        done = (finished.id, finished.lease.token) if finished is not None else (None, None)
        row = self.store.access.one(
            "SELECT * FROM {s}.claim_1(%s, %s, %s, %s, %s, %s)",
            (self.store.project, self.name, holder, seconds, *done),
        )
        return _claimed(row, holder, seconds)

    def complete(self, job: Job, last: Append, *, seconds: float | None) -> tuple[Appended, Job | None]:
        """Append what ends the run, and in the same transaction finish its job, give up its lease and take the next.

        `seconds` None: take none. None is taken either where a job of a lane is next; that is for `claim`.
        """
        holder = job.lease.holder
        appended, row = self.store.append_last(last, job.id, self.name, holder, seconds)
        return appended, _claimed(row, holder, seconds or 0.0)

    def finish(self, job: Job) -> bool:
        return self._settle(job, "done")

    def give_back(
        self, job: Job, *, delay: float = 0.0, reason: str = "", detail: str = "", tried: bool = True
    ) -> bool:
        """Let the job wait again, for `delay` seconds at least. `tried` False: this attempt does not count."""
        return self._settle(job, "delayed" if delay > 0 else "waiting", delay, reason, detail, tried=tried)

    def bury(self, job: Job, reason: str, detail: str) -> bool:
        """Nobody is to try it again before a person has looked."""
        return self._settle(job, "dead", 0.0, reason, detail)

    def _settle(
        self, job: Job, state: str, delay: float = 0.0, reason: str = "", detail: str = "", *, tried: bool = True
    ) -> bool:
        (done,) = self.store.access.one(
            "SELECT {s}.settle_1(%s, %s, %s, %s, %s, %s, %s, %s)",
            (self.store.project, job.id, job.lease.token, state, delay, reason, detail, not tried),
        )
        return bool(done)

    def refresh(self) -> None:
        """Let wait again what was delayed until now, and what was claimed by a worker that lost its lease."""
        self.store.access.one("SELECT {s}.refresh_1(%s, %s)", (self.store.project, self.name))

    def news(self) -> News:
        """For who waits for the next job."""
        return News(self.store.access, "workpacket_jobs", f"{self.store.project} {self.name}", poll=math.inf)

    def revive(self, job: int) -> bool:
        """Let a dead job wait again, with all its tries."""
        return bool(self.store.access.one("SELECT {s}.revive_1(%s, %s)", (self.store.project, job))[0])

    def jobs(self) -> tuple[QueueItem, ...]:
        """Everything in the queue, in the order in which it was offered."""
        rows = self.store.access.rows(
            "SELECT id, stream, state, priority, tries, reason, detail FROM {s}.jobs "
            "WHERE project = %s AND queue = %s ORDER BY id",
            (self.store.project, self.name),
        )
        return tuple(QueueItem(*row) for row in rows)


def _claimed(row: Row, holder: str, seconds: float) -> Job | None:
    number, stream, request, token, attempt, max_tries, begun = row
    if number is None:
        return None
    said = json.loads(request)
    lease = Lease(stream, token, holder, seconds)
    return Job(number, said["name"], said["packet"], said["key"], said["inputs"], attempt, max_tries, lease, begun)


def queue_of(store: Store, name: str) -> Queue:
    """The queue of that name; a store in a file has none."""
    if not isinstance(store, PostgresStore):
        raise StoreUnavailable("queues require a store on a server", code="storage_unsuitable")
    return Queue(store, name)
