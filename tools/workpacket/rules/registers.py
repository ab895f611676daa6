"""Rules about registers: the tables of the traceability registry and of the signature audit, their rows, and the gate
logs of the orchestrator and the validator.

Other modules compare the registry with the files and the board.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from workpacket.documents.document import Text, as_text
from workpacket.documents.gate_logs import GATE_TYPES, GATES, VERDICTS, GateDocument, OrchestratorGates, ValidatorGates
from workpacket.documents.places import kind_of
from workpacket.documents.register_table import RegisterDocument, Table
from workpacket.documents.registry import RegistryRow, SignatureAudit, TraceabilityRegistry
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LaneSection
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, out_of_order, repeated
from workpacket.text.formats import date as text_date
from workpacket.text.formats import date_time, legacy_signature
from workpacket.text.source import BLANK, TextRun

RegisterRule = DocumentRule[RegisterDocument]

GateRule = DocumentRule[GateDocument]


class RegisterTableMissing(RegisterRule):
    """Register without its table

    Rows can be neither found in the register nor added to it.

    Remedy: add the header that the message shows, and a separator line of dashes below it.
    """

    def check(self, document: RegisterDocument) -> Iterator[Problem]:
        if not document.tables:
            message = f"the table with the columns {' and '.join(document.columns[:2])} is missing"
            yield self.fault((0, 0), message, hint=f"its header is {_header(document)}")


class RegisterColumns(RegisterRule):
    """Wrong columns in a register

    Scripts find cells by column number, so they would read the wrong cells.

    Remedy: use the header in the hint.
    """

    severity = "warning"

    def check(self, document: RegisterDocument) -> Iterator[Problem]:
        for table in document.tables:
            names = tuple(cell.value.strip("*` ") for cell in table.header.cells)
            if names != document.columns:
                message = f"the columns are {', '.join(names)}"
                yield self.fault(table.header.span, message, hint=f"write {_header(document)}")


def _header(document: RegisterDocument) -> str:
    return f"| {' | '.join(document.columns)} |"


class RegisterTableTorn(RegisterRule):
    """Broken table in a register

    After the break, the rows are displayed as plain text, and tools that read Markdown do not see them.

    Remedy: `workpacket check --fix` removes blank lines between rows and adds a missing separator line.
    """

    fix = "safe"

    def check(self, document: RegisterDocument) -> Iterator[Problem]:
        for table in document.tables:
            if not table.has_dashes:
                end = table.header.span[1]
                dashes = f"{document.source.eol}|{'---|' * len(table.columns)}"
                edits = [TextRun(document.source.text, end, end).replaced_by(dashes)]
                message = "the separator line of dashes below the header is missing"
                yield self.fault(table.header.span, message, edits=edits, fix_title="add it")
            yield from self._torn_rows(document, table)

    def _torn_rows(self, document: RegisterDocument, table: Table) -> Iterator[Problem]:
        starts = document.source.line_starts
        previous = table.header
        for row in table.rows:
            if row.torn == "blank":
                between = (starts[previous.line], starts[row.line - 1])
                # A comment may be in this place.
                blank = not document.source.text[slice(*between)].strip(BLANK)
                edits = [TextRun(document.source.text, *between).deleted()] if table.has_dashes and blank else []
                message = "a blank line separates this row from the table"
                yield self.fault(row.span, message, edits=edits, fix_title="remove the blank line")
            elif row.torn == "text":
                yield self.fault(
                    row.span, "the text above separates this row from the table", hint="move the row into the table"
                )
            previous = row


class RegisterRowCells(RegisterRule):
    """Row with the wrong number of cells

    Values are read from the wrong columns, and surplus cells are not shown at all.

    Remedy: give the row one cell for each column; write a bar inside a cell as `\\|`.
    """

    def check(self, document: RegisterDocument) -> Iterator[Problem]:
        for table in document.tables:
            for row in table.rows:
                count, wanted = len(row.cells), len(table.columns)
                if count != wanted:
                    # Starts at the first surplus cell; if the row is too short, covers all of it.
                    span = (row.cells[wanted].start, row.span[1]) if count > wanted else row.span
                    yield self.fault(span, f"the row has {count} cells, but the header has {wanted}")


AuditRule = DocumentRule[SignatureAudit]


class AuditSignatureMalformed(AuditRule):
    """Invalid audited signature

    A token shows who approved and when. This one does not, so the row proves nothing.

    Remedy: correct the token if it was mistyped; otherwise delete the row and have the packet approved again.
    """

    def check(self, document: SignatureAudit) -> Iterator[Problem]:
        for row in document.rows:
            token = row.signature
            problem = (legacy_signature(token.value) or _no_year(token)) if token is not None else ""
            if token is not None and problem:
                hint = "a token is a lower-case name followed by DDMMYYYYHHMM"
                yield self.fault(token.span, f"{token.value!r} {problem}", hint=hint)


class AuditSignatureTwice(AuditRule):
    """Signature listed twice for the same packet

    One of the rows is a copy.

    Remedy: delete the copy.
    """

    def check(self, document: SignatureAudit) -> Iterator[Problem]:
        signed = [
            (row.signature, row.row.line, frozenset(name.value for name in row.packets()))
            for row in document.rows
            if row.signature and row.signature.value
        ]
        for (signature, *_), (_, line, _) in repeated(signed, lambda row: (row[0].value, row[2])):
            yield self.fault(signature.span, f"{signature.value} is already on line {line}")


class AuditOrder(AuditRule):
    """Signature newer than the one above it

    The newest row comes first. A row out of order was added later, or has the wrong date.

    Remedy: move the row to the right place.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: SignatureAudit) -> Iterator[Problem]:
        tokens = (row.signature for row in document.rows)
        dated = (token for token in tokens if token is not None and not legacy_signature(token.value))
        for token, oldest in out_of_order(dated, lambda token: -_moment(token)):
            yield self.fault(token.span, f"{token.value} is newer than {oldest.value}, which is above it")


