"""Prove criteria: the only code that runs the commands of proofs, or checks that a code location exists.

A proof is about a commit. The commit is determined first; the work tree must match it, before and after each command.
An event contains only the length of a command's output and the digest of the cleaned output.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from workpacket.git.objects import ChangedPath, hidden_paths, list_tree, status, tree_names
from workpacket.git.repository import Repository, commit_of, current_branch, head_commit
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.policy import EvidencePolicy
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.rules.packet_evidence import ran_nothing
from workpacket.shell.governing.proof_process import Account, Ended, end_of, keep_output, proof_words, run_limited
from workpacket.shell.work_done import is_own, same_work
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
    """Trees that take turns at one path, so that programs in them cannot distinguish them by their path."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._present = ""
        self._fresh = 0
        self.root = os.path.join(folder, "tree")

    def fresh(self) -> str:
        """Return the name of the other tree."""
        self._fresh += 1
        return f"fresh-{self._fresh}"

    def enter(self, name: str) -> None:
        """Put the tree with this name at the shared path; if there is no such tree yet, put an empty folder there."""
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
        os.chmod(folder, 0o711)  # noqa: S103 - its name is a secret of ours, and what lies in it has rights of its own
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_tree(repository: Repository, folder: str, commit: str) -> ProofTree:
    """Check out the commit into this new folder."""
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
    """Make these paths in the tree the same as in the commit."""
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
    and parents. A test that asks git for this information gets the same answer on both sides.
    """
    header, _, message = _git(tree, "cat-file", "commit", commit).partition("\n\n")
    lines = [line for line in header.split("\n") if line.startswith(("parent ", "author ", "committer ", "encoding "))]
    text = "\n".join([f"tree {_git(tree, 'write-tree').strip()}", *lines, "", message])
    made = _git(tree, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode("utf-8", "surrogateescape"))
    _name_head(tree, made.strip())


def put(tree: ProofTree, texts: Mapping[str, str]) -> None:
    """Replace the contents of these files before anything is run in the tree."""
    for path, text in texts.items():
        with open(os.path.join(tree.root, path), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def give(folder: str, account: Account | None) -> None:
    """Give ownership of a fresh folder to the account that runs in it, contents first: another program of the account
    could replace what the account already owns.
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
    """Run the policy's setup commands in a tree; a failure there says nothing about the work."""
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
    hint = "nothing was recorded; fix [evidence] setup in the policy on the base, or provide what it needs"
    return WorkpacketError("proof_setup_failed", f"the work trees could not be prepared: {command} {why}", hint=hint)


_PLACE = lazy_pattern(r"(?P<path>[^\s:]+):(?P<line>[1-9][0-9]*)\Z")
# How a shell shows `psql $DATABASE_URL` to us.
_URL_WITH_PASSWORD = lazy_pattern(r"://[^\s/:@]*:[^\s/@]+@")
_LONGEST_COMMAND: Final = 2000
_NAMED: Final = 5  # the number of changed paths to name


class Cleaner(Protocol):
    """Removes secrets from a text: the runtime's redactor."""

    @property
    def longest(self) -> int:
        """Return how long a text must be for every secret in it to be recognized."""

    def clean_text(self, text: str) -> str: ...


class Proved(Value):
    """One proof. `row` is what the event stores; `said` is shown to the person at the terminal but is not stored.

    If the work tree does not match the commit, nothing is run: the result is then `not_run`, and no event stores such a
    row.
    """

    row: Mapping[str, Json]
    said: str = ""


