"""One batch scope as a whole: `tasks.yaml` and `dependencies.yaml` combined, and the next tasks. A task waits for
everything that either file lists: its own `depends_on`, the edges, and the dependencies of its phase. A pair
`{from, to}` counts in the direction that `tasks.yaml` confirms; if it confirms neither direction, the pair is
`undecided`.

The next tasks are computed from ids, states, dependencies and files. A task is *satisfied* when no other task still has
to wait for it: it is done, completed or descoped. A deferred task is not satisfied. A pending task whose dependencies
are all satisfied is *ready*. The next batch takes ready tasks in file order, as long as no two of them change the same
files; a task that lists no files might change any file, so it gets a separate batch. With the `barrier` policy, a phase
starts only when the earlier phases are finished. Problems that make a plan impossible are reported first, each with its
own code; then no batch is proposed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

from workpacket.documents.batch import (
    PENDING,
    SATISFIED,
    UNDER_WAY,
    BatchDependencies,
    BatchTasks,
    Task,
    task_entries,
    texts_in,
)
from workpacket.documents.summary import circles
from workpacket.text.source import Node, Plain
from workpacket.value import NOTHING, Value, replace

PhasePolicy = Literal["dag", "barrier"]
ProblemCode = Literal[
    "batch_task_twice", "batch_dependency_unknown", "batch_dependency_cycle", "batch_dependency_deadlock"
]

# Characters that make a path a pattern. Only the folder before the first of them is known to match.
_PATTERN = frozenset("*?[{")


class PlanProblem(Value):
    """Why there is no plan. `tasks` are the ids involved; for a cycle, they are its members, with the first one
    repeated at the end.
    """

    code: ProblemCode
    tasks: tuple[str, ...]


class BatchPlan(Value):
    """The plan for a scope. `batch` is empty if there are problems, or if nothing is left."""

    problems: tuple[PlanProblem, ...] = ()
    satisfied: frozenset[str] = frozenset()
    ready: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def parallel(self) -> bool:
        return len(self.batch) > 1


def plan(tasks: Sequence[Task], policy: PhasePolicy = "dag") -> BatchPlan:
    """Return the next batch of `tasks`, or why there is none."""
    problems = tuple(structural_problems(tasks))
    done = satisfied(tasks)
    pending = tuple(task.id for task in tasks if task.status in PENDING)
    if problems:
        return BatchPlan(problems, done, pending=pending)
    waiting = _of_open_phase(tasks) if policy == "barrier" else tasks
    able = tuple(task for task in waiting if task.status in PENDING and done.issuperset(task.depends_on))
    if pending and not able and not any(task.status in UNDER_WAY for task in tasks):
        return BatchPlan((PlanProblem("batch_dependency_deadlock", pending),), done, pending=pending)
    return BatchPlan((), done, tuple(task.id for task in able), tuple(task.id for task in first_batch(able)), pending)


def satisfied(tasks: Sequence[Task]) -> frozenset[str]:
    return frozenset(task.id for task in tasks if task.status in SATISFIED)


def first_batch(ready: Sequence[Task]) -> list[Task]:
    """Return the longest leading part of `ready` in which all tasks change different files."""
    chosen: list[Task] = []
    taken: list[str] = []
    for task in ready:
        paths = [normal_path(path) for path in task.files]
        if not paths:
            if not chosen:
                return [task]
        elif not any(overlap(path, other) for path in paths for other in taken):
            chosen.append(task)
            taken += paths
    return chosen


def structural_problems(tasks: Sequence[Task]) -> Iterator[PlanProblem]:
    """Yield duplicate ids, missing dependencies and cycles."""
    counts = Counter(task.id for task in tasks)
    for name, count in counts.items():
        if count > 1:
            yield PlanProblem("batch_task_twice", (name,))
    for task in tasks:
        for other in dict.fromkeys(task.depends_on):
            if other not in counts and not is_elsewhere(other):
                yield PlanProblem("batch_dependency_unknown", (task.id, other))
    for circle in circles({task.id: task.depends_on for task in reversed(tasks)}, [task.id for task in tasks]):
        yield PlanProblem("batch_dependency_cycle", tuple(circle))


def is_elsewhere(name: str) -> bool:
    """Whether a dependency is a task in another scope, such as `storage:T4`; the task's state is unknown here."""
    return any(mark in name for mark in ":/#")