class AuditDateContradicts(AuditRule):
    """Row dated differently from its token

    One of the two dates is wrong, so the row may record an approval on the wrong day.

    Remedy: correct the row's date; only the token was signed.
    """

    severity = "warning"

    def check(self, document: SignatureAudit) -> Iterator[Problem]:
        for row in document.rows:
            token, when = row.signature, row.date_time
            day = _DAY.search(when.value) if when is not None else None
            if when is not None and when.value and day is None and not _ANY_DAY.search(when.value):
                yield self.fault(when.span, f"the row has {when.value!r} instead of a date")
            if token is None or when is None or day is None or legacy_signature(token.value) or _no_year(token):
                continue
            signed = f"{_moment(token):012}"
            made = f"{signed[:4]}-{signed[4:6]}-{signed[6:8]}"
            # A difference of one day is a matter of time zones, unless it is one day to the minute.
            minute = f"{signed[8:10]}:{signed[10:]}"
            most = 0 if minute in when.value else 1
            if text_date(day[0]) or abs((date.fromisoformat(day[0]) - date.fromisoformat(made)).days) > most:
                yield self.fault(when.span, f"the row is dated {day[0]}, but the token is dated {made}")


def _no_year(token: Text) -> str:
    """Return what is wrong with the year of a well-formed token: DDMMYYHHMMSS reads as the year 2504."""
    year = token.value[-8:-4]
    return "" if year[:2] in {"19", "20"} else f"has the year {year}"


def _moment(token: Text) -> int:
    """Return the year, month, day and time of a token that ends in DDMMYYYYHHMM, as one number."""
    digits = token.value[-12:]
    return int(digits[4:8] + digits[2:4] + digits[:2] + digits[8:])


