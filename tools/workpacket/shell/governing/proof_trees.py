"""Trees in which proofs are run: fresh checkouts outside the repository, so that no file of a work tree affects them.

A tree is a separate repository that borrows the objects of this one: programs may use git in it, and nothing that they
do reaches the branches of this one. Ignored folders with installed packages are linked.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from workpacket.errors import WorkpacketError
from workpacket.git.objects import ChangedPath, tree_names
from workpacket.git.repository import Repository
from workpacket.git.run import run_git
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.shell.governing.proof_process import Account, end_of, proof_words, run_limited
from workpacket.value import Value

# Folders with packages that were installed for the work tree, and in which programs are found through PATH.
_LINKED: Final = (".venv", "venv", "node_modules")
_CHECKOUT_SECONDS: Final = 600.0
_BRANCH: Final = "refs/heads/proof"


class ProofTree(Value):
    """One tree. `root` is a path without links."""

    root: str
    git: Mapping[str, str]


class ProofPlace:
    """Trees that take turns at one place, so that programs in them cannot distinguish them by their path."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._present = ""
        self._fresh = 0
        self.root = os.path.join(folder, "tree")

    def fresh(self) -> str:
        """Return the name of another tree."""
        self._fresh += 1
        return f"fresh-{self._fresh}"

    def enter(self, name: str) -> None:
        """Put the tree of this name at the place; if there is no such tree yet, put an empty folder there."""
        if name == self._present:
            return
        if self._present:
            os.rename(self.root, os.path.join(self._folder, f"away-{self._present}"))
        away = os.path.join(self._folder, f"away-{name}")
        if os.path.isdir(away):
            os.rename(away, self.root)
        self._present = name


@contextmanager
def scratch_folder(*, shared: bool = False) -> Iterator[str]:
    """Create a temporary folder. With `shared`, another account can enter the trees in it, and nothing else."""
    # Without links: runners report real paths, which are compared with it.
    folder = os.path.realpath(tempfile.mkdtemp(prefix="workpacket-proof-"))
    if shared:
        os.chmod(folder, 0o711)  # noqa: S103 - its name is secret, and its contents have their own permissions
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_tree(repository: Repository, folder: str, commit: str) -> ProofTree:
    """Check out the commit in this new folder."""
    os.makedirs(folder)
    hidden = os.path.join(folder, ".git")
    # Every place is named, so that variables which git sets for a hook of the user's repository have no effect.
    tree = ProofTree(
        folder,
        {
            "GIT_DIR": hidden,
            "GIT_WORK_TREE": folder,
            "GIT_COMMON_DIR": hidden,
            "GIT_INDEX_FILE": os.path.join(hidden, "index"),
            "GIT_OBJECT_DIRECTORY": os.path.join(hidden, "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        },
    )
    form = ("--object-format=sha256",) if len(commit) == 64 else ()
    # An empty template: neither hooks nor settings of the user are copied.
    run_git(Path(folder), "init", "--quiet", "--template=", *form, folder, environment=tree.git)
    borrowed = os.path.join(hidden, "objects", "info", "alternates")
    os.makedirs(os.path.dirname(borrowed), exist_ok=True)
    with open(borrowed, "w", encoding="utf-8") as file:
        file.write(f"{repository.common_dir / 'objects'}\n")
    _git(tree, "checkout", "--quiet", "--detach", commit)
    _name_head(tree, commit)
    _link_installed(repository, tree, commit)
    return tree


def _git(tree: ProofTree, *arguments: str, stdin: bytes | None = None) -> str:
    answer = run_git(
        Path(tree.root), "-c", f"core.hooksPath={os.devnull}", "-c", "core.logAllRefUpdates=false", *arguments,
        stdin=stdin, timeout=_CHECKOUT_SECONDS, environment=tree.git,
    )  # fmt: skip
    return answer.text


def _name_head(tree: ProofTree, commit: str) -> None:
    _git(tree, "update-ref", _BRANCH, commit)
    _git(tree, "symbolic-ref", "HEAD", _BRANCH)


def _link_installed(repository: Repository, tree: ProofTree, commit: str) -> None:
    tracked = tree_names(repository, commit)
    for name in _LINKED:
        place = os.path.join(str(repository.root), name)
        # What the commit itself has under this name is what is tested.
        if name not in tracked and os.path.isdir(place):
            os.symlink(place, os.path.join(tree.root, name), target_is_directory=True)


def lay_over(tree: ProofTree, commit: str, changed: Sequence[ChangedPath]) -> None:
    """Make these paths of the tree the same as in the commit."""
    taken = "".join(f"{change.path}\0" for change in changed if change.letter != "D")
    if taken:
        named = ("--pathspec-from-file=-", "--pathspec-file-nul")
        _git(tree, "checkout", "--quiet", commit, *named, stdin=taken.encode("utf-8", "surrogateescape"))
    for change in changed:
        place = os.path.join(tree.root, change.path)
        if change.letter == "D" and os.path.lexists(place):
            os.unlink(place)
    gone = "".join(f"{change.path}\0" for change in changed if change.letter == "D")
    if gone:
        _git(tree, "update-index", "--force-remove", "-z", "--stdin", stdin=gone.encode("utf-8", "surrogateescape"))


def pose_as(tree: ProofTree, commit: str) -> None:
    """Make git in the tree report what it reports for the commit, except for the files: the same message, author, dates
    and parents. A test that asks git where it is gets the same answer on both sides.
    """
    header, _, message = _git(tree, "cat-file", "commit", commit).partition("\n\n")
    lines = [line for line in header.split("\n") if line.startswith(("parent ", "author ", "committer ", "encoding "))]
    text = "\n".join([f"tree {_git(tree, 'write-tree').strip()}", *lines, "", message])
    made = _git(tree, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode("utf-8", "surrogateescape"))
    _name_head(tree, made.strip())


def put(tree: ProofTree, texts: Mapping[str, str]) -> None:
    """Replace the texts of these files before anything is run in the tree."""
    for path, text in texts.items():
        with open(os.path.join(tree.root, path), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def give(folder: str, account: Account | None) -> None:
    """Give a fresh folder to the account that runs in it, contents first: another program of the account could replace
    what it already owns.
    """
    if account is None:
        return
    for place, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            os.lchown(os.path.join(place, name), account.uid, account.gid)
    os.lchown(folder, account.uid, account.gid)


def prepare(
    tree: ProofTree, policy: EvidencePolicy, environment: Mapping[str, str], account: Account | None = None
) -> None:
    """Run the setup commands of the policy in a tree; a failure there says nothing about the work."""
    for command in policy.setup:
        try:
            ended = run_limited(
                proof_words(command),
                tree.root,
                environment,
                seconds=policy.timeout_seconds,
                most_output=policy.output_bytes,
                account=account,
            )
        except (ValueError, OSError) as error:
            raise _unprepared(command, str(error)) from error
        if ended.limit == "time" or ended.exit_code != 0:
            lines = end_of(ended.output.decode("utf-8", "replace")).strip().splitlines()
            how = "was stopped at its time limit" if ended.limit == "time" else f"ended with {ended.exit_code}"
            raise _unprepared(command, f"{how}, saying {lines[-1][:200]!r}" if lines else how)


def _unprepared(command: str, why: str) -> WorkpacketError:
    hint = "nothing was recorded; correct [evidence] setup in the policy on the base, or provide what it needs"
    return WorkpacketError("proof_setup_failed", f"the trees could not be prepared: {command} {why}", hint=hint)
