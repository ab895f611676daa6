"""Whether the work of a scope may go on where its checkpoint left it: every reason against it by name. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.bridges.batch_records import BatchState
from workpacket.documents.batch_plan import SATISFIED, normal_path, overlap
from workpacket.documents.batch_scope import BatchScope
from workpacket.value import Value

# What may be accepted by name: what is not as it was, and that nobody is at work although a holder lives.
ASPECTS = ("branch", "commit", "tasks", "base", "config", "holder")


class Seen(Value):
    """What git and the files say now. `relation` is how the present history lies to the recorded commit."""

    branch: str = ""
    head: str = ""
    tree: str = ""
    relation: str = ""
    base: str = ""
    base_commit: str = ""
    base_changes: tuple[str, ...] = ()
    config: str = ""


class Stale(Value):
    """One thing that is not as it was. What does not block is worth knowing and no more."""

    aspect: str
    code: str
    message: str
    blocks: bool = True


def staleness(state: BatchState, scope: BatchScope, seen: Seen) -> list[Stale]:
    """In a fixed order; nothing for a scope that has not begun."""
    if not state.version and not state.view.last_batch and not state.view.groups:
        return []
    return [
        *_branch(state, seen),
        *_commit(state, seen),
        *_tasks(state, scope),
        *_base(state, scope, seen),
        *_config(state, seen),
    ]


def _branch(state: BatchState, seen: Seen) -> Iterator[Stale]:
    recorded = state.recorded.branch or state.view.branch
    if recorded and recorded != seen.branch:
        here = f"this is {seen.branch}" if seen.branch else "here no branch is checked out"
        yield Stale("branch", "git_diverged", f"the scope is worked on in the branch {recorded}, and {here}")


def _commit(state: BatchState, seen: Seen) -> Iterator[Stale]:
    recorded = state.recorded.commit or state.view.last_commit
    if not recorded:
        return
    if seen.relation == "unreachable":
        yield Stale("commit", "git_diverged", f"the commit {recorded[:12]} is not in the history of {seen.head[:12]}")
    elif seen.relation in {"rewritten", "content_equal"}:
        what = "its changes are here under another commit"
        yield Stale("commit", "git_diverged", f"the commit {recorded[:12]} is gone, but {what}", blocks=False)


def _tasks(state: BatchState, scope: BatchScope) -> Iterator[Stale]:
    under_way = state.batch.tasks if state.batch is not None else ()
    # While a batch is being completed, its tasks are done in the log and perhaps not yet in the file.
    being_completed = state.completing.tasks if state.completing is not None else ()
    done = [task for task in state.view.groups.get("completed", ()) if task not in being_completed]
    for task in dict.fromkeys((*done, *under_way)):
        said = "was done" if task in state.view.done else "is under way"
        if task not in scope.statuses:
            yield _changed(f"{task} {said}, and tasks.yaml no longer has it")
        elif task in done and scope.statuses[task] not in SATISFIED:
            yield _changed(f"{task} was done, and tasks.yaml says it is {scope.statuses[task]}")
        elif state.recorded.definitions.get(task, scope.definitions[task]) != scope.definitions[task]:
            yield _changed(f"{task} {said}, and what it demands was changed since")
    groups = {task: group for group, tasks in state.view.groups.items() for task in tasks}
    for task, status in scope.statuses.items():
        if status in {"done", "completed"} and groups.get(task, "completed") != "completed" and task not in under_way:
            message = f"{task} is {status} in tasks.yaml, and no batch did it"
            yield Stale("tasks", "definitions_changed", message, blocks=False)


def _changed(message: str) -> Stale:
    return Stale("tasks", "definitions_changed", message)


def _base(state: BatchState, scope: BatchScope, seen: Seen) -> Iterator[Stale]:
    """A base that moves on is daily life; one that changes the files of work still to be done is not."""
    if not state.recorded.base_commit or state.recorded.base_commit == seen.base_commit:
        return
    moved = f"{seen.base or 'the base'} moved from {state.recorded.base_commit[:12]} to {seen.base_commit[:12]}"
    open_tasks = [task for task in scope.tasks if task.status not in SATISFIED]
    touched = [
        (path, task.id)
        for path in seen.base_changes
        for task in open_tasks
        if any(overlap(normal_path(path), normal_path(own)) for own in task.files)
    ]
    if touched:
        named = ", ".join(f"{path} ({task})" for path, task in touched)
        yield Stale("base", "git_diverged", f"{moved} and changed files of tasks that are not done: {named}")
    else:
        yield Stale("base", "git_diverged", moved, blocks=False)


def _config(state: BatchState, seen: Seen) -> Iterator[Stale]:
    if state.recorded.config and state.recorded.config != seen.config:
        message = "who reviews or implements was changed in checkpoint.yaml since the batch began"
        yield Stale("config", "definitions_changed", message)
