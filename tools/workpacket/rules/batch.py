"""Rules about single files of a batch scope, and rules that compare its checkpoint, tasks and dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from workpacket.documents.batch import (
    ISSUE_FIELDS,
    OPEN_GROUPS,
    SATISFIED,
    STATUSES,
    BatchCheckpoint,
    BatchDependencies,
    BatchDocument,
    BatchTasks,
    TaskEntry,
    status_word,
)
from workpacket.documents.batch_scope import ProblemCode, is_elsewhere, normal_path, overlap, plan
from workpacket.documents.document import Text
from workpacket.documents.summary import BatchSummary, Mention, circles
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import DocumentRule, RepositoryRule
from workpacket.text.edits import TextRun
from workpacket.text.yaml_strict import double_quoted, read_otherwise, resolve

_DIGITS = 18  # Python refuses to convert a number of thousands of digits
_NUMBER = lazy_pattern(r"[0-9]+\Z")


CheckpointRule = DocumentRule[BatchCheckpoint]


TasksRule = DocumentRule[BatchTasks]


class IntegerLookingSha(CheckpointRule):
    """Commit id that other parsers read as a number

    A commit id that consists of digits, or of digits around one `e`, is a number to most YAML parsers, which write it
    back changed: without leading zeros, or as infinity.

    Remedy: `workpacket check --fix` puts it in quotes.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        commit = document.last_commit
        if commit is None or document.source.text[commit.start : commit.end] != commit.value:
            return
        if isinstance(resolve(commit.value), int) or read_otherwise(commit.value) == "number":
            run = document.run(commit)
            edits = [run.replaced_by(double_quoted(commit.value))] if run is not None else []
            message = f"some parsers read the commit id {commit.value} as a number"
            yield self.fault(commit.span, message, hint="put it in quotes", edits=edits, fix_title="put it in quotes")


class BatchCommitMissing(CheckpointRule):
    """Checkpoint without the last commit

    A resumed session cannot tell which commit contains the last batch, and whether the work tree has changed since.

    Remedy: write the commit before the one that contains the checkpoint to `last_commit`.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        last = document.last_batch
        if last is not None and last.value and document.last_commit is None:
            yield self.fault(last.span, "the checkpoint has a last batch, but no last_commit")


class BatchLabelText(CheckpointRule):
    """Batch label that is not a number

    Labels are text here, so `2a` is as valid as `2`. But tools that count batches stop at the first label that is not a
    number.

    Remedy: none needed if all readers of the checkpoint treat labels as text; otherwise, use numbers.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for label in document.labels():
            if not _NUMBER.match(label.value):
                yield self.fault(label.span, f"the label {label.value!r} is not a number")


class BatchScopeMismatch(DocumentRule[BatchDocument]):
    """Batch file that names another scope

    It was copied from another folder, and its tasks may be those of that scope.

    Remedy: write the name of the folder.
    """

    severity = "warning"

    def check(self, document: BatchDocument) -> Iterator[Problem]:
        folder = document.path.rpartition("/")[0].rpartition("/")[2]
        top = ("checkpoint",) if isinstance(document, BatchCheckpoint) else ()
        wrong: list[tuple[str, Text]] = []
        for key in ("scope", "spec", "scope_name", "spec_name", "scope_path", "spec_path"):
            text = document.text_at(*top, key)
            named = text.value.strip().rstrip("/").rpartition("/")[2] if text is not None else ""
            if text is not None and named and folder and _plain(named) != _plain(folder):
                wrong.append((key, text))
        for key, text in wrong[:1]:
            also = "".join(f"; {other} names another folder, too" for other, _ in wrong[1:])
            yield self.fault(text.span, f"{key} is {text.value!r}, but the folder is {folder!r}{also}")


def _plain(name: str) -> str:
    """Return a name in a form for comparison: `Front matter` and `front-matter` are the same scope."""
    return "".join(filter(str.isalnum, name)).casefold()


