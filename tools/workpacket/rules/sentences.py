"""Rules about sentences that contradict what the same document says elsewhere, or that cannot be read as meant.

Each rule relies on fixed words, marks, and a field, list or number next to them; nothing is guessed from the meaning of
a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from workpacket.documents.structured import (
    FrontMatterDocument,
    StructuredDocument,
    WorkDocument,
    items_of_section,
    walk_items,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, first_lines
from workpacket.rules.structured import StructuredRule, says_something
from workpacket.rules.text import places_of
from workpacket.text.blocks import LISTS, Item
from workpacket.text.formats import legacy_signature

# An item that says that there is nothing to list.
_NONE = lazy_pattern(
    r"(?i)[*_`(]*(?:none(?: known| identified| found| yet| so far| at this time)?|n/?a|nothing(?: yet)?"
    r"|no (?:known |open |other )?(?:\w+ )?(?:dependencies|blockers|gaps|risks|waivers|deviations|issues|questions))"
    r"[*_`).]*"
)
_SAYS_NONE = lazy_pattern(r"[-*+] [*_`(]*(?:[Nn][Oo][Nn][Ee]|[Nn]/?[Aa]|[Nn]othing|[Nn]o )[^\r\n]{0,40}[\r\n]")
# How such an item begins.
_BEGINS_AS_NONE = ("none", "n/a", "nothing", "no ", "- na", "* na")
_LISTS = frozenset({"scope", "gaps_identified", "red_team_advisory", "primitives", "hygiene"})
_FIRST_OF_ITS_BASE = lazy_pattern(r"(?i)\bfirst (?:packet|version|revision) of (?:its|this|the) base\b")


class NoneContradicts(StructuredRule):
    """List that says "none" but has other entries

    A reader who stops at the first line misses the rest.

    Remedy: delete the line that says "none", or the entries that no longer apply.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.source.text
        seen: set[int] = set()
        for placed in document.placed:
            listed = placed.spec.shape == "items" or placed.spec.key in _LISTS
            start, end = placed.section.start, placed.section.end
            # Looking for the words first takes a fraction of the time.
            if not listed or not (said := text[start:end].lower()) or not any(word in said for word in _BEGINS_AS_NONE):
                continue
            if not _SAYS_NONE.search(text, start, end):
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


MarkdownRule = DocumentRule[StructuredDocument | FrontMatterDocument]


_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# `Two files were changed:`; not `at least two files:`, `two kinds of files:`.
_COUNTED = lazy_pattern(
    r"(?i)(?<![\w.,/~-])(?<!least )(?<!most )(?<!up to )(?<!than )(?<!of )(?<!or )(?<!to )(?<!first )(?<!last )"
    r"(?<!next )(?<!other )(?<!about )(?<!and )(?<!# )"
    rf"(?P<count>{'|'.join(_NUMBERS)}|[2-9]|1\d) (?P<what>(?:[a-z-]+ ){{0,2}}[a-z-]+s)"
    r"(?: (?:were|are|have been|must be|need to be) [a-z]+)?[*_`]*:[*_`]*\Z"
)


_BEFORE_COLON = frozenset("sdn*_`")
_DRESSED = lazy_pattern(r":[*_`]+[\r\n]")
_PART_OF = lazy_pattern(r"(?i)\bof\b[^,;:.]{0,30}\Z")


