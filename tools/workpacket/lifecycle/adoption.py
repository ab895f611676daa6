"""Adopts a repository that was governed without a log: its documents determine the first event of each log. Nothing is
rewritten. If board and packet contradict each other, the packet is skipped and the contradiction listed until someone
says which one to believe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from workpacket.documents.task_board import BoardEntry, TaskBoard
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Draft, Planned
from workpacket.model.canonical import Json
from workpacket.model.lanes import ACTIVE_TOKEN, LaneTable
from workpacket.model.layout import BOARD_PATH
from workpacket.model.wording import counted
from workpacket.value import Value

Preference = Literal["", "board", "packet"]


class LaneStatement(Value):
    """The statement of one document about the lane: all lanes that it may mean."""

    kind: str
    path: str
    line: int
    says: str
    lanes: tuple[str, ...]

    def json(self) -> Json:
        return {"kind": self.kind, "path": self.path, "line": self.line, "says": self.says[:500] or "(nothing)"}


class Adoption(Value):
    """One packet without a log: what was found, and the resulting lane, '' if it is contradictory."""

    packet: PacketFacts
    found: tuple[LaneStatement, ...]
    lane: str
    holder: str = ""
    branch: str = ""

    @property
    def contradiction(self) -> str:
        said = "; ".join(
            f"{one.path}:{one.line} says {one.says!r}" if one.says else f"{one.path}:{one.line} says no lane"
            for one in self.found
        )
        return f"{self.packet.id}: {said}"


def adopt(facts: Facts, prefer: Preference = "", only: Sequence[str] = ()) -> Planned:
    """A log for every packet that has none."""
    lanes = facts.policy.lanes
    board = TaskBoard(facts.board, lanes) if facts.board is not None else None
    entries = _entries(board)
    waiting = [packet for name, packet in sorted(facts.packets.items()) if not packet.log.by_id]
    chosen = [packet for packet in waiting if not only or packet.id.text in only]
    adoptions = [
        _adoption(packet, entries.get(packet.id.text, ()), prefer, lanes) for packet in chosen if _has_file(packet)
    ]
    draft = Draft("adopt", facts)
    if facts.board is not None:
        draft.rests_on(BOARD_PATH, facts.board)
    taken = [adoption for adoption in adoptions if adoption.lane]
    for adoption in taken:
        _record(draft, adoption)
    open_ones = [adoption.contradiction for adoption in adoptions if not adoption.lane]
    said = f"{counted(len(taken), 'packet')} adopted" + (
        f", {len(open_ones)} contradict themselves" if open_ones else ""
    )
    # What was preferred already has no answer for those that are left.
    left = " or ".join(f"workpacket adopt --prefer {one}" for one in ("board", "packet") if one != prefer)
    then = left if open_ones else "workpacket board sync"
    contradictions: list[Json] = list(open_ones)
    names: list[Json] = [adoption.packet.id.text for adoption in taken]
    data: Mapping[str, Json] = {"adopted": names, "contradictions": contradictions}
    return Planned(draft.plan(), said, then, data, tuple(open_ones))


def _has_file(packet: PacketFacts) -> bool:
    return packet.stub_source is not None or packet.packet_source is not None


def _entries(board: TaskBoard | None) -> dict[str, list[BoardEntry]]:
    found: dict[str, list[BoardEntry]] = {}
    for entry in board.entries if board is not None else ():
        found.setdefault(entry.wp_id.value, []).append(entry)
    return found


def _adoption(packet: PacketFacts, entries: Sequence[BoardEntry], prefer: Preference, lanes: LaneTable) -> Adoption:
    found = tuple(_statements(packet, entries, lanes))
    active = next((entry.details() for entry in entries if entry.lane_token == ACTIVE_TOKEN), {})
    details = {key: text.value[:200] for key, text in active.items() if text.value}
    return Adoption(packet, found, _lane(found, prefer), details.get("coder", ""), details.get("branch", ""))


def _statements(packet: PacketFacts, entries: Sequence[BoardEntry], lanes: LaneTable) -> Iterator[LaneStatement]:
    if packet.packet is not None:
        status = packet.packet.status
        value = status.value if status is not None else ""
        line = packet.packet.place(status)[0]
        named = tuple(lane.token for lane in lanes.named(value))
        yield LaneStatement("packet", packet.packet_path, line, value, named)
    elif packet.stub is not None:
        status = packet.stub.status_text()
        yield LaneStatement("stub", packet.stub_path, packet.stub.place(status)[0], "STUB", ("STUB",))
    for entry in entries:
        if entry.lane_token != ACTIVE_TOKEN:
            lane = lanes.lane(entry.lane_token)
            said = entry.token.value if entry.token is not None else ""
            yield LaneStatement("board", BOARD_PATH, entry.line, said, (lane.token,) if lane is not None else ())


def _lane(found: Sequence[LaneStatement], prefer: Preference) -> str:
    """The one lane that all statements allow; otherwise that of the preferred document."""
    allowed = set(found[0].lanes).intersection(*(one.lanes for one in found[1:]))
    # What a stub becomes on the board without a packet, it becomes: superseded, abandoned.
    if found[0].kind == "stub" and len(found) > 1 and found[1].lanes[:1] in {("SUPERSEDED",), ("ABANDONED",)}:
        return found[1].lanes[0]
    if len(allowed) == 1:
        return allowed.pop()
    if prefer:
        words = [one.lanes for one in found if (one.kind == "board") == (prefer == "board")]
        return words[0][0] if words and len(words[0]) == 1 else ""
    return ""


def _record(draft: Draft, adoption: Adoption) -> None:
    packet = adoption.packet
    for path, source in (
        (packet.packet_path, packet.packet_source),
        (packet.stub_path, packet.stub_source),
    ):
        if source is not None:
            draft.rests_on(path, source)
    found: list[Json] = [one.json() for one in adoption.found]
    data: dict[str, Json] = {"base": packet.id.base, "found": found}
    if adoption.lane == "BLOCKED":
        data["came_from"] = "READY_FOR_DEV"
    if adoption.lane == "IN_PROGRESS":
        data |= {"holder": adoption.holder} if adoption.holder else {}
        data |= {"branch": adoption.branch} if adoption.branch else {}
    said = {one.lanes for one in adoption.found}
    if len(said) > 1 and not any(adoption.lane in one.lanes and len(one.lanes) > 1 for one in adoption.found):
        data["contradictions"] = [adoption.contradiction[:500]]
    lanes: dict[str, Json] = {"lane_from": None, "lane_to": adoption.lane}
    draft.happened(packet, "adopted", {**lanes, **data})
