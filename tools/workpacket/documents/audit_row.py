"""The row that the signature audit gets for an approval: for people who look there, a projection of the envelope."""

from __future__ import annotations

from datetime import datetime

from workpacket.documents.signature_audit import SignatureAudit
from workpacket.model.findings import Edit
from workpacket.text.edits import apply_edits
from workpacket.text.source import Source

AUDIT_PATH = ".GOV/roles_shared/SIGNATURE_AUDIT.md"


def with_row(source: Source, token: str, packet: str, spec: str, envelope: str, at: datetime) -> Source:
    """The audit with one row more, the newest first; as it was where it has no table, or the token already."""
    audit = SignatureAudit(source)
    table = next((table for table in audit.tables if table.has_dashes), None)
    if table is None or any(row.signature is not None and row.signature.value == token for row in audit.rows):
        return source
    known = {
        ("signature", "user_signature"): token,
        ("used_by",): "User",
        ("date_time", "date", "time"): f"{at:%Y-%m-%d %H:%M}",
        ("purpose",): f"Refinement approved: {packet}",
        ("master_spec_version", "spec_version"): _cell(spec),
        ("notes", "note", "remarks"): f"signed, envelope {envelope[:12]}",
    }
    cells = {key: value for keys, value in known.items() for key in keys}
    row = "| " + " | ".join(cells.get(column, "") for column in table.columns) + " |"
    _, end = source.line_span(table.header.line + 1)
    return apply_edits(source, [Edit(end, end, source.eol + row)])


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
