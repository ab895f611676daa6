"""Settings that do not do what they say."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "settings_unread",
        "Settings that could not be read",
        "The defaults are in force instead, which may be milder than what the repository decided.",
        "Correct the file; `workpacket check` of it says what is wrong.",
        family="reading",
    ),
    Reason(
        "setting_of_unknown_code",
        "Setting for a code that does not exist",
        "It has no effect, although whoever wrote it thinks that it has.",
        "Correct the code; `workpacket explain --all` lists them.",
        family="document",
    ),
    Reason(
        "setting_of_protected_code",
        "Setting for a code that cannot be ignored or lowered",
        "Approvals and the integrity of the log are what everything else rests on; no setting may talk them away.",
        "Delete the setting and mend what the code complains of.",
        family="document",
    ),
    Reason(
        "ignore_unused",
        "Ignore that ignores nothing",
        "It hides the next finding of its kind, which nobody has looked at.",
        "Delete the ignore.",
        family="document",
        severity="warning",
    ),
    Reason(
        "ignore_without_reason",
        "Ignore without a written reason",
        "Nobody can judge later whether it is still wanted.",
        "Write the reason into the ignore.",
        family="document",
    ),
)
