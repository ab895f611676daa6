"""Regular expressions that are compiled when they are first used.

    _DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

A command imports the readers and rules of all kinds and meets a few of them; compiling the patterns of the others was
an eighth of its time. Whether a pattern can be compiled is seen by the test that compiles them all.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # what type checkers take it for; importing `typing` for it would take longer than the patterns


class _Later:
    """Act as a compiled pattern whose methods are called: each is looked up once and becomes an attribute."""

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        # `re` keeps what it compiled, so that the second method of a pattern does not compile it again.
        found: object = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:
    lazy_pattern = _Later

__all__ = ["lazy_pattern"]