class BatchNumberBackwards(CheckpointRule):
    """Next batch with a number that is not after the last one

    A resumed session would repeat a batch, or skip one.

    Remedy: correct `next_batch.number` or `last_batch`.
    """

    severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        last, coming = document.last_batch, document.text_at("checkpoint", "next_batch", "number")
        numbers = [text.value for text in (last, coming) if text is not None and _NUMBER.match(text.value)]
        if coming is not None and len(numbers) > 1 and int(numbers[1][:_DIGITS]) <= int(numbers[0][:_DIGITS]):
            yield self.fault(coming.span, f"the next batch is {numbers[1]}, but the last one was {numbers[0]}")


class DeferredIssueMapping(CheckpointRule):
    """Deferred issue that YAML reads as a mapping

    An unquoted `: ` turns the text before it into a key, so the sentence is lost.

    Remedy: put the sentence in quotes, or write the issue with batch, severity and description.
    """

    severity = "warning"
    fix = "unsafe"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for issue in document.deferred_issues:
            if not issue.mapping or ISSUE_FIELDS & issue.mapping.keys():
                continue
            raw = document.source.text[issue.start : issue.end]
            one_line = raw.isprintable() and not raw.startswith("{")
            run = TextRun.on_line(document.source.text, issue.start, issue.end) if one_line else None
            edits = [run.replaced_by(double_quoted(raw))] if run is not None else []
            key = next(iter(issue.mapping))
            message = f"this is read as a mapping with the key {key!r}, not as a sentence"
            yield self.fault(issue.span, message, hint="put it in quotes", edits=edits, fix_title="put it in quotes")


class BatchTaskInTwoGroups(CheckpointRule):
    """Task listed twice in a checkpoint

    A task listed as both done and pending may be repeated or never done.

    Remedy: keep it only in the correct group.
    """

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        first: dict[str, tuple[str, Text]] = {}
        for name, entries in document.groups.items():
            for entry in entries:
                group, earlier = first.setdefault(entry.id.value, (name, entry.id))
                if earlier is not entry.id:
                    line = document.place(earlier)[0]
                    where = "twice" if group == name else f"under {group} (line {line}) and"
                    yield self.fault(entry.id.span, f"{entry.id.value} stands {where} under {name}")


class BatchNextNotPending(CheckpointRule):
    """Task of the next batch that is not pending

    The task is already done, or is not recorded as pending.

    Remedy: take it out of `next_batch`, or put it under `pending`.
    """

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        if not document.groups:
            return
        pending = {entry.id.value for name in OPEN_GROUPS for entry in document.groups.get(name, ())}
        for entry in document.next_tasks:
            if entry.id.value not in pending:
                yield self.fault(entry.id.span, f"{entry.id.value} is in the next batch, but not pending")


class BatchStatusUnknown(TasksRule):
    """Unknown status of a task

    The task counts neither as pending nor as done, so everything that depends on it waits forever.

    Remedy: write pending, in_progress, completed, done, deferred, descoped or blocked.
    """

    severity = "warning"

    def check(self, document: BatchTasks) -> Iterator[Problem]:
        for entry in document.entries:
            status = entry.status
            if status is not None and status_word(status) not in STATUSES:
                message = f"{entry.id.value} has the unknown status {status.value!r}"
                yield self.fault(status.span, message, hint=f"write one of {', '.join(sorted(STATUSES))}")


class BatchDependenciesUnread(DocumentRule[BatchDependencies]):
    """Dependencies in an unknown form

    The dependencies are not read, so the next batch is planned without them.

    Remedy: write them as a mapping, `edges: {T002: [T001]}`, or as phases whose tasks have `depends_on`.
    """

    def check(self, document: BatchDependencies) -> Iterator[Problem]:
        for key in document.unread:
            yield self.fault(key.span, f"{key.value!r} does not list dependencies in a known form")


class _Tasks(NamedTuple):
    document: BatchTasks
    by_id: dict[str, list[TaskEntry]]


