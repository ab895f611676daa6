"""The facts about a scope before an operation: files, log and git, and what has changed since its checkpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from workpacket.bridges.batch_state import BatchState, Preconditions, folder_of, imported, stream_of
from workpacket.bridges.foreign import Foreign, misfits, refusal_of_file, state_of
from workpacket.documents.batch import SATISFIED, BatchCheckpoint, BatchDependencies, BatchTasks
from workpacket.documents.batch_scope import BatchScope, normal_path, overlap, scope_of
from workpacket.documents.batch_writing import (
    BatchView,
    Values,
    Words,
    brought_up,
    canonical,
    differences,
    document_of,
    view_of,
)
from workpacket.documents.document import Document
from workpacket.git.objects import changed_paths, tree_of
from workpacket.git.repository import Repository, commit_of, current_branch, default_branch, head_commit
from workpacket.model.canonical import Json
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.runtime.commit_checkpoint import GitObserver
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Store
from workpacket.shell.tree import read_bytes
from workpacket.text.source import DATA, Plain, Source
from workpacket.value import Value

# Differences that can be accepted by name, including a living holder whose work has stopped.
ASPECTS = ("branch", "commit", "tasks", "base", "config", "holder")


class BatchObservation(Value):
    """The current state of git and the files. `relation` is how the current history relates to the recorded commit."""

    branch: str = ""
    head: str = ""
    tree: str = ""
    relation: str = ""
    base: str = ""
    base_commit: str = ""
    base_changes: tuple[str, ...] = ()
    config: str = ""


class Stale(Value):
    """Something that has changed. A change that does not block is only reported."""

    aspect: str
    code: str
    message: str
    blocks: bool = True


def staleness(state: BatchState, scope: BatchScope, seen: BatchObservation) -> list[Stale]:
    """Return what has changed, in a fixed order; empty for a scope that has not started."""
    if not state.version and not state.view.last_batch and not state.view.groups:
        return []
    return [
        *_branch(state, seen),
        *_commit(state, seen),
        *_tasks(state, scope),
        *_base(state, scope, seen),
        *_config(state, seen),
    ]


def _branch(state: BatchState, seen: BatchObservation) -> Iterator[Stale]:
    recorded = state.recorded.branch or state.view.branch
    if recorded and recorded != seen.branch:
        here = f"this is {seen.branch}" if seen.branch else "HEAD is detached here"
        yield Stale("branch", "git_diverged", f"work on the scope is on branch {recorded}, but {here}")


def _commit(state: BatchState, seen: BatchObservation) -> Iterator[Stale]:
    recorded = state.recorded.commit or state.view.last_commit
    if not recorded:
        return
    if seen.relation == "unreachable":
        yield Stale("commit", "git_diverged", f"commit {recorded[:12]} is not in the history of {seen.head[:12]}")
    elif seen.relation in {"rewritten", "content_equal"}:
        what = "its changes are here, in a different commit"
        yield Stale("commit", "git_diverged", f"commit {recorded[:12]} no longer exists, but {what}", blocks=False)


def _tasks(state: BatchState, scope: BatchScope) -> Iterator[Stale]:
    under_way = state.batch.tasks if state.batch is not None else ()
    # While a batch is being completed, its tasks are done in the log, but may not be done in the file yet.
    being_completed = state.completing.tasks if state.completing is not None else ()
    done = [task for task in state.view.groups.get("completed", ()) if task not in being_completed]
    for task in dict.fromkeys((*done, *under_way)):
        said = "was done" if task in state.view.done else "is under way"
        if task not in scope.statuses:
            yield _changed(f"{task} {said}, but it is no longer in tasks.yaml")
        elif task in done and scope.statuses[task] not in SATISFIED:
            yield _changed(f"{task} was done, but in tasks.yaml it is {scope.statuses[task]}")
        elif state.recorded.definitions.get(task, scope.definitions[task]) != scope.definitions[task]:
            yield _changed(f"{task} {said}, but its requirements have changed since")
    groups = {task: group for group, tasks in state.view.groups.items() for task in tasks}
    for task, status in scope.statuses.items():
        if status in {"done", "completed"} and groups.get(task, "completed") != "completed" and task not in under_way:
            message = f"{task} is {status} in tasks.yaml, although no batch worked on it"
            yield Stale("tasks", "definitions_changed", message, blocks=False)


def _changed(message: str) -> Stale:
    return Stale("tasks", "definitions_changed", message)


def _base(state: BatchState, scope: BatchScope, seen: BatchObservation) -> Iterator[Stale]:
    """Report changes on the base to files of pending work; it is normal for the base to have advanced."""
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
        yield Stale("base", "git_diverged", f"{moved} and changed files that belong to unfinished tasks: {named}")
    else:
        yield Stale("base", "git_diverged", moved, blocks=False)


def _config(state: BatchState, seen: BatchObservation) -> Iterator[Stale]:
    if state.recorded.config and state.recorded.config != seen.config:
        message = "the reviewers or implementers in checkpoint.yaml have changed since the batch started"
        yield Stale("config", "definitions_changed", message)


FOLDERS = ("specs/active", "scopes/active")

# Returns the bytes of a file below the repository; None if it is missing.
Read = Callable[[str], bytes | None]
D = TypeVar("D", bound=Document)


class BatchFacts(Value):
    """All facts about a scope. `contradictions` are the differences between file and log; `late` means that the file's
    writer was killed.
    """

    folder: str
    checkpoint: BatchCheckpoint | None
    tasks: BatchTasks
    scope: BatchScope
    state: BatchState
    stated: BatchView
    seen: BatchObservation
    stale: tuple[Stale, ...]
    contradictions: tuple[str, ...]
    late: bool

    @property
    def name(self) -> str:
        return self.folder.rpartition("/")[2]

    @property
    def operand(self) -> str:
        return self.folder

    @property
    def path(self) -> str:
        return f"{self.folder}/checkpoint.yaml"

    @property
    def stream(self) -> str:
        return stream_of(self.folder)

    @property
    def is_unlogged(self) -> bool:
        return not self.state.version and self.checkpoint is not None

    @property
    def words(self) -> Words:
        return Words(self.scope.names, {task.id: task.files for task in self.scope.tasks})

    @property
    def reviewers(self) -> tuple[str, ...]:
        return self.checkpoint.reviewers if self.checkpoint is not None else ()

    def preconditions(self, commit: str = "", tree: str = "") -> Preconditions:
        """Return the facts that a later resume must find unchanged."""
        seen = self.seen
        return Preconditions(
            seen.branch, commit or seen.head, tree or seen.tree, seen.base_commit, self.scope.definitions, seen.config
        )


def reader_of(root: str) -> Read:
    """Return a reader for the work tree's files that takes no lock."""

    def read(path: str) -> bytes | None:
        try:
            return read_bytes(root, path, DATA.size)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error

    return read


