"""The line of the base: its commits along first parents, and what each of them held of some paths.

One call of git tells of all commits; asking for `<commit>:<path>` makes git unpack the trees of that commit for every
name, which takes longer with every file that lies beside it.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from workpacket.git.history import FIRST_PARENTS, changes_before
from workpacket.git.repository import Repository

_BEFORE = "^1"


class BaseLine:
    """`first_seen` says of each file which commit held it first, and that commit's time."""

    def __init__(self, repository: Repository, commit: str, paths: tuple[str, ...]) -> None:
        self._covered = paths
        self.first_seen: dict[str, tuple[str, int]] = {}
        self._places: dict[str, int] = {}
        # Of each path, newest first: after how many newer commits it changed, and what it was from then on.
        self._changed: dict[str, tuple[list[int], list[str]]] = {}
        for place, (header, changes) in enumerate(changes_before(repository, commit, *paths, options=FIRST_PARENTS)):
            identity, _, time = header.partition(" ")
            self._places[identity] = place
            for change in changes:
                if change.letter == "A":
                    # The log runs backwards, so what is met last was first.
                    self.first_seen[change.path] = (identity, int(time))
                places, blobs = self._changed.setdefault(change.path, ([], []))
                places.append(place)
                blobs.append(change.blob)

    def knows(self, revision: str, path: str) -> bool:
        """Whether it can tell what `revision`, a commit that changed some of the paths or the one before it, held."""
        covered = any(path == each or path.startswith(f"{each}/") for each in self._covered)
        return covered and revision.removesuffix(_BEFORE) in self._places

    def blob(self, revision: str, path: str) -> str:
        """The id of what `revision` holds at the path, '' where it holds no file."""
        place = self._places[revision.removesuffix(_BEFORE)] + revision.endswith(_BEFORE)
        places, blobs = self._changed.get(path, ([], []))
        found = bisect_left(places, place)
        return blobs[found] if found < len(places) else ""


@lru_cache(maxsize=16)
def base_line(repository: Repository, commit: str, *paths: str) -> BaseLine:
    """The line that ends at `commit`; what a commit holds cannot change, so it is read once in a process."""
    return BaseLine(repository, commit, paths)
