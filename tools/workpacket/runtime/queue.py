"""Runs offered as jobs in the queue of a store that keeps one (`stores.contract`), and the workers that claim and
execute them.

Claiming a job takes the lease on its run in the same transaction. A worker that dies loses the lease, and the job waits
again; the next worker that claims it resumes the run at its checkpoint. A finished job leaves the queue; the run itself
says how it ended. A job that failed too often, or that needs a person, is dead: it remains in the queue with its
reason.

The stop reason alone determines what happens to a failed job: transient failures are retried with a growing delay, and
failures that need a person make the job dead immediately. A worker that is asked to stop, or is interrupted, hands its
run over, at the next step boundary, to the next worker that claims it. This does not count as an attempt.

One thread renews the lease of the current job for the life of the worker: starting and ending a thread for each run
takes as long as an append.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.session import BorrowedLease, stop_code
from workpacket.runtime.attempts.starter import RunRequest
from workpacket.runtime.catalog import stream_name
from workpacket.runtime.errors import (
    HandedOver,
    LeaseLost,
    NewerSchema,
    RunCancelled,
    RuntimeFault,
    RunWaiting,
    StoreUnavailable,
)
from workpacket.runtime.holders import random_id, this_process
from workpacket.runtime.records.failures import described, reason_of
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import (
    Append,
    Appended,
    ClaimedJob,
    JobNews,
    KeepsJobs,
    Lease,
    OfferedJob,
    QueueItem,
    Store,
)


class Offer(NamedTuple):
    """A run to execute, highest priority first. At most `limit` runs in one `lane` are active at a time."""

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
    """A claimed job: its run, whether the run had already begun, and the lease taken with it."""

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
        """Claim the next job and the lease on its run; in the same transaction, remove the job `finished` from the
        queue.
        """
        done = None if finished is None else (finished.id, finished.lease.token)
        return _job(self.store.claim_job(self.name, holder, seconds, done), holder, seconds)

    def complete(self, job: Job, last: Append, *, seconds: float | None) -> tuple[Appended, Job | None]:
        """Append the end of the run; in the same transaction, finish its job, release its lease and claim the next job.

        If `seconds` is None, no job is claimed. A job in a lane is never claimed here; that is left to `claim`.
        """
        holder = job.lease.holder
        appended, claimed = self.store.append_last(last, job.id, self.name, holder, seconds)
        return appended, _job(claimed, holder, seconds or 0.0)

    def finish(self, job: Job) -> bool:
        return self._settle(job, "done")

    def give_back(
        self, job: Job, *, delay: float = 0.0, reason: str = "", detail: str = "", tried: bool = True
    ) -> bool:
        """Return the job to the queue for at least `delay` seconds. If `tried` is False, this attempt does not
        count."""
        return self._settle(job, "delayed" if delay > 0 else "waiting", delay, reason, detail, tried=tried)

    def bury(self, job: Job, reason: str, detail: str) -> bool:
        """Stop trying the job until a person has looked at it."""
        return self._settle(job, "dead", 0.0, reason, detail)

    def _settle(
        self, job: Job, state: str, delay: float = 0.0, reason: str = "", detail: str = "", *, tried: bool = True
    ) -> bool:
        return self.store.settle_job(job.id, job.lease.token, state, delay, reason, detail, tried=tried)

    def refresh(self) -> None:
        """Return to the queue the jobs whose delay has elapsed, and those whose workers lost their leases."""
        self.store.refresh_jobs(self.name)

    def news(self) -> JobNews:
        """Return an object that waits for the next job."""
        return self.store.job_news(self.name)

    def revive(self, job: int) -> bool:
        """Return a dead job to the queue, with its full number of tries restored."""
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
    """Return the queue with that name, if the store keeps queues; a file store does not."""
    if not isinstance(store, KeepsJobs):
        raise StoreUnavailable(
            "this store has no queues", code="storage_unsuitable", hint="set WORKPACKET_STORE to a postgresql:// URL"
        )
    return Queue(store, name)


class Keeper:
    """Renews a lease in the background, used as `with Keeper(...)`. `held` is the lease being renewed, if any."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.held: Lease | None = None
        self._store = store
        self._seconds = seconds
        self._over = threading.Event()

    def __enter__(self) -> Keeper:
        threading.Thread(target=self._renew_until_over, name="workpacket-leases", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _renew_until_over(self) -> None:
        while not self._over.wait(self._seconds / 3):
            lease = self.held
            try:
                if lease is not None:
                    self._store.renew(lease, self._seconds)
            except LeaseLost:  # the store refuses the next record and gives the reason
                if self.held is lease:
                    self.held = None
            except RuntimeFault:
                continue  # the store was busy; there are two more tries before the lease ends


Task = Callable[..., Any]  # a function of a run, or an async function of a run and its inputs

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
SIGNAL_LOOK = 5.0  # seconds between two looks for a signal
DETAIL = 500


@dataclass
class Worker:
    """Executes jobs. `tasks` maps the name of a run to the function that executes it."""

    runtime: Runtime
    queue: Queue
    tasks: Mapping[str, Task]
    idle: float = 1.0  # seconds between two reads of an empty queue that sends no notifications
    first_wait: float = FIRST_WAIT
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _next: Job | None = field(default=None, init=False)  # claimed when the previous job was finished
    _refresh_at: float = field(default=0.0, init=False)
    _finished: bool = field(
        default=False, init=False
    )  # whether the current job was finished together with the end of its run

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Stop at the next step boundary of the current run. May be called from a signal handler."""
        self._stopping.set()

    def work(self, *, until_empty: bool = False) -> int:
        """Execute jobs, and return how many were finished."""
        news = self.queue.news()
        try:
            return self._work(news, until_empty=until_empty)
        finally:
            news.close()

    def _work(self, news: JobNews, *, until_empty: bool) -> int:
        count = 0
        with Keeper(self.runtime.store, self._seconds) as keeper:
            while not self._stopping.is_set():
                self._refresh()
                job = self._claimed()
                if job is None:
                    if until_empty:
                        return count
                    news.wait(self.idle)
                    continue
                keeper.held = job.lease
                count += self._do(job)
                keeper.held = None
            if self._next is not None:  # asked to stop just after the job was claimed
                self.queue.give_back(self._next, reason="handed_over", tried=False)
                self._next = None
        return count

    @property
    def _seconds(self) -> float:
        return self.runtime.settings.lease_seconds

    def _claimed(self) -> Job | None:
        job, self._next = self._next, None
        if job is None:
            holder = this_process()
            job = self.queue.claim(holder, self._seconds)
            if job is None:
                self._refresh(now=True)
                job = self.queue.claim(holder, self._seconds)
        return job

    def _refresh(self, *, now: bool = False) -> None:
        """Refresh the queue even if it is never empty; otherwise delayed jobs and the jobs of dead workers would have
        to wait.
        """
        if now or time.monotonic() >= self._refresh_at:
            self.queue.refresh()
            self._refresh_at = time.monotonic() + self.idle

    def _complete(self, job: Job, last: Append) -> Appended:
        seconds = None if self._stopping.is_set() else self._seconds
        appended, self._next = self.queue.complete(job, last, seconds=seconds)
        self._finished = True
        return appended

    def _do(self, job: Job) -> bool:
        """Whether the run ended well. If not, the job is returned to the queue or becomes dead."""
        task = self.tasks.get(job.name)
        if task is None:
            self.queue.bury(job, "worker_blocked", f"this worker has no task {job.name!r}")
            return False
        # A witness is notified of the end of a run while its lease is held, so the job is finished afterwards.
        witnessed = self.runtime.settings.witness is not None and job.packet
        lent = BorrowedLease(
            job.lease, job.begun, self._stopping.is_set, None if witnessed else partial(self._complete, job)
        )
        self._finished = False
        try:
            self._execute(task, lent, job)
        except HandedOver:
            self.queue.give_back(job, reason="handed_over", tried=False)
        except LeaseLost:
            return False  # another worker has the job by now
        except NewerSchema as fault:
            # This worker is too old, and would bury every job: it ends, and the job waits for a newer one.
            self.queue.give_back(job, reason=fault.code, tried=False)
            raise
        except RunWaiting as waiting:
            self.queue.give_back(job, delay=self._until(waiting.until), reason=waiting.code, tried=False)
        except RunCancelled as cancelled:
            self.queue.bury(job, "run_cancelled", cancelled.reason)
        except Exception as error:
            self._failed(job, error)
        except BaseException as error:
            self.queue.give_back(job, reason=stop_code(error), tried=False)
            raise
        else:
            if not self._finished:
                self.queue.finish(job)
            return True
        return False

    def _execute(self, task: Task, lent: BorrowedLease, job: Job) -> None:
        """Execute the job's run. An async task is a run function, which also receives the inputs as arguments."""
        request: RunRequest = {"packet": job.packet, "key": job.key, "inputs": job.inputs}
        if iscoroutinefunction(task):
            import asyncio  # only where a task needs it

            asyncio.run(self._await(task, lent, job.name, request))
            return
        with self.runtime.run_lent(lent, job.name, **request) as run:
            task(run)

    async def _await(self, task: Task, lent: BorrowedLease, name: str, request: RunRequest) -> None:
        async with self.runtime.async_run_lent(lent, name, **request) as run:
            await task(run, **(request.get("inputs") or {}))

    def _until(self, instant: int | None) -> float:
        """Return how long to put a waiting run aside. The queue is not notified of signals, so it checks again."""
        left = SIGNAL_LOOK if instant is None else (instant - self.runtime.settings.clock.now()) / 1_000_000
        return max(0.0, left)

    def _failed(self, job: Job, error: Exception) -> None:
        code = stop_code(error)
        words = error.message if isinstance(error, RuntimeFault) else described(error)
        words = self.runtime.settings.redactor.clean_text(words)
        if reason_of(code).auto_resume == "with_backoff" and job.attempt < job.max_tries:
            wait = min(self.first_wait * 2 ** (job.attempt - 1), LONGEST_WAIT)
            self.queue.give_back(job, delay=wait, reason=code, detail=words[:DETAIL])
        else:
            self.queue.bury(job, code, words[:DETAIL])
