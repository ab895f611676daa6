"""How a result is kept: as the JSON text that gives back exactly the value that went in.

The stored text keeps the order of keys and the point of `1.0`, so that a resumed run sees what the first run saw; its
address is the SHA-256 of those bytes. The *meaning* of a value is compared by `jcs_hash` instead, in which `1.0` and
`1` are one number and the order of keys does not count.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple, Protocol, TypeVar, cast

from workpacket.model.canonical import Json
from workpacket.runtime.records.jcs import ORDERED, hash_of, survey, surveyed_text, text_encoder

T = TypeVar("T")

_encode = text_encoder(sort_keys=False)


class Codec(Protocol[T]):
    """Turns a value of your own type into JSON and back. No pickle, no class paths: only what you write here."""

    def encode(self, value: T) -> Json: ...
    def decode(self, stored: Json) -> T: ...


class StoredValue(NamedTuple):
    """The text that is kept for a value, its bytes, and the hash of what the value means."""

    text: str
    stored: bytes
    meaning: str


def kept(value: Json) -> StoredValue:
    """How `value` is kept; `NotCanonical` if it would come back as something else."""
    form = survey(value)
    text = _encode(value)
    stored = text.encode("utf-8")
    canonical = stored if form == ORDERED else surveyed_text(value, form).encode("utf-8")
    return StoredValue(text, stored, hash_of(canonical))


def stored_text(value: Json) -> str:
    """The text alone."""
    survey(value)
    return _encode(value)


def value_of(stored: bytes) -> Json:
    return cast(Json, json.loads(stored))


def address_of(stored: bytes) -> str:
    """Where the bytes are found: their SHA-256 in hexadecimal."""
    return hashlib.sha256(stored).hexdigest()
