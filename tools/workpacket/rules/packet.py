"""Rules about task packets."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.packet import Packet
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, Rule
from workpacket.text.blocks import walk
from workpacket.text.fields import Field, read_fields

_EVIDENCE_PLACE = lazy_pattern(r"`?(?P<path>[^\s`:]+):(?P<line>0*[1-9]\d*)(?:-\d+)?`?")
# How templates say what is to be written.
_EVIDENCE_FORM = "path/to/file:line"
_TODO = lazy_pattern(r"\bTODO\b")


class PacketRule(DocumentRule[Packet]):
    kinds = ("packet",)


class PacketIdMissing(PacketRule):
    """Packet that does not state its id

    It is known by its file name alone, and becomes another packet when the file is renamed.

    Remedy: add `- WP_ID: <WP_ID>` to METADATA.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if placed is not None and document.wp_id is None:
            alone = " (only TASK_ID)" if document.task_id is not None else ""
            yield self.fault(placed.section.title_span, f"METADATA has no WP_ID{alone}")


class PacketStatusUnknown(PacketRule):
    """Status that is none of the lanes

    The board cannot show the packet, and no gate knows what may happen to it.

    Remedy: `workpacket board sync` writes the lane that the log holds.
    """

    def check(self, document: Packet) -> Iterator[Problem]:
        status = document.status
        if (
            status is not None
            and status.value
            and not status.value.startswith("<")
            and not document.lanes.named(status.value)
        ):
            yield self.fault(status.span, f"the status {status.value!r} is none of the lanes")


class PacketStatusOldForm(PacketRule):
    """Status with remarks or marks behind the lane

    Scripts compare the whole line; with a remark behind it, the packet is in no lane for them.

    Remedy: `workpacket board sync` writes the lane alone; keep the remark in the section STATUS_HANDOFF.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        status = document.status
        lanes = document.lanes.named(status.value) if status is not None else ()
        if status is None or not lanes:
            return
        plain = {name for lane in lanes for name in (lane.token, lane.title)} | {"Done"}
        if status.value not in plain:
            message = f"the status is {status.value!r} instead of the lane alone"
            yield self.fault(status.span, message, hint=f"write {' or '.join(lane.title for lane in lanes)}")


class StatusElsewhere(PacketRule):
    """Status line outside of the metadata

    It was true when a report was written. Tools that take the first status line they find take this one.

    Remedy: quote it as text, or delete it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for field in document.preamble_fields:
            if field.name == "status":
                message = "a status stands above METADATA, where only some tools look"
                yield self.fault(field.key_span, message)


class EvidencePlaceMissing(PacketRule):
    """Evidence that names no place

    The claim cannot be checked: neither by a reviewer nor by a tool.

    Remedy: write `EVIDENCE: path/to/file:line`.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for field in _evidence_fields(document):
            shown = field.value.strip("`") == _EVIDENCE_FORM
            if field.name == "evidence" and not field.owned and not shown and not _EVIDENCE_PLACE.search(field.value):
                yield self.fault(field.key_span, "the evidence names no `path:line`")


def _evidence_fields(document: Packet) -> Iterator[Field]:
    """The fields of EVIDENCE_MAPPING, however deep in lists, and those that are lines of their own."""
    placed = document.placed_section("evidence_mapping")
    for section in placed.section.walk() if placed is not None else ():
        lists = [block for block in walk(section.blocks) if block.kind.endswith("_list")]
        paragraphs = [block for block in section.blocks if block.kind == "paragraph"]
        yield from read_fields(document.source, [*paragraphs, *lists])


class TodoField(PacketRule):
    """Field of a packet that the template does not have, and that is still to be filled in

    Somebody meant to write more. Of the fields of the template, `placeholder_left` says so.

    Remedy: fill it in.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for placed in document.placed:
            for field in placed.fields:
                match = _TODO.match(field.value)
                if match and placed.spec.field(field.name) is None:
                    span = (field.value_span[0], field.value_span[0] + match.end())
                    yield self.fault(span, f"{field.key} is still to be filled in")


RULES: tuple[type[Rule], ...] = (
    PacketIdMissing,
    PacketStatusUnknown,
    PacketStatusOldForm,
    StatusElsewhere,
    EvidencePlaceMissing,
    TodoField,
)
