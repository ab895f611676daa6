"""Change several files as one: all of a plan, or none of it, even if the process is killed or the power fails.

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

After a failure before step 3, the staged files are removed. After a later failure, the change is undone through the
journal; if even that fails, the next command finishes the work. `recovery` does the same for a process that died.

The lock is a file in the git directory that all work trees of a clone share, and covers only that clone. The operating
system holds the lock, so it cannot outlive its process; the text of the file only tells others who holds it. The file
is never deleted, because then two processes could hold the lock. (`fcntl` costs 0.15 ms to import, the `filelock`
package 26 ms.)
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from workpacket.git.repository import Repository, find_repository, operation_in_progress
from workpacket.model.layout import POLICY_PATH, TEMPORARY_PREFIX
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest
from workpacket.problem import WorkpacketError
from workpacket.shell.actor import moment
from workpacket.shell.held import Held, look, require_shown
from workpacket.shell.transactions.journal import Entry, Record, TransactionFolders, open_workspace
from workpacket.shell.transactions.storage import (
    Tree,
    changed_meanwhile,
    changing_nothing,
    platform_storage,
    split_path,
)
from workpacket.text.source import Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.shell.transactions.recovery import Recovered


WAIT: Final = 30.0

# The system has no lock with a time limit, so it is asked again, at growing intervals.
_FIRST_PAUSE: Final = 0.002
_LONGEST_PAUSE: Final = 0.05
# What systems report for a lock that someone else holds: EAGAIN on Linux and macOS, the others on Windows.
_HELD: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
# The byte that Windows locks: far behind the text, because nothing can read the locked part.
_FAR: Final = 2**30


@contextmanager
def writer_lock(repository: Repository, command: str, *, wait: float = WAIT) -> Iterator[None]:
    """Become the only writer. If the lock is not free within `wait` seconds, raise WorkpacketError `lock_held`, which
    gives the lock's holder.
    """
    path = _lock_path(repository)
    with _opened(path) as file:
        _acquire(file, path, wait)
        _say(file, _who(command))
        try:
            yield
        finally:
            # While the lock is still held, so that the name of the next holder is not erased.
            _say(file, b"")
            with suppress(OSError):  # closing the file releases it too, as does the end of the process
                _release(file)


def writer_at_work(repository: Repository) -> bool:
    """Whether the lock is held now."""
    path = _lock_path(repository)
    if not path.exists():
        return False
    with _opened(path) as file:
        return not _try(file, path)


def _lock_path(repository: Repository) -> Path:
    return repository.common_dir / "workpacket" / "lock"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        path.parent.mkdir(exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise WorkpacketError(
            "lock_unavailable",
            f"the lock {path} cannot be opened: {error.strerror}",
            hint="Commands that change governed files need write permission for the git directory",
            path=str(path),
        ) from error
    try:
        yield file
    finally:
        # Closing releases the lock even if it fails, and must not hide the error of the command.
        with suppress(OSError):
            os.close(file)


def _acquire(file: int, path: Path, wait: float) -> None:
    until = time.monotonic() + wait
    pause = _FIRST_PAUSE
    while not _try(file, path):
        if time.monotonic() >= until:
            raise WorkpacketError(
                "lock_held",
                f"another command is writing: {_holder(file)}",
                hint="Wait for it to finish, or stop it; its lock is released when the process exits",
                path=str(path),
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _who(command: str) -> bytes:
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    who = {"pid": os.getpid(), "host": _host(), "command": command, "since": since}
    return json.dumps(who).encode()


def _say(file: int, text: bytes) -> None:
    """Record who holds the lock. On a full disk, the lock is held without a record."""
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, text)


def _holder(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    try:
        who = json.loads(os.read(file, 4096))
        return f"{who['command']} (process {who['pid']} on {who['host']}, since {who['since']})"
    except (ValueError, KeyError, TypeError):
        return "an unknown process"


if sys.platform == "win32":
    import msvcrt

    def _try(file: int, path: Path) -> bool:
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            return _refused(error, path)
        return True

    def _host() -> str:
        return os.environ.get("COMPUTERNAME", "this computer")

    def _release(file: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(file: int, path: Path) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return _refused(error, path)
        return True

    def _host() -> str:
        return os.uname().nodename

    def _release(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def _refused(error: OSError, path: Path) -> bool:
    if error.errno in _HELD:
        return False
    raise WorkpacketError(
        "unsuitable_file_system",
        f"the file system of {path} cannot lock files: {error.strerror}",
        hint="Clone the repository to a local disk",
        path=str(path),
    ) from error


class Transaction(Value):
    """The right to change governed files. `finished` lists transactions of earlier commands that were completed on
    entry.
    """

    workspace: TransactionFolders
    held: Held
    finished: tuple[Recovered, ...] = ()

    def apply(self, plan: Plan) -> tuple[str, ...]:
        """Carry out the plan and return the changed paths. A WorkpacketError means that nothing changed, unless its
        message says otherwise.
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
    """Become the only writer in this clone, with nothing left unfinished. `during_merge`: only projections may be
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
    # What is checked out is an old commit, and an event written upon it would contradict those that came later.
    if repository.git_path("BISECT_LOG").exists():
        raise WorkpacketError("operation_in_progress", "a bisect is in progress", hint="End it first: git bisect reset")


def _draft(tree: Tree, plan: Plan) -> Record:
    """Return the changes that the plan makes to the current files; raise WorkpacketError `changed_meanwhile` if a file
    is not as expected.
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
