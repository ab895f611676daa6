"""The entry point to JSON Schema: whether a value matches the schema of its kind, and if not, what is wrong with it.

Schemas are JSON Schema 2020-12, in files `<name>.schema.json`. schemas/README.md describes what they may contain, and
the annotations `x-label` and `x-noun`, which let messages use the words of the document. Nothing here opens a file:
texts come from the function given to `SchemaSet`, and references lead nowhere else.

A valid value is recognized by a compiled acceptor. Only for others is `jsonschema` imported, which decides; its
complaints are then reworded for the person who wrote the document.
"""

from __future__ import annotations

from collections.abc import Callable

from workpacket.problem import Problem
from workpacket.text.acceptor import compile_acceptor
from workpacket.text.node import Plain
from workpacket.text.schema_loading import Loader, Read, Schema, UnusableSchema

__all__ = ["SchemaSet", "UnusableSchema"]


class SchemaSet:
    """Judges values by schemas, loading each but once. `read` gives the file of a schema by its name: "stub"."""

    def __init__(self, read: Read) -> None:
        self._loader = Loader(read)
        self._loaded: dict[str, tuple[Schema, Callable[[Plain], bool] | None]] = {}

    def violations(self, name: str, value: Plain) -> tuple[Problem, ...]:
        """What is wrong with `value` under the schema `name` ("stub"), in the order of the value; () if nothing is.

        The value is one that a strict loader made: finite numbers, bounded depth. `UnusableSchema` is raised for
        a schema file that says what is not honoured.
        """
        schema, accepts = self._load(name)
        if accepts is not None and accepts(value):
            return ()
        from workpacket.text.schema_violations import violations

        return violations(schema, value)

    def _load(self, name: str) -> tuple[Schema, Callable[[Plain], bool] | None]:
        if name not in self._loaded:
            schema = self._loader.load(name)
            self._loaded[name] = schema, compile_acceptor(schema)
        return self._loaded[name]