class Prover:
    """Proves criteria at one commit: `revision`, or the checked-out commit."""

    def __init__(
        self,
        repository: Repository,
        policy: EvidencePolicy,
        cleaner: Cleaner,
        environment: Mapping[str, str],
        revision: str = "",
    ) -> None:
        self._repository = repository
        self._root = str(repository.root)
        self._policy = policy
        self._cleaner = cleaner
        self._environment = policy.environment(environment)
        self._tree = _look(repository)
        self.uncommitted = [path for path in self._tree.entries if not is_own(path)]
        self.commit = _commit_to_prove(repository, self._tree, revision)

    def prove(self, asked: Sequence[tuple[str, str]]) -> list[Proved]:
        """Return rows with criterion and evidence: `path:line`, or a command, which is run without a shell and only
        once for several criteria.

        Nothing is run unless all commands can be run.
        """
        read = {how: self._read(how) for _, how in asked}
        proved = {how: self._prove(how, words) for how, words in read.items()}
        return [Proved({"criterion": criterion, **proved[how].row}, proved[how].said) for criterion, how in asked]

    def _read(self, how: str) -> Sequence[str]:
        """Return the words of a command; none for a location in a file."""
        require_no_secret(self._cleaner, how)
        place = _PLACE.match(how)
        if place is None or not os.path.isfile(os.path.join(self._root, place["path"])):
            return proof_words(how)
        if not self.uncommitted and not self._holds(place["path"]):
            hint = "give the path relative to the top of the repository, as git ls-files shows it"
            raise WorkpacketError("proof_not_run", f"{place['path']} is not a file in the commit", hint=hint)
        return ()

    def _holds(self, path: str) -> bool:
        """Whether the path is a file in the commit. A file that is not in the commit, or that git ignores, proves
        nothing about the commit.
        """
        if os.path.isabs(path) or path.split("/", maxsplit=1)[0] == "..":
            return False
        return any(entry.path == path and entry.is_file for entry in list_tree(self._repository, self.commit, path))

    def _prove(self, how: str, words: Sequence[str]) -> Proved:
        if self.uncommitted:
            return Proved({"result": "not_run"}, f"was not run: {self.uncommitted[0]} is not committed")
        if words:
            return self._run(how, words)
        place = _PLACE.match(how)
        assert place is not None
        return Proved({"result": _line_result(self._root, place), "proof": [how], "commit": self.commit})

    def _run(self, command: str, words: Sequence[str]) -> Proved:
        if len(command) > _LONGEST_COMMAND:
            hint = "put the command in a script in the repository, and run the script"
            raise WorkpacketError(
                "proof_not_run",
                f"the command has {len(command)} characters; the limit is {_LONGEST_COMMAND}",
                hint=hint,
            )
        most = self._policy.output_bytes
        try:
            ended = run_limited(
                words, self._root, self._environment, seconds=self._policy.timeout_seconds, most_output=most
            )
        except (ValueError, OSError) as error:
            hint = "quote it as one argument: --prove '1=just test'"
            raise WorkpacketError("proof_not_run", f"{command!r} could not be run: {error}", hint=hint) from error
        self._require_unchanged(command)
        text = self._cleaned(ended)
        digest = hashlib.sha256(text.encode()).hexdigest()
        keep_output(self._repository, digest, text)
        nothing = ran_nothing(end_of(text))
        met = ended.exit_code == 0 and ended.limit != "time" and not nothing
        row: dict[str, Json] = {
            "result": "met" if met else "not_met",
            "command": command,
            "commit": self.commit,
            "exit_code": ended.exit_code,
            "log_length": ended.length,
            "milliseconds": ended.milliseconds,
            "log_sha256": digest,
        }
        row |= {"limit": ended.limit} if ended.limit else {}
        return Proved(row, self._said(command, ended, text, nothing))

    def _cleaned(self, ended: Ended) -> str:
        """Clean the output. All of it is searched before it is truncated, because a truncated secret would not be
        recognized.
        """
        text = self._cleaner.clean_text(ended.output.decode("utf-8", "replace"))
        return text[: len(text) - self._cleaner.longest] if len(ended.output) < ended.length else text

    def _said(self, command: str, ended: Ended, text: str, nothing: str) -> str:
        if ended.limit == "time":
            return f"failed: {command} was stopped after {self._policy.timeout_seconds} s, its time limit"
        lines = [line.strip() for line in end_of(text).splitlines() if line.strip()]
        last = nothing or (lines[-1][:200] if lines else "")
        return f"failed: {command} ended with {ended.exit_code}" + (f", saying {last!r}" if last else "")

    def _require_unchanged(self, command: str) -> None:
        after = _look(self._repository)
        if after == self._tree:
            return
        what = "; ".join(_differences(self._tree, after))
        hint = (
            "undo the change (see git status); have the proof write to a temporary folder or to files that git ignores"
        )
        raise WorkpacketError(
            "proof_changed_tree", f"{command!r} {what}, so it proves nothing about the commit", hint=hint
        )


