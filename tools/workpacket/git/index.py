"""The content of the index and HEAD below a folder, whether or not the files are in the work tree; and the bytes that
git would store for a file that is in the work tree.

The common form of the index, version 2 in one file, is read here: starting git for it would take longer than the rest
of a small command. An entry ends with two bytes of flags and its path. The flags contain the length of the path, which
distinguishes the start of an entry from the same bytes inside another one. Other versions, which compress paths or have
additional flags such as skip-worktree, are left to `git ls-files -v`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal

from workpacket.git.discovery import ASSUME_UNCHANGED, PLAIN, may_be_flagged
from workpacket.git.objects import TreeEntry, blob_id, read_objects
from workpacket.git.repository import Repository, commit_at, find_repository
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError

Told = Literal["", "skip-worktree", "assume-unchanged"]

_STAGE, _LENGTH_HIGH = 0x30, 0x0F
_LONGEST: Final = 0xFFF
# The output of `ls-files -v` for an entry that is neither normal nor in conflict.
_TOLD: Final = lazy_pattern(rb"\0[^HM] ")


class Index:
    """The paths in the index below a folder, each with its flags. Conflicted paths are not listed, because it has not
    been decided yet whether they should exist.
    """

    def __init__(self, data: bytes, *, plain: bool) -> None:
        self._data = data
        self._plain = plain
        self._flagged: dict[bytes, bool] = {}

    def below(self, start: str) -> Iterator[tuple[str, Told]]:
        """Yield the paths that begin with `start`."""
        data, wanted = self._data, start.encode("utf-8", "surrogateescape")
        position = data.find(wanted)
        while position >= 0:
            end = data.find(b"\0", position)
            told = self._told(position, end)
            if told is not None:
                yield data[position:end].decode("utf-8", "surrogateescape"), told
            position = data.find(wanted, end if end >= 0 else len(data))

    def told(self, start: str) -> Iterator[tuple[str, Told]]:
        """Yield the paths with flags. Usually there are none, which is detected quickly."""
        data, wanted = self._data, start.encode("utf-8", "surrogateescape")
        if wanted not in self._flagged:
            found = may_be_flagged(data, wanted) if self._plain else _TOLD.search(data) is not None
            self._flagged[wanted] = found
        if self._flagged[wanted]:
            yield from ((path, told) for path, told in self.below(start) if told)

    def count(self, start: str) -> int:
        """Return how many paths begin with `start`, or a few more."""
        return self._data.count(start.encode("utf-8", "surrogateescape"))

    def holds(self, path: str) -> bool:
        data, wanted = self._data, path.encode("utf-8", "surrogateescape") + b"\0"
        position = data.find(wanted)
        while position >= 0:
            if self._told(position, position + len(wanted) - 1) is not None:
                return True
            position = data.find(wanted, position + 1)
        return False

    def _told(self, position: int, end: int) -> Told | None:
        """Return the path that begins here; None if there is none or the path is in conflict."""
        if end < 0 or position < 2:
            return None
        if not self._plain:
            if self._data[position - 3 : position - 2] != b"\0" or self._data[position - 1 : position] != b" ":
                return None
            tag = self._data[position - 2 : position - 1]
            if tag.upper() == b"M":
                return None
            return "skip-worktree" if tag.upper() == b"S" else "assume-unchanged" if tag.islower() else ""
        flags, low = self._data[position - 2], self._data[position - 1]
        length = end - position
        # A longer path has the largest length that the twelve bits can hold.
        if (flags & _LENGTH_HIGH) << 8 | low != min(length, _LONGEST) or flags & _STAGE:
            return None
        return "assume-unchanged" if flags & ASSUME_UNCHANGED else ""


def read_index(repository: Repository, *places: str) -> Index:
    """Return the part of the index at or below these paths."""
    plain = None if os.environ.get("GIT_INDEX_FILE") else _plain_file(repository)
    if plain is not None:
        return plain
    listed = run_git(repository.root, "ls-files", "-v", "-z", "--", *places)
    return Index(b"\0" + listed.output, plain=False)


def _plain_file(repository: Repository) -> Index | None:
    """Return the index; None if only git can read it, because the file is missing, or the index is split or in another
    form."""
    try:
        if any(name.startswith("sharedindex.") for name in os.listdir(repository.git_dir)):
            return None
        place = os.fspath(repository.git_path("index"))
        status = os.stat(place)
        return _read(place, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise WorkpacketError("repository_unreadable", message, path=str(error.filename)) from error


@lru_cache(maxsize=1)
def _read(place: str, _state: tuple[int, ...]) -> Index | None:
    """Return an index in this state; None if it is not in the plain form. git never changes an index in place, and a
    command looks at it before and after it takes the lock.
    """
    data = Path(place).read_bytes()
    return Index(data, plain=True) if data.startswith(PLAIN) else None


def has_index(repository: Repository) -> bool:
    return bool(os.environ.get("GIT_INDEX_FILE")) or repository.git_path("index").exists()


def only_in_head(repository: Repository, *paths: str) -> frozenset[str]:
    """Return paths that are in HEAD at or below these paths but not in the index: staged deletions."""
    # Before the first commit, git has nothing to compare with and fails.
    if commit_at(repository, "HEAD") is None:
        return frozenset()
    answer = run_git(
        repository.root, "diff-index", "--cached", "--no-renames", "--name-only", "--diff-filter=D", "-z", "HEAD", "--",
        *paths,
    )  # fmt: skip
    return frozenset(answer.text.split("\0")[:-1])


ATTRIBUTES: Final = ".gitattributes"


def attributes_of(
    repository: Repository, files: Iterable[TreeEntry], paths: Sequence[str], names: Sequence[str]
) -> dict[str, Mapping[str, str]]:
    """Return the value of each attribute for each path, according to these attribute files, which git reads from an
    index.
    """
    rows = "".join(f"{file.mode} {file.object_id}\t{file.path}\0" for file in files)
    if not rows or not paths:
        return {}
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        listed = rows.encode("utf-8", "surrogateescape")
        # An index of its own, so that neither the index nor the work tree of the user is read or changed.
        own = {"GIT_INDEX_FILE": str(Path(folder, "index")), "GIT_ATTR_NOSYSTEM": "1"}
        run_git(repository.root, "update-index", "-z", "--index-info", stdin=listed, environment=own)
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        answer = run_git(
            repository.root, "-c", f"core.attributesFile={os.devnull}", "check-attr", "--cached", "-z", "--stdin",
            *names, stdin=asked, environment=own,
        )  # fmt: skip
    fields = answer.text.split("\0")[:-1]
    found: dict[str, dict[str, str]] = {}
    for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        found.setdefault(path, {})[name] = value
    return dict(found)


_CRLF, _LF = b"\r\n", b"\n"
_CONVERTED: Final = frozenset({"set", "auto"})


class Conversions:
    """The files in a work tree in which git turns CRLF into LF when it stores them.

    The rules are git's, but the bytes are converted here: no filter that a branch could specify is ever run.
    """

    def __init__(self, root: str) -> None:
        self._repository = find_repository(Path(root))
        self._inside = os.path.realpath(root) == str(self._repository.root)
        self._asked: dict[str, tuple[str, str]] = {}

    def stored(self, path: str, data: bytes) -> bytes:
        """Return the bytes that git would store for this file, whose bytes in the work tree are `data`."""
        if not self._inside:
            return data
        known = self._ids.get(path, "")
        converted = data.replace(_CRLF, _LF)
        if known and blob_id(data, known) == known:
            return data
        text = self._text(path)
        same = bool(known) and blob_id(converted, known) == known
        # The line ends of a checkout are never a change: where the attributes were others then, git itself says that
        # the file is changed or that it is not, as the two files' times happen to be.
        if same or text == "set":
            return converted
        return converted if text == "auto" and self._is_converted(known, data) else data

    def _is_converted(self, known: str, data: bytes) -> bool:
        """Whether git converts a file because of its content: it must be text, and must not have been committed with
        CRLF."""
        if b"\0" in data or data.count(b"\r") != data.count(_CRLF):
            return False
        return not known or _CRLF not in read_objects(self._repository, [known]).get(known, b"")

    @cached_property
    def _ids(self) -> dict[str, str]:
        answer = run_git(self._repository.root, "ls-files", "--stage", "-z")
        rows = (row.partition("\t") for row in answer.text.split("\0")[:-1])
        return {path: said.split(" ")[1] for said, _, path in rows}

    @cached_property
    def _autocrlf(self) -> bool:
        answer = run_git(self._repository.root, "config", "--get", "core.autocrlf", check=False)
        return answer.text.strip().lower() in ("input", "true", "yes", "on", "1")

    def _text(self, path: str) -> str:
        """Return `set` if git always converts the file, `auto` if its content determines that, otherwise ''."""
        if path not in self._asked:
            self._ask(path)
        text, end = self._asked[path]
        if text in _CONVERTED or text == "unset":
            return text if text in _CONVERTED else ""
        if end in ("lf", "crlf"):
            return "set"
        return "auto" if self._autocrlf else ""

    def _ask(self, path: str) -> None:
        """Ask git for the attributes of the file and of neighboring files, which are likely to be needed next."""
        top = path.partition("/")[0] + "/"
        paths = [each for each in self._ids if each.startswith(top) and each not in self._asked]
        asked = "".join(f"{each}\0" for each in {path, *paths}).encode("utf-8", "surrogateescape")
        answer = run_git(self._repository.root, "check-attr", "-z", "--stdin", "text", "eol", stdin=asked)
        fields = answer.text.split("\0")[:-1]
        found: dict[str, dict[str, str]] = {}
        for each, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
            found.setdefault(each, {})[name] = value
        self._asked.update((each, (values["text"], values["eol"])) for each, values in found.items())


@lru_cache(maxsize=8)
def _line_ends(root: str, *_when_changed: int) -> Conversions:
    return Conversions(root)


def as_stored(root: str, path: str, data: bytes) -> bytes:
    """Return the bytes that git would store for the file at `path`, whose bytes in the work tree are `data`."""
    if _CRLF not in data:
        return data
    try:
        git_dir = find_repository(Path(root)).git_dir
    except WorkpacketError as error:
        if error.code in ("no_repository", "repository_bare"):
            return data
        raise
    files = (git_dir / name for name in ("index", "config"))
    changed = (file.stat().st_mtime_ns if file.exists() else 0 for file in files)
    return _line_ends(root, *changed).stored(path, data)


def hidden_file(root: str, path: str) -> bytes | None:
    """Return the bytes of a file that a sparse checkout leaves out; None if git has none."""
    try:
        repository = find_repository(Path(root))
        told = [why for found, why in read_index(repository, path).below(path) if found == path]
    except WorkpacketError:
        return None
    if told != ["skip-worktree"]:
        return None
    name = f":{path}"
    return read_objects(repository, [name]).get(name) if "\n" not in path else None