class _PlanRule(TasksRule):
    """A rule about faults that prevent the next batch from being planned."""

    problem: ProblemCode

    def check(self, document: BatchTasks) -> Iterator[Problem]:
        by_id: dict[str, list[TaskEntry]] = {}
        for entry in document.entries:
            by_id.setdefault(entry.id.value, []).append(entry)
        for found in plan(document.tasks()).problems:
            if found.code == self.problem:
                yield from self.faults_of(_Tasks(document, by_id), found.tasks)

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        raise NotImplementedError


class BatchTaskTwice(_PlanRule):
    """Duplicate task id

    It is unclear which of the tasks dependencies and checkpoints refer to.

    Remedy: give one of them another id.
    """

    problem = "batch_task_twice"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        first, *again = scope.by_id[tasks[0]]
        line = scope.document.place(first.id)[0]
        yield from (self.fault(entry.id.span, f"{tasks[0]} is already on line {line}") for entry in again)


class BatchDependencyUnknown(_PlanRule):
    """Dependency on an unknown task

    The task waits for something that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    problem = "batch_dependency_unknown"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        name, missing = tasks
        for entry in scope.by_id[name]:
            for other in entry.depends_on:
                if other.value == missing:
                    yield self.fault(other.span, f"{name} depends on {missing}, which does not exist")


class BatchDependencyCycle(_PlanRule):
    """Circular dependency between tasks

    None of the tasks can ever start.

    Remedy: delete one of the dependencies, or split a task.
    """

    problem = "batch_dependency_cycle"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        closing = scope.by_id[tasks[-2]][0]
        span = next((other.span for other in closing.depends_on if other.value == tasks[-1]), closing.id.span)
        yield self.fault(span, f"circular dependency: {' -> '.join(tasks)}")


class BatchDependencyDeadlock(_PlanRule):
    """Deadlock of pending tasks

    Each waits for a task that is neither done nor in progress, such as a deferred one.

    Remedy: finish or descope the tasks that they wait for, or remove the dependency.
    """

    problem = "batch_dependency_deadlock"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        satisfied = plan(scope.document.tasks()).satisfied
        entry = scope.by_id[tasks[0]][0]
        other = next((other for other in entry.depends_on if other.value not in satisfied), entry.id)
        waiting = f"none of the {len(tasks)} pending tasks can start: " if len(tasks) > 1 else ""
        yield self.fault(other.span, f"dependency deadlock: {waiting}{tasks[0]} waits for {other.value}")


class File(NamedTuple):
    path: str
    summary: BatchSummary


class BatchFolder(NamedTuple):
    """The existing files of one folder."""

    checkpoint: File | None
    tasks: File | None
    dependencies: File | None

    def files_of(self, task: str) -> list[str]:
        """Return the files that a task changes: those in the checkpoint, in tasks.yaml, or in dependencies.yaml."""
        for file in (self.checkpoint, self.tasks, self.dependencies):
            found = dict(file.summary["files"]).get(task) if file is not None else None
            if found:
                return found
        return []


def scopes(repository: RepositorySummaries) -> Iterator[BatchFolder]:
    """Yield every scope that has tasks, a checkpoint or dependencies."""
    kinds = ("batch_checkpoint", "batch_tasks", "batch_dependencies")
    folders: dict[str, dict[str, File]] = {}
    for kind in kinds:
        for path, summary in repository.batch(kind).items():
            folders.setdefault(path.rpartition("/")[0], {})[kind] = File(path, summary)
    for _, files in sorted(folders.items()):
        yield BatchFolder(*(files.get(kind) for kind in kinds))


def names(mentions: list[Mention]) -> set[str]:
    return {mention[0] for mention in mentions}


def unknown(mentions: Iterable[Mention], known: set[str]) -> Iterator[Mention]:
    """Yield the first mention of each unknown task of this scope."""
    said = set(known)
    for mention in mentions:
        if mention[0] not in said and not is_elsewhere(mention[0]):
            said.add(mention[0])
            yield mention


class BatchCheckpointTaskUnknown(RepositoryRule):
    """Checkpoint with a task that is not in tasks.yaml

    The next session will look for a task that is not described anywhere.

    Remedy: correct the id in checkpoint.yaml, or add the task to tasks.yaml.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.checkpoint is None or scope.tasks is None:
                continue
            mentions = [*scope.checkpoint.summary["tasks"], *scope.checkpoint.summary["next"]]
            for mention in unknown(mentions, names(scope.tasks.summary["tasks"])):
                yield self.finding(scope.checkpoint.path, mention[1:], f"tasks.yaml has no task {mention[0]}")


