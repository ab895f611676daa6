"""Moving packets: the event, the status, the board and the registry together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from workpacket.documents.register_text import BOARD_PATH, REGISTRY_PATH
from workpacket.lifecycle.added_gates import choice_of
from workpacket.model.canonical import Json
from workpacket.model.event_types import FORKED
from workpacket.plans.drafting import Draft
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.plans.passing import added_envelopes
from workpacket.plans.projections import (
    InForce,
    Placement,
    board_edits,
    board_of,
    lane_named,
    registry_edits,
    registry_of,
    status_edits,
)
from workpacket.text.source import Source

_ARCHIVE = frozenset({"SUPERSEDED", "ABANDONED"})
_STUBS = _ARCHIVE | {"STUB"}
_NOWHERE = frozenset({"", FORKED})


def move(
    draft: Draft, packet: PacketFacts, event: str, to: str, data: Mapping[str, Json], attest: Sequence[str] = ()
) -> None:
    """Record the move. `project` draws what follows from it, once, when all moves of the command are recorded."""
    lanes: dict[str, Json] = {"lane_from": packet.lane or None, "lane_to": to}
    choice = choice_of(event, packet.lane, str(data.get("verdict", "")))
    added = added_envelopes(draft.facts, event, choice)
    draft.happened(packet, event, {**lanes, **data}, sorted({*attest, *added}))


def project(
    draft: Draft,
    lanes: Mapping[str, str],
    *,
    remarks: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    packet_files: Mapping[str, Source] | None = None,
) -> None:
    """Make status, board and registry say that these packets are in these lanes.

    `notes` go into the row of the first; `packet_files` are packets that this very command writes.
    """
    facts = draft.facts
    written = packet_files or {}
    table = facts.policy.lanes
    for name, token in lanes.items():
        packet = facts.packets[name]
        if packet.packet is not None and name not in written:
            draft.edit(packet.packet.source, status_edits(packet.packet, lane_named(token, table)))
    _project_board(draft, [Placement(n, lane_named(t, table), (remarks or {}).get(n)) for n, t in lanes.items()])
    bases = dict.fromkeys(facts.packets[name].id.base for name in lanes)
    rows = [row for base in bases if (row := in_force(facts, base, lanes, written)) is not None]
    rows[:1] = [InForce(r.base, r.id, r.path, r.lane, tuple(notes)) for r in rows[:1]]
    project_registry(draft, rows)


def _project_board(draft: Draft, placements: Iterable[Placement]) -> None:
    facts = draft.facts
    board = board_of(facts.board, BOARD_PATH, facts.policy.lanes)
    if facts.board is None:
        draft.put(BOARD_PATH, None, board.source.text)
    draft.edit(board.source, board_edits(board, placements))


def project_registry(draft: Draft, rows: Iterable[InForce]) -> None:
    facts = draft.facts
    registry = registry_of(facts.registry, REGISTRY_PATH, facts.policy.lanes)
    if facts.registry is None:
        draft.put(REGISTRY_PATH, None, registry.source.text)
    draft.edit(registry.source, registry_edits(registry, rows))


def in_force(facts: Facts, base: str, moved: Mapping[str, str], written: Mapping[str, Source]) -> InForce | None:
    """The revision of a base that counts: the highest packet not archived, else the highest stub, else the last.

    `moved` holds the lanes after the command, `written` the packets that it writes. As long as a revision has no log,
    or stands in a lane that the policy no longer has, nobody can say which one counts, and the row stays as it is.
    """
    found: list[tuple[int, int, InForce]] = []
    for packet in facts.packets.values():
        name = packet.id.text
        token = moved.get(name, packet.lane)
        if packet.id.base != base:
            continue
        if not token and (packet.packet_source is not None or packet.stub_source is not None):
            return None
        if token in _NOWHERE:
            continue
        lane = facts.policy.lanes.lane(token)
        if lane is None:
            return None
        has_packet = packet.packet_source is not None or name in written
        if not has_packet and packet.stub_source is None and name not in moved:
            continue
        rank = 0 if token in _ARCHIVE else 2 if has_packet else 1
        path = packet.stub_path if not has_packet and token in _STUBS else packet.packet_path
        found.append((rank, packet.id.revision or 1, InForce(base, name, path, lane)))
    return max(found, key=lambda one: one[:2])[2] if found else None
