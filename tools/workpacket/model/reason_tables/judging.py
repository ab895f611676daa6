"""What stands against a change: moves that are none, and moves whose gate was not passed."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _integrity(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "integrity", exit_code=exits.INTEGRITY)


REASONS: tuple[Reason, ...] = (
    _integrity(
        "move_illegal",
        "A move that is no transition",
        "No command makes it; the event was written by hand, to get around a gate.",
        "Take the event back, and move the packet by its command.",
    ),
    _integrity(
        "move_without_gate",
        "A move whose gate was not passed",
        "The event is there, but what its gate asks for is not: anyone can write an event.",
        "Take the event back; `workpacket why WP` says what the gate asks for.",
    ),
    _integrity(
        "base_lanes_unfit",
        "Base whose policy adds lanes that do not hold",
        "Nobody can say which moves the base allows, so none that a change brings is believed.",
        "Mend the policy on the base first; `workpacket policy test` says what is wrong with it.",
    ),
)
BY_CODE = {reason.code: reason for reason in REASONS}
