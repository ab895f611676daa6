"""Secrets that are recognized by their place: by the name of what holds them, or by what surrounds them in a text.

A name says how likely its value is a secret. The value of a password or API key is one unless it is a placeholder, a
reference or a label; the value of a `token` or `secret` is one only if it does not read like a word, a path or code.
In running text, where `password:` may begin a sentence, every value has to look like a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.runtime.records.secret_forms import is_prose

Likely = Literal["", "perhaps", "surely"]

# A name marks a secret if one of its words is one of these, or ends in one ("PGPASSWORD", "authtoken").
_SURE_WORDS = ("password", "passwords", "passwd", "passphrase", "passwort", "apikey", "apikeys", "privatekey",
               "privatekeys", "secretkey", "accesskey", "clientsecret", "pgpass", "dbpass")  # fmt: skip
_LIKELY_WORDS = ("secret", "secrets", "token", "credential", "credentials", "authorization")
_SURE_WHOLE = frozenset({"pwd", "pass", "cvv", "cvc"})
_WHOLE_WORDS = frozenset({"pat", "jwt", "cookie", "otp"})
# The kinds of keys that are secret; a `primary_key` or `sort_key` is not.
_SECRET_KEYS = frozenset({"api", "private", "secret", "access", "signing", "encryption", "session", "master", "account",
                          "shared", "auth", "deploy", "license", "storage", "hmac", "jwt"})  # fmt: skip
_SURE_KEYS = frozenset({"api", "private", "secret", "access", "account", "encryption", "signing"})
# "tokens" are units of a model, unless one of these words qualifies them.
_TOKENS_OF = frozenset({"access", "api", "auth", "bearer", "bot", "id", "refresh", "secret", "session", "user"})
# Next to one of these words, "token" is a unit or a position and not a secret.
_COUNTED_BEFORE = frozenset({"completion", "input", "max", "min", "n", "num", "output", "prompt", "total", "next",
                             "page", "continuation", "sync", "retry"})  # fmt: skip
# What follows the word in the name of something about a secret: where it is, how long it must be, when it expires.
_ABOUT = frozenset({
    "age", "algorithm", "arn", "at", "budget", "changed", "count", "counts", "date", "digest", "dir", "enabled",
    "endpoint", "env", "error", "estimate", "expired", "expires", "expiry", "field", "file", "form", "format",
    "hash", "help", "hint", "id", "ids", "index", "input", "issuer", "label", "length", "lifetime", "limit",
    "limits", "manager", "max", "min", "name", "names", "page", "path", "pattern", "placeholder", "policy",
    "prompt", "provider", "rate", "ref", "required", "reset", "rules", "scope", "scopes", "status", "store",
    "strength", "title", "ttl", "type", "updated", "uri", "url", "usage", "var", "version",
})  # fmt: skip
_WORDS_OF_NAME = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_a_secret(name: str) -> bool:
    """Whether the name of a variable, key or input suggests that it holds a secret."""
    return likely_secret(name) != ""


@lru_cache(maxsize=4096)
def likely_secret(name: str) -> Likely:
    """Return how likely the value of something with this name is a secret."""
    words = [word.lower() for word in _WORDS_OF_NAME.findall(name)]
    found = {_of_word(words, place) for place in range(len(words))}
    return "surely" if "surely" in found else "perhaps" if "perhaps" in found else ""


def _of_word(words: list[str], place: int) -> Likely:
    word = words[place]
    before = words[place - 1] if place else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if word == "secret" and after == "key":
        after = words[place + 2] if place + 2 < len(words) else ""
    if after in _ABOUT:
        return ""
    if word in {"token", "tokens"}:
        return "perhaps" if (before in _TOKENS_OF if word == "tokens" else before not in _COUNTED_BEFORE) else ""
    if word in {"key", "keys"} and before in _SECRET_KEYS:
        return "surely" if before in _SURE_KEYS else "perhaps"
    # `pass` and `pat` alone are words.
    if word in _SURE_WHOLE and not (len(words) == 1 and word == "pass"):
        return "surely"
    if word.endswith(_SURE_WORDS) or (word == "secret" and before == "client"):
        return "surely"
    whole = word in _WHOLE_WORDS and not (len(words) == 1 and word == "pat")
    return "perhaps" if whole or word.endswith(_LIKELY_WORDS) else ""


_PLACEHOLDERS = frozenset({
    "password", "passwd", "passwort", "passphrase", "pass", "secret", "token", "changeme", "change-me", "changeit",
    "xxxx", "example", "none", "null", "nil", "true", "false", "undefined", "required", "optional", "string", "str",
    "bytes", "int", "bool", "text", "hidden", "redacted", "masked", "empty", "missing", "invalid", "unset", "default",
    "prompt", "unknown", "test", "dummy", "todo", "credentials", "bearer", "basic", "contraseña", "wachtwoord", "senha",
    "hasło",
})  # fmt: skip
_REFERENCE = lazy_pattern(
    # A variable, a template, an address in a vault; what was hidden before; dots, stars and crosses.
    r"(?i)(?:\$(?:\w+|[{(].*)|<.*|\[.*|\{.*|%\(?\w+\)?[s%]?|(?:vault|op|ssm|sops|secret|env|file|arn|gcp|keyring)[:/].*"
    r"|[*x.•#_-]{3,}|(?:your|my|the|enter|insert|some|use)[-_ ].*|.*\[(?:redacted:[a-z-]+|not shown)\].*)",
    re.DOTALL,
)
_PATH = lazy_pattern(r"(?:~|\.{1,2})?/[\w./@~+-]*|[A-Za-z]:[\\/].*|[\w.-]+(?:/[\w.-]+)*\.[a-z]{2,5}|https?://[^@]*")
_CODE = lazy_pattern(
    r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_]\w*)*[(\[].*"
    r"|(?:self|args|settings|config|cfg|os|process|this|req|request|env|options|opts|params|user|form|data|ctx)\..*"
    r"|!.*|=.*"
)
_DATE = lazy_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?")
_SHORTEST, _SHORTEST_TOKEN, _SENTENCE = 3, 8, 2


def is_secret_value(value: str, likely: Likely) -> bool:
    """Whether the value of a mapping's key is a secret, given what the key is called."""
    text = value.strip()
    if not likely or len(text) < _SHORTEST or text.casefold() in _PLACEHOLDERS or _REFERENCE.fullmatch(text):
        return False
    if likely == "perhaps":
        return _looks_secret(text, _SHORTEST_TOKEN) and not _PATH.fullmatch(text)
    words = text.split()
    # A label or a message: `Passwort vergessen?`; a passphrase has neither capitals nor punctuation.
    label = len(words) >= _SENTENCE and (text[0].isupper() or not text.replace(" ", "").isalnum())
    return not (label and not any(character.isdigit() for character in text)) and not _PATH.fullmatch(text)


