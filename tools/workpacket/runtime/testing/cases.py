"""What the tests of a store have in common: a clock that the tests move, a writer, and what other processes do with the
store.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from workpacket.runtime.errors import LeaseHeld, RuntimeFault, StoreUnavailable
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.memory import MemoryStore

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
    raise AssertionError(f"this should have been rejected with {fault.__name__}")


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
        """Start another process that opens the store and then runs `program`; in it, `store` is that store."""
        assert self.opener is not None, "define `opener`: Python statements that bind the open store to `store`"
        lines = ["from workpacket.runtime.testing.cases import *", self.opener, program]
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = os.environ | {
            "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "STORE_OPENER": self.opener
        }  # fmt: skip
        command = [*traced, sys.executable, "-c", "\n".join(lines)]
        return subprocess.Popen(  # noqa: S603  # our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )


SIDE_BY_SIDE = 2.0  # seconds
AT_LEAST, AT_MOST = 3, 40
SHAKEN = 4  # turns
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
T = TypeVar("T")
P = ParamSpec("P")
MOVED = "conformance/moved@00000001"
__all__ = ["append_for_ever", "do_all_acts", "do_while_syncs_fail", "take_turns", "write_side_by_side"]


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


# ---- side by side ----------------------------------------------------------------------------------------------------


def turns() -> Iterator[int]:
    """Report that the store is open, wait for the other processes, then count for a moment. During the first turns this
    process pauses at random lines: a turn is so short that processes would seldom be inside the store together.
    """
    tell("ready")
    sys.stdin.readline()
    started, before = time.monotonic(), sys.gettrace()
    sys.settrace(pausing(os.getpid()))
    try:
        for turn in range(AT_MOST):
            if turn >= AT_LEAST and time.monotonic() > started + SIDE_BY_SIDE:
                return
            if turn == SHAKEN:
                sys.settrace(before)
            yield turn
    finally:
        sys.settrace(before)


def pausing(seed: int) -> Callable[[FrameType, str, Any], Any]:
    """Return a trace function that pauses at random lines, except within the standard library."""
    chance = random.Random(seed)  # noqa: S311  # not a secret

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        path = frame.f_code.co_filename
        if path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path:
            return None
        if event == "line" and chance.random() < 0.1:
            time.sleep(0.0001)
        return trace

    return trace


def write_side_by_side(store: Store) -> None:
    writer = Writer(f"process {os.getpid()}")
    for _ in turns():
        request = writer.request("a", "b")
        answer = patiently(store.append, request)
        tell(" ".join(event.hash for event in answer.events))


def take_turns(store: Store) -> None:
    writer = Writer(f"process {os.getpid()}")
    for _ in turns():
        lease = patiently(store.acquire, STREAM, writer.name, 3600)
        for kind in ("entered", "left"):
            request = writer.request(kind, fence=lease.token)
            patiently(store.append, request)
        store.release(lease)
        tell("turn")
        time.sleep(0.005)


def patiently(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Retry until the store or the lease is free, for at most a minute."""
    started = time.monotonic()
    while True:
        try:
            return ask(*args, **kwargs)
        except (LeaseHeld, StoreUnavailable):
            if time.monotonic() > started + 60:
                raise
            time.sleep(0.002)


def append_for_ever(store: Store, stream: str) -> None:
    """Append under a lease and print each hash once it is stored, until this process is killed."""
    lease = store.acquire(stream, "victim", 3600)
    writer = Writer(f"victim of {stream}", stream)
    while True:
        tell(store.append(writer.request("checkpoint", fence=lease.token)).events[0].hash)


# ---- what is recorded, killed and failed -----------------------------------------------------------------------------


class Import(NamedTuple):
    events: tuple[Event, ...]


Act = Append | Import | str  # str: the address of a payload to erase
DOOMED = b'"to be erased"'
MOVING = Writer("mover", MOVED).request("run.started", "checkpoint", "run.completed")


def acts() -> list[Act]:
    """The acts on an empty store, in order: appends, the erasure of a payload, and the import of a stream."""
    writer = Writer("recorded")
    first = writer.request("run.started", "checkpoint", "step.completed", key="k")
    doomed = writer.request("effect.started")
    doomed = doomed._replace(events=(NewEvent("effect.started", '{"effect":"e"}', payload=DOOMED),))
    third = writer.request("effect.succeeded", "checkpoint", "run.stopped")
    large = writer.request("large")
    large = large._replace(events=(NewEvent("large", "{}", payload=bytes(range(256)) * 40),))
    last = writer.request("attempt.started", "checkpoint", "run.completed")
    moved = MemoryStore().append(MOVING).events
    return [first, doomed, third, address_of(DOOMED), large, Import(moved), last]


SEVERAL = 2  # the act whose storage calls are made to fail: an append of several events


def do(store: Store, act: Act) -> None:
    if isinstance(act, str):
        store.erase(act)
    elif isinstance(act, Append):
        store.append(act)
    elif store.head(MOVED) is None:
        store.restore(act.events, [event.payload for event in MOVING.events if event.payload])


def do_all_acts(store: Store) -> None:
    """Perform all acts, and print when each act is acknowledged. After an error, repeat the act through a new
    handle."""
    for number, act in enumerate(acts()):
        tell(f"begin {number}")
        try:
            do(store, act)
        except RuntimeFault as fault:
            tell(f"fault {number} {fault.code}")
            store.close()
            store = opened_again()
            do(store, act)
        tell(f"done {number}")


def do_while_syncs_fail(store: Store) -> None:
    for number, act in enumerate(acts()[: SEVERAL + 1]):
        tell(f"begin {number}")
        try:
            do(store, act)
        except RuntimeFault as fault:
            tell(f"fault {number} {fault.code}")
            return
        tell(f"done {number}")


def opened_again() -> Store:
    bound: dict[str, Store] = {}
    exec(os.environ["STORE_OPENER"], bound)  # noqa: S102  # the test's own statements
    return bound["store"]
