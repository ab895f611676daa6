"""The guard of a batch: before it is committed, dependencies are compared with the last checkpoint.

That is the commit of the last batch, or the one at which the first batch of the log began. Leave is what the policy
gave at that commit, and what `begin` was given; later calls for the same batch may narrow it and never widen it.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.bridges.batch_desk import BatchDesk
from workpacket.bridges.batch_records import LOCKFILE_CHANGED, BatchState
from workpacket.bridges.dependency_changes import dependency_changes
from workpacket.bridges.dependency_guard import refusal_of
from workpacket.errors import WorkpacketError
from workpacket.git.revisions import commit_of
from workpacket.model.name_patterns import covers
from workpacket.runtime.errors import RunBlocked


def require_known_dependencies(desk: BatchDesk) -> None:
    """Record what changed in dependencies; `RunBlocked` if nobody gave leave, or if that cannot be judged."""
    base = _base_of(desk)
    changes = dependency_changes(desk.repository, base, desk.facts.state.allow_deps, base)
    if changes.verdicts:
        desk.record(LOCKFILE_CHANGED, changes.as_event())
    refused = refusal_of(changes)
    if refused is not None:
        hint = "workpacket deps check shows all; restore the lock files, or begin the batch with --allow-deps NAME"
        raise RunBlocked(refused.message, code=refused.code, details=refused.details, hint=hint)


def narrowed(state: BatchState, wanted: Sequence[str]) -> tuple[str, ...]:
    """The leave of the batch under way, if these names are asked for: the same or less."""
    wider = [name for name in wanted if not any(covers(given, name) for given in state.allow_deps)]
    if wider:
        message = f"the batch began without --allow-deps {','.join(wider)}"
        raise RunBlocked(message, code="scope_widened", hint="leave is given when a batch begins")
    return tuple(wanted) or state.allow_deps


def _base_of(desk: BatchDesk) -> str:
    """The commit compared with, '' for the time before the first one."""
    state = desk.facts.state
    named = state.view.last_commit if state.checkpoint_commit is None else state.checkpoint_commit
    if state.checkpoint_commit is None and not named:
        raise RunBlocked(
            f"{desk.folder}: neither log nor file says at which commit the work began, so nobody can say what it "
            "changed", code="check_not_run", hint="put the commit into checkpoint.yaml as last_commit, and batch adopt",
        )  # fmt: skip
    try:
        return commit_of(desk.repository, named) if named else ""
    except WorkpacketError as error:
        message = f"{desk.folder}: dependencies cannot be compared with {named}: {error.message}"
        raise RunBlocked(message, code="check_not_run", hint=error.hint) from None
