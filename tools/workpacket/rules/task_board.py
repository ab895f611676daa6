"""Rules about the task board: its sections, and the form, ids, tokens and trailing text of its entries."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import heading_key
from workpacket.documents.task_board import ACTIVE_DETAILS, BoardEntry, TaskBoard
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import InvalidId, WorkPacketId, find_ids
from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN, LaneTable
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, first_lines, out_of_order, repeated
from workpacket.text.formats import date
from workpacket.text.source import BLANK, TextRun

# Boards from before there were reviews lack it; it is added when the first packet is submitted. Sections of added lanes
# come from the policy.
_ALWAYS = frozenset({section.key for section in BUILT_IN.sections} - {"in review"})
_LEVEL = 2
# The name of a section, before any remark by a person.
_NAME = lazy_pattern(r"[^(\[:]*[^(\[:\s]")


_FENCE = lazy_pattern(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<rest>[^`\r\n]*)\Z")

BoardRule = DocumentRule[TaskBoard]


class BoardSectionMissing(BoardRule):
    """Missing board section

    Packets in the section's lane have no place on the board, and scripts that look for the heading fail.

    Remedy: add the heading: `workpacket board sync`.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        present = {section.key for section in document.sections}
        if not present:
            hint = f"begin with `## {document.lanes.sections[0].heading}`"
            yield self.fault((0, 0), "the board has none of the expected sections", hint=hint)
            return
        place = (0, 0)
        for wanted in document.lanes.sections:
            section = document.section(wanted.key)
            if section is not None:
                place = section.title_span
            elif wanted.key in _ALWAYS:
                message = f"the `## {wanted.heading}` section is missing"
                yield self.fault(place, message, hint=f"add `## {wanted.heading}`")


class BoardSectionTwice(BoardRule):
    """Duplicate board section

    A packet may be in one of the sections while people look for it in the other.

    Remedy: move all entries into one of the sections.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for section, earlier in repeated(document.sections, lambda section: section.key):
            message = f"the {section.title} section is already on line {earlier.line}"
            yield self.fault(section.title_span, message, hint="move all entries into one of the sections")


class BoardSectionOrder(BoardRule):
    """Board sections in the wrong order

    People expect lanes in the same order on every board.

    Remedy: move the section.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        order = {section.key: index for index, section in enumerate(document.lanes.sections)}
        first = {section.key: section for section in reversed(document.sections)}
        once = (section for section in document.sections if first[section.key] is section)
        for section, furthest in out_of_order(once, lambda section: order[section.key]):
            message = f"{section.title} comes after {furthest.title}, but belongs before it"
            yield self.fault(section.title_span, message)


class BoardSectionUnknown(BoardRule):
    """Entries outside the board's sections

    The heading does not name a lane, so these packets cannot be found by lane.

    Remedy: move the entries to the sections for their lanes, or correct the heading.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for heading in document.headings:
            if heading.known is not None or not heading.entries:
                continue
            count = f"{len(heading.entries)} entries stand" if len(heading.entries) > 1 else "an entry is"
            if not heading.line or not heading.level:
                yield self.fault(heading.entries[0].wp_id.span, f"{count} above the first section")
            else:
                message = f"{count} under `{heading.title}`, which is not a section of the board"
                yield self.fault(heading.title_span, message, hint=_meant(heading.title, document.lanes))


def _meant(title: str, lanes: LaneTable) -> str:
    keys = {heading_key(section.heading): section.heading for section in lanes.sections}
    from difflib import get_close_matches

    close = get_close_matches(heading_key(title), keys, n=1)
    return f"did you mean `## {keys[close[0]]}`?" if close else "move the entries to the sections for their lanes"


class BoardHeadingSpelling(BoardRule):
    """Non-standard board heading

    The section is still read, but scripts that look for the current heading do not find it.

    Remedy: `workpacket check --fix` writes the standard form.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for section in document.sections:
            wanted = section.known.heading if section.known is not None else ""
            start, end = section.title_span
            if section.level != _LEVEL or not section.spaced:
                message = f"`{section.title}` is not a level {_LEVEL} heading"
                yield self.fault((start, end), message, hint=f"write `## {wanted}`")
                continue
            match = _NAME.match(section.title)
            name = match.group() if match is not None else ""
            remark = section.title[len(name) :]
            if name == wanted.partition("(")[0].rstrip() and (remark or "(" not in wanted):
                continue
            # A remark by a person is kept.
            written = f"{wanted.partition('(')[0].rstrip()}{remark}" if remark else wanted
            run = TextRun.quoting(document.source.text, start, section.title)
            edits = [run.replaced_by(written)] if run is not None and name else []
            message = f"the heading is written `{section.title}`"
            yield self.fault((start, end), message, hint=f"write `## {written}`", edits=edits)


