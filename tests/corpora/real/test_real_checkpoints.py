"""Real work packages, batch scopes and role checkpoints: each is read, and what follows from them holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from workpacket.bridges.resumable import unfinished_roles
from workpacket.bridges.role_facts import fields_of, read_folder, scan_roles
from workpacket.documents.batch import SATISFIED, BatchCheckpoint, BatchTasks, Task
from workpacket.documents.batch_scope import normal_path, overlap, plan
from workpacket.documents.document import read_document
from workpacket.documents.places import kind_of
from workpacket.documents.role_progress import RoleProgress, front_of, is_open
from workpacket.documents.structured import FrontMatterDocument
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.shell.tree import find_documents
from workpacket.text.source import Source

BATCHES = {"batch_checkpoint", "batch_tasks", "batch_dependencies", "batch_validation"}


def sources(root: Path, *kinds: str) -> Iterator[tuple[str, Source]]:
    for found in find_documents(str(root)):
        kind = kind_of(found.path)
        if kind in kinds:
            yield kind, Source.from_bytes(found.path, (root / found.path).read_bytes())


def scopes(root: Path) -> Iterator[tuple[BatchCheckpoint, BatchTasks]]:
    """Each checkpoint with the tasks that lie beside it."""
    for _, source in sources(root, "batch_checkpoint"):
        path = source.path.replace("checkpoint.yaml", "tasks.yaml")
        if (root / path).is_file():
            yield BatchCheckpoint(source), BatchTasks(Source.from_bytes(path, (root / path).read_bytes()))


def test_every_file_is_read(laid_out: Path) -> None:
    for kind, source in sources(laid_out, "work_package", "role_progress", *BATCHES):
        document = read_document(kind, source)
        is_note = isinstance(document, FrontMatterDocument) and not document.has_front_matter

        assert document.root is not None or is_note, source.path


@pytest.mark.parametrize("policy", ["dag", "barrier"])
def test_what_comes_after_a_real_checkpoint_is_pending_and_ready(laid_out: Path, policy: str) -> None:
    for checkpoint, defined in scopes(laid_out):
        group_of = {entry.id.value: name for name, group in checkpoint.groups.items() for entry in group}
        tasks = [
            Task(task.id, group_of.get(task.id, task.status), task.depends_on, task.files, task.phase)
            for task in defined.tasks()
        ]
        found = plan(tasks, "barrier" if policy == "barrier" else "dag")
        by_id = {task.id: task for task in tasks}

        assert found.problems == ()
        assert group_of.keys() == by_id.keys()
        assert found.satisfied == {name for name, group in group_of.items() if group in SATISFIED}
        assert found.satisfied.isdisjoint(found.pending)
        assert set(found.batch) <= set(found.pending)
        assert all(found.satisfied.issuperset(by_id[name].depends_on) for name in found.batch)
        assert found.batch or not found.pending
        files = [normal_path(path) for name in found.batch for path in by_id[name].files]
        assert not any(overlap(one, other) for one, other in combinations(files, 2) if one != other)
        assert len(files) == len(set(files)) or len(found.batch) == 1


def test_every_open_role_is_listed_and_every_trouble_of_it_is_a_reason(
    laid_out: Path,
) -> None:
    opened = {
        source.path
        for _, source in sources(laid_out, "role_progress")
        if (note := RoleProgress(source)).is_checkpoint and is_open(fields_of(front_of(note)).status)
    }
    scanned, unread = scan_roles(Runtime(MemoryStore()), read_folder(
        lambda folder: [path.name for path in (laid_out / folder).iterdir()],
        lambda path: (laid_out / path).read_bytes(),
    ), {})  # fmt: skip
    listed = unfinished_roles(scanned)
    assert unread == []
    assert {role.path for role in listed} == opened
    codes = {code for role in listed for code in role.blocked_by}
    assert "role_zombie" in codes
    assert codes <= {"role_zombie", "role_identity_mismatch", "role_key_missing", "role_twice"}
