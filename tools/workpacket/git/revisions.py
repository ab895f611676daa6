"""Revisions: from a name to a commit, and how commits lie to each other."""

from __future__ import annotations

from workpacket.errors import WorkpacketError
from workpacket.git.references import commit_at, symbolic_target
from workpacket.git.repository import Repository
from workpacket.git.run import git_failure, run_git
from workpacket.value import Value


class Branch(Value):
    """A branch by its full reference and the commit it stands at."""

    ref: str
    commit: str


def commit_of(repository: Repository, revision: str) -> str:
    """The full id of the commit that `revision` names; WorkpacketError `unknown_revision` if there is none."""
    commit = _resolve(repository, f"{revision}^{{commit}}")
    if commit is None:
        raise WorkpacketError(
            "unknown_revision",
            f"{revision!r} names no commit here",
            hint="Look at: git log --oneline --all; in a shallow clone fetch more: git fetch --unshallow",
        )
    return commit


def head_commit(repository: Repository) -> str | None:
    """The commit checked out, None before the first one."""
    return commit_at(repository, "HEAD")


def current_branch(repository: Repository) -> str | None:
    """The short name of the branch checked out; None for a detached HEAD."""
    target = symbolic_target(repository, "HEAD")
    return target.removeprefix("refs/heads/") or None


def branch_names(repository: Repository) -> list[str]:
    """The short names of all branches, remote ones too."""
    listed = run_git(repository.root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes")
    return listed.text.split()


def is_ancestor(repository: Repository, ancestor: str, descendant: str) -> bool:
    """Whether the commit `ancestor` is `descendant` or lies before it."""
    answer = run_git(
        repository.root, "merge-base", "--is-ancestor", "--end-of-options", ancestor, descendant, check=False
    )
    if answer.status not in (0, 1):
        raise git_failure("merge-base", answer)
    return answer.status == 0


def merge_base(repository: Repository, left: str, right: str) -> str | None:
    """A best common ancestor; None when the histories have nothing in common."""
    answer = run_git(repository.root, "merge-base", "--end-of-options", left, right, check=False)
    if answer.status not in (0, 1):
        raise git_failure("merge-base", answer)
    return answer.text.split("\n", 1)[0] or None


def root_commits(repository: Repository, commit: str) -> tuple[str, ...]:
    """The commits without parents from which `commit` descends, sorted."""
    answer = run_git(repository.root, "rev-list", "--max-parents=0", "--end-of-options", commit)
    return tuple(sorted(answer.text.split()))


def default_branch(repository: Repository, remote: str = "origin") -> Branch | None:
    """What the remote calls its default branch; without a remote, the repository's main branch."""
    target = symbolic_target(repository, f"refs/remotes/{remote}/HEAD")
    candidates = [target] if target else []
    if not candidates:
        configured = repository.settings.get("init.defaultbranch", "")
        names = dict.fromkeys(name for name in (configured, "main", "master") if name)
        candidates = [f"refs/remotes/{remote}/{name}" for name in names] + [f"refs/heads/{name}" for name in names]
    for ref in candidates:
        commit = commit_at(repository, ref)
        if commit is not None:
            return Branch(ref, commit)
    return None


def _resolve(repository: Repository, expression: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", expression, check=False)
    return answer.text.strip() if answer.status == 0 else None
