"""Arrays as PostgreSQL reads them from text. A string is the one thing a driver passes on at no cost of its own.

An append has eight arrays of mostly one value; adapted one by one they cost more than the rest of the call, and a
driver that looks at their values makes another prepared statement of each mixture of nulls and texts.
"""

from __future__ import annotations

from collections.abc import Iterable


def text_array(values: Iterable[str | None]) -> str:
    """Text, or anything whose text PostgreSQL can read."""
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"


def number_array(values: Iterable[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