def _looks_secret(text: str, at_least: int) -> bool:
    """Whether a text has what a word, a number, a date or code does not have: digits among letters, or signs."""
    if len(text) < at_least or is_prose(text) or _DATE.fullmatch(text):
        return False
    letters = sum(character.isalpha() for character in text)
    digits = sum(character.isdigit() for character in text)
    signs = any(character in "!#?+~^@%&*$" for character in text)
    return letters > 0 and (digits > 0 or signs or (len(text) > 2 * _SHORTEST_TOKEN and not text.isupper()))


def _is_written_secret(value: str, likely: Likely, quoted: bool) -> bool:
    """Whether a value in a text is a secret; there, a name may be part of a sentence or of code."""
    if not is_secret_value(value, likely) or _PATH.fullmatch(value) or (not quoted and _CODE.fullmatch(value)):
        return False
    if likely == "perhaps":
        return True
    number = value.isdigit() and len(value) >= 6  # fewer digits are a length or a count
    return number or _looks_secret(value, 4 if likely == "surely" else _SHORTEST_TOKEN)


# How a quote and an equals sign are written in JSON, in JSON inside JSON, in HTML and in a URL.
_QUOTE = r"\\*[\"'`]|&quot;|%22|\\+u0022"
_EQUALS = r"=>|:=|={1,2}|:|%3[dD]|%3[aA]|\\+u003[dD]"
_START = r"(?:(?<![\w.%-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt])|(?<=--)|(?<=[^\w.%-]-)|(?<=\\u[0-9A-Fa-f]{4}))"
_ASSIGNMENT = lazy_pattern(
    rf"(?P<begin>{_START}(?P<name>[A-Za-z_][\w.-]{{1,60}}?)(?:{_QUOTE})?[ \t]{{0,3}}(?:{_EQUALS})[ \t]{{0,3}})"
    rf"(?:(?P<open>{_QUOTE})(?P<quoted>(?:(?!(?P=open))[^\n\r]){{1,512}})(?=(?P=open))|(?P<bare>[^\s\"'`,;&<>|\\]{{3,512}}))"
)
_FLAG = lazy_pattern(
    r"(?P<begin>(?<![\w-])--?(?P<name>[A-Za-z][\w-]{1,40})[ \t]+(?P<open>[\"']?))(?P<bare>[^\s\"'-][^\s\"']{2,512})"
)
_ELEMENT = lazy_pattern(r"(?P<begin><(?P<name>[A-Za-z_][\w.:-]{1,60})(?: [^<>]{0,80})?>)(?P<bare>[^<>]{3,512})(?=</)")
_HEADER = lazy_pattern(
    rf"(?i)(?P<begin>(?:proxy-)?authorization(?:{_QUOTE})?\s{{0,3}}[:=,]\s{{0,3}}(?:{_QUOTE})?"
    r"(?:(?:basic|bearer|token|digest|apikey|key|negotiate|ntlm)\s+)?)(?P<bare>[A-Za-z0-9._~+/=:-]{8,})"
)
_SCHEME = lazy_pattern(r"(?i)(?P<begin>(?<!\w)bearer\s+)(?P<bare>[A-Za-z0-9._~+/=-]{20,})")
_BASIC = lazy_pattern(r"(?i)(?P<begin>(?<!\w)basic\s+)(?P<bare>[A-Za-z0-9+/]{8,}={0,2})")
_COOKIES = lazy_pattern(rf"(?i)(?<!\w)(?:set-)?cookie(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}(?:{_QUOTE})?[^\n\r\"']+")
_COOKIE = lazy_pattern(r"(?P<begin>[:;\s]\s*[\w.-]{1,60}=)(?P<bare>[^\s;,\"']{8,})")
_IN_URL = lazy_pattern(
    r"(?P<begin>(?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@\"'<>?#\[\]]{0,80}:)"
    r"(?P<bare>[^\s/\"'<>?#]{1,200})(?=@)"
)
_TOKEN_IN_URL = lazy_pattern(r"(?P<begin>https?://)(?P<bare>[\w-]{20,200})(?=@)")
_SIGNED_URL = lazy_pattern(
    r"(?P<begin>[?&](?:sig|signature|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=)(?P<bare>[\w%+/=.-]{20,})"
)
_COMMAND = lazy_pattern(
    r"(?P<begin>(?<!\w)(?:curl\b[^\n]{0,200}?\s(?:-u|--user)[= ]\s*[\"']?[\w.@-]{1,60}:|sshpass\s+-p\s*[\"']?"
    r"|mysql\w*\b[^\n]{0,200}?\s-p))(?P<bare>[^\s\"']{3,})"
)
_NETRC = lazy_pattern(r"(?P<begin>(?<!\w)login\s+\S+\s+password\s+)(?P<bare>\S{3,})")
_PGPASS = lazy_pattern(
    r"(?P<begin>(?<![\w:/.-])[\w.*-]{1,80}:(?:[0-9]{4,5}|\*):[A-Za-z_*][\w-]{0,60}:[A-Za-z_*][\w-]{0,60}:)(?P<bare>[^\s:]{4,})"
)

