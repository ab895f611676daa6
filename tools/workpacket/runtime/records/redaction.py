"""Secrets are taken out before anything is stored; if that cannot be done, nothing is stored.

Two searches over every text: what looks like a secret (`secret_rules`), and the very values of the environment
variables whose names say that they hold one. The whole encoded value is searched first, because nearly always it holds
nothing; only on a hit is the value walked and its texts replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.jcs import jcs_hash, jcs_text
from workpacket.runtime.records.json_text import quoted
from workpacket.runtime.records.kinds import Data, Kind
from workpacket.runtime.records.secret_rules import RULES, SecretRule, begins_a_word, is_prose, names_a_secret

SHORTEST_VALUE = 8  # a shorter environment value would be found everywhere by chance

# Looking for one character costs next to nothing. Each beginning of a secret is looked for only where the rarest of its
# characters was found.
_MARKS = ("J", "z", "K", "B", "S", "_", "-")


def _mark_of(needle: str) -> str:
    return next((mark for mark in _MARKS if mark in needle), "")


@dataclass(slots=True)
class Redactor:
    rules: tuple[SecretRule, ...] = RULES
    values: tuple[str, ...] = ()
    _groups: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        begins = {rule.begins for rule in self.rules}
        shortest = {begin for begin in begins if not any(other != begin and other in begin for other in begins)}
        needles = [*shortest, *(json.dumps(value, ensure_ascii=False)[1:-1] for value in self.values)]
        self._groups = tuple((mark, tuple(n for n in needles if _mark_of(n) == mark)) for mark in (*_MARKS, ""))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Redactor:
        values = {value for name, value in environment.items() if names_a_secret(name) and len(value) >= SHORTEST_VALUE}
        return cls(values=tuple(sorted(values, key=len, reverse=True)))

    def clean_value(self, value: Json, encoded: str) -> tuple[Json, int]:
        """The value without secrets and how many were taken out; `encoded` is its JSON text."""
        if not self._may_hold_secret(encoded):
            return value, 0
        try:
            return self._walk(value)
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error

    @property
    def longest(self) -> int:
        """How long a text is that is certainly known for a secret; of a longer one, its beginning is enough."""
        lengths = [len(rule.begins) + rule.at_least for rule in self.rules]
        return max([*lengths, *(len(value.encode("utf-8", "surrogatepass")) for value in self.values)], default=0)

    def clean_text(self, text: str) -> str:
        """The text, which is no JSON, without secrets."""
        return self._text(text)[0] if self.may_hold_secret(text) else text

    def may_hold_secret(self, text: str) -> bool:
        """Whether a text that is no JSON, or bytes read as UTF-8, may hold one."""
        return self._may_hold_secret(text) or any(value in text for value in self.values)

    def _may_hold_secret(self, encoded: str) -> bool:
        # Searching for one plain text after the other is quicker than one pattern of all of them.
        for mark, needles in self._groups:
            if mark in encoded:
                for needle in needles:
                    if needle in encoded:
                        return True
        return False

    def _walk(self, value: Json) -> tuple[Json, int]:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            cleaned = [self._walk(item) for item in value]
            return [item for item, _ in cleaned], sum(count for _, count in cleaned)
        if isinstance(value, Mapping):
            found = 0
            result: dict[str, Json] = {}
            for key, item in value.items():
                clean_key, in_key = self._text(key)
                result[clean_key], in_item = self._walk(item)
                found += in_key + in_item
            return result, found
        return value, 0

    def _text(self, text: str) -> tuple[str, int]:
        found = 0
        for value in self.values:
            found += text.count(value)
            text = text.replace(value, "[redacted:environment]")
        for rule in self.rules:
            text, hits = _replace(text, rule)
            found += hits
        return text, found


def _replace(text: str, rule: SecretRule) -> tuple[str, int]:
    kept: list[str] = []
    start = position = found = 0
    while (position := text.find(rule.begins, position)) >= 0:
        end = position + len(rule.begins)
        while end < len(text) and text[end] in rule.alphabet:
            end += 1
        if end - position - len(rule.begins) >= rule.at_least and not (
            rule.in_words and (not begins_a_word(text, position) or is_prose(text[position + len(rule.begins) : end]))
        ):
            kept += [text[start:position], f"[redacted:{rule.name}]"]
            start = end
            found += 1
        position = end
    return ("".join(kept) + text[start:], found) if found else (text, 0)


def clean_record(kind: Kind, data: Data, redactor: Redactor) -> str:
    """The canonical text of a record: listed fields only, each treated as its sensitivity says."""
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
    return jcs_text(kept)