def require_no_secret(cleaner: Cleaner, text: str) -> None:
    """Refuse a secret in a typed proof or reason, which would be recorded in the event unchanged."""
    if cleaner.clean_text(text) != text or _URL_WITH_PASSWORD.search(text):
        message = "the proof contains a secret, which would remain in the log forever"
        hint = (
            "have the program read the secret from a file or a variable; [evidence] env of the policy lists the "
            "variables"
        )
        raise WorkpacketError("secret_in_proof", message, hint=hint)


class _Tree(Value):
    """The work tree: the checked-out commit, and each path that differs from it, with its status letters and digest."""

    commit: str
    branch: str
    entries: Mapping[str, str]
    hidden: tuple[str, ...]  # files that git was told to ignore, and that therefore have no entry


def _look(repository: Repository) -> _Tree:
    entries = {one.path: f"{one.letters} {_digest(repository, one.path)}" for one in status(repository)}
    hidden = tuple(path for path in hidden_paths(repository) if not is_own(path))
    return _Tree(head_commit(repository) or "", current_branch(repository) or "", entries, hidden)


def _digest(repository: Repository, path: str) -> str:
    place = os.path.join(str(repository.root), path)
    try:
        if os.path.islink(place):
            return os.readlink(place)
        with open(place, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _differences(before: _Tree, after: _Tree) -> Iterator[str]:
    if (before.commit, before.branch) != (after.commit, after.branch):
        yield f"moved HEAD from {_place(before)} to {_place(after)}"
    every = sorted(before.entries.keys() | after.entries.keys())
    changed = [path for path in every if before.entries.get(path) != after.entries.get(path)]
    changed += sorted({*before.hidden} ^ {*after.hidden})
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        yield f"changed {', '.join(changed[:_NAMED])}{more}"


def _place(tree: _Tree) -> str:
    return f"{tree.branch or 'a detached HEAD'} at {tree.commit[:12]}"


def _commit_to_prove(repository: Repository, tree: _Tree, revision: str) -> str:
    """Return the commit that the work tree matches; raise an error if it matches none."""
    if not tree.commit:
        raise WorkpacketError("proof_tree_differs", "there is no commit to prove yet", hint="git commit")
    commit = commit_of(repository, revision) if revision else tree.commit
    if not same_work(repository, tree.commit, commit):
        message = f"proofs are run in this work tree, which is at {tree.commit[:12]}, not at {commit[:12]}"
        hint = f"git switch --detach {commit[:12]}, or: git worktree add --detach PATH {commit[:12]}, and submit there"
        raise WorkpacketError("proof_tree_differs", message, hint=hint)
    if tree.hidden:
        message = f"git does not look at {', '.join(tree.hidden[:_NAMED])}, so the work tree may differ from the commit"
        hint = "git sparse-checkout disable; git update-index --no-assume-unchanged --no-skip-worktree PATH"
        raise WorkpacketError("proof_tree_differs", message, hint=hint)
    return commit


def _line_result(root: str, place: re.Match[str]) -> str:
    with open(os.path.join(root, place["path"]), "rb") as stream:
        return "met" if sum(1 for _ in stream) >= int(place["line"]) else "not_met"


def numbered(words: Sequence[str], criteria: Sequence[str], option: str) -> list[tuple[str, str]]:
    """Parse `N=TEXT` as (criterion, TEXT); `all=TEXT` applies to each criterion."""
    found: list[tuple[str, str]] = []
    for word in words:
        number, equals, rest = word.partition("=")
        if equals and number == "all":
            found += [(criterion, rest) for criterion in criteria]
        elif equals and rest and number.isdecimal() and 1 <= int(number) <= len(criteria):
            found.append((criteria[int(number) - 1], rest))
        else:
            hint = f"DONE_MEANS has {len(criteria)} lines; write --{option} '1=...'"
            raise WorkpacketError("invalid_value", f"--{option} {word!r} names no criterion", hint=hint)
    return found
