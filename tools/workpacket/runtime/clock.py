"""Clock and random names. Both are injected, so that a run can be replayed byte for byte.

Wall time is a claim recorded with an event; leases use ticks, which never go backward. Ticks count from the start of
the machine and are the same for all its processes, across suspends and changes of the wall clock. After a restart they
begin at zero, so a lease also names the boot in which it was taken. A lease of another boot has ended, because its
holder died with that boot.
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
        """Return microseconds since 1970 in UTC."""
        ...

    def ticks(self) -> float:
        """Return seconds since some fixed point of this boot; they never go backward."""
        ...

    def boot(self) -> str:
        """Return a name for this boot of the machine, to which the ticks belong."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def ticks(self) -> float:
        return time.clock_gettime(_CLOCK)

    def boot(self) -> str:
        return boot_id()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def boot_id() -> str:
    """Return a name for this boot of this machine; if the system has none, the host and the minute of the start."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"boot-{round((time.time() - time.clock_gettime(_CLOCK)) / 60)}-{os.uname().nodename}"


Ids = Callable[[], str]


def random_id() -> str:
    """Return 128 random bits in hexadecimal. (The module `secrets` does the same but takes three milliseconds to
    import.)
    """
    return os.urandom(16).hex()
