"""What `init --check` finds in the files that `init` writes."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "starter_missing",
        "A file or section of init is missing",
        "Somebody removed it, or a newer version of the tool brings it along.",
        "Run `workpacket init`, which writes what is missing.",
        "document",
    ),
    Reason(
        "starter_outdated",
        "A file or section of init is of an older version",
        "Nobody edited it, and the present version says something else: of commands that were renamed, for instance.",
        "Run `workpacket init`, which brings up to date what nobody edited.",
        "document",
    ),
    Reason(
        "starter_edited",
        "A file or section of init was edited",
        "It is left as it is, also when a newer version of the tool has another text for it.",
        "To take the present version over, move the file (or section) away and run `workpacket init`.",
        "document",
        severity="warning",
        strict_severity="warning",
    ),
)
