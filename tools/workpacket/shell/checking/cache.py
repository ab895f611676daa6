"""The facts cache: what was found out about bytes that were read before.

It lives in the git common directory, so all work trees share it and `git clean` leaves it alone. It may be deleted at
any time. Everything in it is keyed by what it was made from: results by the digest of the file's bytes and its path,
shown output by the state of every file that went into it; another version of the tool uses another file. A cache that
cannot be opened, is locked for long or is damaged counts as empty.

The stat shortcut (same size, times and inode: same bytes) follows git's rule for racily clean entries: it is trusted
only if the file had been at rest for a while when it was read.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from typing import Any

# Coarsest clock of a file system in use (FAT: two seconds). A file younger than this when it was read may be written to
# again without a change of its times.
RACY_NS = 2_100_000_000

# From here on, reading a whole table is quicker than asking for row after row.
MANY = 200

# No description of a folder holds two of these in a row.
_BETWEEN_FOLDERS = "\0\0"
_TABLES = """
CREATE TABLE IF NOT EXISTS files(path TEXT PRIMARY KEY, state TEXT NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results(
    digest TEXT NOT NULL, path TEXT NOT NULL, findings TEXT NOT NULL, summary TEXT NOT NULL,
    PRIMARY KEY(digest, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shown(
    request TEXT PRIMARY KEY, state TEXT NOT NULL, extras TEXT NOT NULL, folders TEXT NOT NULL,
    status INTEGER NOT NULL, output TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sound(key TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class Shown:
    """The output of an earlier call, and the files other than documents on which it rested.

    `folders` are the descriptions of those of the `extras` that are folders, in their order.
    """

    __slots__ = ("extras", "folders", "output", "state", "status")

    def __init__(self, state: str, extras: list[str], folders: list[str], status: int, output: str) -> None:
        self.state = state
        self.extras = extras
        self.folders = folders
        self.status = status
        self.output = output


class Result:
    """What was found in one file: findings and summary, each as JSON text.

    It is kept by the digest of the bytes; where a policy adds lanes, with the key of their table behind the digest.
    """

    __slots__ = ("findings", "summary")

    def __init__(self, findings: str, summary: str) -> None:
        self.findings = findings
        self.summary = summary


class Cache:
    """One open cache. With no folder to live in, it forgets everything."""

    def __init__(self, folder: str | None, fingerprint: str) -> None:
        self._connection = _open(folder, fingerprint) if folder is not None else None

    def shown(self, request: str) -> Shown | None:
        row = self._one("SELECT state, extras, folders, status, output FROM shown WHERE request = ?", (request,))
        if row is None:
            return None
        return Shown(row[0], row[1].split("\n") if row[1] else [], row[2].split(_BETWEEN_FOLDERS), row[3], row[4])

    def show(self, request: str, shown: Shown) -> None:
        extras = "\n".join(shown.extras)
        folders = _BETWEEN_FOLDERS.join(shown.folders)
        self._write(
            "INSERT OR REPLACE INTO shown VALUES(?, ?, ?, ?, ?, ?)",
            [(request, shown.state, extras, folders, shown.status, shown.output)],
        )

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def is_empty(self) -> bool:
        return self._one("SELECT 1 FROM results LIMIT 1", ()) is None

    def known_digests(self, paths: list[str]) -> dict[str, tuple[str, str]]:
        """State and digest by path, as they were when each file was last read at rest."""
        if len(paths) > MANY:
            rows = self._all("SELECT path, state, digest FROM files")
        else:
            query = "SELECT path, state, digest FROM files WHERE path = ?"
            rows = [row for path in paths for row in self._all(query, (path,))]
        return {path: (state, digest) for path, state, digest in rows}

    def remember_files(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """Rows of (path, state, digest)."""
        self._write("INSERT OR REPLACE INTO files VALUES(?, ?, ?)", list(rows))

    def results(self, keys: list[tuple[str, str]]) -> dict[tuple[str, str], Result]:
        """Results by (digest, path), for those that are known."""
        query = "SELECT digest, path, findings, summary FROM results"
        if len(keys) > MANY:
            wanted = set(keys)
            rows = [row for row in self._all(query) if (row[0], row[1]) in wanted]
        else:
            rows = [row for key in keys for row in self._all(f"{query} WHERE digest = ? AND path = ?", key)]
        return {(digest, path): Result(findings, summary) for digest, path, findings, summary in rows}

    def remember_results(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        """Rows of (digest, path, findings, summary)."""
        self._write("INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?)", list(rows))

    def sound(self) -> Iterator[str]:
        """The keys of the approvals that were found sound (`shell/approvals/event_approvals.py`)."""
        return (key for (key,) in self._all("SELECT key FROM sound"))

    def remember_sound(self, keys: Iterable[str], *, in_use: int) -> None:
        """These too. Once the table has far more than are `in_use`, what came before is forgotten."""
        if (self._one("SELECT count(*) FROM sound", ()) or (0,))[0] > 2 * in_use + MANY:
            self._write("DELETE FROM sound", [()])
        self._write("INSERT OR IGNORE INTO sound VALUES(?)", [(key,) for key in keys])

    def forget_unused(self, most: int) -> None:
        """Drops results of bytes that no file holds any more, once there are more than `most`."""
        count = self._one("SELECT count(*) FROM results", ())
        if count and count[0] > most:
            self._write("DELETE FROM results WHERE substr(digest, 1, 64) NOT IN (SELECT digest FROM files)", [()])
            self._write("DELETE FROM shown", [()])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _one(self, query: str, values: tuple[str, ...]) -> tuple[Any, ...] | None:
        rows = self._all(query, values)
        return rows[0] if rows else None

    def _all(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(query, values).fetchall()
        except _unfit():
            self.close()
            return []

    def _write(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        if self._connection is None or not rows:
            return
        try:
            with self._connection:
                self._connection.executemany(statement, rows)
        except _unfit():
            self.close()


def _unfit() -> tuple[type[Exception], ...]:
    """What storing and reading may raise: text with surrogates, from a path that is not UTF-8, cannot be stored."""
    import sqlite3

    return sqlite3.Error, UnicodeEncodeError


def _open(folder: str, fingerprint: str) -> sqlite3.Connection | None:
    import sqlite3  # 5 ms; a check without a cache needs none

    path = os.path.join(folder, "workpacket", "cache", f"{fingerprint}.sqlite")
    for attempt in ("first", "after removing a damaged file"):
        try:
            return _connect(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or attempt != "first":
                return None
            _remove(path)
        except OSError:
            return None
    return None


def _connect(path: str) -> sqlite3.Connection:
    import sqlite3

    new = not os.path.exists(path)
    if new:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _remove_other_versions(path)
    connection = sqlite3.connect(path, timeout=2.0)
    if new:
        # Write-ahead logging with synchronous=NORMAL cannot leave a damaged file behind, at worst an older one.
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(_TABLES)
    return connection


def _remove(path: str) -> None:
    for name in (path, f"{path}-wal", f"{path}-shm"):
        try:
            os.unlink(name)
        except OSError:
            continue


def _remove_other_versions(path: str) -> None:
    folder = os.path.dirname(path)
    for name in os.listdir(folder):
        if name.endswith(".sqlite") and name != os.path.basename(path):
            _remove(os.path.join(folder, name))
