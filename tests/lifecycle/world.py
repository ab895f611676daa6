"""A repository in memory: plans are made from its files and carried out on them, without disk, git or clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from workpacket.documents.packet import PacketText, render_packet
from workpacket.documents.register_table import empty_board, empty_registry, entry_line
from workpacket.documents.task_board import TaskBoard
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import read_log
from workpacket.lifecycle.backlog import adopt
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import CAME_FROM, Transition
from workpacket.model.event_types import LANE_MOVES
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import BUILT_IN, DERIVED, AddedLane, LaneTable
from workpacket.model.layout import BOARD_PATH, LOG_FOLDER, PACKETS, REGISTRY_PATH
from workpacket.model.plan import FileSeen, FolderSeen, Moment, digest
from workpacket.problem import Problem
from workpacket.text.source import Source

WITHOUT_LANES = LifecyclePolicy()
# One lane in each place where there is room, and two in a row.
ADDED = LaneTable(
    (
        AddedLane("SELF_TEST", "IN_PROGRESS", "IN_REVIEW", "Self Test", "Self Test"),
        AddedLane("QA", "IN_REVIEW", "UAT", "QA", "Quality"),
        AddedLane("UAT", "QA", "MERGE_PENDING", "UAT", "Quality"),
        AddedLane("STAGING", "MERGE_PENDING", "VALIDATED", "Staging", "In Review"),
    )
)
WITH_LANES = LifecyclePolicy(lanes=ADDED)
COUNTER = itertools.count(1)


@dataclass
class World:
    """`files` are all there is. Each plan is applied whole, and only if what it rests on is still so."""

    files: dict[str, bytes] = field(default_factory=dict)
    policy: LifecyclePolicy = WITHOUT_LANES

    def branch(self) -> World:
        return World(dict(self.files), self.policy)

    def names(self) -> list[str]:
        folder = f"{PACKETS}/"
        found = (path.removeprefix(folder).removesuffix(".md") for path in self.files if path.startswith(folder))
        return sorted(name for name in found if "/" not in name)

    def source(self, path: str) -> Source | None:
        return Source.from_bytes(path, self.files[path]) if path in self.files else None

    def log(self, name: str) -> dict[str, bytes]:
        folder = f"{LOG_FOLDER}/{name}/"
        return {path.removeprefix(folder): data for path, data in self.files.items() if path.startswith(folder)}

    def state(self, name: str) -> PacketState:
        return fold(read_log(name, self.log(name)))

    def facts(self, actor: str = "ann") -> Facts:
        number = next(COUNTER)
        moment = Moment(
            f"2026-03-{1 + number // 86400 % 28:02}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
            f"0190a5de-ac96-774b-bcce-{number:012x}",
            f"{number:032x}",
        )
        packets = {
            name: PacketFacts(
                WorkPacketId(name), read_log(name, self.log(name)), packet_source=self.source(f"{PACKETS}/{name}.md")
            )
            for name in self.names()
        }
        return Facts(
            moment,
            Actor(actor, "human"),
            "workpacket test",
            self.policy,
            packets,
            frozenset(packets),
            self.source(BOARD_PATH),
            self.source(REGISTRY_PATH),
            target_branch="main",
        )

    def do(self, decide: Callable[[Facts], Answer], actor: str = "ann") -> Answer:
        answer = decide(self.facts(actor))
        if isinstance(answer, Planned):
            self.apply(answer)
        return answer

    def apply(self, planned: Planned) -> None:
        plan = planned.plan
        for seen in plan.rests_on:
            if isinstance(seen, FolderSeen):
                prefix = f"{seen.path}/"
                assert {path.removeprefix(prefix) for path in self.files if path.startswith(prefix)} == seen.names
            elif isinstance(seen, FileSeen):
                assert (digest(self.files[seen.path]) if seen.path in self.files else None) == seen.digest
        for change in plan.all_changes():
            assert (digest(self.files[change.path]) if change.path in self.files else None) == change.old
            assert change.new is not None
            self.files[change.path] = change.new

    def board(self) -> dict[str, str]:
        source = self.source(BOARD_PATH)
        assert source is not None
        return {entry.wp_id.value: entry.lane_token for entry in TaskBoard(source, self.policy.lanes).entries}

    def hand_edit(self, name: str, token: str) -> None:
        """Somebody types another token, in the section where the entry stands."""
        source = self.source(BOARD_PATH)
        assert source is not None
        entry = next(entry for entry in TaskBoard(source, self.policy.lanes).entries if entry.wp_id.value == name)
        start, end = entry.span
        text = source.text[:start] + entry_line(name, token) + source.text[end:]
        self.files[BOARD_PATH] = text.encode()


def packet_text(name: str, status: str) -> bytes:
    return (
        render_packet(
            PacketText(
                wp_id=WorkPacketId(name),
                date="2026-01-01T00:00:00Z",
                status=status,
                requestor="ann",
                agent="ann",
                signature="ann010120260000",
                refinement_file=f".GOV/refinements/{name}.md",
                what="Greet",
                why="Manners",
                acceptance="- It greets.",
                spec_baseline="spec.md",
                spec_target="spec.md",
                risk_tier="LOW",
                in_scope_paths=("src/",),
            )
        )
        .replace("SEARCH_TERMS: TODO", "SEARCH_TERMS: hello")
        .encode()
    )


def adopted(packets: Mapping[str, str], policy: LifecyclePolicy = WITHOUT_LANES) -> World:
    """A world in which these packets are in these lanes, each with the beginning of a log."""
    board = empty_board(policy.lanes).encode()
    world = World({BOARD_PATH: board, REGISTRY_PATH: empty_registry().encode()}, policy)
    titles = {lane.token: lane.title for lane in policy.lanes.lanes}
    for name, lane in packets.items():
        world.files[f"{PACKETS}/{name}.md"] = packet_text(name, titles[lane])
    answer = world.do(adopt)
    assert isinstance(answer, Planned)
    return world


def merged(ours: World, theirs: World, base: World) -> tuple[World, list[str]]:
    """What git makes of two branches, and the paths on which they conflict; of those, ours is kept."""
    result, conflicts = ours.branch(), []
    for path, data in theirs.files.items():
        if ours.files.get(path) == data or base.files.get(path) == data:
            continue
        if path in ours.files and ours.files[path] != base.files.get(path):
            conflicts.append(path)
        else:
            result.files[path] = data
    return result, conflicts


def of_the_log(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path.startswith(LOG_FOLDER)]


def errors(findings: Iterable[Problem]) -> list[Problem]:
    return [finding for finding in findings if finding.severity == "error"]


def table_faults(rows: Iterable[Transition], lanes: LaneTable = BUILT_IN) -> Iterator[str]:
    """Yield errors in a table of transitions."""
    seen: set[tuple[str, str]] = set()
    reached: set[str] = set()
    for row in rows:
        for token in (*row.origins, *({row.target} - {CAME_FROM})):
            if lanes.lane(token) is None:
                yield f"{row.typed}: unknown lane {token}"
        if row.event not in LANE_MOVES:
            yield f"{row.typed}: events of type {row.event} are not moves"
        if (row.command, row.choice) in seen:
            yield f"{row.typed}: listed twice"
        seen.add((row.command, row.choice))
        reached.add(row.target)
    for token in lanes.tokens:
        if token not in {*reached, *DERIVED}:
            yield f"nothing leads to {token}"
