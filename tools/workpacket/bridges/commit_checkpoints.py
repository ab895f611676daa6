"""Checkpoint commits: their sidecars as a foreign format, and where a run can resume from them. The sources, in order;
a commit that reached a higher milestone than the best sidecar takes precedence over that sidecar:

    sidecar                `.runr/checkpoints/*.json` of this run, by time, or by the file's age if the time is missing
    git_log_run_specific   commits of this history whose message or log names the run
    git_log_legacy         commits that name no run: used only if the caller says that they belong to this run
    none

A sha is trusted only if its commit, trailer, tree or changes are in this history. Anything else is skipped and
reported, never used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast

from workpacket.bridges.foreign import Foreign, refusal_of_file, stream_named
from workpacket.documents.commit_sidecar import CommitSidecar
from workpacket.documents.places import kind_of
from workpacket.git.objects import Commit, commits_before
from workpacket.git.repository import Repository, head_commit, is_ancestor
from workpacket.model.canonical import Json
from workpacket.problem import Problem, WorkpacketError
from workpacket.runtime.commit_checkpoint import SIDECARS, TRAILER, GitObserver, read_message, sidecar_bytes
from workpacket.runtime.records.state import Milestones, ReachedMilestone
from workpacket.shell.package_files import schemas
from workpacket.shell.tree import read_bytes, refusal
from workpacket.text.source import DATA, Source
from workpacket.value import Value


class CommitBridge:
    """Sidecars of checkpoint commits, `.runr/checkpoints/<sha>.json`, as a foreign format."""

    name = "commit"
    lossy: tuple[str, ...] = ("cursor", "tree of a milestone that changed nothing", "preconditions of the checkpoint")

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        """Return the checkpoint in a sidecar, with the location of every key, or why it cannot be trusted."""
        from workpacket.rules.rule import (
            examine,
            rules_for,  # slow to import, and few callers read a sidecar
        )

        rules = rules_for(CommitSidecar.kind)
        warnings = {rule.code() for rule in rules if rule.severity != "error"}
        sidecar = CommitSidecar(Source.from_bytes(path, data))
        found = examine(sidecar, rules, schemas())
        faults = tuple(fault for fault in found if fault.code not in warnings and _counts(fault, path))
        if sidecar.root is None or faults:
            return faults
        values = cast("Mapping[str, Json]", sidecar.root.plain())
        stream = stream_named(self.name, str(values["run_id"]), str(values["milestone_index"]))
        return (Foreign(self.name, stream, values),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """Return the sidecar file. A sidecar contains only one checkpoint."""
        (checkpoint,) = checkpoints
        return sidecar_bytes(checkpoint.values)


def _counts(fault: Problem, path: str) -> bool:
    """Whether a fault matters. Layout faults do not; a file name identifies the commit only in its own folder."""
    if fault.code == "sidecar_sha_mismatch" and kind_of(path) != "commit_sidecar":
        return False
    return fault.fix is None or not fault.fix.safe


SelectedFrom = Literal["sidecar", "git_log_run_specific", "git_log_legacy", "none"]


class Candidate(NamedTuple):
    """A commit that is claimed to be a checkpoint of the run."""

    source: SelectedFrom
    sha: str
    milestone_index: int
    tree: str = ""
    trailer: str = ""


class Selected(Value):
    """The selected checkpoint. `relation` is how this history relates to the commit; `skipped` lists what was skipped,
    and why.
    """

    source: SelectedFrom
    sha: str = ""
    milestone_index: int = -1
    relation: str = ""
    skipped: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    def as_event(self) -> dict[str, Json]:
        found: dict[str, Json] = {"source": self.source, "skipped": list(self.skipped)}
        if self.source != "none":
            found |= {"sha": self.sha, "milestone_index": self.milestone_index, "relation": self.relation}
        return found


@dataclass(slots=True)
class CommitSelection:
    """Selects a checkpoint commit. `known` are the milestones in the run's log; `legacy` also accepts commit messages
    that name no run.
    """

    repository: Repository
    run: str
    known: Milestones
    legacy: bool = False
    _skipped: list[str] = field(default_factory=list)
    _conflicts: list[str] = field(default_factory=list)

    def select(self) -> Selected:
        observer = GitObserver(self.repository, promise=False)
        commits = self._history()
        by_sha = {commit.commit: commit for commit in commits}
        for candidate in self._candidates(commits, by_sha):
            relation = observer.relation(candidate.sha, candidate.tree, candidate.trailer)
            if relation != "unreachable":
                return Selected(
                    candidate.source, candidate.sha, candidate.milestone_index, relation,
                    tuple(self._skipped), tuple(self._conflicts),
                )  # fmt: skip
            self._skipped.append(f"{candidate.source} {candidate.sha}: the commit is not in this history")
        return Selected("none", skipped=tuple(self._skipped), conflicts=tuple(self._conflicts))

    def _candidates(self, commits: list[Commit], by_sha: dict[str, Commit]) -> list[Candidate]:
        """Return the candidates by source. A milestone later than that of the first sidecar takes precedence over that
        sidecar, so that a missing or broken sidecar does not set the run back.
        """
        sidecars, messages = [*self._sidecars(by_sha)], [*self._messages(commits)]
        if not sidecars:
            return [*self._logged(-1), *messages]
        first = sidecars[0]
        later = [one for one in messages if one.source == "git_log_run_specific" and self._follows(one, first)]
        return [*_highest_first([*self._logged(first.milestone_index), *later]), *sidecars, *messages]

    def _logged(self, after: int) -> list[Candidate]:
        """Return the commits of higher milestones that the run's log contains."""
        return [
            Candidate("git_log_run_specific", one.commit, index, one.tree, one.checkpoint)
            for index, one in sorted(self.known.reached.items(), reverse=True)
            if index > after and one.changed
        ]

    def _follows(self, later: Candidate, first: Candidate) -> bool:
        if later.milestone_index <= first.milestone_index:
            return False
        try:
            return is_ancestor(self.repository, first.sha, later.sha)
        except WorkpacketError:  # the commit of the sidecar is no longer here
            return False

    def _history(self) -> list[Commit]:
        head = head_commit(self.repository)
        return [] if head is None else list(commits_before(self.repository, head, trailer=TRAILER, saying="checkpoint"))

    # ---- sidecars ------------------------------------------------------------------------------------------------

    def _sidecars(self, history: dict[str, Commit]) -> Iterator[Candidate]:
        read = [self._read_sidecar(path, mtime) for path, mtime in sidecar_files(self.repository)]
        mine = sorted((one for one in read if one is not None), reverse=True)
        for index, _, _, sha, candidate in mine:
            wrong = self._contradiction(index, sha, history)
            if wrong:
                self._conflicts.append(f"{SIDECARS}/{sha}.json {wrong}")
            else:
                yield candidate

    def _read_sidecar(self, path: str, mtime: int) -> tuple[int, datetime, int, str, Candidate] | None:
        """Return the sort key and the content; None if the sidecar belongs to another run, or is invalid and was
        reported."""
        try:
            data = read_bytes(str(self.repository.root), path, DATA.size)
        except OSError as error:
            self._skipped.append(f"{path}: {refusal(error)}")
            return None
        source = Source.from_bytes(path, data)
        for fault in CommitBridge().read(path, data):
            # A sidecar without a time is as old as its file.
            if isinstance(fault, Problem) and (fault.code != "field_missing" or "created_at" not in fault.message):
                self._skipped.append(f"{refusal_of_file(source, fault).message} ({fault.code})")
                return None
        sidecar = CommitSidecar(source)
        index, sha, created = sidecar.milestone_index, sidecar.sha, sidecar.created_at
        run = sidecar.run_id.value if sidecar.run_id is not None else ""
        if index is None or sha is None or run != self.run:
            return None
        reached = self._reached(sha.value)
        tree, trailer = (reached.tree, reached.checkpoint) if reached else _also_said(sidecar)
        candidate = Candidate("sidecar", sha.value, index, tree, trailer)
        made = _instant(created.value) if created is not None else datetime.fromtimestamp(mtime / 1e9, UTC)
        return index, made, mtime, sha.value, candidate

    def _reached(self, sha: str) -> ReachedMilestone | None:
        return next((one for one in self.known.reached.values() if one.commit == sha), None)

    def _contradiction(self, index: int, sha: str, history: dict[str, Commit]) -> str:
        """Return how the sidecar differs from the log, or from the commit's own message."""
        reached = self._reached(sha)
        if reached is not None and reached.milestone_index != index:
            return f"claims milestone {index}, but the log has only reached {reached.milestone_index}"
        if self.known.reached and index not in self.known.reached and not self._is_of_before(index):
            return f"claims milestone {index}, which is not in the log of {self.run}"
        said = read_message(history[sha].message) if sha in history else None
        if said is not None and (said.milestone_index != index or said.run not in {"", self.run}):
            return (
                f"claims milestone {index}, but its commit claims milestone {said.milestone_index} of "
                f"{said.run or 'a run'}"
            )
        return ""

    def _is_of_before(self, index: int) -> bool:
        """Whether another tool reached the milestone, in a run that continues here under the same id."""
        return "@" not in self.run and index < min(self.known.reached)

    # ---- messages ------------------------------------------------------------------------------------------------

    def _messages(self, commits: Iterable[Commit]) -> Iterator[Candidate]:
        named: list[Candidate] = []
        nameless: list[Candidate] = []
        for commit in commits:
            said = read_message(commit.message)
            if said is None:
                continue
            if said.run == self.run:
                named.append(Candidate("git_log_run_specific", commit.commit, said.milestone_index))
            elif not said.run:
                nameless.append(Candidate("git_log_legacy", commit.commit, said.milestone_index))
        yield from _highest_first(named)
        if nameless and not self.legacy:
            newest = nameless[0]
            self._skipped.append(f"git_log_legacy {newest.sha}: the commit message does not identify the run")
        elif self.legacy:
            yield from _highest_first(nameless)


