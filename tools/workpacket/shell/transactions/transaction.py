"""Changing several files as one: all of a plan, or nothing of it, whatever happens to the process or the power.

    with writing(repository, "claim") as transaction:
        ...gather facts, make the plan: nobody else writes meanwhile...
        transaction.apply(plan)

Entering takes the lock and finishes what an earlier command left unfinished. It refuses during a merge or rebase, and
in a work tree that leaves out governed files. What git holds and the work tree lacks is never written anew. Then:

1. draft    compare every file with what the plan expects; write the journal, with the bytes before and after
2. stage    put each new file, complete and durable, beside the one that it will replace
3. commit   rename the journal's draft to intent: from this point the change happens
4. roll     rename each staged file into place; make the folders durable
5. remove the journal

A failure before 3 takes the staged files away again. A failure after it is undone through the journal; if even that
fails, the next command finishes the work. `recovery` does the same for a process that died.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository, find_repository, operation_in_progress
from workpacket.model.layout import POLICY_PATH, TEMPORARY_PREFIX
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest
from workpacket.shell.actor import moment
from workpacket.shell.held import Held, look, require_shown
from workpacket.shell.transactions.journal import Entry, Record, TransactionFolders, open_workspace
from workpacket.shell.transactions.locks import WAIT, writer_lock
from workpacket.shell.transactions.safe_paths import Tree, split_path
from workpacket.shell.transactions.storage import (
    changed_meanwhile,
    changing_nothing,
    platform_storage,
)
from workpacket.text.source import Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.transactions.recovery import Recovered


class Transaction(Value):
    """The right to change governed files. `finished` lists transactions of earlier commands, finished on entering."""

    workspace: TransactionFolders
    held: Held
    finished: tuple[Recovered, ...] = ()

    def apply(self, plan: Plan) -> tuple[str, ...]:
        """Carry out the plan; the paths that changed. A WorkpacketError means that nothing did, or says otherwise."""
        self.held.require(change.path for change in plan.all_changes())
        with changing_nothing():
            record = _draft(self.workspace.work_tree, plan)
        if record.entries:
            from workpacket.shell.transactions.recovery import carry_out  # a command that is refused writes nothing

            carry_out(self.workspace, record)
        return tuple(entry.path for entry in record.entries)


@contextmanager
def writing(
    repository: Repository, command: str, *, during_merge: bool = False, wait: float = WAIT
) -> Iterator[Transaction]:
    """Be the only writer of this clone, with nothing unfinished behind. `during_merge`: only redraw projections."""
    with (
        writer_lock(repository, command, wait=wait),
        open_workspace(repository, platform_storage()) as workspace,
    ):
        if not during_merge:
            refuse_during_merge(repository)
        finished = _finish_pending(workspace)
        # A merge may have staged deletions that nobody here has decided.
        held = look(repository, head=not operation_in_progress(repository))
        held.require_visible()
        yield Transaction(workspace, held, finished)


def _finish_pending(workspace: TransactionFolders) -> tuple[Recovered, ...]:
    with changing_nothing():
        pending = workspace.journal.pending()
    if not pending:
        return ()
    from workpacket.shell.transactions.recovery import finish_pending

    return finish_pending(workspace)


def refuse_during_merge(repository: Repository) -> None:
    """For what a command does before it comes to write: WorkpacketError while git is in the middle of something."""
    operation = operation_in_progress(repository)
    if operation:
        raise WorkpacketError(
            "operation_in_progress",
            f"a {operation} is in progress",
            hint=f"Finish or abort it first: git {operation} --continue, or git {operation} --abort",
        )


def _draft(tree: Tree, plan: Plan) -> Record:
    """What the plan comes to here and now; WorkpacketError `changed_meanwhile` if a file is not as it expects."""
    for seen in plan.rests_on:
        if not _still(tree, seen):
            raise changed_meanwhile(seen.path)
    entries = [entry for change in plan.all_changes() if (entry := _entry(tree, change)) is not None]
    folders = dict.fromkeys(
        "/".join(parts)
        for entry in entries
        if entry.new is not None
        for parts in tree.missing_folders(split_path(entry.path)[:-1])
    )
    return Record(plan.tx, plan.command, tuple(entries), tuple(folders))


def _entry(tree: Tree, change: FileChange) -> Entry | None:
    """None if the file is already as it should become."""
    found = tree.read(change.path)
    old = None if found is None else found.data
    if old == change.new:
        return None
    if (None if old is None else digest(old)) != change.old:
        raise changed_meanwhile(change.path)
    return Entry(change.path, old, change.new, None if found is None else found.mode)


def _still(tree: Tree, seen: FileSeen | FolderSeen) -> bool:
    if isinstance(seen, FolderSeen):
        return {name for name in tree.names(seen.path) if not name.startswith(TEMPORARY_PREFIX)} == seen.names
    found = tree.read(seen.path)
    return (None if found is None else digest(found.data)) == seen.digest


def rewrite(root: str, command: str, changes: Sequence[tuple[Source, Source]]) -> None:
    """Puts the second source of each pair in the place of the first, if that is still what the file holds.

    `check --fix` and `fmt` change all of the files that they mean to, or none.
    """
    require_shown(root, (POLICY_PATH,))  # which says what lanes there are
    if not changes:
        return
    files = tuple(FileChange(before.path, before.digest, after.encode()) for before, after in changes)
    with writing(find_repository(Path(root)), command) as transaction:
        transaction.apply(Plan(command, moment().tx, files))
