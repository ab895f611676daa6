"""Rules about sidecars, and rules that compare checkpoints: the files of a batch scope, and the sidecars of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from workpacket.documents.batch import SATISFIED
from workpacket.documents.batch_scope import is_elsewhere, normal_path, overlap
from workpacket.documents.commit_sidecar import SCHEMA_VERSION, CommitSidecar
from workpacket.documents.summary import BatchSummary, Mention, SidecarSummary, circles
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import DocumentRule, RepositoryRule, out_of_order, repeated
from workpacket.text.formats import date_time


class File(NamedTuple):
    path: str
    summary: BatchSummary


class BatchFolder(NamedTuple):
    """The existing files of one folder."""

    checkpoint: File | None
    tasks: File | None
    dependencies: File | None

    def files_of(self, task: str) -> list[str]:
        """Return the files that a task changes: those listed in the checkpoint, in tasks.yaml, or in
        dependencies.yaml."""
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


def paired(repository: RepositorySummaries) -> Iterator[tuple[File, File]]:
    """Yield the checkpoint and tasks.yaml of every scope that has both."""
    for scope in scopes(repository):
        if scope.checkpoint is not None and scope.tasks is not None:
            yield scope.checkpoint, scope.tasks


def names(mentions: list[Mention]) -> set[str]:
    return {mention[0] for mention in mentions}


def unknown(mentions: Iterable[Mention], known: set[str]) -> Iterator[Mention]:
    """Yield the first occurrence of each unknown task in this scope."""
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
        for checkpoint, tasks in paired(repository):
            mentions = [*checkpoint.summary["tasks"], *checkpoint.summary["next"]]
            for mention in unknown(mentions, names(tasks.summary["tasks"])):
                yield self.finding(checkpoint.path, mention[1:], f"tasks.yaml has no task {mention[0]}")


class BatchCheckpointTaskMissing(RepositoryRule):
    """Task missing from the checkpoint

    The checkpoint lists the task neither as done nor as pending, so a resumed session would forget it.

    Remedy: regenerate the checkpoint; it must list every task in tasks.yaml.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for checkpoint, tasks in paired(repository):
            # A checkpoint without a list of tasks has the newer form, which leaves the list to tasks.yaml.
            if not checkpoint.summary["tasks"]:
                continue
            listed = names(checkpoint.summary["tasks"])
            missing = [mention[0] for mention in tasks.summary["tasks"] if mention[0] not in listed]
            if missing:
                message = f"the checkpoint does not list {', '.join(missing)} from tasks.yaml"
                yield self.finding(checkpoint.path, checkpoint.summary["place"], message)


class BatchStatusDrift(RepositoryRule):
    """Task with different states in the checkpoint and tasks.yaml

    One of the two files was not updated after the last batch, so a resumed session would repeat or skip work.

    Remedy: fix the file that is wrong.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for checkpoint, tasks in paired(repository):
            defined = dict(tasks.summary["statuses"])
            stated = dict(checkpoint.summary["statuses"])
            differing = [
                mention
                for mention in checkpoint.summary["tasks"]
                if mention[0] in defined and (defined[mention[0]] in SATISFIED) != (stated[mention[0]] in SATISFIED)
            ]
            if differing:
                name, line, column = differing[0]
                more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
                message = f"{name}{more} is under {stated[name]}, but in tasks.yaml it is {defined[name]}"
                yield self.finding(checkpoint.path, (line, column), message)


class BatchNextNotReady(RepositoryRule):
    """Next batch contains a task with unfinished dependencies

    The task would be based on work that does not exist yet.

    Remedy: remove it from the next batch; `workpacket runtime batch next` lists the tasks that are ready.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for checkpoint, tasks in paired(repository):
            if not checkpoint.summary["tasks"]:
                continue
            done = names(checkpoint.summary["satisfied"])
            needs: dict[str, list[str]] = {}
            for one, other in tasks.summary["depends"]:
                needs.setdefault(one[0], []).append(other[0])
            for mention in checkpoint.summary["next"]:
                missing = [other for other in needs.get(mention[0], ()) if other not in done]
                if missing:
                    message = f"{mention[0]} depends on {', '.join(missing)}, which is not done"
                    yield self.finding(checkpoint.path, mention[1:], message)


class BatchNextFilesCollide(RepositoryRule):
    """Parallel tasks that change the same file

    Both tasks are worked on at the same time, so one would overwrite the other's changes.

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

    The file is for a different set of tasks, or an id is misspelled.

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
    """Stated dependencies, and those that follow from them. Only the latter have to be searched for."""

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
    """Dependencies that differ between tasks.yaml and dependencies.yaml

    Depending on which file is read, different tasks may start. A dependency that follows from others may be left out.

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
                        message = f"tasks.yaml does not state that {one[0]} depends on {other[0]}"
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
                message = f"tasks.yaml states that {one[0]} depends on {other[0]}, but this file does not"
                yield self.finding(file.path, places.get(one[0], stated[0][0])[1:], message)


