"""Canonical JSON: one value has one sequence of bytes.

The profile of the event log and the approvals: keys are ASCII, numbers are integers below 2**53, strings contain no
lone surrogates. Within this profile, sorted keys and minimal separators already give RFC 8785 output; the tests prove
this against the `rfc8785` package. The profile is checked, never assumed: any other value raises `NotCanonical` with
its location.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"

LARGEST_INTEGER = 2**53 - 1


class NotCanonical(ValueError):
    """Raised for a value without a canonical form; the message gives the location as a JSON pointer."""


def canonical_bytes(value: Json) -> bytes:
    """Return the canonical form of `value`, without a final newline."""
    _require_profile(value, "")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def _require_profile(value: Json, pointer: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise NotCanonical(f"{pointer or '/'}: not every JSON parser can represent the integer {value} exactly")
    elif isinstance(value, str):
        _require_no_surrogates(value, pointer)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not key.isascii():
                raise NotCanonical(f"{pointer or '/'}: the key {key!r} is not ASCII")
            _require_profile(item, f"{pointer}/{key}")
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            _require_profile(item, f"{pointer}/{index}")
    else:
        raise NotCanonical(f"{pointer or '/'}: {type(value).__name__} is not allowed in canonical JSON")


def _require_no_surrogates(text: str, pointer: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical(f"{pointer or '/'}: the string contains a lone surrogate") from None
