"""The git repository of a command: the operation in progress, if any, its branches, and its commits.

This module resolves names to commits, and determines how commits are related. Branches are read from git's own files,
because starting git takes longer than the rest of a small command. Only the common form is read, one file per reference
and `packed-refs`. Anything else (the reftable format, an unusual name) is left to git. Whether a path is ignored is
also left to git: the rules are in several files and in the user's settings.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from workpacket.git.discovery import locate
from workpacket.git.run import Answer, git_failure, history_shallow, run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import WorkpacketError
from workpacket.value import Value

# Git's marker file in the git directory of the work tree, and its meaning.
_MARKS: Final = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
)


def operation_in_progress(repository: Repository) -> str:
    """Return 'merge', 'rebase', 'cherry-pick', 'revert' or 'am' while one is in progress, otherwise ''."""
    return next((name for mark, name in _MARKS if repository.git_path(mark).exists()), "")


# The full id of an object, which never refers to anything else.
FULL_ID: Final = lazy_pattern(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")

_SETTINGS = r"^(init\.defaultbranch|user\.name|core\.sshcommand|remote\..*\.(fetch|url)|branch\..*\.(remote|merge))$"


class Repository(Value):
    """The top of the work tree, the work tree's own git directory, and the git directory that all work trees share."""

    root: Path
    git_dir: Path
    common_dir: Path

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Return the git settings that concern workpacket, read together, by name in lower case."""
        answer = run_git(self.root, "config", "-z", "--get-regexp", _SETTINGS, check=False)
        rows = (row.partition("\n") for row in answer.text.split("\0"))
        return {name: value for name, _, value in rows}

    @cached_property
    def _answers(self) -> dict[tuple[str, ...], Answer]:
        return {}

    def ask_once(self, *arguments: str, check: bool = True) -> Answer:
        """Return git's answer to a question about objects given by their full ids; the answer is cached because several
        parts of one command ask the same question.
        """
        answer = self._answers.get(arguments)
        if answer is None:
            answer = run_git(self.root, *arguments, check=check)
            if answer.status == 0:
                self._answers[arguments] = answer
        return answer

    def git_path(self, name: str) -> Path:
        """Return the path of a git file that belongs only to this work tree, as from `git rev-parse --git-path`."""
        return self.git_dir / name


def find_repository(start: Path, environ: Mapping[str, str] = os.environ) -> Repository:
    """Return the repository that contains `start`; raise WorkpacketError if there is none, or if it has no work
    tree."""
    found = locate(str(start), environ)
    return Repository(Path(found.root), Path(found.git_dir), Path(found.common_dir))


_SYMBOLIC: Final = "ref: "
# References with their own file system, in which only plain words can lead to another folder.
_NAME: Final = lazy_pattern(r"HEAD|refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+\Z")
# The same limit as git's.
_DEPTH: Final = 5


def has_references(repository: Repository, folder: str) -> bool:
    """Whether there may be references below `refs/FOLDER/`; also true if git's files cannot tell."""
    place = repository.common_dir / folder
    return (
        (repository.common_dir / "reftable").exists()
        or place.is_dir()
        or folder in _read(repository.common_dir / "packed-refs")
    )


def symbolic_target(repository: Repository, name: str) -> str:
    """Return the reference that `name` refers to; '' if there is none."""
    if not _readable(repository, name):
        answer = run_git(repository.root, "symbolic-ref", "--quiet", name, check=False)
        return answer.text.rstrip("\n") if answer.status == 0 else ""
    text = _loose(repository, name)
    return text.removeprefix(_SYMBOLIC).strip() if text.startswith(_SYMBOLIC) else ""


def commit_at(repository: Repository, name: str) -> str | None:
    """Return the commit that a branch or HEAD points to; None if it does not exist or has no commit yet."""
    for _ in range(_DEPTH):
        if not _readable(repository, name):
            break
        # As git does: a loose file is newer than the line in `packed-refs`.
        text = _loose(repository, name) or _packed(repository, name)
        if not text.startswith(_SYMBOLIC):
            return text if FULL_ID.match(text) else _asked(repository, name) if text else None
        name = text.removeprefix(_SYMBOLIC).strip()
    return _asked(repository, name)


def reference_tips(repository: Repository) -> dict[str, str]:
    """Return the commits that HEAD and all references point to, each with the name of one reference to it."""
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
    return _read(folder / name).rstrip("\n")


