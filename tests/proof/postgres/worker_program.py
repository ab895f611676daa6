"""A worker of the proof: every event that was acknowledged to it is noted in a file before it goes on.

`worker_program.py URL ACKNOWLEDGED LEASE_SECONDS PAUSE SEED [previous | next]`: `previous` is a program of the version
before, whose schema lacks the last migration; `next` one whose appends have other names and whose schema has one more.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from workpacket.runtime import Run, Runtime, Settings
from workpacket.runtime.queue import Queue, Worker
from workpacket.runtime.stores.contract import Append, Appended, ClaimedJob
from workpacket.runtime.stores.postgres import migrations
from workpacket.runtime.stores.postgres import store as appends
from workpacket.runtime.stores.postgres.store import PostgresStore

# What a migration may have to do: it reads and changes every event, and renames what appends are called by.
NEXT = (
    "ALTER TABLE {s}.events ADD COLUMN origin text NOT NULL DEFAULT pg_current_xact_id()::text",
    "CREATE INDEX event_origin ON {s}.events(project, origin)",
    "ALTER FUNCTION {s}.append_1 RENAME TO append_2",
    "ALTER FUNCTION {s}.append_last_1 RENAME TO append_last_2",
)


class NotingStore(PostgresStore):
    """Notes what it was told is stored: in one write, which a kill does not tear."""

    notes: int

    def append(self, request: Append) -> Appended:
        return self._noted(super().append(request))

    def append_last(
        self, request: Append, job: int, queue: str, holder: str, seconds: float | None
    ) -> tuple[Appended, ClaimedJob | None]:
        appended, job_after = super().append_last(request, job, queue, holder, seconds)
        return self._noted(appended), job_after

    def _noted(self, appended: Appended) -> Appended:
        os.write(self.notes, "".join(f"{event.stream} {event.hash}\n" for event in appended.events).encode())
        return appended


def main(url: str, acknowledged: str, lease_seconds: float, pause: float, seed: int) -> None:
    chance = random.Random(seed)

    def think() -> None:
        time.sleep(pause if chance.random() < 0.3 else 0.001)

    def task(run: Run) -> None:
        for number in range(4):
            run.step(think)
            run.effect("act", lambda number=number: number, key=f"{run.id}/{number}", recovery="keyed")
            run.checkpoint({"after": number})

    store = NotingStore(url, patience=20.0, connections=3)
    store.notes = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    settings = Settings(actor="worker", lease_seconds=lease_seconds)
    worker = Worker(Runtime(store, settings), Queue(store), {"job": task}, idle=0.05, first_wait=0.05)
    signal.signal(signal.SIGTERM, lambda _, __: worker.stop())
    while not worker.stopping:
        worker.work(until_empty=True)
        time.sleep(0.05)


def become_next() -> None:
    """Be a program of the next version, in this process."""
    migrations.MIGRATIONS = (*migrations.MIGRATIONS, NEXT)
    migrations.SCHEMA_VERSION = len(migrations.MIGRATIONS)
    appends._APPEND = appends._APPEND.replace("append_1(", "append_2(")
    appends._APPEND_LAST = appends._APPEND_LAST.replace("append_last_1(", "append_last_2(")


if __name__ == "__main__":
    if sys.argv[6:] == ["next"]:
        become_next()
    if sys.argv[6:] == ["previous"]:
        migrations.SCHEMA_VERSION = 2
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
