"""RFC 8785 in full (one JSON value, one sequence of bytes, floats included), and how a result is stored.

The ledger's profile (`workpacket.model.canonical`) refuses floats, but a run's results and inputs may contain them.
Numbers are therefore written as ECMAScript writes them, and keys are sorted by UTF-16 code units. Anything that JSON
cannot represent, or would read back as something else (a tuple, a set, an integer beyond 2**53, NaN), is refused with
its path. The tests compare every output with the `rfc8785` package.

A result is stored as JSON text from which exactly the same value is read: it keeps the order of keys and the decimal
point of `1.0`, so that a resumed run sees the same value as the first run; its address is the SHA-256 of those bytes.
The *meaning* of a value is compared by `jcs_hash` instead, for which `1.0` and `1` are one number and the order of keys
does not matter.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
from collections.abc import Callable
from json import encoder
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

from workpacket.model.canonical import LARGEST_INTEGER, Json, NotCanonical
from workpacket.runtime.errors import PayloadSealed

quoted: Callable[[str], str] = encoder.encode_basestring
"""A string as JSON text, without escapes for characters that do not need them."""


def storable(text: str) -> str:
    """Return the string with lone surrogates escaped: file names may contain them, but records cannot."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


_read = json.JSONDecoder().raw_decode


def text_encoder(*, sort_keys: bool) -> Callable[[object], str]:
    """Return a function that writes compact Unicode JSON for values already checked."""
    plain = json.JSONEncoder(
        ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, check_circular=False
    )
    # Private to CPython, and used if available: `plain.encode` builds this encoder again for every value, and a step
    # takes 6 to 9 % more CPU time (15 interleaved pairs).
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    compiled = make(None, plain.default, encoder.encode_basestring, None, ":", ",", sort_keys, False, False)

    bare = (str, float)

    def encode(value: object) -> str:
        if isinstance(value, bare):  # the C encoder handles only containers
            return plain.encode(value)
        return "".join(compiled(value, 0))

    return encode


def value_in(text: str) -> Any:
    """Parse JSON text that we wrote: one value with nothing around it."""
    value, end = _read(text)
    if end != len(text):
        raise ValueError("not the JSON text of a single value")
    return value


SCHEME = "jcs-1"
# Far below the depth at which Python stops, wherever in the stack the caller is.
DEEPEST = 100

_ADVICE = {"tuple": "return a list", "set": "return a sorted list", "bytes": "return text, for example base64"}

Form = Literal[0, 1, 2]
OWN: Form = 0  # needs our own encoder: it contains a float, or a non-ASCII key
PLAIN: Form = 1  # the standard encoder writes the canonical text by sorting the keys
ORDERED: Form = 2  # its keys are already in order, so the stored text is the canonical text

_encode_text = json.JSONEncoder(ensure_ascii=False).encode
_encode_plain = text_encoder(sort_keys=True)
_encode_ordered = text_encoder(sort_keys=False)


def jcs_bytes(value: object) -> bytes:
    """Return the canonical bytes of `value`, or raise `NotCanonical` with the path of the part that has no canonical
    form."""
    return jcs_text(value).encode("utf-8")


def jcs_text(value: object) -> str:
    # Most arguments have one of these types.
    if type(value) is str and value.isascii():
        return quoted(value)
    if type(value) is int and -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return str(value)
    return surveyed_text(value, survey(value))


def jcs_hash(value: object) -> str:
    """Return `jcs-1:` and the SHA-256 of the canonical bytes: a stored hash always states its scheme."""
    return hash_of(jcs_text(value).encode("utf-8"))


def hash_of(canonical: bytes) -> str:
    return f"{SCHEME}:{hashlib.sha256(canonical).hexdigest()}"


def surveyed_text(value: object, form: Form) -> str:
    """Return the canonical text of a value for which `survey` returned this result."""
    if form == ORDERED:
        return _encode_ordered(value)
    if form == PLAIN:
        return _encode_plain(value)
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts)


