"""Rules about the rows of the traceability registry. What they say of files and of the board is compared elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.places import kind_of
from workpacket.documents.registry import RegistryRow, TraceabilityRegistry
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import Section
from workpacket.rules.rule import DocumentRule
from workpacket.text.fault import Fault

_WORK_KINDS = frozenset({"packet", "stub"})
_NO_WORDS = lazy_pattern(r"[\W_]+")


class RegistryRule(DocumentRule[TraceabilityRegistry]):
    kinds = ("registry",)


def full_rows(document: TraceabilityRegistry) -> Iterator[RegistryRow]:
    """The rows that are long enough to be judged cell by cell."""
    return (row for row in document.rows if len(row.row.cells) >= len(row.table.columns))


class RegistryBaseMalformed(RegistryRule):
    """Base id of a row that is none

    Nothing is found under it: neither by a command nor by whoever wants to know which packet is in force.

    Remedy: write the id of the work without a revision, `WP-<phase>-<slug>`.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in full_rows(document):
            base = row.base
            parsed = row.base_id
            if base is None or (parsed is not None and parsed.revision is None):
                continue
            if parsed is not None:
                message = f"{base.value} has a revision; the row is for all revisions of {parsed.base}"
                yield self.fault(base.span, message, hint=f"write {parsed.base}")
            else:
                message = f"{base.value!r} is not a base id" if base.value else "the row has no base id"
                yield self.fault(base.span, message, hint="write it as WP-<phase>-<slug>")


class RegistryBaseTwice(RegistryRule):
    """Base with two rows

    Two packets of the same work may be in force, and which one depends on where the reader stops.

    Remedy: merge the two rows.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        first: dict[str, RegistryRow] = {}
        for row in document.rows:
            base = row.base_id
            if base is None or row.base is None:
                continue
            earlier = first.setdefault(base.base.casefold(), row)
            if earlier is not row:
                message = f"{base.base} has a row already at line {earlier.row.line}"
                yield self.fault(row.base.span, message, hint="merge the two rows")


class RegistryActiveMalformed(RegistryRule):
    """Active Packet that is no path of a packet or stub

    The one thing the registry is there to say cannot be read.

    Remedy: write the path: `.GOV/task_packets/<WP_ID>.md`, of a stub `.GOV/task_packets/stubs/<WP_ID>.md`.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in full_rows(document):
            active = row.active
            if active is None or (row.active_id is not None and kind_of(row.active_path) in _WORK_KINDS):
                continue
            message = f"{active.value!r} is no path of a packet or stub" if active.value else "the row names no packet"
            yield self.fault(active.span, message, hint="write .GOV/task_packets/<WP_ID>.md")


class RegistryActiveOtherBase(RegistryRule):
    """Active Packet that belongs to another base

    Whoever looks for the packet in force works on something else.

    Remedy: correct the path or the base id.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in document.rows:
            base, active = row.base_id, row.active_id
            if base is not None and active is not None and row.active is not None and base.base != active.base:
                message = f"{active} is a packet of {active.base}, not of {base.base}"
                yield self.fault(row.active.span, message, hint="correct the path or the base id")


class RegistryBoardMalformed(RegistryRule):
    """Task Board cell that does not say where the packet stands

    The packet has to be searched on the whole board, and nobody sees when the cell grows old.

    Remedy: write `<Section>: <WP_ID>`; `workpacket registry sync` does.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in full_rows(document):
            cell, active = row.board, row.active_id
            section, named = row.board_place
            if cell is None or (section is not None and named):
                continue
            if section is not None and active is not None:
                # More than the name of the section is somebody's remark, and stays.
                run = document.run(cell) if _says_only(cell.value, section) else None
                edits = [run.replaced_by(f"{section.heading}: {active}")] if run is not None else []
                yield self.fault(cell.span, f"the cell names no packet: {cell.value!r}", edits=edits)
            else:
                shown = repr(cell.value) if cell.value else "nothing"
                message = f"the cell says {shown} and names no section of the board"
                yield self.fault(cell.span, message, hint="write `<Section>: <WP_ID>`")


def _says_only(cell: str, section: Section) -> bool:
    """Whether the cell holds the name of the section, perhaps with marks, and nothing else."""
    return "](" not in cell and _NO_WORDS.sub(" ", cell).strip().casefold() in {
        _NO_WORDS.sub(" ", name).strip().casefold() for name in (section.heading, section.heading.partition("(")[0])
    }


class RegistryBoardOtherPacket(RegistryRule):
    """Task Board cell that speaks of another packet than the active one

    The row was changed when a new revision came, and the cell was forgotten.

    Remedy: write the place of the active packet; `workpacket registry sync` does.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in document.rows:
            active = row.active_id
            _, named = row.board_place
            if row.board is not None and active is not None and named and named != active.text:
                yield self.fault(row.board.span, f"the cell names {named}, the active packet is {active}")


class RegistryNotesContradict(RegistryRule):
    """Notes that contradict the Active Packet

    One of the two was changed and the other was not; both are read as the truth.

    Remedy: correct the note or the path.
    """

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in document.rows:
            active = row.active_id
            if active is None:
                continue
            for _, named in row.noted("active"):
                if named.value.rstrip(".,") != active.text:
                    message = f"the note says active={named.value}, the active packet is {active}"
                    yield self.fault(named.span, message)
            for _, named in row.noted("supersedes"):
                if named.value == active.text:
                    yield self.fault(named.span, f"the row supersedes {active}, which is its active packet")


class RegistrySupersedesNothing(RegistryRule):
    """Note `supersedes` that names no packet

    The earlier packets of the base look as if they were in force.

    Remedy: write `supersedes: <WP_ID>, <WP_ID>`, or delete the note.
    """

    severity = "warning"

    def check(self, document: TraceabilityRegistry) -> Iterator[Fault]:
        for row in document.rows:
            for token in row.tokens:
                if token.kind == "supersedes" and not token.values:
                    yield self.fault(token.text.span, "the note names no packet", hint="write `supersedes: <WP_ID>`")