class CountContradicts(MarkdownRule):
    """Number that differs from the length of the list below it

    An item was added or forgotten, and readers can't tell which.

    Remedy: correct the number or the list.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument | FrontMatterDocument) -> Iterator[Problem]:
        text = document.source.text
        # Most lines that end with a colon name a field in capitals.
        ends = [at for end in (":\n", ":\r") for at in places_of(end, text) if text[at - 1 : at] in _BEFORE_COLON]
        if not any(_COUNTED.search(text, max(0, at - 80), at + 1) for at in ends) and not _DRESSED.search(text):
            return
        groups = [section.blocks for section in document.outline.walk()]
        groups += [block.children for block in document.every_block if block.kind == "item" and len(block.children) > 1]
        for blocks in groups:
            for before, after, behind in zip(blocks, blocks[1:], [*blocks[2:], None], strict=False):
                if after.kind not in LISTS or before.kind != "paragraph":
                    continue
                start, end = before.spans[-1]
                said = _COUNTED.search(text, max(start, end - 80), end) if end > start else None
                # `one of the closed 6 forms:` counts something else; code between two lists may belong to the first.
                whole = said is not None and not _PART_OF.search(text, start, said.start())
                if said is not None and whole and (behind is None or behind.kind not in {*LISTS, "fence", "code"}):
                    number = said["count"].casefold()
                    count = _NUMBERS.index(number) + 2 if number in _NUMBERS else int(number)
                    if count != len(after.children):
                        message = f"this says {said['count']} {said['what']}, but the list has {len(after.children)}"
                        yield self.fault((said.start("count"), said.end("what")), message)


_CRITERIA = frozenset({"done_means", "acceptance_criteria"})
_HOMES = _CRITERIA | {"quality_gate"}
_CANNOT_FAIL = lazy_pattern(
    r"(?i)\bor (?:the |any |all |remaining |known )?(?:gaps?|failures?|deviations?|exceptions?|violations?|omissions?) "
    r"(?:is |are |were |must be |being )?(?:recorded|documented|noted|logged|reported|listed|explained|justified)\b"
)
_VAGUE = lazy_pattern(
    r"(?i)\b(?:if|where|when|wherever|whenever|as far as) (?:possible|feasible|practical|appropriate)\b"
    r"|\bas appropriate\b|\band so (?:on|forth)\b|\betc\b\.?|\bbest[- ]effort\b|\buser[- ]friendly\b"
    r"|\bintuitive(?:ly)?\b|\bat least the (?:major|main|key|most important|relevant)\b|\bor so\b"
)
_UNTESTABLE = (
    *(
        "at least the",
        "or so",
        "possible",
        "feasible",
        "practical",
        "appropriate",
        "and so ",
        "etc",
        "effort",
        "friendly",
        "intuitive",
    ),
    *("gap", "failure", "deviation", "exception", "violation", "omission"),
)


class CriterionUntestable(DocumentRule[WorkDocument]):
    """Criterion that cannot fail, or that everyone may read differently

    The person who judges the work must decide what was meant.

    Remedy: say what must be true, so that a test or a reader can answer yes or no.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        homes = [placed.section for placed in document.placed if placed.spec.key in _HOMES]
        text = document.source.text
        said = "\n".join(text[home.start : home.end] for home in homes).lower()
        if not any(word in said for word in _UNTESTABLE):
            return
        lists = [field.children for placed in document.placed for field in placed.fields if field.name in _CRITERIA]
        criteria = [placed.section for placed in document.placed if placed.spec.key in _CRITERIA]
        lists += [items_of_section(document.source, section) for section in criteria]
        for item in (item for items in lists for item in walk_items(items)):
            escape = _CANNOT_FAIL.search(document.source.text, *item.span)
            if escape is not None:
                yield self.fault(escape.span(), f"this criterion is also met if it fails: {escape[0]!r}")
                continue
            vague = _VAGUE.search(document.source.text, *item.span)
            if vague is not None:
                yield self.fault(vague.span(), f"{vague[0]!r} leaves open when this criterion is met")


_MARKS = lazy_pattern(r"\\?`+")