def _highest_first(found: list[Candidate]) -> list[Candidate]:
    """Sort by milestone; within each milestone, the newest commit comes first, as in `git log`."""
    return sorted(found, key=lambda one: one.milestone_index, reverse=True)


def _instant(text: str) -> datetime:
    """Parse a time. Times are compared as points in time, not as text, because their time zones may differ."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _also_said(sidecar: CommitSidecar) -> tuple[str, str]:
    """Return the commit's tree and trailer, if workpacket wrote the sidecar."""
    tree, trailer = sidecar.text_at("tree"), sidecar.text_at("checkpoint_id")
    return (tree.value if tree else "", trailer.value if trailer else "")


def sidecar_files(repository: Repository) -> list[tuple[str, int]]:
    """Return the paths and ages of the sidecars; an empty list if the folder is a symbolic link."""
    folder = os.path.join(repository.root, SIDECARS)
    if os.path.islink(folder) or os.path.islink(os.path.dirname(folder)):
        return []
    try:
        with os.scandir(folder) as entries:
            return [
                (f"{SIDECARS}/{entry.name}", entry.stat(follow_symlinks=False).st_mtime_ns)
                for entry in entries
                if entry.name.endswith(".json") and not entry.name.startswith(".") and entry.name != "index.json"
            ]
    except OSError:
        return []