def _packed(repository: Repository, name: str) -> str:
    text = _read(repository.common_dir / "packed-refs")
    end = text.find(f" {name}\n")
    return text[text.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""


def _read(path: Path) -> str:
    """Return the text of one of git's files, or '' if the file is missing; an unreadable file is an error."""
    try:
        return path.read_text("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
    except OSError as error:
        raise WorkpacketError("repository_unreadable", f"{path}: {error.strerror}", path=str(path)) from error


class Branch(Value):
    """A branch: its full reference and its commit."""

    ref: str
    commit: str

    @property
    def name(self) -> str:
        """Return the name to show and to type: `main` or `origin/main`."""
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")


def commit_of(repository: Repository, revision: str) -> str:
    """Return the full id of the commit that `revision` names; raise WorkpacketError `unknown_revision` if there is
    none.
    """
    commit = resolved(repository, f"{revision}^{{commit}}")
    if commit is None and FULL_ID.match(revision) and (repository.common_dir / "shallow").exists():
        raise history_shallow(f"{revision[:12]} is not here")
    if commit is None:
        hint = "See: git log --oneline --all; in a shallow clone, fetch more: git fetch --unshallow"
        if not reference_tips(repository):
            hint = "There is no commit yet; create the first one: git commit"
        raise WorkpacketError("unknown_revision", f"{revision!r} is not a commit in this repository", hint=hint)
    return commit


def head_commit(repository: Repository) -> str | None:
    """Return the commit that is checked out; None before the first commit."""
    return commit_at(repository, "HEAD")


def current_branch(repository: Repository) -> str | None:
    """Return the short name of the branch that is checked out; None for a detached HEAD."""
    target = symbolic_target(repository, "HEAD")
    return target.removeprefix("refs/heads/") or None


def branch_here(repository: Repository) -> str:
    """Return the checked-out branch, or '' for a detached HEAD."""
    return current_branch(repository) or ""


def branch_names(repository: Repository) -> list[str]:
    """Return the short names of all branches, including remote ones."""
    listed = run_git(repository.root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
    return listed.text.split()


def is_ancestor(repository: Repository, ancestor: str, descendant: str) -> bool:
    """Whether commit `ancestor` is `descendant` or one of its ancestors."""
    answer = run_git(
        repository.root, "merge-base", "--is-ancestor", "--end-of-options", ancestor, descendant, check=False
    )
    if answer.status not in (0, 1):
        raise git_failure("merge-base", answer)
    return answer.status == 0


def merge_base(repository: Repository, left: str, right: str) -> str | None:
    """Return a best common ancestor; None if the histories have nothing in common."""
    answer = run_git(repository.root, "merge-base", "--end-of-options", left, right, check=False)
    if answer.status not in (0, 1):
        raise git_failure("merge-base", answer)
    return answer.text.split("\n", 1)[0] or None


def landing_of(repository: Repository, tip: str, commit: str) -> str | None:
    """Return the oldest commit in the first-parent history of `tip` that contains this commit but is not the commit
    itself; None if there is none.
    """
    options = ("--first-parent", "--reverse", "--end-of-options", tip, f"^{commit}")
    line = run_git(repository.root, "rev-list", *options).text.split()
    # Once a commit is on the line, it is contained in everything after it, so the line can be halved: a dozen questions
    # to git instead of thousands.
    place = bisect_left(line, True, key=lambda each: is_ancestor(repository, commit, each))
    return line[place] if place < len(line) else None


# What the main branch is usually called, where neither a remote nor the settings say it.
_USUAL_NAMES: Final = ("main", "master", "trunk", "develop")
_OF_REMOTE: Final = lazy_pattern(r" refs/remotes/([^/\n]+)/")


def default_branch(repository: Repository) -> Branch | None:
    """Return the branch into which work is merged, as every command understands it; None if git cannot tell.

    It is the default branch of the main remote (its HEAD, or else a branch with a usual name, or else its only branch),
    whatever this clone has checked out; without remotes, it is the local branch found in the same way.
    """
    for ref in main_branch_candidates(repository):
        commit = commit_at(repository, ref)
        if commit is not None:
            return Branch(ref, commit)
    return None


def main_branch_candidates(repository: Repository) -> Iterator[str]:
    """Yield the references that may be the main branch; the first one that has a commit is the main branch."""
    remote = main_remote(repository)
    if remote:
        target = symbolic_target(repository, f"refs/remotes/{remote}/HEAD")
        if target:
            yield target
    names = dict.fromkeys((repository.settings.get("init.defaultbranch", "main"), *_USUAL_NAMES))
    places = [f"refs/remotes/{remote}", "refs/heads"] if remote else ["refs/heads"]
    for place in places:
        yield from (f"{place}/{name}" for name in names)
    for place in places:
        answer = run_git(repository.root, "for-each-ref", "--count=3", "--format=%(refname)", place)
        # `origin/HEAD` is another name of one of the others. Three are enough to know that there is more than one.
        found = [ref for ref in answer.text.split() if not ref.endswith("/HEAD")]
        if len(found) == 1:
            yield found[0]


def record_main_branch(repository: Repository) -> str:
    """Record the main branch in this clone's settings, if only the absence of other branches shows which one it is.
    Return what was done and why, or '' if git can tell without it.
    """
    branch = default_branch(repository)
    name = without_remote(repository, branch.name) if branch is not None else branch_here(repository)
    settings = repository.settings
    remote = main_remote(repository)
    if not name or name in (settings.get("init.defaultbranch"), *_USUAL_NAMES):
        return ""
    if remote and symbolic_target(repository, f"refs/remotes/{remote}/HEAD"):
        return ""
    import shlex  # every command imports this module

    run_git(repository.root, "config", "init.defaultBranch", name)
    return f"git config init.defaultBranch {shlex.quote(name)}: other branches would hide which one is the main branch"


def main_remote(repository: Repository) -> str:
    """Return the remote to which work is pushed, or '' if there is none: the one that the main branch tracks, or else
    `origin`, or else the only one.
    """
    remotes = _remotes(repository)
    if len(remotes) < 2:
        return next(iter(remotes), "")
    settings = repository.settings
    known = [name for name in remotes if f"remote.{name}.fetch" in settings]
    followed = (settings.get(f"branch.{name}.remote", "") for name in (*_USUAL_NAMES, current_branch(repository)))
    usual = next((name for name in followed if name in known), "")
    return usual or ("origin" if "origin" in remotes else known[0] if len(known) == 1 else "")


def _remotes(repository: Repository) -> list[str]:
    """Return the remotes with branches in this clone, from git's own files."""
    if (repository.common_dir / "reftable").exists():
        listed = run_git(repository.root, "for-each-ref", "--format= %(refname)", "refs/remotes").text
        return sorted(set(_OF_REMOTE.findall(listed)))
    found = set(_OF_REMOTE.findall(_read(repository.common_dir / "packed-refs")))
    folder = repository.common_dir / "refs" / "remotes"
    found.update(entry.name for entry in (folder.iterdir() if folder.is_dir() else ()) if entry.is_dir())
    return sorted(found)


def without_remote(repository: Repository, name: str) -> str:
    """Return the name that a branch has in its own repository: `main` for `origin/main`."""
    remote, _, rest = name.partition("/")
    return rest if rest and remote in _remotes(repository) else name


def tip_of(repository: Repository, name: str) -> str | None:
    """Return the commit of a branch, given with or without its remote; None if there is none.

    A local branch may be behind its upstream, or ahead of it: the later commit counts. If the two have diverged, the
    upstream counts, because that is where work is merged.
    """
    if not name:
        return None
    plain = without_remote(repository, name)
    remote = main_remote(repository)
    there = commit_at(repository, f"refs/remotes/{remote}/{plain}") if remote else None
    here = commit_at(repository, f"refs/heads/{plain}")
    if here is None or there is None:
        return here or there or resolved(repository, f"{name}^{{commit}}")
    return here if here == there or is_ancestor(repository, there, here) else there


def resolved(repository: Repository, expression: str) -> str | None:
    """Return the id of the object that an expression refers to, or None if there is none."""
    question = ("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
    # What a full id names never changes, so it is asked only once; a branch may move while the command runs.
    if FULL_ID.match(expression.removesuffix("^{commit}")):
        answer = repository.ask_once(*question, check=False)
    else:
        answer = run_git(repository.root, *question, check=False)
    return answer.text.strip() if answer.status == 0 else None


def is_ignored(repository: Repository, path: str) -> bool:
    """Whether git ignores `path`, which need not exist. A committed path is not ignored."""
    # check-ignore refuses literal pathspecs, which `run_git` sets.
    answer = run_git(
        repository.root, "--no-literal-pathspecs", "check-ignore", "--quiet", "--", f"./{path}", check=False
    )
    if answer.status not in (0, 1):
        raise git_failure("check-ignore", answer)
    return answer.status == 0


class Worktree(Value):
    """A work tree of the repository. `branch` is the short name, or '' for a detached HEAD."""

    path: Path
    commit: str
    branch: str
    locked: bool
    prunable: bool


def local_branches(repository: Repository) -> dict[str, str]:
    """Return the commits of the local branches, by short name."""
    answer = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads/")
    rows = (row.split(" ", 1) for row in answer.text.splitlines())
    return {name: commit for commit, name in rows}


def local_branch(repository: Repository, name: str) -> str | None:
    """Return the commit of a local branch; None if it does not exist."""
    ref = f"refs/heads/{name}"
    return commit_at(repository, ref) if _readable(repository, ref) else local_branches(repository).get(name)


def remote_branches(repository: Repository) -> list[Branch]:
    """Return the branches of the main remote, as of the last fetch."""
    remote = main_remote(repository)
    if not remote:
        return []
    answer = run_git(repository.root, "for-each-ref", "--format=%(objectname) %(refname)", f"refs/remotes/{remote}/")
    rows = (row.split(" ", 1) for row in answer.text.splitlines())
    return [Branch(ref, commit) for commit, ref in rows if not ref.endswith("/HEAD")]


def require_branch_name(repository: Repository, name: str) -> None:
    """Raise WorkpacketError `branch_name_invalid` if git would not accept the name."""
    answer = run_git(repository.root, "check-ref-format", "--branch", name, check=False)
    # `--branch` also expands names such as `@{-1}`, which is not what was typed.
    if answer.status != 0 or answer.text.rstrip("\n") != name:
        raise WorkpacketError("branch_name_invalid", f"{name!r} is not a valid branch name")


def add_branch(repository: Repository, name: str, start: str) -> None:
    """Create a branch at commit `start`. It is an error if the branch exists; an existing branch is never moved."""
    require_branch_name(repository, name)
    if local_branch(repository, name) is not None:
        raise WorkpacketError("branch_exists", f"branch {name} already exists")
    # Without `--no-track`, a setting of the user may make the new branch follow the one that it starts from.
    run_git(repository.root, "branch", "--no-track", "--end-of-options", name, start)


def switch_branch(repository: Repository, name: str, start: str = "") -> None:
    """Check out a branch; if `start` is given, create the branch at that commit. Uncommitted changes are carried over;
    git refuses if one of them would be lost."""
    require_branch_name(repository, name)
    # `--no-guess`: a missing branch is an error. Git would create one with the name of a remote branch.
    created = ("--no-track", "--create", name, start) if start else (name,)
    run_git(repository.root, "switch", "--quiet", "--no-guess", *created)


def add_worktree(repository: Repository, path: Path, branch: str) -> None:
    """Check out the existing `branch` in a new work tree at `path`."""
    require_branch_name(repository, branch)
    if path.exists():
        raise WorkpacketError("worktree_exists", "a file or folder with that name already exists", path=str(path))
    for other in list_worktrees(repository):
        if other.branch == branch:
            raise WorkpacketError(
                "branch_checked_out", f"{branch} is checked out in {other.path}", path=str(other.path)
            )
    run_git(repository.root, "worktree", "add", "--quiet", "--end-of-options", str(path), branch)


def list_worktrees(repository: Repository) -> list[Worktree]:
    """Return all work trees, the main one first."""
    answer = run_git(repository.root, "worktree", "list", "--porcelain", "-z")
    found = []
    for block in answer.text.split("\0\0")[:-1]:
        fields = dict(_field(row) for row in block.split("\0"))
        # The entry of a bare repository itself has no files.
        if "bare" in fields:
            continue
        found.append(
            Worktree(
                path=Path(fields["worktree"]),
                commit=fields.get("HEAD", ""),
                branch=fields.get("branch", "").removeprefix("refs/heads/"),
                locked="locked" in fields,
                prunable="prunable" in fields,
            )
        )
    return found


def _field(row: str) -> tuple[str, str]:
    name, _, value = row.partition(" ")
    return name, value
