"""Rules about the table of a register, the same for the traceability registry and the signature audit."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.register_table import RegisterDocument, Row, Table
from workpacket.rules.rule import DocumentRule
from workpacket.text.edits import Run
from workpacket.text.fault import Fault


class RegisterRule(DocumentRule[RegisterDocument]):
    kinds = ("registry", "signature_audit")


class RegisterTableMissing(RegisterRule):
    """Register without its table

    Nothing can be looked up in it, and nothing entered.

    Remedy: add the header that the message names, and a line of dashes below it.
    """

    def check(self, document: RegisterDocument) -> Iterator[Fault]:
        if not document.tables:
            message = f"there is no table with the columns {' and '.join(document.columns[:2])}"
            yield self.fault((0, 0), message, hint=f"its header is {_header(document)}")


class RegisterColumns(RegisterRule):
    """Columns of a register other than agreed

    Scripts count columns; with others, they take one for another.

    Remedy: write the header that the hint names.
    """

    severity = "warning"

    def check(self, document: RegisterDocument) -> Iterator[Fault]:
        for table in document.tables:
            names = tuple(cell.value.strip("*` ") for cell in table.header.cells)
            if names != document.columns:
                message = f"the columns are {', '.join(names)}"
                yield self.fault(table.header.span, message, hint=f"write {_header(document)}")


def _header(document: RegisterDocument) -> str:
    return f"| {' | '.join(document.columns)} |"


class RegisterTableTorn(RegisterRule):
    """Table of a register that falls apart

    Below the tear Markdown shows bars and words instead of rows, and tools that read Markdown see no rows at all.

    Remedy: `workpacket check --fix` takes out blank lines between rows and adds a missing line of dashes.
    """

    fix = "safe"

    def check(self, document: RegisterDocument) -> Iterator[Fault]:
        for table in document.tables:
            if not table.has_dashes:
                end = table.header.span[1]
                dashes = f"{document.source.eol}|{'---|' * len(table.columns)}"
                edits = [Run(document.source.text, end, end).replaced_by(dashes)]
                message = "the line of dashes below the header is missing"
                yield self.fault(table.header.span, message, edits=edits, fix_title="add it")
            yield from self._torn_rows(document, table)

    def _torn_rows(self, document: RegisterDocument, table: Table) -> Iterator[Fault]:
        starts = document.source.line_starts
        previous = table.header
        for row in table.rows:
            if row.torn == "blank":
                between = (starts[previous.line], starts[row.line - 1])
                # A comment may stand there.
                blank = not document.source.text[slice(*between)].strip()
                edits = [Run(document.source.text, *between).deleted()] if table.has_dashes and blank else []
                message = "a blank line tears this row off the table"
                yield self.fault(row.span, message, edits=edits, fix_title="take it out")
            elif row.torn == "text":
                yield self.fault(row.span, "text above tears this row off the table", hint="move the row to the table")
            previous = row


class RegisterRowCells(RegisterRule):
    """Row with too few or too many cells

    What stands in a cell is read as what belongs to the next one; a cell too many is not shown at all.

    Remedy: give the row one cell for each column; a bar inside of a cell is written `\\|`.
    """

    def check(self, document: RegisterDocument) -> Iterator[Fault]:
        for table in document.tables:
            for row in table.rows:
                count, wanted = len(row.cells), len(table.columns)
                if count != wanted:
                    yield self.fault(_odd_span(row, wanted), f"the row has {count} cells, the header {wanted}")


def _odd_span(row: Row, wanted: int) -> tuple[int, int]:
    """From the first cell too many; of a row that is too short, all of it."""
    return (row.cells[wanted].start, row.span[1]) if len(row.cells) > wanted else row.span
