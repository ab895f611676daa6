"""Write `checkpoint.yaml` and the statuses in `tasks.yaml`.

A file in canonical form is rewritten in that form; a file that a person wrote keeps every byte that does not have to
change. A new file has the keys of the published format, in order. Part of a `checkpoint.yaml` is a view of the log. The
rest (notes, task names, reviewers) belongs to its author: it is kept unchanged, and changes to it do not contradict the
log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from workpacket.documents.batch import BatchCheckpoint, BatchTasks, is_checkpoint_text, status_word
from workpacket.documents.document import value_of
from workpacket.model.canonical import Json
from workpacket.text.source import Node, Plain, Source
from workpacket.text.yaml_edit import CannotEdit, YamlText, insert_key, reconciled, set_scalar, yaml_text
from workpacket.text.yaml_strict import NodePath, write_yaml
from workpacket.value import NOTHING, Value

# The groups of tasks by their standard names.
_GROUP_NAMES = {"done": "completed"}
# The fields of a view that are text.
_TEXTS = ("branch", "base", "timestamp", "last_batch", "last_commit")


class NextBatch(Value):
    """The next or current batch."""

    label: str
    tasks: tuple[str, ...]
    parallel: bool = False


class BatchView(Value):
    """The part of a checkpoint that is a view of the log. `groups` is empty in files of the newer form, because
    tasks.yaml has the states. `phase` is '' between batches.
    """

    branch: str = ""
    base: str = ""
    timestamp: str = ""
    last_batch: str = ""
    last_commit: str = ""
    groups: Mapping[str, tuple[str, ...]] = NOTHING
    next: NextBatch | None = None
    deferred: tuple[Json, ...] = ()
    phase: Json = ""
    incomplete: tuple[Json, ...] = ()

    @property
    def done(self) -> frozenset[str]:
        return frozenset(self.groups.get("completed", ()))

    def as_json(self) -> dict[str, Json]:
        following = self.next
        return {
            **{name: getattr(self, name) for name in _TEXTS},
            "groups": {name: list(tasks) for name, tasks in self.groups.items()},
            "next": None
            if following is None
            else {"label": following.label, "tasks": list(following.tasks), "parallel": following.parallel},
            "deferred": list(self.deferred),
            "phase": self.phase,
            "incomplete": list(self.incomplete),
        }


def view_of_json(stored: Mapping[str, Json]) -> BatchView:
    following = None
    if isinstance(batch := stored.get("next"), Mapping):
        tasks = cast("Sequence[str]", batch.get("tasks") or ())
        following = NextBatch(str(batch.get("label") or ""), tuple(tasks), batch.get("parallel") is True)
    groups = cast("Mapping[str, Sequence[str]]", stored.get("groups") or {})
    return BatchView(
        **{name: str(stored.get(name) or "") for name in _TEXTS},
        groups={name: tuple(tasks) for name, tasks in groups.items()},
        next=following,
        deferred=tuple(cast("Sequence[Json]", stored.get("deferred") or ())),
        phase=stored.get("phase") or "",
        incomplete=tuple(cast("Sequence[Json]", stored.get("incomplete") or ())),
    )


def view_of(document: BatchCheckpoint) -> BatchView:
    """Return the view stated in the file."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, entries in document.groups.items():
        known = _GROUP_NAMES.get(name, name)
        groups[known] = (*groups.get(known, ()), *(entry.id.value for entry in entries))
    tasks = tuple(entry.id.value for entry in document.next_tasks)
    label = _said(document, "next_batch", "number")
    following = NextBatch(label, tasks, document.is_parallel) if label or tasks else None
    phase = document.at("checkpoint", "phase_cursor")
    texts = {name: _said(document, name) for name in _TEXTS}
    return BatchView(
        **{**texts, "timestamp": texts["timestamp"] or _said(document, "updated_at")},
        groups=groups,
        next=following,
        deferred=_plain_items(document, "deferred_issues"),
        phase=(phase.plain() if phase is not None else "") or "",
        incomplete=_plain_items(document, "incomplete_stages"),
    )


def _said(document: BatchCheckpoint, *path: str) -> str:
    return value_of(document.text_at("checkpoint", *path))


def _plain_items(document: BatchCheckpoint, key: str) -> tuple[Json, ...]:
    node = document.at("checkpoint", key)
    plain = node.plain() if node is not None else None
    if isinstance(plain, list):
        return tuple(plain)
    return (plain,) if plain else ()


def differences(logged: BatchView, stated: BatchView) -> list[str]:
    """Return the differences between file and log, one sentence per field."""
    found = []
    said = stated.as_json()
    for name, ours in logged.as_json().items():
        if name == "groups":
            found += _regrouped(logged, stated)
        elif said[name] != ours:
            found.append(f"{name} is {_shown(said[name])} in the file, but {_shown(ours)} in the log")
    return found


