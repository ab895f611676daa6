"""Rules about what a document says about itself: its id, base and signature, and how its metadata is written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.document import FieldSpec, Text
from workpacket.documents.structured import (
    PlacedSection,
    StructuredDocument,
    WorkDocument,
    items_of_section,
    walk_items,
)
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.event_types import LIGHT_FORM
from workpacket.model.ids import WorkPacketId, find_ids, is_packet_id, leading_id, leading_word
from workpacket.problem import Problem
from workpacket.rules.keys_and_dates import FIRST_YEAR, LAST_YEAR
from workpacket.rules.rule import DocumentRule, repeated
from workpacket.rules.structured import (
    INVISIBLE,
    PLACEHOLDER,
    StructuredRule,
    content_of,
    disguised_headings,
    latin,
    says_something,
)
from workpacket.text.blocks import LISTS, Field, normal_key, read_items, walk
from workpacket.text.formats import legacy_signature
from workpacket.text.source import TextRun

_BEHIND_COMMIT = lazy_pattern(r"\A[0-9a-f]{40,64}(?P<rest>[ \t]+[(<].*)\Z")
# Text in parentheses or angle brackets, and those parts of it that templates use to explain a field.
_ENCLOSED = lazy_pattern(r"[ \t]*(?:\((?:[^()]|\([^()]*\))*\)|<[^<>]*>)\Z")
_OF_A_TEMPLATE = lazy_pattern(
    r"(?i)\b(?:stable|revision|without|merge-base|optional|required|template|placeholder|e\.g\.|fill in)|-vN\b"
)
_WORD = lazy_pattern(r"\w+")
# The values between which a template lets people choose, left behind the chosen one.
_CHOICES = lazy_pattern(r"\([A-Z][A-Z_]+(?:[ \t]*\|[ \t]*[A-Z][A-Z_]+)+\)")
_LISTED = lazy_pattern(r"(?P<value>[A-Z][A-Z_]+|<[a-z ]{1,40}>)[ \t]+\([A-Z][A-Z_]+(?:[ \t]*\|[ \t]*[A-Z][A-Z_]+)+\)\Z")
# Everything that templates write there; any other word was written by a person.
_WORDS_OF_TEMPLATES = {
    "a", "an", "at", "base", "commit", "creation", "equals", "example", "fill", "for", "from", "git", "head", "id",
    "if", "in", "includes", "its", "main", "merge", "non", "of", "optional", "or", "override", "packet", "packets",
    "placeholder", "required", "revision", "sha", "stable", "template", "the", "this", "time", "to", "vn", "with",
    "without", "wp_id",
}  # fmt: skip
_TEMPLATE_ROW = lazy_pattern(r"`?\[[^\[\]]{1,60}\]`?\s*(?:->|\u2192)\s*`?\[[^\[\]]{1,60}\]`?")
# `[Requirement]`
_TEMPLATE_WORD = lazy_pattern(r"\[[A-Z][a-z]+(?:[ /][A-Za-z]+){0,6}\]")
# `# ...task-specific commands...`
_ELLIPSIS_LINE = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t]*(?:#|//)?[ \t]*(?P<text>\.\.\.[a-z][^.\r\n]{3,60}\.\.\.)[ \t]*(?=[\r\n]|\Z)"
)
# An item of the founding template that every author was meant to replace.
_TEMPLATE_ITEMS = frozenset({"spec anchor keywords"})
_IN_TITLE = lazy_pattern(r"<[A-Z_]*WP_ID>")


# A rule about documents that describe one packet of work: stubs and packets.
WorkRule = DocumentRule[WorkDocument]


def id_fields(document: StructuredDocument) -> Iterator[tuple[str, Text]]:
    """Yield the fields of a document's metadata that contain only an id."""
    for key in ("wp_id", "task_id", "base_wp_id"):
        text = document.text_at("metadata", key)
        if text is not None and text.value and not PLACEHOLDER.match(text.value):
            yield key.upper(), text


def is_hollow(document: StructuredDocument, field: Field) -> bool:
    """Whether a field has a meaningless value. Other rules report empty fields and placeholders."""
    said = content_of(document, field)
    if not said.strip() or says_something(said) or PLACEHOLDER.match(field.value):
        return False
    return not any(PLACEHOLDER.fullmatch(item.text) for item in walk_items(field.children))


