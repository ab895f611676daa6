"""What git said once about objects by their ids in full is not asked of it again, in whichever repository they are.

An id is the digest of what it names: trees, files and histories have the same contents everywhere. Tests begin with the
same commits, so two thirds of what the product asks git has been answered before, and a process for each answer would
take a fifth of all time. Git is asked all the same wherever something else could matter: the index, the work tree,
references, an object that is not there by itself, packs, shallow and partial clones, unusual settings, a variable of
git's own. CI and `nox -s tests` ask git each time: WORKPACKET_TEST_MEMORY=off.

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
_SETTINGS = ("config", "-z", "--get-regexp")
# Options that name references, or that let git read names from elsewhere.
_OF_MORE = ("--all", "--branches", "--tags", "--remotes", "--glob", "--reflog", "--exclude", "--stdin", "--git-")
# Variables that change where git looks, and those that change nothing that is read.
_ELSEWHERE = {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"}
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


_answers: dict[Question, Answer] = {}
_ask = run.run_git


def answered(
    folder: Path,
    *arguments: str,
    stdin: bytes | None = None,
    check: bool = True,
    timeout: float = run.TIMEOUT,
    environment: Mapping[str, str] = NOTHING,
) -> Answer:
    question = None if environment else _question(folder, arguments, stdin)
    known = question and _answers.get(question)
    if known:
        return known
    answer = _ask(folder, *arguments, stdin=stdin, check=check, timeout=timeout, environment=environment)
    if question is not None and _holds(arguments[0], answer.status):
        _answers[question] = answer
    return answer


def _holds(subcommand: str, status: int) -> bool:
    """Whether it will be the answer next time: a failure may have to do with this repository."""
    return status == 0 or (status == 1 and subcommand in {"config", "merge-base"})


def _question(folder: Path, arguments: tuple[str, ...], stdin: bytes | None) -> Question | None:
    about_settings = arguments[:3] == _SETTINGS
    ids = set() if about_settings else _ids(arguments, stdin)
    if ids is None:
        return None
    settings = _settings(str(folder))
    if settings is None or not _ELSEWHERE.isdisjoint(os.environ):
        return None
    if ids and not _are_in(f"{folder}/.git", ids):
        return None
    return Question(arguments, stdin, settings, _environment())


def _ids(arguments: tuple[str, ...], stdin: bytes | None) -> set[str] | None:
    """The ids of all objects that are asked about; None where anything else is."""
    if arguments[0] not in _READERS:
        return None
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = arguments[1:end]
    if any(word.startswith(_OF_MORE) for word in words):
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
    if "GIT_CONFIG_GLOBAL" not in os.environ:
        return None
    places = (f"{folder}/.git/config", os.environ["GIT_CONFIG_GLOBAL"], f"{folder}/.git/info/attributes")
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


def _are_in(git_dir: str, ids: set[str]) -> bool:
    """Whether this repository has the objects, and all that they lead to: nothing is borrowed, promised or cut off."""
    objects = f"{git_dir}/objects"
    if _exists(f"{objects}/info/alternates") or _exists(f"{git_dir}/shallow"):
        return False
    packed = [bytes.fromhex(one) for one in ids if not _exists(f"{objects}/{one[:2]}/{one[2:]}")]
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
