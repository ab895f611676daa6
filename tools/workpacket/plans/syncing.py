"""Board and registry drawn anew from the logs, and hand edits of the board taken over as moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from workpacket.documents.register_text import BOARD_PATH
from workpacket.documents.task_board import TaskBoard
from workpacket.lifecycle.moving import forward_command, lane_retired
from workpacket.lifecycle.transitions import ADVANCE, leaving
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import ACTIVE_TOKEN
from workpacket.plans.conflicts import without_conflicts
from workpacket.plans.drafting import Answer, Draft, Planned, Refused
from workpacket.plans.facts import Facts, PacketFacts
from workpacket.plans.moving import in_force, project_registry
from workpacket.plans.projections import (
    Placement,
    board_edits,
    board_of,
    lane_named,
    missing_sections,
    status_edits,
)
from workpacket.plans.turning import abandon, advance, block, reopen, unblock
from workpacket.plans.working import claim, release
from workpacket.text.source import Source
from workpacket.value import replace


def sync(facts: Facts, *, board: bool = True, registry: bool = True) -> Planned:
    """Make the projections say what the logs say.

    Packets without a log, forked ones, those whose log does not hold together, and those in a lane that the policy no
    longer has, are left as they are.
    """
    command = "board sync" if board else "registry sync"
    found, facts = facts, _settled(facts, board=board, registry=registry)
    draft = Draft(command, facts, during_merge=True)
    for before, after in _sources(found, facts):
        draft.put(before.path, before, after.text)
    lanes, packets = facts.policy.lanes, sorted(facts.packets.items())
    sound = [(name, packet) for name, packet in packets if packet.state.sound]
    stand = {name: packet for name, packet in sound if packet.lane not in {"", FORKED}}
    known = {name: packet for name, packet in stand.items() if lanes.lane(packet.lane) is not None}
    if board:
        for packet in known.values():
            if packet.packet is not None:
                draft.edit(packet.packet.source, status_edits(packet.packet, lane_named(packet.lane, lanes)))
        _sync_board(draft, known)
    if registry:
        bases = dict.fromkeys(packet.id.base for packet in known.values())
        rows = [row for base in bases if (row := in_force(facts, base, {}, {})) is not None]
        project_registry(draft, rows)
    plan = draft.plan()
    changed = [change.path for change in plan.changes]
    said = f"{len(changed)} files drawn anew: {', '.join(changed)}" if changed else "everything says what the log says"
    damaged = [name for name, packet in packets if packet.lane != FORKED and not packet.state.sound]
    left = [f"{name} is left as it is: its log does not hold together" for name in damaged]
    left += [f"left as it is: {lane_retired(name, stand[name].lane).message}" for name in stand.keys() - known.keys()]
    return Planned(plan, said, "workpacket check", {"changed": list(changed)}, tuple(sorted(left)))


def _settled(facts: Facts, *, board: bool, registry: bool) -> Facts:
    """The facts without the conflicts of a merge that the log settles, in the documents that are to be drawn."""
    sources = {name: packet.packet_source for name, packet in facts.packets.items() if board}
    settled = {
        name: replace(facts.packets[name], packet_source=after)
        for name, before in sources.items()
        if before is not None and (after := without_conflicts(before)) is not before
    }
    return replace(
        facts,
        packets={**facts.packets, **settled} if settled else facts.packets,
        board=without_conflicts(facts.board) if board and facts.board is not None else facts.board,
        registry=without_conflicts(facts.registry) if registry and facts.registry is not None else facts.registry,
    )


def _sources(found: Facts, settled: Facts) -> Iterator[tuple[Source, Source]]:
    """The documents from which conflicts were taken, before and after."""
    pairs = [(found.board, settled.board), (found.registry, settled.registry)]
    pairs += [(found.packets[name].packet_source, packet.packet_source) for name, packet in settled.packets.items()]
    for before, after in pairs:
        if before is not None and after is not None and before is not after:
            yield before, after


def _sync_board(draft: Draft, known: dict[str, PacketFacts]) -> None:
    facts = draft.facts
    board = board_of(facts.board, BOARD_PATH, facts.policy.lanes)
    if facts.board is None:
        draft.put(BOARD_PATH, None, board.source.text)
    draft.edit(board.source, missing_sections(board))
    whole = draft.file(BOARD_PATH, facts.board) or board.source
    placements = [
        Placement(name, lane_named(packet.lane, board.lanes), _remark(packet))
        for name, packet in known.items()
        if not (packet.lane in {"SUPERSEDED", "ABANDONED"} and _is_off_board(whole, name))
    ]
    draft.edit(board.source, board_edits(TaskBoard(whole, board.lanes), placements))


def _is_off_board(board: Source, name: str) -> bool:
    """Whether the board does not name it at all: what is archived need not come back to it."""
    return f"[{name}]" not in board.text


def _remark(packet: PacketFacts) -> str | None:
    """What the entry has to say: of a blocked packet, why."""
    if packet.lane != "BLOCKED" or not packet.state.latest_moves:
        return None
    reason = packet.state.latest_moves[-1].text("reason")
    return " ".join(reason.split()) if reason else None


def hand_edits(facts: Facts) -> Iterator[tuple[PacketFacts, str, int]]:
    """The packets whose entry says another lane than the log: packet, that lane, line."""
    lanes = facts.policy.lanes
    board = TaskBoard(facts.board, lanes) if facts.board is not None else None
    seen: set[str] = set()
    for entry in board.entries if board is not None else ():
        packet = facts.packets.get(entry.wp_id.value)
        token = entry.lane_token
        if packet is None or token == ACTIVE_TOKEN or entry.wp_id.value in seen or lanes.lane(token) is None:
            continue
        seen.add(entry.wp_id.value)
        if packet.lane not in {"", FORKED, token}:
            yield packet, token, entry.line


def move_to(facts: Facts, packet: PacketFacts, lane: str, *, reason: str, branch: str = "") -> Answer:
    """The move that leads to `lane`, if it needs nothing but a reason; else the command that it needs."""
    name = packet.id.text
    lanes = facts.policy.lanes
    rows = [row for row in leaving(packet.lane, lanes) if row.target == lane]
    commands = [row.command for row in rows]
    if packet.lane == "BLOCKED" and lane == packet.state.came_from:
        return unblock(facts, packet, reason=reason)
    moves: Mapping[str, Callable[[], Answer]] = {
        "claim": lambda: claim(facts, packet, branch=branch, worktree=""),
        "release": lambda: release(facts, packet, reason=reason),
        "block": lambda: block(facts, packet, reason=reason, until="what the reason names is settled"),
        "abandon": lambda: abandon(facts, packet, reason=reason),
        "reopen": lambda: reopen(facts, packet, reason=reason),
        ADVANCE: lambda: advance(facts, packet, reason=reason),
    }
    for command in commands:
        if command in moves:
            return moves[command]()
    if not rows:
        message = f"nothing leads from {packet.lane or 'no lane'} to {lane}"
        return Refused(name, (Unmet("wrong_lane", message, forward_command(name, packet.lane, lanes)),))
    typed = rows[0].typed.replace(rows[0].command, f"workpacket {rows[0].command} {name}", 1)
    message = f"{name} comes to {lane} by {rows[0].typed} alone, which asks for more than a word on the board"
    return Refused(name, (Unmet("hand_edit_not_adoptable", message, typed),))
