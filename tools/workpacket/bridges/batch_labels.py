"""Labels of batches: text that people count with, `3` or `5a`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

_COUNTED = re.compile(r"(?P<number>[0-9]{1,15})(?P<letter>[a-y]?)\Z")


def label_after(last: str, used: Collection[str] = ()) -> str:
    """`4` after `3`, `5b` after `5a`; what nobody can count with gets a number behind it. Never one of `used`."""
    label = _following(last) if last else "1"
    while label in used:
        label = _following(label)
    return label


def _following(label: str) -> str:
    counted = _COUNTED.match(label)
    if counted is None:
        head, dash, number = label.rpartition("-")
        return f"{head}-{int(number) + 1}" if dash and number.isdecimal() and len(number) < 16 else f"{label}-2"
    if counted["letter"]:
        return counted["number"] + chr(ord(counted["letter"]) + 1)
    return str(int(counted["number"]) + 1)
