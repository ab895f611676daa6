"""Why a run stopped: a reason code with the information that resume, reports and hooks need.

Exit statuses follow the family: a script can tell "the work was wrong" from "the disk was full" without reading text.
"""

from __future__ import annotations

from typing import Literal

from workpacket.model import exits
from workpacket.model.reasons import Reason

StopFamily = Literal[
    "constraint", "verification", "review", "worker", "resource", "stale", "integrity", "user", "internal"
]
AutoResume = Literal["never", "with_backoff", "after_confirm"]

EXIT_RANGES: dict[StopFamily, range] = {
    "constraint": range(10, 20),
    "verification": range(20, 30),
    "review": range(30, 40),
    "worker": range(40, 50),
    "resource": range(50, 60),
    "stale": range(60, 70),
    "integrity": range(70, 90),
    "user": range(exits.INTERRUPTED, exits.INTERRUPTED + 1),
    "internal": range(exits.INTERNAL, exits.INTERNAL + 1),
}


class StopReason(Reason, kw_only=True):
    """`diagnosis` says how to find out what happened; `remedies` are the choices, the usual one first."""

    stops: StopFamily
    auto_resume: AutoResume
    diagnosis: str
    remedies: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exit_code not in EXIT_RANGES[self.stops]:
            raise ValueError(f"{self.code}: exit status {self.exit_code} is outside the family {self.stops!r}")
        if not self.remedies:
            raise ValueError(f"{self.code}: a stop without a choice strands the run")


def stop_reason(
    code: str,
    exit_code: int,
    stops: StopFamily,
    auto_resume: AutoResume,
    title: str,
    explanation: str,
    diagnosis: str,
    *remedies: str,
    aliases: tuple[str, ...] = (),
) -> StopReason:
    """A row of the table of stop reasons."""
    return StopReason(
        code=code,
        title=title,
        explanation=explanation,
        remedy=f"{remedies[0]}.",
        family="runtime",
        exit_code=exit_code,
        aliases=aliases,
        stops=stops,
        auto_resume=auto_resume,
        diagnosis=diagnosis,
        remedies=remedies,
    )
