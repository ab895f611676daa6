"""How much of a long proof is run: all of it, or with `WORKPACKET_PROOF=bounded`, as in CI, an even share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")

_ONE_IN = 8


def bounded() -> bool:
    return os.environ.get("WORKPACKET_PROOF") == "bounded"


def share(cases: Sequence[T]) -> Sequence[T]:
    """All cases; when bounded, one in eight of them, the first and the last among them."""
    if not bounded() or len(cases) <= _ONE_IN:
        return cases
    return [*cases[:-1:_ONE_IN], cases[-1]]


def stride(when_bounded: int) -> int:
    """1 for every case; when bounded, the step to the next one. A prime number meets every position of a pattern."""
    return when_bounded if bounded() else 1


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is not finished in this time has failed."""

    def over(*_: object) -> None:
        pytest.fail("not proved: the time that the proofs are given is over", pytrace=False)

    if seconds <= 0:
        over()
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
