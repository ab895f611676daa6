"""Rules about the anchors of stubs, packets and refinements, as far as one document shows what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.document import Text, as_text
from workpacket.documents.structured import StructuredDocument, WorkDocument
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.identity import PLACEHOLDER, WorkRule
from workpacket.rules.structured import StructuredRule, says_something

_LONG_PATH = 400
# The name of a file with a version: `Spec_v1.2.md`.
_VERSIONED = lazy_pattern(r"`?(?:[^\s`]*/)?([\w-]*?_?)(v\d+(?:\.\d+)*)(?=\.md\b|[\s`]|\Z)", re.IGNORECASE)
# The fields that name the version of the specification.
_PINS = (("metadata", "spec_target_resolved"), ("authority", "spec_baseline"), ("authority", "spec_target"))


class AnchorOtherVersion(StructuredRule):
    """Anchor in another version of the specification

    The document pins one version, but the anchor refers to another.

    Remedy: look up the passage in the version that is pinned.
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


_ANY_PLACE = lazy_pattern(r"[\d\u00a7#\"`\u201c]")


class AnchorVague(WorkRule):
    """Anchor without a place in the specification

    It names neither the number nor the heading of a section, so the requirement is hard to find.

    Remedy: write the number or, in quotes, the heading of the section.
    """

    severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        for name, text in _anchors(document):
            vague = not _ANY_PLACE.search(text.value) and not PLACEHOLDER.match(text.value)
            if vague and says_something(text.value) and not text.value.casefold().startswith("none"):
                yield self.fault(text.span, f"{name} {text.value[:60]!r} names no section")


class AnchorNamesRoadmap(WorkRule):
    """Anchor in a section that the document calls the roadmap

    A roadmap lists plans; only the main body says what must hold.

    Remedy: find the requirement in the main body.
    """

    severity = "warning"

    def check(self, document: WorkDocument) -> Iterator[Problem]:
        anchors = [(name, text, _SECTION_NUMBER.findall(text.value)) for name, text in _anchors(document)]
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
                plans.update((number, line) for number in _SECTION_NUMBER.findall(document.source.text, at, end))
            at = lowered.find("roadmap", at + 1 if pointer else max(end, at + 1))
        for name, text, numbers in anchors:
            for number in numbers:
                if number in plans:
                    yield self.fault(text.span, f"{name} names {number}, the roadmap according to line {plans[number]}")
                    break


_NO_ROADMAP = lazy_pattern(r"(?i)not (?:just )?(?:the )?roadmap")
_SECTION_NUMBER = lazy_pattern(r"(?:\u00a7 ?|(?<=[\s(]))(\d+(?:\.\d+){1,6})(?![\w.]*\.md)(?=[\s,;)\]]|\Z)")


def _anchors(document: WorkDocument) -> Iterator[tuple[str, Text]]:
    """Yield the anchors of a stub or packet, wherever older ones have them."""
    for placed in document.placed:
        for field in placed.fields:
            if field.name.startswith("spec_anchor"):
                if field.value:
                    yield field.key.partition("(")[0].strip(), Text(field.value, *field.value_span)
                for item in field.children:
                    yield field.key.partition("(")[0].strip(), Text(item.text, *item.span)
