"""What can be wrong with lock files besides a change without leave, which is the stop reason `lockfile_violation`."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "lockfile_malformed",
        "A lock file or manifest cannot be read",
        "What cannot be read cannot be judged, and a check that did not run has failed.",
        "Repair the place that is named, or restore the file; if the commit compared with is at fault, name another.",
        family="reading",
    ),
    Reason(
        "dependencies_many",
        "One change brings very many new packages",
        "Each of them is code of somebody else that runs here, whoever asked for the first of them.",
        "Look at what the new dependency brings; `threshold` in [deps] of the policy says how many are many.",
        family="cross-file",
        severity="warning",
        strict_severity="warning",
    ),
)
