"""What the other processes of the conformance suite do with the store, each after its `opener`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, ParamSpec, TypeVar

from workpacket.runtime.errors import LeaseHeld, RuntimeFault, StoreUnavailable
from workpacket.runtime.records.events import Event, NewEvent
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.testing.cases import STREAM, Writer

SIDE_BY_SIDE = 2.0  # seconds
AT_LEAST, AT_MOST = 3, 40
T = TypeVar("T")
P = ParamSpec("P")
MOVED = "conformance/moved@00000001"
__all__ = ["append_for_ever", "do_all_acts", "do_while_syncs_fail", "take_turns", "write_side_by_side"]


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


# ---- side by side ----------------------------------------------------------------------------------------------------


def turns() -> Iterator[int]:
    """Say that the store is open, wait for the others, and count for a moment."""
    tell("ready")
    sys.stdin.readline()
    started = time.monotonic()
    for turn in range(AT_MOST):
        if turn >= AT_LEAST and time.monotonic() > started + SIDE_BY_SIDE:
            return
        yield turn


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
    """Ask until the store, or the lease, is free; for at most a minute."""
    started = time.monotonic()
    while True:
        try:
            return ask(*args, **kwargs)
        except (LeaseHeld, StoreUnavailable):
            if time.monotonic() > started + 60:
                raise
            time.sleep(0.002)


def append_for_ever(store: Store, stream: str) -> None:
    """Append under a lease and print each hash once stored, until this process is killed."""
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
    """What is done to an empty store, in order: appends, the erasure of a payload, the import of a stream."""
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
    """Do everything and tell when each act is acknowledged. After an error, ask again through a new handle."""
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
