"""The lists of secrets and of harmless values, made from templates when a test runs.

A forge refuses a commit with the exact form of a vendor's token, even one that was made up. So the lists are kept as
templates (cases/secrets.tsv and cases/harmless.tsv), and their random parts are drawn here, always the same ones.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

CASES = Path(__file__).parent / "cases"
OF_EACH_KIND = 3
HARMLESS = 2000

_ALPHABETS = {
    "a": string.ascii_lowercase,
    "d": string.digits,
    "an": string.ascii_letters + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "B32": string.ascii_uppercase + "234567",
    "b64_": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_letters + string.digits + "-_",
    "w": string.ascii_letters + string.digits + "_",
}
_WORDS = [
    "apple",
    "bridge",
    "candle",
    "desk",
    "engine",
    "forest",
    "garden",
    "harbor",
    "island",
    "journey",
    "kitchen",
    "ladder",
    "mountain",
    "novel",
    "ocean",
    "painter",
    "quarter",
    "river",
    "silver",
    "tunnel",
    "umbrella",
    "village",
    "winter",
    "yellow",
    "zebra",
    "account",
    "booking",
    "cluster",
    "dataset",
    "element",
    "folder",
    "gallery",
    "header",
    "invoice",
    "kernel",
    "library",
    "module",
    "network",
    "output",
    "parser",
    "query",
    "report",
    "schema",
    "table",
    "update",
    "vector",
    "worker",
    "archive",
    "builder",
    "channel",
    "driver",
    "filter",
    "graph",
    "handler",
    "index",
    "layout",
    "manager",
]


class SecretValue(NamedTuple):
    """A value that contains a secret. `variable` is the environment variable that has it, '' for none."""

    kind: str
    value: Any
    secrets: tuple[str, ...]
    variable: str = ""
    content: str = ""


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._named: dict[str, Callable[[], str]] = {
            "word": self._word,
            "Word": lambda: self._word().capitalize(),
            "WORD": lambda: self._word().upper(),
            "int": lambda: str(self._random.randint(1, 9999)),
            "date": lambda: f"2026-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}",
            "uuid": lambda: "-".join(self._drawn("hex", length) for length in (8, 4, 4, 4, 12)),
            "pw": lambda: self._password("!#?.+~^"),
            "pwu": lambda: self._password("!.~_-"),
            "B32": lambda: self._drawn("B32", 32),
            "basic": lambda: base64.b64encode(f"ci:{self._password('!')}".encode()).decode(),
            "card15": self._card,
            "n8": lambda: str(self._random.randint(10_000_000, 99_999_999)),
        }

    def filled(self, template: str) -> str:
        return re.sub(r"<([A-Za-z][A-Za-z0-9_]*)>", self._part, template.replace("⏎", "\n"))

    def _part(self, match: re.Match[str]) -> str:
        if match[1] in self._named:
            return self._named[match[1]]()
        sized = re.fullmatch(r"(b64_|hex|an|AN|a|d|u|w)([0-9]+)", match[1])
        return match[0] if sized is None else self._drawn(sized[1], int(sized[2]))

    def _word(self) -> str:
        return self._random.choice(_WORDS)

    def _drawn(self, alphabet: str, length: int) -> str:
        return "".join(self._random.choices(_ALPHABETS[alphabet], k=length))

    def _password(self, signs: str) -> str:
        form = self._random.randrange(3)
        if form == 0:
            return f"{self._word().capitalize()}{self._random.randint(10, 9999)}{self._random.choice(signs)}"
        if form == 1:
            return (
                f"{self._drawn('an', 7)}{self._random.choice(signs)}{self._drawn('an', 6)}{self._random.randint(0, 9)}"
            )
        return f"{self._word()}{self._random.randint(100, 9999)}"

    def _card(self) -> str:
        digits = "4" + self._drawn("d", 14)
        doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(digits))
        return digits[1:] + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def _rows(name: str) -> Iterator[list[str]]:
    for line in (CASES / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")


def secret_values(name: str = "secrets.tsv") -> list[SecretValue]:
    made, values = _Maker(20261119), []
    for kind, form, template in _rows(name):
        for _ in range(OF_EACH_KIND):
            text = made.filled(template)
            parts = [part for found in re.findall("⟦(.*?)⟧", text, re.DOTALL) for part in _lines(found)]
            text = re.sub("[⟦⟧]", "", text)
            if form == "json":
                values.append(SecretValue(kind, json.loads(text), tuple(parts)))
            elif form == "variable":
                name, _, content = text.partition("=")
                sentence = f"connected with {content} after 2 tries"
                values.append(SecretValue(kind, sentence, tuple(parts), name, content))
            else:
                values.append(SecretValue(kind, text, tuple(parts)))
    return values


def _lines(secret: str) -> list[str]:
    """The lines of a private key, each of which is secret; anything else is one."""
    return [line for line in re.split(r"\n|\\+n|%0A| ", secret) if line]


def harmless_values(name: str = "harmless.tsv", count: int = HARMLESS) -> list[Any]:
    """So many different values; a template without placeholders gives one."""
    made, rows = _Maker(6114), list(_rows(name))
    found: dict[str, Any] = {}
    while len(found) < count:
        for form, template in rows:
            text = made.filled(template)
            found[text] = json.loads(text) if form == "json" else text
    return list(found.values())[:count]
