"""The queue of a PostgreSQL store: a table of jobs, changed by functions of the server, each in one transaction."""

from __future__ import annotations

import math

from workpacket.runtime.stores.jobs import ClaimedJob, OfferedJob, QueueItem
from workpacket.runtime.stores.postgres.access import Row
from workpacket.runtime.stores.postgres.reader import News, ReadablePostgres


class QueueingPostgres(ReadablePostgres):
    def offer_job(self, queue: str, job: OfferedJob) -> None:
        self.access.require_writable()
        self.access.one("SELECT {s}.offer_1(%s, %s, %s, %s, %s, %s, %s, %s, %s)", (self.project, queue, *job))

    def claim_job(self, queue: str, holder: str, seconds: float, finished: tuple[int, int] | None) -> ClaimedJob | None:
        row = self.access.one(
            "SELECT * FROM {s}.claim_1(%s, %s, %s, %s, %s, %s)",
            (self.project, queue, holder, seconds, *(finished or (None, None))),
        )
        return claimed(row)

    def settle_job(
        self, job: int, token: int, state: str, delay: float, reason: str, detail: str, *, tried: bool
    ) -> bool:
        (done,) = self.access.one(
            "SELECT {s}.settle_1(%s, %s, %s, %s, %s, %s, %s, %s)",
            (self.project, job, token, state, delay, reason, detail, not tried),
        )
        return bool(done)

    def refresh_jobs(self, queue: str) -> None:
        self.access.one("SELECT {s}.refresh_1(%s, %s)", (self.project, queue))

    def revive_job(self, job: int) -> bool:
        return bool(self.access.one("SELECT {s}.revive_1(%s, %s)", (self.project, job))[0])

    def jobs(self, queue: str) -> tuple[QueueItem, ...]:
        """Return the jobs in the order in which they were offered."""
        rows = self.access.rows(
            "SELECT id, stream, state, priority, tries, reason, detail FROM {s}.jobs "
            "WHERE project = %s AND queue = %s ORDER BY id",
            (self.project, queue),
        )
        return tuple(QueueItem(*row) for row in rows)

    def job_news(self, queue: str) -> News:
        return News(self.access, "workpacket_jobs", f"{self.project} {queue}", poll=math.inf)


def claimed(row: Row) -> ClaimedJob | None:
    """Return the job of a row, which is a row of nulls if there was none."""
    return None if row[0] is None else ClaimedJob(*row)
