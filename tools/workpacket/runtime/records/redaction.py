"""Secrets are removed before anything is stored; if that cannot be done, nothing is stored.

Every text is searched for the values of environment variables whose names mark them as secret, for the forms of
secrets (`secret_forms`), and for the places that hold them (`secret_places`). In a mapping, the name of a key counts.
The whole encoded value is searched first, because it rarely contains a secret; only on a hit is the value walked and
its texts replaced. The strings of a value are searched decoded, so an escape hides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.events import Data, RecordKind
from workpacket.runtime.records.jcs import jcs_hash, jcs_text, quoted
from workpacket.runtime.records.secret_forms import (
    RULES,
    SHAPES,
    SecretRule,
    SecretShape,
    prefix_pattern,
    without_form,
    without_shape,
)
from workpacket.runtime.records.secret_places import (
    Likely,
    is_secret_value,
    likely_secret,
    may_have_places,
    names_a_secret,
    without_places,
)

__all__ = ["RULES", "Redactor", "SecretRule", "clean_data", "clean_record", "names_a_secret"]

SHORTEST_VALUE = 8  # a shorter environment value would occur everywhere by chance
_SHORTEST_MIXED = 6  # of letters and digits, it would not
BY_ENVIRONMENT = "[redacted:environment]"
BY_NAME = "[redacted:name]"
# A private key, its escapes included, is no longer than this.
_REACH = 4096
_SHORTEST_NUMBER = 1000

# Nearly every form has this many characters of this alphabet in a row; ordinary text rarely does.
_RUN = 16
_IN_RUN = b"x" * _RUN
_CLASSES = bytes(
    120 if chr(one).isascii() and (chr(one).isalnum() or chr(one) in "_-+/=.:~$") else 32 for one in range(256)
)


@dataclass(slots=True)
class Redactor:
    rules: tuple[SecretRule, ...] = RULES
    values: tuple[str, ...] = ()
    _prefixes: re.Pattern[str] | None = field(default=None, init=False, repr=False)
    _values: tuple[str, ...] = field(init=False, repr=False)  # and how they are written inside JSON or a URL

    def __post_init__(self) -> None:
        written = dict.fromkeys(self.values)
        for value in self.values:
            written |= {json.dumps(value, ensure_ascii=False)[1:-1]: None, json.dumps(value)[1:-1]: None}
            written |= {quote(value, safe=""): None}
        self._values = tuple(sorted(written, key=len, reverse=True))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Redactor:
        values: set[str] = set()
        for name, value in environment.items():
            likely = likely_secret(name)
            if likely and _can_be_searched(value) and (likely == "surely" or not value.startswith(("/", "~/", "./"))):
                values.add(value)
            if "://" in value and "@" in value and (password := _password_in(value)):
                values.add(password)
        return cls(values=tuple(sorted(values, key=len, reverse=True)))

    def clean_value(self, value: Json, encoded: str) -> tuple[Json, int]:
        """Return the value without secrets, and the number removed; `encoded` is its JSON text."""
        if value is None or type(value) in {bool, int, float}:
            return value, 0
        try:
            search = self._search(encoded)
            return (value, 0) if search is None else search.value(value, "")
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error

    @property
    def longest(self) -> int:
        """Return the length that suffices to recognize any secret by its beginning."""
        return max([_REACH, *(len(value.encode("utf-8", "surrogatepass")) for value in self.values)])

    def clean_text(self, text: str) -> str:
        """Return a text that is not JSON without its secrets."""
        search = self._search(text)
        return text if search is None else search.text(text)[0]

    def clean_named(self, name: str, value: Json) -> Json:
        """Return the value without secrets, given the name under which it is kept."""
        everything = _Search(self._values, self.rules, SHAPES, places=True)
        return everything.value(value, likely_secret(name))[0]

    def may_hold_secret(self, text: str) -> bool:
        """Whether a text, as JSON or as it is, may contain a secret."""
        return self._search(text) is not None

    def _search(self, text: str) -> _Search | None:
        """Return what has to be searched for in a text, as JSON or as it is; None if nothing can be found in it."""
        values: tuple[str, ...] = ()
        for value in self._values:
            if value in text:
                values = self._values
        rules: tuple[SecretRule, ...] = ()
        shapes: tuple[SecretShape, ...] = ()
        if _IN_RUN in text.encode("utf-8", "surrogatepass").translate(_CLASSES) or "PRIVATE" in text:
            shapes = tuple(shape for shape in SHAPES if shape.mark in text and shape.pattern.search(text))
            if self._prefixes is None:  # compiled when it is first needed, because that takes some milliseconds
                self._prefixes = prefix_pattern(self.rules)
            if self._prefixes.search(text) is not None:
                rules = tuple(rule for rule in self.rules if rule.begins in text)
        places = may_have_places(text)
        return _Search(values, rules, shapes, places) if values or rules or shapes or places else None


class _Search(NamedTuple):
    """What may be found in one value. `places`: secrets that are recognized by their place, and by names."""

    values: tuple[str, ...]
    rules: tuple[SecretRule, ...]
    shapes: tuple[SecretShape, ...]
    places: bool

    def value(self, value: Json, likely: Likely) -> tuple[Json, int]:
        """Clean a value that is kept under a name; `likely` is what the name says."""
        if isinstance(value, str):
            text, hits = self.text(value)
            whole = hits == 1 and text.startswith("[redacted:") and text.endswith("]")
            return (BY_NAME, 1) if not whole and is_secret_value(value, likely) else (text, hits)
        if isinstance(value, list | tuple):
            return self._list(value, likely)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if likely == "surely" and type(value) is int and abs(value) >= _SHORTEST_NUMBER:
            return BY_NAME, 1
        return value, 0

    def _list(self, value: list[Json] | tuple[Json, ...], likely: Likely) -> tuple[Json, int]:
        if len(value) == 2 and isinstance(value[0], str) and " " not in value[0]:  # a name and a value
            name, item = value
            own: Likely = "perhaps" if likely_secret(name) else ""
            (first, in_name), (second, in_item) = self.value(name, likely), self.value(item, likely or own)
            return [first, second], in_name + in_item
        cleaned = [self.value(item, likely) for item in value]
        return [item for item, _ in cleaned], sum(count for _, count in cleaned)

    def _mapping(self, value: Mapping[str, Json]) -> tuple[Json, int]:
        found = 0
        result: dict[str, Json] = {}
        # A variable or header may have the form {"name": "DB_PASSWORD", "value": "..."}.
        named = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "value")
        for key, item in value.items():
            name = str(named) if key == "value" else key
            if isinstance(item, str) and name.lower() in {"cookie", "set-cookie"}:
                text, in_item = self.text(_COOKIE + item)
                cleaned: Json = text.removeprefix(_COOKIE)
            elif key.endswith("hashes") and isinstance(item, Mapping):
                cleaned, in_item = self._hashes(item)
            else:
                cleaned, in_item = self.value(item, likely_secret(name) if self.places else "")
            clean_key, in_key = self.text(key)
            result[clean_key] = cleaned
            found += in_key + in_item
        return result, found

    def _hashes(self, value: Mapping[str, Json]) -> tuple[Json, int]:
        """Clean a mapping of names to hashes: the names say nothing about the hashes."""
        texts = {name: self.text(item) if isinstance(item, str) else (item, 0) for name, item in value.items()}
        return {name: text for name, (text, _) in texts.items()}, sum(hits for _, hits in texts.values())

    def text(self, text: str) -> tuple[str, int]:
        found = 0
        for value in self.values:
            if value in text:
                found += text.count(value)
                text = text.replace(value, BY_ENVIRONMENT)
        for shape in self.shapes:
            if shape.mark in text:
                text, hits = without_shape(text, shape)
                found += hits
        for rule in self.rules:
            if rule.begins in text:
                text, hits = without_form(text, rule)
                found += hits
        if self.places:
            text, hits = without_places(text)
            found += hits
        return text, found


_COOKIE = "cookie: "
_NAMES = ("name", "key", "header", "variable")


def _can_be_searched(value: str) -> bool:
    """Whether a value of the environment is long enough, or odd enough, not to occur in other texts by chance."""
    mixed = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return len(value) >= (_SHORTEST_MIXED if mixed else SHORTEST_VALUE)


def _password_in(url: str) -> str:
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return ""
    return password if _can_be_searched(password) else ""


def clean_record(kind: RecordKind, data: Data, redactor: Redactor) -> str:
    """Return the canonical text of a record: only listed fields, each handled by its sensitivity."""
    return jcs_text(clean_data(kind, data, redactor))


def clean_data(kind: RecordKind, data: Data, redactor: Redactor) -> dict[str, Json]:
    """Return the redacted record as a value instead of text."""
    kept = dict(data)
    dropped = 0
    for name in kind.guarded(kept):
        value = kept[name]
        sensitivity = kind.fields.get(name, "drop")
        if sensitivity == "scan":
            text = quoted(value) if type(value) is str else json.dumps(value, ensure_ascii=False)
            kept[name], _ = redactor.clean_value(value, text)
        elif sensitivity == "hash":
            kept[name] = jcs_hash(value)
        else:
            del kept[name]
            dropped += 1
    if dropped:
        kept["dropped"] = dropped
    return kept
