"""Rules about sections and fields, for every kind with a layout: stubs, refinements, packets."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Set
from functools import cache, lru_cache
from itertools import takewhile
from typing import Final, TypeAlias

from workpacket.documents.document import SectionSpec, heading_key
from workpacket.documents.structured import StructuredDocument, body_of, is_empty
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, out_of_order, repeated
from workpacket.text.blocks import Block, Field, Section, normal_key
from workpacket.text.source import TextRun

# Characters without a width, which editors do not show.
INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_FIELD_LINE = lazy_pattern(r"[\s>*+-]*[*_`]*(?P<key>\w[^:\uff1a\r\n]{0,60}?)[*_`]*[ \t]*[:\uff1a]")

# `<not applicable>` is an answer, but a comment is not. `PASS | FAIL` is a choice that the template leaves open.
PLACEHOLDER = lazy_pattern(
    r"<(?!!--|(?i:not applicable|n/?a|none|unclaimed|unassigned)\b)[^<>\n]*>|(?:PENDING|TBD|TODO|FIXME)\b"
    r"|[A-Z_]{2,}(?:[ \t]*\|[ \t]*[A-Z_]{2,})+|(?:YES[ \t]*/[ \t]*NO|PASS[ \t]*/[ \t]*FAIL)\b"
    r"|(?i:to be (?:determined|defined|decided|written|done)(?:[ ,]+(?:later|soon|yet))?[. ]*(?=\n|\Z))"
    r"|(?i:(?:see|same as|as) above[. ]*(?=\n|\Z))|(?i:lorem ipsum dolor\b[^\n]*)"
    r"|(?:\{\{? ?[a-z][a-z_ ]*\}?\}|\?{2,}|\.{3})[ \t]*(?=\n|\Z)"
)

# A rule about every document that is read with a layout.
StructuredRule = DocumentRule[StructuredDocument]

_HEADING = lazy_pattern(r"[ \t]*+(#{1,6})[ \t]++([^\r\n]*)")
_GLUED = lazy_pattern(r"\\n#{1,6} (?P<title>[A-Za-z][^\\\r\n]{0,100})")
_WITHIN = lazy_pattern(r"##(?<=[^\s#>*+-] ##)")
_ON_A_LINE = lazy_pattern(r"(?m)(?<=[^\s#>*+-]) #{2,4} (?P<title>[A-Z][^\r\n#]{2,100}?)[ \t]*(?=[\r\n]|\Z)")
# The list mark, box or quotation mark before the text.
_DRESS = lazy_pattern(r"[\s>*+_`~-]*(?:\d+[.)]\s+)?(?:\[[ xX]?\](?=\s|\Z)\s*)?[*_`\"']*")
_NOTHING_SAID = lazy_pattern(
    r"(?i:todo|tbd|pending|n/?a|none|none known|nothing|nothing yet|unknown|\?+|x|[\u2013\u2014-]+|\.+|coming soon"
    r"|to (?:follow|come))?|\((?i:nothing yet|none|todo|(?:describe|fill in|insert|explain|to be)\b[^()]*)\)"
    r"|<[^<>]*>|#.*|\[[^\[\]]*\](?:\s*->\s*\[[^\[\]]*\])?"
)


# Marks before a heading that Markdown does not read as one: of a quotation, a list, emphasis, and the heading itself.
_LIKE_A_HEADING = lazy_pattern(r"(?P<marks>[\s>*+_#\\-]*)(?P<title>\w[^\n]*?)[\s*_#]*")
_LONGEST_HEADING = 120
# Optional sections whose loss a reader would not notice.
_SOUGHT = frozenset(
    {"evidence", "evidence_mapping", "validation_reports", "status_handoff", "done_means", "refinement"}
)

# Letters of other scripts that look like Latin ones, and the Latin letters that they look like.
_ALIKE: Final = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
    "\u2010\u2011\u2013\u2212",
    "ABEKMHOPCTXaeopcyxiABEZHIKMNOPTYXo----",
    INVISIBLE,
)


def latin(text: str) -> str:
    """Return the text as it looks: with Latin letters instead of look-alikes from other scripts, and without invisible
    characters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_ALIKE)