class _Refused(Exception):
    """The fault. Its path is assembled while unwinding, so that there is no cost for valid values."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.path: list[object] = []


def survey(value: object) -> Form:
    """Reject values that are not strict JSON, and return the encoder that the canonical form of `value` requires.

    The standard encoder, written in C, is sufficient if there is no float and every key is ASCII.
    """
    try:
        return _survey(value, DEEPEST)
    except _Refused as refused:
        place = "".join(f"/{part}" for part in reversed(refused.path))
        raise NotCanonical(f"{place or '/'}: {refused.why}") from None


def _survey(value: object, levels: int) -> Form:
    if type(value) is dict:
        return _survey_members(value, levels - 1)
    if type(value) is str:
        if not value.isascii():
            _require_encodable(value)
        return ORDERED
    if value is None or type(value) is bool:
        return ORDERED
    if type(value) is int:
        if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
            return ORDERED
        raise _Refused(f"the integer {value} is not exact in every JSON parser; store it as a string")
    if type(value) is float:
        if math.isfinite(value):
            return OWN
        raise _Refused(f"{value} is not a JSON number")
    if type(value) is list:
        return _survey_items(value, levels - 1)
    name = type(value).__name__
    raise _Refused(f"{name} is not JSON; {_ADVICE.get(name, 'convert it, or give a codec')}")


def _survey_members(members: dict[object, object], levels: int) -> Form:
    if levels < 0:
        raise _Refused(f"nested deeper than {DEEPEST}")
    form, before, key = ORDERED, "", None
    try:
        for key, item in members.items():
            if not (type(item) is str and item.isascii()):  # nearly every value of a record has one of these types
                inner = _survey(item, levels)
                form = min(form, inner)
            if not (type(key) is str and key.isascii()):
                _require_text(key)
                form = OWN
            elif key < before and form == ORDERED:
                form = PLAIN
            else:
                before = key
    except _Refused as refused:
        refused.path.append(key)
        raise
    return form


def _survey_items(items: list[object], levels: int) -> Form:
    if levels < 0:
        raise _Refused(f"nested deeper than {DEEPEST}")
    form, place = ORDERED, 0
    try:
        for item in items:
            if not (type(item) is str and item.isascii()):
                form = min(form, _survey(item, levels))
            place += 1
    except _Refused as refused:
        refused.path.append(place)
        raise
    return form


def _require_text(key: object) -> None:
    if type(key) is not str:
        raise _Refused("the key is not a string")
    _require_encodable(key)


def _require_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _Refused("the string contains a lone surrogate") from None


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
    """Format the number as ECMAScript's Number::toString does. Python's `repr` finds the same shortest digits."""
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
    """Return `digits` with the decimal point after the first `point` of them, in the notation that ECMAScript would
    use."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


# Marks the hash of a stand-in, so that it never equals a hash of JSON.
STAND_IN_SCHEME = "value-1"


class Opaque(ValueError):
    """Raised for a value that cannot be distinguished from others of its class."""


def stand_in(value: object) -> Json:
    """Return JSON that represents a value, and differs if the value does: `{"<Decimal>": "1.50"}` for
    `Decimal("1.50")`.

    Raises `Opaque` for an object whose class is not a plain value. Within a container such an object is represented by
    its class alone, so that the rest of the container is compared.
    """
    try:
        return _stand_in(value, DEEPEST)
    except _Refused as refused:
        raise Opaque(refused.why) from None


def _stand_in(value: object, levels: int) -> Json:
    if levels < 0:
        raise _Refused(f"nested deeper than {DEEPEST}")
    try:
        survey(value)
    except NotCanonical:
        return _shown(value, levels - 1)
    return cast(Json, value)


def _shown(value: object, levels: int) -> Json:
    # These slow start-up, and few runs need them.
    from dataclasses import fields, is_dataclass
    from datetime import date, time, timedelta
    from decimal import Decimal
    from enum import Enum
    from fractions import Fraction
    from pathlib import PurePath
    from uuid import UUID

    def inner(item: object) -> Json:
        try:
            return _stand_in(item, levels)
        except Opaque:
            return f"<{type(item).__qualname__}>"

    if type(value) is list:
        return [inner(item) for item in value]
    if type(value) is dict and all(type(key) is str and key.isascii() for key in value):
        return {key: inner(item) for key, item in value.items()}
    parameters = getattr(type(value), "__dataclass_params__", None)
    shown: Json
    if isinstance(value, Enum):
        shown = str(value.name)
    elif isinstance(value, tuple | list):
        shown = [inner(item) for item in value]
    elif isinstance(value, set | frozenset):
        shown = sorted((inner(item) for item in value), key=jcs_text)
    elif isinstance(value, dict):
        shown = sorted(([inner(key), inner(item)] for key, item in value.items()), key=jcs_text)
    elif is_dataclass(value) and not isinstance(value, type) and getattr(parameters, "frozen", False):
        # A mutable object is often a tool of the program, such as a client.
        shown = {one.name: inner(getattr(value, one.name)) for one in fields(value)}
    elif isinstance(value, str | bytes | bytearray | int | float | complex):
        shown = ascii(value)
    elif isinstance(value, Decimal | Fraction | date | time | timedelta | PurePath | UUID):
        shown = storable(str(value))
    else:
        raise Opaque(f"{type(value).__qualname__} is not a plain value")
    return {f"<{type(value).__qualname__}>": shown}


