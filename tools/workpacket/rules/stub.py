"""Rules about stubs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from workpacket.documents.spec_pointer import candidates
from workpacket.documents.structured import items_of_section
from workpacket.documents.stub import CANONICAL_STATUS, CHECKLIST_LENGTH, Stub
from workpacket.documents.summary import WorkSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids, is_packet_id
from workpacket.model.lanes import MAY_BE_STUB
from workpacket.model.layout import SPEC_POINTER
from workpacket.problem import Problem
from workpacket.rules.identity import is_hollow
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule
from workpacket.rules.structured import content_of, elsewhere, says_something
from workpacket.text.blocks import LISTS, Block, Item
from workpacket.text.source import TextRun

_SPEC_TARGET = lazy_pattern(r"`?(?P<path>[^\s`()]+)`?(?P<rest>\s+\S.*)?\Z")
_LINES = r"[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})?"
_COVERAGE = lazy_pattern(rf"SPEC=v\d+(?:\.\d+)*; ?PHASE=\d+(?:\.\d+)*; ?LINES={_LINES}(?:,{_LINES})*\Z")
_LINE_RANGE = lazy_pattern(r"\b([1-9][0-9]{0,8})-([1-9][0-9]{0,8})\b")
_NO_COVERAGE = lazy_pattern(r"(?i:none|n/?a)\Z")
_KNOWS_NONE = lazy_pattern(r"(?i)none known\b")  # an acceptable answer while a stub is only an idea
_DEEPEST = 3
# What people type as a box, but Markdown does not read as one.
_DRAWN_BOX = lazy_pattern(r"(?:\[\]|[\u2610\u25a1\u2b1c])[ \t]*")

# Words that identify each step of the checklist, in order; people may word the rest differently.
_STEPS = (
    ("main body", "requirement"), ("refinement",), ("signature", "sign"), ("refinement",), ("packet",),
    ("scope", "copy"), ("board",),
)  # fmt: skip

CANONICAL_LANE = "STUB"
# The boxes that `refine --present` and activation tick.
_TICKED_BY_COMMANDS = ([2], [1, 2], [*range(1, CHECKLIST_LENGTH + 1)])


StubRule = DocumentRule[Stub]


class StubOldFamily(StubRule):
    """Stub in an older form

    The headings differ from the current form, and the checklist has no boxes, so tools find little information in the
    stub.

    Remedy: `workpacket fmt --upgrade` rewrites it.
    """

    severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if document.is_older and placed is not None:
            hint = "`workpacket fmt --upgrade` rewrites it; then add the missing parts"
            text = document.source.text.casefold()
            wanted = (("scope", "scope"), ("acceptance criteria", "acceptance"), ("anchor candidates", "anchor"))
            absent = [name for name, word in wanted if word not in text]
            steps = _absent_steps(document) if document.placed_section("activation_checklist") else []
            absent += [f"the step {' and '.join(steps)} of the checklist"] if steps else []
            without = f", without {' and '.join(absent)}" if absent else ""
            yield self.fault(placed.section.title_span, f"this stub is in an older form{without}", hint=hint)


class StubBannerMissing(StubRule):
    """Stub without the warning that it is not executable

    A reader who opens only this file may mistake it for a task packet and start work.

    Remedy: write `This is a BACKLOG STUB. It is NOT an executable Task Packet.` above its title.
    """

    severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if document.is_older or placed is None:
            return
        above = " ".join(document.source.text[: placed.section.start].split()).casefold()
        if "backlog stub" not in above or "not an executable" not in above:
            message = "the warning that this is a backlog stub, and not an executable task packet, is missing"
            yield self.fault(placed.section.title_span, message)


class StubStatusNotCanonical(StubRule):
    """Non-standard stub status

    The wording is fixed, so that every tool recognizes that work cannot start from this file.

    Remedy: write `STUB (NOT READY FOR DEV)`.
    """

    severity = "warning"
    fix = "unsafe"

    def check(self, document: Stub) -> Iterator[Problem]:
        status = document.status_text()
        if status is None or document.is_older or status.value in {"", CANONICAL_STATUS}:
            return
        lanes = document.lanes.named(status.value)
        lane = lanes[0].token if lanes else ""
        # An archived stub keeps its status: the usual one would make it look live again.
        if lane and (lane not in MAY_BE_STUB or lanes[0].archived):
            return
        run = document.run(status)
        edits = [run.replaced_by(CANONICAL_STATUS)] if run is not None and lane == CANONICAL_LANE else []
        message = f"the status is {status.value!r} instead of {CANONICAL_STATUS!r}"
        yield self.fault(status.span, message, hint=f"write {CANONICAL_STATUS}", edits=edits)


class StubStatusNoStub(StubRule):
    """Stub with the status of a packet

    Someone may start work from the stub without a refinement or a signature.

    Remedy: activate it with `just create-task-packet <WP_ID>`, or restore the status.
    """

    def check(self, document: Stub) -> Iterator[Problem]:
        status = document.status_text()
        if status is None or not status.value:
            return
        lanes = document.lanes.named(status.value)
        if lanes and lanes[0].token not in MAY_BE_STUB:
            message = f"a stub has the status {status.value!r}"
            yield self.fault(status.span, message, hint=f"write {CANONICAL_STATUS}")


class SpecTargetTrailingText(StubRule):
    """Text after the path in SPEC_TARGET

    The field must be a path; with a remark after it, the file is not found. The remark also becomes outdated when the
    pointer changes.

    Remedy: delete the remark, or move it to another line; SPEC_CURRENT.md says which specification is current.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "unsafe"

    def check(self, document: Stub) -> Iterator[Problem]:
        target = document.spec_target
        match = _SPEC_TARGET.match(target.value) if target is not None else None
        if target is not None and match is not None and match["rest"]:
            start = target.start + match.start("rest")
            message = f"the path is followed by {match['rest'].strip()!r}"
            run = document.run(target)
            edits = [run.part(match.start("rest")).deleted()] if run is not None else []
            yield self.fault((start, target.end), message, hint="move the remark to another line", edits=edits)


