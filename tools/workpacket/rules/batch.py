"""Rules about single files of a batch scope. `checkpoints` compares the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.documents.batch import (
    ISSUE_FIELDS,
    OPEN_GROUPS,
    STATUSES,
    BatchCheckpoint,
    BatchDependencies,
    BatchDocument,
    BatchTasks,
    TaskEntry,
    status_word,
)
from workpacket.documents.batch_scope import ProblemCode, plan
from workpacket.documents.document import Text, as_text
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.source import TextRun
from workpacket.text.yaml_strict import double_quoted, read_otherwise, resolve

_DIGITS = 18  # Python refuses to convert a number of thousands of digits
_NUMBER = lazy_pattern(r"[0-9]+\Z")


CheckpointRule = DocumentRule[BatchCheckpoint]


TasksRule = DocumentRule[BatchTasks]


class IntegerLookingSha(CheckpointRule):
    """Commit id that other parsers read as a number

    A commit id that consists of digits, or of digits around one `e`, is a number to most YAML parsers, which write it
    back in a different form: without leading zeros, or as infinity.

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

    A resumed session cannot tell which commit contains the last batch, or whether the work tree has changed since then.

    Remedy: in `last_commit`, write the commit before the one that contains the checkpoint.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        last = document.last_batch
        if last is not None and last.value and document.last_commit is None:
            yield self.fault(last.span, "the checkpoint has a last batch, but no last_commit")


class BatchLabelText(CheckpointRule):
    """Batch label that is not a number

    Labels are strings here, so `2a` is as valid as `2`. But tools that count batches stop at the first label that is
    not a number.

    Remedy: none needed if all readers of the checkpoint treat labels as strings; otherwise, use numbers.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for label in document.labels():
            if not _NUMBER.match(label.value):
                yield self.fault(label.span, f"the label {label.value!r} is not a number")


class BatchScopeMismatch(DocumentRule[BatchDocument]):
    """Batch file that names a different scope

    The file was copied from another folder, and its tasks may be those of the other scope.

    Remedy: write the name of the folder.
    """

    severity = "warning"
    strict_severity = "warning"

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
            also = "".join(f"; {other} also names a different folder" for other, _ in wrong[1:])
            yield self.fault(text.span, f"{key} is {text.value!r}, but the folder is {folder!r}{also}")


def _plain(name: str) -> str:
    """Return a name normalized for comparison: `Front matter` and `front-matter` are the same scope."""
    return "".join(filter(str.isalnum, name)).casefold()


class BatchNumberBackwards(CheckpointRule):
    """Batch number that does not follow the previous one

    A resumed session would repeat a batch, or skip one. An issue cannot have been deferred in a batch that is not done.

    Remedy: correct `next_batch.number`, `last_batch` or the `batch` of the issue.
    """

    severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        last, coming = document.last_batch, document.text_at("checkpoint", "next_batch", "number")
        numbers = [text.value for text in (last, coming) if text is not None and _NUMBER.match(text.value)]
        if coming is not None and len(numbers) > 1:
            before, after = (int(number[:_DIGITS]) for number in numbers)
            if after != before + 1:
                yield self.fault(coming.span, f"the next batch is {numbers[1]}, but the last batch was {numbers[0]}")
        found = (as_text(issue.get("batch")) for issue in document.deferred_issues if last is not None)
        for text in found:
            values = [one.value[:_DIGITS] for one in (text, last) if one is not None and _NUMBER.match(one.value)]
            if text is not None and len(values) > 1 and int(values[0]) > int(values[1]):
                message = f"the issue was deferred in batch {values[0]}, but the last batch was {values[1]}"
                yield self.fault(text.span, message)


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
            hint = "put it in quotes, or write batch, severity and description"
            yield self.fault(issue.span, message, hint=hint, edits=edits, fix_title="put it in quotes")


_RESOLVED = lazy_pattern(r"(?i)\b(?:RESOLVED|FIXED|DONE) in (?:batch|commit|[0-9a-f]{7})|:[ \t]*(?:RESOLVED|FIXED)\b")


class DeferredIssueResolved(CheckpointRule):
    """Resolved issue that is still deferred

    The next batches carry it on, and someone resolves it again.

    Remedy: delete it from `deferred_issues`.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for issue in document.deferred_issues:
            said = _RESOLVED.search(document.source.text, issue.start, issue.end)
            if said is not None:
                yield self.fault(said.span(), f"this issue is still deferred, but says {said[0].strip(': ')!r}")