T = TypeVar("T")

_encode = text_encoder(sort_keys=False)


class Codec(Protocol[T]):
    """Converts a value of your own type to JSON and back. No pickle, no class paths: only the code that you write
    here."""

    def encode(self, value: T) -> Json: ...
    def decode(self, stored: Json) -> T: ...


class StoredValue(NamedTuple):
    """The text stored for a value, its bytes, and the hash of the value's meaning."""

    text: str
    stored: bytes
    meaning: str


def kept(value: Json) -> StoredValue:
    """Return the stored form of `value`; raise `NotCanonical` if it would be read back as something else."""
    form = survey(value)
    text = _encode(value)
    stored = text.encode("utf-8")
    canonical = stored if form == ORDERED else surveyed_text(value, form).encode("utf-8")
    return StoredValue(text, stored, hash_of(canonical))


def stored_text(value: Json) -> str:
    """Return only the stored text."""
    survey(value)
    return _encode(value)


def value_of(stored: bytes) -> Json:
    """Return the value of a payload; an encrypted payload is decrypted with the key of this process."""
    if stored.startswith(SEALED):
        stored = unsealed(stored)
    text = stored.decode("utf-8", "surrogatepass")
    try:
        return cast(Json, value_in(text))  # half the time of `json.loads`
    except ValueError:
        return cast(Json, json.loads(text))  # written by another tool, with space around the value


SEALED = b'{"sealed_with":'  # how an encrypted payload begins


def address_of(stored: bytes) -> str:
    """Return the address of the bytes: their SHA-256 in hexadecimal."""
    return hashlib.sha256(stored).hexdigest()


VARIABLE = "WORKPACKET_PAYLOAD_KEY"
_BOUND = b"workpacket payload 1"  # a text of another program, encrypted with the same key, is not accepted
_KEY_BYTES, _NONCE_BYTES = 32, 12
_HOW = f"set {VARIABLE}; `openssl rand -base64 32` makes a key"


def payload_key() -> bytes | None:
    """Return the key of this process; None if there is none."""
    text = os.environ.get(VARIABLE) or _from_keyring()
    if not text:
        return None
    for decode in (bytes.fromhex, lambda said: base64.b64decode(said, validate=True)):
        try:
            key = decode(text.strip())
        except (ValueError, binascii.Error):
            continue
        if len(key) == _KEY_BYTES:
            return key
    raise PayloadSealed(f"{VARIABLE} is not a key: expected 32 bytes, as Base64 or hexadecimal", hint=_HOW)


def _from_keyring() -> str | None:
    try:
        import keyring  # type: ignore[import-not-found,unused-ignore]  # an optional package, imported only when a payload is sealed or opened
    except ImportError:
        return None
    found = keyring.get_password("workpacket", VARIABLE)
    return found if isinstance(found, str) else None


def key_id(key: bytes) -> str:
    return hashlib.sha256(b"workpacket payload key\n" + key).hexdigest()[:16]


def sealed(payload: bytes) -> bytes:
    """Return the payload, encrypted."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # takes longer to import than the rest of a run

    key = payload_key()
    if key is None:
        raise PayloadSealed("there is no key to encrypt a payload with", hint=_HOW)
    nonce = os.urandom(_NONCE_BYTES)
    text = AESGCM(key).encrypt(nonce, payload, _BOUND)
    parts = {"sealed_with": key_id(key), "nonce": base64.b64encode(nonce).decode()}
    parts["text"] = base64.b64encode(text).decode()
    return json.dumps(parts, separators=(",", ":")).encode("ascii")


def unsealed(payload: bytes) -> bytes:
    """Return the payload as it was before encryption; a payload that was not encrypted is returned unchanged."""
    if not payload.startswith(SEALED):
        return payload
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    parts = json.loads(payload)
    key, wanted = payload_key(), parts["sealed_with"]
    if key is None:
        raise PayloadSealed(
            f"the payload is encrypted with key {wanted}, which is not set", hint=f"set {VARIABLE}=KEY to key {wanted}"
        )
    if key_id(key) != wanted:
        raise PayloadSealed(
            f"the payload is encrypted with key {wanted}, but {VARIABLE} contains key {key_id(key)}",
            hint=f"set {VARIABLE}=KEY to key {wanted}",
        )
    try:
        return AESGCM(key).decrypt(base64.b64decode(parts["nonce"]), base64.b64decode(parts["text"]), _BOUND)
    except (InvalidTag, KeyError, ValueError):
        raise PayloadSealed(f"the payload encrypted with key {wanted} is damaged") from None
