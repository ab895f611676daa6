"""The contract on every version of the server that is on this machine, and a run through its queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from postgres.clocked import ClockedPostgres
from postgres.server import Server, installations, version_of
from proof.share import share
from workpacket.runtime import Runtime
from workpacket.runtime.queue import Offer, Queue, Worker
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.postgres.migrations import partition, partitions
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import ManualClock, ServerStoreConformance, Writer

# The tests beside this folder are of the newest version.
OLDER = sorted({version_of(folder): folder for folder in installations()}.items())[:-1]

_NUMBERS = count(1)


@pytest.fixture(scope="module", params=[pytest.param(folder, id=str(number)) for number, folder in share(OLDER)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(installed=request.param)
    try:
        server.start()
        yield server
    finally:
        server.remove()


class TestEveryVersion(ServerStoreConformance):
    @pytest.fixture(autouse=True)
    def _place(self, server: Server) -> None:
        self.url = server.url(workpacket_project=f"p{next(_NUMBERS)}")
        self.opener = (
            f"from workpacket.runtime.stores.postgres.store import PostgresStore\nstore = PostgresStore({self.url!r})"
        )

    def open_store(self, clock: ManualClock) -> Store:
        return ClockedPostgres(self.url, clock)


def test_tables_are_divided_while_runs_are_written(server: Server) -> None:
    store = PostgresStore(server.url(workpacket_schema="divided"))
    for number in range(40):
        if number == 10:
            assert partition(store.access, 6)
        writer = Writer(f"w{number}", f"run@{number:02}")
        store.append(writer.request("a", "b"))
        store.append(writer.request("c"))
    assert partitions(store.access) >= 5
    head = store.heads()[0]
    store.remove(head.stream, head.hash)
    assert [len(list(store.read(head.stream))) for head in store.heads()] == [3] * 39
    store.close()


def test_runs_go_through_the_queue(server: Server) -> None:
    store = PostgresStore(server.url(workpacket_schema="queues"))
    queue = Queue(store)
    for number in range(5):
        queue.offer(Offer("job", key=str(number), lane="one" if number % 2 else None))
    worker = Worker(Runtime(store), queue, {"job": lambda run: run.step("work", dict)})
    assert worker.work(until_empty=True) == 5
    assert [line.liveness for line in Runtime(store).runs()] == ["completed"] * 5
    assert queue.jobs() == ()
    store.close()
