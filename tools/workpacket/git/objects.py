"""Read committed trees and files, many at a time.

The changes in all commits of a history are read by one call to git, which is many times faster than a call for each
file. The raw form is requested, in which a path always follows the row that describes it. In a plain list of names, a
path with a newline and a control character could pass for the header of another commit. Also compares work tree, HEAD
and commits; makes commits and finds them by message; and tells whether a history that no longer contains a commit still
contains its changes, after a rebase, squash or cherry-pick.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import Final

from workpacket.digests import sha1, sha256
from workpacket.git.repository import FULL_ID, Repository, commit_of, merge_base
from workpacket.git.run import FETCH_ALL, run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError
from workpacket.value import NOTHING, NamedTuple, Value

# Hooks of the user run inside `git commit`: linters, tests.
_HOOKS_SECONDS = 1800.0


class TreeEntry(NamedTuple):
    """A file in a committed tree. The mode distinguishes links (120000) and submodules (160000) from files."""

    path: str
    mode: str
    object_id: str

    @property
    def is_file(self) -> bool:
        return self.mode in ("100644", "100755")


def list_tree(repository: Repository, commit: str, *folders: str) -> list[TreeEntry]:
    """Return all entries in the tree of `commit`, or those at or below `folders`, descending into folders."""
    # No "--" before the folders: after the end of options, ls-tree would treat it as a folder.
    question = ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit, *folders)
    answer = repository.ask_once(*question) if FULL_ID.match(commit) else run_git(repository.root, *question)
    entries = []
    for row in _split(answer.output):
        described, _, path = row.partition("\t")
        mode, _kind, object_id = described.split(" ")
        # Two commits share most of their files, so what is equal is stored once.
        entries.append(TreeEntry(intern(path), intern(mode), intern(object_id)))
    return entries


def tree_names(repository: Repository, commit: str) -> list[str]:
    """Return the names of the files and folders at the top of the tree of `commit`."""
    answer = run_git(repository.root, "ls-tree", "-z", "--name-only", "--full-tree", "--end-of-options", commit)
    return answer.text.split("\0")[:-1]


def read_objects(
    repository: Repository, names: Iterable[str], environment: Mapping[str, str] = NOTHING
) -> dict[str, bytes]:
    """Return the contents of objects by name (`<id>` or `<commit>:<path>`), read by one process. Missing objects and
    trees are left out.
    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        # git reads one name per line: a name with a newline would be two questions, and all later answers would be
        # assigned to the wrong names.
        if "\n" in name:
            raise WorkpacketError("unknown_revision", f"{name!r} is not a valid object name")
    if not wanted:
        return {}
    request = "".join(f"{name}\n" for name in wanted).encode("utf-8", "surrogateescape")
    output = run_git(repository.root, "cat-file", "--batch", stdin=request, environment=environment).output
    found: dict[str, bytes] = {}
    position = 0
    for name in wanted:
        end = output.index(b"\n", position)
        header = output[position:end].decode("utf-8", "surrogateescape")
        position = end + 1
        if header == f"{name} missing":
            continue
        if header == f"{name} ambiguous":
            raise WorkpacketError("unknown_revision", f"{name!r} is ambiguous: it matches several objects")
        _, kind, size = header.rsplit(" ", 2)
        if kind != "tree":
            found[name] = output[position : position + int(size)]
        position += int(size) + 1
    return found


