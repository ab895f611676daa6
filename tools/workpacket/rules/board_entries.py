"""Rules about the entries of the task board: their form, their ids, their tokens, what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.documents.task_board import ACTIVE_DETAILS, BoardEntry, TaskBoard
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import InvalidId, WorkPacketId, find_ids
from workpacket.model.lanes import ACTIVE_TOKEN, LaneTable
from workpacket.rules.board_sections import BoardRule
from workpacket.text.edits import Run
from workpacket.text.fault import Fault
from workpacket.text.formats import date

_MARKS = lazy_pattern(
    r"(?:[-*+\u2022]|[0-9]+[.)])[ \t]*(?:\[ \][ \t]+)?(?!.*\]\()[][()*_`\\ \t:|=>\u2192\u2013\u2014-]*\Z"
)
_ACTIVE_SECTION = "active"
_BLOCKED = "BLOCKED"
# Where boards without a section In Review keep what waits to be merged, and where abandoned work was put.
_OLDER_HOMES: Mapping[str, frozenset[str]] = {
    "MERGE_PENDING": frozenset({"in progress", "done"}),
    "ABANDONED": frozenset({"done"}),
}
# What may stand behind the token: the reason of BLOCKED, the details of ACTIVE.
_WITH_REMARK = frozenset({_BLOCKED, ACTIVE_TOKEN})


class BoardIdMalformed(BoardRule):
    """Entry of the board whose id is none

    No file can belong to the entry, and no command can move it.

    Remedy: write the id as `WP-<phase>-<slug>`, with an optional `-v<N>`.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            complaint = _id_complaint(entry.wp_id.value)
            if complaint:
                inner = [str(name) for name, _, _ in find_ids(entry.wp_id.value)]
                hint = f"did you mean {inner[0]}?" if inner else "write it as WP-<phase>-<slug>, with an optional -v<N>"
                yield self.fault(entry.wp_id.span, f"{entry.wp_id.value!r} {complaint}", hint=hint)


def _id_complaint(value: str) -> str:
    try:
        parsed = WorkPacketId.parse(value)
    except InvalidId as invalid:
        return str(invalid)
    if parsed.kind != "packet":
        return "is a work package of a mission, which has no place on this board"
    # `WP-1-Parser.log` follows the grammar, and is the name of a file.
    looks_like_file = "." in value and [str(name) for name, _, _ in find_ids(value)] != [value]
    return "is the name of a file, not of a work packet" if looks_like_file else ""


