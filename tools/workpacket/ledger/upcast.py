"""Old versions of the event format, brought up to date while reading; the files themselves are never rewritten.

When the format changes, `event_schema.VERSION` goes up by one and a function is added here that turns an event of the
version before into one of the next. Version 1 is the first, so there is none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from workpacket.model.canonical import Json
from workpacket.model.event_schema import VERSION
from workpacket.value import NOTHING, Value

Upcaster: TypeAlias = Callable[[dict[str, Json]], dict[str, Json]]


class Format(Value):
    """The current version, and how to come to it: `upcasters[n]` makes version n + 1 of version n."""

    version: int
    upcasters: Mapping[int, Upcaster] = NOTHING

    def upcast(self, value: dict[str, Json]) -> dict[str, Json]:
        """The event in the current version; one that has no way there comes back as far as it got."""
        while True:
            version = value.get("v")
            if type(version) is not int or version >= self.version or version not in self.upcasters:
                return value
            value = {**self.upcasters[version](value), "v": version + 1}

    def too_new(self, value: Mapping[str, Json]) -> bool:
        version = value.get("v")
        return type(version) is int and version > self.version


FORMAT: Final = Format(VERSION)
