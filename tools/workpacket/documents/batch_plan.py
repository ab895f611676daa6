"""Which tasks of a scope come next: pure arithmetic on task ids, states, dependencies and files.

A task is *satisfied* when nothing has to wait for it any more: done, completed or taken out of the scope. A deferred
task satisfies nothing. A pending task whose dependencies are all satisfied is *ready*. The next batch takes ready tasks
in the order of the file, as long as no two of them touch the same files; a task that names no files might touch any, so
it goes alone. With the policy `barrier` a phase begins only when the phases before it are over.

What makes a plan impossible is found first, each with a code of its own, and then nothing is proposed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from workpacket.value import Value

PhasePolicy = Literal["dag", "barrier"]
ProblemCode = Literal[
    "batch_task_twice", "batch_dependency_unknown", "batch_dependency_cycle", "batch_dependency_deadlock"
]

SATISFIED = frozenset({"done", "completed", "descoped"})
PENDING = frozenset({"pending"})
UNDER_WAY = frozenset({"in_progress"})
STATUSES = SATISFIED | PENDING | UNDER_WAY | {"deferred", "blocked"}

# Characters that make a pattern of a path; what it fits is known only as far as the folder before it.
_PATTERN = frozenset("*?[{")


class Task(Value):
    """One task. `files` are the paths that it changes, as written; `phase` is '' where the scope has no phases."""

    id: str
    status: str = "pending"
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    phase: str = ""


class PlanProblem(Value):
    """Why there is no plan. `tasks` are the ids concerned: of a cycle its members, the first one again last."""

    code: ProblemCode
    tasks: tuple[str, ...]


class BatchPlan(Value):
    """What can be said about a scope. `batch` is empty if there are problems, or if nothing is left."""

    problems: tuple[PlanProblem, ...] = ()
    satisfied: frozenset[str] = frozenset()
    ready: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def parallel(self) -> bool:
        return len(self.batch) > 1


def plan(tasks: Sequence[Task], policy: PhasePolicy = "dag") -> BatchPlan:
    """The next batch of `tasks`, or why there is none."""
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
    """As many of `ready`, from the first one on, as touch different files."""
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
    """Ids given twice, dependencies on nothing, circles."""
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
    """Whether a dependency is on a task of another scope, such as `storage:T4`; whether that is done is not known."""
    return any(mark in name for mark in ":/#")


def circles(edges: Mapping[str, Collection[str]], order: Sequence[str]) -> Iterator[list[str]]:
    """Each circle that a dependency closes, begun and ended with the task it comes back to."""
    done: set[str] = set()
    for root in order:
        path: list[str] = []
        depth: dict[str, int] = {}
        waiting: list[Iterator[str]] = []
        step = root if root not in done else None
        while step is not None or waiting:
            if step is not None:
                done.add(step)
                depth[step] = len(path)
                path.append(step)
                waiting.append(iter(edges.get(step, ())))
            other, step = next(waiting[-1], None), None
            if other is None:
                waiting.pop()
                del depth[path.pop()]
            elif other in depth:
                yield [*path[depth[other] :], other]
            elif other not in done and other in edges:
                step = other


def _of_open_phase(tasks: Sequence[Task]) -> list[Task]:
    """The tasks of the first phase that is not over, and those of none. A phase stands where its first task does."""
    over = SATISFIED | {"deferred"}
    phases = dict.fromkeys(task.phase for task in tasks if task.phase)
    unfinished = {task.phase for task in tasks if task.status not in over}
    current = next((phase for phase in phases if phase in unfinished), "")
    return [task for task in tasks if task.phase in ("", current)]


def normal_path(path: str) -> str:
    """A path for comparison: one separator, no `.` and `..`, no line numbers, no case; of a pattern, its folder."""
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
    """Whether two normal paths are the same file, or one is a folder that holds the other; '' holds everything."""
    return one == other or not one or not other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