class CodeSpanUnclosed(MarkdownRule):
    """Backtick without a counterpart

    Where the code ends is unknown: the text behind the backtick, or between it and the next one, is shown wrongly.

    Remedy: close the code with the same number of backticks.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument | FrontMatterDocument) -> Iterator[Problem]:
        text = document.source.text
        places: list[int] = []
        inline = text.replace("```", "")
        parts = inline.split("`")
        # Code seldom goes on in the next line.
        if "``" not in inline and len(parts) % 2 and not any("\n" in code or "\r" in code for code in parts[1::2]):
            return
        for block in document.every_block:
            if block.kind != "paragraph":
                continue
            start, end = block.spans[0][0], block.spans[-1][1]
            count = text.count("`", start, end)
            if count and (count % 2 or text.find("``", start, end) >= 0):
                marks = [one for span in block.spans for one in _MARKS.finditer(text, *span)]
                # A fence that is only named begins no code.
                places += _unclosed(marks) if len(marks) > 1 or len(marks[0][0]) < len("```") else []
        if places:
            lines = [*dict.fromkeys(document.source.line_and_column(place)[0] for place in places)]
            more = f" ({first_lines(lines)})" if len(lines) > 1 else ""
            span = (places[0], document.source.line_span(lines[0])[1])
            yield self.fault(span, f"the code that begins here is never closed{more}")


def _unclosed(marks: Sequence[re.Match[str]]) -> list[int]:
    """Return the positions of the backticks that no equally long run of backticks closes, as CommonMark pairs them."""
    found: list[int] = []
    at = 0
    while at < len(marks):
        # An escaped backtick begins no code; the rest of its run does.
        escaped = marks[at][0].startswith("\\")
        length = len(marks[at][0]) - 2 * escaped
        closing = (number for number in range(at + 1, len(marks)) if len(marks[number][0].strip("\\")) == length)
        closed = next(closing, None) if length else at
        if closed is None:
            found.append(marks[at].start())
        at = (at if closed is None else closed) + 1
    return found


_INNER = lazy_pattern(r"[ \t]*(?P<marks>```+)[a-z]+[ \t]*")


class FenceInFence(MarkdownRule):
    """Code fence inside a fence that uses the same marks

    The inner fence closes the outer one, so the rest of the example is read as part of the document.

    Remedy: write the outer fence with one more mark.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument | FrontMatterDocument) -> Iterator[Problem]:
        text = document.source.text
        for block in document.every_block if text.count("```") > 2 else ():
            if block.kind != "fence" or not block.spans or not block.marker.startswith("```"):
                continue
            for start, end in block.spans if text.find("```", block.spans[0][0], block.spans[-1][1]) >= 0 else ():
                inner = _INNER.fullmatch(text, start, end)
                if inner is not None and inner["marks"] == block.marker:
                    message = f"this fence is inside the one on line {block.line}, which has the same marks"
                    yield self.fault((start, end), message)
                    return