def elsewhere(document: StructuredDocument, *names: str) -> str:
    """Return the end of a sentence about a missing field: the line where the field appears but is not read, if there is
    one.
    """
    found = line_of_field(document, *names)
    return f"; line {found[0]} has {found[1]}, where it is ignored" if found is not None else ""


def line_of_field(document: StructuredDocument, *names: str) -> tuple[int, str] | None:
    """Return the first line that looks like one of these fields, and how the line spells the name."""
    if document.source.text.isascii():  # looking for the words takes much less time than looking at each line
        names = tuple(name for name in names if all(document.source.mentions(word) for word in _words_of(name)))
    for number in range(1, document.source.line_count + 1) if names else ():
        start, end = document.source.line_span(number)
        match = _FIELD_LINE.match(document.source.text, start, end)
        if match is not None and normal_key(latin(match["key"])) in names:
            return number, match["key"]
    return None


@cache
def _words_of(name: str) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in name.casefold().split("_"))


def says_something(text: str) -> bool:
    """Whether a value, a list or a block has content: more than marks, template words and comments."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("```", "~~~")))
    return not all(_NOTHING_SAID.fullmatch(_DRESS.sub("", line, count=1).rstrip(" \t*_`\"'.;")) for line in lines)


def content_of(document: StructuredDocument, field: Field) -> str:
    """Return the content of a field: its value and everything that belongs to the field; for a heading, everything
    below it.
    """
    if field.block.kind == "heading":
        below = (section for section in document.outline.walk() if section.heading is field.block)
        return "\n".join(body_of(document.source, section) for section in below)
    ends = [document.source.line_span(block.end_line)[1] for block in field.owned]
    return document.source.text[field.value_span[0] : max([field.value_span[1], *ends])]


HiddenHeading: TypeAlias = tuple[SectionSpec, tuple[int, int], Block | None]


class SectionMissing(StructuredRule):
    """Missing required section

    Reviewers, gates and the packet created from this document need the section.

    Remedy: add the section with the heading from the template.
    """

    # A missing section of a packet is less serious: see PacketSectionMissing.
    except_kinds = ("packet",)

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if document.is_older:
            return
        yield from _missing_sections(self, document)


class PacketSectionMissing(StructuredRule):
    """Section missing from a packet

    Older packets may lack the section. In a new packet, work would start without this information.

    Remedy: add the section with the heading from the template.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        yield from _missing_sections(self, document)


def _missing_sections(rule: DocumentRule[StructuredDocument], document: StructuredDocument) -> Iterator[Problem]:
    # A hidden section is not missing; `HeadingHidden` says where it is.
    present = {placed.spec.key for placed in document.placed}
    present |= {spec.key for spec, *_ in hidden_headings(document)}
    present |= {spec.key for spec, _ in disguised_headings(document)}
    for spec in document.layout.sections:
        if spec.required and spec.key not in present:
            heading = f"{'#' * document.layout.levels[0]} {spec.heading}"
            # The fields of the section may be there without its heading.
            keys = [field.key for field in spec.fields if field.required]
            inside = line_of_field(document, *keys, *(["spec_anchor"] if spec.key == "spec_anchors" else []))
            if inside is not None:
                line = _below_missing_heading(document, inside[0])
                message = f"the heading `{heading}` is missing above {inside[1]}"
                hint = f"write `{heading}` above this line{_fields_to_move(document, spec, line)}"
                yield rule.fault(document.source.line_span(line), message, hint=hint)
            elif not _in_older_sections(document, spec):
                place = _place_for(document, spec)
                yield rule.fault(place, f"the `{heading}` section is missing", hint=f"add `{heading}`")


def _below_missing_heading(document: StructuredDocument, line: int) -> int:
    """Return the line before which the heading of a field's section belongs: above the field's own heading, if it has
    one."""
    before = line - 1
    while before > 0 and not document.source.line(before).strip():
        before -= 1
    heading = _HEADING.match(document.source.line(before)) if before else None
    return before if heading is not None and len(heading[1]) > document.layout.levels[0] else line


