"""Dependency changes in a repository, and the guard that checks them before each milestone of a run.

The work tree is compared with a commit, not git's index: committed, staged and unsaved changes count alike. Ignored
files that were never committed are not part of the repository.

A run may change the dependencies that it was allowed to change when it started, and those that the policy at its first
commit allowed; neither set can be widened from within the run. The policy in the work tree allows nothing.

[deps] allow = ["zod", "@org/*"] threshold = 50
"""

from __future__ import annotations

from typing import Protocol

from workpacket.documents.lockfiles.comparison import (
    DependencyViolation,
    FileVerdict,
    Leave,
    State,
    compare,
    format_of,
    judge,
)
from workpacket.documents.lockfiles.dependencies import LOCKFILE
from workpacket.documents.policy import PolicyDocument
from workpacket.git.objects import list_tree, read_file_at, read_objects
from workpacket.git.repository import Repository, commit_of
from workpacket.git.run import run_git
from workpacket.model.canonical import Json
from workpacket.model.layout import POLICY_PATH
from workpacket.problem import Problem, WorkpacketError
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.commit_checkpoint import CommitReview
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.state import RunState
from workpacket.shell.tree import link_on_the_way, read_bytes, refusal
from workpacket.text.source import Node
from workpacket.value import Value, replace

HERE = "the work tree"
NOTHING_YET = "the empty repository"


class DependencyChanges(Value):
    """The result of a comparison. `base` is the commit on the old side, or '' for an empty state."""

    base: str
    leave: Leave
    verdicts: tuple[FileVerdict, ...]
    unreadable: tuple[Problem, ...]

    @property
    def violations(self) -> tuple[DependencyViolation, ...]:
        return tuple(violation for verdict in self.verdicts for violation in verdict.violations)

    @property
    def warnings(self) -> tuple[tuple[str, str], ...]:
        """Return the path and the text of each warning."""
        return tuple((verdict.file.path, verdict.warning) for verdict in self.verdicts if verdict.warning)

    def as_event(self) -> dict[str, Json]:
        return {
            "base": self.base,
            "allow": list(self.leave.patterns),
            "lockfiles": [verdict.as_json() for verdict in self.verdicts],
            "warnings": [f"{path}: {sentence}" for path, sentence in self.warnings],
        }


def dependency_changes(
    repository: Repository, base: str, allow: tuple[str, ...] = (), policy_at: str = ""
) -> DependencyChanges:
    """Compare with `base`. `base` and `policy_at` are commits, or '' for the time before the first one. Packages listed
    in `allow` or in the policy at `policy_at` may change.
    """
    policy = leave_at(repository, policy_at)
    leave = Leave((*policy.patterns, *allow), policy.threshold)
    before = state_at(repository, base)
    files, unreadable = compare(before, state_here(repository, before))
    return DependencyChanges(base, leave, judge(files, leave), unreadable)


def state_at(repository: Repository, commit: str) -> State:
    """Return the committed dependency files."""
    if not commit:
        return State(NOTHING_YET, {})
    entries = [entry for entry in list_tree(repository, commit) if format_of(entry.path) is not None]
    objects = read_objects(repository, (entry.object_id for entry in entries if entry.is_file))
    said: dict[str, bytes | str] = {
        entry.path: objects.get(entry.object_id, "is not in this clone") if entry.is_file else "is not a regular file"
        for entry in entries
    }
    return State(f"commit {commit[:12]}", said)


