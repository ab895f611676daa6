"""Find what could be a literal in the founding documents, and say what `literals.toml` does not decide about.

    python tests/corpora/seeds/extract_literals.py FOLDER

FOLDER holds the five documents, which are not part of this repository. A candidate is anything that looks like a field,
a heading, a file, a command or a value; whether it is one that the product has to keep is a judgement, written down in
`literals.toml` either way. Exit status 1 if there is a candidate without one.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PATTERNS = (
    re.compile(r"`([^`\n]{1,80})`"),  # what the author marked
    re.compile(r"^\s*(?:- )?([A-Za-z_]{2,40})(?= ?\(?[^:\n]{0,40}\)?: |:$)", re.MULTILINE),  # keys
    re.compile(r"^#{1,4} (.{1,60})$", re.MULTILINE),  # headings
    re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+)\b"),  # snake_case
    re.compile(r"\b([A-Z]{2,}(?:_[A-Z]+)+)\b"),  # CONSTANT_CASE
    re.compile(r"\b([A-Z][a-z]+(?:[A-Z][a-z]+)+)\b"),  # CamelCase
    re.compile(r"([\w./-]+\.(?:md|yaml|json|py|ts))\b"),  # files
    re.compile(r"(?<!\S)(--[a-z][a-z-]+)\b"),  # options
)


def candidates(text: str) -> Iterator[str]:
    for pattern in PATTERNS:
        for found in pattern.findall(text):
            plain = found.encode("ascii", "ignore").decode()  # the fifth document has lost its emoji
            yield " ".join(plain.split()).rstrip(":.").strip()


def undecided(folder: Path) -> dict[str, list[str]]:
    decided = tomllib.loads(Path(__file__).with_name("literals.toml").read_text("utf-8"))
    known = [one["literal"] for one in decided["kept"]] + [one["literal"] for one in decided["not_kept"]]
    left: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        found = dict.fromkeys(candidates(path.read_text("utf-8", "replace")))
        left[path.name] = [one for one in found if one and one not in known]
    return left


if __name__ == "__main__":
    rest = undecided(Path(sys.argv[1]))
    for name, literals in rest.items():
        for literal in literals:
            print(f"{name}: {literal}")
    sys.exit(1 if any(rest.values()) else 0)