def folder_named(word: str, read: Read) -> str:
    """Return the folder of the given scope: a path, or a name below specs/active or scopes/active."""
    path = word.strip().removeprefix("./").rstrip("/").removesuffix("/checkpoint.yaml").removesuffix("/tasks.yaml")
    candidates = [path] if "/" in path else [f"{folder}/{path}" for folder in FOLDERS]
    found = [folder for folder in candidates if path and read(f"{folder}/tasks.yaml") is not None]
    if len(found) != 1:
        looked = " nor ".join(f"{folder}/tasks.yaml" for folder in candidates)
        message = f"{word!r} could be {' or '.join(found)}" if found else f"{looked} not found"
        raise WorkpacketError("batch_scope_missing", message)
    return found[0]


def gather(repository: Repository, runtime: Runtime, read: Read, folder: str) -> BatchFacts:
    """Gather all facts about a scope. A file that cannot be read completely is refused."""
    tasks = _required(_document(BatchTasks, read, f"{folder}/tasks.yaml"), folder)
    checkpoint = _document(BatchCheckpoint, read, f"{folder}/checkpoint.yaml")
    planned = {
        entry.id.value: tuple(path.value for path in entry.files)
        for entry in (checkpoint.next_tasks if checkpoint is not None else ())
    }
    scope = scope_of(tasks, _document(BatchDependencies, read, f"{folder}/dependencies.yaml"), planned)
    stated = view_of(checkpoint) if checkpoint is not None else BatchView()
    state = state_of(BatchState, runtime.store, stream_of(folder))
    contradictions, late = state.compared(stated if checkpoint is not None else None, differences)
    if not state.version:
        state = imported(stated, checkpoint.reviewers if checkpoint is not None else ())
    seen = _seen(repository, state, checkpoint)
    stale = tuple(staleness(state, scope, seen))
    return BatchFacts(folder, checkpoint, tasks, scope, state, stated, seen, stale, contradictions, late)


