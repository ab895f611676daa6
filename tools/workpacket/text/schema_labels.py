"""What people call the things that a schema speaks of.

A reader may gather `USER_SIGNATURE` under `metadata` as `user_signature`; the person who wrote the document has seen
only the first. So a property may carry `"x-label": "USER_SIGNATURE"`, its key as it is written, and a schema
`"x-noun": "work packet id"`, the noun for what it accepts. Both are looked up here along the path of the value, through
whatever applies in place (`allOf`, branches, `then`), because the place that complains is seldom the place that names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from workpacket.text.schema_loading import Schema

Path = tuple[str | int, ...]

LONGEST_SHOWN = 60


def shortened(text: str) -> str:
    """At most `LONGEST_SHOWN` characters of what a document holds, so that no message grows with the document."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def in_place(schema: Schema) -> Iterator[dict[str, Any]]:
    """The schema and all schemas that it may apply to the same value."""
    if isinstance(schema, bool):
        return
    yield schema
    for keyword in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(keyword, ()):
            yield from in_place(inner)
    for keyword in ("if", "then", "else"):
        yield from in_place(schema.get(keyword, True))
    for inner in schema.get("dependentSchemas", {}).values():
        yield from in_place(inner)


class Labels:
    """The names of things in values of one schema, by path."""

    def __init__(self, schema: Schema) -> None:
        self._schemas: dict[Path, list[dict[str, Any]]] = {(): list(in_place(schema))}

    def schemas(self, path: Path) -> list[dict[str, Any]]:
        """All schemas that may apply to the value at `path`."""
        if path not in self._schemas:
            outer, step = self.schemas(path[:-1]), path[-1]
            self._schemas[path] = [
                schema for above in outer for below in _steps(above, step) for schema in in_place(below)
            ]
        return self._schemas[path]

    def annotation(self, path: Path, keyword: str) -> Any:
        """The first annotation of this name at `path`, or None."""
        return next((schema[keyword] for schema in self.schemas(path) if keyword in schema), None)

    def key(self, path: Path) -> str:
        """The key at the end of `path` as it is written in the document."""
        return shortened(str(self.annotation(path, "x-label") or path[-1]))

    def keys(self, path: Path) -> Iterator[str]:
        """The keys that are known in the mapping at `path`, as they are written."""
        names = dict.fromkeys(name for schema in self.schemas(path) for name in schema.get("properties", ()))
        yield from (self.key((*path, name)) for name in names)

    def of(self, path: Path) -> str:
        """What to call the value at `path` in a sentence."""
        if not path:
            return str(self.annotation(path, "x-label") or "the document")
        if isinstance(path[-1], int):
            return f"item {path[-1] + 1} of {self.of(path[:-1])}"
        return f"`{self.key(path)}`"


def _steps(schema: dict[str, Any], step: str | int) -> Iterator[Schema]:
    """The schemas that `schema` applies to the member `step` of a value."""
    if isinstance(step, int):
        prefix = schema.get("prefixItems", [])
        yield prefix[step] if step < len(prefix) else schema.get("items", True)
        return
    named = step in schema.get("properties", {})
    if named:
        yield schema["properties"][step]
    matching = [field for name, field in schema.get("patternProperties", {}).items() if re.search(name, step)]
    yield from matching
    if not named and not matching:
        yield schema.get("additionalProperties", True)
