"""Checkpoint commits: a milestone of a run, made durable in git and in the log.

    chore(runr): checkpoint <run> milestone <n>     of one run
    chore(agent): checkpoint milestone <n>          older form that does not name the run

Only the first line counts, and only as a whole: a message that quotes another one further down is not a checkpoint.

    1  checkpoint.prepared    the log records the milestone to be committed, and its id
    2  git commit             the commit carries the id as a trailer
    3 sidecar a view of the log for other tools, if it can be written; never written in part
    4  checkpoint_complete    the log records the resulting commit, with the checkpoint to resume from

If a process dies in between, the next call repairs it: the log has the id, and git shows whether a commit carries it.
An existing commit is never repeated; a missing one is made under the same id.

A milestone without changes is recorded but not committed. A milestone that has already been reached is not committed
again: the call returns the record if its commit is still part of this history, and is refused otherwise.

When a run resumes, `GitObserver` says whether the commit of a checkpoint is part of this history, and whether the work
tree has only our own changes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple

from workpacket.git.objects import (
    Commit,
    commit_paths,
    commit_with_trailer,
    holds_changes_of,
    status,
    taken_back,
    tree_of,
    trees_before,
)
from workpacket.git.repository import Repository, commit_of, head_commit, is_ancestor, operation_in_progress
from workpacket.model.canonical import Json
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.session import Session, cursor_of
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.jcs import storable
from workpacket.runtime.records.state import CheckpointRecord, Prepared, ReachedMilestone
from workpacket.runtime.resume.observe import GitRelation, Observations

TRAILER: Final = "Checkpoint-Id"
SIDECARS: Final = ".runr/checkpoints"
SIDECAR_VERSION: Final = 1

# Digits are spelled out: \d would match those of every script.
_RUN_SPECIFIC: Final = re.compile(r"chore\(runr\): checkpoint (?P<run>[^\x00-\x1f]+) milestone (?P<index>[0-9]{1,9})\Z")
_LEGACY: Final = re.compile(r"chore\(agent\): checkpoint milestone (?P<index>[0-9]{1,9})\Z")


class CheckpointMessage(NamedTuple):
    """The parts of a checkpoint message. `run` is '' if the message does not name a run."""

    run: str
    milestone_index: int


def read_message(message: str) -> CheckpointMessage | None:
    """Return the checkpoint described by a commit message; None for any other commit."""
    first = message.split("\n", 1)[0].rstrip("\r")
    found = _RUN_SPECIFIC.match(first)
    if found is not None:
        return CheckpointMessage(found["run"], int(found["index"]))
    found = _LEGACY.match(first)
    return CheckpointMessage("", int(found["index"])) if found is not None else None


def message_of(run: str, milestone_index: int, title: str, checkpoint: str) -> str:
    """Return the message of a checkpoint commit, including the trailer by which the commit can be found after its sha
    has changed.
    """
    body = f"{title}\n\n" if title else ""
    return f"chore(runr): checkpoint {run} milestone {milestone_index}\n\n{body}{TRAILER}: {checkpoint}\n"


def sidecar_path(sha: str) -> str:
    return f"{SIDECARS}/{sha}.json"


def sidecar_bytes(values: Mapping[str, Json]) -> bytes:
    """Return the canonical sidecar file: indented by two spaces, with the keys in the given order and a final
    newline."""
    return (json.dumps(dict(values), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


# Files that the runtime itself writes into a work tree: they never count as foreign changes and are never committed.
OWN_FOLDERS: Final = (".workpacket", ".runr", LOG_FOLDER)


class GitObserver:
    """Observes git. With `promise`, checkpoints require their commit, and a clean work tree if it is clean when they
    are made.

    `own` lists the folders and files that the run itself writes, relative to the top of the work tree: they are never
    foreign.
    """

    def __init__(self, repository: Repository, *, own: tuple[str, ...] = (), promise: bool = True) -> None:
        self._repository = repository
        self._own = own
        self._promise = promise

    def preconditions(self) -> Mapping[str, Json]:
        if not self._promise:
            return {}
        head = head_commit(self._repository)
        if head is None:
            raise RunBlocked("there is no commit yet for a checkpoint to refer to", code="check_not_run",
                             hint="commit something with git, then try again")  # fmt: skip
        return {"commit": head, "tree": tree_of(self._repository, head), "clean": not self.foreign_changes()}

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations:
        if point is None or "commit" not in point.preconditions:
            return seen
        promised = point.preconditions
        commit, tree, trailer = (str(promised.get(name, "")) for name in ("commit", "tree", "trailer"))
        own = promised.get("own")
        seen = replace(seen, git=self.relation(commit, tree, trailer))
        return replace(seen, foreign_changes=self.foreign_changes(own if isinstance(own, list) else ()))

    def relation(self, commit: str, tree: str = "", trailer: str = "") -> GitRelation:
        """Return how the current history relates to a recorded commit, which may survive only as a tree or trailer."""
        head = head_commit(self._repository)
        if head is None:
            return "unreachable"
        if head == commit:
            return "exact"
        known = self._exists(commit)
        if known and is_ancestor(self._repository, commit, head):
            return "unreachable" if taken_back(self._repository, commit, head) else "ahead"
        if tree and tree in trees_before(self._repository, head, commit if known else ""):
            return "content_equal"
        if known and holds_changes_of(self._repository, commit, head):
            return "rewritten"
        found = commit_with_trailer(self._repository, head, TRAILER, trailer) if trailer else None
        return "rewritten" if found is not None else "unreachable"

    def foreign_changes(self, own: Iterable[object] = ()) -> tuple[str, ...]:
        """Return the changes that `git status` shows outside the run's own files: the files in the observer's list, and
        those in the given `own`.
        """
        folders = (*self._own, *map(str, own))
        return tuple(entry.path for entry in status(self._repository) if not within(entry.path, folders))

    def _exists(self, commit: str) -> bool:
        try:
            commit_of(self._repository, commit)
        except WorkpacketError:
            return False
        return True


def within(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of these files, or below one of these folders; '.' contains everything."""
    return any(own in {".", path} or path.startswith(f"{own.rstrip('/')}/") for own in folders)


