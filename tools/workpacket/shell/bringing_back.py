"""Why a file that git holds is not in the work tree, and the command of git that brings it back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Final, Literal

from workpacket.git.index import Told
from workpacket.git.repository import Repository
from workpacket.git.run import run_git

Why = Literal["HEAD", "submodule", "intent"] | Told

_REASONS: Final[dict[Why, str]] = {
    "": "the index holds it, but it was deleted from the work tree",
    "intent": "git was told that it would be added (git add -N), and it is not here",
    "HEAD": "HEAD holds it, but the index and the work tree do not",
    "submodule": "it is a submodule that is not checked out",
    "skip-worktree": "the index holds it, but this checkout leaves it out (skip-worktree)",
    "assume-unchanged": "the index holds it, but it is not here, and git was told not to look (assume-unchanged)",
}
# A command that brings files back names as many places; the next call names the others.
_PLACES: Final = 10


def folders_of(path: str) -> list[str]:
    """The folders on the way to a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def described(paths: Sequence[str], why: Why) -> str:
    others = f"; the same is true of {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{_REASONS[why]}{others}"


def bring_back(repository: Repository, paths: Sequence[str], why: Why) -> str:
    """The command of git that brings files back and touches nothing that is here."""
    shown = from_here(str(repository.root), "")
    git = f"git -C {shlex.quote(shown)}" if shown else "git"
    if why == "submodule":
        return f"check it out: {git} submodule update --init -- {shlex.quote(paths[0])}"
    if why == "intent":
        return f"write it again, or take the announcement back: {git} rm --cached -- {shlex.quote(paths[0])}"
    if why == "skip-worktree" and _setting(repository, "core.sparseCheckout"):
        if _setting(repository, "core.sparseCheckoutCone"):
            patterns = [*dict.fromkeys(path.split("/")[0] for path in paths)]
        else:  # a pattern that leaves out a folder is overruled only by one for this very folder
            patterns = [f"/{place}" for place in _places(repository, paths)]
        return f"bring it back: {git} sparse-checkout add {' '.join(map(shlex.quote, patterns))}"
    places = " ".join(map(shlex.quote, _places(repository, paths)))
    if why == "HEAD":
        return f"bring it back: {git} restore --staged --worktree -- {places}"
    if why:
        listed = f"{git} ls-files -z -- {places} | xargs -0 {git} update-index --no-{why} --"
        return f"bring it back: {listed} && {git} restore -- {places}"
    return f"bring it back: {git} restore -- {places}"


def _places(repository: Repository, absent: Sequence[str]) -> list[str]:
    """The absent paths, or the outermost folders on the way to them that are not here either."""
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
    """A path below the repository as a person would type it in this folder; '' for this folder."""
    try:
        shown = os.path.relpath(os.path.join(root, path), os.getcwd()).replace(os.sep, "/")
    except (FileNotFoundError, ValueError):  # the folder is gone, or lies on another drive
        shown = os.path.join(root, path)
    return "" if shown == "." else shown