class BatchCheckpointTaskMissing(RepositoryRule):
    """Task missing from the checkpoint

    The checkpoint lists it neither as done nor as pending, so a resumed session would forget it.

    Remedy: regenerate the checkpoint; it must list every task in tasks.yaml.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            # A checkpoint without a list of tasks has the newer form, which leaves the list to tasks.yaml.
            if scope.checkpoint is None or scope.tasks is None or not scope.checkpoint.summary["tasks"]:
                continue
            listed = names(scope.checkpoint.summary["tasks"])
            missing = [mention[0] for mention in scope.tasks.summary["tasks"] if mention[0] not in listed]
            if missing:
                message = f"the checkpoint does not list {', '.join(missing)} of tasks.yaml"
                yield self.finding(scope.checkpoint.path, scope.checkpoint.summary["place"], message)


class BatchStatusDrift(RepositoryRule):
    """Task whose state differs between the checkpoint and tasks.yaml

    One of the two files was not updated after the last batch, so a resumed session would repeat or skip work.

    Remedy: correct the one that is wrong.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.checkpoint is None or scope.tasks is None:
                continue
            defined = dict(scope.tasks.summary["statuses"])
            stated = dict(scope.checkpoint.summary["statuses"])
            differing = [
                mention
                for mention in scope.checkpoint.summary["tasks"]
                if mention[0] in defined and (defined[mention[0]] in SATISFIED) != (stated[mention[0]] in SATISFIED)
            ]
            if differing:
                name, line, column = differing[0]
                more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
                message = f"{name}{more} is under {stated[name]}, but in tasks.yaml it is {defined[name]}"
                yield self.finding(scope.checkpoint.path, (line, column), message)


class BatchNextNotReady(RepositoryRule):
    """Task of the next batch whose dependencies are not done

    The task would be based on work that does not exist yet.

    Remedy: take it out of the next batch; `workpacket runtime batch next` lists the tasks that are ready.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.checkpoint is None or scope.tasks is None or not scope.checkpoint.summary["tasks"]:
                continue
            done = names(scope.checkpoint.summary["satisfied"])
            needs: dict[str, list[str]] = {}
            for one, other in scope.tasks.summary["depends"]:
                needs.setdefault(one[0], []).append(other[0])
            for mention in scope.checkpoint.summary["next"]:
                missing = [other for other in needs.get(mention[0], ()) if other not in done]
                if missing:
                    message = f"{mention[0]} depends on {', '.join(missing)}, which is not done"
                    yield self.finding(scope.checkpoint.path, mention[1:], message)


class BatchNextFilesCollide(RepositoryRule):
    """Parallel tasks that change the same file

    Both tasks are done at the same time, so one would overwrite the other's changes.

    Remedy: move one of them to a later batch, or set `parallel: false`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.checkpoint is None or not scope.checkpoint.summary["parallel"]:
                continue
            taken: list[tuple[str, str]] = []
            for name, line, column in scope.checkpoint.summary["next"]:
                paths = [(normal_path(path), name) for path in scope.files_of(name)]
                pairs = ((path, owner) for path, _ in paths for other, owner in taken if overlap(path, other))
                collision = next(pairs, None)
                if collision is not None:
                    message = f"{name} and {collision[1]} both change {collision[0]}"
                    yield self.finding(scope.checkpoint.path, (line, column), message)
                taken += paths


