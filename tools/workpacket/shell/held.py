"""Whether the work tree has all governed files that git has, and how to restore missing ones.

A sparse checkout, a flag in the index, a clone without a checkout or a deletion hides files that nevertheless exist. A
command that mistakes a hidden file for a missing one would create it a second time. Every command that writes therefore
reads the index once:

- a missing governed path that git was told to leave out stops every command that writes;
- so does any other missing path that the command uses, if the index or HEAD has it;
- other deletions are only reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from workpacket.git.index import Index, Told, has_index, only_in_head, read_index
from workpacket.git.repository import Repository, commit_at, find_repository
from workpacket.git.run import run_git
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER, PACKETS, REFINEMENTS, STUBS
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import Value

Why = Literal["HEAD", "submodule", "intent"] | Told

_REASONS: Final[dict[Why, str]] = {
    "": "it is in the index, but was deleted from the work tree",
    "intent": "git was told that it would be added (git add -N), but it is not here",
    "HEAD": "it is in HEAD, but not in the index or the work tree",
    "submodule": "it is a submodule that is not checked out",
    "skip-worktree": "it is in the index, but this checkout leaves it out (skip-worktree)",
    "assume-unchanged": "it is in the index but missing here, and git was told to ignore that (assume-unchanged)",
}
# A command that restores files names this many places; the next call names the others.
_PLACES: Final = 10


def folders_of(path: str) -> list[str]:
    """Return the folders on the path, outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def described(paths: Sequence[str], why: Why) -> str:
    others = f"; so are {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{_REASONS[why]}{others}"


def bring_back(repository: Repository, paths: Sequence[str], why: Why) -> str:
    """Return the git command that restores the files and does nothing else."""
    import shlex  # every command imports this module, but few refuse

    shown = from_here(str(repository.root), "")
    git = f"git -C {shlex.quote(shown)}" if shown else "git"
    if why == "submodule":
        return f"check it out: {git} submodule update --init -- {shlex.quote(paths[0])}"
    if why == "intent":
        return f"write it again, or remove it from the index: {git} rm --cached -- {shlex.quote(paths[0])}"
    if why == "skip-worktree" and _setting(repository, "core.sparseCheckout"):
        if _setting(repository, "core.sparseCheckoutCone"):
            patterns = [*dict.fromkeys(path.split("/")[0] for path in paths)]
        else:  # a pattern that excludes a folder is overridden only by a pattern for that same folder
            patterns = [f"/{place}" for place in _places(repository, paths)]
        return f"restore it: {git} sparse-checkout add {' '.join(map(shlex.quote, patterns))}"
    places = " ".join(map(shlex.quote, _places(repository, paths)))
    if why == "HEAD":
        return f"restore it: {git} restore --staged --worktree -- {places}"
    if why:
        listed = f"{git} ls-files -z -- {places} | xargs -0 {git} update-index --no-{why} --"
        return f"restore it: {listed} && {git} restore -- {places}"
    return f"restore it: {git} restore -- {places}"


def _places(repository: Repository, absent: Sequence[str]) -> list[str]:
    """Return the missing paths, or the outermost missing folders that contain them."""
    places: dict[str, None] = {}
    for path in absent:
        ways = (place for place in folders_of(path) if not os.path.lexists(repository.root / place))
        places[next(ways, path)] = None
        if len(places) == _PLACES:
            break
    return list(places)


def _setting(repository: Repository, name: str) -> bool:
    answer = run_git(repository.root, "config", "--type=bool", "--get", name, check=False)
    return answer.text.strip() == "true"


def from_here(root: str, path: str) -> str:
    """Return a path in the repository as one would type it in this folder; '' for the folder itself."""
    try:
        shown = os.path.relpath(os.path.join(root, path), os.getcwd()).replace(os.sep, "/")
    except (FileNotFoundError, ValueError):  # the folder is missing, or is on another drive
        shown = os.path.join(root, path)
    return "" if shown == "." else shown


# The places of a packet's files, each below or next to others of its kind.
_OF_PACKETS: Final = (LOG_FOLDER, PACKETS, STUBS, REFINEMENTS)
# The ids of an empty file, by SHA-1 and by SHA-256.
_EMPTY: Final = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
# With more governed paths than this in the index, other deletions are not looked for: that would take longer than the
# command.
_MANY: Final = 5000