def _fields_to_move(document: StructuredDocument, missing: SectionSpec, line: int) -> str:
    """Return which fields of earlier sections would be below the missing heading, as the end of a hint."""
    before = takewhile(lambda spec: spec is not missing, document.layout.sections)
    others = {field.key for spec in before for field in spec.fields}
    moved: list[str] = []
    for number in range(line, document.source.line_count + 1):
        text = document.source.line(number)
        match = _FIELD_LINE.match(text)
        if number > line and _HEADING.match(text):
            break
        key = normal_key(match["key"]) if match else ""
        if match and key in others and missing.field(key) is None:
            moved.append(match["key"])
    return f", and move {', '.join(moved)} to another section" if moved else ""


def _in_older_sections(document: StructuredDocument, missing: SectionSpec) -> bool:
    """Whether an older document has a separate section for each list of the missing section."""
    older = {placed.spec.key for placed in document.placed if placed.spec in document.layout.older}
    lists = {field.key for field in missing.fields} & {spec.key for spec in document.layout.older}
    return bool(lists) and lists - {"rollback_hint"} <= older


def _place_for(document: StructuredDocument, missing: SectionSpec) -> tuple[int, int]:
    """Return the position for a missing section: after the heading that it would follow, or else the start of the
    file."""
    before = []
    for spec in document.layout.sections:
        if spec is missing:
            break
        before.append(spec.key)
    last = [placed for placed in document.placed if placed.spec.key in before]
    return last[-1].section.title_span if last else (0, 0)


class SectionEmpty(StructuredRule):
    """Empty required section

    Because of the heading, the missing text is easy to overlook.

    Remedy: fill in the section, or write `- None.` if there is nothing to say.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            if placed.spec.required and not body_of(document.source, placed.section):
                yield self.fault(placed.section.title_span, f"the {placed.spec.heading} section is empty")


class FenceUnclosed(StructuredRule):
    """Unclosed code fence

    Everything that follows is read as code: the headings, fields and lists after the fence are lost.

    Remedy: close the fence with a line of the same marks.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        # A fence inside a list ends with its item at the latest; any other ends with the file.
        for block in (block for section in document.outline.walk() for block in section.blocks):
            if block.kind == "fence" and not block.closed:
                span = (block.start, block.start + len(block.marker))
                hidden = [(spec, span) for spec, span, inside in hidden_headings(document) if inside is block]
                lost = [f"{spec.heading} (line {document.source.line_and_column(at)[0]})" for spec, (at, _) in hidden]
                also = f", also {', '.join(lost)}" if lost else ""
                yield self.fault(span, f"never closed: everything up to line {block.end_line} is read as code{also}")


@lru_cache(maxsize=2)
def hidden_headings(document: StructuredDocument) -> tuple[HiddenHeading, ...]:
    """Return the lines that name a required section that the document lacks: the section, the place, and the code or
    comment that hides it, if that is the reason.

    If the section also exists outside, the hidden heading is a quotation.
    """
    return tuple(_hidden_headings(document))


def _hidden_headings(document: StructuredDocument) -> Iterator[HiddenHeading]:
    present = {placed.spec.key for placed in document.placed} | {spec.key for spec, _ in disguised_headings(document)}
    absent = {spec.key for spec in document.layout.sections if spec.required} - present
    if not absent:
        return
    for block in (each for each in document.every_block if each.kind in {"fence", "code", "html"}):
        for start, end in _lines_of(document, block):
            match = _HEADING.match(document.source.text[start:end])
            known = match is not None and len(match[1]) in document.layout.levels
            spec = document.layout.section(match[2].rstrip(" \t#")) if match and known else None
            if match and spec is not None and spec.key in absent:
                absent.discard(spec.key)
                yield spec, (start + match.start(1), start + match.end(2)), block
    sought = absent and _may_name_one(document, absent)
    for number in range(1, document.source.line_count + 1) if sought else ():
        start, end = document.source.line_span(number)
        spec = _named_by(document, document.source.text[start:end])
        if spec is not None and spec.key in absent:
            absent.discard(spec.key)
            yield spec, (start, end), None


