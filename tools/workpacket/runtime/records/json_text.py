"""JSON text as quickly as the standard library can write it.

`json.JSONEncoder.encode` builds a new C encoder for every call, which takes longer than encoding a small record. Here
it is built once; where there is none (another Python), the plain encoder does the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any

quoted: Callable[[str], str] = encoder.encode_basestring
"""One text as JSON, as Unicode."""


def storable(text: str) -> str:
    """The text with lone surrogates written as escapes: names of files may hold them, and no record can."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


_read = json.JSONDecoder().raw_decode


def text_encoder(*, sort_keys: bool) -> Callable[[object], str]:
    """A function that writes compact JSON, as Unicode, of values that were looked over before."""
    plain = json.JSONEncoder(
        ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, check_circular=False
    )
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    compiled = make(None, plain.default, encoder.encode_basestring, None, ":", ",", sort_keys, False, False)

    def encode(value: object) -> str:
        if isinstance(value, str | float):  # the C encoder knows only how to write what is inside a container
            return plain.encode(value)
        return "".join(compiled(value, 0))

    return encode


def value_in(text: str) -> Any:
    """The value of a JSON text that we wrote: one value and nothing around it."""
    value, end = _read(text)
    if end != len(text):
        raise ValueError("not the JSON text of one value")
    return value