class LeftOverRule(StructuredRule):
    """A rule about what follows a value in its field."""

    def _left_over(self, document: StructuredDocument, name: str, text: Text, end: int) -> Problem:
        rest = text.value[end:].strip()
        run = document.run(text)
        # Words from a template can be deleted safely; other words may have been written by a person.
        of_template = _OF_A_TEMPLATE.search(rest) is not None and _WORDS_OF_TEMPLATES.issuperset(
            _WORD.findall(rest.lower().replace("e.g.", ""))
        )
        of_template = of_template or _CHOICES.fullmatch(rest) is not None
        what = f"the template's hint {rest!r}" if of_template else repr(rest)
        return self.fault(
            (text.start + end, text.end) if run is not None else text.span,
            f"the value of {name} is followed by {what}",
            hint="" if run is not None else "it spans several lines: delete it by hand",
            edits=[run.part(end).deleted()] if run is not None else [],
            fix_title=f"delete {rest!r}",
            safe=of_template,
        )


class HintTextLeft(LeftOverRule):
    """Template hint left after a value

    The hint is read as part of the value.

    Remedy: `workpacket check --fix` removes the hint; `--unsafe-fixes` also removes other words.
    """

    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for name, text in id_fields(document):
            written, end = leading_word(text.value)
            if is_hint(text.value[end:]) and WorkPacketId.try_parse(written) is not None:
                yield self._left_over(document, name, text, end)
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None else ():
            listed = _LISTED.match(field.value)
            if listed is not None:  # `HIGH (LOW | MEDIUM | HIGH)`
                text = Text(field.value, *field.value_span)
                yield self._left_over(document, field.key, text, listed.end("value"))


class RemarkAfterCommit(LeftOverRule):
    """Remark after the commit in MERGE_BASE_SHA

    A script that compares the whole value with a commit finds that they differ.

    Remedy: `workpacket check --fix` removes the template's words; `--unsafe-fixes` also removes other words.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        commit = document.text_at("metadata", "merge_base_sha")
        behind = _BEHIND_COMMIT.match(commit.value) if commit is not None else None
        if commit is not None and behind is not None and is_hint(behind["rest"]):
            yield self._left_over(document, "MERGE_BASE_SHA", commit, behind.start("rest"))


def is_hint(rest: str) -> bool:
    """Whether the text after a value only explains it, in parentheses or angle brackets and without another id."""
    return _ENCLOSED.match(rest) is not None and not find_ids(rest)


class IdMalformed(StructuredRule):
    """Id that is not a work packet id

    Neither the board, the registry nor another packet can refer to the document.

    Remedy: write the id as `WP-<phase>-<slug>` with an optional `-v<N>`.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for name, text in id_fields(document):
            value = leading_id(text.value)
            if WorkPacketId.try_parse(value) is None:
                odd = next((character for character in value if not character.isascii()), "")
                look_alike = f" (U+{ord(odd):04X} is not ASCII)" if odd else ""
                message = f"{name} is {text.value!r}, which is not a work packet id{look_alike}"
                yield self.fault(text.span, message, hint="write the id as WP-<phase>-<slug>, with an optional -v<N>")
                continue
            rest = text.value[leading_word(text.value)[1] :]
            if rest.strip() and not is_hint(rest):
                message = f"{name} contains more than the id {value}: {rest.strip()!r}"
                yield self.fault(text.span, message, hint="keep only the id in the field")


class IdFileMismatch(StructuredRule):
    """Id and file name differ

    Tools find a packet by its file name, and people find it by the id inside the file, but the two differ.

    Remedy: rename the file or correct the id.
    """

    requires = (IdMalformed,)

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for name, text in id_fields(document):
            value = leading_id(text.value)
            if name != "BASE_WP_ID" and value != document.stem:
                message = f"{name} is {value}, but the file name is {document.stem}"
                yield self.fault(text.span, message, hint="rename the file or correct the id")


