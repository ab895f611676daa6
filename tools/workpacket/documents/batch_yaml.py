"""How the YAML files of a batch scope write tasks: as ids, as mappings with an id, or in groups of these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.documents.batch_plan import Task
from workpacket.documents.document import Document, Text, as_text
from workpacket.documents.summary import Mention
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.text.yaml_scalars import NodePath, written_as_text
from workpacket.text.yaml_strict import load_yaml

# Values that are text whatever they look like: `2` as the label of a batch, a commit id of digits, an id of a task.
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
# The keys of a checkpoint: what stands below another one is nobody's business here, and stays what YAML says it is.
CHECKPOINT_KEYS = frozenset(
    [
        *("base", "batch", "branch", "deferred_issues", "implementation_config", "incomplete_stages", "last_batch"),
        *("last_commit", "next_batch", "phase_cursor", "review_config", "scope_name", "scope_path", "spec_name"),
        *("spec_path", "tasks", "timestamp", "updated_at"),
    ]
)
# Fields with which a mapping among deferred issues says that it is meant as one.
ISSUE_FIELDS = frozenset(
    {"batch", "severity", "description", "location", "id", "issue", "reason", "task", "resolution"}
)


class BatchDocument(Document):
    """One YAML file of a scope. Unknown keys are kept."""

    def __init__(self, source: Source) -> None:
        loaded = load_yaml(source)
        root = written_as_text(source, loaded.root, self.is_text) if loaded.root is not None else None
        super().__init__(source, root, loaded.faults)

    def is_text(self, path: NodePath) -> bool:
        """Whether what stands at `path` is text, whatever it looks like."""
        return is_batch_text(path)

    def mention(self, text: Text) -> Mention:
        return (text.value, *self.place(text))

    def mentions(self, texts: Iterator[Text] | list[Text] | tuple[Text, ...]) -> list[Mention]:
        return [self.mention(text) for text in texts]


def is_checkpoint_text(path: NodePath) -> bool:
    """The same of a checkpoint, whose keys are known."""
    return path[:1] == ("checkpoint",) and (len(path) < 2 or path[1] in CHECKPOINT_KEYS) and is_batch_text(path)


def is_batch_text(path: NodePath) -> bool:
    """Whether what stands at `path` of a file of a scope is text, by the last names on the way."""
    last = path[-1] if path else ""
    if isinstance(last, str):
        return last in _TEXT_KEYS | _TEXT_LISTS or (len(path) > 1 and path[-2] == "edges")
    names = [step for step in path if isinstance(step, str)]
    return bool(names) and (names[-1] in _TEXT_LISTS or "edges" in names[-2:])


class TaskEntry(NamedTuple):
    """A task where a file names it. What the entry does not say is None or empty."""

    id: Text
    status: Text | None = None
    depends_on: tuple[Text, ...] = ()
    files: tuple[Text, ...] = ()

    def as_task(self, phase: str = "") -> Task:
        status = status_word(self.status)
        return Task(self.id.value, status, _values(self.depends_on), _values(self.files), phase)


def status_word(status: Text | None) -> str:
    """A status for comparison; none is pending."""
    return status.value.strip().casefold().replace("-", "_").replace(" ", "_") if status is not None else "pending"


def task_entries(node: Node | None) -> Iterator[TaskEntry]:
    """The tasks that a list names: `T1`, `{id: T1, ...}` or `T1: what it is`; of a mapping, those of its `tasks`."""
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
    """A text, or the texts of a list."""
    if node is None:
        return ()
    found = [as_text(item) for item in (node.items if isinstance(node.value, list) else [node])]
    return tuple(text for text in found if text is not None and text.value)


def _values(texts: tuple[Text, ...]) -> tuple[str, ...]:
    return tuple(text.value for text in texts)
