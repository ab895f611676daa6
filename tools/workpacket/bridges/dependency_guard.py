"""The guard of a run: before a milestone is committed, dependencies are compared with the last one.

Leave is what the run was given at its start, and what the policy allowed at the commit at which the run began: neither
can be widened from within the run.
"""

from __future__ import annotations

from typing import Protocol

from workpacket.bridges.dependency_changes import DependencyChanges, dependency_changes
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of
from workpacket.runtime.attempts.recorder import Draft
from workpacket.runtime.commits.checkpoint import Judged
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.state import RunState


class HasState(Protocol):
    @property
    def state(self) -> RunState: ...


class DependencyGuard:
    """Called before each commit of the run."""

    def __init__(self, session: HasState, repository: Repository) -> None:
        self._session = session
        self._repository = repository

    def __call__(self) -> Judged:
        changes = changes_of_run(self._repository, self._session.state)
        refused = refusal_of(changes)
        if not changes.verdicts:
            return Judged(refusal=refused)
        return Judged((Draft("lockfile_changed", changes.as_event()),), refused)


def changes_of_run(repository: Repository, state: RunState, allow: tuple[str, ...] = ()) -> DependencyChanges:
    """Since the last milestone of the run, or since its beginning."""
    last = state.milestones.last
    base = last.commit if last is not None else state.base_commit
    if base is None:
        raise RunBlocked(
            f"{state.stream} does not say at which commit it began, so nobody can say what it changed",
            code="check_not_run", hint="workpacket deps check --base REV, then start a new run",
        )  # fmt: skip
    try:
        known = commit_of(repository, base) if base else ""
    except WorkpacketError as error:
        said = f"dependencies cannot be compared with {base}: {error.message}"
        raise RunBlocked(said, code="check_not_run", hint=error.hint) from None
    return dependency_changes(repository, known, (*state.allow_deps, *allow), state.base_commit or "")


def refusal_of(changes: DependencyChanges) -> RunBlocked | None:
    """Why nothing may be built upon these changes. What could not be read has not passed."""
    if changes.violations:
        first, *more = changes.violations
        rest = f", and {len(more)} more" if more else ""
        return RunBlocked(
            f"{first.path}: {first.message}{rest}", code="lockfile_violation",
            hint="workpacket deps check shows all; restore the lock files, or start a run with --allow-deps NAME",
            details=changes.as_event(),
        )  # fmt: skip
    if changes.unreadable:
        wrong = changes.unreadable[0]
        where = f"{wrong.path}:{wrong.line}:{wrong.column}" if wrong.line else wrong.path
        return RunBlocked(
            f"{where} in {wrong.at}: {wrong.message}", code="check_not_run",
            hint="repair or restore the file: what cannot be read cannot be judged", details=changes.as_event(),
        )  # fmt: skip
    return None
