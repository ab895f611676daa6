"""The one door through which JSON enters this layer.

Refuses what readers of JSON disagree about: duplicate keys, numbers that are not exact, anything but UTF-8.
"""

from __future__ import annotations

import json
from typing import NoReturn

from workpacket.approvals.refusal import RefusalError

LARGEST_BYTES = 256 * 1024
_LONGEST_NUMBER = 16


def load_json(data: bytes) -> object:
    """The value of a JSON text; raises `Refused`."""
    if len(data) > LARGEST_BYTES:
        raise RefusalError("approval_not_json", f"{len(data)} bytes are more than the {LARGEST_BYTES} that are read")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_int=_exact,
            parse_float=_not_exact,
            parse_constant=_not_exact,
        )
    except UnicodeDecodeError as fault:
        raise RefusalError("approval_not_json", f"the byte at offset {fault.start} is not UTF-8") from None
    except RecursionError:
        raise RefusalError("approval_not_json", "the JSON is nested too deeply") from None
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno}, column {fault.colno}"
        raise RefusalError("approval_not_json", f"not JSON at {place}: {fault.msg}") from None


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise RefusalError("approval_duplicate_key", f"the key {key[:80]!r} stands twice in one object")
        table[key] = value
    return table


def _exact(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        _not_exact(digits)
    return int(digits)


def _not_exact(text: str) -> NoReturn:
    raise RefusalError("approval_not_json", f"the number {text[:40]} is not an exact integer")
