"""The four files of a batch scope: `checkpoint.yaml`, `tasks.yaml`, `dependencies.yaml`, `validation.yaml`.

`tasks.yaml` defines the work, `dependencies.yaml` its order, and `checkpoint.yaml` the state after the last batch.
Several generations are in use: tasks may be ids, mappings with an id, or groups of these; dependencies may be stated as
edges, as nodes or within phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from workpacket.documents.document import Document, Text, TextAt, as_text, value_of, without_quotes
from workpacket.documents.summary import EMPTY_BATCH, BatchSummary, Mention
from workpacket.text.source import Node, Source
from workpacket.text.yaml_strict import NodePath, load_yaml, written_as_text
from workpacket.value import Value

# Values that are always text: the label `2` of a batch, a commit id made of digits, the id of a task.
_TEXT_KEYS = frozenset(
    [
        *("id", "name", "title", "status", "branch", "base", "scope_name", "spec_name"),
        *("scope", "spec", "scope_path", "spec_path", "timestamp", "updated_at", "created", "last_batch"),
        *("last_commit", "number", "batch", "severity", "description", "location", "file", "phase"),
        *("from", "to", "reason", "code", "phase_cursor", "task", "reviewer", "state"),
    ]
)
_TEXT_LISTS = frozenset(
    [
        *("tasks", "done", "completed", "in_progress", "pending", "deferred", "descoped"),
        *("blocked", "depends_on", "blocks", "files", "task_ids", "from", "to"),
        *("reviewers", "critical_path", "deferred_issues"),
    ]
)
# The keys of a checkpoint. A value below any other key is not read here, and keeps its YAML type.
CHECKPOINT_KEYS = frozenset(
    [
        *("base", "batch", "branch", "deferred_issues", "implementation_config", "incomplete_stages", "last_batch"),
        *("last_commit", "next_batch", "phase_cursor", "review_config", "scope_name", "scope_path", "spec_name"),
        *("spec_path", "tasks", "timestamp", "updated_at"),
    ]
)
# Fields that show that a mapping among deferred issues was intended as a mapping.
ISSUE_FIELDS = frozenset(
    {"batch", "severity", "description", "location", "id", "issue", "reason", "task", "resolution"}
)


class Task(Value):
    """One task.

    `files` are the paths that it changes, as written in the file; `phase` is '' if the scope has no phases.
    """

    id: str
    status: str = "pending"
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    phase: str = ""


class BatchDocument(Document):
    """One YAML file of a scope. Unknown keys are kept."""

    def __init__(self, source: Source) -> None:
        loaded = load_yaml(source)
        root = written_as_text(source, loaded.root, self.is_text) if loaded.root is not None else None
        super().__init__(source, root, loaded.faults)

    def is_text(self, path: NodePath) -> bool:
        """Whether the value at `path` is always a string."""
        return is_batch_text(path)

    def mentions(self, texts: Iterable[Text]) -> list[Mention]:
        return [self.mention(text) for text in texts]


def is_checkpoint_text(path: NodePath) -> bool:
    """Whether the value is always a string in a checkpoint, whose keys are known."""
    return path[:1] == ("checkpoint",) and (len(path) < 2 or path[1] in CHECKPOINT_KEYS) and is_batch_text(path)


def is_batch_text(path: NodePath) -> bool:
    """Whether the value at `path` is a string, judged by the last keys of the path."""
    last = path[-1] if path else ""
    if isinstance(last, str):
        return last in _TEXT_KEYS | _TEXT_LISTS or (len(path) > 1 and path[-2] == "edges")
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and (names[-1] in _TEXT_LISTS or "edges" in names[-2:])


class TaskEntry(NamedTuple):
    """An occurrence of a task in a file. Missing values are None or empty."""

    id: Text
    status: Text | None = None
    depends_on: tuple[Text, ...] = ()
    files: tuple[Text, ...] = ()

    def as_task(self, phase: str = "") -> Task:
        status = status_word(self.status)
        return Task(self.id.value, status, _values(self.depends_on), _values(self.files), phase)


def status_word(status: Text | None) -> str:
    """Return a status normalized for comparison; a missing status means pending."""
    return status.value.strip().casefold().replace("-", "_").replace(" ", "_") if status is not None else "pending"


def task_entries(node: Node | None) -> Iterator[TaskEntry]:
    """Yield the tasks in a list: `T1`, `{id: T1, ...}` or `T1: what it is`; for a mapping, those in its `tasks`."""
    if node is None:
        return
    if isinstance(node.value, dict):
        yield from task_entries(node.get("tasks"))
    for item in node.items:
        if item.text:
            yield TaskEntry(Text(item.text, item.start, item.end))
        elif item.mapping:
            yield from _entry(item)


def _entry(item: Node) -> Iterator[TaskEntry]:
    name = as_text(item.get("id"))
    if name is not None and name.value:
        files = (*texts_in(item.get("files")), *texts_in(item.get("file")))
        yield TaskEntry(name, as_text(item.get("status")), texts_in(item.get("depends_on")), files)
    elif len(item.mapping) == 1 and "id" not in item.mapping and item.keys:
        key, span = next(iter(item.keys.items()))
        yield TaskEntry(Text(key, *span))


def texts_in(node: Node | None) -> tuple[Text, ...]:
    """Return the strings in a value, which may be one string or a list of strings."""
    if node is None:
        return ()
    found = [as_text(item) for item in (node.items if isinstance(node.value, list) else [node])]
    return tuple(text for text in found if text is not None and text.value)


def _values(texts: tuple[Text, ...]) -> tuple[str, ...]:
    return tuple(text.value for text in texts)


# Groups of a checkpoint's tasks that are next or in progress.
OPEN_GROUPS = frozenset({"pending", "in_progress"})

SATISFIED = frozenset({"done", "completed", "descoped"})
PENDING = frozenset({"pending"})
UNDER_WAY = frozenset({"in_progress"})
STATUSES = SATISFIED | PENDING | UNDER_WAY | {"deferred", "blocked"}

Dependency = tuple[Text, Text]


class BatchCheckpoint(BatchDocument):
    kind = "batch_checkpoint"

    branch = TextAt("checkpoint", "branch")
    last_batch = TextAt("checkpoint", "last_batch")
    last_commit = TextAt("checkpoint", "last_commit")

    def is_text(self, path: NodePath) -> bool:
        return is_checkpoint_text(path)

    @property
    def name(self) -> Text | None:
        return self.text_at("checkpoint", "scope_name") or self.text_at("checkpoint", "spec_name")

    @cached_property
    def groups(self) -> Mapping[str, tuple[TaskEntry, ...]]:
        """Return the tasks by state: `done`, `pending`, ..."""
        groups = self.mapping_at("checkpoint", "tasks")
        return {name: tuple(task_entries(group)) for name, group in groups.items()}

    @cached_property
    def next_tasks(self) -> tuple[TaskEntry, ...]:
        """Return the tasks of the next batch."""
        return tuple(task_entries(self.at("checkpoint", "next_batch")))

    @property
    def is_parallel(self) -> bool:
        """Whether the tasks of the next batch may run in parallel."""
        node = self.at("checkpoint", "next_batch", "parallel")
        return node is not None and node.value is True

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Return the names of the reviewers."""
        node = self.at("checkpoint", "review_config", "reviewers")
        listed = node.items if node is not None and isinstance(node.value, list) else [node] if node is not None else []
        named = (item.get("name") if item.mapping else item for item in listed)
        return tuple(dict.fromkeys(node.text for node in named if node is not None and node.text))

    @property
    def deferred_issues(self) -> list[Node]:
        return self.items_at("checkpoint", "deferred_issues")

    def labels(self) -> Iterator[Text]:
        """Yield the labels of the last batch, of the next batch, and of those in which issues were found."""
        places = [self.at("checkpoint", "last_batch"), self.at("checkpoint", "next_batch", "number")]
        places += [issue.get("batch") for issue in self.deferred_issues]
        found = (as_text(node) for node in places)
        yield from (text for text in found if text is not None and text.value)

    def dates(self) -> Iterator[tuple[str, Text]]:
        for key in ("timestamp", "updated_at"):
            text = self.text_at("checkpoint", key)
            if text is not None:
                yield key, without_quotes(self.source, text)

    def summary(self) -> Mapping[str, object]:
        satisfied = [entry.id for name, entries in self.groups.items() if name in SATISFIED for entry in entries]
        entries = [(name, entry) for name, group in self.groups.items() for entry in group]
        summary: BatchSummary = {
            **EMPTY_BATCH,
            "scope": value_of(self.name),
            "tasks": self.mentions([entry.id for _, entry in entries]),
            "done": self.mentions([entry.id for name, entry in entries if name in {"done", "completed"}]),
            "pending": self.mentions([entry.id for name, entry in entries if name == "pending"]),
            "place": self._tasks_place(),
            "satisfied": self.mentions(satisfied),
            "statuses": [(entry.id.value, name) for name, entry in entries],
            "files": _files(self.next_tasks),
            "next": self.mentions([entry.id for entry in self.next_tasks]),
            "parallel": self.is_parallel,
        }
        return summary

    def _tasks_place(self) -> tuple[int, int]:
        node = self.at("checkpoint")
        keys = node.keys if node is not None and node.keys is not None else {}
        return self.source.line_and_column(keys["tasks"][0]) if "tasks" in keys else (1, 1)


