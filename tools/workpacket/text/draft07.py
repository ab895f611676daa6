"""The draft-07 twin of a schema, for editors, which know nothing newer.

A twin says the same in older words: `$defs` are `definitions`, and what is written beside a `$ref`, which draft-07
overlooks, is wrapped in `allOf`. Keywords that draft-07 does not have are not honoured here at all.

The twins are files, `schemas/draft-07/<name>.schema.json`; tools/reference.py writes them, and a test compares.
"""

from __future__ import annotations

import json
from typing import Any

from workpacket.text.schema_loading import (
    ONE_SCHEMA,
    SCHEMA_LISTS,
    Loader,
    Read,
    Schema,
    parse_schema,
)

DIALECT = "http://json-schema.org/draft-07/schema#"


def twin(name: str, read: Read) -> bytes:
    """The file of the twin of schema `name`; `read` is as for `SchemaSet`."""
    Loader(read).load(name)  # refuses what is not honoured here, which a twin would pass on
    text = json.dumps(_converted(parse_schema(name, read(name))), indent=2, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "backslashreplace")  # half a character, and nothing else, needs its escape


def _converted(schema: Schema) -> Schema:
    if isinstance(schema, bool):
        return schema
    result: dict[str, Any] = {}
    for keyword, argument in schema.items():
        if keyword != "$ref":
            result["definitions" if keyword == "$defs" else keyword] = _argument(keyword, argument)
    if "$ref" in schema:
        reference = {"$ref": schema["$ref"].replace("#/$defs/", "#/definitions/")}
        return {**result, "allOf": [reference, *result.get("allOf", [])]} if result else reference
    return result


def _argument(keyword: str, argument: Any) -> Any:
    if keyword == "$schema":
        return DIALECT
    if keyword == "$id":
        folder, slash, file = argument.rpartition("/")
        return f"{folder}/draft-07/{file}" if slash else f"{argument}:draft-07"
    if keyword in ONE_SCHEMA:
        return _converted(argument)
    if keyword in SCHEMA_LISTS:
        return [_converted(inner) for inner in argument]
    if keyword in {"properties", "$defs"}:
        return {name: _converted(inner) for name, inner in argument.items()}
    return argument
