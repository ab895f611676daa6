"""`SPEC_CURRENT.md`, which names the current specification, and the names of anchors in a specification.

This module also finds the passages of the specification, which are its sections, and determines whether an anchor names
a passage or only says that there is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from workpacket.digests import sha256
from workpacket.documents.document import Document, TextAt, read_once, value_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import GOVERNANCE_FOLDER, SHARED_FOLDER, SPECIFICATIONS_FOLDER
from workpacket.text.source import PATH_LENGTH, Node, Source
from workpacket.value import Value

# The file is prose. The specification is the Markdown file that it names: in bold, in backticks, as a link or bare.
_FILE = lazy_pattern(r"(?<![\w/.-])(?P<path>(?:[\w.-]+/)*[\w.-]+\.md)\b")
_OWN_NAME = "SPEC_CURRENT.md"
# How `init` begins what a person still has to write in the specification.
STILL_TO_WRITE = "State here what is "


class SpecPointer(Document):
    kind = "spec_pointer"

    target = TextAt("target")

    def __init__(self, source: Source) -> None:
        found = [match for match in _FILE.finditer(source.text) if not match["path"].endswith(_OWN_NAME)]
        specifications = [match for match in found if "spec" in match["path"].casefold()] or found
        entries: dict[str, Node] = {}
        if specifications:
            start, end = specifications[0].span("path")
            entries["target"] = Node(source.text[start:end], start, end)
        super().__init__(source, Node(entries, 0, len(source.text), {}))

    def summary(self) -> Mapping[str, object]:
        return {"target": value_of(self.target), "place": self.place(self.target)}


_WORD = lazy_pattern(r"n[/.]a\b|[^\W_]+")
_NONE = frozenset(["n/a", "n.a", "na", "nil", "no", "none", "nothing", "null", "not", "unknown"])
_LATER = frozenset(["fixme", "pending", "placeholder", "tba", "tbc", "tbd", "todo", "xxx"])
# Words that accompany such a word and name nothing either.
_FILLING = frozenset(
    [
        *("a", "an", "anchor", "anchors", "any", "anything", "applicable", "as", "at", "available", "be", "been"),
        *("candidate", "candidates", "decided", "defined", "determined", "far", "fill", "for", "found", "here"),
        *("identified", "in", "is", "it", "kind", "known", "later", "moment", "needed", "now", "of", "one", "passage"),
        *("present", "required", "section", "so", "sort", "specified", "such", "that", "the", "there", "this", "to"),
        *("was", "were", "yet"),
    ]
)


def names_passage(name: str) -> bool:
    """Whether an anchor names a passage: False for `None known.`, `n/a`, `TBD`, `-` and the like. An anchor without a
    passage consists of filler words, at least one of them a negation: `4.2 None of the above` names a passage.
    """
    words = _WORD.findall(name.casefold())
    empty = _NONE | _LATER
    says_none = all(word in empty or word in _FILLING for word in words) and not empty.isdisjoint(words)
    return bool(words) and not says_none


_FOLDERS = (GOVERNANCE_FOLDER, SPECIFICATIONS_FOLDER, SHARED_FOLDER)


def candidates(name: str) -> tuple[str, ...]:
    """Return the possible paths of a specification mentioned in a refinement."""
    if not name or name.startswith("/") or ".." in name.split("/") or len(name) > PATH_LENGTH or not name.isprintable():
        return ()
    return (name,) if "/" in name else (name, *(f"{folder}/{name}" for folder in _FOLDERS))


_VERSION_AT_END = lazy_pattern(r"(?<=[_-])v(?P<number>\d{1,6}(?:\.\d{1,6})*)\.md\Z")


def later_version(pointer: Source, name: str) -> str:
    """Return the file that the pointer names, if it is a later version of the specification `name`; otherwise ''."""
    current = value_of(read_once(SpecPointer, pointer).target).rpartition("/")[2]
    own = name.rpartition("/")[2]
    said, pinned = _VERSION_AT_END.search(current), _VERSION_AT_END.search(own)
    if said is None or pinned is None or current[: said.start()] != own[: pinned.start()]:
        return ""
    return current if _numbers(said["number"]) > _numbers(pinned["number"]) else ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def specification_places(pointer: Source | None) -> tuple[str, ...]:
    """Return the paths in the pointer that could be the specification; none if there is no pointer."""
    target = read_once(SpecPointer, pointer).target if pointer is not None else None
    return candidates(target.value) if target is not None else ()


_HEADING = lazy_pattern(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\Z")
_NUMBER = lazy_pattern(r"[0-9]+(?:\.[0-9]+)*\.?\Z")


class Passage(Value):
    """A section of a specification: its lines, up to the next heading of its level, and the titles of all sections that
    contain it.
    """

    titles: tuple[str, ...]
    level: int
    first: int
    last: int
    text: str

    @property
    def title(self) -> str:
        return self.titles[-1]

    @property
    def heading(self) -> str:
        """Return the title in the form used in anchors, in backticks."""
        return self.title.replace("`", "'")

    @property
    def digest(self) -> str:
        """Return the digest that an anchor pins: the digest of the section's text, regardless of its line endings."""
        return sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def says(self) -> str:
        """Return the text below the heading, without the headings in it."""
        return "\n".join(line for line in self.text.split("\n") if not _HEADING.match(line)).strip()

    def in_roadmap(self, headings: Sequence[str]) -> str:
        """Return the heading of the roadmap that contains this section; '' if the section is in the main body."""
        return next((each for each in self.titles if any(word in each.casefold() for word in headings)), "")


