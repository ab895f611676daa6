"""Waiting for a run to go on: woken by the store where it can, else by looking again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from workpacket.runtime.stores.contract import Store

LOOK_AGAIN = 0.2  # seconds between two looks at a store that cannot wake anybody
LONGEST = 5.0  # seconds between two looks at one that can


class Wait(Protocol):
    def __call__(self) -> None:
        """Return when the stream may have grown, or after a while."""


class Waiting(Protocol):
    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Announcing(Protocol):
    """A store that wakes whoever follows a stream."""

    def follower(self, stream: str) -> Waiting: ...


@contextmanager
def following(store: Store, stream: str) -> Iterator[Wait]:
    if not isinstance(store, Announcing):
        yield lambda: time.sleep(LOOK_AGAIN)
        return
    follower = store.follower(stream)
    try:
        yield lambda: follower.wait(LONGEST)
    finally:
        follower.close()
