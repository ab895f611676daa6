"""One scope of batches as a whole: what `tasks.yaml` and `dependencies.yaml` say together.

A task waits for everything that either file says it waits for: its own `depends_on`, the edges, and what its phase
depends on. A pair `{from, to}` counts in the direction that `tasks.yaml` confirms; where it confirms neither, nobody
can say which of the two comes first, and the pair is `undecided`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property

from workpacket.documents.batch import BatchDependencies, BatchTasks
from workpacket.documents.batch_plan import PENDING, SATISFIED, UNDER_WAY, BatchPlan, PhasePolicy, Task, plan
from workpacket.documents.batch_yaml import task_entries, texts_in
from workpacket.text.node import Node, Plain
from workpacket.value import Value, replace

# What is written into a task while it is worked on; everything else says what the task is.
_OF_THE_WORK = frozenset({"status", "evidence", "active_form", "activeForm", "notes", "completed_at", "commit"})
_NAMES = ("content", "name", "title")


class BatchScope(Value):
    """`policy` is that of the scope: `phase_policy` in dependencies.yaml, or below `meta` in tasks.yaml."""

    tasks: tuple[Task, ...]
    names: Mapping[str, str]
    policy: PhasePolicy
    undecided: tuple[tuple[str, str], ...]
    definitions: Mapping[str, str]

    @cached_property
    def next(self) -> BatchPlan:
        return plan(self.tasks, self.policy)

    @cached_property
    def statuses(self) -> Mapping[str, str]:
        return {task.id: task.status for task in self.tasks}

    def with_done(self, done: frozenset[str] | set[str]) -> BatchScope:
        """The scope as it is once these tasks are done as well."""
        tasks = tuple(replace(task, status="done") if task.id in done else task for task in self.tasks)
        return replace(self, tasks=tasks)

    def with_groups(self, groups: Mapping[str, tuple[str, ...]]) -> BatchScope:
        """The scope with the states that a checkpoint gives its tasks."""
        stated = {task: group for group, members in groups.items() for task in members}
        tasks = tuple(replace(task, status=stated.get(task.id, task.status)) for task in self.tasks)
        return replace(self, tasks=tasks)

    def groups(self, under_way: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
        """Every task of the scope in one group, in the order of the file."""
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


def scope_of(tasks: BatchTasks, dependencies: BatchDependencies | None) -> BatchScope:
    own = {task.id: task for task in tasks.tasks()}
    waits: dict[str, list[str]] = {name: list(task.depends_on) for name, task in own.items()}
    phases: Mapping[str, str] = {}
    undecided: list[tuple[str, str]] = []
    policy = tasks.text_at("meta", "phase_policy")
    if dependencies is not None:
        phases = dependencies.phase_of
        policy = dependencies.text_at("phase_policy") or policy
        for one, other in dependencies.dependencies:
            waits.setdefault(one.value, []).append(other.value)
        for one_name, other_name in _of_phases(dependencies.at("phases"), own):
            waits[one_name].append(other_name)
        for one, other in dependencies.loose_dependencies:
            pair = (one.value, other.value)
            if not any(b in waits.get(a, ()) for a, b in (pair, pair[::-1])):
                undecided.append(pair)
    whole = tuple(
        replace(task, depends_on=tuple(dict.fromkeys(waits[task.id])), phase=task.phase or phases.get(task.id, ""))
        for task in tasks.tasks()
    )
    barrier = policy is not None and policy.value.strip().casefold() == "barrier"
    nodes = _nodes(tasks)
    return BatchScope(
        whole,
        {name: _name(node) for name, node in nodes.items()},
        "barrier" if barrier else "dag",
        tuple(undecided),
        {task.id: _definition(nodes.get(task.id), task) for task in whole},
    )


def _of_phases(phases: Node | None, known: Mapping[str, Task]) -> Iterator[tuple[str, str]]:
    """What the tasks of a phase wait for because the phase does: tasks, or all tasks of another phase."""
    listed = [(phase, _members(phase, known)) for phase in (phases.items if phases is not None else ())]
    members: dict[str, tuple[str, ...]] = {}
    for phase, tasks in listed:
        for key in ("id", "name", "title"):
            node = phase.get(key)
            if node is not None and node.text:
                members.setdefault(node.text, tasks)
    for phase, tasks in listed:
        for text in texts_in(phase.get("depends_on")):
            for other in (text.value,) if text.value in known else members.get(text.value, ()):
                yield from ((task, other) for task in tasks if task != other)


def _members(phase: Node, known: Mapping[str, Task]) -> tuple[str, ...]:
    return tuple(entry.id.value for entry in task_entries(phase) if entry.id.value in known)


def _nodes(tasks: BatchTasks) -> dict[str, Node]:
    list_node = tasks.at("tasks")
    found: dict[str, Node] = {}
    for node in list_node.items if list_node is not None else ():
        identity = node.get("id")
        if identity is not None and identity.text:
            found.setdefault(identity.text, node)
    return found


def _name(node: Node) -> str:
    texts = (node.get(key) for key in _NAMES)
    return next((text.text for text in texts if text is not None and text.text), "")


def _definition(node: Node | None, task: Task) -> str:
    """A digest of what the task is, whatever was done about it."""
    stated = node.plain() if node is not None else None
    kept: dict[str, Plain] = {}
    if isinstance(stated, dict):
        kept = {key: value for key, value in stated.items() if key not in _OF_THE_WORK}
    said = json.dumps({"task": kept, "waits for": sorted(task.depends_on)}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()
