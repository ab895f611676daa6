"""The encodings of keys, signatures, digests and times, parsed strictly, so that each value has only one encoding.
Leniency would allow forged and malleable signatures: one signature in many encodings, which two parsers read
differently. Therefore base64 has no white space, full padding and no stray bits; in the binary encoding of SSH (RFC
4251, section 5) every number has one form and nothing follows the last field; a point in time is RFC 3339 in whole
seconds, and always `Z`.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime

from workpacket.lazy_pattern import lazy_pattern

LONGEST_NAME = 255


class WireFault(ValueError):
    """The bytes are malformed; the message names the offset."""


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
                f"{count} bytes expected at offset {self._position}, but only "
                f"{len(self._data) - self._position} are left"
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
            raise WireFault(f"the name at offset {start} is not printable ASCII of at most {LONGEST_NAME} bytes")
        return data.decode("ascii")

    def positive(self) -> int:
        """Read a multiple precision integer above zero, in its shortest form."""
        start = self._position
        data = self.string()
        if not data or data[0] & 0x80:
            raise WireFault(f"the integer at offset {start} is not positive")
        if data[0] == 0 and (len(data) == 1 or not data[1] & 0x80):
            raise WireFault(f"the integer at offset {start} has a redundant leading zero")
        return int.from_bytes(data, "big")

    def end(self) -> None:
        left = len(self._data) - self._position
        if left:
            raise WireFault(f"{left} bytes follow the last field at offset {self._position}")


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
    """Return the time, or None if `text` has another form or is not an existing date and time."""
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
    """Return the words for a digest in hexadecimal."""
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
