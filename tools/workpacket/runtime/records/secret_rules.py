"""What secrets look like, as data.

A rule is a literal beginning and the characters that may follow; it matches when enough of them do. That is all the
language there is, so a scan takes time proportional to the text whatever the text is.
"""

from __future__ import annotations

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


RULES: tuple[SecretRule, ...] = (
    SecretRule("github-token", "ghp_", _WORD, 30),
    SecretRule("github-token", "gho_", _WORD, 30),
    SecretRule("github-token", "ghu_", _WORD, 30),
    SecretRule("github-token", "ghs_", _WORD, 30),
    SecretRule("github-token", "ghr_", _WORD, 30),
    SecretRule("github-token", "github_pat_", _WORD, 40),
    SecretRule("gitlab-token", "glpat-", _WORD, 20),
    SecretRule("aws-access-key", "AKIA", _UPPER, 16),
    SecretRule("aws-access-key", "ASIA", _UPPER, 16),
    SecretRule("anthropic-key", "sk-ant-", _WORD, 20),
    SecretRule("openai-key", "sk-proj-", _WORD, 20),
    SecretRule("openai-key", "sk-", _WORD, 32),
    SecretRule("google-key", "AIza", _WORD, 35),
    SecretRule("slack-token", "xoxb-", _WORD, 20),
    SecretRule("slack-token", "xoxp-", _WORD, 20),
    SecretRule("slack-token", "xapp-", _WORD, 20),
    SecretRule("stripe-key", "sk_live_", _WORD, 20),
    SecretRule("stripe-key", "rk_live_", _WORD, 20),
    SecretRule("npm-token", "npm_", _WORD, 30),
    SecretRule("pypi-token", "pypi-", _WORD, 50),
    SecretRule("hugging-face-token", "hf_", _WORD, 30),
    SecretRule("json-web-token", "eyJ", _DOTTED, 40),
    SecretRule("bearer-token", "Bearer ", _DOTTED, 20),
    SecretRule("basic-credentials", "Basic ", _BASE64, 16),
    SecretRule("private-key", "-----BEGIN PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN RSA PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN EC PRIVATE KEY-----", _ANY, 20),
    SecretRule("private-key", "-----BEGIN OPENSSH PRIVATE KEY-----", _ANY, 20),
)

# A variable or key with one of these in its name is taken to hold a secret.
SECRET_NAMES = (
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "private_key",
    "credential",
    "authorization",
)


def names_a_secret(name: str) -> bool:
    lowered = name.lower().replace("-", "_")
    return any(part in lowered for part in SECRET_NAMES)
