"""Commits as git makes them, written by this process: `git add --all` and `git commit` take ten times as long, and the
tests make thousands of commits that are not what they test.

Only what is plain is done here. Whatever could make git do something else (a merge under way, a hook, a setting, a
pattern of ignored files, a link, a filter, a carriage return, an unusual index) is left to git.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from io import FileIO
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

_HEADER = b"DIRC\0\0\0\2"
_ENTRY = struct.Struct(">10L20sH")
# Settings that change nothing that is done here.
_SETTING = re.compile(
    r"\[(?:core|user|(?:remote|branch|merge) \"[^\"]*\")\]|(?:name|email|url|fetch|remote|merge|driver)\s*=.*"
    r"|repositoryformatversion = 0|filemode = true|bare = false|logallrefupdates = true|[#;].*|"
)
# With these, git changes no file that has no carriage return.
_ATTRIBUTE = re.compile(r"-?merge(?:=\S+)?|-?linguist-\S+|-?text|text=auto|eol=lf")
# A folder at the top of the work tree, as `workpacket init` names some.
_IGNORED = re.compile(r"/([\w.-]+)/")
_BY_THE_WAY = (
    "MERGE_HEAD", "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "rebase-merge", "rebase-apply",
    "sequencer", "index.lock", "info/attributes", "info/sparse-checkout", "hooks", "reftable", "shallow",
)  # fmt: skip
# Variables with which git does the same.
_USUAL = re.compile(
    r"GIT_(?:AUTHOR_|COMMITTER_|SSL_|SSH|(?:CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|EDITOR|PAGER|ASKPASS|TERMINAL_PROMPT)\Z)"
)


class NotPlain(Exception):
    """This is left to git."""


class Entry(NamedTuple):
    """A row of the index: what the disk said of the file, and the id of its contents."""

    about: tuple[int, ...]
    identity: bytes

    @property
    def mode(self) -> int:
        return self.about[6]


def commit_everything(folder: Path, message: str, identity: str, date: str) -> bool:
    """`git add --all && git commit --allow-empty --message MESSAGE`, or False if that is left to git."""
    git = f"{folder}/.git"
    words = "".join(f"{line}\n" for line in _cleaned(message))
    try:
        ref, parent = _head(git) if words else _refuse()
        _require_plain(git)
        entries = _of_the_work_tree(str(folder), git)
    except NotPlain:
        return False
    tree = _write_tree(git, [(path.split(b"/"), entry) for path, entry in sorted(entries.items())])
    when = f"{identity} {int(datetime.fromisoformat(date).timestamp())} +0000"
    parents = f"parent {parent}\n" if parent else ""
    text = f"tree {tree.hex()}\n{parents}author {when}\ncommitter {when}\n\n{words}"
    made = _write_object(git, b"commit", text.encode()).hex()
    _write_index(git, entries)
    Path(git, "COMMIT_EDITMSG").write_text(words, "utf-8")
    first = re.sub(r"\s+", " ", words.partition("\n")[0], flags=re.ASCII).strip()
    said = f"{parent or '0' * 40} {made} {when}\tcommit{'' if parent else ' (initial)'}: {first}\n"
    for name in dict.fromkeys((ref, "HEAD")):
        log = Path(git, "logs", name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(said)
    Path(git, ref).parent.mkdir(parents=True, exist_ok=True)
    Path(git, ref).write_text(f"{made}\n", "utf-8")
    return True


def refresh(folder: Path) -> bool:
    """`git update-index --refresh`, or False if that is left to git."""
    git = f"{folder}/.git"
    try:
        _require_plain(git)
        entries = _entries(git)
        for path, entry in entries.items():
            place = os.fsencode(folder) + b"/" + path
            found = os.lstat(place)
            identity, data = _blob(place) if stat.S_ISREG(found.st_mode) else (b"", b"")
            if b"\r" in data:
                raise NotPlain
            if _mode(found) == entry.mode and identity == entry.identity:
                entries[path] = Entry(_about(found), entry.identity)
    except (NotPlain, OSError):
        return False
    _write_index(git, entries)
    return True


def _refuse() -> tuple[str, str]:
    raise NotPlain


def _cleaned(message: str) -> Iterator[str]:
    """The lines of a message without blanks at their ends, and without blank lines at its ends or after another."""
    lines = [line.rstrip() for line in message.split("\n")]
    blank = False
    begun = False
    for line in lines:
        if line and blank and begun:
            yield ""
        if line:
            begun = True
            yield line
        blank = not line


def _require_plain(git: str) -> None:
    if not Path(git).is_dir() or any(os.path.lexists(f"{git}/{name}") for name in _BY_THE_WAY):
        raise NotPlain
    if any(name.startswith("GIT_") and not _USUAL.match(name) for name in os.environ):
        raise NotPlain
    settings = Path(git, "config").read_text("utf-8")
    if not all(_SETTING.fullmatch(line.strip()) for line in settings.splitlines()):
        raise NotPlain
    excluded = Path(git, "info", "exclude")
    if excluded.exists() and any(line[:1] not in ("", "#") for line in excluded.read_text("utf-8").splitlines()):
        raise NotPlain


def _head(git: str) -> tuple[str, str]:
    """The reference that a commit moves, and the commit that it is at; '' before the first one."""
    text = Path(git, "HEAD").read_text("utf-8").strip()
    if not text.startswith("ref: refs/heads/"):
        if not re.fullmatch("[0-9a-f]{40}", text):
            raise NotPlain
        return "HEAD", text
    ref = text.removeprefix("ref: ")
    place, packed = Path(git, ref), Path(git, "packed-refs")
    if place.is_file():
        commit = place.read_text("utf-8").strip()
    else:
        rows = packed.read_text("utf-8").splitlines() if packed.exists() else []
        commit = next((row[:40] for row in rows if row[41:] == ref), "")
    if commit and not re.fullmatch("[0-9a-f]{40}", commit):
        raise NotPlain
    return ref, commit


def _entries(git: str) -> dict[bytes, Entry]:
    """The index by path. One with conflicts, flags or extensions other than git's cache of trees is left to git."""
    try:
        data = Path(git, "index").read_bytes()
    except FileNotFoundError:
        return {}
    if data[:8] != _HEADER:
        raise NotPlain
    found, at = {}, 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        *about, identity, flags = _ENTRY.unpack_from(data, at)
        end = data.index(b"\0", at + 62)
        if flags & 0xF000 or about[6] not in (0o100644, 0o100755):
            raise NotPlain
        found[data[at + 62 : end]] = Entry(tuple(about), identity)
        at += (end - at) // 8 * 8 + 8
    while at < len(data) - 20:
        if data[at : at + 4] != b"TREE":
            raise NotPlain
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return found


