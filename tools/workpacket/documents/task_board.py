"""The task board: one section per lane or group of lanes, one line per packet.

Text between the entries belongs to the owner: it is neither judged nor moved. Headings of levels 1 and 2 end a section,
as do deeper ones that name a section of the board; other deeper ones group entries within their section.

One line of a task board as an entry: `- **[WP-1-Parser-v1]** - [READY_FOR_DEV]`, and the variants that people write:

    * [WP-1-Parser-v1] — READY_FOR_DEV
    - [ ] **WP-1-Parser-v1**: [Ready for Dev]
    1. `WP-1-Parser-v1` (ready for dev)

A line is an entry if it is an item that begins with an id, and the id is not the first word of a sentence. An id with
placeholders in braces or brackets (`WP-{phase}-{name}`, `[WP_ID]`) is an example of the form.

A comment that is the id of a packet, `<!-- WP-1-Parser-v1 -->`, marks where its entry goes in a section. With a mark
for each open packet in each section, moves of two packets never change adjacent lines, so git merges them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cache

from workpacket.documents.document import Document, Text, heading_key
from workpacket.documents.register_table import SourceLine, one_line_comments, visible_lines
from workpacket.documents.summary import BoardSummary, EntrySummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN, LaneSection, LaneTable
from workpacket.text.blocks import heading_words
from workpacket.text.formats import date
from workpacket.text.source import Node, Source
from workpacket.value import NamedTuple

Span = tuple[int, int]

# The canonical form; tried first because nearly every line has it.
_CANONICAL = lazy_pattern(r"- \*\*\[(?P<id>WP-[A-Za-z0-9.-]*[A-Za-z0-9])\]\*\* - \[(?P<token>[A-Z_]+)\](?![(\[])")
_BEGINNING = lazy_pattern(
    r"(?P<indent>[ \t]*)(?:[-*+\u2022]|[0-9]{1,9}[.)])[ \t]*(?:\[[ xX]\][ \t]+)?"
    r"(?P<open>[*_~`]*)(?:\\?\[(?P<bracketed>[^\[\]]*?)\\?\](?:\([^()\s]*\))?|(?P<plain>(?i:WP)[-_0-9][-\w.{}<>]*))"
    r"(?P<close>[*_~`]*)"
)
_SEPARATOR = lazy_pattern(r"[ \t]*(?:(?:[-\u2013\u2014:|=>\u2192]+|[*_~]+)(?=[\s\[*_`~(]|\Z)[ \t]*)*")
_BRACKETED_TOKEN = lazy_pattern(r"[*_~`(]*\\?\[(?P<token>[^\[\]]*?)\\?\](?:\([^()\s]*\))?(?!\w)[*_~`)]*")
_EXAMPLE = lazy_pattern(r"WP_?ID\b|[{}<>]|\.\.\.", re.IGNORECASE)
_TOKEN_LIKE = lazy_pattern(r"[A-Z][A-Z_ ]+\Z")
_ID_LIKE = lazy_pattern(r"WP-(?:[0-9]+|[A-Z][A-Z0-9]*)-[A-Za-z0-9]", re.IGNORECASE)
_COMMENT = lazy_pattern(r"<!--.*?-->")
_MARK = lazy_pattern(r"<!-- (?P<id>WP-[A-Za-z0-9.-]+) -->[ \t]*\Z")


class EntrySyntax(NamedTuple):
    """The parts of an entry, as positions within the line. `head` extends to the end of the token. The span of a
    missing part is None.
    """

    head: Span
    id: Span
    token: Span | None
    rest: Span
    canonical: bool


def read_entry(line: str, lanes: LaneTable = BUILT_IN) -> EntrySyntax | None:
    """Return the entry on the line, if there is one."""
    match = _CANONICAL.match(line)
    if match is None:
        return read_any_form(line, lanes)
    end = match.end()
    rest = (end, end) if end == len(line) else _rest(line, end)
    return EntrySyntax((0, end), match.span("id"), match.span("token"), rest, True)


def read_any_form(line: str, lanes: LaneTable = BUILT_IN) -> EntrySyntax | None:
    """Parse a line that is not in canonical form, which takes longer."""
    beginning = _BEGINNING.match(line)
    # Code that opens before the id and does not close after it quotes more than the id: it is an example.
    if beginning is None or beginning["open"].count("`") != beginning["close"].count("`"):
        return None
    group = "plain" if beginning["plain"] is not None else "bracketed"
    start, end = _trimmed(line, *beginning.span(group))
    name = line[start:end]
    if _EXAMPLE.search(name):
        return None
    behind = _behind_separator(line, beginning.end())
    token = _token(line, behind, lanes)
    if token is None:
        separated = behind == len(line) or bool(line[beginning.end() : behind].strip(" \t"))
        if beginning["indent"] or not separated or not _ID_LIKE.match(name):
            return None
        return EntrySyntax((0, beginning.end()), (start, end), None, _rest(line, beginning.end()), False)
    unlinked = group == "bracketed" and bool(name) and "](" not in beginning.group()
    whole_form = unlinked and bool(_TOKEN_LIKE.match(line[slice(*token[0])]))
    # With more indentation, only the full form is an entry: everything else is a note on the entry above.
    if not whole_form and (beginning["indent"] or name[:2].upper() != "WP"):
        return None
    return EntrySyntax((0, token[1]), (start, end), token[0], _rest(line, token[1]), False)


def _behind_separator(line: str, start: int) -> int:
    match = _SEPARATOR.match(line, start)
    return match.end() if match is not None else start


def _token(line: str, start: int, lanes: LaneTable) -> tuple[Span, int] | None:
    """Return the span of the token at `start`, and the end of everything that is part of it."""
    bracketed = _BRACKETED_TOKEN.match(line, start)
    if bracketed is not None:
        return _trimmed(line, *bracketed.span("token")), bracketed.end()
    bare = _bare_token(lanes).match(line, start)
    return (bare.span("token"), bare.end()) if bare is not None else None


@cache
def _bare_token(lanes: LaneTable) -> re.Pattern[str]:
    names = {name for lane in lanes.lanes for name in (lane.token, lane.title)} | {ACTIVE_TOKEN, "Done"}
    words = "|".join(re.escape(name).replace("_", "[_ -]") for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"[*_~`(]*(?P<token>(?i:{words}))(?![\w-])[*_~`)]*")


def _rest(line: str, start: int) -> Span:
    """Return the text after the head, without separators."""
    return _trimmed(line, _behind_separator(line, start), len(line))


def _trimmed(line: str, start: int, end: int) -> Span:
    while start < end and line[start] in " \t":
        start += 1
    while end > start and line[end - 1] in " \t":
        end -= 1
    return start, end


_HEADING = lazy_pattern(r" {0,3}(?P<marks>#{1,6})(?P<blank>[ \t]*)")
_RULE = lazy_pattern(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_DEEPEST_END = 2
_DETAIL = lazy_pattern(r"(?:^|(?<=[\s;,|(]))(?P<key>branch|coder|last_sync)[*_`]*[ \t]*:[*_`]*[ \t]*", re.IGNORECASE)

ACTIVE_DETAILS = ("branch", "coder", "last_sync")


def mark_line(wp_id: str) -> str:
    return f"<!-- {wp_id} -->"


class BoardMark(NamedTuple):
    """A line that marks where a packet's entry goes."""

    id: str
    line: SourceLine

    @property
    def end(self) -> int:
        return self.line.start + len(self.line.text)


