"""`SPEC_CURRENT.md`, which names the specification in force, and the names of anchors in a specification.

Also determines whether an anchor names a passage, or only says that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.documents.document import Document, TextAt, read_once, value_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import GOVERNANCE_FOLDER, SHARED_FOLDER, SPECIFICATIONS_FOLDER
from workpacket.text.limits import PATH_LENGTH
from workpacket.text.node import Node
from workpacket.text.source import Source

# The file is prose. The specification is the Markdown file that it names: in bold, in backticks, as a link or bare.
_FILE = lazy_pattern(r"(?<![\w/.-])(?P<path>(?:[\w.-]+/)*[\w.-]+\.md)\b")
_OWN_NAME = "SPEC_CURRENT.md"


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
    """Return the possible paths of a specification named in a refinement."""
    if not name or name.startswith("/") or ".." in name.split("/") or len(name) > PATH_LENGTH or not name.isprintable():
        return ()
    return (name,) if "/" in name else (name, *(f"{folder}/{name}" for folder in _FOLDERS))


def specification_places(pointer: Source | None) -> tuple[str, ...]:
    """Return the possible paths of the specification named by the pointer; none without a pointer."""
    target = read_once(SpecPointer, pointer).target if pointer is not None else None
    return candidates(target.value) if target is not None else ()