class FenceCutShort(MarkdownRule):
    """Code fence that ends with its list item

    A line of the code is indented less than the item, so the rest of the code is read as text of the document.

    Remedy: indent the code like the fence.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument | FrontMatterDocument) -> Iterator[Problem]:
        if " ```" not in document.source.text:
            return
        inner = next(FenceInFence().check(document), None)
        for block in document.every_block:
            if inner is not None and block.start > inner.start:
                return  # what follows the inner fence only seems to begin one
            if block.kind == "fence" and not block.closed and block.end_line < document.source.line_count:
                span = (block.start, block.start + len(block.marker))
                yield self.fault(span, f"never closed: it ends with its list item on line {block.end_line}")
                return


_NEWER = lazy_pattern(
    r"(?i)\b(?:closed|decided|resolved|agreed|changed|updated|revised|amended|added)\b[^\r\n\d]{0,12}"
    r"(?P<day>20\d\d-[01]\d-[0-3]\d)(?![\d.])"
)
_LENGTH_OF_TIME = len("DDMMYYYYHHMM")


class SignedTextNewer(StructuredRule):
    """Decision that is newer than the signature

    The text was changed after it was approved, or one of the dates is wrong.

    Remedy: correct the date, or have the refinement approved again: `workpacket approve <WP_ID>`.
    """

    kinds = ("refinement",)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        signature = document.text_at("metadata", "user_signature")
        if signature is None or legacy_signature(signature.value):
            return
        digits = signature.value[-_LENGTH_OF_TIME:]
        signed = f"{digits[4:8]}-{digits[2:4]}-{digits[:2]}"
        for match in _NEWER.finditer(document.source.text):
            if match["day"] > signed:
                yield self.fault(match.span(), f"{match[0]!r} is after the signature of {signed}")
                return


_LOCKED = lazy_pattern(r"(?i)\bpacket is locked\b[^\r\n]{0,40}\bno edits\b")


class LockedPacketChanged(StructuredRule):
    """Section below the statement that the packet is locked

    A reader who trusts the statement takes the later text for what was approved.

    Remedy: delete the statement, or say who may still add what; the signature shows what was approved.
    """

    kinds = ("packet",)
    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        said = _LOCKED.search(document.source.text) if document.source.mentions(b"packet is locked") else None
        later = said and next((one for one in document.outline.walk() if one.level and one.start > said.end()), None)
        if said and later:
            yield self.fault(said.span(), f"this says that there are no edits, but line {later.line} begins a section")


class ApprovedNotCovered(StructuredRule):
    """Approval of a refinement whose verdict is FAIL

    The signature approves work that, by the same document, the specification does not cover yet.

    Remedy: add the enrichment to the specification, refine the packet against the new version, and have it approved.
    """

    kinds = ("refinement",)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        status = document.text_at("metadata", "user_review_status")
        verdict = document.text_at("clearly_covers", "clearly_covers_verdict")
        said = verdict.value.strip("`* ").upper() if verdict is not None else ""
        enrichment = document.text_at("enrichment", "enrichment_needed")
        if enrichment is not None and enrichment.value.strip("`* ").upper().startswith("NO"):
            return  # `verdict_contradiction` reports that
        if status is not None and verdict is not None and said.startswith("FAIL"):
            line = document.source.line_and_column(verdict.start)[0]
            if status.value.strip("`* ").upper().startswith("APPROVED"):
                yield self.fault(status.span, f"approved, but CLEARLY_COVERS_VERDICT is FAIL (line {line})")


# The escapes of what UTF-8 becomes in an older code page: `\\u00C2\\u00A7` for a paragraph sign.
_GARBLED_ESCAPE = lazy_pattern(r"(?i)\\{1,2}u00(?:c[23]|e2)\\{1,2}u(?:00[89ab][0-9a-f]|20[0-9a-f]{2}|01[5-9][0-9a-f])")


class EscapesGarbled(StructuredRule):
    """Escapes of garbled characters in an excerpt

    The text was read in the wrong encoding before it was escaped, so it quotes other characters than the specification.

    Remedy: read the specification as UTF-8, and quote the passage again.
    """

    kinds = ("refinement",)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.source.text
        if "\\u00" not in text:
            return
        found = list(_GARBLED_ESCAPE.finditer(text))
        if found:
            lines = [*dict.fromkeys(document.source.line_and_column(match.start())[0] for match in found)]
            where = f", {len(found)} times ({first_lines(lines)})" if len(found) > 1 else ""
            yield self.fault(found[0].span(), f"{found[0][0]} is one garbled character{where}")


class CommentUnclosed(MarkdownRule):
    """Comment that is never closed

    Everything after it is hidden in the rendered page, and not read: sections, fields and reports.

    Remedy: write `-->` where the comment should end.
    """

    severity = "warning"

    def check(self, document: StructuredDocument | FrontMatterDocument) -> Iterator[Problem]:
        text = document.source.text
        opened = text.rfind("<!--")
        if opened < 0 or text.find("-->", opened) >= 0:
            return
        line = document.source.line_and_column(opened)[0]
        for block in document.every_block:
            if block.kind == "html" and block.line == line and not text[block.start : opened].strip():
                message = f"never closed: everything up to line {block.end_line} is a comment"
                yield self.fault((opened, opened + len("<!--")), message)


class ItemEmpty(StructuredRule):
    """List item without text

    Something was forgotten here, such as a criterion or a path.

    Remedy: write the item, or delete the mark.
    """

    kinds = ("stub", "packet")
    severity = "info"
    strict_severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.source.text
        if not (_BARE_MARK_ANY_END if "\r" in text else _BARE_MARK).search(text):
            return
        for one in (block for block in document.every_block if block.kind in LISTS and len(block.children) > 1):
            empty = [item for item in one.children if not item.children]
            if empty and len(empty) < len(one.children):
                yield self.fault((empty[0].start, empty[0].start + 1), "this item is empty")


# A pattern that begins with one character is much faster.
_BARE_MARK = lazy_pattern(r"\n[ \t]*[-*+][ \t]*(?=\n|\Z)")
_BARE_MARK_ANY_END = lazy_pattern(r"[\r\n][ \t]*[-*+][ \t]*(?=[\r\n]|\Z)")
