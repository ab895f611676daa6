"""Packet status, task board and registry as projections of the log: the edits that make them agree with it. Prose
between the entries is kept; within an entry, only the parts that the log determines are rewritten.

With `[board] commit = "branch"`, board and registry are laid out so that git merges what several branches wrote: the
board has a mark for each open packet in each section, and the registry has an empty row after each open packet's row.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from workpacket.documents.packet import Packet
from workpacket.documents.register_table import (
    board_cell,
    board_excerpt,
    empty_board,
    empty_registry,
    entry_line,
    registry_excerpt,
    row_line,
)
from workpacket.documents.registry import RegistryRow, TraceabilityRegistry
from workpacket.documents.task_board import BoardEntry, BoardSection, TaskBoard, mark_line
from workpacket.lifecycle.facts import Facts
from workpacket.lifecycle.moves import Draft
from workpacket.model.event_types import FORKED
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import ACTIVE_TOKEN, ARCHIVED, BUILT_IN, MAY_BE_STUB, Lane, LaneTable
from workpacket.model.layout import BOARD_PATH, REGISTRY_PATH
from workpacket.problem import Edit, WorkpacketError
from workpacket.text.source import Source
from workpacket.value import Value, replace

# Lanes whose entries give a reason; after another token the text would mislead.

_EXPLAINED = frozenset({"BLOCKED"})
# A row of the registry without a word.
SPACER = "| | | | |"
# Above this number of bases, parsing every row of the registry once is faster than searching each row for each base.
_FEW = 8


class Placement(Value):
    """The lane of a packet according to the log. `remark` is the text after the token in the entry; None keeps it."""

    id: str
    lane: Lane
    remark: str | None = None


class InForce(Value):
    """The registry row of a base. `notes` are tokens that the row must have."""

    base: str
    id: str
    path: str
    lane: Lane
    notes: tuple[str, ...] = ()


def lane_named(token: str, lanes: LaneTable = BUILT_IN) -> Lane:
    """Return the lane of an event. Every caller has left out the packets whose lane is not in the policy."""
    lane = lanes.lane(token)
    assert lane is not None, token
    return lane


def status_edits(packet: Packet, lane: Lane) -> list[Edit]:
    """Return the edits that set the packet's status line to the lane, and change nothing else."""
    status = packet.status
    if status is None or status.value in {lane.title, lane.token}:
        return []
    run = packet.first_line(status)
    return [run.replaced_by(lane.title).edit] if run is not None else []


def board_of(source: Source | None, path: str, lanes: LaneTable = BUILT_IN) -> TaskBoard:
    return TaskBoard(source if source is not None else Source(path, empty_board(lanes)), lanes)


def registry_of(source: Source | None, path: str, lanes: LaneTable = BUILT_IN) -> TraceabilityRegistry:
    return TraceabilityRegistry(source if source is not None else Source(path, empty_registry()), lanes)


def board_edits(board: TaskBoard, placements: Iterable[Placement]) -> list[Edit]:
    """Return the edits that put each packet into its section, once; entries in the Active section belong to people."""
    by_id: dict[str, list[BoardEntry]] = {}
    for entry in board.entries:
        if entry.lane_token != ACTIVE_TOKEN:
            by_id.setdefault(entry.wp_id.value, []).append(entry)
    edits: list[Edit] = []
    for placement in placements:
        edits += _placed(board, placement, by_id.get(placement.id, []))
    return edits


def _placed(board: TaskBoard, placement: Placement, entries: list[BoardEntry]) -> Iterator[Edit]:
    lane = placement.lane
    home = board.lanes.section_of(lane)
    section = board.section(home.key)
    if section is None:
        raise WorkpacketError(
            "board_section_absent",
            f"the board has no {home.heading!r} section",
            hint="workpacket board sync adds missing sections",
            path=board.path,
        )
    keeper = next((entry for entry in entries if entry.section.key == section.key), None)
    for entry in entries:
        if entry is not keeper:
            yield _removal(board.source, entry)
    if keeper is not None:
        if keeper.lane_token != lane.token or (placement.remark is not None and keeper.rest.value != placement.remark):
            yield Edit(*keeper.span, _line(placement, keeper))
        return
    line = _line(placement, entries[0] if entries else None)
    mark = next((mark for mark in section.marks if mark.id == placement.id), None)
    if mark is not None:
        yield Edit(mark.end, mark.end, f"{board.source.eol}{line}")
    else:
        yield _inserted(board.source, section.insert_at, line)


