"""What a store needs to keep a queue of jobs, which `runtime.queue` and the commands `queue` and `worker` then use.

Claiming a job takes the lease of its run, and the end of a run finishes its job, each in one transaction of the store.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from workpacket.runtime.stores.contract import Append, Appended


class OfferedJob(NamedTuple):
    """A run to be done. `request` is what its worker needs to know, as JSON. At most `limit` jobs of one `lane` are
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
    """A claimed job with the token of the lease taken with it, and whether its stream exists already."""

    id: int
    stream: str
    request: str
    token: int
    attempt: int
    max_tries: int
    begun: bool


class QueueItem(NamedTuple):
    """One line of the queue. `reason` says why the job is waiting again or is dead."""

    id: int
    stream: str
    state: str
    priority: int
    tries: int
    reason: str
    detail: str


class JobNews(Protocol):
    def wait(self, seconds: float) -> None:
        """Wait until there may be a job, or for this many seconds."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class KeepsJobs(Protocol):
    """A store that also keeps queues, each with a name."""

    def offer_job(self, queue: str, job: OfferedJob) -> None:
        """Put a job into the queue, unless there is already one of its stream."""
        ...

    def claim_job(self, queue: str, holder: str, seconds: float, finished: tuple[int, int] | None) -> ClaimedJob | None:
        """Claim the next job and the lease of its stream; first remove the job `finished`, given with its token."""
        ...

    def append_last(
        self, request: Append, job: int, queue: str, holder: str, seconds: float | None
    ) -> tuple[Appended, ClaimedJob | None]:
        """Append the end of a run, remove its job, release its lease, and unless `seconds` is None claim the next."""
        ...

    def settle_job(
        self, job: int, token: int, state: str, delay: float, reason: str, detail: str, *, tried: bool
    ) -> bool:
        """Set the state (done, waiting, delayed, dead) of a job that is held with this token; else return False."""
        ...

    def refresh_jobs(self, queue: str) -> None:
        """Return to the queue the jobs whose delay is over, and those whose leases have ended."""
        ...

    def revive_job(self, job: int) -> bool:
        """Return a dead job to the queue, with the full number of tries."""
        ...

    def jobs(self, queue: str) -> tuple[QueueItem, ...]: ...

    def job_news(self, queue: str) -> JobNews: ...