def _may_name_one(document: StructuredDocument, absent: Set[str]) -> bool:
    """Whether the document contains all words of the name of a missing section. Looking at each line takes much
    longer."""
    if not document.source.text.isascii():
        return True  # a look-alike of a letter may be in a name
    specs = (spec for spec in document.layout.sections if spec.key in absent)
    names = (name for spec in specs for name in (heading_key(spec.heading), *spec.aliases))
    return any(all(document.source.mentions(word.encode()) for word in name.split("_")) for name in names)


def _bare_headings(document: StructuredDocument) -> Iterator[tuple[SectionSpec, tuple[int, int]]]:
    """Yield the lines that consist of the name of an optional section in capitals, between paragraphs."""
    present = {placed.spec.key for placed in document.placed}
    optional = {spec.heading: spec for spec in document.layout.sections if not spec.required}
    optional = {name: spec for name, spec in optional.items() if spec.key in _SOUGHT and spec.key not in present}
    text = document.source.text
    for name, spec in optional.items():
        # Without a blank behind its marks, `##EVIDENCE` is a paragraph.
        at = max(text.find(f"\n{name}"), text.find(f"#{name}"))
        start, end = text.rfind("\n", 0, at + 1) + 1, at + 1 + len(name)
        alone = at >= 0 and not text[start : at + 1].strip("#") and not text[end : end + 1].strip(" \t\r\n")
        if alone and not _is_code(document, at + 1):
            yield spec, (start, end)


def _named_by(document: StructuredDocument, line: str) -> SectionSpec | None:
    """Return the section named by a line that contains nothing else: in bold, in a quotation, after an escaped mark, or
    without the space after its marks.
    """
    if len(line) > _LONGEST_HEADING:
        return None
    match = _LIKE_A_HEADING.fullmatch(latin(line))
    spec = document.layout.section(match["title"]) if match and ":" not in match["title"] else None
    if match is None or spec is None:
        return None
    marked = "#" in match["marks"] or "**" in match["marks"] or "__" in match["marks"]
    return spec if marked or match["title"] in {spec.heading, spec.heading.partition("(")[0].strip()} else None


def disguised_headings(document: StructuredDocument) -> Iterator[tuple[SectionSpec, Section]]:
    """Yield the headings that only look like a known section's heading, because they contain a letter of another
    script."""
    for section in document.unknown:
        spec = document.layout.section(latin(section.title)) if not section.title.isascii() else None
        if spec is not None:
            yield spec, section


def _lines_of(document: StructuredDocument, block: Block) -> Iterator[tuple[int, int]]:
    if block.kind == "html":
        yield from (document.source.line_span(line) for line in range(block.line, block.end_line + 1))
    else:
        yield from block.spans