class BatchTasks(BatchDocument):
    kind = "batch_tasks"

    @cached_property
    def entries(self) -> tuple[TaskEntry, ...]:
        return tuple(task_entries(self.at("tasks")))

    def tasks(self) -> list[Task]:
        """Return the tasks in the form that `batch_plan` needs."""
        phases = self.phase_of
        return [entry.as_task(phases.get(entry.id.value, "")) for entry in self.entries]

    @cached_property
    def phase_of(self) -> Mapping[str, str]:
        """Return the phase of each task that belongs to one."""
        return _phases(self.items_at("phases"))

    def summary(self) -> Mapping[str, object]:
        summary: BatchSummary = {
            **EMPTY_BATCH,
            "scope": value_of(self.text_at("scope") or self.text_at("spec")),
            "tasks": self.mentions([entry.id for entry in self.entries]),
            "depends": [
                (self.mention(entry.id), self.mention(other)) for entry in self.entries for other in entry.depends_on
            ],
            "statuses": [(entry.id.value, status_word(entry.status)) for entry in self.entries],
            "files": _files(self.entries),
        }
        return summary


# The keys of dependencies.yaml below which tasks and their dependencies are.
_FORMS = ("edges", "nodes", "tasks", "dependencies", "phases", "batches")
_LISTS = ("phases", "batches")
# Other known keys; a value below any other key is a task if the file has none of the forms.
_ABOUT_THE_FILE = frozenset(
    {"scope", "spec", "code", "name", "version", "created", "revised", "updated", "meta", "phase_policy"}
    | {"critical_path", "actions", "notes", "note", "description", "title", "author", "generated", "comment"}
)


