"""The clock, the boot and the processes of a machine: who holds a run or other work, until when, and whether another
caller may take it over.

A holder is written as host/pid/start/place. The place names the boot and the process namespace; elsewhere, the pid
means nothing. Start time and pid together identify a process even if the pid is reused.

An agent calls a command from a shell that exits with the call, so the calling process is gone a moment later. The
process that survives is an ancestor: the agent or its terminal. The holder of such work is therefore written as the
whole chain of processes from the caller up to the first process of the machine. Another caller may continue if the only
living processes of that chain are those that both have in common: the same agent may continue from another shell, a
second agent may not, and after a crash anyone may. A process on another machine counts as alive.

Clock and random names are injected, so that a run can be replayed byte for byte. Wall time is a claim recorded with an
event; leases use ticks, which never go backward. Ticks count from the start of the machine and are the same for all its
processes, across suspends and changes of the wall clock. After a restart they begin at zero, so a lease also names the
boot in which it was taken. A lease from another boot has ended, because its holder died with that boot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    def now(self) -> int:
        """Return microseconds since 1970 in UTC."""
        ...

    def ticks(self) -> float:
        """Return seconds since a fixed point in this boot; they never go backward."""
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
    """Return a name for this boot of this machine; if the system has none, the host and the minute of start-up."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"boot-{round((time.time() - time.clock_gettime(_CLOCK)) / 60)}-{os.uname().nodename}"


Ids = Callable[[], str]


def random_id() -> str:
    """Return 128 random bits in hexadecimal. (The `secrets` module does the same but takes three milliseconds to
    import.)
    """
    return os.urandom(16).hex()


# More ancestors than any real chain of shells has, and few enough to store with each lease.
_LONGEST_LINE = 32
_FIRST = 1  # the first process of the machine is an ancestor of every process


class Caller(NamedTuple):
    """A caller. `name` is recorded as the holder; `line` is the calling process and its ancestors."""

    name: str = ""
    line: frozenset[str] = frozenset()


NOBODY = Caller()


def caller_named(name: str) -> Caller:
    """Return a caller with the given name, such as agent#instance."""
    return Caller(name, frozenset(process_ancestry(os.getppid())))


def caller_with(owner: int = 0) -> Caller:
    """Return a caller with only the process `owner`, if given; otherwise with the calling process and its ancestors."""
    line = process_ancestry(os.getppid())
    if not owner:
        return Caller(" ".join(line), frozenset(line))
    named = process_named(owner)
    return Caller(named, frozenset((*line, named)))


def process_ancestry(pid: int) -> tuple[str, ...]:
    """Return the process with this PID, and its ancestors, except PID 1."""
    line: list[str] = []
    while pid > _FIRST and len(line) < _LONGEST_LINE:
        line.append(process_named(pid))
        pid = parent_of(pid)
    return tuple(line)


def at_work(holder: str, caller: Caller) -> str:
    """Return a living process of the holder that prevents the caller from taking over; '' if there is none."""
    if not holder or holder == caller.name:
        return ""
    return next((one for one in holder.split() if one not in caller.line and not is_gone(one)), "")


def this_process() -> str:
    return process_named(os.getpid())


def process_named(pid: int) -> str:
    """Return the name under which a lease records the process with this pid on this machine."""
    return f"{os.uname().nodename}/{pid}/{_start_of(pid)}/{_place()}"


def is_certainly_dead(holder: str) -> bool:
    """Return True only if the holder ran on this machine and is gone; nothing is known about processes on other
    machines.
    """
    parts = holder.split("/")
    if len(parts) != 4 or parts[3] != _place() or not parts[1].isdigit():
        return False
    pid = int(parts[1])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    start = _start_of(pid)
    return bool(start) and start != parts[2]


def is_certainly_alive(holder: str) -> bool:
    """Return True only if this exact process is running here now."""
    parts = holder.split("/")
    if len(parts) != 4 or parts[3] != _place() or not parts[1].isdigit():
        return False
    start = _start_of(int(parts[1]))
    return start not in {"", "ended"} and start == parts[2]


def is_gone(holder: str) -> bool:
    """Return True if the holder ran on this machine and no longer does, including after a restart."""
    parts = holder.split("/")
    if len(parts) == 4 and parts[0] == os.uname().nodename and not parts[3].startswith(boot_id()):
        return True
    return is_certainly_dead(holder)


def shown_holder(holder: str) -> str:
    """Return the holder in words: the process and its machine, without the parts that only distinguish equal pids."""
    parts = holder.split(maxsplit=1)[0].split("/") if holder else []
    return f"process {parts[1]} on {parts[0]}" if len(parts) == 4 and parts[1].isdigit() else holder or "a process"


def parent_of(pid: int) -> int:
    """Return the parent of the process with this pid; 0 if unknown."""
    fields = _status_of(pid)
    return int(fields[1]) if fields else 0


def _start_of(pid: int) -> str:
    """Return when the process started, in the system's own unit; 'ended' for a zombie; '' if unknown."""
    fields = _status_of(pid)
    if not fields:
        return ""
    return "ended" if fields[0] == "Z" else fields[19]


def _status_of(pid: int) -> list[str]:
    """Return the system's status fields of the process, starting with its state; empty if they are missing or
    unreadable."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return status.rpartition(")")[2].split()


def _place() -> str:
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return f"{boot_id()}{namespace.strip('pid:')}"