class BatchFilesDisagree(RepositoryRule):
    """Task with different files in the next batch and tasks.yaml

    The batch is planned using one list, and the commit contains the files in the other.

    Remedy: fix the file that is wrong.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for checkpoint, tasks in paired(repository):
            planned, defined = dict(checkpoint.summary["files"]), dict(tasks.summary["files"])
            for name, line, column in checkpoint.summary["next"]:
                here, there = ({normal_path(path) for path in files.get(name, ())} for files in (planned, defined))
                if here and there and here.isdisjoint(there):
                    message = (
                        f"{name} changes {', '.join(sorted(here))} here, but {', '.join(sorted(there))} in tasks.yaml"
                    )
                    yield self.finding(checkpoint.path, (line, column), message)


# What a review recommends that does not accept the scope.
_NOT_YET = frozenset(
    {"address_issues", "address", "revise", "reject", "rejected", "fail", "failed", "block", "blocked"}
)
_FINISHED = frozenset({"done", "completed", "skipped"})


class BatchReviewOpen(RepositoryRule):
    """Finished scope with a review that still requests changes

    All tasks are done, but no review says that the issues were resolved.

    Remedy: review the scope again, and record the result in validation.yaml.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        tasks = {path.rpartition("/")[0]: summary for path, summary in repository.batch("batch_tasks").items()}
        for path, summary in sorted(repository.batch("batch_validation").items()):
            advice, scope = summary["advice"], tasks.get(path.rpartition("/")[0])
            statuses = {status for _, status in scope["statuses"]} if scope is not None else set()
            if advice[0] in _NOT_YET and statuses and statuses <= _FINISHED:
                yield self.finding(path, advice[1:], f"the review recommends {advice[0]!r}, but all tasks are done")


class SidecarVersionNewer(DocumentRule[CommitSidecar]):
    """Sidecar with a newer version than this tool supports

    The fields may have a different meaning, so the sidecar is skipped and the commit messages are used instead.

    Remedy: update workpacket.
    """

    def check(self, document: CommitSidecar) -> Iterator[Problem]:
        version, node = document.schema_version, document.at("schema_version")
        if version is not None and node is not None and version > SCHEMA_VERSION:
            message = f"the sidecar has schema_version {version}; this tool supports up to {SCHEMA_VERSION}"
            yield self.fault(node.span, message, hint="update workpacket")


class SidecarShaMismatch(DocumentRule[CommitSidecar]):
    """Sidecar with a file name that does not match its commit

    The file was copied or damaged. It is unknown which commit was verified, so the sidecar is skipped.

    Remedy: delete the sidecar; the commit message contains the same information.
    """

    def check(self, document: CommitSidecar) -> Iterator[Problem]:
        sha = document.sha
        if sha is not None and sha.value != document.stem:
            message = f"sha is {sha.value}, but the file name is {document.stem}"
            yield self.fault(sha.span, message)


class SidecarMilestoneTwice(RepositoryRule):
    """Two checkpoints of one run with the same milestone

    One of the sidecars was copied or edited; a resumed run would repeat a milestone, or skip one.

    Remedy: correct `milestone_index`, or delete the wrong sidecar: the commit message names the milestone.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for run in _runs(repository):
            for (path, sidecar), (earlier, _) in repeated(run, lambda one: one[1]["milestone"]):
                message = f"milestone {sidecar['milestone']} already has a checkpoint: {earlier}"
                yield self.finding(path, sidecar["milestone_place"], message)


class SidecarOrder(RepositoryRule):
    """Checkpoint older than an earlier milestone

    The order of the milestones determines where a run resumes, so with a wrong number it resumes in the wrong place.

    Remedy: correct `milestone_index` or `created_at`.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for run in _runs(repository):
            timed = [one for one in run if not date_time(one[1]["created"]) and one[1]["created"].endswith("Z")]
            for (path, sidecar), (_, earlier) in out_of_order(timed, lambda one: one[1]["created"][:19]):
                message = (
                    f"created {sidecar['created']}, before milestone {earlier['milestone']} ({earlier['created']})"
                )
                yield self.finding(path, sidecar["created_place"], message)


def _runs(repository: RepositorySummaries) -> Iterator[list[tuple[str, SidecarSummary]]]:
    """Yield the checkpoints of each run, in the order of their milestones."""
    runs: dict[str, list[tuple[str, SidecarSummary]]] = {}
    for path, sidecar in sorted(repository.sidecars.items()):
        if sidecar["run"] and sidecar["milestone"] >= 0:
            runs.setdefault(sidecar["run"], []).append((path, sidecar))
    for run in runs.values():
        yield sorted(run, key=lambda one: one[1]["milestone"])
