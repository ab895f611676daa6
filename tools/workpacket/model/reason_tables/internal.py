"""The command itself broke off."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "internal_error",
        "The program met a state that it should never meet",
        "This is a fault of workpacket, not of your files. What was being written was either finished or not begun.",
        "Report it with the log that the message names; `workpacket doctor` shows whether anything is unfinished.",
        family="internal",
        exit_code=exits.INTERNAL,
    ),
    Reason(
        "interrupted",
        "The command was interrupted from the keyboard or by a signal",
        "What was being written was either finished or not begun.",
        "Run the command again when you are ready.",
        family="internal",
        exit_code=exits.INTERRUPTED,
    ),
)
