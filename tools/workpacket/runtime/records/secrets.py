"""Secrets that are recognized by their form, such as vendors' tokens, or by their position: by the name of what
contains them, or by the text around them.

The form of a vendor's token is a literal prefix and the characters that may follow; it matches if enough of them do. A
prefix that also occurs in ordinary words counts only at the start of a word, and not if prose follows. Forms without
a prefix are patterns, each with a short text that must occur before the pattern is tried.

The facts in `VENDORS` are from the vendors' documents and from the rules of gitleaks (config/gitleaks.toml at commit
b58d3f10), read in November 2026. A commit that adds a form states its source.

A name indicates how likely its value is to be a secret. The value of a password or API key is a secret unless it is a
placeholder, a reference or a label; the value of a `token` or `secret` is a secret only if it does not read like a
word, a path or code. In running text, where `password:` may begin a sentence, every value has to look like a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from workpacket.lazy_pattern import lazy_pattern

_ALPHABETS = {
    "word": frozenset(string.ascii_letters + string.digits + "_-"),
    "plain": frozenset(string.ascii_letters + string.digits),
    "upper": frozenset(string.ascii_uppercase + string.digits),
    "hex": frozenset(string.hexdigits),
    "base64": frozenset(string.ascii_letters + string.digits + "+/=_-"),
    "dotted": frozenset(string.ascii_letters + string.digits + "+/=_-."),
}


class SecretRule(NamedTuple):
    name: str
    begins: str
    alphabet: frozenset[str]
    at_least: int
    in_words: bool = False  # this prefix also occurs in ordinary text: `disk-`, `Basic `, `npm_`


# The name, the characters that follow the prefix, how many at least, and the prefixes; `~` before a prefix says that it
# occurs in ordinary words too. `_` at the end of a prefix is part of it.
VENDORS = """
1password-token        dotted 100  ops_eyJ
adafruit-key           plain   28  aio_
adobe-secret           plain   32  ~p8e-
age-key                upper   50  AGE-SECRET-KEY-1
alibaba-key            plain   16  ~LTAI
anthropic-key          word    20  sk-ant-
artifactory-key        plain   58  ~AKC ~cmVmd
atlassian-token        base64  40  ATATT3
aws-access-key         upper   16  ~AKIA ~ASIA ~ABIA ~ACCA
aws-bedrock-key        base64 100  ~ABSK
bitbucket-token        plain   20  ~ATBB
buildkite-token        plain   20  bkua_ bkaa_ bkct_
circleci-token         word    40  CCIPAT_
clojars-token          plain   40  CLOJARS_
cloudflare-origin-key  dotted 100  v1.0-
databricks-token       hex     32  ~dapi
digitalocean-token     hex     64  dop_v1_ doo_v1_ dor_v1_
docker-token           word    20  dckr_pat_ dckr_oat_
doppler-token          plain   40  dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.
dropbox-token          base64 100  ~sl.
duffel-token           base64  40  duffel_live_ duffel_test_
dynatrace-token        dotted  80  dt0c01.
easypost-key           plain   50  ~EZAK ~EZTK
facebook-token         plain  100  ~EAAM ~EAAC ~EAAB ~EAAG
figma-token            word    30  figd_ figo_ figu_
flutterwave-key        word    12  FLWSECK_TEST- FLWSECK-
fly-token              base64  80  fm1a_ fm1r_ fm2_
fly-token              word    40  fo1_
frameio-token          base64  60  fio-u-
github-token           word    30  ghp_ gho_ ghu_ ghs_ ghr_
github-token           word    40  github_pat_
gitlab-token           dotted  20  glpat- glrt- gldt- glptt- glft- glimt- glagent- gloas- glsoat- glcbt- glffct- glrtr-
gitlab-token           word    20  GR1348941
google-key             word    35  ~AIza
google-token           word    20  GOCSPX-
google-token           word    60  ~ya29.
grafana-token          base64  32  glc_
grafana-token          word    40  glsa_
groq-key               plain   40  gsk_
harness-token          dotted  60  ~sat. ~pat.
heroku-key             word    50  HRKU-
hugging-face-token     plain   30  ~hf_ ~api_org_
infracost-key          plain   32  ~ico-
json-web-token         dotted  40  ~eyJ
langfuse-key           word    30  sk-lf-
langsmith-key          word    40  lsv2_pt_ lsv2_sk_
linear-key             plain   40  lin_api_ lin_oauth_
netlify-token          word    36  nfp_
new-relic-key          upper   27  NRAK-
new-relic-key          plain   32  NRII- NRJS-
notion-token           plain   40  ntn_ ~secret_
npm-token              plain   30  ~npm_
octopus-key            upper   26  ~API-
okta-token             word    40  SSWS
openrouter-key         plain   40  sk-or-v1-
openai-key             word    20  sk-proj- sk-svcacct- sk-admin-
openai-key             word    32  ~sk-
openshift-token        word    43  sha256~
perplexity-key         plain   40  pplx-
pinecone-key           word    40  pcsk_
planetscale-token      dotted  32  pscale_tkn_ pscale_pw_ pscale_oauth_
postman-key            word    50  PMAK-
prefect-token          plain   36  pnu_ pnb_
private-packagist      word    60  packagist_
pulumi-token           hex     40  ~pul-
pypi-token             word    50  pypi-
readme-key             plain   60  rdme_
replicate-token        plain   37  ~r8_
rubygems-key           hex     48  rubygems_
scalingo-token         word    48  tk-us-
sendgrid-key           dotted  60  ~SG.
sendinblue-key         word    60  xkeysib- xsmtpsib-
sentry-token           base64  60  sntrys_
sentry-token           hex     60  sntryu_
settlemint-token       plain   16  sm_aat_ sm_pat_ sm_sat_
shippo-token           hex     40  shippo_live_ shippo_test_
shopify-token          hex     32  shpat_ shpca_ shppa_ shpss_
slack-token            word    20  xoxb- xoxp- xapp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe.
sonar-token            hex     40  sqp_ sqa_ squ_
sourcegraph-token      word    40  sgp_
square-token           word    22  sq0atp- sq0csp- ~EAAA
stripe-key             plain   16  sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_ sk_org_
stripe-webhook         base64  24  whsec_
supabase-key           hex     40  sbp_
supabase-key           word    20  sb_secret_
tailscale-key          word    20  tskey-
terraform-token        word    60  atlasv1.
twilio-key             hex     32  ~SK
vault-token            word    80  hvs. hvb. hvr.
xai-key                plain   40  xai-
"""

# Recognized by their place in a text, but by a literal prefix too.
_HEADERS = (
    SecretRule("bearer-token", "Bearer ", _ALPHABETS["dotted"], 20, in_words=True),
    SecretRule("basic-credentials", "Basic ", _ALPHABETS["base64"], 16, in_words=True),
)


def _vendors() -> Iterator[SecretRule]:
    for line in VENDORS.strip().splitlines():
        name, alphabet, at_least, *prefixes = line.split()
        for prefix in prefixes:
            begins = prefix.removeprefix("~")
            yield SecretRule(name, begins, _ALPHABETS[alphabet], int(at_least), in_words=begins != prefix)


RULES: tuple[SecretRule, ...] = (*_vendors(), *_HEADERS)


class SecretShape(NamedTuple):
    """A form without a literal prefix. The pattern is tried where `mark` occurs; its group `secret` is redacted."""

    name: str
    mark: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


def _is_card(digits: str) -> bool:
    """Whether a number has the check digit of a card number."""
    numbers = [int(digit) for digit in digits if digit.isdigit()]
    doubled = sum(sum(divmod(2 * number, 10)) for number in numbers[-2::-2])
    return len(set(numbers)) > 2 and (sum(numbers[-1::-2]) + doubled) % 10 == 0  # not all the same


# A space and a line end in a private key, however often the text was escaped.
_SPACE = r"(?: |\+|%20|\\+u0020)"
_KEY_BODY = r"(?:[A-Za-z0-9+/=\s]|\\+[nrt/]|\\+u000[aAdD]|%0[aAdD]|%2[bBfF]|%3[dD]|&#1[03];)"
_PRIVATE_KEY = lazy_pattern(
    rf"-----BEGIN{_SPACE}(?:[A-Z0-9]+{_SPACE}){{0,3}}PRIVATE{_SPACE}KEY(?:{_SPACE}BLOCK)?-----"
    # Lines such as `Proc-Type: 4,ENCRYPTED` come before the key.
    r"(?P<secret>(?:(?:\s|\\+[nr])*[A-Z][A-Za-z-]{2,20}: [^\n\\]{0,100})*"
    rf"{_KEY_BODY}{{0,12}}[A-Za-z0-9+/=]{{16}}{_KEY_BODY}*)"
    rf"(?:-----END[^-]{{0,60}}-----)?"
)
_UNSPACED = lazy_pattern(r"[A-Za-z0-9+/=]{32}")
_CARD = (
    # The first character comes before what must not precede it, so that the search can skip to it.
    r"(?P<secret>[2-6](?<![\w.-].)(?:(?:(?<=4)[0-9]|(?<=5)[1-5]|(?<=2)[2-7]|(?<=6)[05])[0-9]{2}"
    r"(?:[0-9]{12}|(?: [0-9]{4}){3}|(?:-[0-9]{4}){3})|(?<=3)[47][0-9]{2}(?:[0-9]{11}| [0-9]{6} [0-9]{5})))"
    r"(?![\w-]|\.[0-9])"
)

SHAPES: tuple[SecretShape, ...] = (
    SecretShape("private-key", "PRIVATE", _PRIVATE_KEY, lambda body: _UNSPACED.search(body) is not None),
    SecretShape(
        "private-key", "Private-Lines", lazy_pattern(r"Private-Lines: [0-9]+\s+(?P<secret>(?:[A-Za-z0-9+/=]{16,}\s*)+)")
    ),
    SecretShape("mailgun-key", "key-", lazy_pattern(r"(?<![\w-])(?P<secret>key-[0-9a-f]{32})(?![\w-])")),
    SecretShape("mailchimp-key", "-us", lazy_pattern(r"(?<!\w)(?P<secret>[0-9a-f]{32}-us[0-9]{1,2})(?!\w)")),
    SecretShape("telegram-token", ":AA", lazy_pattern(r"(?<![0-9])(?P<secret>[0-9]{8,10}:AA[\w-]{32,36})(?![\w-])")),
    SecretShape(
        "discord-token", ".", lazy_pattern(r"(?P<secret>[MNO](?<!\w.)[A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,40})(?!\w)")
    ),
    SecretShape("azure-client-secret", "Q~", lazy_pattern(r"(?<!\w)(?P<secret>[\w~.-]{3}[0-9]Q~[\w~.-]{31,34})(?!\w)")),
    SecretShape("terraform-token", ".atlasv1.", lazy_pattern(r"(?P<secret>\w{14}\.atlasv1\.[\w=-]{60,70})")),
    SecretShape("slack-webhook", "/services/T", lazy_pattern(r"/services/T\w{6,12}/B\w{6,12}/(?P<secret>\w{20,32})")),
    SecretShape("discord-webhook", "/webhooks/", lazy_pattern(r"/api/webhooks/[0-9]{15,21}/(?P<secret>[\w-]{50,90})")),
    SecretShape("teams-webhook", "/IncomingWebhook/", lazy_pattern(r"Webhook/(?P<secret>[0-9a-f]{32}/[\w-]{20,40})")),
    SecretShape("airtable-token", "pat", lazy_pattern(r"(?P<secret>pat(?<!\w...)\w{14}\.[0-9a-f]{64})")),
    SecretShape(
        "password-hash", "$", lazy_pattern(r"(?P<secret>\$(?:1|2[abxy]?|5|6|y|7|argon2(?:id?|d))\$[^\s:\"'\\]{20,})")
    ),
    SecretShape("card-number", "", lazy_pattern(_CARD), _is_card),
)  # fmt: skip

# What may precede a secret although it ends in a letter or digit: an escape of JSON, of a URL, of a terminal.
_ESCAPE_BEFORE = lazy_pattern(r"(?:\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,8}m)\Z")
_LONGEST_ESCAPE = 12
_MARKS = lazy_pattern(r"[_.\-]")
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_PROSE = 3  # the number of letters in an average word of prose; random letters change case more often
_LONGEST_WORD = 24


_MARK = lazy_pattern(r"[_.\-](?<=(....))", re.DOTALL)
_HEAD = 3  # characters before the first mark of a prefix


class Prefixes:
    """Finds out whether a text may contain the prefix of any rule, from the first mark in it (`_`, `.` or `-`) and the
    characters before that mark: one pattern with all prefixes takes five times as long.
    """

    def __init__(self, rules: tuple[SecretRule, ...]) -> None:
        heads = {rule.begins: _MARKS.split(rule.begins, maxsplit=1)[0] for rule in rules}
        marked = {begins: head for begins, head in heads.items() if len(head) in range(2, len(begins))}
        self._whole = re.compile("|".join(map(re.escape, sorted(heads.keys() - marked.keys()))) or "(?!)")
        self._marked = frozenset(head[-_HEAD:] + begins[len(head)] for begins, head in marked.items())

    def may_be_in(self, text: str) -> bool:
        if self._whole.search(text) is not None:
            return True
        marked = self._marked
        found: list[str] = _MARK.findall("  " + text)
        for end in found:  # noqa: SIM110
            if end in marked or end[1:] in marked:
                return True
        return False


def begins_a_word(text: str, position: int) -> bool:
    """Whether the text at `position` begins a word, instead of ending a longer one."""
    if position == 0 or not text[position - 1].isalnum():
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - _LONGEST_ESCAPE), position) is not None


def is_prose(text: str) -> bool:
    """Whether a string consists of words, such as the name of a branch or setting, and not of random characters."""
    pieces: list[str] = _PIECE.findall(text)
    if not pieces or any(character.isdigit() for character in text):
        return False
    if any(len(piece) > (_PROSE if piece.isupper() else _LONGEST_WORD) for piece in pieces):
        return False
    return sum(map(len, pieces)) >= _PROSE * len(pieces)


def without_form(text: str, rule: SecretRule) -> tuple[str, int]:
    """Return the text without secrets of this form, and the number removed."""
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


def without_shape(text: str, shape: SecretShape) -> tuple[str, int]:
    """Return the text without secrets of this shape, and the number removed."""
    kept: list[str] = []
    start = 0
    for match in shape.pattern.finditer(text):
        if shape.holds(match["secret"]):
            kept += [text[start : match.start("secret")], f"[redacted:{shape.name}]"]
            start = match.end("secret")
    return ("".join(kept) + text[start:], len(kept) // 2) if kept else (text, 0)


Likely = Literal["", "perhaps", "surely"]

# A name marks a secret if one of its words is one of these, or ends in one ("PGPASSWORD", "authtoken").
_SURE_WORDS = ("password", "passwords", "passwd", "passphrase", "passwort", "apikey", "apikeys", "privatekey",
               "privatekeys", "secretkey", "accesskey", "clientsecret", "pgpass", "dbpass", "bindpw",
               "rootpw")  # fmt: skip
_LIKELY_WORDS = ("secret", "secrets", "token", "credential", "credentials", "authorization")
_SURE_WHOLE = frozenset({"pwd", "pass", "cvv", "cvc"})
_WHOLE_WORDS = frozenset({"pat", "jwt", "cookie", "otp", "psk"})
# The kinds of keys that are secret; a `primary_key` or `sort_key` is not.
_SECRET_KEYS = frozenset({"api", "private", "secret", "access", "signing", "encryption", "session", "master", "account",
                          "shared", "auth", "deploy", "license", "storage", "hmac", "jwt", "fernet", "app",
                          "unseal"})  # fmt: skip
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
    """Return how likely it is that the value of something with this name is a secret."""
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
    whole = whole or (before, word) == ("code", "verifier")
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
_SHORTEST, _SHORTEST_TOKEN, _SHORTEST_DRAWN, _SENTENCE = 3, 8, 10, 2


def is_secret_value(value: str, likely: Likely) -> bool:
    """Whether the value of a mapping key is a secret, given the name of the key."""
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
    """Whether a string has digits among letters, or special characters; words, numbers, dates and code do not."""
    if len(text) < at_least or is_prose(text) or _DATE.fullmatch(text):
        return False
    letters = sum(character.isalpha() for character in text)
    digits = sum(character.isdigit() for character in text)
    signs = any(character in "!#?+~^@%&*$" for character in text)
    # Letters whose case changes too often for words are drawn at random.
    drawn = len(text) >= _SHORTEST_DRAWN and not text.islower() and not text.isupper()
    return letters > 0 and (digits > 0 or signs or drawn or (len(text) > 2 * _SHORTEST_TOKEN and not text.isupper()))


def _is_written_secret(value: str, likely: Likely, quoted: bool) -> bool:
    """Whether a value in running text is a secret; in such text, a name may be part of a sentence or of code."""
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
# The options of these programs that take a password, and what a device is configured with.
_OPTION = lazy_pattern(
    r"(?P<begin>(?<!\w)(?:(?:docker|podman|helm|oras|skopeo)\s+(?:registry\s+)?login\b[^\n]{0,200}?\s-p[= ]\s*"
    r"|redis-cli\b[^\n]{0,200}?\s-a\s+|(?:un)?zip\b[^\n]{0,200}?\s-P\s*|ssh-keygen\b[^\n]{0,200}?\s-N\s+"
    r"|vault\s+operator\s+unseal\s+|-auth\s+[\w.@-]{1,60}:|snmp-server\s+community\s+|(?:radius|tacacs)-server\s+key\s+"
    r"|(?:bindpw|psk)\s+|-pass(?:in|out)?\s+pass:)[\"']?)"
    r"(?P<bare>(?!-|[\w./-]*\.[a-z]{2,5}(?:\s|\Z))[^\s\"']{4,512})"
)
# A variable that a command or call is given with its value: `aws configure set NAME VALUE`, `putenv("NAME", "VALUE")`.
_SET = lazy_pattern(
    r"(?P<begin>(?<!\w)(?:set|setx|setenv)\s+(?P<name>[A-Za-z_][\w.-]{2,60})\s+(?P<open>[\"']?))(?P<bare>[^\s\"']{8,512})"
)
_CALL = lazy_pattern(
    r"(?P<begin>\(\s{0,3}(?P<mark>[\"'])(?P<name>[A-Za-z_][\w-]{1,60})(?P=mark)\s{0,3},\s{0,3}(?P<open>[\"']))"
    r"(?P<bare>[^\"'\n]{8,512})(?=(?P=open))"
)
_DIGEST = lazy_pattern(r"(?i)(?P<begin>(?<!\w)digest\s[^\n]{0,400}?\bresponse=\\*[\"']?)(?P<bare>[0-9a-f]{32,64})")
_ORACLE = lazy_pattern(r"(?i)(?P<begin>jdbc:oracle:\w{2,8}:[\w.$#-]{1,60}/)(?P<bare>[^\s/@\"']{3,})(?=@)")
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
    """Whether the string is a name and a password in base64."""
    try:
        said = base64.b64decode(match["bare"] + "=" * (-len(match["bare"]) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    return ":" in said and said.isprintable()


_OPTIONS_OF = (
    "login",
    "pass:",
    "redis-cli",
    "zip ",
    "ssh-keygen",
    "unseal",
    "-auth",
    "community",
    "-server key",
    "bindpw",
    "psk",
)
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
    ("assigned-secret", _OPTIONS_OF, _OPTION, _is_random),
    ("assigned-secret", ("set",), _SET, _by_name),
    ("assigned-secret", ("(",), _CALL, _by_name),
    ("digest-response", ("digest",), _DIGEST, _is_password),
    ("url-password", ("oracle:",), _ORACLE, _is_password),
    ("assigned-secret", ("=", ":", "%3"), _ASSIGNMENT, _by_name),
    ("assigned-secret", ("-",), _FLAG, _by_name),
    ("assigned-secret", ("</",), _ELEMENT, _by_name),
)
# Without one of these, no text has a secret that is recognized by its place. In lower case.
_SIGNS = ("pass", "pwd", "secret", "token", "credential", "key", "auth", "cookie", "jwt", "otp", "cvv", "cvc", "_pat",
          "bearer", "basic", "login", "curl", "@", "sig", ":*:", ":5432:", "psk", "bindpw", "verifier", "unseal",
          "community", "redis-cli", "zip -p")  # fmt: skip


def may_have_places(text: str) -> bool:
    """Whether a string, as JSON or verbatim, may contain a secret that is recognized by its position."""
    lower = text.lower()
    for sign in _SIGNS:  # noqa: SIM110  # half as long as `any`
        if sign in lower:
            return True
    return False


def without_places(text: str) -> tuple[str, int]:
    """Return the text without the secrets that are recognized by their position, and the number removed."""
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
