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
import stat
import zlib
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
_READERS = {"cat-file", "diff-tree", "for-each-ref", "grep", "log", "ls-tree", "merge-base", "rev-list", "rev-parse"}
# Without any name they begin at HEAD.
_FROM_HEAD = {"log", "rev-list"}
_OF_SETTINGS = {"--get", "--get-regexp"}
# What is asked of the index alone, with HEAD if that is the last word before the paths.
_OF_INDEX = {("ls-files", "-z", "-v"), ("ls-files", "-v", "-z"), ("diff-index", "--cached", "--no-renames")}
# They read rules in the work tree besides.
_OF_WORK_TREE = {"check-ignore", "merge-tree"}
# They write objects into the folder that they are given, and say which.
_WRITERS = {"hash-object", "merge-tree"}
# A status of 1 is an answer of theirs too: unset, unrelated, not found, not ignored, with conflicts.
_SAY_NO = {"check-ignore", "config", "grep", "merge-base", "merge-tree"}
# Options that name references, and those of what was at a reference before.
_OF_REFERENCES = ("--all", "--branches", "--tags", "--remotes", "--glob")
_OF_THE_PAST = ("--reflog", "--walk-reflogs")
# Options that let git read from elsewhere, or that depend on the time.
_OF_MORE = ("--exclude", "--git-", "--since", "--until", "--after", "--before", "--ignore-missing")
# Patches depend on attributes, those of text without programs only in the heading of a hunk.
_PATCH = {"-p", "--patch"}
_PATCH_OF_TEXT = {"--text", "--no-textconv", "--no-ext-diff"}
# Variables that change where git looks, and those that change nothing that is read.
_ELSEWHERE = {
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
}  # fmt: skip
_OTHERS = (b"GIT_CONFIG_GLOBAL", b"GIT_AUTHOR_", b"GIT_COMMITTER_")
_UNUSUAL = re.compile(
    rb"^\s*\[(?:include|extensions)|promisor|partialclone|textconv|external|objectformat|excludesfile|attributesfile",
    re.IGNORECASE | re.MULTILINE,
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
    if known and question and _has_what_was_made(known, arguments, f"{folder}/.git"):
        _used.add(question)
        for path, data in known.objects.items():
            _write(f"{scratch}/{path}", data)
        return known.answer
    answer = _ask(folder, *arguments, stdin=stdin, check=check, timeout=timeout, environment=environment)
    if question is not None and _holds(question, answer.status):
        written = _objects_in(scratch) if _command(arguments)[0] in _WRITERS else {}
        _answers[question] = Known(answer, written)
        _used.add(question)
    return answer


def _trial(folder: Path | str, scratch: str) -> Mapping[str, str]:
    """The environment of a trial merge: its objects in a folder of their own."""
    return {"GIT_OBJECT_DIRECTORY": scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{folder}/.git/objects"}


def _objects_in(scratch: str) -> dict[str, bytes]:
    """All of them, also those of before: what was written may lead to them."""
    return {str(path.relative_to(scratch)): path.read_bytes() for path in Path(scratch).glob("??/*")}


def _has_what_was_made(known: Known, arguments: tuple[str, ...], git_dir: str) -> bool:
    """Whether nothing is missing of the tree that a merge made: git writes no object that its repository has."""
    return _command(arguments)[0] != "merge-tree" or _is_whole(known.answer.text[:40], git_dir, known.objects)


def _is_whole(tree: str, git_dir: str, objects: Mapping[str, bytes]) -> bool:
    """Whether all of a tree is in this repository, not packed, or among these objects."""
    path = f"{tree[:2]}/{tree[2:]}"
    data = objects.get(path) or _bytes_of(f"{git_dir}/objects/{path}")
    rows = zlib.decompress(data).partition(b"\0")[2] if data else b""
    at = 0
    while at < len(rows):
        mode, _, _ = rows[at : (end := rows.index(b"\0", at))].partition(b" ")
        one = rows[end + 1 : end + 21].hex()
        here = f"{one[:2]}/{one[2:]}"
        if mode == b"40000":
            if not _is_whole(one, git_dir, objects):
                return False
        elif mode != b"160000" and here not in objects and not _exists(f"{git_dir}/objects/{here}"):
            return False
        at = end + 21
    return bool(data)


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
    return status == 0 or (status == 1 and _command(question.arguments)[0] in _SAY_NO)


def _question(folder: Path | str, arguments: tuple[str, ...], stdin: bytes | None, scratch: str) -> Question | None:
    if not _ELSEWHERE.isdisjoint(os.environ) or (settings := _settings(str(folder))) is None:
        return None
    words = _command(arguments)
    index = references = b""
    ids: set[str] | None = set()
    if words[0] in {"config", "check-ref-format"}:
        if not _is_plain(words):
            return None
    elif words[:3] in _OF_INDEX or words[0] in _OF_WORK_TREE:
        found = _of_the_work_tree(str(folder), words, scratch)
        if found is None:
            return None
        ids, index = found
    else:
        ids = _ids(words, stdin, scratch)
        if ids is None and not scratch and (ids := _ids(words, stdin, "", _NAMED_OBJECTS)) is not None:
            references = _references(f"{folder}/.git", past=any(word.startswith(_OF_THE_PAST) for word in words))
            if not references:
                return None
            ids.update(_ID.findall(references.partition(_PAST)[0].decode("utf-8", "surrogateescape")))
        if not _PATCH.isdisjoint(words):
            index = _attributes(str(folder)) or b""
            ids = ids if index else None
    if ids is None or not _are_in(f"{folder}/.git", ids, scratch):
        return None
    return Question(arguments, stdin, settings, _environment(), index, references)


def _command(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the subcommand on."""
    at = 0
    while arguments[at].startswith("-"):
        at += 2 if arguments[at] == "-c" else 1
    return arguments[at:]


def _is_plain(words: tuple[str, ...]) -> bool:
    """Whether nothing but the settings and these words matters."""
    return "@" not in words[-1] if words[0] == "check-ref-format" else not _OF_SETTINGS.isdisjoint(words)


def _of_the_work_tree(folder: str, words: tuple[str, ...], scratch: str) -> tuple[set[str] | None, bytes] | None:
    """The ids that are asked about, and what else matters: the index, and rules in the work tree."""
    if words[0] == "merge-tree":
        rules = _attributes(folder)
        named = [word for word in words[1:] if not word.startswith("-")]
        plain = scratch and all(_OBJECTS.match(name) for name in named)
        return ({*_ID.findall(" ".join(named))}, rules) if plain and rules is not None else None
    entries = _index(f"{folder}/.git/index")
    if entries is None or "--others" in words:
        return None
    if words[0] == "check-ignore":
        return None if (rules := _ignoring(folder, words)) is None else (set(), entries + rules)
    if "HEAD" not in words:
        return set(), entries
    ids = _head(f"{folder}/.git")
    return ids, entries + repr(ids).encode()


def _attributes(folder: str) -> bytes | None:
    """What the files of attributes say, None if they cannot all be found."""
    index = f"{folder}/.git/index"
    rows = _rows(index) if _exists(index) else []
    if rows is None:
        return None
    usual = {b".gitattributes", b".GOV/.gitattributes"}
    paths = usual.union(path for _, path in rows if path.endswith(b".gitattributes"))
    found = [_bytes_of(f"{_settings_folder()}/git/attributes")]
    found += [path + b" " + _bytes_of(f"{folder}/{os.fsdecode(path)}") for path in sorted(paths)]
    return b"\0".join(found)


def _ignoring(folder: str, words: tuple[str, ...]) -> bytes | None:
    """What decides whether one path is ignored: the rules on the way to it, and what is there."""
    path = words[-1].removeprefix("./")
    if "--" not in words[:-1] or words[-2] != "--" or ".." in path.split("/") or path.startswith("/"):
        return None
    places = [f"{_settings_folder()}/git/ignore", f"{folder}/.git/info/exclude"]
    here, kinds = folder, []
    for name in path.split("/"):
        places.append(f"{here}/.gitignore")
        here = f"{here}/{name}"
        kinds.append(f"{_kind(here)}{_exists(f'{here}/.git')}")
    return b"\0".join([" ".join(kinds).encode(), *map(_bytes_of, places)])


def _kind(path: str) -> int:
    """Whether this is a file, a folder or a link; 0 for nothing."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def _settings_folder() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '')}/.config"


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
    rows = _rows(path)
    return None if rows is None else b"".join(about + name + b"\0" for about, name in rows)


def _rows(path: str) -> list[tuple[bytes, bytes]] | None:
    """Mode, id and flags of each entry, and its path."""
    data = _bytes_of(path)
    if data[:8] != b"DIRC\0\0\0\2":
        return None
    rows, at = [], 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        end = data.index(b"\0", at + 62)
        rows.append((data[at + 24 : at + 28] + data[at + 40 : at + 62], data[at + 62 : end]))
        at += (end - at) // 8 * 8 + 8
    return rows if b"link" not in data[at : at + 4] else None


def _ids(
    arguments: tuple[str, ...], stdin: bytes | None, scratch: str, pattern: re.Pattern[str] = _OBJECTS
) -> set[str] | None:
    """The ids of all objects that are asked about; None where anything else is, or a name that does not fit."""
    if arguments[0] == "hash-object" and scratch and stdin is not None:
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
    elif arguments[0] == "grep":  # the word that is searched comes before
        named = named[-1:] if "--untracked" not in words else []
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
    patch = not _PATCH.isdisjoint(words) and not _PATCH_OF_TEXT.issubset(words)
    return not patch and not any(word.startswith(_OF_MORE) for word in words)


def _settings(folder: str) -> tuple[bytes, ...] | None:
    """All settings that a repository's git reads, None where they are elsewhere or could change an answer."""
    home = os.environ.get("HOME", "")
    usual = (f"{_settings_folder()}/git/config", f"{home}/.gitconfig")
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
        if _asks_us(question):
            continue
        answer, objects = _answers[question]
        rows.append((tuple(question), (answer.status, answer.output, answer.complaint), dict(objects)))
    place.mkdir(parents=True, exist_ok=True)
    name = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    scratch = place / f"{name}-{os.getpid()}"
    scratch.write_bytes(pickle.dumps((_program(), rows)))
    scratch.replace(place / f"{name}.pickle")


def _asks_us(question: Question) -> bool:
    """Whether git may have run a program of the package, which merges boards."""
    return "merge-tree" in question.arguments and any(b"driver" in each for each in question.settings)


def _kept(config: pytest.Config) -> Path | None:
    """Where answers are kept; not in the process that starts the workers, which asks nothing."""
    cache = getattr(config, "cache", None)
    return None if cache is None or config.getoption("numprocesses", None) else config.rootpath / _KEPT


def _program() -> tuple[str, int, int]:
    """Which git this is."""
    path = shutil.which("git") or ""
    about = Path(path).stat() if path else None
    return (path, about.st_size, about.st_mtime_ns) if about else ("", 0, 0)