def _inserted(source: Source, at: int, line: str) -> Edit:
    """Insert a line where another line begins, or at the end of a text, whose last line ending may be missing."""
    last = at == len(source.text) and source.text and not source.text.endswith(("\n", "\r"))
    return Edit(at, at, f"{source.eol}{line}" if last else f"{line}{source.eol}")


def _line(placement: Placement, entry: BoardEntry | None) -> str:
    kept = entry.rest.value if entry is not None and entry.lane_token not in _EXPLAINED else ""
    remark = kept if placement.remark is None else placement.remark
    return entry_line(placement.id, placement.lane.token, remark)


def _removal(source: Source, entry: BoardEntry) -> Edit:
    """Remove the line with its line ending; if two blank lines would become adjacent, remove one of them."""
    starts = [*source.line_starts, len(source.text)]
    start, end = starts[entry.line - 1], starts[entry.line]
    blank_before = entry.line > 1 and not source.line(entry.line - 1).strip()
    blank_after = entry.line < source.line_count and not source.line(entry.line + 1).strip()
    if blank_before and blank_after and entry.line + 1 < len(starts):
        end = starts[entry.line + 1]
    return Edit(start, end, "")


def mark_edits(board: TaskBoard, names: Iterable[str], *, only: bool = False) -> Iterator[Edit]:
    """Yield the edits that give each packet a mark in each section, directly before its entry if the packet has one
    there. With `only`, all other marks are removed.
    """
    wanted = dict.fromkeys(names)
    for section in board.sections:
        # No packet returns from the archive, so its entries need not be kept apart.
        lanes = [lane for lane in board.lanes.lanes if lane.section == section.key and not lane.archived]
        yield from _marked(board.source, section, wanted if lanes else {}, only=only)


def _marked(source: Source, section: BoardSection, wanted: Mapping[str, None], *, only: bool) -> Iterator[Edit]:
    starts = [*source.line_starts, len(source.text)]
    entries = {entry.wp_id.value: entry.line for entry in reversed(section.entries)}
    kept: set[str] = set()
    for mark in section.marks:
        at = mark.line.number
        if mark.id in wanted and mark.id not in kept and entries.get(mark.id, at + 1) == at + 1:
            kept.add(mark.id)
        elif only or mark.id in wanted:
            yield Edit(starts[at - 1], starts[at], "")
    for name in wanted:
        if name not in kept:
            at = starts[entries[name] - 1] if name in entries else section.insert_at
            yield _inserted(source, at, mark_line(name))


def missing_sections(board: TaskBoard) -> list[Edit]:
    """Return the edits that add missing sections to the board, each before the next existing one."""
    edits: list[Edit] = []
    source = board.source
    for index, section in enumerate(board.lanes.sections):
        if board.section(section.key) is not None:
            continue
        later = (board.section(other.key) for other in board.lanes.sections[index + 1 :])
        follower = next((found for found in later if found is not None), None)
        eol = source.eol
        if follower is not None:
            at = source.line_starts[follower.line - 1]
            edits.append(Edit(at, at, f"## {section.heading}{eol}{eol}"))
        else:
            lead = "" if not source.text or source.text.endswith(("\n", "\r")) else eol
            edits.append(Edit(len(source.text), len(source.text), f"{lead}{eol}## {section.heading}{eol}"))
    return edits


def registry_edits(registry: TraceabilityRegistry, rows: Iterable[InForce], *, apart: bool = False) -> list[Edit]:
    """Return the edits that make each base's row name the current packet and its place on the board. With `apart`, an
    empty row follows each new row.
    """
    rows = list(rows)
    by_base: dict[str, list[RegistryRow]] = {}
    for row in _rows_that_may_name(registry, [wanted.base for wanted in rows]):
        if row.base_id is not None:
            by_base.setdefault(row.base_id.base, []).append(row)
    edits: list[Edit] = []
    new: list[str] = []
    for wanted in rows:
        found = by_base.get(wanted.base, [])
        if found and _names_a_later_one(found[0], wanted):
            continue
        if not found:
            notes = "; ".join(wanted.notes) or f"active={wanted.id}"
            new.append(row_line(wanted.base, wanted.path, board_cell(wanted.id, wanted.lane, registry.lanes), notes))
            new += [SPACER] if apart else []
        else:
            # A merge that kept the lines of both sides leaves two rows; the notes of the second one are kept.
            noted = [token.text.value for row in found[1:] for token in row.tokens if token.kind != "active"]
            edits += _row_edits(found[0], wanted, noted, registry.lanes)
            edits += [_row_removal(registry.source, row) for row in found[1:]]
    return [*edits, *_new_rows(registry, new)]


