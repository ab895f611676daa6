"""What git said once about objects by their ids in full is not asked of it again, in whichever repository they are.

An id is the digest of what it names: trees, files and histories have the same contents everywhere. Tests begin with the
same commits, so two thirds of what the product asks git has been answered before, and a process for each answer would
take a fifth of all time. What an index with the same entries says is remembered too. Git is asked all the same wherever
something else could matter: the work tree and its attributes, references, missing objects, shallow and partial clones,
unusual settings, a variable of git's own. CI and `nox -s tests` ask git each time: WORKPACKET_TEST_MEMORY=off.

Imported before anything of the product that runs git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from workpacket.git import run
from workpacket.git.run import Answer
from workpacket.value import NOTHING

_FULL = r"\^?[0-9a-f]{40}(?:\^|\^\{\w+\})?"
_OBJECTS = re.compile(rf"{_FULL}(?:\.\.\.?{_FULL})?(?::[^\n]*)?\Z")
_ID = re.compile(r"[0-9a-f]{40}")
# They read objects and nothing else, whatever their options are.
_READERS = {"cat-file", "diff-tree", "log", "ls-tree", "merge-base", "rev-list", "rev-parse"}
_OF_SETTINGS = {"--get", "--get-regexp"}
# What is asked of the index alone, with HEAD if that is the last word before the paths.
_OF_INDEX = {("ls-files", "-z", "-v"), ("ls-files", "-v", "-z"), ("diff-index", "--cached", "--no-renames")}
# Writes an object into the folder that it is given, and says which.
_WRITER = "hash-object"
# Options that name references, or that let git read names from elsewhere.
_OF_MORE = ("--all", "--branches", "--tags", "--remotes", "--glob", "--reflog", "--exclude", "--stdin", "--git-")
# Patches depend on attributes in the work tree.
_PATCH = {"-p", "--patch"}
# Variables that change where git looks, and those that change nothing that is read.
_ELSEWHERE = {
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
}  # fmt: skip
_OTHERS = (b"GIT_CONFIG_GLOBAL", b"GIT_AUTHOR_", b"GIT_COMMITTER_")
_UNUSUAL = re.compile(
    rb"^\s*\[(?:include|extensions)|promisor|partialclone|textconv|external|objectformat", re.IGNORECASE | re.MULTILINE
)


class Question(NamedTuple):
    """What an answer depends on."""

    arguments: tuple[str, ...]
    stdin: bytes | None
    settings: tuple[bytes, ...]
    environment: tuple[bytes, ...]
    entries: bytes


class Known(NamedTuple):
    """An answer, and the objects that were there after it, by path."""

    answer: Answer
    objects: Mapping[str, bytes]


_answers: dict[Question, Known] = {}
_ask = run.run_git


def answered(
    folder: Path | str,
    *arguments: str,
    stdin: bytes | None = None,
    check: bool = True,
    timeout: float = run.TIMEOUT,
    environment: Mapping[str, str] = NOTHING,
) -> Answer:
    scratch = environment.get("GIT_OBJECT_DIRECTORY", "")
    usual = not environment or environment == _trial(folder, scratch)
    question = _question(folder, arguments, stdin, scratch) if usual else None
    known = _answers.get(question) if question else None
    if known:
        for path, data in known.objects.items():
            _write(f"{scratch}/{path}", data)
        return known.answer
    answer = _ask(folder, *arguments, stdin=stdin, check=check, timeout=timeout, environment=environment)
    if question is not None and _holds(arguments[0], answer.status):
        written = _objects_in(scratch) if arguments[0] == _WRITER else {}
        _answers[question] = Known(answer, written)
    return answer


def _trial(folder: Path | str, scratch: str) -> Mapping[str, str]:
    """The environment of a trial merge: its objects in a folder of their own."""
    return {"GIT_OBJECT_DIRECTORY": scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{folder}/.git/objects"}


def _objects_in(scratch: str) -> dict[str, bytes]:
    """All of them, also those of before: what was written may lead to them."""
    return {str(path.relative_to(scratch)): path.read_bytes() for path in Path(scratch).glob("??/*")}


def _write(path: str, data: bytes) -> None:
    if not _exists(path):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(data)


def _holds(subcommand: str, status: int) -> bool:
    """Whether it will be the answer next time: a failure may have to do with this repository."""
    return status == 0 or (status == 1 and subcommand in {"config", "merge-base"})


def _question(folder: Path | str, arguments: tuple[str, ...], stdin: bytes | None, scratch: str) -> Question | None:
    if not _ELSEWHERE.isdisjoint(os.environ) or (settings := _settings(str(folder))) is None:
        return None
    index = b""
    ids: set[str] | None = set()
    if arguments[0] == "config":
        if _OF_SETTINGS.isdisjoint(arguments):
            return None
    elif arguments[:3] in _OF_INDEX:
        entries = _index(f"{folder}/.git/index")
        if entries is None or "--others" in arguments:
            return None
        index = entries
        if "HEAD" in arguments:
            ids = _head(f"{folder}/.git")
            index += repr(ids).encode()
    else:
        ids = _ids(arguments, stdin, scratch)
    if ids is None or not _are_in(f"{folder}/.git", ids, scratch):
        return None
    return Question(arguments, stdin, settings, _environment(), index)


def _head(git_dir: str) -> set[str] | None:
    """The commit that is checked out, if git's own files say so plainly."""
    text = _bytes_of(f"{git_dir}/HEAD").decode()
    if text.startswith("ref: "):
        text = _bytes_of(f"{git_dir}/{text[5:].strip()}").decode()
    return {text.strip()} if re.fullmatch(r"[0-9a-f]{40}\n", text) else None