class BoardEntryForm(BoardRule):
    """Entry of the board in another form

    It is read all the same; scripts that look for `- **[WP_ID]** - [TOKEN]` pass it over.

    Remedy: `workpacket check --fix` writes it as it is to be.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
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


def _marks_only(document: TaskBoard, entry: BoardEntry) -> Run | None:
    """The head of an entry if, besides id and token, it holds only marks; a link, a tick, a level would be lost."""
    run = Run.on_line(document.source.text, *entry.head)
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
    """Entry of the board without a token

    Whoever reads lines instead of sections does not know in which lane the packet is.

    Remedy: write the token of the lane behind the id.
    """

    fix = "unsafe"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            if entry.token is not None and entry.token.value:
                continue
            lanes = [lane.token for lane in document.lanes.lanes if lane.section == entry.section.key]
            hint = f"write `{' or '.join(_canonical(entry, lane) for lane in lanes)}`" if lanes else ""
            run = _marks_only(document, entry) if len(lanes) == 1 else None
            edits = [run.replaced_by(_canonical(entry, lanes[0]))] if run is not None else []
            yield self.fault(entry.wp_id.span, f"the entry of {entry.wp_id.value} has no token", hint=hint, edits=edits)


class BoardTokenUnknown(BoardRule):
    """Token of the board that stands for no lane, or for several

    Nobody can say what may happen to the packet next.

    Remedy: write one of the tokens; `workpacket explain board_token_unknown` is where they are listed.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            token = entry.token
            if token is None or not token.value or entry.lane_token:
                continue
            lanes = [lane.token for lane in document.lanes.named(token.value.replace("_", " "))]
            if lanes:
                message = f"[{token.value}] stands for {' or '.join(lanes)}"
                yield self.fault(token.span, message, hint="write one of them")
                continue
            known = [ACTIVE_TOKEN, *document.lanes.tokens]
            from difflib import get_close_matches

            close = get_close_matches(token.value.upper(), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
            yield self.fault(token.span, f"[{token.value}] stands for no lane", hint=hint)


class BoardTokenMisplaced(BoardRule):
    """Token of the board that belongs to another section

    The section says one lane and the token another; each is believed by somebody.

    Remedy: move the entry to the section of its token, or correct the token.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            home = _home(entry)
            if home and home != entry.section.key and not _in_older_home(entry) and entry.token is not None:
                wanted = " or ".join(_tokens_of(entry.section.key, document.lanes))
                message = f"[{entry.token.value}] stands under {entry.section.title}, where {wanted} belongs"
                yield self.fault(entry.token.span, message)


class BoardTokenOldPlace(BoardRule):
    """Entry in the section where older boards had its lane

    It waits to be merged, or was given up; where it stands, it looks like work in progress or like a verdict.

    Remedy: move it to the section of its lane; `workpacket board sync` does.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            if entry.token is not None and _in_older_home(entry):
                title = _home(entry).title()
                message = f"[{entry.token.value}] stands under {entry.section.title}; its place is now {title}"
                yield self.fault(entry.token.span, message)


def _home(entry: BoardEntry) -> str:
    """The section that the entry's token belongs to; '' if either is unknown."""
    token = entry.lane_token
    if entry.section.known is None or not token:
        return ""
    lane = entry.section.lanes.lane(token)
    return lane.section if lane is not None else _ACTIVE_SECTION


def _in_older_home(entry: BoardEntry) -> bool:
    return entry.section.key in _OLDER_HOMES.get(entry.lane_token, ())


def _tokens_of(key: str, lanes: LaneTable) -> list[str]:
    return [ACTIVE_TOKEN] if key == _ACTIVE_SECTION else [lane.token for lane in lanes.lanes if lane.section == key]


class BoardEntryTwice(BoardRule):
    """Packet stands on the board twice

    One entry is moved and the other stays behind.

    Remedy: delete the entry that is out of date.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        first: dict[tuple[str, bool], BoardEntry] = {}
        for entry in document.entries:
            # In the section Active a packet stands besides its own entry, as a note for other branches.
            key = (entry.wp_id.value.casefold(), entry.lane_token == ACTIVE_TOKEN)
            earlier = first.setdefault(key, entry)
            if earlier is entry:
                continue
            where = f"at line {earlier.line}, under {earlier.section.title or 'no heading'}"
            case = "" if earlier.wp_id.value == entry.wp_id.value else f" as {earlier.wp_id.value}"
            message = f"{entry.wp_id.value} stands already{case} {where}"
            yield self.fault(entry.wp_id.span, message, hint="delete the entry that is out of date")


class BoardEntryRemark(BoardRule):
    """Remark behind the token of an entry

    It is forgotten when the entry moves, and nothing reads it.

    Remedy: say it in the packet.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            rest = entry.rest
            if rest.value and entry.remark and entry.lane_token and entry.lane_token not in _WITH_REMARK:
                yield self.fault(rest.span, "behind the token stands a remark", hint="say it in the packet")


class BoardReasonMissing(BoardRule):
    """Blocked packet without a reason

    Nobody knows what would unblock it, so nobody does it.

    Remedy: write ` - <reason>` behind the token.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            if entry.token is not None and entry.lane_token == _BLOCKED and not entry.remark:
                message = f"the board does not say what blocks {entry.wp_id.value}"
                yield self.fault(entry.token.span, message, hint="write ` - <reason>` behind the token")


class BoardActiveIncomplete(BoardRule):
    """Entry under Active that does not say where the work goes on

    The section is there to tell other branches who works on what and since when it is known.

    Remedy: write ` - branch: <branch> - coder: <name> - last_sync: YYYY-MM-DD` behind the token.
    """

    severity = "warning"

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            if entry.token is None or entry.lane_token != ACTIVE_TOKEN:
                continue
            details = entry.details()
            missing = [name for name in ACTIVE_DETAILS if name not in details or not details[name].value]
            if missing:
                message = f"the entry of {entry.wp_id.value} does not say {' nor '.join(missing)}"
                hint = "write ` - branch: <branch> - coder: <name> - last_sync: YYYY-MM-DD` behind the token"
                yield self.fault(entry.token.span, message, hint=hint)


class BoardSyncDate(BoardRule):
    """A last_sync that is no date

    Nobody can tell how old the news is.

    Remedy: write it as YYYY-MM-DD.
    """

    def check(self, document: TaskBoard) -> Iterator[Fault]:
        for entry in document.entries:
            synced = entry.details().get("last_sync") if entry.lane_token == ACTIVE_TOKEN else None
            problem = date(synced.value) if synced is not None and synced.value else ""
            if synced is not None and problem:
                yield self.fault(synced.span, f"last_sync {synced.value!r} {problem}", hint="write it as YYYY-MM-DD")
