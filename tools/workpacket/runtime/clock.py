"""Clock and new names. Both are injected, so that a run can be played again to the byte.

Wall time is a claim written beside an event; leases run on ticks, which never go back. Ticks count since the machine
was started and are the same for all its processes, through suspend and through every change of the wall clock. After a
restart they begin at zero, so a lease also names the boot it was taken in: a lease of another boot has ended, because
its holder died with that boot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970 in UTC."""
        ...

    def ticks(self) -> float:
        """Seconds since some fixed point of this boot; never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def ticks(self) -> float:
        return time.clock_gettime(_CLOCK)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def boot_id() -> str:
    """Names this boot of this machine; where the system has no name for it, its host and the minute it was started."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"boot-{round((time.time() - time.clock_gettime(_CLOCK)) / 60)}-{os.uname().nodename}"


Ids = Callable[[], str]


def random_id() -> str:
    """128 random bits in hexadecimal. (The module `secrets` does the same and costs three milliseconds to import.)"""
    return os.urandom(16).hex()