def sidecar_values(run: str, prepared: Prepared, sha: str, tree: str) -> dict[str, Json]:
    """Return the fields of the format, and two more that identify the commit after its sha has changed. Optional fields
    that are unknown are left out.
    """
    made = datetime.fromtimestamp(prepared.event.occurred_at / 1_000_000, UTC)
    return {
        "schema_version": SIDECAR_VERSION,
        "sha": sha,
        "run_id": run,
        "milestone_index": prepared.milestone_index,
        "milestone_title": prepared.title,
        "created_at": made.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **({"tier": prepared.tier} if prepared.tier else {}),
        **({"verification_commands": [*prepared.verification_commands]} if prepared.verification_commands else {}),
        "checkpoint_id": prepared.checkpoint,
        "tree": tree,
    }


def write_sidecar(root: Path, sha: str, values: Mapping[str, Json]) -> None:
    """Write `.runr/checkpoints/<sha>.json`, or raise OSError. Nothing is written through a symbolic link."""
    path = root / sidecar_path(sha)
    for folder in (path.parent.parent, path.parent):
        if folder.is_symlink():
            raise OSError(f"{folder} is a symbolic link")
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with waiting.open("xb") as file:
            file.write(sidecar_bytes(values))
            file.flush()
            os.fsync(file.fileno())
        waiting.replace(path)
    except OSError:
        waiting.unlink(missing_ok=True)
        raise


How = Literal["committed", "found", "unchanged", "recorded"]


