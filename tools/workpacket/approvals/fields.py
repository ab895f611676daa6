"""Strict reading of closed tables, in which every key must be known, and of encodings: keys, signatures, digests and
times.

Errors are collected, so that one pass reports all of them; an invalid value is replaced by an empty one, which the
caller discards if there were errors.

`load_json` is the only JSON parser in this layer. It refuses everything on which JSON parsers disagree: duplicate keys,
inexact numbers, and encodings other than UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import LARGEST_DATA
from workpacket.problem import WorkpacketError

LONGEST_NAME = 255


class WireFault(ValueError):
    """The bytes are malformed; the message gives the offset."""


class Reader:
    """Reads fields from the start of `data`."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def raw(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise WireFault(
                f"expected {count} bytes at offset {self._position}, but only {len(self._data) - self._position} remain"
            )
        piece = self._data[self._position : end]
        self._position = end
        return piece

    def byte(self) -> int:
        return self.raw(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.raw(4), "big")

    def string(self) -> bytes:
        return self.raw(self.u32())

    def text(self) -> str:
        """Read a name: printable ASCII of limited length."""
        start = self._position
        data = self.string()
        if len(data) > LONGEST_NAME or not all(0x20 < byte < 0x7F for byte in data):
            raise WireFault(
                f"the name at offset {start} is not printable ASCII, or is longer than {LONGEST_NAME} bytes"
            )
        return data.decode("ascii")

    def positive(self) -> int:
        """Read a positive multiple-precision integer, in its shortest form."""
        start = self._position
        data = self.string()
        if not data or data[0] & 0x80:
            raise WireFault(f"the integer at offset {start} is not positive")
        if data[0] == 0 and (len(data) == 1 or not data[1] & 0x80):
            raise WireFault(f"the integer at offset {start} has redundant leading zero bytes")
        return int.from_bytes(data, "big")

    def end(self) -> None:
        left = len(self._data) - self._position
        if left:
            raise WireFault(f"{left} unexpected bytes follow the last field at offset {self._position}")


def string(data: bytes) -> bytes:
    """Return `data` preceded by its length."""
    return len(data).to_bytes(4, "big") + data


