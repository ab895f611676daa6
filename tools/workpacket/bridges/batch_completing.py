"""Completing a batch: tasks.yaml and checkpoint.yaml are updated and committed with the work.

The intent is in the log before anything else happens, under an id that the commit carries as a trailer. Whatever kills
the process, the next call sees how far it came, and goes on from there:

    the intent alone        the files are written, then the commit is made
    intent and files        the commit is made
    intent and commit       the commit is found by its trailer and recorded; there is never a second one
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from workpacket.bridges import batch_records as records
from workpacket.bridges.batch_dependencies import require_known_dependencies
from workpacket.bridges.batch_desk import BatchDesk
from workpacket.bridges.batch_labels import label_after
from workpacket.bridges.batch_phases import BatchUnderWay
from workpacket.documents.batch_view import BatchView, NextBatch
from workpacket.git.changes import status
from workpacket.git.commits import commit_with_staged, commit_with_trailer
from workpacket.git.revisions import head_commit
from workpacket.git.rewriting import tree_of
from workpacket.model.canonical import Json
from workpacket.shell.moment import moment
from workpacket.value import replace

TRAILER = "Batch-Id"
_SHOWN = 3


def complete_batch(
    desk: BatchDesk, batch: BatchUnderWay, issues: Sequence[Json], resolved: Sequence[int], message: str
) -> None:
    """Write the intent down, then carry it out. What nobody may commit is refused before."""
    require_known_dependencies(desk)
    view = _view_after(desk, batch, issues, resolved)
    desk.record(records.COMPLETING, {
        "id": moment().nonce, "batch": batch.label, "tasks": list(batch.tasks), "head": desk.facts.seen.head,
        "view": view.as_json(), "message": message or _subject(desk, batch),
    })  # fmt: skip
    _carry_out(desk, judged=True)


def finish(desk: BatchDesk) -> None:
    """Do what is left of a completion that was cut short, if one was."""
    _carry_out(desk, judged=False)


def _carry_out(desk: BatchDesk, *, judged: bool) -> None:
    begun = desk.facts.state.completing
    if begun is None:
        return
    head = desk.facts.seen.head
    before = commit_with_trailer(desk.repository, head, TRAILER, begun.id) if head else None
    found = None if before is None else before.commit
    if found is None:
        if not judged:  # what lies in the work tree may have changed since the intent was written down
            require_known_dependencies(desk)
        head = head_commit(desk.repository) or ""
        if head != begun.head:  # somebody committed meanwhile: the file names the parent of its own commit
            view = replace(desk.facts.state.view, last_commit=head).as_json()
            data: dict[str, Json] = {"id": begun.id, "batch": begun.label, "tasks": list(begun.tasks), "head": head}
            desk.record(records.COMPLETING, {**data, "view": view, "message": begun.message})
        desk.write(done=frozenset(begun.tasks))
        text = f"{begun.message}\n\n{TRAILER}: {begun.id}\n"
        found = commit_with_staged(desk.repository, text, _paths_of(desk, begun.tasks))
    else:
        desk.write(done=frozenset(begun.tasks))
    held = desk.facts.preconditions(found, tree_of(desk.repository, found)).as_json()
    desk.record(records.COMPLETED, {"id": begun.id, "batch": begun.label, "commit": found, "preconditions": held})
    desk.said.append(f"batch {begun.label} is complete, commit {found[:12]}")


def _view_after(desk: BatchDesk, batch: BatchUnderWay, issues: Sequence[Json], resolved: Sequence[int]) -> BatchView:
    facts = desk.facts
    before = facts.state.view
    after = facts.scope.with_done(set(batch.tasks))
    kept = [issue for number, issue in enumerate(before.deferred, 1) if number not in resolved]
    label = label_after(batch.label, {*facts.state.labels, batch.label})
    tasks = after.next.batch
    return replace(
        before,
        branch=facts.seen.branch,
        timestamp=moment().now,
        last_batch=batch.label,
        last_commit=facts.seen.head,
        groups=after.groups(),
        next=NextBatch(label, tasks, len(tasks) > 1) if tasks else None,
        deferred=(*kept, *({"batch": batch.label, **i} if isinstance(i, dict) else i for i in issues)),
        phase="",
        incomplete=(),
    )


def _subject(desk: BatchDesk, batch: BatchUnderWay) -> str:
    names = desk.facts.scope.names
    listed = ", ".join(f"{task} {names.get(task, '')}".strip() for task in batch.tasks)
    return " ".join(f"{desk.facts.name}: batch {batch.label}: {listed}".split())


def _paths_of(desk: BatchDesk, tasks: Sequence[str]) -> list[str]:
    """What differs from HEAD and belongs to the batch: what its tasks name, and the two files of the scope."""
    named = [path for task in desk.facts.scope.tasks if task.id in tasks for path in task.files]
    own = {f"{desk.folder}/checkpoint.yaml", f"{desk.folder}/tasks.yaml"}
    entries = status(desk.repository)
    chosen = [entry.path for entry in entries if entry.path in own or any(_names(n, entry.path) for n in named)]
    left = [e.path for e in entries if e.path not in chosen and (e.untracked or e.letters[1] != " ")]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        desk.said.append(f"left out of the commit: {', '.join(left[:_SHOWN])}{more}")
    return chosen


def _names(named: str, path: str) -> bool:
    """Whether a task that names the file, folder or pattern `named` changes the file at `path`."""
    plain = named.strip().replace("\\", "/").partition(":")[0].removeprefix("./").rstrip("/")
    return path == plain or path.startswith(f"{plain}/") or fnmatchcase(path, plain)