def spacer_edits(registry: TraceabilityRegistry, bases: Container[str]) -> Iterator[Edit]:
    """Yield the edits that leave exactly one empty row after the row of each of these bases. An empty row before such
    a row is kept, because removing it would be a change next to that row.
    """
    source = registry.source
    starts = [*source.line_starts, len(source.text)]
    open_lines = {row.row.line for row in registry.rows if row.base_id is not None and row.base_id.base in bases}
    spacers = {line for table in registry.tables for line in table.spacers}
    for line in open_lines:
        if line + 1 not in spacers:
            yield _inserted(source, starts[line], SPACER)
    for line in spacers:
        if line - 1 not in open_lines and (line + 1 not in open_lines or line - 1 in spacers):
            yield Edit(starts[line - 1], starts[line], "")


def _rows_that_may_name(registry: TraceabilityRegistry, bases: Sequence[str]) -> Iterable[RegistryRow]:
    """Avoid parsing every row of a long registry for a command about one or two packets."""
    if len(bases) > _FEW:
        return registry.rows
    return [row for row in registry.rows if row.base is not None and any(base in row.base.value for base in bases)]


def _names_a_later_one(row: RegistryRow, wanted: InForce) -> bool:
    """Whether the row names a later revision than any that exists here.

    That revision may be on a different branch, so the row is kept.
    """
    active, here = row.active_id, WorkPacketId.try_parse(wanted.id)
    return active is not None and here is not None and (active.revision or 1) > (here.revision or 1)


def _row_removal(source: Source, row: RegistryRow) -> Edit:
    starts = [*source.line_starts, len(source.text)]
    return Edit(starts[row.row.line - 1], starts[row.row.line], "")


def _row_edits(row: RegistryRow, wanted: InForce, noted: Iterable[str], lanes: LaneTable) -> Iterator[Edit]:
    cells: Mapping[str, tuple[str, str]] = {
        "active": (row.active_path, wanted.path),
        "board": (row.board.value if row.board is not None else "", board_cell(wanted.id, wanted.lane, lanes)),
    }
    for name, (now, then) in cells.items():
        cell = row.active if name == "active" else row.board
        if cell is not None and now != then:
            yield Edit(cell.start, cell.end, then)
    notes = row.notes
    if notes is None:
        return
    kept = [token.text.value for token in row.tokens if token.kind != "active" and token.text.value != "stub"]
    active = _active_note(row, wanted)
    stub = ["stub"] if any(token.text.value == "stub" for token in row.tokens) and not wanted.notes else []
    candidates = dict.fromkeys([*noted, *wanted.notes])
    added = [note for note in candidates if not note.startswith("active=") and note not in {*kept, "stub"}]
    text = "; ".join([*active, *stub, *kept, *added])
    if text != notes.value:
        yield Edit(notes.start, notes.end, text)


def _active_note(row: RegistryRow, wanted: InForce) -> list[str]:
    """Return the token `active=<id>`. It is unchanged if it already names the packet, because the owner may have added
    words to it.
    """
    noted = [token for token in row.tokens if token.kind == "active"]
    if any(value.value == wanted.id for token in noted for value in token.values):
        return [token.text.value for token in noted]
    return [f"active={wanted.id}"] if noted or any(note.startswith("active=") for note in wanted.notes) else []


