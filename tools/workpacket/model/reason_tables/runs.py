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
        "run_links_disagree",
        "Log and store say different things of a run",
        "No transaction spans both. A process that was killed between them leaves a link open of a run that ended, or "
        "never began; a program that used the runtime without the log leaves a run without a link.",
        "`workpacket runs settle` writes into the log what the store knows, and names what is left for a person.",
        family="conflict",
        exit_code=exits.CONFLICT,
    ),
    Reason(
        "run_not_lost",
        "The run is not lost",
        "Its store is here: how it ended can be read, or it can be brought to an end.",
        "Resume or cancel it, or have `workpacket runs settle` write down how it ended.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "person_needed",
        "That is for a person to say",
        "A program that could call its own runs lost could have a verdict on work that nobody finished.",
        "A person types it, without `--kind` and without WORKPACKET_ACTOR_KIND.",
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
