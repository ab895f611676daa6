"""Regenerate board and registry from the logs: after hand edits, and when git merges two versions. Hand edits to the
board are recorded as moves, or undone.

The log resolves some of the conflicts that git writes into a document. On board and registry, the lines of both sides
are kept, and regenerating removes the duplicates. In a packet, the log resolves the status if nothing else conflicts.
All other conflicts are left to people.

In a merge, boards differ mostly in the positions of entries, so each version is first regenerated from the log of the
merge result. The remaining differences are prose, which is merged as text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from workpacket.documents.packet import Packet
from workpacket.documents.places import kind_of
from workpacket.documents.registry import TraceabilityRegistry
from workpacket.documents.task_board import TaskBoard
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.claims import claim, release
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Draft, Planned
from workpacket.lifecycle.projections import (
    Placement,
    board_edits,
    board_of,
    in_force,
    is_open,
    lane_named,
    mark_edits,
    missing_sections,
    project_registry,
    spacer_edits,
    status_edits,
)
from workpacket.lifecycle.side_moves import abandon, advance, block, reopen, unblock
from workpacket.lifecycle.transitions import ADVANCE, forward_command, lane_retired, leaving
from workpacket.model.event_types import FORKED
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import ACTIVE_TOKEN, ARCHIVED, UNJUDGED, LaneTable
from workpacket.model.layout import BOARD_PATH, REGISTRY_PATH
from workpacket.model.wording import counted, typed_as
from workpacket.problem import Edit, Problem
from workpacket.text.source import Source, apply_edits
from workpacket.value import Value, replace

# In these documents, the lines of both sides are kept; the log then decides which of two entries is correct.
KEEPING_BOTH = (BOARD_PATH, REGISTRY_PATH)

_MOST_NAMED = 5
_CONFLICT = lazy_pattern(
    r"^<{7}(?: [^\r\n]*)?(?:\r\n|\n|\r)(?P<ours>.*?)"
    r"(?:^\|{7}(?: [^\r\n]*)?(?:\r\n|\n|\r).*?)?"
    r"^={7}(?:\r\n|\n|\r)(?P<theirs>.*?)"
    r"^>{7}(?: [^\r\n]*)?(?:\r\n|\n|\r|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MARKS = lazy_pattern(r"^(?:<{7}|={7}|>{7}|\|{7})(?:[ \r]|$)", re.MULTILINE)
_HEADING = lazy_pattern(r"^#{1,6}[ \t]+([^\r\n]*)", re.MULTILINE)
_STATUS = lazy_pattern(r"^([ \t]*(?:[-*+][ \t]+)?\*\*Status:\*\*)[^\r\n]*", re.MULTILINE)


def without_conflicts(source: Source, *, sections: bool = False) -> Source:
    """Return the document without the conflicts that the log resolves: see `KEEPING_BOTH`, and the status of a packet.
    With `sections`, both sides are kept if each adds whole sections, as packets with a new requirement do in the
    specification.
    """
    if "<<<<<<<" not in source.text:
        return source
    return apply_edits(source, _added_sections(source) if sections else _settled_conflict(source))


def _added_sections(source: Source) -> Iterator[Edit]:
    for conflict in _CONFLICT.finditer(source.text):
        ours, theirs = conflict["ours"], conflict["theirs"]
        headings = [_HEADING.findall(side) for side in (ours, theirs)]
        begin = all(_HEADING.match(side) for side in (ours, theirs))
        if begin and not {*headings[0]} & {*headings[1]} and not (_MARKS.search(ours) or _MARKS.search(theirs)):
            yield Edit(conflict.start(), conflict.end(), f"{ours}{source.eol}{theirs}")


def _settled_conflict(source: Source) -> Iterator[Edit]:
    both = source.path in KEEPING_BOTH
    for conflict in _CONFLICT.finditer(source.text):
        ours, theirs = conflict["ours"], conflict["theirs"]
        if _MARKS.search(ours) or _MARKS.search(theirs):
            continue  # a heading underlined with seven signs, or a nested conflict: the two look the same
        if both:
            mine = set(ours.splitlines())
            added = (line for line in theirs.splitlines(keepends=True) if line.rstrip("\r\n") not in mine)
            yield Edit(conflict.start(), conflict.end(), ours + "".join(added))
        elif _STATUS.sub(r"\1", ours) == _STATUS.sub(r"\1", theirs):
            yield Edit(conflict.start(), conflict.end(), ours)


def sync(facts: Facts, *, board: bool = True, registry: bool = True) -> Planned:
    """Make the projections agree with the logs. Packets are left unchanged if they have no log, an inconsistent log, a
    fork, or a lane that the policy no longer defines.
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
        _sync_board(draft, {name: packet for name, packet in known.items() if facts.is_drawn(name)})
    if registry:
        bases = dict.fromkeys(packet.id.base for name, packet in known.items() if facts.is_drawn(name))
        rows = [row for base in bases if (row := in_force(facts, base, {}, {})) is not None]
        project_registry(draft, rows)
        if facts.policy.packets.board == "branch" and (whole := draft.file(REGISTRY_PATH, facts.registry)) is not None:
            moving = {row.base for row in rows if is_open(row.lane)}
            draft.edit(whole, spacer_edits(TraceabilityRegistry(whole, lanes), moving))
    plan = draft.plan()
    changed = [change.path for change in plan.changes]
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    said = (
        f"regenerated {counted(len(changed), 'file')}: {', '.join(changed[:_MOST_NAMED])}{more}"
        if changed
        else "everything agrees with the log"
    )
    damaged = [name for name, packet in packets if packet.lane != FORKED and not packet.state.sound]
    left = [f"{name} was left unchanged: its log is inconsistent" for name in damaged]
    left += [f"left unchanged: {lane_retired(name, stand[name].lane).message}" for name in stand.keys() - known.keys()]
    return Planned(plan, said, "workpacket check", {"changed": list(changed)}, tuple(sorted(left)))


