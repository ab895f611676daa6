"""Commands that write the board and the registry: generate them from the log, adopt hand edits, and merge versions for
git.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from workpacket.cli.options import Arguments, Command, chosen, usage
from workpacket.cli.packet_command import ACTING, actor_of, conclude, refuse
from workpacket.cli.read_only import NOBODY, open_for_reading, show_json
from workpacket.git.merging import Sides, find_sides, merge_texts, merged_files
from workpacket.git.objects import read_objects, status
from workpacket.git.repository import Repository, branch_here, operation_in_progress
from workpacket.ledger.log import read_log
from workpacket.lifecycle.board_sync import (
    KEEPING_BOTH,
    Versions,
    drawn,
    drawn_alike,
    hand_edits,
    is_drawn,
    move_to,
    named_twice,
    sync,
)
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.projections import in_force
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER, PACKETS, POLICY_PATH, STUBS
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.base import lifecycle_of, read_base_policy
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import Carried, carry_out, gather, here
from workpacket.shell.tree import read_bytes
from workpacket.text.source import REGISTER, Source
from workpacket.value import Value, replace

_MARK = b"<<<<<<< "


class Unmerged(Value):
    """The state of a merge. `operation` is the git operation in progress. Files without conflict markers are
    `settled`.
    """

    operation: str
    settled: tuple[str, ...]
    contradicting: tuple[str, ...]

    @property
    def then(self) -> str:
        """Return the command to type next."""
        if self.contradicting:
            return f"resolve the remaining conflicts in {', '.join(self.contradicting)} by hand"
        added = f"git add {' '.join(self.settled)} && " if self.settled else ""
        return f"{added}git {self.operation} --continue"


def unmerged(repository: Repository) -> Unmerged | None:
    """Return the state of the merge; None if no git operation is in progress."""
    operation = operation_in_progress(repository)
    if not operation:
        return None
    waiting = sorted({entry.path for entry in status(repository, GOVERNANCE_FOLDER) if entry.unmerged})
    marked = {path for path in waiting if _is_marked(repository, path)}
    return Unmerged(operation, tuple(path for path in waiting if path not in marked), tuple(sorted(marked)))


def _is_marked(repository: Repository, path: str) -> bool:
    try:
        return _MARK in read_bytes(str(repository.root), path, REGISTER.size)
    except FileNotFoundError:
        return False  # deleted on one side: the missing file is an answer


class Merged(Value):
    """The text, whether it has conflicts for people to resolve, and why the log was not used."""

    data: bytes
    contradicts: bool
    doubt: str = ""


def merge(repository: Repository, path: str, versions: tuple[bytes, bytes, bytes], marker: int) -> Merged:
    """Return the merged text of the versions (base, ours, theirs) of the document at `path`."""
    both = path in KEEPING_BOTH
    base, ours, theirs = (Source.from_bytes(path, data) for data in versions)
    sides = find_sides(repository, path, versions, os.environ) if is_drawn(path) else None
    if sides is None:
        data, contradicts = _texts(repository, versions, both, marker)
        return Merged(data, contradicts, "the commits being merged could not be determined" if is_drawn(path) else "")
    try:
        branches = JoinedBranches(repository, sides)
        alike = drawn_alike(Versions(base, ours, theirs), branches.facts(branches.moved))
        encoded = (alike.base.encode(), alike.ours.encode(), alike.theirs.encode())
        data, contradicts = _texts(repository, encoded, both, marker)
        if both:
            text = Source.from_bytes(path, data)
            data = drawn(text, branches.facts(branches.moved | named_twice(text, branches.lanes))).encode()
        return Merged(data, contradicts)
    except WorkpacketError as error:
        data, contradicts = _texts(repository, versions, both, marker)
        return Merged(data, contradicts, error.message)


class JoinedBranches:
    """Logs, packets and lanes after the merge, read from the commits. `moved` are the packets whose logs differ."""

    def __init__(self, repository: Repository, sides: Sides) -> None:
        self._repository = repository
        self._files, differing = merged_files(repository, sides, LOG_FOLDER, PACKETS, POLICY_PATH)
        self.lanes = self._lanes()
        self._documents: dict[str, dict[str, str]] = {PACKETS: {}, STUBS: {}}
        self._logs: dict[str, dict[str, str]] = {}
        for path, identity in self._files.items():
            folder, _, name = path.rpartition("/")
            if folder.startswith(f"{LOG_FOLDER}/"):
                self._logs.setdefault(folder.removeprefix(f"{LOG_FOLDER}/"), {})[name] = identity
            elif folder in self._documents:
                self._documents[folder][name.removesuffix(".md")] = path
            elif name == "packet.md":
                self._documents[PACKETS].setdefault(folder.rpartition("/")[2], path)
        self.moved = frozenset(path.split("/")[2] for path in differing if path.startswith(f"{LOG_FOLDER}/"))

    def facts(self, names: Iterable[str]) -> Facts:
        """Return the facts about these packets and all revisions of their bases."""
        known = {*self._logs, *self._documents[PACKETS], *self._documents[STUBS]}
        ids = {name: parsed for name in known if (parsed := WorkPacketId.try_parse(name)) is not None}
        bases = {ids[name].base for name in names if name in ids}
        packets = {name: wp_id for name, wp_id in ids.items() if wp_id.base in bases and wp_id.kind == "packet"}
        wanted = [identity for name in packets for identity in self._logs.get(name, {}).values()]
        paths = [path for table in self._documents.values() for name, path in table.items() if name in packets]
        objects = read_objects(self._repository, [*wanted, *(self._files[path] for path in paths)])
        return Facts(
            moment=moment(),
            actor=Actor("merge", "agent"),
            tool="workpacket",
            policy=LifecyclePolicy(lanes=self.lanes),
            packets={name: self._packet(wp_id, objects) for name, wp_id in packets.items()},
            known=frozenset(packets),
        )

    def _lanes(self) -> LaneTable:
        """Return the lanes of the merged policy; if both sides changed it, the lanes in the other side's version."""
        policy = self._files.get(POLICY_PATH)
        return lifecycle_of(read_objects(self._repository, [policy])[policy]).lanes if policy is not None else BUILT_IN

    def _packet(self, wp_id: WorkPacketId, objects: Mapping[str, bytes]) -> PacketFacts:
        name = wp_id.text
        log = {file: objects[identity] for file, identity in self._logs.get(name, {}).items()}
        stub, packet = (self._documents[folder].get(name) for folder in (STUBS, PACKETS))
        return PacketFacts(
            wp_id,
            read_log(name, log),
            stub_source=Source.from_bytes(stub, objects[self._files[stub]]) if stub is not None else None,
            packet_source=Source.from_bytes(packet, objects[self._files[packet]]) if packet is not None else None,
        )