def state_here(repository: Repository, before: State) -> State:
    """Return the dependency files in the work tree, including files in `before` that git no longer tracks."""
    listed = run_git(
        repository.root, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--deduplicate"
    ).text
    tags = {row[2:]: row[0] for row in listed.split("\0") if row}
    root = str(repository.root)
    files: dict[str, bytes | str] = {}
    for path in sorted({*tags, *before.files}):
        if format_of(path) is None:
            continue
        link = link_on_the_way(root, path.rpartition("/")[0]) if "/" in path else ""
        try:
            files[path] = f"is behind the symbolic link {link}" if link else read_bytes(root, path, LOCKFILE.size)
        except (FileNotFoundError, NotADirectoryError):
            # In a sparse work tree, an omitted file has the content that the index records.
            if tags.get(path) == "S":
                files[path] = read_objects(repository, [f":{path}"]).get(f":{path}", "is not in this clone")
        except OSError as error:
            files[path] = refusal(error)
    return State(HERE, files)


class HasState(Protocol):
    @property
    def state(self) -> RunState: ...


class DependencyGuard:
    """Checks dependencies before each commit of the run."""

    def __init__(self, session: HasState, repository: Repository) -> None:
        self._session = session
        self._repository = repository

    def __call__(self) -> CommitReview:
        changes = changes_of_run(self._repository, self._session.state)
        refused = refusal_of(changes)
        if not changes.verdicts:
            return CommitReview(refusal=refused)
        return CommitReview((RecordDraft("lockfile_changed", changes.as_event()),), refused)


def changes_of_run(repository: Repository, state: RunState, allow: tuple[str, ...] = ()) -> DependencyChanges:
    """Return the changes since the last milestone of the run, or since its start."""
    last = state.milestones.last
    base = last.commit if last is not None else state.base_commit
    if base is None:
        raise RunBlocked(
            f"{state.stream} does not record its first commit, so its changes are unknown",
            code="check_not_run", hint="workpacket audit deps --base REV, then start a new run",
        )  # fmt: skip
    known = base_commit(repository, base)
    return dependency_changes(repository, known, (*state.allow_deps, *allow), state.base_commit or "")


def base_commit(repository: Repository, named: str, of: str = "") -> str:
    """Return the commit to compare with, or '' for the time before the first one; raise `RunBlocked` if it is missing
    here.
    """
    try:
        return commit_of(repository, named) if named else ""
    except WorkpacketError as error:
        message = f"{of}dependencies cannot be compared with {named}: {error.message}"
        raise RunBlocked(message, code="check_not_run", hint=error.hint) from None


def refusal_of(changes: DependencyChanges) -> RunBlocked | None:
    """Return why these changes are not acceptable. Unreadable files are not acceptable either."""
    if changes.violations:
        first, *more = changes.violations
        rest = f", and {len(more)} more" if more else ""
        return RunBlocked(
            f"{first.path}: {first.message}{rest}", code="lockfile_violation",
            hint="workpacket audit deps shows all; restore the lock files, or start a run with --allow-deps NAME",
            details=changes.as_event(),
        )  # fmt: skip
    if changes.unreadable:
        wrong = changes.unreadable[0]
        where = f"{wrong.path}:{wrong.line}:{wrong.column}" if wrong.line else wrong.path
        return RunBlocked(
            f"{where}: {wrong.message}", code="check_not_run",
            hint="repair or restore the file; it must be readable to be checked", details=changes.as_event(),
        )  # fmt: skip
    return None


def leave_at(repository: Repository, commit: str) -> Leave:
    """Return what the policy at the commit allows; an unreadable policy allows nothing. An empty `commit` means the
    time before the first one.
    """
    data = read_file_at(repository, commit, POLICY_PATH) if commit else None
    return Leave() if data is None else dependency_leave(PolicyDocument.from_bytes(data).root)


def dependency_leave(root: Node | None) -> Leave:
    """Return what a loaded `policy.toml` allows; values that violate its schema allow nothing."""
    leave = Leave()
    table = root.get("deps") if root is not None else None
    if table is None:
        return leave
    allow, threshold = table.get("allow"), table.get("threshold")
    if allow is not None:
        leave = replace(leave, patterns=tuple(item.text for item in allow.items if item.text))
    if threshold is not None and type(threshold.value) is int and threshold.value >= 0:
        leave = replace(leave, threshold=threshold.value)
    return leave