class SpecTargetMissing(ReferenceRule):
    """SPEC_TARGET not in the repository

    The stub does not name the specification that it is based on, so its requirement cannot be looked up.

    Remedy: correct the path; usually it is the one given in SPEC_CURRENT.md.
    """

    family = "document"
    severity = "warning"
    strict_severity = "warning"
    kinds = ("stub",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        yield from ((path, False) for path in (SPEC_POINTER, *candidates(_target_in(summary))))

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        target = _target_in(summary)
        possible = candidates(target)
        # Without the pointer, the repository has no specification yet, or keeps it elsewhere.
        if possible and files.exists(SPEC_POINTER) and not any(map(files.exists, possible)):
            yield self.finding(path, cast("WorkSummary", summary)["spec_target"][1:], f"file {target} not found")


def _target_in(summary: Mapping[str, object]) -> str:
    """Return the path in SPEC_TARGET; '' for anything else."""
    match = _SPEC_TARGET.match(cast("WorkSummary", summary)["spec_target"][0])
    return match["path"] if match is not None and match["path"].endswith(".md") else ""


class RoadmapCoverageMalformed(StubRule):
    """Unreadable ROADMAP_ADD_COVERAGE

    The lines of the roadmap that this stub covers count as uncovered.

    Remedy: write it as `SPEC=v1.2; PHASE=3.4; LINES=10,20-30`.
    """

    def check(self, document: Stub) -> Iterator[Problem]:
        coverage = document.roadmap_add_coverage
        written = coverage.value.strip("`") if coverage is not None else ""
        if coverage is None or not written or _NO_COVERAGE.match(written):
            return
        hint = "write it as SPEC=v1.2; PHASE=3.4; LINES=10,20-30"
        if not _COVERAGE.match(written):
            yield self.fault(coverage.span, f"{coverage.value!r} cannot be parsed", hint=hint)
        for first, last in _LINE_RANGE.findall(written):
            if int(first) > int(last):
                yield self.fault(coverage.span, f"the range {first}-{last} is reversed", hint=hint)


class ChecklistNumbered(StubRule):
    """Activation checklist without boxes

    The checklist items cannot be marked as done.

    Remedy: `workpacket fmt` turns the items into boxes.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: Stub) -> Iterator[Problem]:
        without = [item for item in checklist(document) if item.ticked is None]
        if without and not document.is_older:
            marks = [_before_words(document, item) for item in without]
            edits = [run.replaced_by("- [ ] ") for run in marks if run is not None]
            count = f"{len(without)} items have" if len(without) > 1 else "an item has"
            yield self.fault((without[0].span[0], without[-1].span[1]), f"{count} no box", edits=edits)


def _before_words(document: Stub, item: Item) -> TextRun | None:
    """Return the text that precedes the words of an item; None if the item begins with something other than words."""
    if not item.block.children or item.block.children[0].kind != "paragraph":
        return None
    drawn = _DRAWN_BOX.match(item.text)
    return TextRun.on_line(
        document.source.text, item.block.start, item.span[0] + (drawn.end() if drawn is not None else 0)
    )


class ChecklistLength(StubRule):
    """Activation checklist with the wrong number of items

    Items missing from the list are easily forgotten.

    Remedy: add the missing items; the activation gate requires all of them anyway.
    """

    severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        placed = document.placed_section("activation_checklist")
        count = len(checklist(document))
        if placed is None or document.is_older or count == CHECKLIST_LENGTH:
            return
        absent = _absent_steps(document)
        said = {item.text.casefold() for item in checklist(document)}
        # A repository may ask for more steps, but not for the same one twice.
        if count < CHECKLIST_LENGTH or absent or len(said) < count:
            without = f"; missing: {', '.join(absent)}" if absent else ""
            message = f"the checklist has {count} items instead of {CHECKLIST_LENGTH}{without}"
            yield self.fault(placed.section.title_span, message)


def _absent_steps(document: Stub) -> list[str]:
    """Return the steps that are not named by any item of the checklist."""
    said = [item.text.casefold() for item in checklist(document)]
    return [" / ".join(words) for words in _STEPS if not any(word in one for one in said for word in words)]


class ChecklistItemUnknown(StubRule):
    """Unknown item in the activation checklist

    The item takes the place of a step that activation requires.

    Remedy: restore the item from the template.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        items = checklist(document)
        if document.is_older or len(items) != CHECKLIST_LENGTH:
            return  # `ChecklistLength` reports those
        for item, words in zip(items, _STEPS, strict=True):
            if not any(word in item.text.casefold() for word in words):
                yield self.fault(item.span, f"this is not the checklist step {' / '.join(words)}")


class ChecklistOtherPacket(StubRule):
    """Activation checklist of a different packet

    The checklist was copied from another stub and lists that packet's files.

    Remedy: write this packet's id.
    """

    strict_severity = "error"
    severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        own = document.own_id
        if not is_packet_id(own) or own != document.stem:
            return  # other rules report faults of the id itself
        of_this = {own, WorkPacketId(own).base}
        for item in checklist(document):
            for name, start, end in find_ids(item.text):
                if name.text not in of_this:
                    span = (item.span[0] + start, item.span[0] + end)
                    yield self.fault(span, f"the checklist for {document.own_id} names {name}")


class StubContentMissing(StubRule):
    """Stub without What or Why

    Work that is not described cannot be approved.

    Remedy: fill in What and Why.
    """

    severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        metadata = document.placed_section("metadata")
        if metadata is not None and not document.is_older and document.base_wp_id is None:
            where = elsewhere(document, "base_wp_id")
            yield self.fault(metadata.section.title_span, f"the stub does not state BASE_WP_ID{where}")
        placed = document.placed_section("intent")
        if placed is None or document.is_older:
            return
        for name in ("what", "why"):
            field = next((one for one in placed.fields if one.name == name), None)
            if field is None:
                where = elsewhere(document, name)
                yield self.fault(placed.section.title_span, f"the stub does not state {name}{where}")
            elif is_hollow(document, field):
                yield self.fault(field.key_span, f"{field.key} says nothing")


_DEPENDS = lazy_pattern(
    r"(?i)[*_`(]*(?:depends on|requires|blocked by|waits for|needs)\b[:*_` ]*+(?!none|n/?a\b|nothing|todo|tbd|<|\Z)"
)


_NO_DEPENDENCY = lazy_pattern(
    r"(?i)[*_`(]*(?:none|n/?a\b|nothing|no |todo|tbd|<|coordinates? with|related to|see |depends|blocks)"
)


class DependencyUnnamed(StubRule):
    """Dependencies of a stub that name no packet

    No command can wait for them or show them.

    Remedy: write the ids of the packets; if something outside the repository is meant, leave it as it is.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Stub) -> Iterator[Problem]:
        placed = document.placed_section("dependencies") if not document.is_older else None
        if placed is None:
            return
        texts = [text for text in document.dependency_texts() if says_something(text.value)]
        told = [text for text in texts if _DEPENDS.match(text.value)] or [
            text for text in texts if not _NO_DEPENDENCY.match(text.value)
        ]
        if told and not any(find_ids(text.value) for text in texts):
            yield self.fault(told[0].span, "no dependency names a packet")


class StubAnchorMissing(StubRule):
    """Stub without an anchor in the specification

    Activation requires a passage that contains the requirement.

    Remedy: in SPEC_ANCHOR_CANDIDATES, name a passage of the main body.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Stub) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if placed is None or document.is_older:
            return
        field = next((one for one in placed.fields if one.name == "spec_anchor_candidates"), None)
        if field is None:
            yield self.fault(placed.section.title_span, "SPEC_ANCHOR_CANDIDATES is missing")
        elif is_hollow(document, field) and not _KNOWS_NONE.search(content_of(document, field)):
            yield self.fault(field.key_span, f"{field.key} names no passage")


