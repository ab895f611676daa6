"""`workpacket next`: the work that is ready."""

from __future__ import annotations

from workpacket.cli.cached_output import run_cached
from workpacket.cli.options import Arguments, Command, Option


def run(arguments: Arguments) -> int:
    return run_cached(arguments, "next_ready")


COMMAND = Command(
    "next",
    "list the work that is ready, the most wanted first",
    run,
    options=(Option("for", "also what this one holds, and nothing that is assigned to others", value="NAME"),),
    description="In the order of what most packets wait for, then risk, then age.",
    examples=("workpacket next", "workpacket next --for coder-1"),
)
