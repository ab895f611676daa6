"""Points in time as statements write them: RFC 3339, whole seconds, always `Z`, so that one instant has one text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from workpacket.lazy_pattern import lazy_pattern

# How far the clocks of a signer and a verifier may disagree.
CLOCK_SKEW = timedelta(minutes=5)

_FORM = lazy_pattern(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)


def read_instant(text: str) -> datetime | None:
    """The instant, or None if `text` has another form or names a day or hour that does not exist."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def write_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