def _settled(facts: Facts, *, board: bool, registry: bool) -> Facts:
    """Return the facts without the merge conflicts that the log resolves, in the documents to be regenerated."""
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
        specification=(
            without_conflicts(facts.specification, sections=True)
            if board and facts.specification is not None
            else facts.specification
        ),
    )


def _sources(found: Facts, settled: Facts) -> Iterator[tuple[Source, Source]]:
    """Yield the documents from which conflicts were removed, before and after."""
    pairs = [
        (found.board, settled.board),
        (found.registry, settled.registry),
        (found.specification, settled.specification),
    ]
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
        if not (packet.lane in ARCHIVED and _is_off_board(whole, name))
    ]
    draft.edit(board.source, board_edits(TaskBoard(whole, board.lanes), placements))
    if facts.policy.packets.board == "branch":
        moving = [placement.id for placement in placements if is_open(placement.lane)]
        drawn_board = draft.file(BOARD_PATH, whole) or whole
        draft.edit(board.source, mark_edits(TaskBoard(drawn_board, board.lanes), moving, only=True))


def _is_off_board(board: Source, name: str) -> bool:
    """Whether the packet is missing from the board altogether. An archived packet is not added to the board again."""
    return f"[{name}]" not in board.text


def _remark(packet: PacketFacts) -> str | None:
    """Return the remark that the entry should have: why a packet is blocked, or a note that no one judged the work."""
    if packet.lane == UNJUDGED:
        return "not judged"
    if packet.lane != "BLOCKED" or not packet.state.latest_moves:
        return None
    reason = packet.state.latest_moves[-1].text("reason")
    return " ".join(reason.split()) if reason else None