class BoardEntry:
    """One entry. `head` extends from the list marker to the end of the token, and `rest` is the text after it. `span`
    is the whole line without its newline: exactly what a move removes.
    """

    __slots__ = ("_lane_token", "_line", "_syntax", "section")

    def __init__(self, line: SourceLine, syntax: EntrySyntax, section: BoardSection) -> None:
        self._line = line
        self._syntax = syntax
        self._lane_token: str | None = None
        self.section = section

    def __repr__(self) -> str:
        return f"BoardEntry({self.wp_id.value!r}, line {self.line})"

    @property
    def line(self) -> int:
        return self._line.number

    @property
    def span(self) -> tuple[int, int]:
        return self._line.start, self._line.start + len(self._line.text)

    @property
    def head(self) -> tuple[int, int]:
        start, end = self._syntax.head
        return self._line.start + start, self._line.start + end

    @property
    def is_canonical(self) -> bool:
        """Whether id and token are in canonical form."""
        return self._syntax.canonical

    @property
    def wp_id(self) -> Text:
        return _text(self._line, self._syntax.id)

    @property
    def token(self) -> Text | None:
        return _text(self._line, self._syntax.token) if self._syntax.token is not None else None

    @property
    def rest(self) -> Text:
        return _text(self._line, self._syntax.rest)

    @property
    def lane_token(self) -> str:
        """Return the canonical token for a token as written; '' if it is invalid or ambiguous."""
        if self._lane_token is None:
            self._lane_token = _lane_token(self.token, self.section.lanes)
        return self._lane_token

    @property
    def remark(self) -> str:
        """Return the text after the token, without HTML comments, which are invisible on a rendered board."""
        return _COMMENT.sub("", self.rest.value).strip()

    def details(self) -> dict[str, Text]:
        """Return the parts `branch: x - coder: y - last_sync: z` of an entry in the Active section."""
        found: dict[str, Text] = {}
        rest = self.rest
        value = rest.value
        matches = list(_DETAIL.finditer(value))
        ends = [match.start() for match in matches] + [len(value)]
        for match, end in zip(matches, ends[1:], strict=True):
            text = value[match.end() : end].rstrip(" \t-;,|)")
            start = rest.start + match.end()
            found.setdefault(match["key"].lower(), Text(text, start, start + len(text)))
        return found


