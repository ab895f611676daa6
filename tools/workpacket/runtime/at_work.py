"""Who is at work on something that outlives one command, and whether somebody else may take it over.

An agent calls a command from a shell that ends with the call, so that the process which called says nothing a moment
later. What goes on living is somewhere above it: the agent, its terminal. A holder is therefore written as the whole
line of processes from the caller up to the first process of the machine. Whoever comes later may go on if nothing of
that line still lives except what stands above both of them: the same agent with another shell may, another one beside
it may not, and after a crash everybody may. A process of another machine may be alive for all that is known here.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from workpacket.runtime.processes import is_gone, parent_of, process_named

_LONGEST_LINE = 32
_FIRST = 1  # the first process of the machine is above everybody


class Caller(NamedTuple):
    """Who asks. `name` is how it is written down as a holder; `line` are the processes above, itself among them."""

    name: str = ""
    line: frozenset[str] = frozenset()


NOBODY = Caller()


def caller_named(name: str) -> Caller:
    """A caller that somebody gave a name, such as agent#instance."""
    return Caller(name, frozenset(line_of(os.getppid())))


def caller_with(owner: int = 0) -> Caller:
    """The process `owner` and nothing above it, if it is given; else the one that called, and those above it."""
    line = line_of(os.getppid())
    if not owner:
        return Caller(" ".join(line), frozenset(line))
    named = process_named(owner)
    return Caller(named, frozenset((*line, named)))


def line_of(pid: int) -> tuple[str, ...]:
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
