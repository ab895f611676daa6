"""Reports that came with verdicts. One file may serve several: it grows, and each verdict names it as it was then.

So that a file is not what an older verdict names is nothing wrong if a later verdict, of this packet or another, names
it as it is now; the older text is in git. What no verdict names was changed behind the validators' backs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.ledger.log import Log
from workpacket.model.events import Event
from workpacket.value import Value


class Report(Value):
    """A file as a verdict names it, and when that was given."""

    path: str
    sha256: str
    at: str


def report_of(event: Event) -> Report | None:
    file = event.data.get("report")
    if event.type != "verdict.given" or not isinstance(file, Mapping):
        return None
    return Report(str(file["path"]), str(file["sha256"]), event.at)


def reports_of(logs: Iterable[Log]) -> tuple[Report, ...]:
    return tuple(report for log in logs for event in log.events if (report := report_of(event)) is not None)


def is_vouched_for(report: Report, present: str | None, reports: Iterable[Report]) -> bool:
    """Whether the file, which has the digest `present` now, is what this verdict or a later one names."""
    if present == report.sha256:
        return True
    return any((one.path, one.sha256) == (report.path, present) and one.at >= report.at for one in reports)
