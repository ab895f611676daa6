"""RFC 8785 in full: one JSON value, one sequence of bytes, floats included.

The ledger's profile (`workpacket.model.canonical`) refuses floats; results and inputs of a run may hold them. Numbers
are therefore written as ECMAScript writes them and keys are sorted by UTF-16 code units. What JSON cannot hold, or what
would come back as something else (a tuple, a set, an integer beyond 2**53, NaN), is refused with the place that holds
it. The tests compare every output with the `rfc8785` package.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable

from workpacket.model.canonical import LARGEST_INTEGER, NotCanonical

SCHEME = "jcs-1"
DEEPEST = 100

_EXACT = frozenset({type(None), bool, int, float, str, list, dict})
_ADVICE = {"tuple": "return a list", "set": "return a sorted list", "bytes": "return text, for example base64"}

_encode_text = json.JSONEncoder(ensure_ascii=False).encode
_encode_plain = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


def jcs_bytes(value: object) -> bytes:
    """The canonical bytes of `value`, or `NotCanonical` naming the key that has none."""
    if survey(value):
        return _encode_plain(value).encode("utf-8")
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts).encode("utf-8")


def jcs_hash(value: object) -> str:
    """`jcs-1:` and the SHA-256 of the canonical bytes: a stored hash always carries its scheme."""
    return f"{SCHEME}:{hashlib.sha256(jcs_bytes(value)).hexdigest()}"


def survey(value: object, pointer: str = "", depth: int = 0) -> bool:
    """Refuse what is not strict JSON; say whether the standard encoder already writes the canonical form of `value`.

    It does when there is no float and every key is ASCII, which is nearly always, and it is written in C.
    """
    if type(value) not in _EXACT:
        name = type(value).__name__
        raise _refused(pointer, f"{name} is not JSON; {_ADVICE.get(name, 'convert it, or give a codec')}")
    if isinstance(value, str):
        _require_text(value, pointer)
        return True
    if isinstance(value, dict | list):
        if depth == DEEPEST:
            raise _refused(pointer, f"nested deeper than {DEEPEST}")
        return _survey_members(value, pointer, depth + 1)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(pointer, f"{value} is not a JSON number")
        return False
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise _refused(pointer, f"the integer {value} is not exact in every JSON reader; store it as text")
    return True


def _survey_members(value: dict[object, object] | list[object], pointer: str, depth: int) -> bool:
    plain = True
    if isinstance(value, list):
        for index, item in enumerate(value):
            plain = survey(item, f"{pointer}/{index}", depth) and plain
        return plain
    for key, item in value.items():
        if type(key) is not str:
            raise _refused(pointer, f"the key {key!r} is not text")
        _require_text(key, pointer)
        plain = survey(item, f"{pointer}/{key}", depth) and plain and key.isascii()
    return plain


def _require_text(text: str, pointer: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(pointer, "the text holds a lone surrogate") from None


def _refused(pointer: str, why: str) -> NotCanonical:
    return NotCanonical(f"{pointer or '/'}: {why}")


def _write(value: object, put: Callable[[str], None]) -> None:
    if isinstance(value, dict):
        separator = "{"
        for key in sorted(value, key=_utf16):
            put(f"{separator}{_encode_text(key)}:")
            _write(value[key], put)
            separator = ","
        put("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            put(separator)
            _write(item, put)
            separator = ","
        put("]" if value else "[]")
    elif isinstance(value, float):
        put(number_text(value))
    else:
        put(_encode_text(value))


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def number_text(value: float) -> str:
    """The number as ECMAScript's Number::toString writes it. Python's `repr` finds the same shortest digits."""
    if value == 0:
        return "0"
    if value < 0:
        return "-" + number_text(-value)
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    digits = (whole + fraction).lstrip("0")
    point = int(power or 0) - len(fraction) + len(digits)
    digits = digits.rstrip("0")
    return _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """`digits` with the decimal point after the first `point` of them, in the notation ECMAScript picks."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