class BaseIdMismatch(WorkRule):
    """Base id that does not match the packet's id

    The registry finds the active packet by its base id, so this packet would be listed under a different base.

    Remedy: `workpacket check --fix` removes the revision; if the bases differ, correct the wrong one.
    """

    fix = "safe"
    requires = (IdMalformed,)

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        base = document.base_wp_id
        own = WorkPacketId.try_parse(document.own_id)
        if base is None or own is None or not base.value or WorkPacketId.try_parse(leading_id(base.value)) is None:
            return
        written = leading_id(base.value)
        if written != str(own.base):
            run = document.run(base)
            start = base.value.index(written)
            edits = [run.part(start, start + len(written)).replaced_by(str(own.base))] if run is not None else []
            message = f"BASE_WP_ID is {written}, but the base of {own} is {own.base}"
            # If the bases differ, it is unknown which one is right.
            only_revision = WorkPacketId.parse(written).base == own.base
            yield self.fault(base.span, message, edits=edits, fix_title=f"write {own.base}", safe=only_revision)


class TitleMismatch(WorkRule):
    """Title that does not name the packet

    People read the title, and tools read the metadata; here the two name different packets, or the title is missing.

    Remedy: correct the title.
    """

    requires = (IdMalformed,)

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        own_id = document.own_id
        titled = next(document.sections_at((1,)), None) is not None
        if not titled and document.placed_section("metadata") is not None and not document.is_older:
            yield self.fault((0, 0), f"no title names {own_id}", hint=f"begin with `# Task Packet: {own_id}`")
        if document.form == LIGHT_FORM:
            return  # its title is that of the task, which may be about another packet
        for section in document.sections_at((1,)):
            named = [str(name) for name, _, _ in find_ids(section.title)]
            if named and own_id not in named:
                yield self.fault(section.title_span, f"the title names {named[0]}, but the metadata names {own_id}")


_WAITS_FOR = lazy_pattern(r"(?i)(?:depends? on|blocked by|requires|waits for)[\s:*_`]*")
# An id as people misspell it: in small letters, or with underscores or blanks.
_LIKE_AN_ID = lazy_pattern(r"(?i)(?<![\w/.-])wp[-_ ][0-9]+[-_ ][a-z][\w.-]*")


class DependencyOnItself(WorkRule):
    """Packet that depends on itself

    It can never start.

    Remedy: write the id of the intended packet, or delete the dependency.
    """

    requires = (IdMalformed,)

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        for text in document.dependency_texts():
            for match in _WAITS_FOR.finditer(text.value):
                named = find_ids(text.value[match.end() :])
                if named and named[0][1] == 0 and str(named[0][0]) == document.own_id:
                    span = (text.start + match.end(), text.start + match.end() + named[0][2])
                    yield self.fault(span, f"{document.own_id} depends on itself")
            if text.value.strip("`*_ .;") == document.own_id:
                yield self.fault(text.span, f"{document.own_id} depends on itself")


class DependencyMalformed(WorkRule):
    """Dependency that is not a work packet id

    The dependency is ignored, so work may start too early.

    Remedy: write the id as `WP-<phase>-<slug>-v<N>`.
    """

    severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        for text in document.dependency_texts():
            spans = [(start, end) for _, start, end in find_ids(text.value)]
            for match in _LIKE_AN_ID.finditer(text.value):
                if not any(start <= match.start() < end for start, end in spans):
                    span = (text.start + match.start(), text.start + match.end())
                    yield self.fault(span, f"{match[0]!r} is not a work packet id, so it is not a dependency")


class ItemRepeated(WorkRule):
    """Item listed twice

    One of the two was probably meant to be something else, such as a missing criterion or another path.

    Remedy: correct or delete one of them.
    """

    severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        for placed in document.placed:
            blocks = [block for section in placed.section.walk() for block in section.blocks]
            whole = placed.spec.key in _WITHOUT_REPETITION
            lists = [block for block in walk(blocks) if block.kind in LISTS] if whole else []
            lists += [block for field in placed.fields if field.name in _WITHOUT_REPETITION for block in field.owned]
            for one in {block.start: block for block in lists}.values():
                # Below captions, equal items belong to different captions; a caption may repeat, too.
                items = [item for item in read_items(document.source, [one]) if len(item.block.children) == 1]
                for item, earlier in repeated(items, lambda item: _same_item(item.text)):
                    line = document.source.line_and_column(earlier.span[0])[0]
                    if says_something(item.text):
                        yield self.fault(item.span, f"this item is already on line {line}")


def _same_item(text: str) -> str:
    """Return what two items have in common if they are the same. Two paths may differ only in case: `justfile`."""
    bare = text.strip("`*_ .;")
    return " ".join(bare.casefold().split()) if " " in bare else bare


_WITHOUT_REPETITION = frozenset({"done_means", "acceptance_criteria", "in_scope", "in_scope_paths", "out_of_scope"})


