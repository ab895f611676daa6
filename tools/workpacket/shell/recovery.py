"""Finishing the transactions of commands that died.

No intent: nothing happened, and what was prepared is cleared away. Intent: rolled forward. Taken back: rolled back. A
file in a third state, changed since by an editor or by git, stops everything: nothing is touched, and a person decides
with `recover --forward` or `--back`, which sets the strange version aside before it overwrites it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.shell.journal import JournalDamaged, Record, Stage, damaged, write_file
from workpacket.shell.locks import WAIT, writer_at_work, writer_lock
from workpacket.shell.rolling import Stranger, ThirdState, Wanted, clear, roll, strangers
from workpacket.shell.storage import platform_storage
from workpacket.shell.workspace import Workspace, open_workspace

_ASIDE_FOLDER: Final = ("workpacket", "set-aside")
_PAUSE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A transaction that a command left behind. `third_state`: the files that somebody else has changed since."""

    tx: str
    command: str
    stage: Stage
    paths: tuple[str, ...]
    third_state: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A transaction that was finished, which way, and where in the git directory strange versions were put."""

    tx: str
    command: str
    way: Wanted
    set_aside: tuple[str, ...]


def unfinished(repository: Repository, *, wait: float = WAIT) -> list[Unfinished]:
    """What was left behind, for commands that only read. A writer at work is waited for: it is about to finish."""
    until = time.monotonic() + wait
    with open_workspace(repository, platform_storage()) as workspace:
        while workspace.journal.pending() and time.monotonic() < until and writer_at_work(repository):
            time.sleep(_PAUSE)
        return [_described(workspace, tx, stage) for tx, stage in workspace.journal.pending() if stage != "draft"]


def recover(repository: Repository, way: Wanted, *, wait: float = WAIT) -> list[Recovered]:
    """Finish everything the way that a person has decided, third states included."""
    with (
        writer_lock(repository, "recover", wait=wait),
        open_workspace(repository, platform_storage()) as workspace,
    ):
        decided = [_decide(workspace, tx, stage, way) for tx, stage in workspace.journal.pending() if stage != "draft"]
        finish_pending(workspace)
        return decided


def finish_pending(workspace: Workspace) -> tuple[Recovered, ...]:
    """Finish, without asking, what can be finished without asking; WorkpacketError `third_state` for the rest."""
    journal = workspace.journal
    pending = journal.pending()
    if pending:
        journal.confirm()
    done = []
    for tx, stage in pending:
        if stage == "draft":
            _drop_draft(workspace, tx)
            continue
        record = _read(workspace, tx, stage)
        way: Wanted = "new" if stage == "intent" else "old"
        try:
            roll(workspace.work_tree, record, way)
        except ThirdState as found:
            raise _third_state(record, found.strangers) from found
        journal.remove(tx, stage)
        done.append(Recovered(tx, record.command, way, ()))
    return tuple(done)


def _drop_draft(workspace: Workspace, tx: str) -> None:
    """A draft that is not whole was never staged: it is made durable before the first file is staged."""
    try:
        record = workspace.journal.read(tx, "draft")
    except JournalDamaged:
        pass
    else:
        clear(workspace.work_tree, record)
    workspace.journal.remove(tx, "draft")


def _decide(workspace: Workspace, tx: str, stage: Stage, way: Wanted) -> Recovered:
    journal = workspace.journal
    journal.confirm()
    record = _read(workspace, tx, stage)
    aside = tuple(
        _set_aside(workspace, record, number, stranger)
        for number, stranger in enumerate(strangers(workspace.work_tree, record))
        if stranger.data is not None
    )
    if way == "old" and stage == "intent":
        journal.turn(tx, "intent", "back")
    elif way == "new" and stage == "back":
        journal.turn(tx, "back", "intent")
    roll(workspace.work_tree, record, way, overwrite=True)
    journal.remove(tx, "back" if way == "old" else "intent")
    return Recovered(tx, record.command, way, aside)


def _set_aside(workspace: Workspace, record: Record, number: int, stranger: Stranger) -> str:
    """Keep the strange version under a name that nothing else uses; repeated calls keep each version."""
    folder = (*_ASIDE_FOLDER, record.tx)
    for depth in range(1, len(folder) + 1):
        workspace.git_dir.make_folder(folder[:depth])
    taken = workspace.git_dir.names("/".join(folder))
    base = f"{number}-{stranger.path.rpartition('/')[2]}"
    name = next(name for serial in range(len(taken) + 1) if (name := f"{serial}-{base}") not in taken)
    write_file(workspace.git_dir, folder, name, stranger.data or b"")
    workspace.git_dir.storage.sync_folder(workspace.git_dir.folder(folder))
    return "/".join((*folder, name))


def _described(workspace: Workspace, tx: str, stage: Stage) -> Unfinished:
    record = _read(workspace, tx, stage)
    paths = tuple(entry.path for entry in record.entries)
    third = tuple(stranger.path for stranger in strangers(workspace.work_tree, record))
    return Unfinished(tx, record.command, stage, paths, third)


def _read(workspace: Workspace, tx: str, stage: Stage) -> Record:
    try:
        return workspace.journal.read(tx, stage)
    except JournalDamaged as error:
        raise damaged(tx, stage) from error


def _third_state(record: Record, found: tuple[Stranger, ...]) -> WorkpacketError:
    paths = ", ".join(stranger.path for stranger in found)
    return WorkpacketError(
        "third_state",
        f"{record.command} ({record.tx}) was not finished, and since then somebody else changed {paths}",
        hint="Say which way to finish it: workpacket recover --forward|--back; your version is set aside first",
        path=found[0].path,
    )
