"""Finish the transactions of commands that died.

Without an intent, nothing has happened, and prepared files are removed. With an intent, the transaction is rolled
forward; one that was being undone is rolled back. A file in a third state, changed since by an editor or by git, stops
the recovery: nothing is changed, and a person decides with `recover --forward` or `--back`, which backs up the third
version before overwriting it.

A transaction can be carried out, or undone, from any mixture of old and new files. Both directions may be interrupted
anywhere and repeated. Each file is replaced by renaming a complete and durable temporary file; a file that is already
in the wanted state is left alone; the names become durable before the journal is removed. Commands that write nothing
never load this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, TypeAlias

from workpacket.git.repository import Repository
from workpacket.problem import WorkpacketError
from workpacket.shell.transactions import storage
from workpacket.shell.transactions.journal import (
    JournalDamaged,
    Record,
    Stage,
    TransactionFolders,
    damaged,
    open_workspace,
    write_file,
)
from workpacket.shell.transactions.storage import Tree, changing_nothing, platform_storage, split_path
from workpacket.shell.transactions.transaction import WAIT, writer_at_work, writer_lock
from workpacket.value import Value

Wanted: TypeAlias = Literal["old", "new"]

_ASIDE_FOLDER: Final = ("workpacket", "set-aside")
_PAUSE: Final = 0.01


class Stranger(Value):
    """A file that is in neither its old nor its new state. `data` is None if the file is missing."""

    path: str
    data: bytes | None


class ThirdState(Exception):
    """Raised if someone else changed files in the transaction; a person decides which version to keep."""

    def __init__(self, strangers: tuple[Stranger, ...]) -> None:
        super().__init__(", ".join(stranger.path for stranger in strangers))
        self.strangers = strangers


def stage(tree: Tree, record: Record) -> None:
    """Write every new file, complete and durable, next to the one that it will replace.

    A full disk or a read-only folder is detected here, before any governed file has changed. For a deletion, an empty
    file is staged, to test the folder.
    """
    for folder in record.new_folders:
        with _naming(folder):
            tree.make_folder(split_path(folder))
    for index, entry in enumerate(record.entries):
        _write_temporary(tree, record, index, entry.new or b"")


def strangers(tree: Tree, record: Record) -> tuple[Stranger, ...]:
    found = ((entry, _data(tree, entry.path)) for entry in record.entries)
    return tuple(Stranger(entry.path, data) for entry, data in found if data not in (entry.old, entry.new))


def roll(tree: Tree, record: Record, wanted: Wanted, *, staged: bool = False, overwrite: bool = False) -> None:
    """Bring every file to the `wanted` state; raise ThirdState, with nothing changed, if a file is neither old nor new.

    `staged` means that this process created the temporary files; those of another process are created again, because
    they might not be durable. `overwrite` means that a person has decided on the files in a third state.
    """
    # All files are compared before the first is replaced, so that a version made by someone else stops everything.
    found = () if overwrite else strangers(tree, record)
    if found:
        raise ThirdState(found)
    for index, entry in enumerate(record.entries):
        goal = entry.new if wanted == "new" else entry.old
        with _naming(entry.path):
            # Replaced already, by a process that died afterwards.
            if _data(tree, entry.path) == goal:
                _discard(tree, record, index)
            elif goal is None:
                _remove(tree, entry.path)
                _discard(tree, record, index)
            else:
                if not staged:
                    _write_temporary(tree, record, index, goal)
                *folder, name = split_path(entry.path)
                tree.storage.replace(tree.folder(tuple(folder)), record.temporary(index), name)
    if wanted == "new":
        _sync(tree, record)
    else:
        clear(tree, record)


def clear(tree: Tree, record: Record) -> None:
    """Remove what the transaction put next to the governed files: temporary files, and folders that are still empty."""
    for index in range(len(record.entries)):
        _discard(tree, record, index)
    _sync(tree, record)
    # Innermost first: a folder that still contains another is not empty.
    for folder in reversed(record.new_folders):
        parts = split_path(folder)
        if not tree.missing_folders(parts):
            tree.remove_folder_if_empty(parts)
            tree.storage.sync_folder(tree.folder(parts[:-1]))


def _data(tree: Tree, path: str) -> bytes | None:
    contents = tree.read(path)
    return None if contents is None else contents.data


def _write_temporary(tree: Tree, record: Record, index: int, data: bytes) -> None:
    entry = record.entries[index]
    with _naming(entry.path):
        folder = split_path(entry.path)[:-1]
        for missing in tree.missing_folders(folder):
            tree.make_folder(missing)
        _discard(tree, record, index)
        write_file(tree, folder, record.temporary(index), data, entry.mode)


def _discard(tree: Tree, record: Record, index: int) -> None:
    *folder, _name = record.entries[index].path.split("/")
    _remove(tree, "/".join((*folder, record.temporary(index))))


def _remove(tree: Tree, path: str) -> None:
    *folder, name = split_path(path)
    # Recovery may itself have been interrupted here, after it removed the file.
    with suppress(FileNotFoundError):
        tree.storage.remove(tree.folder(tuple(folder)), name)


def _sync(tree: Tree, record: Record) -> None:
    """Make the names durable in every folder that contains a file of the transaction or a folder that it created."""
    folders = {split_path(entry.path)[:-1] for entry in record.entries}
    folders |= {split_path(folder)[:-1] for folder in record.new_folders}
    for folder in sorted(folders):
        if not tree.missing_folders(folder):
            tree.storage.sync_folder(tree.folder(folder))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Make the error for a disk failure name the governed file instead of its temporary file."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def carry_out(workspace: TransactionFolders, record: Record) -> None:
    """Write the changes in the record. A WorkpacketError means that nothing changed, unless its message says
    otherwise."""
    journal, work_tree = workspace.journal, workspace.work_tree
    try:
        journal.prepare()
        journal.write_draft(record)
        stage(work_tree, record)
        # From here on the change happens: a process that dies before this line has changed nothing, and what one leaves
        # that dies after it is finished by the next command.
        journal.turn(record.tx, "draft", "intent")
        roll(work_tree, record, "new", staged=True)
    except ThirdState as meanwhile:
        _undo(workspace, record, meanwhile)
        raise storage.changed_meanwhile(str(meanwhile)) from meanwhile
    except (OSError, WorkpacketError) as error:
        _undo(workspace, record, error)
        raise (storage.nothing_changed(error) if isinstance(error, OSError) else error) from error
    try:
        journal.remove(record.tx, "intent")
    except OSError as error:
        raise storage.unfinished(record.command, record.tx, error) from error


def _undo(workspace: TransactionFolders, record: Record, cause: Exception) -> None:
    """Restore the earlier state. If the disk does not allow that, the journal remains, with the direction in which to
    continue.
    """
    journal, work_tree = workspace.journal, workspace.work_tree
    try:
        here = dict(journal.pending()).get(record.tx)
        # The draft was never written, so nothing was staged.
        if here is None:
            return
        # Recorded first: a process that dies while it undoes must not be finished in the other direction.
        if here == "intent":
            journal.turn(record.tx, "intent", "back")
        if here == "draft" or isinstance(cause, ThirdState):
            clear(work_tree, record)
        else:
            roll(work_tree, record, "old")
        journal.remove(record.tx, "draft" if here == "draft" else "back")
    except (OSError, WorkpacketError, ThirdState) as error:
        raise storage.unfinished(record.command, record.tx, cause) from error


class Unfinished(Value):
    """A transaction that a command left unfinished. `third_state` are the files that someone else has changed since."""

    tx: str
    command: str
    stage: Stage
    paths: tuple[str, ...]
    third_state: tuple[str, ...]


class Recovered(Value):
    """A finished transaction, its direction, and the paths in the git directory where the files in a third state were
    saved."""

    tx: str
    command: str
    way: Wanted
    set_aside: tuple[str, ...]


def unfinished(repository: Repository, *, wait: float = WAIT) -> list[Unfinished]:
    """Return the unfinished transactions, for read-only commands. If a writer is running, wait for it: it is about to
    finish its transaction.
    """
    until = time.monotonic() + wait
    with open_workspace(repository, platform_storage()) as workspace:
        while workspace.journal.pending() and time.monotonic() < until and writer_at_work(repository):
            time.sleep(_PAUSE)
        return [_described(workspace, tx, stage) for tx, stage in workspace.journal.pending() if stage != "draft"]


class Temporary(Value):
    """A temporary file of a command that was interrupted before it changed anything."""

    path: str
    command: str


def temporaries(repository: Repository) -> list[Temporary]:
    """Return the temporary files that interrupted commands left; none while a command is writing."""
    if writer_at_work(repository):
        return []
    found: list[Temporary] = []
    with open_workspace(repository, platform_storage()) as workspace:
        for tx in (tx for tx, stage in workspace.journal.pending() if stage == "draft"):
            with suppress(JournalDamaged):
                record = workspace.journal.read(tx, "draft")
                for index, entry in enumerate(record.entries):
                    path = "/".join((*entry.path.split("/")[:-1], record.temporary(index)))
                    if workspace.work_tree.read(path) is not None:
                        found.append(Temporary(path, record.command))
    return found


def tidy(repository: Repository, *, wait: float = WAIT) -> tuple[Recovered, ...]:
    """Do what every command that writes does first: finish what needs no decision, and remove temporary files."""
    with (
        writer_lock(repository, "recover", wait=wait),
        open_workspace(repository, platform_storage()) as workspace,
    ):
        return finish_pending(workspace)


def recover(repository: Repository, way: Wanted, *, wait: float = WAIT) -> list[Recovered]:
    """Finish everything in the direction chosen by a person, including third states."""
    with (
        writer_lock(repository, "recover", wait=wait),
        open_workspace(repository, platform_storage()) as workspace,
    ):
        decided = [_decide(workspace, tx, stage, way) for tx, stage in workspace.journal.pending() if stage != "draft"]
        finish_pending(workspace)
        return decided


def finish_pending(workspace: TransactionFolders) -> tuple[Recovered, ...]:
    """Finish everything that needs no decision; raise WorkpacketError `third_state` for the rest."""
    with changing_nothing():
        pending = workspace.journal.pending()
        if pending:
            # The process that renamed the journal may have died before the name was durable. If it were lost after
            # files are replaced here, the transaction would look as if it had never been committed.
            workspace.journal.confirm()
        for tx, stage in pending:
            if stage == "draft":
                _drop_draft(workspace, tx)
    return tuple(_finish(workspace, tx, stage) for tx, stage in pending if stage != "draft")


def _drop_draft(workspace: TransactionFolders, tx: str) -> None:
    """Remove a draft. If the draft is incomplete, nothing was staged: a draft is made durable before the first file is
    staged.
    """
    try:
        record = workspace.journal.read(tx, "draft")
    except JournalDamaged:
        pass
    else:
        clear(workspace.work_tree, record)
    workspace.journal.remove(tx, "draft")


def _finish(workspace: TransactionFolders, tx: str, stage: Stage) -> Recovered:
    record = _read(workspace, tx, stage)
    way: Wanted = "new" if stage == "intent" else "old"
    try:
        roll(workspace.work_tree, record, way)
        workspace.journal.remove(tx, stage)
    except ThirdState as found:
        raise _third_state(record, found.strangers) from found
    except OSError as error:
        raise storage.unfinished(record.command, tx, error) from error
    return Recovered(tx, record.command, way, ())


def _decide(workspace: TransactionFolders, tx: str, stage: Stage, way: Wanted) -> Recovered:
    journal = workspace.journal
    record = _read(workspace, tx, stage)
    there: Stage = "intent" if way == "new" else "back"
    try:
        journal.confirm()
        # First: if this fails, nothing has been overwritten.
        aside = _set_aside(workspace, record)
        if stage != there:
            journal.turn(tx, stage, there)
        roll(workspace.work_tree, record, way, overwrite=True)
        journal.remove(tx, there)
    except OSError as error:
        raise storage.unfinished(record.command, tx, error) from error
    return Recovered(tx, record.command, way, aside)


def _set_aside(workspace: TransactionFolders, record: Record) -> tuple[str, ...]:
    """Save the files in a third state, each under a unique name, and return their paths below the git directory."""
    found = [stranger for stranger in strangers(workspace.work_tree, record) if stranger.data is not None]
    if not found:
        return ()
    folder = (*_ASIDE_FOLDER, record.tx)
    tree = workspace.git_dir
    for depth in range(1, len(folder) + 1):
        tree.make_folder(folder[:depth])
    # The recovery itself may have been interrupted: what it saved then is not overwritten.
    first = len(tree.names("/".join(folder)))
    names = [f"{first + number}-{stranger.path.rpartition('/')[2]}" for number, stranger in enumerate(found)]
    for name, stranger in zip(names, found, strict=True):
        write_file(tree, folder, name, stranger.data or b"")
    tree.storage.sync_folder(tree.folder(folder))
    return tuple("/".join((*folder, name)) for name in names)


def _described(workspace: TransactionFolders, tx: str, stage: Stage) -> Unfinished:
    record = _read(workspace, tx, stage)
    paths = tuple(entry.path for entry in record.entries)
    with changing_nothing():
        third = tuple(stranger.path for stranger in strangers(workspace.work_tree, record))
    return Unfinished(tx, record.command, stage, paths, third)


def _read(workspace: TransactionFolders, tx: str, stage: Stage) -> Record:
    try:
        with changing_nothing():
            return workspace.journal.read(tx, stage)
    except JournalDamaged as error:
        raise damaged(tx, stage) from error


def _third_state(record: Record, found: tuple[Stranger, ...]) -> WorkpacketError:
    paths = ", ".join(stranger.path for stranger in found)
    return WorkpacketError(
        "third_state",
        f"{record.command} ({record.tx}) was not finished, and someone else has changed {paths} since then",
        hint="Choose how to finish it: workpacket log recover --forward|--back; your version is saved first",
        path=found[0].path,
    )