def object_names(repository: Repository, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of objects by name (`<id>:<path>`), read by one process. Missing objects are left out."""
    wanted = [name for name in dict.fromkeys(names) if "\n" not in name]
    if not wanted:
        return {}
    request = "".join(f"{name}\n" for name in wanted).encode("utf-8", "surrogateescape")
    answer = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", stdin=request)
    rows = zip(wanted, answer.text.splitlines(), strict=True)
    return {name: row for name, row in rows if not row.endswith((" missing", " ambiguous"))}


def read_file_at(repository: Repository, commit: str, path: str) -> bytes | None:
    """Return the committed bytes of a file; None if it does not exist."""
    name = f"{commit}:{path}"
    return read_objects(repository, [name]).get(name)


def read_blobs(repository: Repository, identities: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of files in a tree; an object missing from this clone is an error, not a missing file."""
    wanted = list(dict.fromkeys(identities))
    found = read_objects(repository, wanted)
    for identity in wanted:
        if identity not in found:
            raise missing_object(identity)
    return found


def missing_object(identity: str, name: str = "") -> WorkpacketError:
    return WorkpacketError(
        "object_missing",
        f"object {identity}{(f' ({name})' if name else '')} is not in this clone",
        hint=FETCH_ALL,
    )


def blob_id(data: bytes, like: str) -> str:
    """Return the id that git would give a file with these bytes, using the same hash algorithm as the id `like`."""
    header = b"blob %d\0" % len(data)
    if len(like) == 64:
        return sha256(header + data).hexdigest()
    return sha1(header + data).hexdigest()


def folder_id(files: Mapping[str, str]) -> str:
    """Return the id that git would give a folder of plain files, from their ids by name."""
    rows = sorted((name.encode("utf-8", "surrogateescape"), identity) for name, identity in files.items())
    data = b"".join(b"100644 %b\0%b" % (name, bytes.fromhex(identity)) for name, identity in rows)
    hashed = sha256 if any(len(identity) == 64 for identity in files.values()) else sha1
    return hashed(b"tree %d\0%b" % (len(data), data)).hexdigest()


def folder_ids(repository: Repository, commit: str, folder: str) -> dict[str, str]:
    """Return the ids of the folders directly below a folder of a commit, by name."""
    answer = run_git(
        repository.root, "ls-tree", "-z", "--full-tree", "--end-of-options", commit, f"{folder}/", check=False
    )
    rows = (row.partition("\t") for row in _split(answer.output))
    said = ((path, described.split(" ")) for described, _, path in rows)
    return {path.rpartition("/")[2]: identity for path, (_, kind, identity) in said if kind == "tree"}


class Commit(NamedTuple):
    """`trailers` are the values of the requested trailer, as git reads them."""

    commit: str
    tree: str
    trailers: tuple[str, ...]
    message: str


def commit_paths(repository: Repository, message: str, paths: Sequence[str]) -> None:
    """Commit these paths as they are in the work tree, without anything else that is staged. Hooks run as usual."""
    listed = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    named = ("--pathspec-from-file=-", "--pathspec-file-nul")
    run_git(repository.root, "add", "--all", *named, stdin=listed)
    run_git(
        repository.root, "commit", "--quiet", "--only", f"--message={message}", *named,
        stdin=listed, timeout=_HOOKS_SECONDS,
    )  # fmt: skip


def commit_with_staged(repository: Repository, message: str, paths: Sequence[str]) -> str:
    """Commit these paths, including deletions, and everything staged; return the new commit. Hooks run as usual."""
    if paths:
        run_git(repository.root, "add", "--all", "--", *paths)
    run_git(
        repository.root, "commit", "--quiet", "--cleanup=verbatim", "--file=-",
        stdin=message.encode("utf-8", "surrogateescape"), timeout=_HOOKS_SECONDS,
    )  # fmt: skip
    return commit_of(repository, "HEAD")


def commits_before(repository: Repository, head: str, *, trailer: str, saying: str = "") -> Iterator[Commit]:
    """Yield `head` and its ancestors, newest first; with `saying`, only those whose message contains this string."""
    chosen = (f"--grep={saying}", "--fixed-strings") if saying else ()
    answer = run_git(
        repository.root, "log", "-z", "--no-decorate", "--no-show-signature",
        f"--format=%H%n%T%n%(trailers:key={trailer},valueonly,separator=%x2C)%n%B", *chosen, head, "--",
    )  # fmt: skip
    for record in answer.text.split("\0"):
        if record:
            commit, tree, trailers, message = record.split("\n", 3)
            yield Commit(commit, tree, tuple(filter(None, trailers.split(","))), message)


def commit_with_trailer(repository: Repository, head: str, trailer: str, value: str) -> Commit | None:
    """Return the newest commit in this history that has the trailer; a message that only quotes it does not count."""
    found = commits_before(repository, head, trailer=trailer, saying=f"{trailer}: {value}")
    return next((commit for commit in found if value in commit.trailers), None)


class StatusEntry(Value):
    """A path that differs: the two letters of `git status`, for the index and for the work tree; '??' is untracked."""

    path: str
    letters: str

    @property
    def untracked(self) -> bool:
        return self.letters == "??"

    @property
    def unmerged(self) -> bool:
        return "U" in self.letters or self.letters in ("AA", "DD")


class ChangedPath(Value):
    """A path that differs between two commits: A added, D deleted, M modified, T type changed."""

    path: str
    letter: str


def status(repository: Repository, *paths: str) -> list[StatusEntry]:
    """Return everything that differs from HEAD, with each untracked file listed; ignored files are left out."""
    answer = run_git(
        repository.root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *paths
    )
    return [StatusEntry(row[3:], row[:2]) for row in answer.text.split("\0")[:-1]]


def hidden_paths(repository: Repository) -> list[str]:
    """Return tracked paths that `status` assumes to be unchanged: skip-worktree, as in a sparse checkout, and
    assume-unchanged.
    """
    answer = run_git(repository.root, "ls-files", "-z", "-v")
    rows = (row for row in answer.text.split("\0")[:-1] if row[0] == "S" or row[0].islower())
    return [row[2:] for row in rows]


# Neither programs of the user nor .gitmodules, where `ignore = all` hides a submodule that has moved on, decide what
# differs between two commits.
AS_COMMITTED: Final = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def changed_paths(repository: Repository, base: str, head: str, *paths: str) -> list[ChangedPath]:
    """Return the differences between the trees of `base` and `head`. A rename counts as one deletion and one
    addition."""
    answer = run_git(
        repository.root, "diff-tree", "-r", "-z", "--name-status", "--no-renames", *AS_COMMITTED,
        "--end-of-options", base, head, "--", *paths,
    )  # fmt: skip
    fields = answer.text.split("\0")[:-1]
    return [ChangedPath(path, letter) for letter, path in zip(fields[::2], fields[1::2], strict=True)]


def added_lines(repository: Repository, base: str, head: str, *paths: str) -> dict[str, dict[int, str]]:
    """Return the lines that `head` has and `base` does not, by path and by line number. Binary files have none."""
    compared = (
        "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--end-of-options",
        base, head, "--", *paths,
    )  # fmt: skip
    names = run_git(repository.root, "diff-tree", "-z", "--name-only", *compared).text.split("\0")[:-1]
    shown = run_git(repository.root, "diff-tree", "-p", "-U0", "--src-prefix=a/", "--dst-prefix=b/", *compared)
    # Lines of files begin with a sign, so this is where the next file of the same list begins.
    parts = re.split(r"^diff --git .*\n", shown.output.decode("utf-8", "replace"), flags=re.MULTILINE)[1:]
    return {name: dict(_numbered_lines(part)) for name, part in zip(names, parts, strict=True)}


def _numbered_lines(part: str) -> Iterator[tuple[int, str]]:
    number = 0
    for line in part.split("\n"):
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,\d+)? @@", line)
        if hunk is not None:
            number = int(hunk[1])
        # Before the first hunk, a `+` is part of the header of the file (`+++ b/path`).
        elif number and line.startswith("+"):
            yield number, line[1:]
            number += 1


