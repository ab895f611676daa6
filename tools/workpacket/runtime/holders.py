"""Who holds a run or other work, and whether somebody else may take it over.

A holder is written as host/pid/start/place. The place names the boot and the process namespace: only there does the pid
mean anything. Start time and pid together name one process even if the pid is used again.

An agent calls a command from a shell that ends with the call, so the process that called is gone a moment later. What
goes on living is somewhere above it: the agent, its terminal. A holder of such work is therefore written as the whole
line of processes from the caller up to the first process of the machine. Another caller may go on if nothing of that
line is still alive except what is above both of them: the same agent with another shell may, an agent beside it may
not, and after a crash everybody may. A process of another machine counts as alive.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from workpacket.runtime.clock import boot_id

_LONGEST_LINE = 32
_FIRST = 1  # the first process of the machine is above everybody


class Caller(NamedTuple):
    """Who asks. `name` is how it is written down as a holder; `line` are the processes above, itself among them."""

    name: str = ""
    line: frozenset[str] = frozenset()


NOBODY = Caller()


def caller_named(name: str) -> Caller:
    """A caller that somebody gave a name, such as agent#instance."""
    return Caller(name, frozenset(process_ancestry(os.getppid())))


def caller_with(owner: int = 0) -> Caller:
    """The process `owner` and nothing above it, if it is given; else the one that called, and those above it."""
    line = process_ancestry(os.getppid())
    if not owner:
        return Caller(" ".join(line), frozenset(line))
    named = process_named(owner)
    return Caller(named, frozenset((*line, named)))


def process_ancestry(pid: int) -> tuple[str, ...]:
    """The process with this number and those above it, except the first one of the machine."""
    line: list[str] = []
    while pid > _FIRST and len(line) < _LONGEST_LINE:
        line.append(process_named(pid))
        pid = parent_of(pid)
    return tuple(line)


def at_work(holder: str, caller: Caller) -> str:
    """What of the holder keeps the caller away, '' if nothing does."""
    if not holder or holder == caller.name:
        return ""
    return next((one for one in holder.split() if one not in caller.line and not is_gone(one)), "")


def this_process() -> str:
    return process_named(os.getpid())


def process_named(pid: int) -> str:
    """How the holder of a lease is written if it is the process with this number on this machine."""
    return f"{os.uname().nodename}/{pid}/{_start_of(pid)}/{_place()}"


def is_certainly_dead(holder: str) -> bool:
    """True only if the holder lived here and is gone; of a process of another machine nothing is known."""
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
    """True only if this very process lives here now."""
    parts = holder.split("/")
    if len(parts) != 4 or parts[3] != _place() or not parts[1].isdigit():
        return False
    start = _start_of(int(parts[1]))
    return start not in {"", "ended"} and start == parts[2]


def is_gone(holder: str) -> bool:
    """True if the holder lived on this machine and does not any more, also because the machine was started again."""
    parts = holder.split("/")
    if len(parts) == 4 and parts[0] == os.uname().nodename and not parts[3].startswith(boot_id()):
        return True
    return is_certainly_dead(holder)


def parent_of(pid: int) -> int:
    """The process above the one with this number; 0 if that is not known."""
    fields = _status_of(pid)
    return int(fields[1]) if fields else 0


def _start_of(pid: int) -> str:
    """When the process began, in the system's own unit; 'ended' if it only waits to be collected; '' if unknown."""
    fields = _status_of(pid)
    if not fields:
        return ""
    return "ended" if fields[0] == "Z" else fields[19]


def _status_of(pid: int) -> list[str]:
    """What the system says of the process, from its state on; nothing if it is not there or cannot be asked."""
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