class ItemTruncated(StructuredRule):
    """List item with a missing beginning

    The item begins in the middle of a sentence, so its subject is unknown.

    Remedy: restore the text from git or from the document it was copied from.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        if not _BEHIND_BULLET.search(document.source.text):
            return
        for item in (block for block in document.every_block if block.kind == "item" and block.children):
            first = item.children[0]
            spans = first.spans if first.kind == "paragraph" else ()
            if spans and _MIDDLE.match(document.source.text, *spans[0]):
                message = f"this item begins with {document.source.text[spans[0][0]]!r}; the text before it is lost"
                yield self.fault(spans[0], message, hint="write it again, in words if it was a symbol")


_MIDDLE = lazy_pattern(r"[/,;)\]] +\w")
# Begins with the mark, which is rarer than a bullet, so that the whole text is searched quickly.
_BEHIND_BULLET = lazy_pattern(r"[/,;)\]](?<=[-*+] .) ")


class SignatureMalformed(StructuredRule):
    """Invalid signature token

    A token shows who approved and when. This one does not, so it proves nothing.

    Remedy: have the packet approved: `workpacket approve <WP_ID>`.
    """

    except_kinds = ("stub",)  # stubs are not signed

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.text_at("metadata", "user_signature")
        if text is None or not text.value or PLACEHOLDER.match(text.value):
            return
        problem = legacy_signature(text.value)
        if not problem and not FIRST_YEAR <= int(text.value[-8:-4]) <= LAST_YEAR:
            problem = f"is dated in the year {text.value[-8:-4]}"
        if problem:
            message = f"USER_SIGNATURE {text.value!r} {problem}"
            yield self.fault(text.span, message, hint="a token is a lower-case name followed by DDMMYYYYHHMM")


class PlaceholderLeft(StructuredRule):
    """Template placeholder left in the document

    The document looks complete, but the field has not been filled in.

    Remedy: fill in the value.
    """

    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        for section in document.sections_at((1,)):
            match = _IN_TITLE.search(section.title)
            if match:
                start = section.title_span[0]
                span = (start + match.start(), start + match.end())
                yield self.fault(span, f"the title still contains the placeholder {match.group()}")
        for field in document.preamble_fields if document.kind == "packet" else ():
            if field.value.startswith("<") and PLACEHOLDER.fullmatch(field.value):
                yield self.fault(field.value_span, f"{field.key} still contains the placeholder {field.value}")
        unfilled = "..." in document.source.text
        for placed in document.placed:
            for field in placed.fields:
                match = PLACEHOLDER.match(field.value)
                if match and document.has_own_rules_for(field.name):
                    continue
                known = placed.spec.field(field.name) is not None
                if match and (known or (field.value.startswith("<") and match.group() == field.value)):
                    span = (field.value_span[0] + match.start(), field.value_span[0] + match.end())
                    yield self.fault(span, f"{field.key} still contains the placeholder {match.group()}")
                if unfilled:
                    yield from self._in_fences(document, field)
            yield from self._in_lists(document, placed)

    def _in_lists(self, document: StructuredDocument, placed: PlacedSection) -> Iterator[Problem]:
        # In a list, angle brackets may be part of the text; but an item with nothing else was not filled in.
        for item in walk_items(items_of_section(document.source, placed.section)):
            kept = PLACEHOLDER.fullmatch(item.text) or item.text in _TEMPLATE_ITEMS
            if kept or (item.text.startswith("[") and _TEMPLATE_WORD.fullmatch(item.text)):
                yield self.fault(item.span, f"{placed.spec.heading} still contains the placeholder {item.text}")
            elif item.text.startswith(("[", "`[")) and _TEMPLATE_ROW.fullmatch(item.text):
                yield self.fault(item.span, f"the template's row {item.text} was not filled in")

    def _in_fences(self, document: StructuredDocument, field: Field) -> Iterator[Problem]:
        for fence in field.fences:
            for match in _ELLIPSIS_LINE.finditer(
                document.source.text, fence.start, document.source.line_span(fence.end_line)[1]
            ):
                yield self.fault(match.span("text"), f"{field.key} still contains the placeholder {match['text']}")


_TOKEN = lazy_pattern(rf"[\w\u2010\u2011{INVISIBLE}-]+|WP\u2013[\w\u2013-]+")
_LONGEST = 200  # the longest id that is examined
# The characters, besides letters and digits, that make a key or an id look right.
_ODD = frozenset(f"\u00a0\u2010\u2011\uff1a{INVISIBLE}")
_KEY = lazy_pattern(
    rf"^[ \t]*+(?:[-*+][ \t]++)?[*`]*+(\w[\w \t{INVISIBLE}]{{1,59}}?)[*`]*+(:\u00a0|[:\uff1a])", re.MULTILINE
)


class LookAlikeCharacter(StructuredRule):
    """Look-alike or invisible character in an id, key or heading

    Programs read a different id, key or heading, and people cannot see why: the section, the field or the dependency is
    ignored.

    Remedy: type the id, the key or the heading again.
    """

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        text = document.source.text
        if text.isascii():
            return
        for _, section in disguised_headings(document):
            yield self._odd(section.title_span, section.title)
        unusual = document.source.unusual
        if not any(character in _ODD or character.isalnum() for character in unusual) and "WP\u2013" not in text:
            return
        known = {field.key for spec in document.layout.sections for field in spec.fields}
        for match in _KEY.finditer(text):
            odd = match[2] != ":" or not match[1].isascii()
            if odd and normal_key(latin(match[1])) in known:
                yield self._odd((match.start(1), match.end(2)), match[1] + match[2])
        tokens = (one for one in _TOKEN.finditer(text) if not one[0].isascii() and len(one[0]) <= _LONGEST)
        for match in tokens:
            if (
                is_packet_id(latin(match[0]))
                and not is_packet_id(match[0])
                and not self._names_the_document(document, match.start())
            ):
                yield self._odd(match.span(), match[0])

    def _odd(self, span: tuple[int, int], written: str) -> Problem:
        code, place = next((ord(each), at) for at, each in enumerate(written, 1) if not each.isascii())
        return self.fault(
            span, f"character {place} of {written!r} is U+{code:04X}, a look-alike of the expected character"
        )

    def _names_the_document(self, document: StructuredDocument, start: int) -> bool:
        """Whether this is an id of the document itself, which `IdMalformed` reports."""
        return any(text.start <= start < text.end for _, text in id_fields(document))


_ASIDES = lazy_pattern(r"\([^()\n]*\)|\[[^\[\]\n]*\]")
_BOX = lazy_pattern(r"\[[ xX]\]|~")


class MetadataFieldUnknown(StructuredRule):
    """Unknown metadata field

    The field is ignored; its name may be misspelled.

    Remedy: correct the name if it is misspelled; otherwise leave it unchanged.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None else ():
            if placed is not None and placed.spec.field(field.name) is None:
                yield self.fault(field.key_span, f"unknown field {field.key}")


