"""One worker of the proof, which is killed. Its arguments: the server's address, the task queue, the repository."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from temporal.jobs import JOBS
from workpacket.temporal import WorkpacketPlugin

SILENT = timedelta(seconds=3)
_STICKY = timedelta(seconds=2)


async def main(address: str, queue: str, repository: str) -> None:
    plugin = WorkpacketPlugin(jobs=JOBS, repository=repository, timeouts={"silent": SILENT})
    client = await Client.connect(address, plugins=[plugin])
    worker = Worker(
        client, task_queue=queue, max_concurrent_activities=20, sticky_queue_schedule_to_start_timeout=_STICKY
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
