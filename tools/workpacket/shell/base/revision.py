"""The base revision: the commit whose policy is in force, and what was committed there.

The base is what CI passes, else the remote's default branch, else the repository's main branch; never the work tree,
and never the change that is judged. What a commit holds cannot change, so it is read once in a process.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy_files import FOLDER as POLICY_FOLDER
from workpacket.approvals.policy_files import POLICY_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.approvals.refusal import Refusal
from workpacket.errors import WorkpacketError
from workpacket.git.objects import list_tree, missing_object
from workpacket.git.references import commit_at
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of, default_branch, is_ancestor
from workpacket.git.run import run_git
from workpacket.lifecycle.approval import ANCHORING
from workpacket.model.events import ATTESTATIONS_FOLDER
from workpacket.shell.base.committed import OF_EVERY_JUDGEMENT, committed, read_ahead
from workpacket.shell.base.line import base_line
from workpacket.value import Value

_MANY = 4096
# What every judgement asks for, and one call of git tells.
_LISTED_TOGETHER = (POLICY_FOLDER, ATTESTATIONS_FOLDER)
# Above this number of commits in question it is quicker to list the whole history once.
_FEW = 8


class Base(Value):
    """`commit` is '' where there is no base yet; `chosen` says that somebody named it instead of leaving it to us."""

    repository: Repository
    commit: str
    name: str
    chosen: bool

    @property
    def root_commit(self) -> str:
        return root_commit(self.repository, self.commit) if self.commit else ""

    @property
    def policy(self) -> PolicyFiles:
        """A list of revoked keys that this clone lacks is an error: no list would mean that no key is revoked."""
        files = policy_at(self.repository, self.commit)
        if files.revoked_keys is None:
            identity = tree_at(self.repository, self.commit, POLICY_FOLDER).get(REVOKED_PATH)
            if identity is not None:
                raise missing_object(identity, REVOKED_PATH)
        return files

    @property
    def policy_files(self) -> dict[str, bytes]:
        """All files of the folder of the policy, also those that nothing reads."""
        paths = tree_at(self.repository, self.commit, POLICY_FOLDER)
        return committed(self.repository, self.commit, tuple(paths))


def find_base(repository: Repository, revision: str | None = None) -> Base:
    """The base; WorkpacketError if `revision` names no commit, or the clone lacks the history that has to be judged."""
    if (repository.common_dir / "shallow").exists():
        raise WorkpacketError(
            "history_shallow",
            "this clone holds only the end of the history, and approvals are judged by all of it",
            hint="git fetch --unshallow; for actions/checkout set fetch-depth: 0",
        )
    if revision is not None:
        return Base(repository, _commit(repository, revision), revision, chosen=True)
    branch = default_branch(repository)
    if branch is None:
        return Base(repository, "", "", chosen=False)
    return Base(repository, branch.commit, branch.ref.removeprefix("refs/heads/").removeprefix("refs/remotes/"), False)


def unanchored(base: Base) -> Refusal:
    """No policy at the base, and the command that puts one there."""
    if not base.commit:
        what = "the repository has no main branch with a commit yet"
        return Refusal("policy_unanchored", f"{what}; anchor the policy: {ANCHORING}", POLICY_PATH)
    what = f"the base {base.name} ({base.commit[:12]}) holds no {POLICY_PATH}"
    return Refusal("policy_unanchored", f"{what}; anchor it there: {ANCHORING}", POLICY_PATH)


def _commit(repository: Repository, revision: str) -> str:
    """A full id means the same commit for ever; a name has to be looked up each time.

    git takes a tag for a branch of the same name, and whoever may push a tag would choose the base.
    """
    if len(revision) in {40, 64} and all(digit in "0123456789abcdef" for digit in revision):
        return _commit_with_id(repository, revision)
    named = {kind: commit_at(repository, f"refs/{kind}/{revision}") for kind in ("tags", "heads", "remotes")}
    meant = [f"refs/{kind}/{revision}" for kind, commit in named.items() if commit is not None]
    if len(meant) > 1:
        raise WorkpacketError(
            "revision_ambiguous",
            f"{revision!r} could be {' or '.join(meant)}",
            hint=f"name it in full: --base {meant[-1]}",
        )
    return commit_of(repository, revision)


@lru_cache(maxsize=_MANY)
def _commit_with_id(repository: Repository, identity: str) -> str:
    return commit_of(repository, identity)


@lru_cache(maxsize=_MANY)
def root_commit(repository: Repository, commit: str) -> str:
    """The first commit, along first parents: merging an unrelated history does not change who we are."""
    answer = run_git(repository.root, "rev-list", "--first-parent", "--max-parents=0", "--end-of-options", commit)
    return answer.text.strip()


def policy_at(repository: Repository, commit: str) -> PolicyFiles:
    """The policy files of the commit; the specification, which is asked for next, is read by the same call."""
    if commit:
        read_ahead(repository, (f"{commit}:{path}" for path in OF_EVERY_JUDGEMENT))
    files = committed(repository, commit, (POLICY_PATH, SIGNERS_PATH, REVOKED_PATH))
    return PolicyFiles(files.get(POLICY_PATH), files.get(SIGNERS_PATH), files.get(REVOKED_PATH))


@lru_cache(maxsize=256)
def tree_at(repository: Repository, commit: str, *folders: str) -> dict[str, str]:
    """Paths of the files at or below these folders, with the ids of their contents."""
    if not commit:
        return {}
    if len(folders) == 1 and folders[0] in _LISTED_TOGETHER:
        listed = tree_at(repository, commit, *_LISTED_TOGETHER)
        return {path: identity for path, identity in listed.items() if path.startswith(f"{folders[0]}/")}
    return {entry.path: entry.object_id for entry in list_tree(repository, commit, *folders) if entry.is_file}


def known_to(repository: Repository, commit: str, asked: Iterable[str]) -> frozenset[str]:
    """Which of the commits asked for are `commit` or lie before it."""
    if not commit:
        return frozenset()
    wanted = frozenset(asked)
    if len(wanted) > _FEW:
        return wanted & _history(repository, commit)
    return frozenset(each for each in wanted if each == commit or _is_ancestor(repository, each, commit))


@lru_cache(maxsize=_MANY)
def _is_ancestor(repository: Repository, ancestor: str, descendant: str) -> bool:
    try:
        return is_ancestor(repository, ancestor, descendant)
    except WorkpacketError:
        return False  # git does not know the commit at all


@lru_cache(maxsize=4)
def _history(repository: Repository, commit: str) -> frozenset[str]:
    return frozenset(run_git(repository.root, "rev-list", "--end-of-options", commit).text.split())


def first_seen(repository: Repository, commit: str, folder: str) -> dict[str, tuple[str, int]]:
    """For each file below `folder`: the first commit of the base that held it, and that commit's time."""
    return base_line(repository, commit, folder).first_seen if commit else {}