def _index(path: str) -> bytes | None:
    """The entries of an index of version 2, without what they say of the files on this disk; None of any other."""
    data = _bytes_of(path)
    if data[:8] != b"DIRC\0\0\0\2":
        return None
    entries, at = [], 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        end = data.index(b"\0", at + 62)
        entries += [data[at + 24 : at + 28], data[at + 40 : end + 1]]
        at += (end - at) // 8 * 8 + 8
    return b"".join(entries) if b"link" not in data[at : at + 4] else None


def _ids(arguments: tuple[str, ...], stdin: bytes | None, scratch: str) -> set[str] | None:
    """The ids of all objects that are asked about; None where anything else is."""
    if arguments[0] == _WRITER and scratch and stdin is not None:
        return {*_ID.findall(stdin.decode())}
    if arguments[0] not in _READERS:
        return None
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = arguments[1:end]
    if any(word.startswith(_OF_MORE) for word in words) or not _PATCH.isdisjoint(words):
        return None
    named = [word for word in words if not word.startswith("-")]
    if arguments[0] == "ls-tree":
        named = named[:1]
    if stdin:
        named += stdin.decode("utf-8", "surrogateescape").splitlines()
    if not named or not all(_OBJECTS.match(name) for name in named):
        return None
    return {one for name in named for one in _ID.findall(name.partition(":")[0])}


def _settings(folder: str) -> tuple[bytes, ...] | None:
    """All settings that a repository's git reads, None where they are elsewhere or could change an answer."""
    home = os.environ.get("HOME", "")
    usual = (f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config", f"{home}/.gitconfig")
    own = os.environ.get("GIT_CONFIG_GLOBAL")
    places = (f"{folder}/.git/config", *([own] if own is not None else usual), f"{folder}/.git/info/attributes")
    found = [_bytes_of(path) for path in places]
    if any(data and _UNUSUAL.search(data) for data in found):
        return None
    return tuple(found) if found[0] else None


def _bytes_of(path: str) -> bytes:
    try:
        with FileIO(path) as file:
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _environment() -> tuple[bytes, ...]:
    """What else git is told: which git it is, and its variables."""
    own = [name + value for name, value in os.environb.items() if name[:4] == b"GIT_" and not name.startswith(_OTHERS)]
    return (os.environb.get(b"PATH", b""), *own)


def _are_in(git_dir: str, ids: set[str], scratch: str = "") -> bool:
    """Whether this repository has the objects, and all that they lead to: nothing is borrowed, promised or cut off."""
    objects = f"{git_dir}/objects"
    if _exists(f"{objects}/info/alternates") or _exists(f"{git_dir}/shallow"):
        return False
    missing = [one for one in ids if not _exists(f"{objects}/{one[:2]}/{one[2:]}")]
    if scratch:
        missing = [one for one in missing if not _exists(f"{scratch}/{one[:2]}/{one[2:]}")]
    packed = [bytes.fromhex(one) for one in missing]
    if not packed:
        return True
    packs = [*Path(objects, "pack").glob("*")]
    if any(path.suffix == ".promisor" for path in packs):
        return False
    lists = [_ids_of_pack(path) for path in packs if path.suffix == ".idx"]
    return all(any(one in listed for listed in lists) for one in packed)


# A Path takes longer to make than to ask about.
_exists = os.path.exists


@lru_cache(maxsize=64)
def _ids_of_pack(index: Path) -> frozenset[bytes]:
    """The ids in a pack, which is named by its contents. Its index, version 2, begins with 8 bytes and 256 counts."""
    data = index.read_bytes()
    count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
    first = 8 + 256 * 4
    return frozenset(data[at : at + 20] for at in range(first, first + count * 20, 20))


if os.environ.get("WORKPACKET_TEST_MEMORY") != "off":
    run.run_git = answered
