"""What secrets look like, as data.

A rule is a literal beginning and the characters that may follow; it matches when enough of them do. A beginning that
ordinary words also contain counts only at the beginning of a word, and not if prose follows. That is all the language
there is, so a scan takes time proportional to the text whatever the text is.
"""

from __future__ import annotations

import re
import string
from typing import NamedTuple

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
    in_words: bool = False  # ordinary text has this beginning too: `disk-`, `Basic `, `npm_`


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

# What may stand before a secret although it ends in a letter or digit: an escape of JSON, of a URL, of a terminal.
_ESCAPE_BEFORE = re.compile(r"(?:\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,8}m)\Z")
_LONGEST_ESCAPE = 12
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PROSE = 3  # letters that a word of prose has on average; random letters change between cases more often


def begins_a_word(text: str, position: int) -> bool:
    """Whether what stands at `position` is not the end of a longer word."""
    if position == 0 or not text[position - 1].isalnum():
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - _LONGEST_ESCAPE), position) is not None


def is_prose(text: str) -> bool:
    """Whether a text is made of words, as names of branches and settings are, and not of random characters."""
    pieces: list[str] = _PIECE.findall(text)
    if not pieces or any(character.isdigit() for character in text):
        return False
    return not any(piece.isupper() and len(piece) > _PROSE for piece in pieces) and (
        sum(map(len, pieces)) >= _PROSE * len(pieces)
    )


# A name holds a secret if one of its words is one of these, or ends in one ("PGPASSWORD", "authtoken").
_SECRET_WORDS = ("password", "passwords", "passwd", "secret", "secrets", "token", "credential", "credentials",
                 "authorization", "apikey", "apikeys", "privatekey", "privatekeys")  # fmt: skip
_SECRET_PAIRS = frozenset({("api", "key"), ("api", "keys"), ("private", "key"), ("private", "keys")})
# "tokens" are what a model counts, unless one of these says which they are.
_TOKENS_OF = frozenset({"access", "api", "auth", "bearer", "bot", "id", "refresh", "secret", "session", "user"})
# Next to one of these, "token" is a unit and not a secret.
_COUNTED_BEFORE = frozenset({"completion", "input", "max", "min", "n", "num", "output", "prompt", "total"})
_COUNTED_AFTER = frozenset({"budget", "count", "counts", "estimate", "length", "limit", "limits", "rate", "type",
                            "usage"})  # fmt: skip
_WORDS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_a_secret(name: str) -> bool:
    """Whether a variable, key or input of this name is taken to hold a secret."""
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