class ChecklistTicked(StubRule):
    """Ticked box in a stub's activation checklist

    A tick proves nothing: the conditions are derived from the refinement, the approval and the log.

    Remedy: leave ticking the boxes to the commands; `workpacket why <WP_ID>` lists what is missing.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Stub) -> Iterator[Problem]:
        items = checklist(document)
        if [number for number, item in enumerate(items, 1) if item.ticked] in _TICKED_BY_COMMANDS:
            return
        for item in items:
            if item.ticked:
                yield self.fault(item.span, "a ticked box is not evidence")


class NestedTooDeep(StubRule):
    """List nested deeper than three levels

    Requirements at that depth are easily missed.

    Remedy: move the nested items up one level.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Stub) -> Iterator[Problem]:
        for placed in document.placed:
            blocks = [block for section in placed.section.walk() for block in section.blocks]
            deep = list(_items_below(blocks, _DEEPEST))
            if deep:
                more = f", and {len(deep) - 1} more in this section" if len(deep) > 1 else ""
                span = Item(document.source, deep[0]).span
                yield self.fault(span, f"this item is nested {_DEEPEST + 1} levels deep{more}")


def _items_below(blocks: Sequence[Block], levels: int) -> Iterator[Block]:
    """Yield the items of the outermost lists that are nested deeper than this many levels."""
    for block in blocks:
        if block.kind not in LISTS:
            continue
        if not levels:
            yield from block.children
            continue
        for item in block.children:
            if len(item.children) > 1:
                yield from _items_below(item.children, levels - 1)


def checklist(document: Stub) -> list[Item]:
    """Return the items of the activation checklist."""
    placed = document.placed_section("activation_checklist")
    return items_of_section(document.source, placed.section) if placed is not None else []
