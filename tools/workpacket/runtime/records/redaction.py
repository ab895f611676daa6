"""Secrets are removed before anything is stored; if that cannot be done, nothing is stored.

Every string is searched for the values of environment variables whose names mark them as secret, for the forms of
secrets, and for the places that hold them (`secrets`). In a mapping, the name of a key counts. The whole encoded value
is searched first, because it rarely contains a secret; the value is walked, and its strings are replaced, only on a
hit. The strings of a value are searched decoded, so an escape hides nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import quote, urlsplit

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RedactionFailed, WouldBeAltered
from workpacket.runtime.records.events import Data, RecordKind
from workpacket.runtime.records.jcs import SEALED, jcs_hash, jcs_text, quoted, storable
from workpacket.runtime.records.secrets import (
    RULES,
    SHAPES,
    Likely,
    Prefixes,
    SecretRule,
    SecretShape,
    is_secret_value,
    likely_secret,
    may_have_places,
    names_a_secret,
    without_form,
    without_places,
    without_shape,
)

__all__ = ["RULES", "Redactor", "SecretRule", "clean_data", "clean_record", "names_a_secret"]

SHORTEST_VALUE = 8  # a shorter environment value would occur everywhere by chance
_SHORTEST_MIXED = 6  # of letters and digits, it would not
BY_ENVIRONMENT = "[redacted:environment]"
BY_NAME = "[redacted:name]"
# The most characters of a private key with its escapes, of a token with three parts, or of a header with cookies.
_REACH = 4096
_LONG = (b"PRIVATE", b"eyJ", b"ookie")
# Whatever else is a secret is recognized by fewer characters, and is searched for whenever the text grows.
_USUAL_REACH = 512
_SHORTEST_NUMBER = 1000
_REMEMBERED, _LONGEST_NAME = 1000, 200  # how many short texts without secrets are known, because names come again

# Nearly every form has this many characters of this alphabet in a row; ordinary text rarely does.
_RUN = 16
_IN_RUN = b"x" * _RUN
_CLASSES = bytes(
    120 if chr(one).isascii() and (chr(one).isalnum() or chr(one) in "_-+/=.:~$") else 32 for one in range(256)
)


Policy = Literal["hide", "encrypt", "refuse"]
POLICIES: tuple[Policy, ...] = ("hide", "encrypt", "refuse")
KEY_VARIABLE = "WORKPACKET_PAYLOAD_KEY"
_FOLDERS = frozenset({"PWD", "OLDPWD"})  # where a shell is and was


def plain_payload(payload: bytes) -> bytes:
    """Return the payload, decrypted if it is encrypted."""
    if not payload.startswith(SEALED):
        return payload
    from workpacket.runtime.records.jcs import unsealed

    return unsealed(payload)


def sealed_payload(payload: bytes) -> bytes:
    from workpacket.runtime.records.jcs import sealed  # only where a value is encrypted

    return sealed(payload)


@dataclass(slots=True)
class Redactor:
    rules: tuple[SecretRule, ...] = RULES
    values: tuple[str, ...] = ()
    policy: Policy = "hide"  # what happens to a value that contains a secret and that the program receives again
    _prefixes: Prefixes | None = field(default=None, init=False, repr=False)
    _plain: set[str] = field(default_factory=set, init=False, repr=False, compare=False)  # short texts, as names are
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
            likely = likely_secret(name) if name not in _FOLDERS else ""
            if likely and _can_be_searched(value) and (likely == "surely" or not value.startswith(("/", "~/", "./"))):
                values.add(value)
            if "://" in value and "@" in value and (password := _password_in(value)):
                values.add(password)
        policy = environment.get("WORKPACKET_REDACTION") or ("encrypt" if environment.get(KEY_VARIABLE) else "hide")
        if policy not in POLICIES:
            raise RedactionFailed(f"WORKPACKET_REDACTION is {policy!r}: expected {', '.join(POLICIES)}")
        return cls(values=tuple(sorted(values, key=len, reverse=True)), policy=policy)

    def clean_value(self, value: Json, encoded: str) -> tuple[Json, int]:
        """Return the value without secrets, and the number removed; `encoded` is its JSON text."""
        if value is None or type(value) in {bool, int, float}:
            return value, 0
        try:
            search = self._search(encoded)
            return (value, 0) if search is None else search.value(value, "")
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error

    def unaltered(self, field: str, value: Json, text: str) -> bytes:
        """Return the bytes to store for a value that is returned to the program: unchanged, or encrypted if the value
        contains a secret. Refuse the value if the policy is to hide secrets, because it would be different when it is
        returned.
        """
        if not self.clean_value(value, text)[1]:
            return text.encode("utf-8")
        if self.policy == "encrypt":
            return sealed_payload(text.encode("utf-8"))
        raise WouldBeAltered(
            f"{field} contains text that looks like a secret, and would be returned without that text",
            hint="store a reference to the secret, or set WORKPACKET_REDACTION=encrypt",
            details={"field": field},
        )

    @property
    def longest(self) -> int:
        """Return the length that is sufficient to recognize any secret by its beginning."""
        return max([_REACH, *(len(value.encode("utf-8", "surrogatepass")) for value in self.values)])

    def reach(self, stored: bytes) -> int:
        """Return how much of a stored text without secrets is searched again with the text that now follows it."""
        if any(sign in stored for sign in _LONG):
            return self.longest
        return max([_USUAL_REACH, *(len(value.encode("utf-8", "surrogatepass")) for value in self.values)])

    def clean_text(self, text: str) -> str:
        """Return a non-JSON text without its secrets."""
        if text in self._plain:
            return text
        search = self._search(text)
        cleaned = text if search is None else search.text(text)[0]
        if cleaned == text and len(text) <= _LONGEST_NAME:
            if len(self._plain) >= _REMEMBERED:
                self._plain.clear()
            self._plain.add(text)
        return cleaned

    def are_plain(self, texts: Set[str]) -> bool:
        return all(self.clean_text(text) == text for text in texts - self._plain)

    def clean_named(self, name: str, value: Json) -> Json:
        """Return the value without secrets, given the name under which it is kept."""
        everything = _Search(self._values, self.rules, SHAPES, places=True)
        return everything.value(value, likely_secret(name))[0]

    def name(self, text: str) -> str:
        """Return a name that can be stored: the name itself, or its hash if it contains a secret."""
        if self.clean_text(text) == text:
            return text
        return f"redacted-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    def require_plain(self, what: str, *texts: str) -> None:
        """Refuse a secret in a string that can be neither redacted nor encrypted, because it identifies something."""
        for text in texts:
            if self.clean_text(text) != text:
                raise RedactionFailed(
                    f"{what} contains text that looks like a secret: {self.clean_text(text)!r}",
                    hint="choose a name without the secret, and pass the secret as an argument",
                )

    def may_hold_secret(self, text: str) -> bool:
        """Whether a string, as JSON or verbatim, may contain a secret."""
        return self._search(text) is not None

    def _search(self, text: str) -> _Search | None:
        """Return what has to be searched for in a string, as JSON or verbatim; None if nothing can be found in it."""
        values: tuple[str, ...] = ()
        for value in self._values:
            if value in text:
                values = self._values
        rules: tuple[SecretRule, ...] = ()
        shapes: tuple[SecretShape, ...] = ()
        if _IN_RUN in text.encode("utf-8", "surrogatepass").translate(_CLASSES) or "PRIVATE" in text:
            shapes = tuple(shape for shape in SHAPES if shape.mark in text and shape.pattern.search(text))
            if self._prefixes is None:
                self._prefixes = Prefixes(self.rules)
            if self._prefixes.may_be_in(text):
                rules = tuple(rule for rule in self.rules if rule.begins in text)
        places = may_have_places(text)
        return _Search(values, rules, shapes, places) if values or rules or shapes or places else None


class _Search(NamedTuple):
    """What may be found in one value. `places`: secrets that are recognized by their position, and by names."""

    values: tuple[str, ...]
    rules: tuple[SecretRule, ...]
    shapes: tuple[SecretShape, ...]
    places: bool

    def value(self, value: Json, likely: Likely) -> tuple[Json, int]:
        """Clean a value that is stored under a name; `likely` is what the name suggests."""
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
                # `pass` alone is a word, but not beside the name of a user.
                likely = "surely" if key == "pass" and not value.keys().isdisjoint(_USERS) else likely_secret(name)
                cleaned, in_item = self.value(item, likely if self.places else "")
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
_USERS = frozenset({"user", "username", "login"})
_NAMES = ("name", "key", "header", "variable")


def _can_be_searched(value: str) -> bool:
    """Whether the value of an environment variable is so long or unusual that it would not occur in other text by
    chance."""
    mixed = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return len(value) >= (_SHORTEST_MIXED if mixed else SHORTEST_VALUE)


def _password_in(url: str) -> str:
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return ""
    return password if _can_be_searched(password) else ""


LONGEST_TEXT = 2000
_CUT = frozenset({"error", "unkept"})
# Hashes, ids and signatures, which are made here. What an envelope says of a question was searched with the question.
_MADE_HERE = frozenset({
    "base", "base_commit", "carried_from", "checkpoint", "commit", "decision", "digest", "effect", "envelope", "place",
    "processes", "result_hash", "args_hash", "sha", "subject", "target_hash", "token_hash", "tree",
})  # fmt: skip


# Records whose `id` is made here too. A LangGraph checkpoint has the id that its caller gave it.
_OWN_ID = frozenset({"checkpoint", "batch.completing", "batch.completed"})


def _names_in(data: Data, kind: RecordKind) -> Iterator[str]:
    """Yield the strings in a record that are stored verbatim: names, and the keys of hashes by name. A random id may
    look like a card number, but it is not a secret.
    """
    for name, value in data.items():
        if name in _MADE_HERE or (name == "id" and kind.type in _OWN_ID):
            continue
        if kind.fields.get(name) == "public":
            if type(value) is str:
                yield value
            elif isinstance(value, Mapping | list):
                yield from (item for item in value if isinstance(item, str))


def clean_record(kind: RecordKind, data: Data, redactor: Redactor) -> str:
    """Return the canonical text of a record: only listed fields, each handled by its sensitivity."""
    return jcs_text(clean_data(kind, data, redactor))


def clean_data(kind: RecordKind, data: Data, redactor: Redactor) -> dict[str, Json]:
    """Return the redacted record as a value instead of text. Refuse the record if a field that identifies something
    contains a secret.
    """
    kept = dict(data)
    dropped = 0
    redactor.require_plain(f"a name in {kind.type}", *_names_in(data, kind))
    for name in kind.guarded(kept):
        value = kept[name]
        sensitivity = kind.fields.get(name, "drop")
        if sensitivity == "scan":
            if type(value) is str:
                value = storable(value)
            text = quoted(value) if type(value) is str else json.dumps(value, ensure_ascii=False)
            cleaned, _ = redactor.clean_value(value, text)
            # Cut after it was searched: half a secret would not be recognized.
            kept[name] = cleaned[:LONGEST_TEXT] if isinstance(cleaned, str) and name in _CUT else cleaned
        elif sensitivity == "hash":
            kept[name] = jcs_hash(value)
        else:
            del kept[name]
            dropped += 1
    if dropped:
        kept["dropped"] = dropped
    return kept
