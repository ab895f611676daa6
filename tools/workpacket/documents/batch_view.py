"""What a `checkpoint.yaml` says that the log says too: the part of it that is a view.

The rest of the file (a note, the names of tasks, who reviews) belongs to whoever wrote it. It is kept as it stands, and
a change of it is no contradiction of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from workpacket.documents.batch import BatchCheckpoint
from workpacket.model.canonical import Json
from workpacket.value import NOTHING, Value

# The groups of tasks under the one name that each has here.
_GROUP_NAMES = {"done": "completed"}


class NextBatch(Value):
    """The batch that comes next, or is under way."""

    label: str
    tasks: tuple[str, ...]
    parallel: bool = False


class BatchView(Value):
    """`groups` is empty in files of the newer form, which leave that to tasks.yaml. `phase` is '' between batches."""

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
            "branch": self.branch,
            "base": self.base,
            "timestamp": self.timestamp,
            "last_batch": self.last_batch,
            "last_commit": self.last_commit,
            "groups": {name: list(tasks) for name, tasks in self.groups.items()},
            "next": None
            if following is None
            else {"label": following.label, "tasks": list(following.tasks), "parallel": following.parallel},
            "deferred": list(self.deferred),
            "phase": self.phase,
            "incomplete": list(self.incomplete),
        }


def view_of_json(stored: Mapping[str, Json]) -> BatchView:
    following = stored.get("next")
    groups = cast("Mapping[str, Sequence[str]]", stored.get("groups") or {})
    return BatchView(
        **{name: str(stored.get(name) or "") for name in ("branch", "base", "timestamp", "last_batch", "last_commit")},
        groups={name: tuple(tasks) for name, tasks in groups.items()},
        next=_next_of_json(following) if isinstance(following, Mapping) else None,
        deferred=tuple(cast("Sequence[Json]", stored.get("deferred") or ())),
        phase=stored.get("phase") or "",
        incomplete=tuple(cast("Sequence[Json]", stored.get("incomplete") or ())),
    )


def _next_of_json(stored: Mapping[str, Json]) -> NextBatch:
    tasks = cast("Sequence[str]", stored.get("tasks") or ())
    return NextBatch(str(stored.get("label") or ""), tuple(tasks), stored.get("parallel") is True)


def view_of(document: BatchCheckpoint) -> BatchView:
    """What the file says."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, entries in document.groups.items():
        known = _GROUP_NAMES.get(name, name)
        groups[known] = (*groups.get(known, ()), *(entry.id.value for entry in entries))
    tasks = tuple(entry.id.value for entry in document.next_tasks)
    label = _said(document, "next_batch", "number")
    following = NextBatch(label, tasks, document.is_parallel) if label or tasks else None
    phase = document.at("checkpoint", "phase_cursor")
    return BatchView(
        branch=_said(document, "branch"),
        base=_said(document, "base"),
        timestamp=_said(document, "timestamp") or _said(document, "updated_at"),
        last_batch=_said(document, "last_batch"),
        last_commit=_said(document, "last_commit"),
        groups=groups,
        next=following,
        deferred=_plain_items(document, "deferred_issues"),
        phase=(phase.plain() if phase is not None else "") or "",
        incomplete=_plain_items(document, "incomplete_stages"),
    )


def _said(document: BatchCheckpoint, *path: str) -> str:
    text = document.text_at("checkpoint", *path)
    return text.value if text is not None else ""


def _plain_items(document: BatchCheckpoint, key: str) -> tuple[Json, ...]:
    node = document.at("checkpoint", key)
    plain = node.plain() if node is not None else None
    if isinstance(plain, list):
        return tuple(plain)
    return (plain,) if plain else ()


def differences(logged: BatchView, stated: BatchView) -> list[str]:
    """What the file says otherwise than the log, in words, one sentence a field."""
    found = []
    said = stated.as_json()
    for name, ours in logged.as_json().items():
        if name == "groups":
            found += _regrouped(logged, stated)
        elif said[name] != ours:
            found.append(f"{name} is {_shown(said[name])} in the file and {_shown(ours)} in the log")
    return found


def _regrouped(logged: BatchView, stated: BatchView) -> list[str]:
    if not stated.groups and not logged.groups:
        return []
    ours = {task: group for group, tasks in logged.groups.items() for task in tasks}
    theirs = {task: group for group, tasks in stated.groups.items() for task in tasks}
    return [
        f"{task} stands under {theirs.get(task, 'nothing')} in the file and {ours.get(task, 'nothing')} in the log"
        for task in dict.fromkeys([*ours, *theirs])
        if ours.get(task) != theirs.get(task)
    ]


def _shown(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_shown(item) for item in value)}]"
    return repr(value) if value or value is False else "nothing"