def _regrouped(logged: BatchView, stated: BatchView) -> list[str]:
    if not stated.groups and not logged.groups:
        return []
    ours = {task: group for group, tasks in logged.groups.items() for task in tasks}
    theirs = {task: group for group, tasks in stated.groups.items() for task in tasks}
    return [
        f"{task} is under {theirs.get(task, 'nothing')} in the file, but under {ours.get(task, 'nothing')} in the log"
        for task in dict.fromkeys([*ours, *theirs])
        if ours.get(task) != theirs.get(task)
    ]


def _shown(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return repr(value) if value or value is False else "nothing"


Values = dict[str, Plain]
_ALWAYS = ("completed", "in_progress", "pending")
_FILES = ("file", "files")
_ORDER = ("id", "batch", "phase", "task", "reviewer", "state", "severity", "description", "location")
_OF_A_BATCH = ("phase_cursor", "incomplete_stages")


class Words:
    """Details of tasks besides their ids: names, and the files that they change."""

    def __init__(self, names: Mapping[str, str], files: Mapping[str, tuple[str, ...]]) -> None:
        self.names = names
        self.files = files


def canonical(values: Plain) -> bytes:
    return write_yaml(with_numbers(values)).encode("utf-8")


# The places of batch numbers, which are integers in the published format, although a label such as `2a` is text.
_NUMBERS = (("last_batch",), ("next_batch", "number"))


def with_numbers(values: Plain, stated: Plain = None) -> Plain:
    """Return the values of a checkpoint. Batch numbers are integers, except where `stated`, the values in the file, has
    the same number as a string.
    """
    checkpoint = values.get("checkpoint") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(checkpoint, dict):
        return values
    before = stated.get("checkpoint") if isinstance(stated, dict) else None
    before = before if isinstance(before, dict) else {}
    made = dict(checkpoint)
    if "last_batch" in made:
        made["last_batch"] = _number(made["last_batch"], before.get("last_batch"))
    if isinstance(following := made.get("next_batch"), dict) and "number" in following:
        old = before.get("next_batch")
        number = _number(following["number"], old.get("number") if isinstance(old, dict) else None)
        made["next_batch"] = {**following, "number": number}
    if isinstance(issues := made.get("deferred_issues"), list):
        old_issues = before.get("deferred_issues")
        listed = old_issues if isinstance(old_issues, list) else []
        known = [one.get("batch") for one in listed if isinstance(one, dict)]
        made["deferred_issues"] = [
            {**one, "batch": _number(one["batch"], one["batch"] if one["batch"] in known else None)}
            if isinstance(one, dict) and "batch" in one
            else one
            for one in issues
        ]
    return {**values, "checkpoint": made}


def _number(value: Plain, stated: Plain) -> Plain:
    if not isinstance(value, str) or value == stated:
        return value
    return int(value) if value.isascii() and value.isdigit() and str(int(value)) == value else value


def is_canonical(source: Source, values: Plain) -> bool:
    """Whether the file is exactly what this module would write for these values."""
    return not source.bom and source.encode() == canonical(values)


def written(document: BatchCheckpoint | None, folder: str, view: BatchView, words: Words) -> bytes:
    """Return the bytes of the checkpoint updated to `view`; raise `CannotEdit` if only a person can make the change."""
    if document is None:
        return canonical(brought_up(None, folder, view, words))
    plain = document.root.plain() if document.root is not None else None
    if not isinstance(plain, dict) or not isinstance(plain.get("checkpoint"), dict):
        raise CannotEdit(f"{document.path}:1:1: the file has no checkpoint")
    wanted = brought_up(plain, folder, view, words)
    if is_canonical(document.source, plain):
        return canonical(wanted)
    text = yaml_text(document.source)
    values = cast("Values", with_numbers(wanted, text.root.plain()))

    def is_text(path: NodePath) -> bool:
        return is_checkpoint_text(path) and path[1:] not in _NUMBERS and path[-1] != "batch"

    return reconciled(text, ("checkpoint",), values["checkpoint"], is_text).source.encode()


def brought_up(stated: Values | None, folder: str, view: BatchView, words: Words) -> Values:
    """Return the values of the file updated to `view`, or the values of a new file."""
    checkpoint = stated.get("checkpoint") if stated is not None else None
    if stated is None or not isinstance(checkpoint, dict):
        return {"checkpoint": _new(folder, view, words)}
    return {**stated, "checkpoint": _wanted(checkpoint, view, words)}


def document_of(values: Plain) -> BatchCheckpoint:
    """Return the document built from a file's values."""
    return BatchCheckpoint(Source.from_bytes("checkpoint.yaml", canonical(values)))


def _new(folder: str, view: BatchView, words: Words) -> Values:
    kind = "scope" if folder.startswith("scopes/") else "spec"
    start: Values = {f"{kind}_name": folder.rpartition("/")[2], f"{kind}_path": f"./{folder}", "last_commit": None}
    empty: Values = {"tasks": {"completed": [], "in_progress": [], "pending": [{}]}}
    made = _wanted({**start, **empty}, view, words)
    order = [f"{kind}_name", f"{kind}_path", *_TEXTS, "tasks", "next_batch"]
    return {key: made[key] for key in [*order, *(key for key in made if key not in order)] if key in made}


def _wanted(stated: Values, view: BatchView, words: Words) -> Values:
    """Return `stated` with everything that belongs to the view updated; the rest and the order remain the same."""
    made = dict(stated)
    made["branch"] = view.branch or made.get("branch")
    if view.base or "base" in made:
        made["base"] = view.base or None
    if view.timestamp:
        made["updated_at" if "updated_at" in made and "timestamp" not in made else "timestamp"] = view.timestamp
    made["last_batch"] = view.last_batch or None
    if view.last_commit or "last_commit" in made:
        made["last_commit"] = view.last_commit or None
    listed, planned = _entries(stated)
    if view.groups:
        made["tasks"] = _groups(stated.get("tasks"), view, {**planned, **listed}, words)
    made["next_batch"] = _next(stated, view, {**listed, **planned}, words)
    made["deferred_issues"] = [_plain(issue) for issue in view.deferred]
    for key, value in zip(_OF_A_BATCH, (view.phase, [_plain(stage) for stage in view.incomplete]), strict=True):
        if value:
            made[key] = _plain(value)
        else:
            made.pop(key, None)
    return made


def _entries(stated: Values) -> tuple[dict[str, Values], dict[str, Values]]:
    """Return the tasks that are mappings in the file, by id and with all their keys, from the groups and the next
    batch.
    """
    groups, following = stated.get("tasks"), stated.get("next_batch")
    lists = list(groups.values()) if isinstance(groups, dict) else []
    planned = following.get("tasks") if isinstance(following, dict) else None
    return _by_id(lists), _by_id([planned])


def _by_id(lists: list[Plain]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for tasks in lists:
        for entry in tasks if isinstance(tasks, list) else ():
            if isinstance(entry, dict):
                found.setdefault(str(entry.get("id")), entry)
    return found


def _groups(stated: Plain, view: BatchView, entries: Mapping[str, Values], words: Words) -> Values:
    before = stated if isinstance(stated, dict) else {}
    done = "done" if "done" in before and "completed" not in before else "completed"
    made: Values = {}
    keys = {**dict.fromkeys(before), **dict.fromkeys([done if n == "completed" else n for n in view.groups])}
    for key in keys:
        members = view.groups.get("completed" if key == done else key, ()) if key == done or key != "done" else ()
        if not members and key not in before and key not in _ALWAYS:
            continue
        made[key] = [_entry(task, entries, words, with_files=False) for task in members]
    return made


def _next(stated: Values, view: BatchView, entries: Mapping[str, Values], words: Words) -> Plain:
    if view.next is None:
        return None
    before = stated.get("next_batch")
    same = isinstance(before, dict) and str(before.get("number")) == view.next.label
    made: Values = dict(before) if isinstance(before, dict) and same else {}
    made["number"] = view.next.label
    made["tasks"] = [_entry(task, entries, words, with_files=True) for task in view.next.tasks]
    if not same or "parallel" in made or view.next.parallel:
        made["parallel"] = view.next.parallel
    return made


def _entry(task: str, entries: Mapping[str, Values], words: Words, *, with_files: bool) -> Plain:
    """Return a task in the style of this file: its id, either alone or with its name."""
    if not entries:
        return task
    files = words.files.get(task, ())
    dropped = _FILES if files or not with_files else ()
    made: Values = {"id": task, **{key: value for key, value in entries.get(task, {}).items() if key not in dropped}}
    if words.names.get(task):
        made.setdefault("name", words.names[task])
    if with_files and files:
        made |= {"file": files[0]} if len(files) == 1 else {"files": list(files)}
    return made


def _plain(value: object) -> Plain:
    """Convert stored JSON, whose keys have no order, to YAML values; known keys are in the order of the format."""
    if isinstance(value, Mapping):
        keys = [*(key for key in _ORDER if key in value), *(key for key in value if key not in _ORDER)]
        return {str(key): _plain(value[key]) for key in keys}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def with_statuses(document: BatchTasks, done: Collection[str], under_way: Collection[str] = ()) -> bytes:
    """Return `tasks.yaml` with these tasks marked as done or in progress; only their status changes."""
    text = yaml_text(document.source)
    word = _word_for_done(document)
    for index, item in enumerate(document.items_at("tasks")):
        identity = item.get("id")
        if identity is None:
            continue
        if identity.text in done:
            text = _with_status(text, index, item, word, {"done", "completed"})
        elif identity.text in under_way:
            text = _with_status(text, index, item, "in_progress", {"in_progress", "in-progress"})
    return text.source.encode()


def _with_status(text: YamlText, index: int, item: Node, word: str, same: set[str]) -> YamlText:
    status = item.get("status")
    if status is None:
        return text.edited(insert_key(text, ("tasks", index), "status", word))
    if status.text in same:
        return text
    return text.edited(set_scalar(text, ("tasks", index, "status"), word))


def _word_for_done(document: BatchTasks) -> str:
    """Return `completed`, unless the file uses `done` for finished tasks."""
    words = [status_word(entry.status) for entry in document.entries]
    return "done" if "done" in words and "completed" not in words else "completed"
