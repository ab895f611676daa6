"""The traceability registry: for each base id, the one packet that is current.

`| Base WP ID | Active Packet | Task Board | Notes |`, one row per base. Notes are tokens separated by `;`:
`active=<id>`, `activated from stub <path>`, `supersedes: <id>, <id>`, and anything else as free text.

The signature audit: one row for each signature token that a person gave, newest first.

`| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |`. `Used By` contains a role; the purpose or
the notes name the packet. Approvals also get a row, as a projection of the envelope for people who read the audit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

from workpacket.documents.document import Text, stem_of, value_of
from workpacket.documents.register_table import RegisterDocument, Row, Table, plain, read_tables, rows_of
from workpacket.documents.summary import RegistrySummary, RowSummary, SignatureRow, SignatureSummary
from workpacket.documents.task_board import section_named
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids
from workpacket.model.lanes import BUILT_IN, LaneSection, LaneTable
from workpacket.problem import Edit
from workpacket.text.source import Node, Source, apply_edits
from workpacket.value import NamedTuple

_KEYS = (
    ("base_wp_id", "base_wp", "base_id", "base"),
    ("active_packet", "active_task_packet", "active"),
    ("task_board", "board"),
    ("notes", "note", "remarks"),
)
_ROW_START = lazy_pattern(r"[`*\[]*WP-")
_ACTIVE = lazy_pattern(r"active[ \t]*=[ \t]*`?(?P<id>[^\s`()]+)", re.IGNORECASE)
_SUPERSEDES = lazy_pattern(r"supersedes?[ \t]*[:=](?P<ids>.*)", re.IGNORECASE | re.DOTALL)
_FROM_STUB = lazy_pattern(r"activated from stub[ \t]*:?[ \t]*`?(?P<path>[^\s`]+)", re.IGNORECASE)

_AUDIT_KEYS = (
    ("signature", "user_signature"),
    ("used_by",),
    ("date_time", "date", "time"),
    ("purpose",),
    ("master_spec_version", "spec_version"),
    ("notes", "note", "remarks"),
)
_NAMES = ("signature", "used_by", "date_time", "purpose", "spec_version", "notes")
_AUDIT_ROW_START = lazy_pattern(r"[`*]*[a-z]+[0-9]{12}\b")


class Token:
    """One token in the notes. `kind` is `active`, `supersedes` or `from_stub`, and '' for free text."""

    __slots__ = ("kind", "text", "values")

    def __init__(self, text: Text) -> None:
        self.text = text
        self.kind, self.values = _meaning(text)


class _Parsed(NamedTuple):
    base: WorkPacketId | None
    active: WorkPacketId | None
    section: LaneSection | None
    board_id: str


class RegistryRow:
    """One row. A cell is None if the row is too short."""

    __slots__ = ("_lanes", "_parsed", "_tokens", "active", "base", "board", "notes", "row", "table")

    def __init__(self, row: Row, table: Table, indexes: tuple[int, ...], lanes: LaneTable = BUILT_IN) -> None:
        self._lanes = lanes
        self.row = row
        self.table = table
        cells = [row.cell(index) for index in indexes]
        self.base, self.active, self.board, self.notes = (plain(cell) if cell is not None else None for cell in cells)
        # Computed on first use, then kept: every rule needs it.
        self._parsed: _Parsed | None = None
        self._tokens: list[Token] | None = None

    def __repr__(self) -> str:
        return f"RegistryRow(line {self.row.line})"

    @property
    def base_id(self) -> WorkPacketId | None:
        return self._values.base

    @property
    def active_id(self) -> WorkPacketId | None:
        """Return the packet id in the path, if there is one."""
        return self._values.active

    @property
    def board_place(self) -> tuple[LaneSection | None, str]:
        """Return the section and the id in the Task Board cell; None and '' if they are missing."""
        return self._values.section, self._values.board_id

    @property
    def _values(self) -> _Parsed:
        if self._parsed is None:
            base, active, board = map(value_of, (self.base, self.active, self.board))
            active_id = _packet_id(stem_of(active)) if active.endswith(".md") else None
            self._parsed = _Parsed(_packet_id(base), active_id, *_board_place(board, self._lanes))
        return self._parsed

    @property
    def active_path(self) -> str:
        """Return the path normalized for comparison."""
        return self.active.value.removeprefix("./") if self.active is not None else ""

    @property
    def tokens(self) -> list[Token]:
        """Return the notes as tokens."""
        if self._tokens is None:
            self._tokens = _tokens(self.notes) if self.notes is not None else []
        return self._tokens

    def noted(self, kind: str) -> Iterator[tuple[Token, Text]]:
        """Yield the values of all tokens of one kind."""
        for token in self.tokens:
            if token.kind == kind:
                yield from ((token, value) for value in token.values)


class TraceabilityRegistry(RegisterDocument):
    kind = "registry"
    columns = ("Base WP ID", "Active Packet", "Task Board", "Notes")

    def __init__(self, source: Source, lanes: LaneTable = BUILT_IN) -> None:
        super().__init__(source)
        self.lanes = lanes
        self.tables = read_tables(source, _KEYS[:2], _ROW_START)
        self.rows = rows_of(self.tables, _KEYS, partial(RegistryRow, lanes=lanes))
        self.root = self.values_of([_row_node(row) for row in self.rows])

    def summary(self) -> Mapping[str, object]:
        end = self.tables[-1].end if self.tables else 1
        summary: RegistrySummary = {"rows": [self._row_summary(row) for row in self.rows], "end_place": (end, 1)}
        return summary

    def _row_summary(self, row: RegistryRow) -> RowSummary:
        section, board_id = row.board_place
        base, active = row.base_id, row.active_id
        # Columns are counted within the line, which all cells share.
        line = row.row.line
        before = self.source.line_starts[line - 1] - 1

        def place(cell: Text | None) -> tuple[int, int]:
            return (line, cell.start - before if cell is not None else 1)

        return {
            "base": base.base if base is not None else "",
            "active_path": row.active_path,
            "active": active.text if active is not None else "",
            "board_section": section.key if section is not None else "",
            "board_id": board_id,
            "supersedes": [value.value for _, value in row.noted("supersedes")],
            "from_stub": [value.value for _, value in row.noted("from_stub")],
            "place": place(row.base),
            "active_place": place(row.active),
            "board_place": place(row.board),
            "notes_place": place(row.notes),
        }


def _packet_id(text: str) -> WorkPacketId | None:
    parsed = WorkPacketId.try_parse(text)
    return parsed if parsed is not None and parsed.kind == "packet" else None


def _board_place(cell: str, lanes: LaneTable) -> tuple[LaneSection | None, str]:
    head, colon, tail = cell.rpartition(":")
    section = section_named(head if colon else cell, lanes)
    rest = (tail if colon else cell).strip()
    whole = _packet_id(rest)
    return section, whole.text if whole is not None else next((str(name) for name, _, _ in find_ids(rest)), "")


def _tokens(notes: Text) -> list[Token]:
    tokens: list[Token] = []
    start = notes.start
    for part in notes.value.split(";"):
        text = part.strip()
        if text:
            first = start + len(part) - len(part.lstrip())
            tokens.append(Token(Text(text, first, first + len(text))))
        start += len(part) + 1
    return tokens


def _meaning(text: Text) -> tuple[str, list[Text]]:
    """Return the kind of token, and the ids in it. A stub is given by its path, whose last part is the id."""
    if (match := _ACTIVE.match(text.value)) is not None:
        start, end = match.span("id")
        return "active", [Text(match["id"], text.start + start, text.start + end)]
    if (match := _SUPERSEDES.match(text.value)) is not None:
        return "supersedes", _ids_in(text, *match.span("ids"))
    if (match := _FROM_STUB.match(text.value)) is not None:
        return "from_stub", _ids_in(text, *match.span("path"))
    return "", []


def _ids_in(text: Text, first: int, last: int) -> list[Text]:
    """Return the ids of a list such as `WP-1-Parser, WP-1-Parser-v2 (never built)`."""
    found: list[Text] = []
    start = first
    for part in text.value[first:last].split(","):
        name = part.strip()
        # Searching prose takes ten times as long as reading an id, and nearly every part is an id.
        if _packet_id(name) is not None:
            spans = [(part.index(name), name)]
        else:
            spans = [(at, str(named)) for named, at, _ in find_ids(part)]
        found += [Text(named, text.start + start + at, text.start + start + at + len(named)) for at, named in spans]
        start += len(part) + 1
    return found


def _row_node(row: RegistryRow) -> Node:
    cells = {"base_wp_id": row.base, "active_packet": row.active, "task_board": row.board, "notes": row.notes}
    members = {name: Node(cell.value, cell.start, cell.end) for name, cell in cells.items() if cell is not None}
    return Node(members, *row.row.span)


class AuditRow:
    """One row. A cell is None if the row is too short."""

    __slots__ = ("date_time", "notes", "purpose", "row", "signature", "spec_version", "table", "used_by")

    def __init__(self, row: Row, table: Table, indexes: tuple[int, ...]) -> None:
        self.row = row
        self.table = table
        cells = [row.cell(index) for index in indexes]
        self.signature, self.used_by, self.date_time, self.purpose, self.spec_version, self.notes = (
            plain(cell) if cell is not None else None for cell in cells
        )

    def __repr__(self) -> str:
        return f"AuditRow(line {self.row.line})"

    def packets(self) -> list[Text]:
        """Return the packets in the row, each once."""
        found: dict[str, Text] = {}
        for cell in (self.used_by, self.purpose, self.notes):
            for name, start, end in find_ids(cell.value) if cell is not None else ():
                if cell is not None and name.kind == "packet":
                    found.setdefault(str(name), Text(str(name), cell.start + start, cell.start + end))
        return list(found.values())


class SignatureAudit(RegisterDocument):
    kind = "signature_audit"
    columns = ("Signature", "Used By", "Date/Time", "Purpose", "Master Spec Version", "Notes")

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.tables = read_tables(source, _AUDIT_KEYS[:2], _AUDIT_ROW_START)
        self.rows = rows_of(self.tables, _AUDIT_KEYS, AuditRow)
        self.root = self.values_of([_audit_row_node(row) for row in self.rows])

    def summary(self) -> Mapping[str, object]:
        summary: SignatureSummary = {"rows": list(self._row_summaries()), "has_table": bool(self.tables)}
        return summary

    def _row_summaries(self) -> Iterator[SignatureRow]:
        for row in self.rows:
            if row.signature is not None:
                packets = [self.mention(packet) for packet in row.packets()]
                yield {"signature": self.mention(row.signature), "packets": packets}


def _audit_row_node(row: AuditRow) -> Node:
    cells = (row.signature, row.used_by, row.date_time, row.purpose, row.spec_version, row.notes)
    members = {
        name: Node(cell.value, cell.start, cell.end)
        for name, cell in zip(_NAMES, cells, strict=True)
        if cell is not None
    }
    return Node(members, *row.row.span)


def with_row(source: Source, token: str, packet: str, spec: str, envelope: str, at: datetime) -> Source:
    """Return the audit with one more row at the top, or unchanged if it has no table or already has the token."""
    audit = SignatureAudit(source)
    table = next((table for table in audit.tables if table.has_dashes), None)
    if table is None or any(row.signature is not None and row.signature.value == token for row in audit.rows):
        return source
    known = {
        ("signature", "user_signature"): token,
        ("used_by",): "User",
        ("date_time", "date", "time"): f"{at:%Y-%m-%d %H:%M}",
        ("purpose",): f"Refinement approved: {packet}",
        ("master_spec_version", "spec_version"): " ".join(spec.replace("|", "/").split()),
        ("notes", "note", "remarks"): f"signed, envelope {envelope[:12]}",
    }
    cells = {key: value for keys, value in known.items() for key in keys}
    row = "| " + " | ".join(cells.get(column, "") for column in table.columns) + " |"
    _, end = source.line_span(table.header.line + 1)
    return apply_edits(source, [Edit(end, end, source.eol + row)])
