"""What branches point at, read from git's own files: starting git for it costs more than the rest of a small command.

Only the common form is read here, a file for each reference and `packed-refs` for the others. Whatever looks otherwise
(the reftable format, a name that git would not take) is left to git.
"""

from __future__ import annotations

import re
from typing import Final

from workpacket.git.repository import Repository
from workpacket.git.run import run_git

_SYMBOLIC: Final = "ref: "
_ID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
# References with their own file system, in which nothing but plain words can be a step to another folder.
_NAME: Final = re.compile(r"HEAD|refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+\Z")
# As many as git follows.
_DEPTH: Final = 5


def symbolic_target(repository: Repository, name: str) -> str:
    """The reference that `name` stands for, '' if it stands for none."""
    if not _readable(repository, name):
        answer = run_git(repository.root, "symbolic-ref", "--quiet", name, check=False)
        return answer.text.rstrip("\n") if answer.status == 0 else ""
    text = _loose(repository, name)
    return text.removeprefix(_SYMBOLIC).strip() if text.startswith(_SYMBOLIC) else ""


def commit_at(repository: Repository, name: str) -> str | None:
    """The commit that a branch, or HEAD, points at; None for one that is not there or has no commit yet."""
    for _ in range(_DEPTH):
        if not _readable(repository, name):
            break
        text = _loose(repository, name) or _packed(repository, name)
        if not text.startswith(_SYMBOLIC):
            return text if _ID.match(text) else _asked(repository, name) if text else None
        name = text.removeprefix(_SYMBOLIC).strip()
    return _asked(repository, name)


def reference_tips(repository: Repository) -> dict[str, str]:
    """What HEAD and all references point at: the commit, and the name of one reference that leads there."""
    answer = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(*objectname) %(refname)")
    tips: dict[str, str] = {}
    for row in answer.text.splitlines():
        own, peeled, name = row.split(" ", 2)
        tips.setdefault(peeled or own, name)
    head = commit_at(repository, "HEAD")
    if head is not None:
        tips.setdefault(head, "HEAD")
    return tips


def _asked(repository: Repository, name: str) -> str | None:
    options = ("--verify", "--quiet", "--end-of-options")
    answer = run_git(repository.root, "rev-parse", *options, f"{name}^{{commit}}", check=False)
    return answer.text.strip() if answer.status == 0 else None


def _readable(repository: Repository, name: str) -> bool:
    return _NAME.match(name) is not None and not (repository.common_dir / "reftable").exists()


def _loose(repository: Repository, name: str) -> str:
    folder = repository.git_dir if name == "HEAD" else repository.common_dir
    try:
        return (folder / name).read_text("utf-8", "surrogateescape").rstrip("\n")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


def _packed(repository: Repository, name: str) -> str:
    try:
        text = (repository.common_dir / "packed-refs").read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    end = text.find(f" {name}\n")
    return text[text.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
