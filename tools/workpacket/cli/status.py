"""`workpacket status`: the whole repository on one screen."""

from __future__ import annotations

from workpacket.cli.cached_output import run_cached
from workpacket.cli.options import Arguments, Command


def run(arguments: Arguments) -> int:
    return run_cached(arguments, "status_screen")


COMMAND = Command(
    "status",
    "show the whole repository on one screen",
    run,
    examples=("workpacket status",),
)
