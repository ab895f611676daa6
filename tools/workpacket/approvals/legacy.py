"""The old kind of signature: a name with a date, such as `ana310120261200`, that anyone can type. It is shown as
`assurance: legacy`, and satisfies a gate only if the policy says so explicitly. Everything that can be checked is
checked: the date exists and matches the record, the token is used only once in the whole history, and there was time to
read the text before the token was recorded.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from workpacket.approvals.facts import LegacyUse
from workpacket.approvals.fields import CLOCK_SKEW
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.value import Value

REVIEW_PAUSE = timedelta(minutes=5)

# A token has local time without its zone; no zone is further from UTC.
_WIDEST_ZONE = timedelta(hours=14)
# People enter the date of the day on which they review.
_LONGEST_LEAD = timedelta(days=1)
_FORM = lazy_pattern(r"([a-z]+)(\d\d)(\d\d)(\d{4})(\d\d)(\d\d)\Z", re.ASCII)


class LegacyToken(Value):
    """A parsed token. `written_at` is the token's local time, read as if it were UTC."""

    user: str
    written_at: datetime


def read_token(token: str) -> LegacyToken | Problem:
    match = _FORM.match(token)
    if match is None:
        return Problem("legacy_malformed", f"{token[:80]!r} is not a lower-case name followed by DDMMYYYYHHMM")
    day, month, year, hour, minute = (int(part) for part in match.groups()[1:])
    try:
        written_at = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return Problem("legacy_date_unreal", f"{token[:80]!r} is not a valid date or time")
    return LegacyToken(match.group(1), written_at)


def judge_token(use: LegacyUse, history: tuple[LegacyUse, ...], now: datetime) -> tuple[Problem, ...]:
    """Return every reason why the token does not count, even if the policy accepts tokens."""
    token = read_token(use.token)
    if isinstance(token, Problem):
        return (token,)
    refusals: list[Problem] = []
    lead = use.recorded_at - token.written_at
    if use.recorded_at > now + CLOCK_SKEW or not -_WIDEST_ZONE <= lead <= _WIDEST_ZONE + _LONGEST_LEAD:
        refusals.append(
            Problem("legacy_date_off", f"{use.token[:80]!r} was recorded at a different time from the one it names")
        )
    others = {(other.packet, other.gate) for other in history if other.token == use.token} - {(use.packet, use.gate)}
    if others:
        packet, gate = min(others)
        refusals.append(Problem("legacy_reused", f"{use.token[:80]!r} was also used at the gate {gate} of {packet}"))
    if use.presented_at is None:
        refusals.append(Problem("legacy_unpresented", "there is no record of when the text was shown for review"))
    elif use.recorded_at - use.presented_at < REVIEW_PAUSE:
        minutes = REVIEW_PAUSE // timedelta(minutes=1)
        refusals.append(
            Problem("legacy_hasty", f"the token was recorded less than {minutes} minutes after the text was shown")
        )
    return tuple(refusals)
