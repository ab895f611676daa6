"""Rules about the anchors of stubs, packets and refinements, as far as they can be judged from one document alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

from workpacket.documents.document import Text, as_text
from workpacket.documents.packet import Packet
from workpacket.documents.spec_pointer import candidates
from workpacket.documents.structured import StructuredDocument, WorkDocument
from workpacket.documents.summary import Mention, WorkSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.identity import WorkRule
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule
from workpacket.rules.structured import PLACEHOLDER, StructuredRule, says_something
from workpacket.rules.text import places_of
from workpacket.text.source import PATH_LENGTH, Source

_LONG_PATH = 400
_ESCAPE = lazy_pattern(r"\\u([0-9a-fA-F]{4})")
HEADING = lazy_pattern(r"(#{1,6})[ \t]+(\S.*)")
_CHAPTER = lazy_pattern(r"(?:\u00a7 ?)?(\d+(?:\.\d+)*)\.?(?=\s|\Z)")
# The name of a file with a version: `Spec_v1.2.md`.
_VERSIONED = lazy_pattern(r"`?(?:[^\s`]*/)?([\w-]*?_?)(v\d+(?:\.\d+)*)(?=\.md\b|[\s`]|\Z)", re.IGNORECASE)
# The fields that name the version of the specification.
_PINS = (
    *(("metadata", "spec_target_resolved"), ("authority", "spec_baseline"), ("authority", "spec_target")),
    ("authority", "spec_current"),
)
_VERSION_TO_OPEN = lazy_pattern(r"(?<![\w/-])(?P<stem>[A-Za-z][\w-]{0,60}?_)(?P<version>v\d+(?:\.\d+)+)\.md\b")
_POINTED_VERSION = lazy_pattern(r"SPEC_CURRENT\.md`? \((?:currently )?(?P<version>v\d+(?:\.\d+)+)\)")
# An anchor that names only the version: `7.6.3 (v02.63)`.
_BARE_VERSION = lazy_pattern(r"\((v\d+(?:\.\d+)+)\)")


class AnchorOtherVersion(StructuredRule):
    """Anchor in a different version of the specification

    The document pins one version, but the anchor refers to a different one.

    Remedy: look up the passage in the pinned version.
    """

    kinds = ("refinement", "packet")
    severity = "warning"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        pins = [text.value[-_LONG_PATH:] for keys in _PINS if (text := document.text_at(*keys)) is not None]
        pinned = [(stem.casefold(), version.casefold()) for pin in pins for stem, version in _VERSIONED.findall(pin)]
        anchors = [as_text(anchor.get("spec_anchor")) for anchor in document.items_at("spec_anchors")]
        for text in (*anchors, *document.texts_at("authority", "spec_anchor")):
            named = _VERSIONED.match(text.value[:_LONG_PATH]) if text is not None else None
            versions = [version for stem, version in pinned if named is not None and stem == named[1].casefold()]
            if text is not None and named is not None and versions and named[2].casefold() not in versions:
                message = f"the anchor is in {named[1]}{named[2]}, but {named[1]}{versions[-1]} is pinned"
                yield self.fault(text.span, message)
        yield from self._to_open(document, pinned)
        if not isinstance(document, WorkDocument) or len({version for _, version in pinned}) != 1:
            return
        for name, text in anchors_of(document):
            bare = _BARE_VERSION.search(text.value) if ".md" not in text.value else None
            if bare is not None and bare[1].casefold() != pinned[0][1]:
                yield self.fault(text.span, f"{name} is in {bare[1]}, but {pinned[0][1]} is pinned")

    def _to_open(self, document: StructuredDocument, pinned: list[tuple[str, str]]) -> Iterator[Problem]:
        """Of the files to open, report the first that is another version, unless the pinned one is there, too."""
        placed = document.placed_section("bootstrap")
        versions = dict(pinned)
        span = (placed.section.start, placed.section.end) if placed is not None and versions else (0, 0)
        stated = _POINTED_VERSION.search(document.source.text, *span) if len(versions) == 1 and span[1] else None
        if stated is not None and stated["version"].casefold() not in versions.values():
            message = f"SPEC_CURRENT.md is called {stated['version']}, but {next(iter(versions.values()))} is pinned"
            yield self.fault(stated.span("version"), message)
        named = list(_VERSION_TO_OPEN.finditer(document.source.text, *span))
        opened = {(match["stem"].casefold(), match["version"].casefold()) for match in named}
        for match in named:
            wanted = versions.get(match["stem"].casefold())
            # A reader who opens both versions compares them.
            both = (match["stem"].casefold(), wanted) in opened
            if wanted is not None and match["version"].casefold() != wanted and not both:
                yield self.fault(match.span(), f"this is {match['version']}, but {match['stem']}{wanted} is pinned")
                return


class AnchorVersionsDiffer(WorkRule):
    """Stub that refers to two versions of the specification

    The version was raised in some lines only, so it is unknown in which one the sections were looked up.

    Remedy: look up the sections in the current version, and write that version everywhere.
    """

    kinds = ("stub",)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        pointer = document.text_at("metadata", "roadmap_pointer")
        said = [("ROADMAP_POINTER", pointer)] if pointer is not None else []
        first: dict[str, tuple[str, str]] = {}
        for name, text in [*said, *anchors_of(document)]:
            named = _VERSION_TO_OPEN.match(text.value[:_LONG_PATH].lstrip("`")) if ".md" in text.value else None
            if named is None:
                continue
            earlier = first.setdefault(named["stem"].casefold(), (named["version"], name))
            if earlier[0].casefold() != named["version"].casefold():
                yield self.fault(text.span, f"{name} is in {named['version']}, but {earlier[1]} is in {earlier[0]}")
                return


_LIGHT_ANCHOR = lazy_pattern(r"(?m)(?:^|(?<=\r))- SPEC_ANCHOR:[ \t]*(?P<said>[^\r\n]*)")


class LightAnchorMalformed(DocumentRule[Packet]):
    """Anchor of a light packet cannot be read

    Without its heading, path and digest, the section of the specification cannot be looked up or compared.

    Remedy: `workpacket refine <WP_ID> --anchor HEADING` writes it.
    """

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("refinement") if document.light else None
        if placed is None or document.anchor is not None:
            return
        for match in _LIGHT_ANCHOR.finditer(document.source.text, placed.section.start, placed.section.end):
            if match["said"] and not PLACEHOLDER.match(match["said"]):
                message = "the anchor does not have the form `HEADING` in PATH, sha256 DIGEST"
                yield self.fault(match.span("said"), message)


_VERSION_NOTE = lazy_pattern(r"\[(?:ADD|UPDATED?|CHANGED?) v[\d.]+\]|\bv\d+(?:\.\d+)+\b")
_FILE_NAME = lazy_pattern(r"[\w./-]*\.md\b(?!:?[#\d])")
_ANY_PLACE = lazy_pattern(r"[\d\u00a7#\"`\u201c]")


_LINE = lazy_pattern(r"[0-9]{1,9}")
_LEFT_OUT = lazy_pattern(r"(?m)^[ \t]*(?:[-#/*(\[]+[ \t]*)?(?:\.\.\.|\u2026|\\u2026)|[\[(]\.\.\.[\])]|(?i:\bomitted\b)")


class AnchorExcerptShort(StructuredRule):
    """Excerpt with fewer lines than its window, without a mark where lines are left out

    A person who approves the excerpt does not see that the requirement has more lines.

    Remedy: quote the missing lines, give a smaller window, or write `...` where lines are left out.
    """

    kinds = ("refinement",)
    severity = "info"
    strict_severity = "info"

    def check(self, document: StructuredDocument) -> Iterator[Problem]:
        short: list[tuple[tuple[int, int], int, int]] = []
        for anchor in document.items_at("spec_anchors"):
            first, last = anchor.string_at("context_start_line"), anchor.string_at("context_end_line")
            node, excerpt = anchor.get("excerpt_ascii_escaped"), anchor.string_at("excerpt_ascii_escaped")
            if (
                node is None
                or not (_LINE.fullmatch(first) and _LINE.fullmatch(last))
                or PLACEHOLDER.match(excerpt.strip())
            ):
                continue
            window, quoted = int(last) - int(first) + 1, len(excerpt.strip("\r\n").splitlines())
            # Blank lines around the text need not be quoted.
            if 0 < quoted < window - min(2, window // 4) and not _LEFT_OUT.search(excerpt):
                short.append((node.span, window, quoted))
        if short:
            span, window, quoted = short[0]
            more = f" (also short: {len(short) - 1} more)" if len(short) > 1 else ""
            yield self.fault(span, f"the window has {window} lines, but the excerpt {quoted}{more}")


class AnchorVague(WorkRule):
    """Anchor without a location in the specification

    The anchor gives neither the number nor the heading of a section, so the requirement is hard to find.

    Remedy: write the number or, in quotes, the heading of the section.
    """

    severity = "warning"
    strict_severity = "warning"  # words without a number may be the heading itself

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        for name, text in anchors_of(document):
            place = _VERSION_NOTE.sub("", _FILE_NAME.sub("", text.value))  # their digits are those of a version
            vague = not _ANY_PLACE.search(place) and not PLACEHOLDER.match(text.value)
            if vague and says_something(text.value) and not text.value.casefold().startswith("none"):
                yield self.fault(text.span, f"{name} {text.value[:60]!r} names no section")


class AnchorNamesRoadmap(WorkRule):
    """Anchor in a section that the document calls the roadmap

    A roadmap lists plans; only the main body states what is required.

    Remedy: find the requirement in the main body.
    """

    severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        anchors = [(name, text, _SECTION_NUMBER.findall(text.value)) for name, text in anchors_of(document)]
        outside = list(_outside_of_main_body(self, document, anchors))
        yield from outside
        starts = {one.start for one in outside}
        anchors = [one for one in anchors if one[1].start not in starts]
        own = {document.source.line_and_column(text.start)[0] for _, text, _ in anchors}
        plans: dict[str, int] = {}
        # A number that is named once is that of the anchor itself.
        repeats = any(document.source.text.count(number) > 1 for *_, numbers in anchors for number in numbers)
        lowered = document.source.text.lower() if repeats else ""
        at = lowered.find("roadmap")
        while at >= 0:
            line = document.source.line_and_column(at)[0]
            start, end = document.source.line_span(line)
            # ROADMAP_POINTER names the requirement itself where the specification has no roadmap with phases.
            pointer = lowered.startswith("roadmap_pointer", at) and "phase" not in lowered[at:end]
            if line not in own and not pointer and not _NO_ROADMAP.search(document.source.text, start, end):
                # The arrow of a ROADMAP_POINTER leads from the place in the roadmap to what is planned there.
                arrow = document.source.text.find("->", at, end)
                stop = arrow if arrow >= 0 and lowered.startswith("roadmap_pointer", at) else end
                plans.update((number, line) for number in _SECTION_NUMBER.findall(document.source.text, at, stop))
            at = lowered.find("roadmap", at + 1 if pointer else max(end, at + 1))
        for name, text, numbers in anchors:
            if _DELIVERY.search(text.value):
                yield self.fault(
                    text.span, f"{name} {text.value[:60]!r} describes what a phase delivers, as roadmaps do"
                )
                continue
            for number in numbers:
                if number in plans:
                    yield self.fault(
                        text.span, f"{name} refers to {number}, the roadmap according to line {plans[number]}"
                    )
                    break


# `Main Body (§1-6, §9-11)` says which chapters are not the roadmap; `Main Body (§7.6.3)` then contradicts it.
_NAMES_MAIN_BODY = ("ain Body (", "ain Body*", "ain body (", "ain body*")
_MAIN_BODY = lazy_pattern(r"(?i)main body\*{0,2} \((?P<named>[^()\r\n]{1,200})\)")
_CHAPTERS = lazy_pattern(r"(?<![\d.])(\d{1,3})-(?:[^\d\s]{0,2})(\d{1,3})(?![\d.])")
_FIRST_OF_NUMBER = lazy_pattern(r"(?<![\w.])(\d{1,3})(?:\.\d{1,3})+")


def _outside_of_main_body(
    rule: DocumentRule[WorkDocument], document: WorkDocument, anchors: Sequence[tuple[str, Text, list[str]]]
) -> Iterator[Problem]:
    """Report sections that are not in the chapters that the document calls the main body."""
    whole = document.source.text
    # What begins with a letter of either case is found slowly, and most documents name the main body.
    places = [at - 1 for words in _NAMES_MAIN_BODY for at in places_of(words, whole)]
    stated = [match for at in sorted(places) if (match := _MAIN_BODY.match(whole, at)) is not None]
    ranges = [(int(low), int(high)) for match in stated for low, high in _CHAPTERS.findall(match["named"])]
    if not ranges:
        return
    shown = ", ".join(f"{low}-{high}" for low, high in ranges)
    for match in stated:
        for number in _FIRST_OF_NUMBER.finditer(match["named"]) if not _CHAPTERS.search(match["named"]) else ():
            if not any(low <= int(number[1]) <= high for low, high in ranges):
                start = match.start("named")
                span = (start + number.start(), start + number.end())
                yield rule.fault(
                    span, f"{number[0]} is called the main body, but the main body consists of chapters {shown}"
                )
    for name, text, _ in anchors:
        first = _FIRST_OF_NUMBER.search(text.value) if ".md" not in text.value else None
        if first is not None and not any(low <= int(first[1]) <= high for low, high in ranges):
            yield rule.fault(text.span, f"{name} refers to {first[0]}, but the main body consists of chapters {shown}")


_DELIVERY = lazy_pattern(r"\bPhase \d+ MUST deliver\b")
_NO_ROADMAP = lazy_pattern(r"(?i)not (?:just )?(?:the )?roadmap")
_SECTION_NUMBER = lazy_pattern(r"(?:\u00a7 ?|(?<=[\s(]))(\d+(?:\.\d+){1,6})(?![\w.]*\.md)(?=[\s,;)\]]|\Z)")


@lru_cache(maxsize=2)
def anchors_of(document: WorkDocument) -> tuple[tuple[str, Text], ...]:
    """Return the anchors of a stub or packet, wherever older documents put them."""
    return tuple(_anchors_of(document))


def _anchors_of(document: WorkDocument) -> Iterator[tuple[str, Text]]:
    for placed in document.placed:
        for field in placed.fields:
            if field.name.startswith("spec_anchor"):
                if field.value:
                    yield field.key.partition("(")[0].strip(), Text(field.value, *field.value_span)
                for item in field.children:
                    yield field.key.partition("(")[0].strip(), Text(item.text, *item.span)


def folded(text: str) -> str:
    """Return the text with escapes decoded and white space collapsed."""
    return " ".join(_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text).split())


def chapters(source: Source) -> dict[str, str]:
    """Return the headings of a specification, by chapter number."""
    found = (HEADING.match(source.line(number)) for number in range(1, source.line_count + 1))
    return {match[1]: heading[2].strip() for heading in found if heading and (match := _CHAPTER.match(heading[2]))}


def is_unknown_chapter(chapter: str, numbers: Mapping[str, str]) -> bool:
    """Whether a specification with numbered chapters has neither this chapter nor the chapter that contains it."""
    parts = chapter.split(".")
    # A part of a chapter need not have a heading of its own.
    return len(numbers) > 1 and all(".".join(parts[:count]) not in numbers for count in range(len(parts), 0, -1))


_PATH_AND_CHAPTER = lazy_pattern(
    r"`?(?P<path>[\w./-]{1,200}\.md)`?[ :#-]*(?:\u00a7 ?|section |chapter )?"
    r"(?P<chapter>\d{1,4}(?:\.\d{1,4}){0,8})(?=[\s:,.]|\Z)"
)


class AnchorElsewhere(ReferenceRule):
    """Stub or packet anchor that leads nowhere, or to a roadmap

    The specification, or the chapter in it, does not exist or is only a plan. Readers cannot find the requirement.

    Remedy: name the chapter in the main body that contains the requirement.
    """

    kinds = ("stub", "packet")
    severity = "warning"

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        for _, _, path in self._named(summary):
            yield from ((candidate, True) for candidate in candidates(path))
        yield from ((candidate, False) for candidate in candidates(cast("WorkSummary", summary)["light_spec"][0]))

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        light, *place = cast("WorkSummary", summary)["light_spec"]
        if light and not any(map(files.exists, candidates(light))):
            yield self.finding(path, place, f"specification {light} not found")
        for mention, chapter, named in self._named(summary):
            source = next((files[each].source for each in candidates(named) if files[each].source is not None), None)
            numbers = chapters(source) if source is not None else {}
            if source is not None and is_unknown_chapter(chapter, numbers):
                yield self.finding(path, mention[1:], f"{source.path} has no chapter {chapter}")
            elif "roadmap" in numbers.get(chapter, "").casefold():
                yield self.finding(path, mention[1:], f"chapter {chapter} of {named} is {numbers[chapter]!r}")

    def _named(self, summary: Mapping[str, object]) -> Iterator[tuple[Mention, str, str]]:
        """Yield the anchors that refer to a chapter: the anchor, the chapter, and the specification."""
        for mention in cast("WorkSummary", summary)["anchors"]:
            name = folded(mention[0][:PATH_LENGTH]) if ".md" in mention[0] else ""
            match = _PATH_AND_CHAPTER.match(name) if name else None
            if match is not None:
                yield mention, match["chapter"], match["path"]