class BoardFenceUnclosed(BoardRule):
    """Unclosed code fence on the board

    Everything that follows is shown as code, so people do not see the lanes after the fence.

    Remedy: close the fence with a line of the same marks, or delete it.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        opened: tuple[str, tuple[int, int]] | None = None
        spans = (document.source.line_span(number) for number in range(1, document.source.line_count + 1))
        for match in filter(None, (_FENCE.match(document.source.text, *span) for span in spans)):
            marks = match["marks"]
            if opened is None:
                opened = marks, match.span("marks")
            elif marks.startswith(opened[0]) and not match["rest"].strip():
                opened = None
        if opened is not None:
            yield self.fault(opened[1], "never closed: everything to the end of the board is shown as code")


class BoardBlankLines(BoardRule):
    """Blank lines left by moved entries

    Over time, such lines outnumber the entries, and they cause merge conflicts.

    Remedy: `workpacket check --fix` removes the blank lines and changes nothing else.
    """

    severity = "warning"
    strict_severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        starts = document.source.line_starts
        found = list(_holes(document))
        holes = [(starts[first - 1], starts[last]) for first, last in found]
        if holes:
            numbers = [number for first, last in found for number in range(first, last + 1)]
            count = f"{len(numbers)} surplus blank lines" if len(numbers) > 1 else "a surplus blank line"
            message = f"{count} on the board ({first_lines(numbers)})"
            edits = [TextRun(document.source.text, *hole).deleted() for hole in holes]
            yield self.fault((holes[0][0], holes[-1][1]), message, edits=edits, fix_title="remove them")


def _holes(board: TaskBoard) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the surplus blank lines: all blank lines between two entries, and all but one next to
    an entry or a section heading. Blank lines within people's prose are left alone.
    """
    entries = {entry.line: entry.section for entry in board.entries}
    marks = entries.keys() | {section.line for section in board.sections}
    previous = 0
    for number in range(1, board.source.line_count + 1):
        # A no-break space is text: only white space that an edit may delete counts as blank.
        if not board.source.line(number).strip(BLANK):
            continue
        first = previous + 1
        together = previous in entries and entries[previous] is entries.get(number)
        if not together and (previous in marks or number in marks):
            first += 1
        if first < number and previous and (together or previous in marks or number in marks):
            yield first, number - 1
        previous = number


_MARKS = lazy_pattern(
    r"(?:[-*+\u2022]|[0-9]+[.)])[ \t]*(?:\[ \][ \t]+)?(?!.*\]\()[][()*_`\\ \t:|=>\u2192\u2013\u2014-]*\Z"
)
_ACTIVE_SECTION = "active"
_BLOCKED = "BLOCKED"
# What may follow the token: the reason of BLOCKED, the details of ACTIVE.
_WITH_REMARK = frozenset({_BLOCKED, ACTIVE_TOKEN})


