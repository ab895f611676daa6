"""The merge driver that git calls for board, registry and packets, if `merge.workpacket.driver` is configured.

Git calls a driver before the merged log is in the work tree, so the log is assembled here from the commits being
merged. If these cannot be found, the texts are merged as they are, and `board sync` is needed afterwards.

Also lists the governed files of a merge that people must still resolve.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.merging import Sides, find_sides, merge_texts, merged_files
from workpacket.git.objects import read_objects, status
from workpacket.git.repository import Repository, operation_in_progress
from workpacket.ledger.log import read_log
from workpacket.lifecycle.board_sync import KEEPING_BOTH, Versions, drawn, drawn_alike, is_drawn, named_twice
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model.events import Actor
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER, PACKETS, POLICY_PATH, STUBS
from workpacket.shell.actor import moment
from workpacket.shell.base import lifecycle_of
from workpacket.shell.tree import read_bytes
from workpacket.text.source import REGISTER, Source
from workpacket.value import Value

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
        """Return the next command to type."""
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
    """Logs, packets and lanes after the merge, read from the commits. `moved`: those whose logs differ."""

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
        """Return the lanes of the merged policy; if both sides changed it, those of their version."""
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
