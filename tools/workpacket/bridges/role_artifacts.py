"""The artifacts of a role: the files that it names, and the digests that they had at its last milestone.

A note names a file by its path, as in `Drafted docs/plan.md`; what is no path of a file here is a word. Every milestone
takes the digests of all files that were ever named, so that a change is one since the last milestone. Nothing is
stopped by one: whoever was interrupted between two milestones has left files behind that are further than the last.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from workpacket.errors import WorkpacketError
from workpacket.shell.judging.log_verifying import digest_here
from workpacket.shell.transactions.safe_paths import split_path
from workpacket.shell.tree import link_on_the_way

MOST: Final = 100  # those that were named first are let go of
_QUOTED = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[^\s`\"'()\[\]{}<>|,;]+")
_LINES = re.compile(r":[0-9]+(?:[-:][0-9]+)?\Z")


class ArtifactChange(NamedTuple):
    path: str
    what: Literal["has changed", "is gone"]

    @property
    def message(self) -> str:
        return f"{self.path} {self.what} since the last milestone"

    @property
    def choice(self) -> str:
        """What to look at, or to do, for whoever does not go on with what is there."""
        return f"git {'log --stat' if self.what == 'is gone' else 'diff'} -- {shlex.quote(self.path)}"


def named_in(texts: Iterable[str]) -> Iterator[str]:
    """What could be a path: anything in backquotes, and every word with a slash or a dot."""
    for text in texts:
        for found in _QUOTED.findall(text):
            yield _path(found)
        for word in _WORD.findall(text):
            if "/" in word or "." in word:
                yield _path(word)


def _path(word: str) -> str:
    return _LINES.sub("", word.lstrip("*").rstrip(".:!?*")).removeprefix("./")


def digest_of(root: str, path: str) -> str | None:
    """The digest of a file below the repository; None of anything else, and of what lies behind a link."""
    try:
        *folders, _ = split_path(path)
    except WorkpacketError:
        return None
    return None if folders and link_on_the_way(root, "/".join(folders)) else digest_here(root, path)


def digests(root: str, paths: Iterable[str], own: str) -> dict[str, str]:
    """Those of the paths that are files, with their digests. The role's own file changes with every milestone."""
    found = {path: digest for path in dict.fromkeys(paths) if path != own and (digest := digest_of(root, path))}
    return dict([*found.items()][-MOST:])


def changes(root: str, artifacts: Mapping[str, str]) -> tuple[ArtifactChange, ...]:
    """What is not as it was at the last milestone."""
    now = {path: digest_of(root, path) for path in artifacts}
    return tuple(
        ArtifactChange(path, "is gone" if now[path] is None else "has changed")
        for path, digest in artifacts.items()
        if now[path] != digest
    )