def patch_id(repository: Repository, base: str, head: str, *paths: str) -> str | None:
    """Return a digest of the change from `base` to `head` that is not affected by rebasing or squashing; None if
    nothing changed.
    """
    patch = run_git(
        repository.root, "diff-tree", "-p", "--binary", "--full-index", "--no-renames",
        *AS_COMMITTED, "--end-of-options", base, head, "--", *paths,
    )  # fmt: skip
    answer = run_git(repository.root, "patch-id", "--stable", stdin=patch.output)
    return answer.text.split(" ", 1)[0] or None


def files_ending(repository: Repository, ending: str) -> list[str]:
    """Return the files with this suffix in any folder, tracked or not; ignored files are left out."""
    answer = run_git(repository.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({path for path in answer.text.split("\0")[:-1] if path.endswith(ending)})


_DEEPEST, _MOST_SEEN = 3, 1000  # in an ignored folder, such as the packages of another language


def ignored_files_ending(repository: Repository, ending: str) -> list[str]:
    """Return the ignored files with this suffix, down to three folders below an ignored folder."""
    listed = ("--others", "--ignored", "--exclude-standard", "--directory")
    answer = run_git(repository.root, "ls-files", "-z", *listed)
    found: list[str] = []
    for path in answer.text.split("\0")[:-1]:
        found += _below(repository, path, ending) if path.endswith("/") else [path] if path.endswith(ending) else []
    return sorted(found)


def _below(repository: Repository, folder: str, ending: str) -> list[str]:
    found: list[str] = []
    waiting, left = [(folder.rstrip("/"), 0)], _MOST_SEEN
    while waiting and left:
        path, depth = waiting.pop(0)
        try:
            with os.scandir(os.path.join(repository.root, path)) as entries:
                for entry in islice(entries, left):
                    left -= 1
                    if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
                        waiting.append((f"{path}/{entry.name}", depth + 1))
                    elif entry.name.endswith(ending) and entry.is_file(follow_symlinks=False):
                        found.append(f"{path}/{entry.name}")
        except OSError:
            continue
    return found


def is_in_index(repository: Repository, path: str) -> bool:
    """Whether git tracks the file, or a file below the folder, even if it is missing from the work tree."""
    return bool(run_git(repository.root, "--literal-pathspecs", "ls-files", "-z", "--cached", "--", path).output)


_REVERTED = lazy_pattern(r"^This reverts commit ([0-9a-f]{40,64})\.?$", re.MULTILINE)
# A command line has room for this many names; the searched commits are those that touch any of them.
_PATHS = 200


def tree_of(repository: Repository, commit: str) -> str:
    """Return the id of the tree of a commit: equal trees have equal contents."""
    return run_git(repository.root, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").text.strip()


def trees_before(repository: Repository, head: str, beside: str = "") -> set[str]:
    """Return the trees of `head` and its ancestors, except those of ancestors of commit `beside`."""
    excluded = [f"^{beside}"] if beside else []
    return set(run_git(repository.root, "log", "--format=%T", head, *excluded, "--").text.split())


def holds_changes_of(repository: Repository, commit: str, head: str) -> bool:
    """Whether `head` has the changes up to `commit` in other commits: each change in its own commit, or all squashed
    into one."""
    base = merge_base(repository, commit, head)
    if base is None or base == head:
        return False
    present = set(_patch_ids(repository, base, head))
    wanted = _patch_ids(repository, base, commit)
    return bool(wanted) and (set(wanted) <= present or patch_id(repository, base, commit) in present)


def taken_back(repository: Repository, commit: str, head: str) -> bool:
    """Whether the change in `commit`, an ancestor of `head`, is currently undone: by a commit with the opposite change,
    or by one that says that it reverts `commit`.
    """
    parent = _resolved(repository, f"{commit}^")
    if parent is None:
        return False
    paths = [changed.path for changed in changed_paths(repository, parent, commit)][:_PATHS]
    forwards, backwards = patch_id(repository, parent, commit), patch_id(repository, commit, parent)
    log = run_git(
        repository.root, "log", "-z", "--reverse", "--no-merges", "--format=%H%n%B", f"{commit}..{head}", "--", *paths
    )
    standing = {commit}  # commits whose change is in force: this one, and those that restored it
    for record in filter(None, log.text.split("\0")):
        later, _, message = record.partition("\n")
        change = patch_id(repository, f"{later}^", later)
        reverted = next((one for one in _REVERTED.findall(message)), "")
        if change == backwards or reverted in standing:
            standing.clear()
        elif change == forwards or (reverted and not standing):
            standing.add(later)
    return not standing


def _resolved(repository: Repository, name: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", name, check=False)
    return answer.text.strip() if answer.status == 0 else None


def _patch_ids(repository: Repository, base: str, head: str) -> list[str]:
    """Return the patch ids of the commits after `base` up to `head`; merges have none."""
    commits = run_git(repository.root, "rev-list", "--no-merges", "--end-of-options", f"{base}..{head}").output
    patches = run_git(
        repository.root, "diff-tree", "--stdin", "-p", "--binary", "--full-index", "--no-renames",
        *AS_COMMITTED, stdin=commits,
    )  # fmt: skip
    answer = run_git(repository.root, "patch-id", "--stable", stdin=patches.output)
    return [row.split(" ", 1)[0] for row in answer.text.splitlines()]


FIRST_PARENTS = ("--first-parent", "--diff-merges=first-parent")
_MARK = "\x01"
_CONTENTS = ("100644", "100755", "120000")


class Change(NamedTuple):
    """A path that a commit changed: A added, D deleted, M modified, T type changed. `blob` is '' if the path was
    deleted.
    """

    letter: str
    blob: str
    path: str


def changes_before(
    repository: Repository, commit: str, *paths: str, options: tuple[str, ...] = (), form: str = "%H %ct"
) -> Iterator[tuple[str, list[Change]]]:
    """Yield the commits that changed these paths, newest first: the output of `form` for each, and its changes."""
    header, changes = "", list[Change]()
    for found in each_change_before(repository, commit, *paths, options=options, form=form):
        if isinstance(found, str):
            if header:
                yield header, changes
            header, changes = found, []
        else:
            changes.append(found)
    if header:
        yield header, changes


def each_change_before(
    repository: Repository, commit: str, *paths: str, options: tuple[str, ...] = (), form: str = "%H %ct"
) -> Iterator[str | Change]:
    """Yield what `changes_before` does, one by one: the output of `form` for each commit, then its changes. One commit
    may have hundreds of thousands.
    """
    answer = run_git(
        repository.root, "log", *options, "--no-renames", "--raw", "--no-abbrev", "-z", *AS_COMMITTED,
        f"--format={_MARK}{form}", "--end-of-options", commit, "--", *paths,
    )  # fmt: skip
    parts = _split(answer.output)
    for part in parts:
        if part.startswith(_MARK):
            yield part.removeprefix(_MARK)
        elif part:
            _, mode, _, blob, letter = part.lstrip("\n").split(" ")
            yield Change(intern(letter), blob if mode in _CONTENTS else "", next(parts))


def _split(output: bytes) -> Iterator[str]:
    """Yield the parts between the zero bytes, without a list of all."""
    start = 0
    while start < len(output):
        end = output.find(b"\0", start)
        end = len(output) if end < 0 else end
        yield output[start:end].decode("utf-8", "surrogateescape")
        start = end + 1


def add_trailers(repository: Repository, place: str, lines: Iterable[str]) -> None:
    """Add these trailers to a commit message file, unless it already has them."""
    named = [word for line in lines for word in ("--trailer", line)]
    run_git(repository.root, "interpret-trailers", "--in-place", "--if-exists", "addIfDifferent", *named, "--", place)


def first_parents(repository: Repository, commit: str) -> tuple[str, ...]:
    """Return the first-parent history of `commit`, newest first, as far as this clone has it."""
    shallow = repository.common_dir / "shallow"
    return _first_parents(repository, commit, shallow.read_bytes() if shallow.exists() else b"")


@lru_cache(maxsize=16)
def _first_parents(repository: Repository, commit: str, _shallow: bytes) -> tuple[str, ...]:
    return tuple(run_git(repository.root, "rev-list", "--first-parent", "--end-of-options", commit).text.split())


def line_times(repository: Repository, commit: str) -> Iterator[tuple[str, int]]:
    """Yield the first-parent history of `commit`, oldest first, each commit with its time."""
    answer = run_git(
        repository.root, "rev-list", "--first-parent", "--reverse", "--timestamp", "--end-of-options", commit
    )
    for row in answer.text.splitlines():
        time, identity = row.split(" ")
        yield identity, int(time)
