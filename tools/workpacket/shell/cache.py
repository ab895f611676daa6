"""Cached results, kept until anything that they depend on changes.

One rule applies throughout. A result is stored under a key that covers everything it was made from, and an output also
with the state of each file and folder that it depends on, and the moment until which it is correct. It is *not stored
if it depends on the clock in another way, or on anything that neither the key nor those files name* (`RestsOn`). Each
version of the tool has its own cache.

    kind       key                                          value
    file       path                                         digest of its bytes, and its state when they were read
    examined   digest of the bytes, lanes, path             findings and summary
    output     folder, command, terminal, deciding commits  the output, and the state of its dependencies
    folder     packet                                       the names in the folder of its log, and their state
    glance     packet                                       what lists say about it, the state and digest of its log
    sound      digest of a verdict's dependencies           nothing
    proven     packet                                       the policy and heads that signatures were verified for
    claim      digest of an envelope                        what the envelope claims to be about
    landed     commit of the target branch, verdict         whether the work was merged as it was judged
    words      folder, a number                             the words of some packets, and the state of their files

The cache is in the git common directory, so all work trees share it and `git clean` leaves it alone; it may be deleted
at any time. `--cache-dir` and WORKPACKET_CACHE_DIR name another folder, which CI may restore. The state of the files in
a linked work tree (`file`, `folder`, `glance`) is stored under a key with the name of that work tree; where a state is
unknown, the files are read, and what depends only on their content is found again.

Anyone with write access to the cache can forge its contents, so `check --base`, `check --no-cache` and
`approvals verify` do not open it, and no gate uses it: the claims of envelopes and the decisions about merged work are
in the user's home directory. A cache that is damaged, cannot be opened or remains locked counts as empty.
"""

from __future__ import annotations

import os
import time
from array import array

from workpacket.model.layout import LOG_FOLDER
from workpacket.shell.tree import Found, look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any, Literal

    # A folder: its name, its state, the time of its last change, and the names below it.
    _Look = tuple[str, str, int, str]
    Kind = Literal["file", "examined", "output", "folder", "glance", "sound", "proven", "claim", "landed", "words"]

# The coarsest clock of a file system in use (FAT: two seconds). A file younger than this when read may be written again
# without a change of its times: git's rule for racily clean entries.
RACY_NS = 2_100_000_000

# Seconds to wait for another process that writes; after that, computing a result again is better.
PATIENCE = 2.0

# The work trees whose files the cache knows at the same time.
TREES = 8

# From this number on, reading all rows of a kind is faster than single look-ups.
MANY = 200

_PLACE = ("workpacket", "cache")
# Kinds whose values contain the state of files in one work tree. In a key, this separates its name from the rest.
_OF_A_TREE = frozenset({"file", "folder", "glance"})
_OF = "\x01"
_TABLE = """
CREATE TABLE IF NOT EXISTS kept(
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID;
"""
_FORGET = """
DELETE FROM kept WHERE kind = ? AND substr(key, 1, 64) NOT IN (SELECT substr(value, 1, 64) FROM kept WHERE kind = ?)
"""


class RestsOn:
    """What a result depends on besides its key.

    `files` are paths; a path that ends with '/' is a folder with everything below it. `clock`: time alone can change
    the result, at an unknown moment. `until`: time alone can change it, but not before this moment, such as the expiry
    of a waiver; '' if it cannot. `unnamed`: the result depends on something else that can change, or a cached result
    would skip an effect.
    """

    __slots__ = ("clock", "files", "unnamed", "until")

    def __init__(
        self, files: Iterable[str] = (), *, clock: bool = False, unnamed: bool = False, until: str = ""
    ) -> None:
        self.files = tuple(files)
        self.clock = clock
        self.unnamed = unnamed
        self.until = until

    def __or__(self, other: RestsOn) -> RestsOn:
        files = (*self.files, *other.files)
        until = min(filter(None, (self.until, other.until)), default="")
        return RestsOn(files, clock=self.clock or other.clock, unnamed=self.unnamed or other.unnamed, until=until)

    @property
    def can_be_kept(self) -> bool:
        return not (self.clock or self.unnamed)