def decode_base64(text: str) -> bytes:
    """Return the bytes that `text` encodes canonically; raise `ValueError` for any other text."""
    try:
        data = base64.b64decode(text.encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("not base64") from None
    if encode_base64(data) != text:
        raise ValueError("base64 with stray bits or wrong padding")
    return data


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_FORM = lazy_pattern(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)


def read_instant(text: str) -> datetime | None:
    """Return the time, or None if `text` has a different form or is not a valid date and time."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def write_instant(instant: datetime) -> str:
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


# A digest as pronounceable words, for a person to compare the text on one screen with the text signed on another. Each
# word holds 16 bits as consonant-vowel-consonant-vowel-consonant (the scheme known as proquint), so six words hold the
# first 96 bits. Finding another text with the same words takes about 2**96 tries; making two texts that share their
# words takes about 2**48. The words are therefore only for the eye; the signature covers all 256 bits.
WORDS = 6

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"


def six_words(sha256: str) -> str:
    """Return a digest in hexadecimal as six words, which are easier to compare."""
    data = bytes.fromhex(sha256)
    return " ".join(_word(int.from_bytes(data[start : start + 2], "big")) for start in range(0, 2 * WORDS, 2))


def _word(number: int) -> str:
    return "".join(
        (
            _CONSONANTS[number >> 12],
            _VOWELS[number >> 10 & 3],
            _CONSONANTS[number >> 6 & 15],
            _VOWELS[number >> 4 & 3],
            _CONSONANTS[number & 15],
        )
    )


_MISSING: Final = object()

# The forms of digests, commits and names, in statements and policies.
SHA256 = lazy_pattern(r"[0-9a-f]{64}")
COMMIT = lazy_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
NAME = lazy_pattern(r"[a-z][a-z0-9_-]{0,39}")
PRINCIPAL = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,127}")
REPOSITORY = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")

LONGEST_VALIDITY = timedelta(days=30)
# How far the clocks of a signer and a verifier may differ.
CLOCK_SKEW = timedelta(minutes=5)


class Fields:
    """The keys of `value`, which should be a table, at `where` in its document."""

    def __init__(self, value: object, where: str, faults: list[str]) -> None:
        self._where = where
        self._faults = faults
        self._left: dict[str, object] = {}
        if isinstance(value, dict):
            self._left.update(value)
            return
        if value is not _MISSING:
            self.fault("", "is not a table of keys and values")
        # If a table is missing, do not report its contents as missing too.
        self._faults = []

    def fault(self, key: str, what: str) -> None:
        self._faults.append(f"{self._place(key) or 'the document'} {what}")

    def has(self, key: str) -> bool:
        return key in self._left

    def is_null(self, key: str) -> bool:
        """Whether the key is present with the value null; it then counts as read."""
        if self._left.get(key, _MISSING) is not None:
            return False
        del self._left[key]
        return True

    def names(self) -> tuple[str, ...]:
        """Return the keys that were not read."""
        return tuple(self._left)

    def text(self, key: str, form: re.Pattern[str], what: str) -> str:
        value = self._take(key)
        if isinstance(value, str) and form.fullmatch(value):
            return value
        self._wrong(key, value, what)
        return ""

    def whole(self, key: str, low: int, high: int) -> int:
        value = self._take(key)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self._wrong(key, value, f"a whole number from {low} to {high}")
        return low

    def truth(self, key: str) -> bool:
        value = self._take(key)
        if isinstance(value, bool):
            return value
        self._wrong(key, value, "true or false")
        return False

    def texts(self, key: str, form: re.Pattern[str], what: str) -> tuple[str, ...]:
        """Return a list of distinct strings that all have the given form."""
        value = self._take(key)
        if isinstance(value, list) and all(isinstance(item, str) and form.fullmatch(item) for item in value):
            if len(set(value)) < len(value):
                self.fault(key, "contains the same item twice")
            return tuple(value)
        self._wrong(key, value, f"a list of {what}")
        return ()

    def inner(self, key: str) -> Fields:
        return Fields(self._take(key), self._place(key), self._faults)

    def tables(self, key: str) -> list[Fields]:
        """Return the tables in a list, which must contain at least one."""
        value = self._take(key)
        if isinstance(value, list) and value:
            return [Fields(item, f"{self._place(key)}[{index}]", self._faults) for index, item in enumerate(value)]
        self._wrong(key, value, "a list of at least one table")
        return []

    def end(self) -> None:
        for key in self._left:
            self.fault(key, "is unknown")

    def _take(self, key: str) -> object:
        if key not in self._left:
            self.fault(key, "is missing")
        return self._left.pop(key, _MISSING)

    def _wrong(self, key: str, value: object, what: str) -> None:
        if value is not _MISSING:
            self.fault(key, f"is not {what}")

    def _place(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where and key else self._where or key


_LONGEST_NUMBER = 16


def load_json(data: bytes) -> object:
    """Return the value of JSON text; raise `WorkpacketError` if it is invalid."""
    if len(data) > LARGEST_DATA:
        raise WorkpacketError("approval_not_json", f"{len(data)} bytes exceed the limit of {LARGEST_DATA}")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_int=_exact,
            parse_float=_not_exact,
            parse_constant=_not_exact,
        )
    except UnicodeDecodeError as fault:
        raise WorkpacketError("approval_not_json", f"the byte at offset {fault.start} is not valid UTF-8") from None
    except RecursionError:
        raise WorkpacketError("approval_not_json", "the JSON is nested too deeply") from None
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno}, column {fault.colno}"
        raise WorkpacketError("approval_not_json", f"not JSON at {place}: {fault.msg}") from None


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise WorkpacketError("approval_duplicate_key", f"key {key[:80]!r} appears twice in one object")
        table[key] = value
    return table


def _exact(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        _not_exact(digits)
    return int(digits)


def _not_exact(text: str) -> NoReturn:
    raise WorkpacketError("approval_not_json", f"the number {text[:40]} is not an exact integer")