def _texts(repository: Repository, versions: tuple[bytes, bytes, bytes], both: bool, marker: int) -> tuple[bytes, bool]:
    with tempfile.TemporaryDirectory(prefix="workpacket-") as folder:
        base, ours, theirs = (os.path.join(folder, name) for name in ("base", "ours", "theirs"))
        for path, data in zip((base, ours, theirs), versions, strict=True):
            Path(path).write_bytes(data)
        return merge_texts(repository, (base, ours, theirs), keep_both=both, marker=marker)


def sync_board(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("adopt"):
        return _adopt(arguments)
    carried = carry_out(repository, "board sync", None, actor_of(arguments, repository), sync, during_merge=True)
    return conclude(arguments, to_go_on(repository, carried))


def to_go_on(repository: Repository, carried: Carried) -> Carried:
    """During a merge, tell the user that the next step is to finish the merge."""
    waiting = unmerged(repository)
    if waiting is None or not isinstance(carried.answer, Planned):
        return carried
    return replace(carried, answer=replace(carried.answer, then=waiting.then))


def _adopt(arguments: Arguments) -> int:
    """Record each hand edit as a move; list edits that are not moves, without applying them."""
    repository = here()
    actor = actor_of(arguments, repository)
    facts = gather(repository, None, actor)
    wanted = arguments.words[1:]
    edits = [(packet.id.text, token, line) for packet, token, line in hand_edits(facts)]
    chosen = [edit for edit in edits if not wanted or edit[0] in wanted]
    unmet: list[Problem] = []
    done: list[str] = []
    for name, token, line in chosen:
        reason = arguments.value("reason") or f"hand edit of the task board, line {line}"
        answer = _moved(arguments, name, token, reason).answer
        if not isinstance(answer, Planned):
            unmet += [replace(one, message=f"{name}: {one.message}") for one in answer]
        else:
            done.append(name)
            sys.stderr.write(f"{answer.said}\n")
    if unmet:
        adopted: list[Json] = [*done]
        return refuse(arguments, "hand edits", unmet, {"adopted": adopted})
    return conclude(arguments, carry_out(repository, "board sync", None, actor, sync, during_merge=True))


def move_entry(arguments: Arguments) -> int:
    if len(arguments.words) != 3:
        raise usage(arguments.command, "missing_argument", "give a WP_ID and a lane")
    repository = here()
    name = packet_called(str(repository.root), arguments.words[1]).text
    table = read_base_policy(repository).lifecycle.lanes
    lanes = table.named(arguments.words[2].replace("_", " "))
    if len(lanes) != 1:
        problem = "ambiguous" if lanes else "unknown"
        what = f"{problem} lane {arguments.words[2]!r}; the known lanes are {', '.join(table.tokens)}"
        raise usage(arguments.command, "invalid_value", what)
    carried = _moved(arguments, name, lanes[0].token, arguments.value("reason") or "moved by editing the board")
    return conclude(arguments, carried, name)


def _moved(arguments: Arguments, name: str, lane: str, reason: str) -> Carried:
    repository = here()
    branch = branch_here(repository)

    def decide(facts: Facts) -> Answer:
        return move_to(facts, facts.packets[name], lane, reason=reason, branch=branch)

    return carry_out(repository, "board move", [name], actor_of(arguments, repository), decide)


def _run_registry(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "audit", "sync"))
    if action == "sync":
        repository = here()
        draw = partial(sync, board=False)
        actor = actor_of(arguments, repository)
        carried = carry_out(repository, "registry sync", None, actor, draw, during_merge=True)
        return conclude(arguments, to_go_on(repository, carried))
    if action == "audit":
        from workpacket.cli.trace import audit_registry

        return audit_registry(arguments)
    return _show(arguments)


