"""Rules about single files of a batch scope. `across_batches` compares the files with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.documents.batch import (
    ISSUE_FIELDS,
    OPEN_GROUPS,
    STATUSES,
    BatchCheckpoint,
    BatchDependencies,
    BatchTasks,
    TaskEntry,
    status_word,
)
from workpacket.documents.batch_scope import ProblemCode, plan
from workpacket.documents.document import Text
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.edits import TextRun
from workpacket.text.yaml_strict import read_otherwise, resolve
from workpacket.text.yaml_write import double_quoted

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


class BatchLabelText(CheckpointRule):
    """Batch label that is not a number

    Labels are text here, so `2a` is as valid as `2`. But tools that count batches stop at the first label that is not a
    number.

    Remedy: nothing, if all readers of the checkpoint treat labels as text; otherwise, use numbers.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for label in document.labels():
            if not _NUMBER.match(label.value):
                yield self.fault(label.span, f"the label {label.value!r} is not a number")


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
                yield self.fault(status.span, f"{entry.id.value} has the unknown status {status.value!r}")


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