class BoardIdMalformed(BoardRule):
    """Board entry with an invalid id

    The entry has no matching file, and no command can move it.

    Remedy: write the id as `WP-<phase>-<slug>`, with an optional `-v<N>`.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            complaint = _id_complaint(entry.wp_id.value)
            if complaint:
                inner = [str(name) for name, _, _ in find_ids(entry.wp_id.value)]
                hint = (
                    f"did you mean {inner[0]}?"
                    if inner
                    else "write the id as WP-<phase>-<slug>, with an optional -v<N>"
                )
                yield self.fault(entry.wp_id.span, f"{entry.wp_id.value!r} {complaint}", hint=hint)


def _id_complaint(value: str) -> str:
    try:
        parsed = WorkPacketId.parse(value)
    except InvalidId as invalid:
        return str(invalid)
    if parsed.kind != "packet":
        return "is a work package of a mission, and does not belong on this board"
    # `WP-1-Parser.log` matches the grammar, but is the name of a file.
    looks_like_file = "." in value and [str(name) for name, _, _ in find_ids(value)] != [value]
    return "is a file name, not the name of a work packet" if looks_like_file else ""


class BoardEntryForm(BoardRule):
    """Board entry in a non-standard form

    It is still read, but scripts that look for `- **[WP_ID]** - [TOKEN]` skip it.

    Remedy: `workpacket check --fix` writes the standard form.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            token = entry.lane_token
            written = entry.token.value if entry.token is not None else ""
            if not token or (entry.is_canonical and written == token) or _id_complaint(entry.wp_id.value):
                continue
            start, end = entry.head
            wanted = _canonical(entry, token)
            run = _marks_only(document, entry)
            edits = [run.replaced_by(wanted)] if run is not None else []
            shown = document.source.text[start:end].strip()
            yield self.fault((start, end), f"the entry is written `{shown}`", hint=f"`{wanted}`", edits=edits)


def _marks_only(document: TaskBoard, entry: BoardEntry) -> TextRun | None:
    """Return the head of an entry if it has only marks besides id and token; anything else, such as a link, tick or
    level, would be lost."""
    run = TextRun.on_line(document.source.text, *entry.head)
    if run is None:
        return None
    spans = [entry.wp_id.span, *([entry.token.span] if entry.token is not None else [])]
    left = "".join(
        " " if any(start <= run.start + at < end for start, end in spans) else character
        for at, character in enumerate(run.words)
    )
    return run if _MARKS.match(left) else None


def _canonical(entry: BoardEntry, token: str) -> str:
    return f"- **[{entry.wp_id.value}]** - [{token}]"


class BoardTokenMissing(BoardRule):
    """Board entry without a token

    Scripts that read single lines cannot determine the packet's lane.

    Remedy: write the lane's token after the id.
    """

    fix = "unsafe"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            if entry.token is not None and entry.token.value:
                continue
            lanes = [lane.token for lane in document.lanes.lanes if lane.section == entry.section.key]
            hint = f"write `{' or '.join(_canonical(entry, lane) for lane in lanes)}`" if lanes else ""
            run = _marks_only(document, entry) if len(lanes) == 1 else None
            edits = [run.replaced_by(_canonical(entry, lanes[0]))] if run is not None else []
            yield self.fault(
                entry.wp_id.span, f"the entry for {entry.wp_id.value} has no token", hint=hint, edits=edits
            )


class BoardTokenUnknown(BoardRule):
    """Invalid or ambiguous board token

    The packet's possible moves are unknown.

    Remedy: write one of the tokens that the message lists.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            token = entry.token
            if token is None or not token.value or entry.lane_token:
                continue
            lanes = [lane.token for lane in document.lanes.named(token.value.replace("_", " "))]
            if lanes:
                message = f"[{token.value}] stands for {' or '.join(lanes)}"
                yield self.fault(token.span, message, hint="write one of these tokens")
                continue
            known = [ACTIVE_TOKEN, *document.lanes.tokens]
            from difflib import get_close_matches

            close = get_close_matches(token.value.upper(), known, n=1)
            hint = f"{f'did you mean {close[0]}? ' if close else ''}one of {', '.join(known)}"
            yield self.fault(token.span, f"[{token.value}] is not a lane token", hint=hint)


class BoardTokenMisplaced(BoardRule):
    """Board token in the wrong section

    The section and the token disagree, and readers may follow either.

    Remedy: move the entry to the section for its token, or correct the token.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            home = _home(entry)
            if home and home != entry.section.key and not _in_older_home(entry) and entry.token is not None:
                key = entry.section.key
                tokens = [lane.token for lane in document.lanes.lanes if lane.section == key]
                wanted = ACTIVE_TOKEN if key == _ACTIVE_SECTION else " or ".join(tokens)
                message = f"[{entry.token.value}] is under {entry.section.title}, where {wanted} belongs"
                yield self.fault(entry.token.span, message)


