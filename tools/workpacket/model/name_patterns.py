"""Patterns of names: what stands for itself, and `*` for any characters."""

from __future__ import annotations


def matches(pattern: str, name: str) -> bool:
    """Whether the pattern fits the whole of the name. However many stars there are, it never tries twice."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    first, *middle, last = parts
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:  # the earliest place of each part leaves the most room for those after it
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def covers(wider: str, narrower: str) -> bool:
    """Whether every name that fits `narrower` fits `wider`: a star in it can only be matched by a star."""
    return matches(wider, narrower)