class Cache:
    """One open cache. Without a folder, nothing is stored. `tree` is the name of a linked work tree."""

    def __init__(self, folder: str | None, fingerprint: str, place: Sequence[str] = _PLACE, *, tree: str = "") -> None:
        self._connection = _open(os.path.join(folder, *place), fingerprint) if folder is not None else None
        self._tree = f"{tree}{_OF}" if tree else ""
        self._logs: LogState | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def is_empty(self, kind: Kind) -> bool:
        return not self._all("SELECT 1 FROM kept WHERE kind = ? LIMIT 1", (kind,))

    def logs(self, root: str) -> LogState:
        """Return the state of the log when it was first requested: a command looks at it once, before it reads
        anything."""
        if not self.is_open:
            return LogState(root, self)
        if self._logs is None or self._logs.root != root:
            self._logs = LogState(root, self)
        return self._logs

    def recall(self, kind: Kind, keys: Collection[str]) -> dict[str, str]:
        """Return the values of the known keys."""
        start = self._tree if kind in _OF_A_TREE else ""
        if len(keys) > MANY:
            wanted = frozenset(keys)
            query = "SELECT substr(key, ?), value FROM kept WHERE kind = ? AND substr(key, 1, ?) = ?"
            rows = self._all(query, (len(start) + 1, kind, len(start), start))
            return {key: value for key, value in rows if key in wanted}
        query = "SELECT value FROM kept WHERE kind = ? AND key = ?"
        return {key: value for key in keys for (value,) in self._all(query, (kind, start + key))}

    def of_all_trees(self, kind: Kind) -> Iterator[tuple[str, str]]:
        """Yield each row of a kind, whatever work tree it belongs to."""
        for key, value in self._all("SELECT key, value FROM kept WHERE kind = ?", (kind,)):
            yield key.rpartition(_OF)[2], value

    def recall_below(self, kind: Kind, start: str) -> dict[str, str]:
        """Return all keys with this prefix, with their values, as they were at one moment."""
        query = "SELECT key, value FROM kept WHERE kind = ? AND key >= ? AND key < ?"
        return dict(self._all(query, (kind, start, f"{start}\x7f")))

    def keep(self, kind: Kind, rows: Iterable[tuple[str, str]]) -> None:
        """Store rows of (key, value)."""
        start = self._tree if kind in _OF_A_TREE else ""
        self._write("INSERT OR REPLACE INTO kept VALUES(?, ?, ?)", [(kind, start + key, value) for key, value in rows])

    def make_room(self, kind: Kind, most: int) -> None:
        """Delete all entries of this kind once there are more than `most`: entries are recomputed when needed."""
        if self._count(kind) > most:
            self._write("DELETE FROM kept WHERE kind = ?", [(kind,)])

    def forget_unused(self, most: int) -> None:
        """Delete results for bytes that are no longer in any file, once there are more than `most`."""
        if self._count("examined") > most:
            self._write(_FORGET, [("examined", "file")])
            self._write("DELETE FROM kept WHERE kind = ?", [("output",)])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _count(self, kind: Kind) -> int:
        rows = self._all("SELECT count(*) FROM kept WHERE kind = ?", (kind,))
        return int(rows[0][0]) if rows else 0

    def _all(self, query: str, values: tuple[str | int, ...]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(query, values).fetchall()
        except _unfit():
            self.close()
            return []

    def _write(self, statement: str, rows: list[tuple[str, ...]]) -> None:
        if self._connection is None or not rows:
            return
        try:
            with self._connection:
                self._connection.executemany(statement, rows)
        except _unfit():
            self.close()


# For results that must be computed from the files alone.
NO_CACHE = Cache(None, "")


class CachedOutput:
    """The cached output of one command on these files.

    `deciding` returns its other dependencies, such as commits; None if they are unknown. It is called before and after
    the output is computed, because a commit can be made in between. `now` returns the time.
    """

    def __init__(
        self,
        cache: Cache,
        root: str,
        files: Sequence[Found],
        request: tuple[object, ...],
        deciding: Callable[[], tuple[str, ...] | None] = tuple,
        now: Callable[[], str] = str,
    ) -> None:
        self._cache, self._root, self._files, self._deciding, self._now = cache, root, files, deciding, now
        # Before anything is read: what changes from here on may or may not be in the output.
        self._started = time.time_ns()
        self._decides = deciding()
        # This form can store even names that are not UTF-8.
        self._key = repr((root, *request, self._decides))

    def recall(self) -> tuple[int, str] | None:
        """Return the exit status and the text, if no dependency has changed."""
        if self._decides is None:
            return None
        for value in self._cache.recall("output", (self._key,)).values():
            status, text, state, since, until, names, *folders = _unpacked(value)
            # The clock may also have been set back, to when a waiver had not begun to matter.
            if until and not since <= self._now() < until:
                continue
            extras = names.split("\n") if names else []
            same = state == _state([*self._files, *_single(self._root, extras)])
            described = zip(_folders(extras), folders, strict=False)
            if same and all(self._is_unchanged(folder, then) for folder, then in described):
                return int(status), text
        return None

    def _is_unchanged(self, folder: str, then: str) -> bool:
        return self._describe(folder).text == then if folder == LOG_FOLDER else unchanged(self._root, folder, then)

    def _describe(self, folder: str) -> Described:
        if folder != LOG_FOLDER:
            return describe(self._root, folder)
        logs = self._cache.logs(self._root)
        return Described(logs.stamp, logs.newest)

    def keep(self, status: int, text: str, rests_on: RestsOn) -> None:
        """Store the output if the rule allows it, and if no file can have changed undetected since it was read."""
        if not rests_on.can_be_kept or self._decides is None or self._deciding() != self._decides:
            return
        extras = sorted(set(rests_on.files))
        seen = [*self._files, *_single(self._root, extras)]
        folders = [self._describe(folder) for folder in _folders(extras)]
        newest = max([*(found.mtime_ns for found in seen), *(folder.newest for folder in folders)], default=0)
        if newest + RACY_NS < self._started:
            described = (folder.text for folder in folders)
            moments = (self._now() if rests_on.until else "", rests_on.until)
            parts = (str(status), text, _state(seen), *moments, "\n".join(extras), *described)
            self._cache.keep("output", [(self._key, _packed(parts))])


def _state(seen: Iterable[Found]) -> str:
    """Return a string that changes when any of the files changes."""
    return _storable("\n".join(f"{found.path}\t{found.state}\t{found.problem}" for found in seen))


def _single(root: str, extras: Iterable[str]) -> list[Found]:
    return [look_at(root, path) for path in extras if not path.endswith("/")]


def _folders(extras: Iterable[str]) -> list[str]:
    return [path.rstrip("/") for path in extras if path.endswith("/")]


def _packed(parts: Sequence[str]) -> str:
    """Join several strings. Their lengths come first, because no character is safe as a separator."""
    return " ".join(str(len(part)) for part in parts) + "\n" + "".join(parts)


def _unpacked(text: str) -> list[str]:
    lengths, _, rest = text.partition("\n")
    parts, start = [], 0
    for length in map(int, lengths.split(" ")):
        parts.append(rest[start : start + length])
        start += length
    return parts


def _storable(text: str) -> str:
    """Escape names that are not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


# Separates the records of a folder, because no name may contain it. A record is a state, a blank and a path below the
# folder.
_BETWEEN = "\0"
_HAS_POSIX_TIMES = os.name == "posix" and os.stat in os.supports_dir_fd


class Described:
    """A described folder. `text` is what `unchanged` compares; `newest` is the time of the last change, in
    nanoseconds.
    """

    __slots__ = ("newest", "text")

    def __init__(self, text: str, newest: int) -> None:
        self.text = text
        self.newest = newest


def describe(root: str, folder: str) -> Described:
    """Describe the folder and everything below it, without following links; '' if it is missing or not a folder."""
    top = os.path.join(root, folder)
    records: list[str] = []
    newest = 0
    waiting = ["."]
    while waiting:
        current = waiting.pop()
        try:
            # A folder's own state comes first, so that a change during the listing is noticed.
            status = os.lstat(os.path.join(top, current)) if current != "." else os.stat(top)
            records.append(f"{_stamp(status)} {current}")
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
            with os.scandir(os.path.join(top, current)) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            path = entry.name if current == "." else f"{current}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            records.append(f"{_stamp(status)} {path}")
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
    text = _BETWEEN.join(records)
    return Described(_storable(text), newest)


def unchanged(root: str, folder: str, text: str) -> bool:
    """Whether the folder is as it was when `describe` returned this text, without listing it again.

    Listing ten thousand folders takes four times as long as checking the state of each known file. Additions, removals
    and renames change the times of the folder, and edits change those of the file: POSIX guarantees that `st_ctime`
    changes with every change and cannot be set back. On other systems, the folder is listed again.
    """
    if not _HAS_POSIX_TIMES:
        return describe(root, folder).text == text
    try:
        top = os.open(os.path.join(root, folder), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # A folder that is missing now was unchanged if it was missing then, too.
        return text == ""
    try:
        lstat = os.lstat
        for record in text.split(_BETWEEN):
            state, _, path = record.partition(" ")
            if _stamp(lstat(path, dir_fd=top)) != state:
                return False
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}.{status.st_ino}"


_LONG = 100_000


class LogState:
    """The state of the log, as of `started`: the state of each folder in it, and `stamp` and `newest` for all of them.
    A state changes when anything in the folder changes; it is '' if the folder cannot be examined. `newest` is the time
    of the last change, in nanoseconds.

    The names in a folder are cached. They are valid as long as the times of the folder are unchanged, so each known
    file needs one `lstat`, and no folder is listed. A file that was edited in place has different times, too (see
    `unchanged`).
    """

    def __init__(self, root: str, cache: Cache) -> None:
        self.root = root
        self.started = time.time_ns()
        top = os.path.join(root, LOG_FOLDER)
        try:
            listed = sorted(map(_storable, os.listdir(top)))
        except OSError:
            listed = []
        known = cache.recall("folder", listed) if _HAS_POSIX_TIMES else {}
        changed, self.newest = _looked_at(top, listed, known)
        # If even these seem to have just changed, the clock was set back.
        at_rest = self.newest + RACY_NS < self.started
        self.folders = {name: known[name].partition("\n")[0] if name in known else "" for name in listed}
        self._restless = set() if at_rest else set(known)
        learned: list[tuple[str, str]] = []
        for name, stamp, newest, below in changed:
            self.folders[name] = stamp
            self.newest = max(self.newest, newest)
            self._restless.discard(name)
            if stamp and newest + RACY_NS < self.started:
                learned.append((name, f"{stamp}\n{below}"))
            else:
                self._restless.add(name)
        cache.keep("folder", learned)
        cache.make_room("folder", TREES * len(listed) + 10_000)
        self.stamp = _shortened("\n".join([f"{stamp} {name}" for name, stamp in self.folders.items()]))

    def is_at_rest(self, name: str) -> bool:
        """Whether the state of this folder will identify its content from now on (see RACY_NS)."""
        return name in self.folders and name not in self._restless


# From this number of folders on, a second process is worth its start.
_WORTH_A_FORK = 2000


def _looked_at(top: str, names: Sequence[str], known: Mapping[str, str]) -> tuple[list[_Look], int]:
    """Examine all folders; if possible, half of them in a copy of this process."""
    if len(names) < _WORTH_A_FORK or not hasattr(os, "fork") or (os.cpu_count() or 1) < 2:
        return _look(top, names, known)
    import json
    import threading

    if threading.active_count() > 1:  # a copy of a process has only one thread, and may lack what the others held
        return _look(top, names, known)
    first, second = names[: len(names) // 2], names[len(names) // 2 :]
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            with open(send, "wb") as stream:
                stream.write(json.dumps(_look(top, second, known)).encode())
        finally:
            os._exit(0)
    os.close(send)
    with open(receive, "rb") as stream:
        found, newest = _look(top, first, known)
        said = stream.read()
    os.waitpid(child, 0)
    try:
        rest, newest_there = json.loads(said)
    except ValueError:  # the copy could not finish
        rest, newest_there = _look(top, second, known)
    return [*found, *map(tuple, rest)], max(newest, newest_there)


def _look(top: str, folders: Sequence[str], known: Mapping[str, str]) -> tuple[list[_Look], int]:
    """Return the folders whose state is not the known one, and the time of the last change in the others."""
    found: list[_Look] = []
    latest = 0
    for name in folders:
        folder = f"{top}/{name}"
        if name in known:
            stamp, _, below = known[name].partition("\n")
            state = _state_below(folder, below.split(_BETWEEN) if below else ())
            if state is not None and state[0] == stamp:
                latest = max(latest, state[1])
                continue
        names = _names_below(folder)
        stamp, newest = _state_below(folder, names) or ("", 0)
        found.append((name, stamp, newest, _storable(_BETWEEN.join(names))))
    return found, latest


def _state_below(folder: str, names: Sequence[str]) -> tuple[str, int] | None:
    """Return the state of a folder and of these paths below it, and the time of the last change; None if one of them is
    missing."""
    try:
        found = [os.lstat(folder), *[os.lstat(f"{folder}/{name}") for name in names]]
    except OSError:
        return None
    # POSIX guarantees that this time changes with every change of the file, and cannot be set back.
    times = array("q", [status.st_ctime_ns for status in found])
    newest = max(times)
    if not _HAS_POSIX_TIMES:
        newest = max(newest, *(status.st_mtime_ns for status in found))
        times.extend(status.st_mtime_ns ^ status.st_size for status in found)
    return times.tobytes().hex(), newest


def _names_below(folder: str) -> list[str]:
    """Return the paths of everything below a folder, without following links."""
    found: list[str] = []
    waiting = [] if os.path.islink(folder) else [""]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(f"{folder}/{current}") as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            found.append(f"{current}{entry.name}")
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{current}{entry.name}/")
    return found


def _shortened(text: str) -> str:
    """Return the string, or its digest if it is long."""
    if len(text) < _LONG:
        return text
    from hashlib import sha256  # 2 ms, which only many packets are worth

    return sha256(text.encode()).hexdigest()


def _unfit() -> tuple[type[Exception], ...]:
    """Return the exceptions that storing and reading may raise. A path that is not UTF-8 becomes a string with
    surrogates, which cannot be stored.
    """
    return _driver().Error, UnicodeEncodeError


def _driver() -> ModuleType:
    """Return the SQLite module: importing it takes 3 ms, and a check without a cache does not need it. `sqlite3` takes
    2 ms more, for the conversion of dates.
    """
    try:
        import _sqlite3
    except ImportError:  # an interpreter that builds it otherwise
        import sqlite3

        return sqlite3
    return _sqlite3


def _open(folder: str, fingerprint: str) -> sqlite3.Connection | None:
    driver = _driver()
    path = os.path.join(folder, f"{fingerprint}.sqlite")
    for attempt in ("first", "after removing a damaged file"):
        try:
            return _connect(path)
        except driver.DatabaseError as error:
            if isinstance(error, driver.OperationalError) or attempt != "first":
                return None
            _remove(path)
        except OSError:
            return None
    return None


def _connect(path: str) -> sqlite3.Connection:
    new = not os.path.exists(path)
    if new:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _remove_other_versions(path)
    connection: sqlite3.Connection = _driver().connect(path, timeout=PATIENCE)
    if new:
        # Write-ahead logging with synchronous=NORMAL cannot leave a damaged file, at worst an outdated one.
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(_TABLE)
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
