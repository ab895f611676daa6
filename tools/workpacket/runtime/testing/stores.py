"""What the groups of the conformance suite share: a clock that stands still, a writer, and a way to open a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.stores.contract import Append, Store

Fault = TypeVar("Fault", bound=RuntimeFault)
STREAM = "conformance/run@00000001"


class ManualClock:
    """A clock that moves only when told to; sleeping moves it."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.wall = now
        self.since_boot = 1000.0

    def now(self) -> int:
        return self.wall

    def ticks(self) -> float:
        return self.since_boot

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.since_boot += seconds
        self.wall += int(seconds * 1_000_000)


class Writer:
    """Builds requests with gapless sequence numbers, as one writer of one stream does."""

    def __init__(self, name: str, stream: str = STREAM) -> None:
        self.name = name
        self.stream = stream
        self.seq = 0

    def request(
        self, *types: str, key: str | None = None, fence: int | None = None, expected: int | None = None
    ) -> Append:
        events = tuple(NewEvent(kind, f'{{"name":"{kind}"}}', payload=f'"{kind}"'.encode()) for kind in types)
        first = self.seq + 1
        self.seq += len(events)
        return Append(self.stream, events, self.name, first, "tester", 10, 20, key, fence, expected)


@contextmanager
def refused(fault: type[Fault]) -> Iterator[None]:
    try:
        yield
    except fault:
        return
    raise AssertionError(f"this had to be refused with {fault.__name__}")


class OpensStores:
    """What each group of tests starts from."""

    opener: str | None = None

    def open_store(self, clock: ManualClock) -> Store:
        raise NotImplementedError

    @contextmanager
    def store(self, clock: ManualClock | None = None) -> Iterator[Store]:
        store = self.open_store(clock or ManualClock())
        try:
            yield store
        finally:
            store.close()
