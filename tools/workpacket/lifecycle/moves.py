"""The gates that the policy adds: what they say of a move, and the envelopes that the event of the move names.

Moving packets: the event, the status, the board and the registry together.

Whether a command is on the branch of another packet: what it records there would travel with that one's work.

No one on the target branch would see the claim or the verdict before the other packet is merged; and if that never
is, never. The backlog may be worked on from anywhere: `new`, `refine` and `activate` are not asked, nor what only
looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.documents.register_table import board_excerpt, registry_excerpt
from workpacket.lifecycle.added_gates import added_gates, choice_of
from workpacket.lifecycle.drafts import Draft
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import approval_unmet, satisfying
from workpacket.lifecycle.projections import (
    InForce,
    Placement,
    board_edits,
    board_of,
    lane_named,
    registry_edits,
    registry_of,
    status_edits,
)
from workpacket.lifecycle.transitions import Transition, Unmet
from workpacket.model.canonical import Json
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import ARCHIVED, MAY_BE_STUB
from workpacket.model.layout import BOARD_PATH, REGISTRY_PATH
from workpacket.text.source import Source


def added_unmet(facts: Facts, packet: PacketFacts, row: Transition) -> Iterator[Unmet]:
    """What is missing at the added gates of this move; a gate that nobody has asked about is shut."""
    name = packet.id.text
    for gate in added_gates(facts.policy, row.event, row.choice):
        verdict = facts.approvals.get(gate)
        if verdict is None:
            message = f"{row.typed} asks for an approval at the gate {gate}, which a word on the board does not give"
            yield Unmet("hand_edit_not_adoptable", message, f"workpacket {row.command} {name}")
        else:
            yield from approval_unmet(verdict, name)


def added_envelopes(facts: Facts, event: str, choice: str) -> Iterator[str]:
    for gate in added_gates(facts.policy, event, choice):
        yield from satisfying(facts.approvals[gate])


ASKED: Final = frozenset({"claim", "release", "handover", "verdict", "merged", "reopen", "block", "unblock", "abandon"})


def whose_branch(facts: Facts, branch: str) -> str:
    """The packet that was prepared on the branch, or would be by the pattern of the policy; '' if it is nobody's."""
    prepared = (name for name, packet in facts.packets.items() if branch and packet.state.assignment.branch == branch)
    named = (name for name in facts.known if facts.policy.branch_of(name) == branch)
    return next(prepared, None) or next(named, "")


def standing_unmet(facts: Facts, packet: PacketFacts, command: str, branch: str) -> tuple[Unmet, ...]:
    """The refusal of a command about `packet` that is typed on the branch of another one."""
    name, own = packet.id.text, packet.state.assignment.branch
    if command not in ASKED or branch in {"", own, facts.target_branch}:
        return ()
    whose = whose_branch(facts, branch)
    if whose in {"", name}:
        return ()
    message = f"the branch of {whose} is checked out here ({branch}); what is recorded here travels with its work"
    place = own if own and command != "merged" else facts.target_branch
    return (Unmet("other_work_branch", message, f"git switch {place}, then: workpacket {command} {name}"),)


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


def _project_board(draft: Draft, placements: Sequence[Placement]) -> None:
    found, lanes = draft.facts.board, draft.facts.policy.lanes
    if found is None:
        board = board_of(None, BOARD_PATH, lanes)
        draft.put(BOARD_PATH, None, board.source.text)
        draft.edit(board.source, board_edits(board, placements))
        return
    excerpt = board_excerpt(found, [placement.id for placement in placements])
    draft.edit(found, excerpt.whole_edits(board_edits(board_of(excerpt.source, BOARD_PATH, lanes), placements)))


def project_registry(draft: Draft, rows: Sequence[InForce]) -> None:
    found, lanes = draft.facts.registry, draft.facts.policy.lanes
    if found is None:
        registry = registry_of(None, REGISTRY_PATH, lanes)
        draft.put(REGISTRY_PATH, None, registry.source.text)
        draft.edit(registry.source, registry_edits(registry, rows))
        return
    excerpt = registry_excerpt(found, [row.base for row in rows])
    draft.edit(found, excerpt.whole_edits(registry_edits(registry_of(excerpt.source, REGISTRY_PATH, lanes), rows)))


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
        rank = 0 if token in ARCHIVED else 2 if has_packet else 1
        path = packet.stub_path if not has_packet and token in MAY_BE_STUB else packet.packet_path
        found.append((rank, packet.id.revision or 1, InForce(base, name, path, lane)))
    return max(found, key=lambda one: one[:2])[2] if found else None
