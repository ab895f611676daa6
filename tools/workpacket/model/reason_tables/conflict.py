"""Somebody else was at it at the same time; trying again may help."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "changed_meanwhile",
        "A file changed between reading and writing",
        "Writing now would undo somebody's change without anyone noticing.",
        "Run the command again; it starts from the file as it is now.",
        family="conflict",
        exit_code=exits.CONFLICT,
    ),
)
