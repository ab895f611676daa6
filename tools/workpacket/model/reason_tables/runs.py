"""Why a run cannot be tied to what it names. Reasons for which a run stops are in `stops`."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "packet_not_active",
        "The work packet of the run is not active",
        "Work is done from packets: a stub has no approved scope yet, so nobody can start work from one.",
        "Activate the stub: `just create-task-packet WP_ID`; or name a packet that `workpacket list` shows.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "checkpoint_malformed",
        "A checkpoint file does not have the form it should have",
        "A checkpoint that is read wrongly has work done twice or left out, so nothing of the file is taken over.",
        "Correct the field at the place that is named, or restore the file.",
        family="document",
    ),
)
