"""Which fields of a mapping a schema has looked at, which is what `unevaluatedProperties` is about.

A field counts as looked at if the schema, or a schema that it applies to the same value (`allOf`, the branches of
`anyOf` and `oneOf` that hold, `if` and what follows from it), names it, has a pattern for it or has a rule for all the
rest. `jsonschema` answers this with lists that it searches again for every field; here it is linear, and the acceptor
and the judge share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from workpacket.text.schema_loading import Schema

Holds: TypeAlias = Callable[[dict[str, Any]], bool]
HoldsFor: TypeAlias = Callable[[Schema], Holds]


class Coverage:
    """What `schema` looks at in a mapping that it accepts. `holds` makes the test of whether a schema holds for it."""

    def __init__(self, schema: dict[str, Any], holds: HoldsFor) -> None:
        self._names: set[str] = set()
        self._patterns: list[str] = []
        self._everything = False
        self._conditional: list[tuple[Holds, Coverage]] = []
        self._holds = holds
        self._add(schema, whole=False)

    def rest(self, value: dict[str, Any]) -> list[str]:
        """The fields of `value` that nothing has looked at."""
        layers = [self]
        for layer in layers:
            layers += [inner for applies, inner in layer._conditional if applies(value)]
        if any(layer._everything for layer in layers):
            return []
        search = re.compile("|".join(pattern for layer in layers for pattern in layer._patterns) or r"(?!)").search
        return [name for name in value if not any(name in layer._names for layer in layers) and not search(name)]

    def _add(self, schema: Schema, *, whole: bool = True) -> None:
        """Adds what a schema that must hold looks at; `whole` says that its own rule for the rest counts as well."""
        if isinstance(schema, bool):
            return
        self._names.update(schema.get("properties", ()))
        self._patterns += schema.get("patternProperties", ())
        self._everything |= "additionalProperties" in schema or (whole and "unevaluatedProperties" in schema)
        for also in schema.get("allOf", ()):
            self._add(also)
        for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            self._add_if(self._holds(branch), branch)
        if "if" in schema:
            condition = self._holds(schema["if"])
            self._add_if(condition, schema["if"], schema.get("then", True))
            self._add_if(lambda value: not condition(value), schema.get("else", True))
        for name, also in schema.get("dependentSchemas", {}).items():
            self._add_if(_has(name), also)

    def _add_if(self, applies: Holds, *schemas: Schema) -> None:
        self._conditional.append((applies, Coverage({"allOf": schemas}, self._holds)))


def _has(name: str) -> Holds:
    return lambda value: name in value