def _required(tasks: BatchTasks | None, folder: str) -> BatchTasks:
    if tasks is None:
        path = f"{folder}/tasks.yaml"
        raise WorkpacketError("batch_scope_missing", f"{path} not found")
    return tasks


def _document(kind: Callable[[Source], D], read: Read, path: str) -> D | None:
    data = read(path)
    if data is None:
        return None
    document = kind(Source.from_bytes(path, data))
    require_whole(document)
    return document


def require_whole(document: Document) -> None:
    """Raise WorkpacketError with line and column if a document is invalid, because documents are never read in part."""
    root = document.root
    for problem in document.faults[:1] if root is None else misfits(root, document.schema):
        raise refusal_of_file(document.source, problem)


def _seen(repository: Repository, state: BatchState, checkpoint: BatchCheckpoint | None) -> BatchObservation:
    head = head_commit(repository) or ""
    recorded = state.recorded
    base = default_branch(repository)
    branch = current_branch(repository) or ""
    base_name = base.ref.rpartition("/")[2] if base is not None else ""
    base_commit = base.commit if base is not None and base_name != branch else ""
    moved = base_commit and recorded.base_commit not in {"", base_commit}
    return BatchObservation(
        branch,
        head,
        tree_of(repository, head) if head else "",
        _relation(repository, recorded, state.view.last_commit) if head else "",
        base_name if base_commit else "",
        base_commit,
        _changes(repository, recorded.base_commit, base_commit) if moved else (),
        _configuration(checkpoint),
    )


def _relation(repository: Repository, recorded: Preconditions, stated: str) -> str:
    observer = GitObserver(repository, promise=False)
    if recorded.commit:
        return observer.relation(recorded.commit, recorded.tree)
    if not stated:
        return ""
    try:
        return observer.relation(commit_of(repository, stated))
    except WorkpacketError:
        return "unreachable"


def _changes(repository: Repository, before: str, after: str) -> tuple[str, ...]:
    try:
        return tuple(change.path for change in changed_paths(repository, before, after))
    except WorkpacketError:
        return ()  # the old base is no longer here; the move is reported anyway


def _configuration(checkpoint: BatchCheckpoint | None) -> str:
    """Return a digest of the reviewers and implementers."""
    nodes = {
        key: node.plain()
        for key in ("review_config", "implementation_config")
        if checkpoint is not None and (node := checkpoint.at("checkpoint", key)) is not None
    }
    return hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest()


class BatchBridge:
    """Converts the `checkpoint.yaml` files of batch scopes between file and log, keeping every key, known or not.

    For a scope that this store manages, the current checkpoint is exported.
    """

    name = "batch"
    lossy: tuple[str, ...] = (
        "comments",
        "quotes around values and the layout of the file",
        "for a scope managed by `workpacket runtime batch`: keys edited by hand since the import",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        document = BatchCheckpoint(Source.from_bytes(path, data))
        checkpoint = document.at("checkpoint")
        if document.root is None or document.faults:
            return tuple(document.faults)
        if checkpoint is None or not checkpoint.mapping:
            return (Problem("field_missing", "the `checkpoint` mapping is missing", Location.span(0, 0)),)
        faults = tuple(misfits(document.root, document.schema))
        if faults:
            return faults
        folder = path.rpartition("/")[0] or (document.name.value if document.name is not None else "")
        return (Foreign(self.name, stream_of(folder), _values(document)),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        return canonical(cast("Plain", dict(checkpoint.values)))

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        stream = f"{self.name}/{key}"
        if store.head(stream) is None:
            return ()
        state = state_of(BatchState, store, stream)
        stated = cast("Values", dict(state.stated)) if state.stated is not None else None
        if stated is None or state.view != state.stated_view:
            stated = brought_up(stated, folder_of(stream), state.view, Words({}, {}))
        return (Foreign(self.name, stream, cast("dict[str, Json]", stated)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether both checkpoints describe the same work; notes, titles and reviewers belong to their writers."""
        return not differences(_view(held), _view(found))


def _values(document: BatchCheckpoint) -> dict[str, Json]:
    plain = document.root.plain() if document.root is not None else None
    return cast("dict[str, Json]", plain)


def _view(checkpoint: Foreign) -> BatchView:
    return view_of(document_of(cast("Plain", dict(checkpoint.values))))
