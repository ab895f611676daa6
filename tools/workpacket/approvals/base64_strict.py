"""Base64 with one spelling for one value: no white space, full padding, no stray bits.

Lenient decoders let the same signature appear in many files, and two readers disagree about which is meant.
"""

from __future__ import annotations

import base64
import binascii


def decode(text: str) -> bytes:
    """The bytes that `text` is the only encoding of; `ValueError` for every other text."""
    try:
        data = base64.b64decode(text.encode("ascii"))
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("not base64") from None
    if encode(data) != text:
        raise ValueError("base64 with stray bits or wrong padding")
    return data


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
