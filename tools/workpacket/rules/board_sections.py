"""Rules about the sections of the task board."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.layout import heading_key
from workpacket.documents.task_board import BoardSection, TaskBoard
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import BUILT_IN, LaneTable, Section
from workpacket.rules.rule import DocumentRule
from workpacket.text.edits import Run
from workpacket.text.fault import Fault

# Boards from before there were reviews lack it; it is added when the first packet is submitted.
_LATER = frozenset({"in review"})
_LEVEL = 2
# The name of a section, in front of what its owner says about it.
_NAME = lazy_pattern(r"[^(\[:]*[^(\[:\s]")


class BoardRule(DocumentRule[TaskBoard]):
    kinds = ("task_board",)


class BoardSectionMissing(BoardRule):
    """Board lacks a section

    A packet that reaches the lane has no place to go to, and scripts that look for the heading stop.

    Remedy: add the heading; `workpacket board sync` does.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        present = {section.key for section in document.sections}
        if not present:
            hint = f"begin with `## {document.lanes.sections[0].heading}`"
            yield self.fault((0, 0), "the board has none of its sections", hint=hint)
            return
        place = (0, 0)
        for wanted in document.lanes.sections:
            section = document.section(wanted.key)
            if section is not None:
                place = section.title_span
            elif not _is_optional(wanted):
                message = f"the section `## {wanted.heading}` is missing"
                yield self.fault(place, message, hint=f"add `## {wanted.heading}`")


class BoardSectionTwice(BoardRule):
    """Section of the board stands twice

    A packet is looked for in one of the two and stands in the other.

    Remedy: move the entries of one to the other.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        first: dict[str, BoardSection] = {}
        for section in document.sections:
            earlier = first.setdefault(section.key, section)
            if earlier is not section:
                message = f"the section {section.title} stands already at line {earlier.line}"
                yield self.fault(section.title_span, message, hint="move the entries of one to the other")


class BoardSectionOrder(BoardRule):
    """Sections of the board stand in another order

    People look for a lane where every other board has it.

    Remedy: move the section.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        order = {section.key: index for index, section in enumerate(document.lanes.sections)}
        seen: set[str] = set()
        furthest: BoardSection | None = None
        for section in document.sections:
            if section.key in seen:
                continue
            seen.add(section.key)
            if furthest is not None and order[section.key] < order[furthest.key]:
                message = f"{section.title} stands behind {furthest.title}; its place is before"
                yield self.fault(section.title_span, message)
            else:
                furthest = section


class BoardSectionUnknown(BoardRule):
    """Entries under a heading that is no section of the board

    No lane belongs to the heading, so nobody who asks for a lane finds these packets.

    Remedy: move the entries into the section of their lane, or correct the heading.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for heading in document.headings:
            if heading.known is not None or not heading.entries:
                continue
            count = f"{len(heading.entries)} entries stand" if len(heading.entries) > 1 else "an entry stands"
            if not heading.line or not heading.level:
                yield self.fault(heading.entries[0].wp_id.span, f"{count} above the first section")
            else:
                message = f"{count} under `{heading.title}`, which is no section of the board"
                yield self.fault(heading.title_span, message, hint=_meant(heading.title, document.lanes))


def _is_optional(section: Section) -> bool:
    """Whether a board may do without it until a packet comes there. Those of added lanes come with the policy."""
    return section.key in _LATER or section.key not in {always.key for always in BUILT_IN.sections}


def _meant(title: str, lanes: LaneTable) -> str:
    keys = {heading_key(section.heading): section.heading for section in lanes.sections}
    from difflib import get_close_matches

    close = get_close_matches(heading_key(title), keys, n=1)
    return f"did you mean `## {keys[close[0]]}`?" if close else "move the entries into the section of their lane"


class BoardHeadingSpelling(BoardRule):
    """Heading of the board in another spelling

    The section is read all the same; scripts that look for the heading do not find it.

    Remedy: `workpacket check --fix` writes it as it is to be.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for section in document.sections:
            wanted = section.known.heading if section.known is not None else ""
            start, end = section.title_span
            if section.level != _LEVEL or not section.spaced:
                message = f"`{section.title}` is no heading of level {_LEVEL}"
                yield self.fault((start, end), message, hint=f"write `## {wanted}`")
                continue
            match = _NAME.match(section.title)
            name = match.group() if match is not None else ""
            remark = section.title[len(name) :]
            if name == wanted.partition("(")[0].rstrip() and (remark or "(" not in wanted):
                continue
            # A remark of the owner stays.
            written = f"{wanted.partition('(')[0].rstrip()}{remark}" if remark else wanted
            run = Run.quoting(document.source.text, start, section.title)
            edits = [run.replaced_by(written)] if run is not None and name else []
            message = f"the heading is written `{section.title}`"
            yield self.fault((start, end), message, hint=f"write `## {written}`", edits=edits)


class BoardBlankLines(BoardRule):
    """Blank lines left behind by entries that were moved away

    Each is a hole; in time the board is longer than what stands on it, and every change to it conflicts with others.

    Remedy: `workpacket check --fix` takes them out and touches nothing else.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        starts = document.source.line_starts
        found = list(_holes(document))
        holes = [(starts[first - 1], starts[last]) for first, last in found]
        if holes:
            count = sum(last - first + 1 for first, last in found)
            lines = f"{count} blank lines leave" if count > 1 else "a blank line leaves"
            where = f"{len(holes)} holes" if len(holes) > 1 else "a hole"
            message = f"{lines} {where} in the board of {document.source.line_count} lines"
            edits = [Run(document.source.text, *hole).deleted() for hole in holes]
            yield self.fault((holes[0][0], holes[-1][1]), message, edits=edits, fix_title="take them out")


def _holes(board: TaskBoard) -> Iterator[tuple[int, int]]:
    """First and last of the blank lines that are too many: all between two entries, all but one beside an entry or the
    heading of a section. Blank lines within the owner's prose are the owner's.
    """
    entries = {entry.line: entry.section for entry in board.entries}
    marks = entries.keys() | {section.line for section in board.sections}
    previous = 0
    for number in range(1, board.source.line_count + 1):
        if not board.source.line(number).strip():
            continue
        first = previous + 1
        together = previous in entries and entries[previous] is entries.get(number)
        if not together and (previous in marks or number in marks):
            first += 1
        if first < number and previous and (together or previous in marks or number in marks):
            yield first, number - 1
        previous = number
