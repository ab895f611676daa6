"""Makes the draft-07 twin of a schema, for editors, which support nothing newer.

A twin says the same with older keywords: `$defs` become `definitions`, `prefixItems` a list of `items`, siblings of a
`$ref` (which draft-07 ignores) are wrapped in `allOf`, and `unevaluatedProperties` lists the evaluated fields. Anything
that draft-07 cannot express is refused, never dropped: a twin that accepts more than the schema would mislead its
readers.

The twins are files, `schemas/draft-07/<name>.schema.json`; tools/reference.py writes them, and a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from workpacket.text.schema_loading import (
    ONE_SCHEMA,
    REFERENCE,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SHARED,
    Read,
    Schema,
    UnusableSchema,
    parse_schema,
)

DIALECT = "http://json-schema.org/draft-07/schema#"

_NEW_NAMES = {"$defs": "definitions", "dependentSchemas": "dependencies", "prefixItems": "items"}
_WITHOUT_WORDS = frozenset(["maxContains", "minContains"])
_DEPENDS_ON_VALUE = ("anyOf", "oneOf", "if", "dependentSchemas")


def twin(name: str, read: Read) -> bytes:
    """Return the file of the twin of schema `name`; `read` is as for `SchemaSet`."""
    converter = _Converter(name, read)
    text = json.dumps(converter.converted(converter.file(name)), indent=2, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "backslashreplace")  # only a lone surrogate needs its escape


class _Converter:
    def __init__(self, name: str, read: Read) -> None:
        self._name = name
        self._read = read

    def file(self, name: str) -> dict[str, Any]:
        return parse_schema(name, self._read(name))

    def converted(self, schema: Schema) -> Schema:
        if isinstance(schema, bool):
            return schema
        result: dict[str, Any] = {}
        for keyword, argument in schema.items():
            if keyword in _WITHOUT_WORDS:
                raise self._refusal(keyword)
            if keyword not in {"$ref", "dependentRequired", "unevaluatedProperties"}:
                result[_name(keyword, schema)] = self._argument(keyword, argument)
        if "dependentRequired" in schema:
            result["dependencies"] = _dependencies(schema["dependentRequired"], result.get("dependencies", {}))
        if "unevaluatedProperties" in schema:
            self._close(result, schema)
        if "$ref" in schema:
            reference = {"$ref": schema["$ref"].replace("#/$defs/", "#/definitions/")}
            return {**result, "allOf": [reference, *result.get("allOf", [])]} if result else reference
        return result

    def _argument(self, keyword: str, argument: Any) -> Any:
        if keyword == "$schema":
            return DIALECT
        if keyword == "$id":
            folder, slash, file = argument.rpartition("/")
            return f"{folder}/draft-07/{file}" if slash else f"{argument}:draft-07"
        if keyword in ONE_SCHEMA:
            return self.converted(argument)
        if keyword in SCHEMA_LISTS:
            return [self.converted(inner) for inner in argument]
        if keyword in SCHEMA_MAPS or keyword == "$defs":
            return {name: self.converted(inner) for name, inner in argument.items()}
        return argument

    def _close(self, result: dict[str, Any], schema: dict[str, Any]) -> None:
        """Translate `unevaluatedProperties` to `additionalProperties`, which sees only the fields named next to it."""
        seen = list(self._seen(schema, self._name))
        if any("additionalProperties" in part for part in seen) or any(
            "unevaluatedProperties" in part for part in seen[1:]
        ):
            return  # there is already a rule for all other fields, so nothing is left to evaluate
        for keyword in ("properties", "patternProperties"):
            names = {name: True for part in seen for name in part.get(keyword, ())}
            if names:
                result[keyword] = {**names, **result.get(keyword, {})}
        result["additionalProperties"] = self.converted(schema["unevaluatedProperties"])

    def _seen(self, schema: Schema, file: str) -> Iterator[dict[str, Any]]:
        """Yield the schema and all those that apply to the same value in any case."""
        if isinstance(schema, bool):
            return
        if any(keyword in schema for keyword in _DEPENDS_ON_VALUE):
            raise self._refusal("unevaluatedProperties beside a choice")
        yield schema
        for inner in schema.get("allOf", ()):
            yield from self._seen(inner, file)
        match = REFERENCE.match(schema.get("$ref", ""))
        if match:
            file = SHARED if match["shared"] else file
            yield from self._seen(self.file(file)["$defs"][match["name"]], file)

    def _refusal(self, what: str) -> UnusableSchema:
        return UnusableSchema(f"{self._name}.schema.json: draft-07 cannot express {what}")


def _name(keyword: str, schema: dict[str, Any]) -> str:
    if keyword == "items" and "prefixItems" in schema:
        return "additionalItems"
    return _NEW_NAMES.get(keyword, keyword)


def _dependencies(required: dict[str, list[str]], schemas: dict[str, Schema]) -> dict[str, Any]:
    """Return both kinds of dependencies under the single keyword of draft-07."""
    together: dict[str, Any] = {**schemas, **required}
    for name in schemas.keys() & required.keys():
        together[name] = {"allOf": [{"required": required[name]}, schemas[name]]}
    return together
