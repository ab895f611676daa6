"""Secrets that are recognized by their form: the tokens of vendors, private keys, password hashes, card numbers.

The form of a vendor's token is a literal prefix and the characters that may follow; it matches if enough of them do. A
prefix that also occurs in ordinary words counts only at the start of a word, and not if prose follows. Forms without
a prefix are patterns, each with a short text that must occur before the pattern is tried.

The facts in `VENDORS` are from the vendors' documents and from the rules of gitleaks (config/gitleaks.toml at commit
b58d3f10), read in November 2026. A form that is added names its source in the commit.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

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
    """A form without a literal prefix. The pattern is tried where `mark` occurs; its group `secret` is hidden."""

    name: str
    mark: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


def _is_card(digits: str) -> bool:
    """Whether a number has the check digit of a card."""
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
    """Finds out whether the prefix of any rule may be in a text, from the first mark in it (`_`, `.` or `-`) and the
    characters before: one pattern with all prefixes takes five times as long.
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
    """Whether the text at `position` is not the end of a longer word."""
    if position == 0 or not text[position - 1].isalnum():
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - _LONGEST_ESCAPE), position) is not None


def is_prose(text: str) -> bool:
    """Whether a text consists of words, such as the name of a branch or setting, and not of random characters."""
    pieces: list[str] = _PIECE.findall(text)
    if not pieces or any(character.isdigit() for character in text):
        return False
    if any(len(piece) > (_PROSE if piece.isupper() else _LONGEST_WORD) for piece in pieces):
        return False
    return sum(map(len, pieces)) >= _PROSE * len(pieces)


def without_form(text: str, rule: SecretRule) -> tuple[str, int]:
    """Return the text without the secrets of this form, and their number."""
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
    """Return the text without the secrets of this shape, and their number."""
    kept: list[str] = []
    start = 0
    for match in shape.pattern.finditer(text):
        if shape.holds(match["secret"]):
            kept += [text[start : match.start("secret")], f"[redacted:{shape.name}]"]
            start = match.end("secret")
    return ("".join(kept) + text[start:], len(kept) // 2) if kept else (text, 0)
