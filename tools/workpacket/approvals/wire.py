"""The binary encoding of SSH keys and signatures (RFC 4251, section 5), read strictly.

Every number has one encoding and nothing may follow the last field. What is lenient here is where forged or malleable
signatures live.
"""

from __future__ import annotations

LONGEST_NAME = 255


class WireFault(ValueError):
    """The bytes do not have the form; the message names the offset."""


class Reader:
    """Takes fields off the front of `data`."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def raw(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise WireFault(f"{count} bytes wanted at offset {self._position}, {len(self._data) - self._position} left")
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
        """A string that names something: printable ASCII, and not endless."""
        start = self._position
        data = self.string()
        if len(data) > LONGEST_NAME or not all(0x20 < byte < 0x7F for byte in data):
            raise WireFault(f"the name at offset {start} is not printable ASCII of at most {LONGEST_NAME} bytes")
        return data.decode("ascii")

    def positive(self) -> int:
        """A multiple precision integer above zero, in its shortest form."""
        start = self._position
        data = self.string()
        if not data or data[0] & 0x80:
            raise WireFault(f"the integer at offset {start} is not positive")
        if data[0] == 0 and (len(data) == 1 or not data[1] & 0x80):
            raise WireFault(f"the integer at offset {start} has a needless leading zero")
        return int.from_bytes(data, "big")

    def end(self) -> None:
        left = len(self._data) - self._position
        if left:
            raise WireFault(f"{left} bytes follow the last field at offset {self._position}")


def string(data: bytes) -> bytes:
    """`data` with its length in front."""
    return len(data).to_bytes(4, "big") + data