def _new_rows(registry: TraceabilityRegistry, lines: list[str]) -> list[Edit]:
    if not lines:
        return []
    source = registry.source
    if not registry.tables:
        raise WorkpacketError(
            "registry_table_absent",
            "the registry has no table | Base WP ID | Active Packet | Task Board | Notes |",
            hint="add the header and the line of dashes below it, then run the command again",
            path=registry.path,
        )
    end = registry.tables[-1].end
    starts = [*source.line_starts, len(source.text)]
    at, eol = starts[end], source.eol
    text = "".join(f"{line}{eol}" for line in lines)
    if at == len(source.text) and not source.text.endswith(("\n", "\r")):
        text = eol + text.removesuffix(eol)
    return [Edit(at, at, text)]


_NOWHERE = frozenset({"", FORKED})


def project(
    draft: Draft,
    lanes: Mapping[str, str],
    *,
    remarks: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    packet_files: Mapping[str, Source] | None = None,
) -> None:
    """Update status, board and registry for these packets and lanes, if the policy says that they are written on this
    branch.

    `notes` go into the row of the first packet; `packet_files` are the packets that this command writes.
    """
    facts = draft.facts
    written = packet_files or {}
    table = facts.policy.lanes
    for name, token in lanes.items():
        packet = facts.packets[name]
        if packet.packet is not None and name not in written:
            draft.edit(packet.packet.source, status_edits(packet.packet, lane_named(token, table)))
    lanes = {name: token for name, token in lanes.items() if facts.is_drawn(name)}
    if not lanes:
        return
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
    else:
        excerpt = board_excerpt(found, [placement.id for placement in placements])
        draft.edit(found, excerpt.whole_edits(board_edits(board_of(excerpt.source, BOARD_PATH, lanes), placements)))
    whole = draft.file(BOARD_PATH, found)
    if whole is None or draft.facts.policy.packets.board != "branch":
        return
    unmarked = [each.id for each in placements if is_open(each.lane) and mark_line(each.id) not in whole.text]
    if unmarked:
        draft.edit(whole, mark_edits(TaskBoard(whole, lanes), unmarked))


def withdraw(draft: Draft, name: str) -> None:
    """Remove a packet that was given a different id from the board and the registry."""
    facts = draft.facts
    packet, lanes = facts.packets[name], facts.policy.lanes
    if not facts.is_drawn(name):
        return
    whole = draft.file(BOARD_PATH, facts.board)
    if whole is not None:
        board, starts = TaskBoard(whole, lanes), [*whole.line_starts, len(whole.text)]
        marks = [mark.line.number for section in board.sections for mark in section.marks if mark.id == name]
        edits = [_removal(whole, entry) for entry in board.entries if entry.wp_id.value == name]
        draft.edit(whole, [*edits, *(Edit(starts[at - 1], starts[at], "") for at in marks)])
    others = replace(facts, packets={each: found for each, found in facts.packets.items() if each != name})
    row = in_force(others, packet.id.base, {}, {})
    table = draft.file(REGISTRY_PATH, facts.registry)
    if row is not None:
        project_registry(draft, [row])
    elif table is not None:
        rows = registry_of(table, REGISTRY_PATH, lanes).rows
        own = [each for each in rows if each.base_id is not None and each.base_id.base == packet.id.base]
        draft.edit(table, [_row_removal(table, each) for each in own])


def is_open(lane: Lane) -> bool:
    """Whether a packet in this lane may still move."""
    return lane.unfinished or lane.reclaimable


def project_registry(draft: Draft, rows: Sequence[InForce]) -> None:
    found, lanes = draft.facts.registry, draft.facts.policy.lanes
    apart = draft.facts.policy.packets.board == "branch"
    if found is None:
        registry = registry_of(None, REGISTRY_PATH, lanes)
        draft.put(REGISTRY_PATH, None, registry.source.text)
        draft.edit(registry.source, registry_edits(registry, rows, apart=apart))
        return
    excerpt = registry_excerpt(found, [row.base for row in rows])
    here = registry_of(excerpt.source, REGISTRY_PATH, lanes)
    draft.edit(found, excerpt.whole_edits(registry_edits(here, rows, apart=apart)))


def in_force(facts: Facts, base: str, moved: Mapping[str, str], written: Mapping[str, Source]) -> InForce | None:
    """Return the current revision of a base: the highest packet that is not archived, else the highest stub, else the
    last revision.

    `moved` has the lanes after the command, and `written` has the packets that it writes. While a revision has no log,
    or is in a lane that the policy no longer defines, the current revision is unknown, and the row remains unchanged.
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
