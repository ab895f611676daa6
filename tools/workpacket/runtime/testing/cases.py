"""What the tests of a store have in common: a clock that they move, a writer, and other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.stores.contract import Append, Store

Fault = TypeVar("Fault", bound=RuntimeFault)
STREAM = "conformance/run@00000001"


class ManualClock:
    """A clock that moves only when told to, or when something sleeps."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.wall = now
        self.since_boot = 1000.0
        self.boots = 1

    def now(self) -> int:
        return self.wall

    def ticks(self) -> float:
        return self.since_boot

    def boot(self) -> str:
        return f"boot-{self.boots}"

    def reboot(self) -> None:
        self.boots += 1
        self.since_boot = 0.0

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.since_boot += seconds
        self.wall += int(seconds * 1_000_000)


class Writer:
    """Builds requests with gapless sequence numbers, like one writer of one stream."""

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
    raise AssertionError(f"this should have been refused with {fault.__name__}")


class StoreTestCase:
    """The base of each group of tests. `opener` is what another process runs to open the same store: Python statements
    that bind it to `store`.
    """

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

    def process(self, program: str, *, traced: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start another process that opens the store and then runs `program`; its `store` is that store."""
        assert self.opener is not None, "define `opener`: Python statements that bind the open store to `store`"
        lines = ["from workpacket.runtime.testing.other_process import *", self.opener, program]
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = os.environ | {
            "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "STORE_OPENER": self.opener
        }  # fmt: skip
        command = [*traced, sys.executable, "-c", "\n".join(lines)]
        return subprocess.Popen(  # noqa: S603  # our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
