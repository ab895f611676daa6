"""Closed shapes of JSON values: declared once, checked in microseconds, printed as JSON Schema.

Ten thousand events are verified in a second, which a general schema validator cannot do. So the shape of an event is
declared here in Python, compiled to plain functions, and the JSON Schema that editors and other tools read is made
from the same declaration. The tests prove that `jsonschema` and these functions give the same verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TypeAlias

from workpacket.model.canonical import LARGEST_INTEGER, Json
from workpacket.value import Value

SchemaObject: TypeAlias = "dict[str, Json]"

_TIMESTAMP = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"


class Misfit(Value):
    """The first place where a value leaves its shape: a JSON pointer and what is wrong there."""

    pointer: str
    message: str

    def inside(self, key: str | int) -> Misfit:
        return Misfit(f"/{key}{self.pointer}", self.message)

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


Check: TypeAlias = Callable[[Json], Misfit | None]


class Shape(Value):
    """What a value may be. `misfit(value)` is None when it fits; `keys` are the ones that an object may have."""

    misfit: Check
    schema: SchemaObject
    keys: frozenset[str] = frozenset()


def text(description: str, *, pattern: str = "", longest: int = 2000, shortest: int = 1) -> Shape:
    """A string; `pattern` must cover all of it."""
    schema: SchemaObject = {"type": "string", "description": description, "maxLength": longest, "minLength": shortest}
    if not pattern:

        def misfit(value: Json) -> Misfit | None:
            if type(value) is not str:
                return Misfit("", f"must be text ({description})")
            if not shortest <= len(value) <= longest:
                return Misfit("", f"must have {shortest} to {longest} characters, not {len(value)}")
            return None

        return Shape(misfit, schema)

    fits = re.compile(pattern).fullmatch
    schema["pattern"] = f"^(?:{pattern})$"

    def pattern_misfit(value: Json) -> Misfit | None:
        if type(value) is not str or fits(value) is None or not shortest <= len(value) <= longest:
            return Misfit("", f"must be {description}, not {_shown(value)}")
        return None

    return Shape(pattern_misfit, schema)


def timestamp(description: str) -> Shape:
    """RFC 3339 in UTC to the second, and a day that the calendar has."""
    fits = re.compile(_TIMESTAMP).fullmatch

    def misfit(value: Json) -> Misfit | None:
        if type(value) is not str or fits(value) is None:
            return Misfit("", f"must be a time like 2026-01-31T23:59:00Z, not {_shown(value)}")
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return Misfit("", f"{value} is not in the calendar")
        return None

    schema: SchemaObject = {
        "type": "string",
        "description": description,
        "format": "date-time",
        "pattern": f"^(?:{_TIMESTAMP})$",
    }
    return Shape(misfit, schema)


def integer(description: str, *, least: int, most: int = LARGEST_INTEGER) -> Shape:
    def misfit(value: Json) -> Misfit | None:
        if type(value) is not int or not least <= value <= most:
            return Misfit("", f"must be a whole number from {least} to {most}, not {_shown(value)}")
        return None

    return Shape(misfit, {"type": "integer", "description": description, "minimum": least, "maximum": most})


def choice(description: str, values: Sequence[str]) -> Shape:
    """One of a closed set of words."""
    allowed = frozenset(values)

    def misfit(value: Json) -> Misfit | None:
        if type(value) is not str or value not in allowed:
            return Misfit("", f"must be one of {', '.join(values)}, not {_shown(value)}")
        return None

    return Shape(misfit, {"description": description, "enum": list(values)})


def null(description: str) -> Shape:
    def misfit(value: Json) -> Misfit | None:
        return None if value is None else Misfit("", f"must be null, not {_shown(value)}")

    return Shape(misfit, {"type": "null", "description": description})


def nullable(shape: Shape) -> Shape:
    inner = shape.misfit

    def misfit(value: Json) -> Misfit | None:
        return None if value is None else inner(value)

    return Shape(misfit, {"anyOf": [shape.schema, {"type": "null"}]})


def array(description: str, item: Shape, *, most: int, least: int = 0, ordered_set: bool = False) -> Shape:
    """A list. An `ordered_set` of strings is sorted and without repetition, so that one set has one form."""
    inner = item.misfit

    def misfit(value: Json) -> Misfit | None:
        if type(value) is not list:
            return Misfit("", f"must be a list ({description})")
        if not least <= len(value) <= most:
            return Misfit("", f"must have {least} to {most} items, not {len(value)}")
        for index, element in enumerate(value):
            found = inner(element)
            if found is not None:
                return found.inside(index)
        if ordered_set and any(left >= right for left, right in pairwise(value)):
            return Misfit("", "must be sorted and name nothing twice")
        return None

    schema: SchemaObject = {
        "type": "array",
        "description": description,
        "items": item.schema,
        "minItems": least,
        "maxItems": most,
    }
    if ordered_set:
        schema["uniqueItems"] = True
    return Shape(misfit, schema)


def record(description: str, required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """An object with these keys and no others."""
    fields = {**required, **(optional or {})}
    checks = {key: shape.misfit for key, shape in fields.items()}
    needed = frozenset(required)

    def misfit(value: Json) -> Misfit | None:
        if type(value) is not dict:
            return Misfit("", f"must be an object ({description})")
        if not needed <= value.keys():
            return Misfit("", f"the key {min(needed - value.keys())!r} is missing")
        for key, item in value.items():
            check = checks.get(key)
            if check is None:
                return Misfit("", f"the key {key!r} is not known here")
            found = check(item)
            if found is not None:
                return found.inside(key)
        return None

    schema: SchemaObject = {
        "type": "object",
        "description": description,
        "properties": {key: shape.schema for key, shape in fields.items()},
        "required": list(required),
        "additionalProperties": False,
    }
    return Shape(misfit, schema, frozenset(fields))


def _shown(value: Json) -> str:
    """A value in a message: short, on one line, without control characters."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
