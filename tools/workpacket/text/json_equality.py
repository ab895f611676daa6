"""When two values are the same value of JSON.

Python has `True == 1`, JSON Schema has not; both have `1 == 1.0`. `identity` gives values a text that is equal exactly
when they are the same, so that sets can find repetitions in one pass however hostile the list is (the hash of a string
is keyed; the hashes of numbers and tuples are not, and can be made to collide).
"""

from __future__ import annotations

import json

from workpacket.text.node import Plain


def identity(value: Plain) -> str:
    """A text that two values share exactly when they are the same."""
    return json.dumps(_whole(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def repetitions(items: list[Plain]) -> list[tuple[int, int]]:
    """Of each item that an earlier one equals: its index and the index of the first of its kind."""
    first: dict[str, int] = {}
    repeated: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        earlier = first.setdefault(identity(item), index)
        if earlier != index:
            repeated.append((index, earlier))
    return repeated


def _whole(value: Plain) -> Plain:
    """The value with every float that is a whole number as an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
