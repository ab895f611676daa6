"""A worker of the proof: every event that was acknowledged to it is noted in a file before it goes on.

`worker_program.py URL ACKNOWLEDGED LEASE_SECONDS PAUSE SEED`
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
from workpacket.runtime.stores.postgres.store import PostgresStore


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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