def hand_edits(facts: Facts) -> Iterator[tuple[PacketFacts, str, int]]:
    """Yield the packets whose entry differs from the log: the packet, its lane on the board, and the line."""
    lanes = facts.policy.lanes
    board = TaskBoard(facts.board, lanes) if facts.board is not None else None
    seen: set[str] = set()
    for entry in board.entries if board is not None else ():
        packet = facts.packets.get(entry.wp_id.value)
        token = entry.lane_token
        if packet is None or token == ACTIVE_TOKEN or entry.wp_id.value in seen or lanes.lane(token) is None:
            continue
        if not facts.is_drawn(packet.id.text):
            continue
        seen.add(entry.wp_id.value)
        # If landed work counts as done, the file may still show the lane in the log.
        if packet.lane not in {"", FORKED, token} and packet.outline.lane != token:
            yield packet, token, entry.line


def move_to(facts: Facts, packet: PacketFacts, lane: str, *, reason: str, branch: str = "") -> Answer:
    """Return the move that leads to `lane`, if it needs only a reason; otherwise the problem whose message gives the
    required command.
    """
    name = packet.id.text
    lanes = facts.policy.lanes
    rows = [row for row in leaving(packet.state.lane, lanes) if row.target == lane]
    commands = [row.command for row in rows]
    if packet.lane == "BLOCKED" and lane == packet.state.came_from:
        return unblock(facts, packet, reason=reason)
    moves: Mapping[str, Callable[[], Answer]] = {
        "claim": lambda: claim(facts, packet, branch=branch, worktree=""),
        "release": lambda: release(facts, packet, reason=reason),
        "block": lambda: block(facts, packet, reason=reason, until="the edit was recorded"),
        "abandon": lambda: abandon(facts, packet, reason=reason),
        "reopen": lambda: reopen(facts, packet, reason=reason),
        ADVANCE: lambda: advance(facts, packet, reason=reason),
    }
    for command in commands:
        if command in moves:
            return moves[command]()
    if not rows:
        message = f"no move leads from {packet.state.lane or 'no lane'} to {lane}"
        command = forward_command(name, packet.state.lane, lanes, light=packet.light)
        return (Problem("wrong_lane", message, hint=command),)
    typed = rows[0].typed.replace(rows[0].command, f"workpacket {typed_as(rows[0].command)} {name}", 1)
    message = f"{name} can only be moved to {lane} by {rows[0].typed}, which requires more than editing the board"
    return (Problem("hand_edit_not_adoptable", message, hint=typed),)


class Versions(Value):
    """A document as it is on both sides of a merge, and in their common ancestor."""

    base: Source
    ours: Source
    theirs: Source

    def each(self, change: Callable[[Source], Source]) -> Versions:
        return Versions(change(self.base), change(self.ours), change(self.theirs))


def is_drawn(path: str) -> bool:
    """Whether this text is determined by the log."""
    return path in KEEPING_BOTH or kind_of(path) == "packet"


def drawn_alike(versions: Versions, facts: Facts) -> Versions:
    """Return all three versions as determined by the log. A status that the log does not determine is taken from our
    version.
    """
    if versions.ours.path in KEEPING_BOTH:
        return versions.each(lambda source: drawn(source, facts))
    packet = _packet_of(versions.ours.path, facts)
    lane = facts.policy.lanes.lane(packet.lane) if packet is not None else None
    if lane is not None:
        return versions.each(lambda source: apply_edits(source, status_edits(Packet(source), lane)))
    ours = Packet(versions.ours).status
    return versions.each(lambda source: _with_status(source, ours.value)) if ours is not None else versions


def drawn(register: Source, facts: Facts) -> Source:
    """Return the correct board or registry for the packets in these facts. A missing file remains missing."""
    if not register.text:
        return register
    board = register.path == BOARD_PATH
    here = replace(facts, board=register) if board else replace(facts, registry=register)
    plan = sync(here, board=board, registry=not board).plan
    made = (change.new for change in plan.changes if change.path == register.path and change.new is not None)
    return next((Source.from_bytes(register.path, data) for data in made), register)


def named_twice(register: Source, lanes: LaneTable) -> frozenset[str]:
    """Return the packets that, after a text merge, have more than one entry, or more than one row for their base."""
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