class BoardSection:
    """A heading and the entries below it. `known` is the board section that the heading names, if any. `insert_at` is
    where a new entry goes: the start of a line, or the end of a file without a final newline. It is before the first
    mark, so that it is not adjacent to lines that other packets insert after their marks.
    """

    __slots__ = ("entries", "insert_at", "known", "lanes", "level", "line", "marks", "spaced", "title", "title_span")

    def __init__(self, line: SourceLine, level: int, words: tuple[int, int], lanes: LaneTable, *, spaced: bool) -> None:
        self.lanes = lanes
        self.line = line.number
        self.level = level
        self.spaced = spaced
        self.title = line.text[words[0] : words[1]]
        self.title_span = (line.start + words[0], line.start + words[1])
        self.known = section_named(self.title, lanes)
        self.entries: list[BoardEntry] = []
        self.marks: list[BoardMark] = []
        self.insert_at = self.title_span[0]

    def __repr__(self) -> str:
        return f"BoardSection({self.title!r}, line {self.line})"

    @property
    def key(self) -> str:
        """Return the key of the board section, or '' for any other heading."""
        return self.known.key if self.known is not None else ""


class TaskBoard(Document):
    kind = "task_board"

    def __init__(self, source: Source, lanes: LaneTable = BUILT_IN) -> None:
        super().__init__(source, None)
        self.lanes = lanes
        # The first section has no heading: it contains entries above the first heading.
        self.headings: list[BoardSection] = [BoardSection(SourceLine(1, 0, ""), 0, (0, 0), lanes, spaced=True)]
        self.entries: list[BoardEntry] = []
        self._read()
        self.root = self._tree()

    @property
    def sections(self) -> list[BoardSection]:
        """Return the sections of the board, in file order."""
        return [heading for heading in self.headings if heading.known is not None]

    def section(self, key: str) -> BoardSection | None:
        return next((section for section in self.headings if section.key == key), None)

    def _read(self) -> None:
        current = self.headings[0]
        starts = [*self.source.line_starts, len(self.source.text)]
        for line in visible_lines(self.source):
            text = line.text
            body = text.lstrip(" \t")
            if not body:
                continue
            heading = _heading(line, self.lanes) if body[0] == "#" else None
            if heading is not None and (heading.level <= _DEEPEST_END or heading.known is not None):
                current = heading
                self.headings.append(heading)
                current.insert_at = starts[line.number]
                continue
            syntax = read_entry(text, self.lanes) if body[0] in _ENTRY_MARKS else None
            if syntax is not None:
                entry = BoardEntry(line, syntax, current)
                current.entries.append(entry)
                self.entries.append(entry)
                current.insert_at = starts[line.number]
            elif not current.entries and not _RULE.match(text):
                # A new entry in an empty section goes after people's text about the section.
                current.insert_at = starts[line.number]
        if "<!-- WP-" in self.source.text:
            self._read_marks()

    def _read_marks(self) -> None:
        first_lines = [heading.line for heading in self.headings]
        for line in one_line_comments(self.source):
            match = _MARK.match(line.text)
            if match is None:
                continue
            section = self.headings[bisect_right(first_lines, line.number) - 1]
            if not section.marks:
                section.insert_at = line.start
            section.marks.append(BoardMark(match["id"], line))

    def _tree(self) -> Node:
        shown = [heading for heading in self.headings if heading.known is not None or heading.entries]
        sections: list[Node] = []
        for heading in shown:
            entries = Node([_entry_node(entry) for entry in heading.entries], *heading.title_span)
            members = {"heading": Node(heading.title, *heading.title_span), "entries": entries}
            sections.append(Node(members, *heading.title_span))
        whole = (0, len(self.source.text))
        return Node({"sections": Node(sections, *whole)}, *whole, {"sections": (0, 0)})

    def days(self) -> Iterator[tuple[str, Text]]:
        synced = (entry.details().get("last_sync") for entry in self.entries if entry.lane_token == ACTIVE_TOKEN)
        yield from (("last_sync", text) for text in synced if text is not None and not date(text.value))

    def summary(self) -> Mapping[str, object]:
        summary: BoardSummary = {
            "entries": list(self._entry_summaries()),
            "sections": [
                (section.key, section.line, section.title_span[0] - self.source.line_starts[section.line - 1] + 1)
                for section in self.sections
            ],
        }
        return summary

    def _entry_summaries(self) -> Iterator[EntrySummary]:
        """Yield only entries with a valid id; rules for single documents report the others."""
        for entry in self.entries:
            parsed = WorkPacketId.try_parse(entry.wp_id.value)
            if parsed is None or parsed.kind != "packet":
                continue
            start = entry.span[0] - 1
            wp_id = entry.wp_id
            token = entry.token or wp_id
            yield {
                "id": parsed.text,
                "base": parsed.base,
                "token": entry.lane_token,
                "section": entry.section.key,
                "place": (entry.line, wp_id.start - start),
                "token_place": (entry.line, token.start - start),
            }