SEVERITIES = ("critical", "high", "medium", "low", "info", "blocker", "major", "minor", "trivial", "nit")


class BatchSeverityUnknown(CheckpointRule):
    """Deferred issue of unknown severity

    High-severity issues must not be deferred, and a misspelled severity is not recognized.

    Remedy: write critical, high, medium or low.
    """

    severity = "warning"

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        for issue in document.deferred_issues:
            severity = as_text(issue.get("severity"))
            if severity is not None and severity.value and severity.value.casefold() not in SEVERITIES:
                hint = f"write one of {', '.join(SEVERITIES)}"
                yield self.fault(severity.span, f"the severity is {severity.value!r}", hint=hint)


class BatchTaskInTwoGroups(CheckpointRule):
    """Task listed twice in a checkpoint

    A task listed as both done and pending may be repeated or never done.

    Remedy: keep the task only in the correct group.
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
    """Next batch contains a task that is not pending

    The task is already done, or is not recorded as pending.

    Remedy: remove it from `next_batch`, or put it under `pending`.
    """

    def check(self, document: BatchCheckpoint) -> Iterator[Problem]:
        if not document.groups:
            return
        pending = {entry.id.value for name in OPEN_GROUPS for entry in document.groups.get(name, ())}
        for entry in document.next_tasks:
            if entry.id.value not in pending:
                yield self.fault(entry.id.span, f"{entry.id.value} is in the next batch, but not pending")


class BatchStatusUnknown(TasksRule):
    """Task with an unknown status

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

    The dependencies are not read, so no batch is planned: it might begin a task too early.

    Remedy: write them as a mapping, `edges: {T002: [T001]}`, or as phases whose tasks have `depends_on`.
    """

    def check(self, document: BatchDependencies) -> Iterator[Problem]:
        for key in document.unread:
            yield self.fault(key.span, f"{key.value!r} does not list dependencies in a known form")


class _Tasks(NamedTuple):
    document: BatchTasks
    by_id: dict[str, list[TaskEntry]]


class _PlanRule(TasksRule):
    """A rule about faults that make it impossible to plan the next batch."""

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

    It is unclear which of the tasks the dependencies and checkpoints refer to.

    Remedy: give one of them a different id.
    """

    problem = "batch_task_twice"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        first, *again = scope.by_id[tasks[0]]
        line = scope.document.place(first.id)[0]
        yield from (self.fault(entry.id.span, f"{tasks[0]} is already on line {line}") for entry in again)


class BatchDependencyUnknown(_PlanRule):
    """Dependency on an unknown task

    The task is waiting for something that will never be done.

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
    """Deadlock among pending tasks

    Each task waits for one that is neither done nor in progress, such as a deferred task.

    Remedy: finish or descope the tasks that they wait for, or remove the dependency.
    """

    problem = "batch_dependency_deadlock"

    def faults_of(self, scope: _Tasks, tasks: tuple[str, ...]) -> Iterator[Problem]:
        satisfied = plan(scope.document.tasks()).satisfied
        entry = scope.by_id[tasks[0]][0]
        other = next((other for other in entry.depends_on if other.value not in satisfied), entry.id)
        waiting = f"none of the {len(tasks)} pending tasks can start: " if len(tasks) > 1 else ""
        yield self.fault(other.span, f"dependency deadlock: {waiting}{tasks[0]} waits for {other.value}")
