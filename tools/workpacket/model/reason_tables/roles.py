"""Why a role cannot write its checkpoint. A contradiction and another writer are stop reasons: see `stops`."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "artifact_changed",
        "A file that a role named is not as it was at its last milestone",
        "Whoever was interrupted has gone on since, or somebody else changed it. What the role last did may not hold.",
        "Look at the file; `workpacket resume ID --yes` goes on with what is there.",
        family="cross-file",
        severity="warning",
        strict_severity="warning",
    ),
    Reason(
        "role_feature_closed",
        "The feature of a role is complete",
        "A summary says so, or the packet whose id it is has come to its end; work on it would be lost or done twice.",
        "Close its open checkpoints: workpacket progress close FEATURE. New work is a new feature.",
        family="gate",
        exit_code=exits.REFUSED,
    ),
    Reason(
        "role_file_unwritable",
        "A role's file cannot be brought up to date without touching more",
        "It is written in a way in which the one value cannot be changed and everything else be left alone.",
        "Make the change by hand, then workpacket progress adopt FEATURE AGENT.",
        family="conflict",
        exit_code=exits.CONFLICT,
    ),
)