class BatchDependenciesTaskUnknown(RepositoryRule):
    """Task in dependencies.yaml that is not in tasks.yaml

    The file belongs to another set of tasks, or an id is misspelled.

    Remedy: correct the id, or add the task to tasks.yaml.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.dependencies is None or scope.tasks is None:
                continue
            summary = scope.dependencies.summary
            pairs = [mention for pair in (*summary["depends"], *summary["loose"]) for mention in pair]
            for mention in unknown([*summary["tasks"], *pairs], names(scope.tasks.summary["tasks"])):
                yield self.finding(scope.dependencies.path, mention[1:], f"tasks.yaml has no task {mention[0]}")


class BatchDependenciesCycle(RepositoryRule):
    """Circular dependency in dependencies.yaml, alone or together with tasks.yaml

    None of the tasks can ever start.

    Remedy: delete one of the dependencies, or split a task.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.dependencies is None or not scope.dependencies.summary["depends"]:
                continue
            waits: dict[str, list[str]] = {}
            own = [*scope.tasks.summary["depends"]] if scope.tasks is not None else []
            for one, other in (*own, *scope.dependencies.summary["depends"]):
                waits.setdefault(one[0], []).append(other[0])
            for circle in circles(waits, [*waits]):
                steps = set(pairwise(circle))
                stated = [pair for pair in scope.dependencies.summary["depends"] if (pair[0][0], pair[1][0]) in steps]
                if stated:  # otherwise tasks.yaml alone is circular, which `batch_dependency_cycle` reports
                    message = f"circular dependency: {' -> '.join(circle)}"
                    yield self.finding(scope.dependencies.path, stated[-1][1][1:], message)


_MOST_WALKS = 500


class _Implied:
    """Dependencies, and those that follow from them. Only what is not stated is searched for."""

    def __init__(self, pairs: Iterable[tuple[Mention, Mention]]) -> None:
        self._needs: dict[str, set[str]] = {}
        self._all: dict[str, set[str]] = {}
        for one, other in pairs:
            self._needs.setdefault(one[0], set()).add(other[0])

    def __bool__(self) -> bool:
        return bool(self._needs)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        name, other = pair
        return other in self._needs.get(name, ()) or other in self._walked(name)

    def _walked(self, name: str) -> set[str]:
        found = self._all.setdefault(name, set())
        waiting = [*self._needs.get(name, ())] if not found and len(self._all) <= _MOST_WALKS else []
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self._needs.get(one, ())
        return found


class BatchDependenciesDisagree(RepositoryRule):
    """Dependencies that tasks.yaml and dependencies.yaml state differently

    Depending on the file that is read, different tasks may start. A dependency that follows from others may be left
    out.

    Remedy: make them agree.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for scope in scopes(repository):
            if scope.dependencies is None or scope.tasks is None:
                continue
            summary = scope.dependencies.summary
            known = names(scope.tasks.summary["tasks"])
            defined = _Implied(scope.tasks.summary["depends"])
            if not defined:  # only dependencies.yaml states them
                continue
            # The format does not define whether `from` or `to` comes first, so such pairs are accepted either way.
            for pairs, loose in ((summary["depends"], False), (summary["loose"], True)):
                for one, other in pairs:
                    agreed = (one[0], other[0]) in defined or (loose and (other[0], one[0]) in defined)
                    if not agreed and {one[0], other[0]} <= known:
                        message = f"tasks.yaml does not say that {one[0]} depends on {other[0]}"
                        yield self.finding(scope.dependencies.path, one[1:], message)
            yield from self._left_out(scope.dependencies, scope.tasks.summary["depends"], known)

    def _left_out(self, file: File, defined: list[tuple[Mention, Mention]], known: set[str]) -> Iterator[Problem]:
        """Report dependencies in tasks.yaml that are missing from this file, unless this file has none at all."""
        stated = [*file.summary["depends"], *file.summary["loose"]]
        either = [*stated, *((other, one) for one, other in file.summary["loose"])]
        pairs = _Implied(either)
        places = {one[0]: one for one in reversed([*file.summary["tasks"], *(one for one, _ in stated)])}
        for one, other in defined if stated else ():
            if (one[0], other[0]) not in pairs and other[0] in known:
                message = f"tasks.yaml says that {one[0]} depends on {other[0]}, but this file does not"
                yield self.finding(file.path, places.get(one[0], stated[0][0])[1:], message)