def _of_open_phase(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks in the first unfinished phase, and tasks without a phase. Phases are ordered by their first
    task.
    """
    over = SATISFIED | {"deferred"}
    phases = dict.fromkeys(task.phase for task in tasks if task.phase)
    unfinished = {task.phase for task in tasks if task.status not in over}
    current = next((phase for phase in phases if phase in unfinished), "")
    return [task for task in tasks if task.phase in ("", current)]


def normal_path(path: str) -> str:
    """Return a path normalized for comparison: one separator, no `.` or `..`, no line numbers, case-folded; for a
    pattern, its folder.
    """
    parts: list[str] = []
    for part in path.strip().replace("\\", "/").partition(":")[0].split("/"):
        if _PATTERN & set(part):
            break
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part.casefold())
    return "/".join(parts)


def overlap(one: str, other: str) -> bool:
    """Whether two normalized paths are the same file, or one is a folder that contains the other; '' contains
    everything.
    """
    return one == other or not one or not other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


# Fields of a task that change while someone works on it; all others define the task.
_OF_THE_WORK = frozenset({"status", "evidence", "active_form", "activeForm", "notes", "completed_at", "commit"})
_NAMES = ("content", "name", "title")
_NAMES_OF_PHASES = ("id", "name", "title")


class BatchScope(Value):
    """One scope. `policy` is its `phase_policy`, from dependencies.yaml or below `meta` in tasks.yaml."""

    tasks: tuple[Task, ...]
    names: Mapping[str, str]
    policy: PhasePolicy
    undecided: tuple[tuple[str, str], ...]
    definitions: Mapping[str, str]
    # What dependencies.yaml says in a form that is not read.
    unread: tuple[str, ...] = ()

    @cached_property
    def next(self) -> BatchPlan:
        return plan(self.tasks, self.policy)

    @cached_property
    def statuses(self) -> Mapping[str, str]:
        return {task.id: task.status for task in self.tasks}

    def with_done(self, done: frozenset[str] | set[str]) -> BatchScope:
        """Return the scope as it will be when these tasks are done."""
        tasks = tuple(replace(task, status="done") if task.id in done else task for task in self.tasks)
        return replace(self, tasks=tasks)

    def groups(self, under_way: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
        """Return every task of the scope in one group, in file order."""
        found: dict[str, list[str]] = {"completed": [], "in_progress": [], "pending": []}
        for task in self.tasks:
            found.setdefault(_group(task, under_way), []).append(task.id)
        return {name: tuple(members) for name, members in found.items()}


def _group(task: Task, under_way: tuple[str, ...]) -> str:
    if task.status == "descoped":
        return "descoped"
    if task.status in SATISFIED:
        return "completed"
    if task.id in under_way or task.status in UNDER_WAY:
        return "in_progress"
    return "pending" if task.status in PENDING else task.status


def scope_of(
    tasks: BatchTasks, dependencies: BatchDependencies | None, files: Mapping[str, tuple[str, ...]] = NOTHING
) -> BatchScope:
    """Return the scope. The files that a task changes are those listed in tasks.yaml; otherwise those in
    dependencies.yaml; otherwise those in `files`.
    """
    own = {task.id: task for task in tasks.tasks()}
    waits: dict[str, list[str]] = {name: list(task.depends_on) for name, task in own.items()}
    phases: Mapping[str, str] = {}
    undecided: list[tuple[str, str]] = []
    policy = tasks.text_at("meta", "phase_policy")
    if dependencies is not None:
        phases = dependencies.phase_of
        policy = dependencies.text_at("phase_policy") or policy
        files = {**files, **dependencies.files}
        for one, other in (*dependencies.dependencies, *dependencies.in_order):
            waits.setdefault(one.value, []).append(other.value)
        for one_name, other_name in _of_phases(dependencies.items_at("phases"), own):
            waits[one_name].append(other_name)
        for one, other in dependencies.loose_dependencies:
            pair = (one.value, other.value)
            if not any(b in waits.get(a, ()) for a, b in (pair, pair[::-1])):
                undecided.append(pair)
    whole = tuple(
        replace(
            task,
            depends_on=tuple(dict.fromkeys(waits[task.id])),
            files=task.files or files.get(task.id, ()),
            phase=task.phase or phases.get(task.id, ""),
        )
        for task in tasks.tasks()
    )
    barrier = policy is not None and policy.value.strip().casefold() == "barrier"
    nodes = _nodes(tasks)
    return BatchScope(
        whole,
        {name: next(filter(None, map(node.string_at, _NAMES)), "") for name, node in nodes.items()},
        "barrier" if barrier else "dag",
        tuple(undecided),
        {task.id: _definition(nodes.get(task.id), task) for task in whole},
        tuple(text.value for text in dependencies.unread) if dependencies is not None else (),
    )


def _of_phases(phases: Sequence[Node], known: Mapping[str, Task]) -> Iterator[tuple[str, str]]:
    """Yield the dependencies that tasks inherit from their phase: on tasks, or on all tasks of another phase."""
    listed = [(phase, [entry.id.value for entry in task_entries(phase)]) for phase in phases]
    listed = [(phase, [name for name in tasks if name in known]) for phase, tasks in listed]
    members: dict[str, list[str]] = {}
    for phase, tasks in listed:
        for name in filter(None, map(phase.string_at, _NAMES_OF_PHASES)):
            members.setdefault(name, tasks)
    for phase, tasks in listed:
        for text in texts_in(phase.get("depends_on")):
            for other in [text.value] if text.value in known else members.get(text.value, []):
                yield from ((task, other) for task in tasks if task != other)


def _nodes(tasks: BatchTasks) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in tasks.items_at("tasks"):
        if node.string_at("id"):
            found.setdefault(node.string_at("id"), node)
    return found


def _definition(node: Node | None, task: Task) -> str:
    """Return a digest of the task's definition, independent of its state."""
    stated = node.plain() if node is not None else None
    kept: dict[str, Plain] = {}
    if isinstance(stated, dict):
        kept = {key: value for key, value in stated.items() if key not in _OF_THE_WORK}
    said = json.dumps({"task": kept, "waits for": sorted(task.depends_on)}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()