class HeadingHidden(StructuredRule):
    """Heading that is not read as one

    The heading is inside a code fence or a comment, or its marks are wrong. The section below the heading is not read,
    so it appears to be missing.

    Remedy: close the fence or the comment before the heading, or write `## ` before it.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for spec, span, block in hidden_headings(document):
            if block is None:
                message = f"this line names the {spec.heading} section, but Markdown does not read it as a heading"
                yield self.fault(span, message, hint=f"write `{'#' * document.layout.levels[0]} {spec.heading}`")
                continue
            if block.kind == "fence" and not block.closed:
                continue  # `FenceUnclosed` reports the cause once
            what = "comment or HTML" if block.kind == "html" else "code block"
            message = f"the {spec.heading} section is inside the {what} that begins on line {block.line}"
            yield self.fault(span, message, hint=f"close it before this line; it now ends on line {block.end_line}")
        for spec, span in _bare_headings(document):
            message = f"this line names the {spec.heading} section, but Markdown does not read it as a heading"
            yield self.fault(span, message, hint=f"write `{'#' * document.layout.levels[0]} {spec.heading}`")
        yield from self._hidden_fields(document)
        if " ##" not in document.source.text:
            return
        known = {spec.key for spec, *_ in hidden_headings(document)}
        for item in (block for block in document.every_block if block.kind == "item"):
            first = item.children[0] if item.children else item
            if first.kind == "heading" and first.marker.startswith("##") and first.spans:
                title = first.text(document.source.text)
                named = document.layout.section(title)
                if named is None or named.key not in known:
                    span = (first.start, first.spans[-1][1])
                    yield self.fault(span, f"the heading {title[:60]!r} is inside a list item")

    def _hidden_fields(self, document: StructuredDocument) -> Iterator[Problem]:
        """Report headings of fields, such as `### DONE_MEANS`, that are swallowed by a code block."""
        if "###" not in document.source.text or document.source.text.count("```") < 2:
            return
        fences = [block for block in document.every_block if block.kind == "fence" and block.spans]
        fences = [block for block in fences if "###" in document.source.text[block.start : block.spans[-1][1]]]
        if not fences:
            return
        given = {field.name for placed in document.placed for field in placed.fields}
        given |= {placed.spec.key for placed in document.placed}
        wanted = {spec.key: spec for placed in document.placed for spec in placed.spec.fields if spec.key not in given}
        for block in fences:
            for start, end in block.spans:
                match = _HEADING.match(document.source.text[start:end])
                spec = wanted.pop(normal_key(match[2].rstrip(" \t#")), None) if match else None
                if match and spec is not None:
                    message = f"{spec.label} is inside the code block that begins on line {block.line}"
                    hint = f"close the code block before this line; it now ends on line {block.end_line}"
                    yield self.fault((start + match.start(1), start + match.end(2)), message, hint=hint)


class HeadingGlued(StructuredRule):
    """Heading joined to the line before it

    The newline before the heading was lost, or a program wrote the two characters `\\n` instead, so the section
    is not read.

    Remedy: begin a new line before the heading, and replace each `\\n` with a newline.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        present = {placed.spec.key for placed in document.placed}
        for match in _GLUED.finditer(document.source.text):
            spec = document.layout.section(match["title"])
            # In code, only a section that is missing elsewhere was meant: anything else belongs to a program.
            if (spec is None or spec.key in present) and _is_code(document, match.start()):
                continue
            yield self.fault(
                (match.start(), match.start("title") + 1),
                "a heading begins in the middle of this line, after a literal \\n",
            )
        for match in _ON_A_LINE.finditer(document.source.text) if _WITHIN.search(document.source.text) else ():
            spec = document.layout.section(match["title"])
            if spec is not None and spec.key not in present and not _is_code(document, match.start()):
                yield self.fault(match.span("title"), f"the heading {spec.heading} is in the middle of this line")


def _is_code(document: StructuredDocument, position: int) -> bool:
    """Whether a position is in a code block or between backticks on its line."""
    line = document.source.line_and_column(position)[0]
    start, _ = document.source.line_span(line)
    code = (block for block in document.every_block if block.kind in {"fence", "code"})
    fenced = any(block.line <= line <= block.end_line for block in code)
    return fenced or document.source.text.count("`", start, position) % 2 == 1


_CODE = lazy_pattern(r"\[[A-Z]+-[0-9A-Z]+\]")


class SectionDuplicate(StructuredRule):
    """Duplicate section

    Tools may read only one of the sections, and it is unclear which one is right.

    Remedy: merge the sections.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        single = (placed for placed in document.placed if not placed.spec.repeatable)
        # A code in brackets names the clause of a protocol for which a section is there: `VALIDATION [CX-623]`.
        for placed, earlier in repeated(single, lambda placed: (placed.spec.key, *_CODE.findall(placed.section.title))):
            message = f"the {placed.spec.heading} section is already on line {earlier.section.line}"
            yield self.fault(placed.section.title_span, message, hint="merge the sections")


class SectionOrder(StructuredRule):
    """Sections in the wrong order

    People expect sections in the same order in every document.

    Remedy: move the section.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if document.is_older:
            return
        order = {spec.key: index for index, spec in enumerate(document.layout.sections)}
        known = (placed for placed in document.placed if placed.spec.key in order)
        for placed, furthest in out_of_order(known, lambda placed: order[placed.spec.key]):
            message = f"{placed.spec.heading} comes after {furthest.spec.heading}, but precedes it in the template"
            yield self.fault(placed.section.title_span, message)