class BoardTokenOldPlace(BoardRule):
    """Entry in a section that older boards used for its lane

    The packet is waiting to be merged or was abandoned, but in this section it appears to be in progress or judged.

    Remedy: move the entry to the section for its lane: `workpacket board sync`.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            if entry.token is not None and _in_older_home(entry):
                title = _home(entry).title()
                message = f"[{entry.token.value}] is under {entry.section.title}; it now belongs under {title}"
                yield self.fault(entry.token.span, message)


def _home(entry: BoardEntry) -> str:
    """Return the section for the entry's token; '' if the token or the section is unknown."""
    token = entry.lane_token
    if entry.section.known is None or not token:
        return ""
    lane = entry.section.lanes.lane(token)
    return lane.section if lane is not None else _ACTIVE_SECTION


def _in_older_home(entry: BoardEntry) -> bool:
    lane = entry.section.lanes.lane(entry.lane_token)
    return lane is not None and entry.section.key in lane.older_sections


class BoardEntryTwice(BoardRule):
    """Packet listed twice on the board

    When the packet moves, only one of its entries is moved.

    Remedy: delete the outdated entry.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        # In the section Active, a packet has a second entry, as a note for other branches.
        ids = repeated(document.entries, lambda entry: (entry.wp_id.value.casefold(), entry.lane_token == ACTIVE_TOKEN))
        for entry, earlier in ids:
            where = f"on line {earlier.line}, under {earlier.section.title or 'no heading'}"
            case = "" if earlier.wp_id.value == entry.wp_id.value else f" as {earlier.wp_id.value}"
            message = f"{entry.wp_id.value} stands already{case} {where}"
            yield self.fault(entry.wp_id.span, message, hint="delete the outdated entry")


class BoardEntryRemark(BoardRule):
    """Remark after an entry's token

    The remark is lost when the entry moves, and no tool reads it.

    Remedy: move the remark to the packet.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            rest = entry.rest
            if rest.value and entry.remark and entry.lane_token and entry.lane_token not in _WITH_REMARK:
                yield self.fault(rest.span, "the token is followed by a remark", hint="move it to the packet")


class BoardReasonMissing(BoardRule):
    """Blocked packet without a reason

    Without a reason, no one knows how to unblock the packet.

    Remedy: write ` - <reason>` after the token.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            if entry.token is not None and entry.lane_token == _BLOCKED and not entry.remark:
                message = f"the board does not state what blocks {entry.wp_id.value}"
                yield self.fault(entry.token.span, message, hint="write ` - <reason>` after the token")


class BoardActiveIncomplete(BoardRule):
    """Incomplete entry under Active

    This section tells other branches who is working on which packet, and how recent that information is.

    Remedy: write ` - branch: <branch> - coder: <name> - last_sync: YYYY-MM-DD` after the token.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            if entry.token is None or entry.lane_token != ACTIVE_TOKEN:
                continue
            details = entry.details()
            missing = [name for name in ACTIVE_DETAILS if name not in details or not details[name].value]
            if missing:
                message = f"the entry for {entry.wp_id.value} lacks {', '.join(missing)}"
                hint = "write ` - branch: <branch> - coder: <name> - last_sync: YYYY-MM-DD` after the token"
                yield self.fault(entry.token.span, message, hint=hint)


class BoardBranchOfAnother(BoardRule):
    """Active entry with a different packet's branch

    People who look for the work on this packet find the work on the other one.

    Remedy: correct the branch, or the id of the entry.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            branch = entry.details().get("branch") if entry.lane_token == ACTIVE_TOKEN else None
            own = WorkPacketId.try_parse(entry.wp_id.value)
            named = find_ids(branch.value.replace("/", " ")) if branch is not None else []
            if branch is not None and own is not None and named and all(name.base != own.base for name, *_ in named):
                yield self.fault(branch.span, f"the branch belongs to {named[0][0]}, but the entry is for {own}")


class BoardSyncDate(BoardRule):
    """Invalid date in last_sync

    It is unclear how recent the information is.

    Remedy: write it as YYYY-MM-DD.
    """

    def check(self, document: TaskBoard) -> Iterator[Problem]:
        for entry in document.entries:
            synced = entry.details().get("last_sync") if entry.lane_token == ACTIVE_TOKEN else None
            problem = date(synced.value) if synced is not None and synced.value else ""
            if synced is not None and problem:
                yield self.fault(synced.span, f"last_sync {synced.value!r} {problem}", hint="write it as YYYY-MM-DD")