def _of_the_work_tree(folder: str, git: str) -> dict[bytes, Entry]:
    known = _entries(git)
    try:
        written = Path(git, "index").stat().st_mtime_ns
    except FileNotFoundError:
        written = 0
    entries = {}
    ignored = _ignored_folders(Path(folder, ".gitignore"))
    if any(path.startswith(tuple(name + b"/" for name in ignored)) for path in known):
        raise NotPlain
    for path, found in _files(os.fsencode(folder), b"", ignored):
        about = _about(found)
        before = known.get(path)
        # A file that is as young as the index may have changed again since.
        if before is None or before.about != about or found.st_mtime_ns >= written:
            identity, data = _blob(os.fsencode(folder) + b"/" + path)
            if b"\r" in data:
                raise NotPlain
            if before is None or before.identity != identity:
                _write_object(git, b"blob", data)
            before = Entry(about, identity)
        entries[path] = before
    return entries


def _ignored_folders(patterns: Path) -> set[bytes]:
    lines = patterns.read_text("utf-8").splitlines() if patterns.is_file() else []
    found = [_IGNORED.fullmatch(line) for line in lines if line and not line.startswith("#")]
    if not all(found):
        raise NotPlain
    return {match[1].encode() for match in found if match}


def _files(folder: bytes, below: bytes, ignored: Collection[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    with os.scandir(folder) as found:
        for each in found:
            name = each.name
            path = below + name
            if name == b".git":
                if below:
                    raise NotPlain
            elif each.is_symlink() or name == b".gitmodules" or (below and name == b".gitignore"):
                raise NotPlain
            elif each.is_dir():
                if path not in ignored:
                    yield from _files(each.path, path + b"/", ignored)
            elif not each.is_file():
                raise NotPlain
            else:
                if name == b".gitattributes":
                    _require_plain_attributes(Path(os.fsdecode(each.path)).read_text("utf-8"))
                yield path, os.lstat(each.path)


def _require_plain_attributes(text: str) -> None:
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            _, *words = line.split()
            if line.startswith(("[", '"')) or not all(_ATTRIBUTE.fullmatch(word) for word in words):
                raise NotPlain


def _mode(found: os.stat_result) -> int:
    return 0o100755 if found.st_mode & 0o100 else 0o100644


def _about(found: os.stat_result) -> tuple[int, ...]:
    """What the index says of a file on this disk."""
    changed, written = divmod(found.st_ctime_ns, 10**9), divmod(found.st_mtime_ns, 10**9)
    numbers = (found.st_dev, found.st_ino, _mode(found), found.st_uid, found.st_gid, found.st_size)
    return tuple(number & 0xFFFFFFFF for number in (*changed, *written, *numbers))


def _blob(place: bytes) -> tuple[bytes, bytes]:
    with FileIO(os.fsdecode(place)) as file:
        data = file.readall()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest(), data


def _write_object(git: str, kind: bytes, data: bytes) -> bytes:
    whole = b"%s %d\0" % (kind, len(data)) + data
    identity = hashlib.sha1(whole, usedforsecurity=False).digest()
    name = identity.hex()
    place = Path(git, "objects", name[:2], name[2:])
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        place.chmod(0o444)
    return identity


def _write_tree(git: str, rows: list[tuple[list[bytes], Entry]]) -> bytes:
    """The id of the tree of these files, given by the parts of their paths."""
    found = []
    for name, group in groupby(rows, lambda row: row[0][0]):
        inside = list(group)
        (first, *below), entry = inside[0]
        if below:
            found.append((first + b"/", b"40000", _write_tree(git, [(path[1:], each) for path, each in inside])))
        else:
            found.append((name, b"%o" % entry.mode, entry.identity))
    found.sort()
    text = b"".join(mode + b" " + name.rstrip(b"/") + b"\0" + identity for name, mode, identity in found)
    return _write_object(git, b"tree", text)


def _write_index(git: str, entries: Mapping[bytes, Entry]) -> None:
    parts = [_HEADER, len(entries).to_bytes(4, "big")]
    for path, (about, identity) in sorted(entries.items()):
        row = _ENTRY.pack(*about, identity, min(len(path), 0xFFF)) + path
        parts.append(row + b"\0" * (8 - len(row) % 8))
    data = b"".join(parts)
    scratch = Path(git, "index.lock")
    with scratch.open("xb") as file:
        file.write(data + hashlib.sha1(data, usedforsecurity=False).digest())
    scratch.replace(f"{git}/index")