class FieldSyntax(StructuredRule):
    """Field not written as `- KEY: value`

    The field is still read, but scripts that look for the plain form do not find it.

    Remedy: `workpacket fmt` writes the plain form.
    """

    severity = "info"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        for field in placed.fields if placed is not None and not document.is_older else ():
            spec = placed.spec.field(field.name) if placed is not None else None
            start, end = syntax_span(document, field)
            shown = document.source.text[start:end]
            written = _written(spec, field) if spec is not None else shown
            if shown not in {written, ""} and not shown.startswith("#"):
                # A tick, or struck-out text, would be lost.
                run = TextRun.on_line(document.source.text, start, end) if not _BOX.search(shown) else None
                edits = [run.replaced_by(written)] if run is not None else []
                yield self.fault((start, end), f"the field is written `{shown}` instead of `{written}`", edits=edits)


def _written(spec: FieldSpec, field: Field) -> str:
    """Return the start of the field in a canonical document; a remark in parentheses after its name is kept."""
    asides = "".join(f" {aside}" for aside in _ASIDES.findall(field.key))
    return spec.written.replace(spec.label, spec.label + asides, 1) if asides else spec.written


def syntax_span(document: StructuredDocument, field: Field) -> tuple[int, int]:
    """Return the span of a field before its value: bullet, key, bold marks and colon."""
    text = document.source.text
    line = document.source.line_and_column(field.key_span[0])[0]
    start, end = document.source.line_span(line)
    if start <= field.block.start < field.key_span[0]:
        start = field.block.start
    stop = field.value_span[0] if field.value else end
    return start, start + len(text[start:stop].rstrip())