class BatchDependencies(BatchDocument):
    """`dependencies.yaml` in one of its forms: a mapping of tasks to their dependencies (`edges`, `nodes`, `tasks`,
    `dependencies`, or the file itself), a list of such mappings, phases with tasks, or batches in order.
    """

    kind = "batch_dependencies"

    def is_text(self, path: NodePath) -> bool:
        """Whether the value is always a string, such as the task ids below a task's key."""
        if not path:
            return super().is_text(path)
        last = path[-1]
        return super().is_text(path) or not isinstance(last, str) or path[0] not in (*_FORMS, *_ABOUT_THE_FILE)

    @cached_property
    def dependencies(self) -> list[Dependency]:
        """Return pairs of a task and its dependency, from every unambiguous form."""
        found: list[Dependency] = []
        for holder in self._holders:
            found += self._of_mapping(holder)
            for item in holder.items:
                found += ((entry.id, other) for entry in _entry(item) for other in entry.depends_on)
        for entry in self._phase_tasks():
            found += ((entry.id, other) for other in entry.depends_on)
        return found

    @cached_property
    def in_order(self) -> list[Dependency]:
        """Return pairs of a task and a task in the preceding batch, for a file that states only batches."""
        if self.dependencies or self.loose_dependencies:
            return []
        batches = [[entry.id for entry in task_entries(batch)] for batch in self.items_at("batches")]
        return [(task, other) for before, after in pairwise(batches) for task in after for other in before]

    @cached_property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        """Return the files of each task for which the file lists any."""
        entries = [*self._phase_tasks(), *(entry for holder in self._holders for entry in _entries_of(holder))]
        return {entry.id.value: _values(entry.files) for entry in reversed(entries) if entry.files}

    @cached_property
    def unread(self) -> tuple[Text, ...]:
        """Return the keys whose values are in an unknown form; in a file without known keys, the keys that are not
        tasks.
        """
        root = self.root
        if root is None or not root.keys or set(root.mapping) <= _ABOUT_THE_FILE:
            return ()
        if self._forms:
            return tuple(_unread(name, root) for name in self._forms if not _is_form(name, root.mapping[name]))
        named = [name for name in root.mapping if name not in _ABOUT_THE_FILE]
        return tuple(Text(name, *root.keys[name]) for name in named if not _is_task(root.mapping[name]))

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        known = self.root.mapping if self.root is not None else {}
        return tuple(name for name in _FORMS if name in known and known[name].value is not None)

    @cached_property
    def _holders(self) -> list[Node]:
        """Return the nodes whose keys or items are tasks."""
        if not self._forms and self.root is not None and not self.unread:
            return [self.root]
        return [node for name in _FORMS[:4] if (node := self.at(name)) is not None]

    @cached_property
    def loose_dependencies(self) -> list[Dependency]:
        """Return pairs `{from: a, to: b}`, which are ambiguous: either task may depend on the other."""
        return [
            (one, other)
            for edge in self.items_at("edges")
            for one in texts_in(edge.get("from"))
            for other in texts_in(edge.get("to"))
        ]

    @cached_property
    def named_tasks(self) -> tuple[Text, ...]:
        """Return every occurrence of a task other than as a dependency."""
        found = [one for one, _ in self.dependencies]
        for holder in self._holders:
            keys = holder.keys or {}
            found += [Text(name, *keys[name]) for name, node in holder.mapping.items() if node.value == []]
        found += [entry.id for entry in self._phase_tasks()]
        found += [entry.id for batch in self.items_at("batches") for entry in task_entries(batch)]
        found += [entry.id for holder in self._holders for item in holder.items for entry in _entry(item)]
        return (*found, *self.texts_at("critical_path"))

    @cached_property
    def phase_of(self) -> Mapping[str, str]:
        """Return the phase of each task that belongs to one."""
        return _phases(self.items_at("phases"))

    def _phase_tasks(self) -> Iterator[TaskEntry]:
        for phase in self.items_at("phases"):
            yield from task_entries(phase)

    def _of_mapping(self, node: Node) -> Iterator[Dependency]:
        for name, value in node.mapping.items() if node.keys else ():
            if node is self.root and name in _ABOUT_THE_FILE:
                continue
            for other in texts_in(value.get("depends_on") if value.mapping else value):
                yield Text(name, *(node.keys or {})[name]), other

    def summary(self) -> Mapping[str, object]:
        summary: BatchSummary = {
            **EMPTY_BATCH,
            "scope": value_of(self.text_at("scope") or self.text_at("spec")),
            "tasks": self.mentions(self.named_tasks),
            "depends": [(self.mention(one), self.mention(other)) for one, other in self.dependencies],
            "files": [(name, [*paths]) for name, paths in self.files.items()],
            "loose": [(self.mention(one), self.mention(other)) for one, other in self.loose_dependencies],
        }
        return summary


