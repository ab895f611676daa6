"""Change several files as one: all of a plan, or nothing of it, whatever happens to the process or the power.

    with writing(repository, "claim") as transaction:
        ...gather facts, make the plan: no one else writes meanwhile...
        transaction.apply(plan)

Entering takes the lock and finishes what an earlier command left unfinished. It refuses during a merge or rebase, and
in a work tree that leaves out governed files. A file that git has but the work tree lacks is never created again.
Then:

1. draft    compare every file with what the plan expects; write the journal, with the bytes before and after
2. stage    put each new file, complete and durable, next to the one that it will replace
3. commit   rename the journal's draft to intent: from this point the change happens
4. roll     rename each staged file into place; make the folders durable
5. remove the journal

After a failure before step 3, the staged files are removed. A failure after it is undone through the journal; if even
that fails, the next command finishes the work. `recovery` does the same for a process that died.
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
    """The right to change governed files. `finished` lists transactions of earlier commands that were finished on
    entry.
    """

    workspace: TransactionFolders
    held: Held
    finished: tuple[Recovered, ...] = ()

    def apply(self, plan: Plan) -> tuple[str, ...]:
        """Carry out the plan and return the changed paths. A WorkpacketError means that nothing changed, unless it says
        otherwise.
        """
        # A path that git has and the work tree lacks would look new here, and its content would be lost.
        self.held.require(change.path for change in plan.all_changes() if change not in plan.restored)
        with changing_nothing():
            record = _draft(self.workspace.work_tree, plan)
        if record.entries:
            from workpacket.shell.transactions.recovery import carry_out  # a refused command writes nothing

            carry_out(self.workspace, record)
        return tuple(entry.path for entry in record.entries)


@contextmanager
def writing(
    repository: Repository, command: str, *, during_merge: bool = False, wait: float = WAIT
) -> Iterator[Transaction]:
    """Become the only writer of this clone, with nothing left unfinished. `during_merge`: only projections may be
    regenerated.
    """
    with (
        writer_lock(repository, command, wait=wait),
        open_workspace(repository, platform_storage()) as workspace,
    ):
        if not during_merge:
            refuse_during_merge(repository)
        # Before anything is read: files of an unfinished transaction may be in any mixture of old and new.
        finished = _finish_pending(workspace)
        # A merge may have staged deletions that no one here has decided on.
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


def complete_unfinished(repository: Repository, command: str) -> None:
    """Complete what an earlier command left unfinished, for a command that reads before it writes: what it reads would
    otherwise be a mixture of old and new.
    """
    refuse_during_merge(repository)
    with open_workspace(repository, platform_storage()) as workspace:
        left = workspace.journal.pending()
    if left:
        # Taking the lock recovers what was left; there is nothing of its own to write.
        with writing(repository, command):
            pass


def refuse_during_merge(repository: Repository) -> None:
    """Call this before any work that precedes writing: it raises WorkpacketError while git is in the middle of an
    operation.
    """
    operation = operation_in_progress(repository)
    if operation:
        raise WorkpacketError(
            "operation_in_progress",
            f"a {operation} is in progress",
            hint=f"Finish or abort it first: git {operation} --continue, or git {operation} --abort",
        )


def _draft(tree: Tree, plan: Plan) -> Record:
    """Return the changes that the plan makes to the files as they are now; raise WorkpacketError `changed_meanwhile` if
    a file is not as expected.
    """
    # Files that were only read count too, because the plan depends on their contents.
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
    """Return the change to the file; None if the file is already in its new state."""
    found = tree.read(change.path)
    old = None if found is None else found.data
    stored = None if old is None else tree.as_stored(change.path, old)
    if stored == change.new:
        return None
    if (None if stored is None else digest(stored)) != change.old:
        raise changed_meanwhile(change.path)
    return Entry(change.path, old, change.new, None if found is None else found.mode)


def _still(tree: Tree, seen: FileSeen | FolderSeen) -> bool:
    if isinstance(seen, FolderSeen):
        return {name for name in tree.names(seen.path) if not name.startswith(TEMPORARY_PREFIX)} == seen.names
    found = tree.read(seen.path)
    return (None if found is None else digest(tree.as_stored(seen.path, found.data))) == seen.digest


def rewrite(root: str, command: str, changes: Sequence[tuple[Source, Source]]) -> None:
    """Replace the first source of each pair with the second, if the file still matches the first.

    `check --fix` and `fmt` change either all of their files or none.
    """
    require_shown(root, (POLICY_PATH,))  # which defines the lanes
    if not changes:
        return
    files = tuple(FileChange(before.path, before.digest, after.encode()) for before, after in changes)
    with writing(find_repository(Path(root)), command) as transaction:
        transaction.apply(Plan(command, moment().tx, files))
