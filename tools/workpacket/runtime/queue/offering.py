"""The work queue of a store that keeps one (`stores.jobs`): runs are offered, and workers claim them.

Claiming a job takes the lease of its run in the same transaction. A worker that dies loses the lease, and the job waits
again; the next worker that claims it resumes the run at its checkpoint. A finished job leaves the queue; the run itself
says how it ended. A job that failed too often, or that needs a person, is dead: it stays in the queue with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.catalog import stream_name
from workpacket.runtime.clock import random_id
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.stores.contract import Append, Appended, Lease, Store
from workpacket.runtime.stores.jobs import ClaimedJob, JobNews, KeepsJobs, OfferedJob, QueueItem


class Offer(NamedTuple):
    """A run to be done, highest priority first. At most `limit` runs of one `lane` are active at a time."""

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
    """A claimed job: its run, whether the run had begun before, and the lease taken with it."""

    id: int
    name: str
    packet: str
    key: str
    inputs: Mapping[str, Json]
    attempt: int
    max_tries: int
    lease: Lease
    begun: bool


class Queue:
    def __init__(self, store: KeepsJobs, name: str = "default") -> None:
        self.store = store
        self.name = name

    def offer(self, offer: Offer) -> str:
        """Offer a run, and return its id. A run that is already offered is not offered twice."""
        key = offer.key or random_id()
        stream = stream_name(offer.name, offer.packet, key)
        inputs = dict(offer.inputs or {})
        request = stored_text({"name": offer.name, "packet": offer.packet, "key": key, "inputs": inputs})
        job = OfferedJob(stream, request, offer.priority, offer.lane, offer.limit, offer.delay, offer.max_tries)
        self.store.offer_job(self.name, job)
        return stream

    def claim(self, holder: str, seconds: float, *, finished: Job | None = None) -> Job | None:
        """Claim the next job and the lease of its run; in the same transaction, remove the job `finished` from the
        queue.
        """
        done = None if finished is None else (finished.id, finished.lease.token)
        return _job(self.store.claim_job(self.name, holder, seconds, done), holder, seconds)

    def complete(self, job: Job, last: Append, *, seconds: float | None) -> tuple[Appended, Job | None]:
        """Append the end of the run; in the same transaction, finish its job, release its lease and claim the next.

        With `seconds` None, no job is claimed. A job of a lane is never claimed here; that is left to `claim`.
        """
        holder = job.lease.holder
        appended, claimed = self.store.append_last(last, job.id, self.name, holder, seconds)
        return appended, _job(claimed, holder, seconds or 0.0)

    def finish(self, job: Job) -> bool:
        return self._settle(job, "done")

    def give_back(
        self, job: Job, *, delay: float = 0.0, reason: str = "", detail: str = "", tried: bool = True
    ) -> bool:
        """Return the job to the queue for at least `delay` seconds. With `tried` False, this attempt does not count."""
        return self._settle(job, "delayed" if delay > 0 else "waiting", delay, reason, detail, tried=tried)

    def bury(self, job: Job, reason: str, detail: str) -> bool:
        """Stop trying the job until a person has looked at it."""
        return self._settle(job, "dead", 0.0, reason, detail)

    def _settle(
        self, job: Job, state: str, delay: float = 0.0, reason: str = "", detail: str = "", *, tried: bool = True
    ) -> bool:
        return self.store.settle_job(job.id, job.lease.token, state, delay, reason, detail, tried=tried)

    def refresh(self) -> None:
        """Return to the queue the jobs whose delay is over, and those whose workers lost their leases."""
        self.store.refresh_jobs(self.name)

    def news(self) -> JobNews:
        """Return an object that can wait for the next job."""
        return self.store.job_news(self.name)

    def revive(self, job: int) -> bool:
        """Return a dead job to the queue, with the full number of tries."""
        return self.store.revive_job(job)

    def jobs(self) -> tuple[QueueItem, ...]:
        """List everything in the queue, in the order in which it was offered."""
        return self.store.jobs(self.name)


def _job(claimed: ClaimedJob | None, holder: str, seconds: float) -> Job | None:
    if claimed is None:
        return None
    number, stream, request, token, attempt, max_tries, begun = claimed
    said = json.loads(request)
    lease = Lease(stream, token, holder, seconds)
    return Job(number, said["name"], said["packet"], said["key"], said["inputs"], attempt, max_tries, lease, begun)


def queue_of(store: Store, name: str) -> Queue:
    """Return the queue of that name, if the store keeps queues; a file does not."""
    if not isinstance(store, KeepsJobs):
        raise StoreUnavailable(
            "this store keeps no queues", code="storage_unsuitable", hint="set WORKPACKET_STORE to a postgresql:// URL"
        )
    return Queue(store, name)
