"""What git said once about objects by their ids in full is not asked of it again, in whichever repository they are.

An id is the digest of what it names: trees, files and histories have the same contents everywhere. Tests begin with the
same commits, so most of what the product asks git has been answered before, and a process for each answer would take a
fifth of all time. What an index with the same entries says is remembered too, and what references with the same values
say. Git is asked all the same wherever something else could matter: the work tree, missing objects, shallow and partial
clones, unusual settings, a variable of git's own. CI and `nox -s tests` ask git each time: WORKPACKET_TEST_MEMORY=off.

The dates of commits in tests are fixed, so a later run asks the same questions: the answers are kept in pytest's cache,
for the same git.

Imported before anything of the product that runs git.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import pytest

from workpacket.git import run
from workpacket.git.run import Answer
from workpacket.value import NOTHING

# A reference by its name, not what git would take for the beginning of an id or for one of its passing notes.
_REFERENCE = r"(?![0-9a-f]{4,}(?![\w./-]))(?![\w./-]*(?:_HEAD|-g[0-9a-f]+)(?![\w./-]))[A-Za-z](?:[\w/-]|\.(?!\.))*"
_STEPS = r"(?:\^\{\w*\}|[~^]\d*)*"
_FULL = rf"\^?[0-9a-f]{{40}}{_STEPS}"
_NAMED = rf"\^?(?:[0-9a-f]{{40}}|{_REFERENCE}){_STEPS}"
_OBJECTS = re.compile(rf"{_FULL}(?:\.\.\.?{_FULL})?(?::[^\n]*)?\Z")
_NAMED_OBJECTS = re.compile(rf"{_NAMED}(?:\.\.\.?{_NAMED})?(?::[^\n]*)?\Z")
_ID = re.compile(r"[0-9a-f]{40}")
# They read objects and references, and nothing else, whatever their options are.
_READERS = {"cat-file", "diff-tree", "for-each-ref", "log", "ls-tree", "merge-base", "rev-list", "rev-parse"}
# Without any name they begin at HEAD.
_FROM_HEAD = {"log", "rev-list"}
_OF_SETTINGS = {"--get", "--get-regexp"}
# What is asked of the index alone, with HEAD if that is the last word before the paths.
_OF_INDEX = {("ls-files", "-z", "-v"), ("ls-files", "-v", "-z"), ("diff-index", "--cached", "--no-renames")}
# Writes an object into the folder that it is given, and says which.
_WRITER = "hash-object"
# Options that name references, and those of what was at a reference before.
_OF_REFERENCES = ("--all", "--branches", "--tags", "--remotes", "--glob")
_OF_THE_PAST = ("--reflog", "--walk-reflogs")
# Options that let git read from elsewhere, or that depend on the time.
_OF_MORE = ("--exclude", "--git-", "--since", "--until", "--after", "--before", "--ignore-missing")
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
    references: bytes


class Known(NamedTuple):
    """An answer, and the objects that were there after it, by path."""

    answer: Answer
    objects: Mapping[str, bytes]


_answers: dict[Question, Known] = {}
_ask = run.run_git
_KEPT = ".pytest_cache/git_answers"


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
    if known and question:
        _used.add(question)
        for path, data in known.objects.items():
            _write(f"{scratch}/{path}", data)
        return known.answer
    answer = _ask(folder, *arguments, stdin=stdin, check=check, timeout=timeout, environment=environment)
    if question is not None and _holds(question, answer.status):
        written = _objects_in(scratch) if arguments[0] == _WRITER else {}
        _answers[question] = Known(answer, written)
        _used.add(question)
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


def _holds(question: Question, status: int) -> bool:
    """Whether it will be the answer next time: a failure may have to do with this repository. That no reference has a
    name is no failure.
    """
    if status == 1 and question.references:
        return question.arguments[:3] == ("rev-parse", "--verify", "--quiet") and not _ID.search(question.arguments[-1])
    return status == 0 or (status == 1 and question.arguments[0] in {"config", "merge-base"})


def _question(folder: Path | str, arguments: tuple[str, ...], stdin: bytes | None, scratch: str) -> Question | None:
    if not _ELSEWHERE.isdisjoint(os.environ) or (settings := _settings(str(folder))) is None:
        return None
    index = references = b""
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
        if ids is None and not scratch and (ids := _ids(arguments, stdin, "", _NAMED_OBJECTS)) is not None:
            references = _references(f"{folder}/.git", past=any(word.startswith(_OF_THE_PAST) for word in arguments))
            if not references:
                return None
            ids.update(_ID.findall(references.partition(_PAST)[0].decode("utf-8", "surrogateescape")))
    if ids is None or not _are_in(f"{folder}/.git", ids, scratch):
        return None
    return Question(arguments, stdin, settings, _environment(), index, references)


_PAST = b"\n# before\n"


def _references(git_dir: str, *, past: bool) -> bytes:
    """What HEAD and all references are, with `past` also what they were; nothing if other work trees have some too."""
    if _exists(f"{git_dir}/worktrees"):
        return b""
    found = [_bytes_of(f"{git_dir}/HEAD"), _bytes_of(f"{git_dir}/packed-refs"), *_below(git_dir, "refs")]
    if past:
        found += [_PAST, _bytes_of(f"{git_dir}/logs/HEAD"), *_below(git_dir, "logs/refs")]
    return b"\0".join(found)


def _below(git_dir: str, folder: str) -> Iterator[bytes]:
    """The paths and contents of all files in a folder."""
    try:
        with os.scandir(f"{git_dir}/{folder}") as found:
            entries = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
    except FileNotFoundError:
        return
    for name, is_folder in entries:
        path = f"{folder}/{name}"
        if is_folder:
            yield from _below(git_dir, path)
        else:
            yield path.encode("utf-8", "surrogateescape") + b" " + _bytes_of(f"{git_dir}/{path}")


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


def _ids(
    arguments: tuple[str, ...], stdin: bytes | None, scratch: str, pattern: re.Pattern[str] = _OBJECTS
) -> set[str] | None:
    """The ids of all objects that are asked about; None where anything else is, or a name that does not fit."""
    if arguments[0] == _WRITER and scratch and stdin is not None:
        return {*_ID.findall(stdin.decode())}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = arguments[1:end]
    if not _reads(arguments[0], words) or ("--stdin" in words and stdin is None):
        return None
    if arguments[0] == "for-each-ref":
        return set() if pattern is _NAMED_OBJECTS and not any("worktree" in word for word in words) else None
    named = [word for word in words if not word.startswith("-")]
    if arguments[0] == "ls-tree":
        named = named[:1]
    if stdin:
        named += stdin.decode("utf-8", "surrogateescape").splitlines()
    by_reference = any(word.startswith((*_OF_REFERENCES, *_OF_THE_PAST)) for word in words)
    if not named:
        by_reference |= arguments[0] in _FROM_HEAD
    if not (named or by_reference) or (by_reference and pattern is _OBJECTS):
        return None
    if not all(pattern.match(name) for name in named):
        return None
    return {one for name in named for one in _ID.findall(name.partition(":")[0])}


def _reads(subcommand: str, words: Sequence[str]) -> bool:
    """Whether git reads nothing but objects and references."""
    if subcommand not in _READERS or (subcommand == "rev-parse" and "--verify" not in words):
        return False
    return not any(word.startswith(_OF_MORE) for word in words) and _PATCH.isdisjoint(words)


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


_ON = os.environ.get("WORKPACKET_TEST_MEMORY") != "off"
if _ON:
    run.run_git = answered


# --- from one run to the next ---

_used: set[Question] = set()


def read_what_was_kept(config: pytest.Config) -> None:
    """Read what both workers of an earlier run were told, by the same git."""
    place = _kept(config)
    if not _ON or place is None:
        return
    for path in sorted(place.glob("*.pickle")):
        with suppress(OSError, EOFError, ValueError, TypeError, AttributeError, pickle.UnpicklingError):
            program, rows = pickle.loads(path.read_bytes())
            if program == _program():
                for question, answer, objects in rows:
                    _answers[Question(*question)] = Known(Answer(*answer), objects)


def keep_for_the_next_run(session: pytest.Session, exitstatus: int) -> None:
    """A run of all tests keeps what it asked, in place of what an earlier run did; another run keeps nothing."""
    config = session.config
    place = _kept(config)
    if not _ON or place is None or [*config.args] != config.getini("testpaths") or exitstatus not in (0, 1):
        return
    rows = []
    for question in _used & _answers.keys():  # a test may have had a memory of its own
        answer, objects = _answers[question]
        rows.append((tuple(question), (answer.status, answer.output, answer.complaint), dict(objects)))
    place.mkdir(parents=True, exist_ok=True)
    name = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    scratch = place / f"{name}-{os.getpid()}"
    scratch.write_bytes(pickle.dumps((_program(), rows)))
    scratch.replace(place / f"{name}.pickle")


def _kept(config: pytest.Config) -> Path | None:
    """Where answers are kept; not in the process that starts the workers, which asks nothing."""
    cache = getattr(config, "cache", None)
    return None if cache is None or config.getoption("numprocesses", None) else config.rootpath / _KEPT


def _program() -> tuple[str, int, int]:
    """Which git this is."""
    path = shutil.which("git") or ""
    about = Path(path).stat() if path else None
    return (path, about.st_size, about.st_mtime_ns) if about else ("", 0, 0)
