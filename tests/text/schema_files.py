"""Schema files made for tests: a `read` function for `SchemaSet` from Python values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from workpacket.text.schema_loading import DIALECT, Loader, Schema


def reading(**schemas: Mapping[str, Any]) -> Callable[[str], bytes]:
    """Reads the given schemas by name; the dialect is added."""
    return {name: json.dumps({"$schema": DIALECT, **schema}).encode() for name, schema in schemas.items()}.__getitem__


def loaded(schema: Mapping[str, Any], **others: Mapping[str, Any]) -> Schema:
    """The schema as the layer works with it."""
    return Loader(reading(it=schema, **others)).load("it")
