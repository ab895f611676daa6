"""Finish the transactions of commands that died.

No intent: nothing happened, and prepared files are removed. Intent: rolled forward. Being undone: rolled back. A file
in a third state, changed since by an editor or by git, stops everything: nothing is changed, and a person decides with
`recover --forward` or `--back`, which backs up the third version before overwriting it.
"""

from __future__ import annotations

import time
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
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
from workpacket.shell.transactions.locks import WAIT, writer_at_work, writer_lock
from workpacket.shell.transactions.rolling import Stranger, ThirdState, Wanted, clear, roll, strangers
from workpacket.shell.transactions.storage import changing_nothing, platform_storage
from workpacket.value import Value

_ASIDE_FOLDER: Final = ("workpacket", "set-aside")
_PAUSE: Final = 0.01


class Unfinished(Value):
    """A transaction that a command left unfinished. `third_state`: the files that someone else has changed since."""

    tx: str
    command: str
    stage: Stage
    paths: tuple[str, ...]
    third_state: tuple[str, ...]


class Recovered(Value):
    """A finished transaction, the direction, and where in the git directory the third versions were saved."""

    tx: str
    command: str
    way: Wanted
    set_aside: tuple[str, ...]


def unfinished(repository: Repository, *, wait: float = WAIT) -> list[Unfinished]:
    """Return the unfinished transactions, for read-only commands. A running writer is waited for: it is about to
    finish.
    """
    until = time.monotonic() + wait
    with open_workspace(repository, platform_storage()) as workspace:
        while workspace.journal.pending() and time.monotonic() < until and writer_at_work(repository):
            time.sleep(_PAUSE)
        return [_described(workspace, tx, stage) for tx, stage in workspace.journal.pending() if stage != "draft"]


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
    """Finish what needs no decision; WorkpacketError `third_state` for the rest."""
    with changing_nothing():
        pending = workspace.journal.pending()
        if pending:
            workspace.journal.confirm()
        for tx, stage in pending:
            if stage == "draft":
                _drop_draft(workspace, tx)
    return tuple(_finish(workspace, tx, stage) for tx, stage in pending if stage != "draft")


def _drop_draft(workspace: TransactionFolders, tx: str) -> None:
    """Remove a draft. An incomplete draft was never staged: it is made durable before the first file is staged."""
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
        aside = _set_aside(workspace, record)
        if stage != there:
            journal.turn(tx, stage, there)
        roll(workspace.work_tree, record, way, overwrite=True)
        journal.remove(tx, there)
    except OSError as error:
        raise storage.unfinished(record.command, tx, error) from error
    return Recovered(tx, record.command, way, aside)


def _set_aside(workspace: TransactionFolders, record: Record) -> tuple[str, ...]:
    """Save the third versions, each under a unique name; return their places below the git directory."""
    found = [stranger for stranger in strangers(workspace.work_tree, record) if stranger.data is not None]
    if not found:
        return ()
    folder = (*_ASIDE_FOLDER, record.tx)
    tree = workspace.git_dir
    for depth in range(1, len(folder) + 1):
        tree.make_folder(folder[:depth])
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
        f"{record.command} ({record.tx}) was not finished, and since then someone else changed {paths}",
        hint="Choose how to finish it: workpacket recover --forward|--back; your version is set aside first",
        path=found[0].path,
    )
