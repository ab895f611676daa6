"""Rules about sentences that contradict what the same document says elsewhere.

Each rule relies on fixed words and a field, list or number next to them; nothing is guessed from the meaning of a
sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from workpacket.documents.structured import StructuredDocument, items_of_section
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.structured import StructuredRule, says_something
from workpacket.text.blocks import Item

# An item that says that there is nothing to list.
_NONE = lazy_pattern(
    r"(?i)[*_`(]*(?:none(?: known| identified| found| yet| so far| at this time)?|n/?a|nothing(?: yet)?"
    r"|no (?:known |open |other )?(?:\w+ )?(?:dependencies|blockers|gaps|risks|waivers|deviations|issues|questions))"
    r"[*_`).]*"
)
_SAYS_NONE = lazy_pattern(r"[-*+] [*_`(]*(?:[Nn][Oo][Nn][Ee]|[Nn]/?[Aa]|[Nn]othing|[Nn]o )[^\r\n]{0,40}[\r\n]")
# How such an item begins.
_BEGINS_AS_NONE = tuple(f"{mark} {first}".encode() for mark in "-*+" for first in "n*_`(")
_LISTS = frozenset({"scope", "gaps_identified", "red_team_advisory", "primitives", "hygiene"})
_FIRST_OF_ITS_BASE = lazy_pattern(r"(?i)\bfirst (?:packet|version|revision) of (?:its|this|the) base\b")


class NoneContradicts(StructuredRule):
    """List that says "none" but has other entries

    A reader who stops at the first line misses the rest.

    Remedy: delete the line that says "none", or the entries that no longer apply.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if not document.source.mentions(*_BEGINS_AS_NONE):
            return
        seen: set[int] = set()
        for placed in document.placed:
            listed = placed.spec.shape == "items" or placed.spec.key in _LISTS
            if not listed or not _SAYS_NONE.search(document.source.text, placed.section.start, placed.section.end):
                continue
            lists = [items_of_section(document.source, placed.section), *(field.children for field in placed.fields)]
            for items in lists:
                yield from self._in_one_list(document, items, seen)

    def _in_one_list(self, document: StructuredDocument, items: Sequence[Item], seen: set[int]) -> Iterator[Problem]:
        for item in items:
            yield from self._in_one_list(document, item.children, seen)
        for before, after in pairwise(items):
            # At the end of a list, a bare "none" may answer the instructions of a template above it.
            first = _NONE.fullmatch(before.text.strip()) is not None
            none, other = (before, after) if first or " " not in after.text.strip() else (after, before)
            between = document.source.text[before.span[1] : after.span[0]]
            # Items below different captions belong to different lists, and a template explains in parentheses.
            apart = (
                before.children
                or between.strip(" \t\r\n-*+")
                or other.text.startswith(("(", "`("))
                or other.text.endswith(":")
            )
            if apart or none.span[0] in seen or not _NONE.fullmatch(none.text.strip()):
                continue
            if says_something(other.text) and not _NONE.fullmatch(other.text.strip()):
                seen.add(none.span[0])
                line = document.source.line_and_column(other.span[0])[0]
                yield self.fault(
                    none.span, f"this says {none.text.strip()[:40]!r}, but the same list has an item on line {line}"
                )


_NO_CHANGES = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t]*[-*+][ \t]+(?P<said>(?:no (?:code|product|source) changes?(?: were made)?"
    r"|no files (?:were )?changed|nothing (?:was )?changed))[ \t.]*(?=[\r\n]|\Z)"
)
_UNCHANGED = (b"no change", b"no code", b"no product", b"no source", b"no files", b"nothing changed", b"nothing was")
_CHANGED_FILE = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*Target File[*_`]*[ \t]*:[*_` \t]*(?P<path>(?!\.GOV/|docs/|path/)[\w./-]+\.\w+)"
)


class NoChangesContradicts(StructuredRule):
    """Handoff that says that nothing changed, despite a change manifest

    A reviewer who believes the sentence will not look at the change.

    Remedy: describe what changed, or delete the manifest.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.source.text
        placed = document.placed_section("status_handoff") if "Target File" in text else None
        span = (placed.section.start, placed.section.end) if placed is not None else (0, 0)
        said = _NO_CHANGES.search(text, *span) if span[1] and document.source.mentions(*_UNCHANGED) else None
        changed = _CHANGED_FILE.search(text) if said is not None else None
        if said is not None and changed is not None:
            line = document.source.line_and_column(changed.start("path"))[0]
            message = f"this says {said['said']!r}, but line {line} has the manifest for {changed['path']}"
            yield self.fault(said.span("said"), message)


class LineageContradicts(StructuredRule):
    """Later revision that calls itself the first packet of its base

    The lineage audit was copied from the template, so it is unknown what the earlier revisions left open.

    Remedy: describe what became of the earlier revisions.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if not document.source.mentions(b"first "):
            return
        own = WorkPacketId.try_parse(document.stem)
        placed = document.placed_section("lineage_audit")
        if own is None or (own.revision or 1) < 2 or placed is None:
            return
        match = _FIRST_OF_ITS_BASE.search(document.source.text, placed.section.start, placed.section.end)
        if match is not None:
            yield self.fault(match.span(), f"{own} is revision {own.revision} of {own.base}")
