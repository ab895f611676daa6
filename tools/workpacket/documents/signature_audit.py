"""The signature audit: one row for each signature token that a person gave, newest first.

`| Signature | Used By | Date/Time | Purpose | Master Spec Version | Notes |`. `Used By` names a role; the purpose or
the notes name the packet. Approvals also get a row here, a projection of the envelope for people who look here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from workpacket.documents.document import Text
from workpacket.documents.register_table import RegisterDocument, Row, Table, plain, read_tables, rows_of
from workpacket.documents.summary import SignatureRow, SignatureSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import find_ids
from workpacket.problem import Edit
from workpacket.text.edits import apply_edits
from workpacket.text.node import Node
from workpacket.text.source import Source

_KEYS = (
    ("signature", "user_signature"),
    ("used_by",),
    ("date_time", "date", "time"),
    ("purpose",),
    ("master_spec_version", "spec_version"),
    ("notes", "note", "remarks"),
)
_NAMES = ("signature", "used_by", "date_time", "purpose", "spec_version", "notes")
_ROW_START = lazy_pattern(r"[`*]*[a-z]+[0-9]{12}\b")


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
        """The packets that the row names, each once."""
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
        self.tables = read_tables(source, _KEYS[:2], _ROW_START)
        self.rows = rows_of(self.tables, _KEYS, AuditRow)
        self.root = self.values_of([_row_node(row) for row in self.rows])

    def summary(self) -> Mapping[str, object]:
        summary: SignatureSummary = {"rows": list(self._row_summaries()), "has_table": bool(self.tables)}
        return summary

    def _row_summaries(self) -> Iterator[SignatureRow]:
        for row in self.rows:
            if row.signature is not None:
                packets = [self.mention(packet) for packet in row.packets()]
                yield {"signature": self.mention(row.signature), "packets": packets}


def _row_node(row: AuditRow) -> Node:
    cells = (row.signature, row.used_by, row.date_time, row.purpose, row.spec_version, row.notes)
    members = {
        name: Node(cell.value, cell.start, cell.end)
        for name, cell in zip(_NAMES, cells, strict=True)
        if cell is not None
    }
    return Node(members, *row.row.span)


def with_row(source: Source, token: str, packet: str, spec: str, envelope: str, at: datetime) -> Source:
    """The audit with one more row at the top; unchanged if it has no table or already has the token."""
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