def passages(specification: Source) -> Iterator[Passage]:
    """Yield every section, in file order."""
    found = [(number, len(match[1]), match[2]) for number, match in _headings(specification)]
    above: list[tuple[int, str]] = []
    for index, (line, level, title) in enumerate(found):
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, title))
        later = (other for other, deep, _ in found[index + 1 :] if deep <= level)
        last = next(later, specification.line_count + 1) - 1
        text = "\n".join(specification.line(number) for number in range(line, last + 1)).rstrip()
        yield Passage(tuple(each for _, each in above), level, line, last, text)


def _headings(specification: Source) -> Iterator[tuple[int, re.Match[str]]]:
    from workpacket.documents.register_table import visible_lines

    for visible in visible_lines(specification):
        match = _HEADING.match(visible.text) if visible.text.lstrip(" ").startswith("#") else None
        if match is not None:
            yield visible.number, match


def passages_named(specification: Source, name: str) -> list[Passage]:
    """Return the sections to which a number, a title, or both together may refer."""
    wanted = _words(name)
    return [one for one in passages(specification) if wanted in _names(one.title)]


def _names(title: str) -> set[str]:
    words = _words(title)
    number, _, rest = words.partition(" ")
    return {words, *((number, number.rstrip("."), rest) if _NUMBER.match(number) else ())} - {""}


def _words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).strip("# `").split()).casefold()


def with_requirement(specification: Source, title: str, text: str, roadmap: Sequence[str]) -> str:
    """Return the specification with a new section for the requirement, at the end of the main body."""
    tops = [one for one in passages(specification) if one.level == 2 and not one.in_roadmap(roadmap)]
    main = next((one for one in tops if "main body" in one.title.casefold()), tops[-1] if tops else None)
    lines = specification.text.splitlines(keepends=True)
    at = main.last if main is not None else len(lines)
    while at and not lines[at - 1].strip():
        at -= 1
    end = specification.eol
    before = "".join(lines[:at]) + ("" if not at or lines[at - 1].endswith(("\n", "\r")) else end)
    after = "".join(lines[at:]).lstrip("\r\n")
    heading = "#" * (main.level + 1 if main is not None else 2)
    section = f"{end}{heading} {title}{end}{end}{text}{end}"
    return before + section + (end + after if after else "")
