"""What a reader could not accept, or accepted with a sigh, and where."""

from __future__ import annotations

from workpacket.model.findings import Fix
from workpacket.value import Value


class Fault(Value):
    """A deviation met while reading: `code` names a reason, [start, end) the text it is about.

    Readers collect faults and go on. Which severity a fault has, and whether it is ignored, is decided later, by the
    rules and the policy.
    """

    code: str
    start: int
    end: int
    message: str
    hint: str = ""
    fix: Fix | None = None
