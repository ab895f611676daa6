"""Secrets are removed before anything is stored; if that cannot be done, nothing is stored.

Every text is searched twice: for patterns of secrets (`RULES`), and for the values of environment variables whose names
mark them as secret. The whole encoded value is searched first, because it rarely contains a secret; only on a hit is
the value walked and its texts replaced.

A rule is a literal prefix and the characters that may follow; it matches if enough of them do. A prefix that also
occurs in ordinary words counts only at the start of a word, and not if prose follows. Rules cannot express anything
else, so a scan always takes time proportional to the length of the text.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.events import Data, RecordKind
from workpacket.runtime.records.jcs import jcs_hash, jcs_text, quoted, storable

_WORD = frozenset(string.ascii_letters + string.digits + "_-")
_BASE64 = frozenset(string.ascii_letters + string.digits + "+/=_-")
_DOTTED = _BASE64 | {"."}
_UPPER = frozenset(string.ascii_uppercase + string.digits)
_ANY = frozenset(string.printable) - frozenset('"\\\x0b\x0c')


class SecretRule(NamedTuple):
    name: str
    begins: str
    alphabet: frozenset[str]
    at_least: int
    in_words: bool = False  # this prefix also occurs in ordinary text: `disk-`, `Basic `, `npm_`


RULES: tuple[SecretRule, ...] = (
    SecretRule("github-token", "ghp_", _WORD, 30),
    SecretRule("github-token", "gho_", _WORD, 30),
    SecretRule("github-token", "ghu_", _WORD, 30),
    SecretRule("github-token", "ghs_", _WORD, 30),
    SecretRule("github-token", "ghr_", _WORD, 30),
    SecretRule("github-token", "github_pat_", _WORD, 40),
    SecretRule("gitlab-token", "glpat-", _WORD, 20),
    SecretRule("aws-access-key", "AKIA", _UPPER, 16, in_words=True),
    SecretRule("aws-access-key", "ASIA", _UPPER, 16, in_words=True),
    SecretRule("anthropic-key", "sk-ant-", _WORD, 20),
    SecretRule("openai-key", "sk-proj-", _WORD, 20),
    SecretRule("openai-key", "sk-", _WORD, 32, in_words=True),
    SecretRule("google-key", "AIza", _WORD, 35, in_words=True),
    SecretRule("slack-token", "xoxb-", _WORD, 20),
    SecretRule("slack-token", "xoxp-", _WORD, 20),
    SecretRule("slack-token", "xapp-", _WORD, 20),
    SecretRule("stripe-key", "sk_live_", _WORD, 20),
    SecretRule("stripe-key", "rk_live_", _WORD, 20),
    SecretRule("npm-token", "npm_", _WORD, 30, in_words=True),
    SecretRule("pypi-token", "pypi-", _WORD, 50),
    SecretRule("hugging-face-token", "hf_", _WORD, 30, in_words=True),
    SecretRule("json-web-token", "eyJ", _DOTTED, 40, in_words=True),
    SecretRule("bearer-token", "Bearer ", _DOTTED, 20, in_words=True),
    SecretRule("basic-credentials", "Basic ", _BASE64, 16, in_words=True),
    SecretRule("private-key", "-----BEGIN PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN RSA PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN EC PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN OPENSSH PRIVATE KEY-----", _ANY, 20),
)

# What may precede a secret although it ends in a letter or digit: an escape of JSON, of a URL, of a terminal.
_ESCAPE_BEFORE = re.compile(r"(?:\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,8}m)\Z")
_LONGEST_ESCAPE = 12
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PROSE = 3  # the number of letters in an average word of prose; random letters change case more often


def begins_a_word(text: str, position: int) -> bool:
    """Whether the text at `position` is not the end of a longer word."""
    if position == 0 or not text[position - 1].isalnum():
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - _LONGEST_ESCAPE), position) is not None


def is_prose(text: str) -> bool:
    """Whether a text consists of words, such as the name of a branch or setting, and not of random characters."""
    pieces: list[str] = _PIECE.findall(text)
    if not pieces or any(character.isdigit() for character in text):
        return False
    return not any(piece.isupper() and len(piece) > _PROSE for piece in pieces) and (
        sum(map(len, pieces)) >= _PROSE * len(pieces)
    )


# A name marks a secret if one of its words is one of these, or ends in one ("PGPASSWORD", "authtoken").
_SECRET_WORDS = ("password", "passwords", "passwd", "secret", "secrets", "token", "credential", "credentials",
                 "authorization", "apikey", "apikeys", "privatekey", "privatekeys")  # fmt: skip
_SECRET_PAIRS = frozenset({("api", "key"), ("api", "keys"), ("private", "key"), ("private", "keys")})
# "tokens" are units of a model, unless one of these words qualifies them.
_TOKENS_OF = frozenset({"access", "api", "auth", "bearer", "bot", "id", "refresh", "secret", "session", "user"})
# Next to one of these words, "token" is a unit and not a secret.
_COUNTED_BEFORE = frozenset({"completion", "input", "max", "min", "n", "num", "output", "prompt", "total"})
_COUNTED_AFTER = frozenset({"budget", "count", "counts", "estimate", "length", "limit", "limits", "rate", "type",
                            "usage"})  # fmt: skip
_WORDS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_a_secret(name: str) -> bool:
    """Whether the name of a variable, key or input suggests that it holds a secret."""
    words = [word.lower() for word in _WORDS_OF_NAME.findall(name)]
    return any(_is_secret_word(words, place) for place in range(len(words)))


def _is_secret_word(words: list[str], place: int) -> bool:
    word = words[place]
    before = words[place - 1] if place else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if word == "tokens":
        return before in _TOKENS_OF
    if word == "token":
        return before not in _COUNTED_BEFORE and after not in _COUNTED_AFTER
    return word.endswith(_SECRET_WORDS) or (before, word) in _SECRET_PAIRS


SHORTEST_VALUE = 8  # a shorter environment value would occur everywhere by chance

# Searching for one character costs next to nothing. Each prefix of a secret is searched for only where its rarest
# character was found.
_MARKS = ("J", "z", "K", "B", "S", "_", "-")
_SHORT = 30


def _mark_of(needle: str) -> str:
    return next((mark for mark in _MARKS if mark in needle), "")


@dataclass(slots=True)
class Redactor:
    rules: tuple[SecretRule, ...] = RULES
    values: tuple[str, ...] = ()
    _groups: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False, repr=False)
    _marks: frozenset[str] | None = field(init=False, repr=False)  # None: a search term has no marker character

    def __post_init__(self) -> None:
        begins = {rule.begins for rule in self.rules}
        shortest = {begin for begin in begins if not any(other != begin and other in begin for other in begins)}
        needles = [*shortest, *(json.dumps(value, ensure_ascii=False)[1:-1] for value in self.values)]
        groups = ((mark, tuple(n for n in needles if _mark_of(n) == mark)) for mark in (*_MARKS, ""))
        self._groups = tuple((mark, group) for mark, group in groups if group)
        self._marks = None if any(not mark for mark, _ in self._groups) else frozenset(mark for mark, _ in self._groups)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Redactor:
        values = {value for name, value in environment.items() if names_a_secret(name) and len(value) >= SHORTEST_VALUE}
        return cls(values=tuple(sorted(values, key=len, reverse=True)))

    def clean_value(self, value: Json, encoded: str) -> tuple[Json, int]:
        """Return the value without secrets, and the number removed; `encoded` is its JSON text."""
        if not self._may_hold_secret(encoded):
            return value, 0
        try:
            return self._walk(value)
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error

    @property
    def longest(self) -> int:
        """Return the length that suffices to recognize any secret by its beginning."""
        lengths = [len(rule.begins) + rule.at_least for rule in self.rules]
        return max([*lengths, *(len(value.encode("utf-8", "surrogatepass")) for value in self.values)], default=0)

    def clean_text(self, text: str) -> str:
        """Return a text that is not JSON without its secrets."""
        return self._text(text)[0] if self.may_hold_secret(text) else text

    def may_hold_secret(self, text: str) -> bool:
        """Whether a text that is not JSON, or bytes read as UTF-8, may contain a secret."""
        return self._may_hold_secret(text) or (bool(self.values) and any(value in text for value in self.values))

    def _may_hold_secret(self, encoded: str) -> bool:
        # Canonical JSON has no space after a colon, so most texts contain neither sign.
        if ("=" in encoded or ": " in encoded) and any(word in encoded for word in _ASSIGNED_WORDS):
            if _without_assigned(_JSON_ESCAPE.sub(_unescaped, encoded))[1]:
                return True
        elif "@" in encoded and "://" in encoded:
            return True
        # Searching for one plain text after another is faster than one pattern of all of them; in a name of a few
        # characters, checking each character once is faster still.
        if len(encoded) < _SHORT and self._marks is not None and self._marks.isdisjoint(encoded):
            return False
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
        text, hits = _without_assigned(text)
        return text, found + hits


# The common parts of the names of secrets, in the spelling of variables and of settings.
_ASSIGNED_WORDS = ("assword", "asswd", "ecret", "oken", "redential", "pikey", "pi_key", "pi-key", "te_key", "te-key",
                   "ASSWORD", "ASSWD", "ECRET", "OKEN", "REDENTIAL", "PIKEY", "PI_KEY", "TE_KEY")  # fmt: skip
_ASSIGNMENT = re.compile(
    r"(?P<name>(?<![\w.-])[A-Za-z_][\w.-]{1,60})(?P<sign>[\"']?[ \t]{0,3}[=:][ \t]{0,3}[\"'`]?)"
    r"(?P<value>[^\s\"'`,;&|<>(){}\[\]$*%]{8,512})"
)
_IN_URL = re.compile(
    r"(?P<begin>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,80}:)(?P<value>[^\s/@:\"'<>$*{}]{4,200})(?=@)"
)
_JSON_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})')


def _unescaped(escape: re.Match[str]) -> str:
    """Return a quote unchanged and a blank for anything else that may end a name or a value."""
    return '"' if escape[0] == '\\"' else " "


_PLACEHOLDERS = frozenset({"password", "passwd", "pass", "secret", "token", "changeme", "xxxx", "xxxxxxxx"})


def _without_assigned(text: str) -> tuple[str, int]:
    """Return the text without the secrets that can be recognized by their place: `password=...`, `api_key: ...`, and
    the password in a URL. A value that consists of words, such as the name of a setting, is kept.
    """
    found = 0

    def assigned(match: re.Match[str]) -> str:
        nonlocal found
        value = match["value"]
        if not names_a_secret(match["name"]) or is_prose(value) or value.casefold() in _PLACEHOLDERS:
            return match[0]
        found += 1
        return f"{match['name']}{match['sign']}[redacted:assigned-secret]"

    def in_url(match: re.Match[str]) -> str:
        nonlocal found
        if match["value"].casefold() in _PLACEHOLDERS:
            return match[0]
        found += 1
        return f"{match['begin']}[redacted:url-password]"

    if "://" in text and "@" in text:
        text = _IN_URL.sub(in_url, text)
    if any(word in text for word in _ASSIGNED_WORDS):
        text = _ASSIGNMENT.sub(assigned, text)
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
            if type(value) is str:
                value = storable(value)
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