Judge = Callable[[re.Match[str]], bool]


def _by_name(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    likely = likely_secret(match["name"])
    return bool(likely) and _is_written_secret(
        groups["bare"] or groups.get("quoted") or "", likely, bool(groups.get("open"))
    )


def _is_password(match: re.Match[str]) -> bool:
    value = match["bare"]
    return value.casefold() not in _PLACEHOLDERS and not _REFERENCE.fullmatch(value)


def _is_random(match: re.Match[str]) -> bool:
    return _is_password(match) and _looks_secret(match["bare"], _SHORTEST_TOKEN)


def _is_bearer(match: re.Match[str]) -> bool:
    return _is_password(match) and not is_prose(match["bare"])


def _is_basic(match: re.Match[str]) -> bool:
    """Whether the text is a name and a password in base64."""
    try:
        said = base64.b64decode(match["bare"] + "=" * (-len(match["bare"]) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in said and said.isprintable()


# What to hide, when to look for it (one of these texts must occur, in lower case), the pattern, and the judgement.
PLACES: tuple[tuple[str, tuple[str, ...], re.Pattern[str], Judge], ...] = (
    ("url-password", ("://",), _IN_URL, _is_password),
    ("url-token", ("://",), _TOKEN_IN_URL, _is_random),
    ("signature", ("sig",), _SIGNED_URL, _is_password),
    ("authorization", ("authorization",), _HEADER, _is_bearer),
    ("bearer-token", ("bearer",), _SCHEME, _is_bearer),
    ("basic-credentials", ("basic",), _BASIC, _is_basic),
    ("assigned-secret", ("login",), _NETRC, _is_password),
    ("assigned-secret", (":",), _PGPASS, _is_random),
    ("assigned-secret", ("curl", "sshpass", "mysql"), _COMMAND, _is_password),
    ("assigned-secret", ("=", ":", "%3"), _ASSIGNMENT, _by_name),
    ("assigned-secret", ("-",), _FLAG, _by_name),
    ("assigned-secret", ("</",), _ELEMENT, _by_name),
)
# Without one of these, no text has a secret that is recognized by its place. In lower case.
_SIGNS = ("pass", "pwd", "secret", "token", "credential", "key", "auth", "cookie", "jwt", "otp", "cvv", "cvc", "_pat",
          "bearer", "basic", "login", "curl", "@", "sig", ":*:", ":5432:")  # fmt: skip


def may_have_places(text: str) -> bool:
    """Whether a text, as JSON or as it is, may hold a secret that is recognized by its place."""
    lower = text.lower()
    for sign in _SIGNS:  # noqa: SIM110  # half as long as `any`
        if sign in lower:
            return True
    return False


def without_places(text: str) -> tuple[str, int]:
    """Return the text without the secrets that are recognized by their place, and their number."""
    if not may_have_places(text):
        return text, 0
    lower = text.lower()
    found = 0
    for name, signs, pattern, holds in PLACES:
        if any(sign in lower for sign in signs):
            text, hits = _hidden(text, name, pattern, holds)
            found += hits
    if "cookie" in lower:
        for line in reversed(list(_COOKIES.finditer(text))):
            cleaned, hits = _hidden(line[0], "cookie", _COOKIE, _is_random)
            if hits:
                text, found = text[: line.start()] + cleaned + text[line.end() :], found + hits
    return text, found


def _hidden(text: str, name: str, pattern: re.Pattern[str], holds: Judge) -> tuple[str, int]:
    kept: list[str] = []
    start = position = 0
    while (match := pattern.search(text, position)) is not None:
        value = match["bare"] or match.groupdict().get("quoted") or ""
        if value.startswith("[redacted:") or not holds(match):
            position = max(match.end("begin"), position + 1)  # the value may hold a name and a value of its own
            continue
        end = match.end()
        kept += [text[start : end - len(value)], f"[redacted:{name}]"]
        start = position = end
    return ("".join(kept) + text[start:], len(kept) // 2) if kept else (text, 0)