class SectionUnknown(StructuredRule):
    """Unknown section

    The section is kept, but no rule checks it; the heading may be misspelled.

    Remedy: correct the heading if it is misspelled; otherwise leave it unchanged.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        disguised = [section for _, section in disguised_headings(document)]
        for section in document.unknown:
            if section in disguised:
                continue  # `LookAlikeCharacter` reports them
            # A heading that groups known sections is ignored by the reader.
            known = any(document.layout.section(inner.title) is not None for inner in section.subsections)
            if not known:
                yield self.fault(section.title_span, f"unknown section `{section.title}`")


class OldHeading(StructuredRule):
    """Outdated heading

    The section is still read, but scripts that look for the current heading do not find it.

    Remedy: `workpacket fmt` writes the current heading.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if document.is_older:
            return
        for placed in document.placed:
            if placed.spec in document.layout.older:
                continue
            section = placed.section
            if section.title == placed.spec.heading:
                continue
            start, end = section.title_span
            name, colon, value = section.title.partition("(")[0].partition("[")[0].rstrip().partition(":")
            name = f"{name}:" if colon and not value and not section.subsections else name.rstrip()
            wanted = placed.spec.heading.partition("(")[0].rstrip()
            if name != wanted:
                run = TextRun.quoting(document.source.text, start, name)
                edits = [run.replaced_by(wanted)] if run is not None else []
                yield self.fault((start, end), f"the heading is now written `{wanted}`", edits=edits)


class HeadingLevel(StructuredRule):
    """Heading at the wrong level

    The section is still read, but tools that look for a heading at the right level do not find it.

    Remedy: `workpacket fmt` writes the level used in the template.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        wanted = "#" * document.layout.levels[0]
        for section in document.misplaced if not document.is_older else ():
            heading = section.heading
            if heading is None:
                continue
            marks = (heading.start, heading.start + len(heading.marker))
            # The marks of an underlined heading are on the line below it; changing them is left to the author.
            can_move = heading.marker.startswith("#") and not _would_swallow(document, section)
            edits = [TextRun(document.source.text, *marks).replaced_by(wanted)] if can_move else []
            message = f"{section.title} has a heading of level {section.level} instead of {len(wanted)}"
            yield self.fault(section.title_span, message, hint=f"write `{wanted} {section.title}`", edits=edits)


def _would_swallow(document: StructuredDocument, section: Section) -> bool:
    """Whether raising this section alone would make it absorb other sections of its level."""
    level = section.level
    others = (other for other in document.outline.walk() if other.level == level and other not in document.misplaced)
    return level > document.layout.levels[0] and next(others, None) is not None


class FieldDuplicate(StructuredRule):
    """Duplicate field

    Which value is used depends on the parser.

    Remedy: delete one of the lines.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            if placed.spec.shape != "fields":
                continue
            specified = [(placed.spec.field(field.name), field) for field in placed.fields]
            given = [(spec.key, field) for spec, field in specified if spec and (field.value or not spec.many)]
            for (_, field), (_, earlier) in repeated(given, lambda pair: pair[0]):
                line = document.source.line_and_column(earlier.key_span[0])[0]
                message = f"the field {field.key} is already on line {line}"
                yield self.fault(field.key_span, message, hint="delete one of the lines")


class FieldEmpty(StructuredRule):
    """Field without a value

    Tools that read line by line take the next line as the value, and people assume that the value was forgotten.

    Remedy: fill in the value, or delete the line if the field does not apply.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for placed in document.placed:
            for field in placed.fields if placed.spec.shape == "fields" else ():
                spec = placed.spec.field(field.name)
                # The reasons that a refinement's verdicts do not require may be empty.
                asked = spec is not None and (
                    spec.required or placed.spec.key == "metadata" or document.kind != "refinement"
                )
                if asked and _says_nothing(document, field):
                    yield self.fault(field.key_span, f"the field {field.key} has no value", hint="fill it in")


def _says_nothing(document: StructuredDocument, field: Field) -> bool:
    if field.block.kind != "heading":
        return is_empty(field)
    below = (section for section in document.outline.walk() if section.heading is field.block)
    return not field.value and not any(body_of(document.source, section) for section in below)
