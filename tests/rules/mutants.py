"""Documents changed in a few places, and what must hold for every repair of them.

A mutant is what a person or a tool could have made of a real document: a bullet nested below a field, a fence in an
item, a line that goes on, tabs, no-break spaces, other line ends. Which documents there are depends on the machine: the
planted ones, those of this repository, and the corpora where WORKPACKET_CORPUS names them.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from rules.planted_repairs import BASES, PLANTED, lines_of
from workpacket.problem import Problem
from workpacket.rules.repair import RepairRefused, repair, upgraded
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.shell.tree import find_documents
from workpacket.text.source import Source

ROOT = Path(__file__).parents[2]
BELOW = (
    "  - REMARK: keep this",
    "  - one\n    - two\n      - three",
    "  ```\n  kept: code\n  ```",
    "  ```\n  kept: code",
    "```\nkept: code",
    "~~~\n## METADATA\n- WP_ID: WP-1-Other-v1\n~~~",
    "  and this belongs to the value",
    "and this is lazy",
    "\t- behind a tab",
    "\t\tdeep behind tabs",
    "\u00a0\u00a0- behind no-break spaces",
    "\n  A paragraph of the same item.",
    "\n      code, or not",
    "  <!-- kept: by the owner -->",
    "<!-- opened here",
    "-->",
    "  1. first\n  2. second",
    "  > quoted",
    "> quoted",
    "  - **Status:** Done\n  - USER_SIGNATURE: eve010120261200",
    "  - [ ] open\n  - [x] ticked",
    "",
    "\n\n\n",
    "---",
    "===",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "* [WP-1-Other-v1] - STUB",
    "  note: |\n    kept\n\n",
    "<div>\n- inside",
    "[link]: https://example.org",
)
BEHIND = (
    " (stable id without the revision)",
    " (a remark of the owner)",
    " | WP-1-Other-v1",
    " <git merge-base main HEAD>",
    " (currently Spec_v1.md)",
    " `code that goes on",
    " <!-- kept -->",
    " <!-- opened",
    " # comment",
    "  ",
    "\t",
    "\u00a0",
    "\u00c3\u00a9",
    "\u202e",
    "\x08",
    "\r",
    " [x](y.md)",
    ": more",
)
Mutation = Callable[[random.Random, list[str], int], None]


def below(rng: random.Random, lines: list[str], at: int) -> None:
    lines.insert(at + 1, rng.choice(BELOW))


def behind(rng: random.Random, lines: list[str], at: int) -> None:
    lines[at] += rng.choice(BEHIND)


def other_mark(rng: random.Random, lines: list[str], at: int) -> None:
    lines[at] = re.sub(
        r"^(\s*)(?:[-*+]|\d+\.) ", rng.choice((r"\1* ", r"\1+ ", r"\g<1>1. ", r"\1- [x] ", "")), lines[at]
    )


def indented(rng: random.Random, lines: list[str], at: int) -> None:
    lines[at] = rng.choice(("  ", "    ", "\t", "> ", "\u00a0")) + lines[at]


def dressed(rng: random.Random, lines: list[str], at: int) -> None:
    lines[at] = re.sub(
        r"\b([A-Z][A-Za-z_]+):", rng.choice((r"**\1:**", r"**\1**:", r"\1 (draft):", r"`\1`:")), lines[at]
    )


def heading(rng: random.Random, lines: list[str], at: int) -> None:
    places = [index for index, line in enumerate(lines) if line.startswith("#")]
    if places:
        chosen = rng.choice(places)
        line = lines[chosen]
        ways = (
            line.lower(),
            line.title(),
            f"#{line}",
            line.removeprefix("#"),
            f"{line}: since March",
            f"{line} [x](y)",
        )
        lines[chosen] = rng.choice(ways)


def without_zone(rng: random.Random, lines: list[str], at: int) -> None:
    lines[at] = re.sub(r"(\d{4}-\d\d-\d\d)T[\d:]+Z", r"\1", lines[at])


def deleted(rng: random.Random, lines: list[str], at: int) -> None:
    del lines[at]


def doubled(rng: random.Random, lines: list[str], at: int) -> None:
    lines.insert(at, lines[at])


def joined(rng: random.Random, lines: list[str], at: int) -> None:
    if at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + " " + lines[at + 1].strip()]


# What destroyed data comes more often.
MUTATIONS: tuple[Mutation, ...] = (
    *(below,) * 5,
    *(behind,) * 4,
    *(other_mark, indented, dressed, heading, without_zone, deleted, doubled, joined),
)


class Document(NamedTuple):
    kind: str
    path: str
    data: bytes


@cache
def documents(root: Path | None) -> tuple[Document, ...]:
    """The documents of a repository; of none, those that tests plant something into."""
    if root is None:
        bases = [Document(base.kind, base.path, base.text.encode()) for base in BASES.values()]
        planted = [(BASES[case.base], case.text) for case in PLANTED]
        return (*bases, *(Document(base.kind, base.path, text.encode()) for base, text in planted))
    found = find_documents(str(root))
    return tuple(Document(file.kind, file.path, (root / file.path).read_bytes()) for file in found)


def mutant(rng: random.Random, document: Document) -> Source:
    text = document.data.decode("utf-8", "surrogateescape")
    lines = re.split(r"\r\n|\r|\n", text)
    fields = [index for index, line in enumerate(lines) if re.match(r"\s*(?:[-*+] |\d+\. |\|)?\W*\w+[^:]{0,30}:", line)]
    for _ in range(rng.randint(1, 4)):
        places = fields if fields and rng.random() < 0.7 else range(len(lines))
        at = min(rng.choice(places), len(lines) - 1)
        rng.choice(MUTATIONS)(rng, lines, at)
        lines = lines or [""]
    mutated = rng.choice(("\n",) * 4 + ("\r\n", "\r")).join(lines)
    bom = "\ufeff" if rng.random() < 0.1 else ""
    return Source.from_bytes(document.path, (bom + mutated).encode("utf-8", "surrogateescape"))


def assert_nothing_is_lost(kind: str, source: Source, *, unsafe: bool) -> bool:
    """One repair, round by round, as `check --fix` makes it: each round has findings of its own.

    The last one changes nothing, so repairing once more would change nothing. False if the file was refused, which
    leaves it as it is.
    """
    for _ in range(64):
        try:
            after, made = repair(source, kind, found_in(kind, source), unsafe=unsafe)
        except RepairRefused:
            return False
        if after is source:
            return True
        assert_only_named_lines_change(source, after, made)
        source = after
    raise AssertionError("after 64 rounds there is still something to repair")


# Headings and labels are written as the layout has them; the finding says how.
_RENAMED = {"old_heading", "board_heading_spelling", "field_syntax", "board_entry_form", "board_token_missing"}


def assert_only_named_lines_change(before: Source, after: Source, made: tuple[Problem, ...]) -> None:
    # A second byte order mark is text until the first one is gone, which is what the finding names.
    old, new = lines_of(before.text.lstrip("\ufeff")), lines_of(after.text.lstrip("\ufeff"))
    lost, gained = old - new, new - old
    named: Counter[str] = Counter()
    for number in {line for finding in made for line in touched_by(before, finding)}:
        named[before.line(number).lstrip("\ufeff") if number == 1 else before.line(number)] += 1
    assert lost - named == Counter(), "a line is lost that no finding names"
    assert lost.total() <= gained.total(), "of a line that a finding names nothing is left"
    said = " ".join(f"{one.message} {one.hint} {shown_by(before, one)}" for one in made)
    if not any(finding.code in _RENAMED for finding in made):
        missing = words_of(lost) - words_of(gained)
        assert [word for word in missing if word not in said] == [], "a word is lost that no finding shows"


# One finding counts all places of such a cause and names the first (decision 91); its repair changes each of them.
_ONE_CAUSE = {"mojibake", "refinement_not_ascii", "control_character"}


def shown_by(source: Source, finding: Problem) -> str:
    lines = set(touched_by(source, finding)) if finding.code in _ONE_CAUSE else set()
    return " ".join(source.line(number) for number in sorted(lines | {finding.line}))


def touched_by(source: Source, finding: Problem) -> Iterator[int]:
    for edit in finding.fix.edits if finding.fix is not None else ():
        there = source.text[max(edit.start, 0) : edit.end]
        if edit.text.strip() or there.strip() or (there and not set(there) & set("\r\n")):
            line = source.line_and_column(edit.start)[0]
            assert finding.line <= line <= max(finding.location.end_line, finding.line)
            yield line


def words_of(lines: Counter[str]) -> Counter[str]:
    return Counter(word for line in lines.elements() for word in re.findall(r"\w+", line))


def assert_upgrade_loses_nothing(source: Source) -> bool:
    """True if the document is an older stub, and every line of it is carried over."""
    try:
        after = upgraded(source)
    except RepairRefused:
        return False
    if after is None:
        return False
    there = lines_of(after.text)
    for line in lines_of(source.text):
        words = re.sub(r"^\W*\w+:\W*", "", line.strip()) if "tatus" in line else line.strip()
        if not line.lstrip().startswith("#") and not set(line.strip()) <= set("=-"):
            assert any(words in written for written in there), f"lost: {line!r}"
    assert upgraded(after) is None
    return True


def found_in(kind: str, source: Source) -> tuple[Problem, ...]:
    return _found(source.path, kind, source.encode())


@lru_cache(maxsize=8)  # the safe repairs of a mutant and all of them begin alike
def _found(path: str, kind: str, data: bytes) -> tuple[Problem, ...]:
    return tuple(load_findings(path, examine_bytes(path, kind, data).findings))


def try_mutants(rng: random.Random, root: Path | None, number: int) -> Counter[str]:
    """Mutants of the documents below `root`, each through every repair; how many were made and how many refused."""
    seen: Counter[str] = Counter()
    all_of_them = documents(root)
    for _ in range(number):
        document = rng.choice(all_of_them)
        source = mutant(rng, document)
        seen["mutants"] += 1
        try:
            for unsafe in (False, True):
                seen["refused"] += not assert_nothing_is_lost(document.kind, source, unsafe=unsafe)
            if document.kind == "stub":
                seen["upgraded"] += assert_upgrade_loses_nothing(source)
        except Exception as failure:
            failure.add_note(f"{document.path}: {source.encode()!r}")
            raise
    return seen