def _entries_of(holder: Node) -> Iterator[TaskEntry]:
    """Yield the tasks in a mapping by id or in a list of mappings, with their files."""
    for item in holder.items:
        yield from _entry(item)
    for name, value in holder.mapping.items() if holder.keys else ():
        files = (*texts_in(value.get("files")), *texts_in(value.get("file"))) if value.mapping else ()
        yield TaskEntry(Text(name, *(holder.keys or {})[name]), None, (), files)


def _unread(name: str, root: Node) -> Text:
    """Return the first task below this key whose value is in an unknown form; otherwise the key."""
    value, keys = root.mapping[name], root.mapping[name].keys or {}
    odd = [task for task, needs in value.mapping.items() if not _is_task(needs)] if name not in _LISTS else []
    return Text(odd[0], *keys[odd[0]]) if odd and odd[0] in keys else Text(name, *(root.keys or {})[name])


def _is_form(name: str, value: Node) -> bool:
    if name in _LISTS:
        return all(item.mapping for item in value.items) and isinstance(value.value, list)
    if isinstance(value.value, list):
        return all(item.get("id") or (item.get("from") and item.get("to")) for item in value.items)
    return isinstance(value.value, dict) and all(map(_is_task, value.mapping.values()))


def _is_task(value: Node) -> bool:
    """Whether the value below a task id is empty or states the task's dependencies."""
    if isinstance(value.value, dict):
        known = {"depends_on", "blocks", "file", "files", "name", "title", "phase", "id", "parallel"}
        return not value.value or not known.isdisjoint(value.mapping)
    if isinstance(value.value, list):
        return all(item.text for item in value.items)
    return value.value is None or (bool(value.text) and " " not in (value.text or ""))


class BatchValidation(BatchDocument):
    kind = "batch_validation"

    def is_text(self, path: NodePath) -> bool:
        """Whether the value is always a string. An area may have the same name as a text field."""
        return super().is_text(path) and path[0] != "ambiguity_scan"

    def summary(self) -> Mapping[str, object]:
        summary: BatchSummary = {
            **EMPTY_BATCH,
            "scope": value_of(self.text_at("scope") or self.text_at("name")),
            "advice": self.mention(self.text_at("review_session", "recommendation")),
        }
        return summary


def _phases(phases: list[Node]) -> dict[str, str]:
    found: dict[str, str] = {}
    for index, phase in enumerate(phases):
        name = as_text(phase.get("id")) or as_text(phase.get("name")) or as_text(phase.get("title"))
        tasks = [entry.id for entry in task_entries(phase)] + list(texts_in(phase.get("task_ids")))
        for task in tasks:
            found.setdefault(task.value, name.value if name is not None else f"phase {index + 1}")
    return found


def _files(entries: tuple[TaskEntry, ...]) -> list[tuple[str, list[str]]]:
    return [(entry.id.value, [path.value for path in entry.files]) for entry in entries if entry.files]
