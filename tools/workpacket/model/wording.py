"""Words for counts and for the last line of an answer, used by every layer."""

from __future__ import annotations

_PLURALS = {"info": "info", "piece of evidence": "pieces of evidence", "entry": "entries", "criterion": "criteria"}


def counted(count: float, noun: str) -> str:
    """`1 error`, `2 errors`, `1 piece of evidence`, `2 info`."""
    return f"{count} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"


def next_line(command: str) -> str:
    """Return the last line of an answer: the next command, or what to do next."""
    return f"next: {command}"