_ENTRY_MARKS = frozenset("-*+\u20220123456789")


@cache
def _sections_by_heading(lanes: LaneTable) -> dict[str, LaneSection]:
    return {heading_key(section.heading): section for section in lanes.sections}


def section_named(title: str, lanes: LaneTable) -> LaneSection | None:
    """Return the board section that a heading names, ignoring case, remarks and decoration."""
    return _sections_by_heading(lanes).get(heading_key(title))


def _lane_token(token: Text | None, lanes: LaneTable) -> str:
    written = token.value if token is not None else ""
    if lanes.lane(written) is not None:
        return written
    if written.upper() == ACTIVE_TOKEN:
        return ACTIVE_TOKEN
    named = lanes.named(written.replace("_", " "))
    return named[0].token if len(named) == 1 else ""


def _heading(line: SourceLine, lanes: LaneTable) -> BoardSection | None:
    match = _HEADING.match(line.text)
    if match is None:
        return None
    words = heading_words(line.text, match.end(), len(line.text))
    spaced = bool(match["blank"]) or words[0] == words[1]
    section = BoardSection(line, len(match["marks"]), words, lanes, spaced=spaced)
    # Without a space, only we read it as a heading, and only if it names a section.
    return section if spaced or section.known is not None else None


def _text(line: SourceLine, span: tuple[int, int]) -> Text:
    return Text(line.text[span[0] : span[1]], line.start + span[0], line.start + span[1])


def _entry_node(entry: BoardEntry) -> Node:
    wp_id, token, rest = entry.wp_id, entry.token, entry.rest
    members = {"wp_id": Node(wp_id.value, wp_id.start, wp_id.end)}
    if token is not None:
        members["token"] = Node(token.value, token.start, token.end)
    if rest.value:
        members["remark"] = Node(rest.value, rest.start, rest.end)
    return Node(members, *entry.span)