_ANY_DAY = lazy_pattern(r"\d{2}")
_DAY = lazy_pattern(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_WORK_KINDS = frozenset({"packet", "stub"})
_NO_WORDS = lazy_pattern(r"[\W_]+")


RegistryRule = DocumentRule[TraceabilityRegistry]


def full_rows(document: TraceabilityRegistry) -> Iterator[RegistryRow]:
    """Yield the rows that are long enough to be judged cell by cell."""
    return (row for row in document.rows if len(row.row.cells) >= len(row.table.columns))


class RegistryBaseMalformed(RegistryRule):
    """Invalid base id in a row

    Neither commands nor people can use the row to find the current packet.

    Remedy: write the id of the work without a revision, `WP-<phase>-<slug>`.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in full_rows(document):
            base = row.base
            parsed = row.base_id
            if base is None or (parsed is not None and parsed.revision is None):
                continue
            if parsed is not None:
                message = f"{base.value} has a revision, but the row covers all revisions of {parsed.base}"
                yield self.fault(base.span, message, hint=f"write {parsed.base}")
            else:
                message = f"{base.value!r} is not a base id" if base.value else "the row has no base id"
                yield self.fault(base.span, message, hint="write it as WP-<phase>-<slug>")


class RegistryBaseTwice(RegistryRule):
    """Base with two rows

    It is unclear which packet of this base is current.

    Remedy: merge the two rows.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        based = [(row.base_id.base, row.base, row.row.line) for row in document.rows if row.base_id and row.base]
        for (base, text, _), (_, _, line) in repeated(based, lambda row: row[0].casefold()):
            yield self.fault(text.span, f"{base} already has a row on line {line}", hint="merge the two rows")


class RegistryActiveMalformed(RegistryRule):
    """Active Packet that is not the path of a packet or stub

    The main purpose of the registry is to record this path.

    Remedy: write the path: `.GOV/task_packets/<WP_ID>.md`, or `.GOV/task_packets/stubs/<WP_ID>.md` for a stub.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in full_rows(document):
            active = row.active
            if active is None or (row.active_id is not None and kind_of(row.active_path) in _WORK_KINDS):
                continue
            message = (
                (f"{active.value!r} is not the path of a packet or stub")
                if active.value
                else "the row does not name a packet"
            )
            yield self.fault(active.span, message, hint="write .GOV/task_packets/<WP_ID>.md")


class RegistryActiveOtherBase(RegistryRule):
    """Active Packet that belongs to a different base

    People who look for the current packet would work on a different one.

    Remedy: correct the path or the base id.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in document.rows:
            base, active = row.base_id, row.active_id
            if base is not None and active is not None and row.active is not None and base.base != active.base:
                message = f"{active} is a packet of {active.base}, not of {base.base}"
                yield self.fault(row.active.span, message, hint="correct the path or the base id")


class RegistryBoardMalformed(RegistryRule):
    """Task Board cell that does not name a section and packet on the board

    Readers must search the whole board for the packet, and an outdated cell goes unnoticed.

    Remedy: write `<Section>: <WP_ID>`, or run `workpacket board registry sync`.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in full_rows(document):
            cell, active = row.board, row.active_id
            section, named = row.board_place
            if cell is None or (section is not None and named):
                continue
            if section is not None and active is not None:
                # Anything after the name of the section is a person's remark, and is kept.
                run = document.run(cell) if _says_only(cell.value, section) else None
                edits = [run.replaced_by(f"{section.heading}: {active}")] if run is not None else []
                yield self.fault(cell.span, f"the cell does not name a packet: {cell.value!r}", edits=edits)
            else:
                shown = repr(cell.value) if cell.value else "nothing"
                message = f"the cell contains {shown}, which does not name a section of the board"
                known = ", ".join(section.heading.partition(" (")[0] for section in document.lanes.sections)
                yield self.fault(cell.span, message, hint=f"write `<Section>: <WP_ID>`; the sections are {known}")


def _says_only(cell: str, section: LaneSection) -> bool:
    """Whether the cell contains only the name of the section, possibly with punctuation."""
    return "](" not in cell and _NO_WORDS.sub(" ", cell).strip().casefold() in {
        _NO_WORDS.sub(" ", name).strip().casefold() for name in (section.heading, section.heading.partition("(")[0])
    }


class RegistryBoardOtherPacket(RegistryRule):
    """Task Board cell that names a different packet

    The row was changed for a new revision, but the cell was not.

    Remedy: enter the board section and id of the active packet: `workpacket board registry sync`.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in document.rows:
            active = row.active_id
            _, named = row.board_place
            if row.board is not None and active is not None and named and named != active.text:
                yield self.fault(row.board.span, f"the cell names {named}, but the active packet is {active}")


class RegistryNotesContradict(RegistryRule):
    """Notes that contradict the Active Packet

    Readers trust both, but only one of the two was updated.

    Remedy: correct the note or the path.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in document.rows:
            active = row.active_id
            if active is None:
                continue
            for _, named in row.noted("active"):
                if named.value.rstrip(".,") != active.text:
                    message = f"the note has active={named.value}, but the active packet is {active}"
                    yield self.fault(named.span, message)
            for _, named in row.noted("supersedes"):
                if named.value == active.text:
                    yield self.fault(named.span, f"the row supersedes {active}, its own active packet")
                other = WorkPacketId.try_parse(named.value)
                if other is not None and other.base == active.base and (other.revision or 1) > (active.revision or 1):
                    yield self.fault(named.span, f"the row supersedes {other}, which is later than {active}")


class RegistrySupersedesNothing(RegistryRule):
    """Note `supersedes` without a packet

    The base's earlier packets still appear to be current.

    Remedy: write `supersedes: <WP_ID>, <WP_ID>`, or delete the note.
    """

    severity = "warning"

    def check(self, document: TraceabilityRegistry) -> Iterator[Problem]:
        for row in document.rows:
            for token in row.tokens:
                if token.kind == "supersedes" and not token.values:
                    yield self.fault(
                        token.text.span, "the note does not name a packet", hint="write `supersedes: <WP_ID>`"
                    )


class GateIdMalformed(GateRule):
    """Gate log with an invalid packet id

    The gate was not recorded for any packet.

    Remedy: correct the id.
    """

    # Some gates are about the protocol itself.
    severity = "warning"
    strict_severity = "warning"

    def check(self, document: GateDocument) -> Iterator[Problem]:
        seen: set[str] = set()
        for text in document.packet_texts():
            if text.value in seen:
                continue
            seen.add(text.value)
            parsed = WorkPacketId.try_parse(text.value)
            if parsed is None or parsed.kind != "packet":
                message = f"{text.value!r} is not a work packet id"
                yield self.fault(text.span, message, hint="write the id as WP-<phase>-<slug>, with an optional -v<N>")


class GateTimeBackwards(GateRule):
    """Gate event older than the one before it

    Logs are append-only. An event out of order was inserted later, or has the wrong time.

    Remedy: find out what happened, but do not sort the log, because it is evidence.
    """

    severity = "warning"

    def check(self, document: GateDocument) -> Iterator[Problem]:
        for history in document.histories:
            latest: Text | None = None
            for event in history:
                time = event.time
                # Times with the same zone and precision compare as text; others are not compared.
                if time is None or date_time(time.value) or not time.value.endswith("Z"):
                    continue
                if latest is not None and time.value[:19] < latest.value[:19]:
                    yield self.fault(time.span, f"{time.value} is before {latest.value}, the time of a preceding event")
                else:
                    latest = time


class ValidatorGateUnknown(DocumentRule[ValidatorGates]):
    """Unknown validation gate

    Validation depends on the gates that the packet has passed, and this gate does not exist.

    Remedy: correct its name.
    """

    severity = "warning"

    def check(self, document: ValidatorGates) -> Iterator[Problem]:
        for history in document.histories:
            for event in history:
                if event.name is not None and event.name.value not in GATES:
                    message = f"unknown gate {event.name.value!r}"
                    yield self.fault(event.name.span, message, hint=f"one of {', '.join(GATES)}")


class GateValueUnknown(GateRule):
    """Gate log with an unknown gate or verdict

    Tools skip unknown words, so the packet seems to lack the gate or the verdict.

    Remedy: correct the word if it is misspelled.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: GateDocument) -> Iterator[Problem]:
        if isinstance(document, OrchestratorGates):
            for event in document.events:
                if event.name is not None and event.name.value.upper() not in GATE_TYPES:
                    message = f"unknown gate {event.name.value!r}"
                    yield self.fault(event.name.span, message, hint=f"one of {', '.join(GATE_TYPES)}")
        for session in document.sessions if isinstance(document, ValidatorGates) else ():
            status = as_text(session.get("status"))
            if status is not None and status.value == "COMMITTED" and not session.string_at("verdict"):
                yield self.fault(status.span, "the session is COMMITTED, but has no verdict")
        for _, what, text in document.stated():
            if what == "verdict" and text.value.upper() not in VERDICTS:
                message = f"unknown verdict {text.value!r}"
                yield self.fault(text.span, message, hint=f"one of {', '.join(VERDICTS)}")


class GateFileMismatch(DocumentRule[ValidatorGates]):
    """Gate session in a different packet's file

    The packet's validator does not find the session, and the other packet seems to have passed gates that it did not
    pass.

    Remedy: rename the file or correct the id.
    """

    def check(self, document: ValidatorGates) -> Iterator[Problem]:
        for text in document.packet_texts():
            parsed = WorkPacketId.try_parse(text.value)
            if parsed is not None and text.value != document.stem:
                message = f"the session is for {text.value}, but the file is for {document.stem}"
                yield self.fault(text.span, message, hint="rename the file or correct the id")
