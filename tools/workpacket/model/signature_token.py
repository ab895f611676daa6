"""The legacy signature token: a name in small letters followed by DDMMYYYYHHMM, such as `ada240220261015`.

Anyone can type one, so it proves nothing by itself; but it must at least be a date that exists.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

_TOKEN = re.compile(r"(?P<name>[a-z]+)(?P<digits>[0-9]{12})\Z")


class Token(NamedTuple):
    """A token taken apart. `problem` says what is wrong with it, '' if nothing is."""

    name: str
    signed_at: datetime | None
    problem: str


def parse_token(text: str) -> Token:
    match = _TOKEN.match(text)
    if match is None:
        return Token("", None, "is not a name followed by DDMMYYYYHHMM")
    digits = match["digits"]
    day, month, year, hour, minute = (int(digits[a:b]) for a, b in ((0, 2), (2, 4), (4, 8), (8, 10), (10, 12)))
    try:
        signed_at = datetime(year, month, day, hour, minute)
    except ValueError:
        return Token(
            match["name"],
            None,
            f"has no real date: {digits[:2]}.{digits[2:4]}.{digits[4:8]} {digits[8:10]}:{digits[10:]}",
        )
    return Token(match["name"], signed_at, "")