def _show(arguments: Arguments) -> int:
    facts = gather(open_for_reading(), None, NOBODY)
    bases = sorted({packet.id.base for packet in facts.packets.values()})
    rows = [row for base in bases if (row := in_force(facts, base, {}, {})) is not None]
    if arguments.flag("json"):
        listed: list[Json] = [
            {"base": row.base, "id": row.id, "path": row.path, "lane": row.lane.token} for row in rows
        ]
        return show_json(arguments, {"bases": listed})
    for row in rows:
        print(f"{row.base}  {row.id}  {row.lane.token}  {row.path}")
    print("next: workpacket board registry audit")
    return exits.OK


_REGISTRY = Command(
    "registry",
    _run_registry,
    arguments="show|audit|sync",
    options=ACTING,
    examples=("workpacket board registry show", "workpacket board registry audit", "workpacket board registry sync"),
)


# git's own default.
_MARKER = 7


def _run_merge_driver(arguments: Arguments) -> int:
    words = arguments.words
    if len(words) not in {4, 5} or not (words[4:] or ["7"])[0].isdecimal():
        raise usage(arguments.command, "missing_argument", "expected the arguments that git passes: %O %A %B %P %L")
    base, ours, theirs, path = words[:4]
    versions = (Path(base).read_bytes(), Path(ours).read_bytes(), Path(theirs).read_bytes())
    merged = merge(here(), path, versions, int(words[4]) if words[4:] else _MARKER)
    # Git created this file only for us, and reads the result of the merge from it.
    Path(ours).write_bytes(merged.data)
    status = exits.FINDINGS if merged.contradicts else exits.OK
    if arguments.flag("json"):
        data: dict[str, Json] = {"path": path, "contradicts": merged.contradicts, "doubt": merged.doubt or ""}
        sys.stdout.write(render_envelope("merge-driver", status, [], data))
        return status
    if merged.doubt:
        sys.stderr.write(f"workpacket: {escape(path)}: merged without the log: {escape(merged.doubt)}\n")
        sys.stderr.write("next: workpacket board sync\n")
    return status


_MERGE_DRIVER = Command(
    "merge-driver",
    _run_merge_driver,
    arguments="BASE OURS THEIRS PATH [MARKER_SIZE]",
    description="""
Git calls it if `.GOV/.gitattributes` says `merge=workpacket` and the driver is configured in the clone:

    git config merge.workpacket.driver 'workpacket board merge-driver %O %A %B %P %L'

The logs of both sides decide where entries are; text written by people is kept from both. Without the driver, git
merges these files like any others, and `workpacket board sync` corrects the result.""",
    examples=("git config merge.workpacket.driver 'workpacket board merge-driver %O %A %B %P %L'",),
)


DECLARED: Final = {command.name: command for command in (_REGISTRY, _MERGE_DRIVER)}
