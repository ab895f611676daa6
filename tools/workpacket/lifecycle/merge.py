"""What two branches made of one document, brought together: the log decides what it knows, the owners' words all stay.

Most of what differs between two versions of a board is where entries stand, and that is the log's affair. So each
version is first drawn anew from the log that the merge will have. What then still differs is what people wrote, and
an ordinary merge of texts can deal with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from workpacket.documents.packet import Packet
from workpacket.documents.places import kind_of
from workpacket.documents.registry import TraceabilityRegistry
from workpacket.documents.task_board import TaskBoard
from workpacket.lifecycle.board_sync import KEEPING_BOTH, sync
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.projections import status_edits
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import LaneTable
from workpacket.model.layout import BOARD_PATH
from workpacket.text.edits import apply_edits
from workpacket.text.source import Source
from workpacket.value import Value, replace


class Versions(Value):
    """A document as both sides have it, and as it was before they parted."""

    base: Source
    ours: Source
    theirs: Source

    def each(self, change: Callable[[Source], Source]) -> Versions:
        return Versions(change(self.base), change(self.ours), change(self.theirs))


def is_drawn(path: str) -> bool:
    """Whether the log has a say in what stands there."""
    return path in KEEPING_BOTH or kind_of(path) == "packet"


def drawn_alike(versions: Versions, facts: Facts) -> Versions:
    """All three as the log has it. A status of which the log says nothing clear is ours in all of them."""
    if versions.ours.path in KEEPING_BOTH:
        return versions.each(lambda source: drawn(source, facts))
    packet = _packet_of(versions.ours.path, facts)
    lane = facts.policy.lanes.lane(packet.lane) if packet is not None else None
    if lane is not None:
        return versions.each(lambda source: apply_edits(source, status_edits(Packet(source), lane)))
    ours = Packet(versions.ours).status
    return versions.each(lambda source: _with_status(source, ours.value)) if ours is not None else versions


def drawn(register: Source, facts: Facts) -> Source:
    """The board or the registry as it should be, for the packets of these facts. One that is not there stays so."""
    if not register.text:
        return register
    board = register.path == BOARD_PATH
    here = replace(facts, board=register) if board else replace(facts, registry=register)
    plan = sync(here, board=board, registry=not board).plan
    made = (change.new for change in plan.changes if change.path == register.path and change.new is not None)
    return next((Source.from_bytes(register.path, data) for data in made), register)


def named_twice(register: Source, lanes: LaneTable) -> frozenset[str]:
    """The packets of which a merge of texts has left more than one entry, or more than one row of their base."""
    if register.path == BOARD_PATH:
        entries = Counter(entry.wp_id.value for entry in TaskBoard(register, lanes).entries)
        return frozenset(name for name, count in entries.items() if count > 1)
    rows = TraceabilityRegistry(register, lanes).rows
    bases = Counter(row.base_id.base for row in rows if row.base_id is not None)
    active = ((row.base_id, row.active_id) for row in rows)
    return frozenset(of.text for base, of in active if base is not None and of is not None and bases[base.base] > 1)


def _with_status(source: Source, value: str) -> Source:
    packet = Packet(source)
    run = packet.first_line(packet.status)
    return source if run is None else apply_edits(source, [run.replaced_by(value).edit])


def _packet_of(path: str, facts: Facts) -> PacketFacts | None:
    stem = path.removesuffix("/packet.md").rpartition("/")[2].removesuffix(".md")
    parsed = WorkPacketId.try_parse(stem)
    return facts.packets.get(parsed.text) if parsed is not None else None