class Held(Value):
    """What git has recorded below a folder. `removed` are the paths that only HEAD has; a folder represents everything
    below it.
    """

    repository: Repository
    index: Index
    removed: frozenset[str]

    def require_visible(self) -> None:
        """Raise WorkpacketError `tree_incomplete` if a governed path that git was told to leave out is missing."""
        if self._is_empty(GOVERNANCE_FOLDER) and self.index.holds(GOVERNANCE_FOLDER):
            raise self._refusal([GOVERNANCE_FOLDER], "submodule")
        if self.removed and not has_index(self.repository):
            raise self._refusal(sorted(self.removed), "HEAD")
        told = [(path, why) for path, why in self.index.told(f"{GOVERNANCE_FOLDER}/") if not self._is_here(path)]
        if told:
            raise self._refusal([path for path, why in told if why == told[0][1]], told[0][1])

    def require(self, paths: Iterable[str]) -> None:
        """Raise `tree_incomplete` if git has one of these paths, or a submodule that contains it, but the path is
        missing here.
        """
        absent = [path for path in paths if not self._is_here(path)]
        self._refuse([path for path in absent if _is_governed(path)])
        elsewhere = [path for path in absent if not _is_governed(path)]
        if elsewhere:
            _held_below(self.repository, elsewhere, head=True)._refuse(elsewhere)

    def require_packets(self, names: Iterable[str]) -> None:
        """Raise `tree_incomplete` in the same way for all files of these packets, and of the other revisions of their
        bases."""
        self._refuse([path for base in dict.fromkeys(map(_base, names)) for path in self._of_base(base)])

    def require_everything(self) -> None:
        self._refuse(self._absent([path for path, _ in self.index.below(f"{GOVERNANCE_FOLDER}/")]))

    def deleted(self) -> str:
        """Return the missing governed files, and how to restore them, on one line; '' if none is missing."""
        below = f"{GOVERNANCE_FOLDER}/"
        if self.index.count(below) > _MANY:
            return ""
        # Asking for each path takes a quarter of the time that listing every folder does.
        top = f"{self.repository.root}/"
        paths = {path for path, _ in self.index.below(below)} | self.removed
        try:
            absent = sorted(path for path in paths if not os.path.lexists(top + path) and not self._is_here(path))
        except WorkpacketError as error:
            return f"incomplete work tree: {error.path}: {error.message}; {error.hint}"
        if not absent:
            return ""
        why: Why = "HEAD" if absent[0] in self.removed else ""
        remedy = bring_back(self.repository, absent, why)
        return f"incomplete work tree: {absent[0]}: {described(absent, why)}; {remedy}"

    def _absent(self, paths: Iterable[str]) -> list[str]:
        here = set(paths_below(str(self.repository.root), GOVERNANCE_FOLDER))
        return [path for path in sorted({*paths, *self.removed}) if path not in here and not self._is_here(path)]

    def _of_base(self, base: str) -> Iterator[str]:
        for folder in _OF_PACKETS:
            start = f"{folder}/{base}-v"
            removed = (path for path in self.removed if path.startswith(start))
            for path in (*(path for path, _ in self.index.below(start)), *removed):
                name = path.removeprefix(f"{folder}/").partition("/")[0].removesuffix(".md")
                if _base(name) == base and not self._is_here(path):
                    yield path

    def _is_here(self, path: str) -> bool:
        """Whether the path exists; raise WorkpacketError `tree_unreadable` if a folder above it cannot be read."""
        root = str(self.repository.root)
        try:
            # Not `exists`: a link is there even if what it points to is not.
            os.lstat(os.path.join(root, path))
        except PermissionError as error:
            shut = (place for place in folders_of(path) if not os.access(os.path.join(root, place), os.R_OK | os.X_OK))
            place = os.path.join(root, next(shut, os.path.dirname(path)))
            raise unreadable(root, PermissionError(error.errno, error.strerror, place)) from error
        except OSError:
            return False
        return True

    def _is_empty(self, path: str) -> bool:
        """Whether nothing is at or below the path. Not more than one name is listed."""
        try:
            with os.scandir(os.path.join(self.repository.root, path)) as names:
                return next(names, None) is None
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _refuse(self, absent: Sequence[str]) -> None:
        """Raise an error if git has any of the missing paths."""
        told = {path: why for path in absent for found, why in self.index.below(path) if found == path}
        if told:
            first = next(iter(told))
            if self._is_intent(first):
                raise self._refusal([first], "intent")
            raise self._refusal([path for path, why in told.items() if why == told[first]], told[first])
        places = dict.fromkeys(place for path in absent for place in folders_of(path))
        # A submodule that is not checked out is an empty folder, or missing.
        inside = [place for place in places if self._is_empty(place) and self.index.holds(place)]
        if inside:
            raise self._refusal(inside[:1], "submodule")
        removed = [path for path in absent if not self.removed.isdisjoint((path, *folders_of(path)))]
        if removed:
            raise self._refusal(removed, "HEAD")

    def _is_intent(self, path: str) -> bool:
        """Whether the path was added with `git add --intent-to-add`: the index has an empty file for it, and HEAD has
        none.
        """
        entry = run_git(self.repository.root, "ls-files", "--stage", "-z", "--", path).text.split(" ")
        if len(entry) < 2 or entry[1] not in _EMPTY:
            return False
        known = run_git(self.repository.root, "rev-parse", "--verify", "--quiet", f"HEAD:{path}", check=False)
        return known.status != 0

    def _refusal(self, paths: Sequence[str], why: Why) -> WorkpacketError:
        hint = bring_back(self.repository, paths, why)
        return WorkpacketError("tree_incomplete", described(paths, why), hint=hint, path=min(paths))


