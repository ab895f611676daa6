"""`workpacket status`: the whole repository on one screen."""

from __future__ import annotations

from workpacket.cli.cached_view import lasting
from workpacket.cli.options import Arguments, Command


def run(arguments: Arguments) -> int:
    return lasting(arguments, "status_screen")


COMMAND = Command(
    "status",
    "show the whole repository on one screen",
    run,
    examples=("workpacket status",),
)
