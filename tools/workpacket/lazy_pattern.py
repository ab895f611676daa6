"""Regular expressions that are compiled when they are first used.

    _DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

A command imports more readers and rules than it uses; compiling all their patterns would take an eighth of its time. A
test compiles every pattern, so that an invalid one is detected.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # what type checkers see; importing `typing` for it would take longer than compiling the patterns


class _Later:
    """A pattern that is compiled when one of its methods is first used; each method then becomes an attribute."""

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        # `re` caches compiled patterns, so the second method of a pattern does not compile it again.
        found: object = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:
    lazy_pattern = _Later

__all__ = ["lazy_pattern"]