def look(repository: Repository, *, head: bool = True) -> Held:
    """Return what git has recorded below the governance folder. Without `head`, staged deletions do not count."""
    return _held_below(repository, [GOVERNANCE_FOLDER], head=head)


def hidden(root: str) -> WorkpacketError | None:
    """Return an error, for read-only commands, that describes what git was told to leave out of this work tree; None if
    nothing was left out.
    """
    held = _look_if_there(root, head=False)
    try:
        if held is not None:
            held.require_visible()
    except WorkpacketError as error:
        return error
    return None


def note(root: str) -> str:
    """Return one line about missing files for read-only commands; '' if nothing is missing."""
    error = hidden(root)
    if error is not None:
        return f"incomplete work tree: {error.path}: {error.message}; {error.hint}"
    held = _look_if_there(root, head=False)
    return held.deleted() if held is not None else ""


def require_shown(root: str, paths: Iterable[str]) -> None:
    """Raise WorkpacketError if git hides a governed path, or if one of these paths is missing. The folder may be
    outside git.
    """
    held = _look_if_there(root)
    if held is not None:
        held.require_visible()
        held.require(paths)


def require_found(root: str, name: str = "") -> None:
    """Raise WorkpacketError if git has what was not found, or hides any governed file."""
    held = _look_if_there(root)
    if held is not None:
        held.require_visible()
        if name:
            held.require_packets([name])
        held.require_everything()


def _look_if_there(root: str, *, head: bool = True) -> Held | None:
    try:
        return look(find_repository(Path(root)), head=head)
    except WorkpacketError as error:
        if error.code in ("no_repository", "repository_bare"):
            return None
        raise


def paths_below(root: str, folder: str) -> Iterator[str]:
    """Yield every file below a folder; raise WorkpacketError `tree_unreadable` if the folder cannot be read."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise unreadable(root, error) from error

    for current, folders, names in os.walk(os.path.join(root, folder), onerror=refuse):
        folders.sort()
        place = os.path.relpath(current, root).replace(os.sep, "/")
        yield from (f"{place}/{name}" for name in sorted(names))


def unreadable(root: str, error: OSError) -> WorkpacketError:
    import shlex

    path = os.path.relpath(str(error.filename or root), root).replace(os.sep, "/")
    hint = f"make it readable: chmod u+rwx {shlex.quote(from_here(root, path))}"
    return WorkpacketError("tree_unreadable", error.strerror or "the folder cannot be read", hint=hint, path=path)


def _held_below(repository: Repository, places: Sequence[str], *, head: bool) -> Held:
    known = has_index(repository)
    if not known and commit_at(repository, "HEAD") is None:
        return Held(repository, Index(b"", plain=True), frozenset())
    try:
        removed = only_in_head(repository, *places) if head or not known else frozenset()
    except WorkpacketError as error:
        if error.code != "object_missing" or known:
            raise
        # A clone with neither checkout nor trees. git fetches the files of HEAD when asked to restore them.
        removed = frozenset(places)
    return Held(repository, read_index(repository, *places), removed)


def _is_governed(path: str) -> bool:
    return path == GOVERNANCE_FOLDER or path.startswith(f"{GOVERNANCE_FOLDER}/")


def _base(name: str) -> str:
    head, mark, number = name.rpartition("-v")
    return head if mark and number.isdecimal() else name


def judged_in_part(root: str, findings: Iterable[Problem]) -> list[Problem]:
    """Return the findings; if git leaves out governed files, one finding says so instead of reporting damage.

    The check still fails: it is an error that files could not be read. A file that was simply deleted is not hidden:
    once the deletion is committed, the log has lost it.
    """
    missing = hidden(root)
    if missing is None:
        return list(findings)
    from workpacket.model.reason_tables.integrity import LOG_BY_CODE

    seeming = {*LOG_BY_CODE, "not_committed"}
    rest = [finding for finding in findings if finding.code not in seeming]
    return [missing.problem, *rest]