class CommitPoint(NamedTuple):
    """A milestone that has been reached. `how`: committed now, found as the commit of an interrupted call, reached
    without changes, or recorded before.
    """

    checkpoint: str
    commit: str
    milestone_index: int
    how: How
    sidecar_written: bool


class CommitReview(NamedTuple):
    """A reviewer's record, made before a change is committed, and the reason why it must not be committed, if any."""

    drafts: tuple[RecordDraft, ...] = ()
    refusal: RunBlocked | None = None


class VerificationNote(NamedTuple):
    """What was verified before a milestone is committed: the tier, and the commands that passed."""

    tier: str = ""
    commands: tuple[str, ...] = ()


Guard = Callable[[], CommitReview]


@dataclass(slots=True)
class CommitCheckpoints:
    """The checkpoint commits of one run. `guard` inspects the work tree before each commit."""

    session: Session
    repository: Repository
    guard: Guard | None = None

    def reach(
        self, milestone_index: int, title: str = "", cursor: Json = None, verified: VerificationNote | None = None
    ) -> CommitPoint:
        """Commit the work tree as this milestone, limited to the run's scope. `verified` goes into the sidecar."""
        require_one_line(title)
        settled = self.settle()
        if settled is not None and settled.milestone_index == milestone_index:
            return settled
        known = self.session.state.milestones.reached.get(milestone_index)
        if known is not None:
            return self._recorded(known)
        if self.session.replay_only:
            raise RunBlocked(f"{self._run} is finished; it cannot reach another milestone", code="step_changed")
        operation = operation_in_progress(self.repository)
        if operation:
            raise WorkpacketError("operation_in_progress", f"git is in the middle of a {operation}")
        self._judge()
        prepared = self._prepared(milestone_index, title, cursor, verified or VerificationNote())
        self.session.boundary.check_now()
        paths = self.own_changes()
        if paths:
            commit_paths(self.repository, self._message(prepared), paths)
        found = self._found(prepared)
        if paths and found is None:
            said = f"the commit for milestone {milestone_index} lacks the trailer {TRAILER}"
            raise RunBlocked(
                said, code="check_not_run", hint="make sure that no hook removes the trailer, then amend the commit"
            )
        return self._complete(prepared, found, "committed")

    def settle(self) -> CommitPoint | None:
        """Finish a call that died after making its commit; if it had not yet made the commit, leave that to the
        caller."""
        prepared = self.session.state.milestones.prepared
        if prepared is None or self.session.replay_only:
            return None
        found = self._found(prepared)
        return None if found is None else self._complete(prepared, found, "found")

    def own_changes(self) -> list[str]:
        """Return the differences from HEAD that belong to the run: those within its scope, if it has one."""
        scope = self.session.state.scope or (".",)
        changed = [entry.path for entry in status(self.repository)]
        return [path for path in changed if within(path, scope) and not within(path, OWN_FOLDERS)]

    # ---- parts ---------------------------------------------------------------------------------------------------

    @property
    def _run(self) -> str:
        return self.session.recorder.stream

    def _judge(self) -> None:
        judged = self.guard() if self.guard is not None else CommitReview()
        if judged.drafts:
            self.session.recorder.record(*judged.drafts)
        if judged.refusal is not None:
            raise judged.refusal

    def _prepared(self, milestone_index: int, title: str, cursor: Json, verified: VerificationNote) -> Prepared:
        """Return the announcement; the announcement of an interrupted call is reused, because its commit may still be
        made."""
        open_one = self.session.state.milestones.prepared
        if open_one is not None and (open_one.milestone_index, open_one.title) == (milestone_index, title):
            return open_one
        data: dict[str, Json] = {
            "checkpoint": self.session.ids()[:16], "milestone_index": milestone_index, "milestone_title": title,
            "base": head_commit(self.repository) or "",
        }  # fmt: skip
        data |= {"tier": verified.tier} if verified.tier else {}
        data |= {"verification_commands": [*verified.commands]} if verified.commands else {}
        payload = self.session.cursor_bytes(cursor, title)
        self.session.recorder.record(RecordDraft("checkpoint.prepared", data, payload))
        prepared = self.session.state.milestones.prepared
        assert prepared is not None
        return prepared

    def _message(self, prepared: Prepared) -> str:
        return message_of(self._run, prepared.milestone_index, prepared.title, prepared.checkpoint)

    def _found(self, prepared: Prepared) -> Commit | None:
        head = head_commit(self.repository)
        return None if head is None else commit_with_trailer(self.repository, head, TRAILER, prepared.checkpoint)

    def _complete(self, prepared: Prepared, found: Commit | None, how: How) -> CommitPoint:
        commit = found.commit if found is not None else head_commit(self.repository)
        if commit is None:
            raise RunBlocked(f"milestone {prepared.milestone_index} has no changes, and there is no commit yet",
                             code="check_not_run", hint="commit something first: git commit")  # fmt: skip
        tree = found.tree if found is not None else tree_of(self.repository, commit)
        failed = () if found is None else self._write_sidecar(prepared, found)
        written = found is not None and not failed
        data: dict[str, Json] = {
            "checkpoint": prepared.checkpoint, "milestone_index": prepared.milestone_index, "commit": commit,
            "tree": tree, "changed": found is not None, "found": how == "found", "sidecar_written": written,
        }  # fmt: skip
        self.session.checkpoint(
            cursor_of(self.session.recorder, prepared), prepared.title, "commit",
            self._promises(prepared, commit, tree), with_token=False,
            first=(RecordDraft("checkpoint_complete", data), *failed),
        )  # fmt: skip
        return CommitPoint(
            prepared.checkpoint, commit, prepared.milestone_index, how if found is not None else "unchanged", written
        )

    def _promises(self, prepared: Prepared, commit: str, tree: str) -> dict[str, Json]:
        """Return the promises of the checkpoint. All changes within the scope belong to the run, even if they are part
        of the next milestone. If the run has no scope, all changes belong to it, so a clean work tree cannot be
        promised.
        """
        scope: list[Json] = list(self.session.state.scope)
        clean = bool(scope) and not GitObserver(self.repository, own=OWN_FOLDERS).foreign_changes(scope)
        return {"commit": commit, "tree": tree, "trailer": prepared.checkpoint, "own": scope, "clean": clean}

    def _write_sidecar(self, prepared: Prepared, found: Commit) -> tuple[RecordDraft, ...]:
        try:
            values = sidecar_values(self._run, prepared, found.commit, found.tree)
            write_sidecar(self.repository.root, found.commit, values)
        except OSError as error:
            path = str(self.repository.root / sidecar_path(found.commit))
            failure: dict[str, Json] = {
                "sha": found.commit,
                "path": storable(path),
                "error": str(error.strerror or error),
            }
            return (RecordDraft("checkpoint_sidecar_write_failed", failure),)
        return ()

    def _recorded(self, known: ReachedMilestone) -> CommitPoint:
        relation = GitObserver(self.repository).relation(known.commit, known.tree, known.checkpoint)
        if relation == "unreachable":
            raise RunBlocked(
                f"milestone {known.milestone_index} was reached at {known.commit}, which is not in this history",
                code="git_diverged",
                details={"commit": known.commit, "milestone_index": known.milestone_index, "relation": relation},
            )
        written = (self.repository.root / sidecar_path(known.commit)).exists()
        return CommitPoint(known.checkpoint, known.commit, known.milestone_index, "recorded", written)


def next_milestone(session: Session) -> int:
    """Return the milestone that was begun but not reached; otherwise the one after the highest reached."""
    milestones = session.state.milestones
    if milestones.prepared is not None:
        return milestones.prepared.milestone_index
    return max(milestones.reached, default=-1) + 1


def require_one_line(title: str) -> None:
    if not title.isprintable():
        raise ValueError(f"a milestone's title must be one line of text, not {title!r}")
