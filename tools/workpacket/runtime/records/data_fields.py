"""Reading the fields of a record: what is missing or of another type is empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.model.canonical import Json
from workpacket.runtime.records.kinds import Data


def text(data: Data, name: str) -> str:
    return str(data.get(name, "") or "")


def number(data: Data, name: str) -> int:
    value = data.get(name, 0)
    return value if isinstance(value, int) else 0


def texts_by_key(data: Data, name: str) -> dict[str, str]:
    value = data.get(name)
    return {key: str(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def members(data: Data, name: str) -> Mapping[str, Json]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def optional_texts_by_key(data: Data, name: str) -> dict[str, str] | None:
    """None if the record does not have the field: one from before there was such a field."""
    return texts_by_key(data, name) if name in data else None


def texts(data: Data, name: str) -> tuple[str, ...]:
    value = data.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
