"""Events that git removed, and where git still has them.

A revert, a merge with `-s ours` or `git rm` removes events that HEAD's history has; after a rebase, a reset or a
deletion of a branch, events may be on no branch at all. Their files are in commits that a branch, the reflog or the
stash refers to, or that nothing refers to any more. An event is its bytes: the name is their digest, so what is found
anywhere is what was lost.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from workpacket.digests import sha256
from workpacket.git.objects import changes_before, list_tree, read_objects
from workpacket.git.repository import Repository, head_commit, reference_tips
from workpacket.git.run import run_git
from workpacket.ledger.log import is_event_name
from workpacket.model.layout import APPEND_ONLY_FOLDERS, ENVELOPE_SUFFIX
from workpacket.model.plan import FileChange, Moment, Plan, digest
from workpacket.shell.governed_files import append_only_paths, read_logged
from workpacket.shell.transactions.transaction import writing
from workpacket.value import Value

# Git simplifies the history of a path: it leaves out the side of a merge whose version was dropped, which is the one
# that is searched for here.
_EVERY_SIDE = ("--full-history", "-m")
# Git looks at every object that nothing refers to.
_PATIENCE = 1800.0
# Commits on one command line, whose length the system limits.
_AT_ONCE = 500


# Where git keeps what a command of its own replaced or is working on.
_NOT_BRANCHES = ("refs/stash", "refs/original/", "refs/bisect/", "refs/rewritten/", "refs/worktree/")


class LostEvent(Value):
    """A write-once file that is missing or damaged here: its bytes, the name of the place where git has it, and why it
    counts as lost.
    """

    path: str
    data: bytes
    where: str
    why: str


class _Added(Value):
    """Where a file was added: its blob and its commit."""

    blob: str
    commit: str


def lost_events(repository: Repository, packets: Collection[str] = ()) -> list[LostEvent]:
    """Return the events that are not here although HEAD's history has them, an event here follows them, or no branch
    has them; and the envelopes lost in the same way. With `packets`, return only the events of these packets.
    """
    root = str(repository.root)
    files = {path: read_logged(root, path) for path in append_only_paths(root)}
    here = {path: data for path, data in files.items() if _is_whole(path, data)}
    head = head_commit(repository)
    passed = dict(_added(repository, head)) if head is not None else {}
    # The last one wins: a commit in the history of HEAD is a better place to name than one that nothing refers to.
    known = {**dict(_dangling(repository)), **dict(_added(repository, "", "--all", "--reflog")), **passed}
    elsewhere = _on_branches(repository)
    wanted = {
        path: "HEAD's history has it" if path in passed else "no branch has it"
        for path in known
        if path not in here and (path in passed or path not in elsewhere)
    }
    contents = _contents(repository, known, [path for path in known if path not in here])
    waiting = [*here.values(), *(contents[path] for path in wanted if path in contents)]
    by_name = {path.rpartition("/")[2]: path for path in contents}
    # Events name their parents by digest, so each one leads to all that are missing before it, whatever removed them.
    while waiting:
        for parent in _parents(waiting.pop()):
            path = by_name.get(f"{parent}.json", "")
            if path and path not in wanted:
                wanted[path] = "an event here follows it"
                waiting.append(contents[path])
    names = _names_of_commits(repository)
    return [
        LostEvent(
            path, contents[path], names.get(known[path].commit, f"dangling commit {known[path].commit[:12]}"), why
        )
        for path, why in sorted(wanted.items())
        if path in contents and (not packets or path.split("/")[2] in packets)
    ]


def bring_back(repository: Repository, lost: Sequence[LostEvent], moment: Moment) -> tuple[str, ...]:
    """Write the events as git has them, also in place of damaged ones, and return their paths."""
    with writing(repository, "recover") as transaction:
        root = str(repository.root)
        here = frozenset(append_only_paths(root))
        changes = (
            FileChange(each.path, digest(read_logged(root, each.path)) if each.path in here else None, each.data)
            for each in lost
        )
        return transaction.apply(Plan("recover", moment.tx, restored=tuple(changes)))


def _is_whole(path: str, data: bytes) -> bool:
    """Whether the file's name is its digest. This is false for a path, from a forged tree, to which no file can be
    written."""
    folder, _, name = path.rpartition("/")
    written_once = (is_event_name(name) or name.endswith(ENVELOPE_SUFFIX)) and ".." not in folder.split("/")
    return written_once and name.startswith(sha256(data).hexdigest())


def _added(repository: Repository, commit: str, *options: str) -> Iterator[tuple[str, _Added]]:
    """Yield each write-once file that these commits or their ancestors added or changed."""
    start = commit or next(iter(reference_tips(repository)), "")
    if not start:
        return
    history = changes_before(repository, start, *APPEND_ONLY_FOLDERS, options=(*_EVERY_SIDE, *options), form="%H")
    for identity, changes in history:
        yield from ((change.path, _Added(change.blob, identity)) for change in changes if change.blob)


def _dangling(repository: Repository) -> Iterator[tuple[str, _Added]]:
    """Yield the files that were added by unreachable commits that git has not yet removed."""
    # Without the second option, git also verifies the contents of every file in the history.
    options = ("--unreachable", "--connectivity-only", "--no-progress")
    answer = run_git(repository.root, "fsck", *options, check=False, timeout=_PATIENCE)
    commits = [row.split(" ")[2] for row in answer.text.splitlines() if row.startswith("unreachable commit ")]
    for start in range(0, len(commits), _AT_ONCE):
        first, *others = commits[start : start + _AT_ONCE]
        yield from _added(repository, first, *others)


def _on_branches(repository: Repository) -> frozenset[str]:
    """Return the write-once files at the tips of all branches and tags."""
    tips = (commit for commit, name in reference_tips(repository).items() if not name.startswith(_NOT_BRANCHES))
    return frozenset(entry.path for tip in tips for entry in list_tree(repository, tip, *APPEND_ONLY_FOLDERS))


def _contents(repository: Repository, known: Mapping[str, _Added], paths: Iterable[str]) -> dict[str, bytes]:
    """Return the bytes of those files whose name is their digest; all others were already damaged in the commit."""
    found = {path: known[path].blob for path in paths}
    read = read_objects(repository, found.values())
    return {path: read[blob] for path, blob in found.items() if blob in read and _is_whole(path, read[blob])}


def _parents(data: bytes) -> Iterator[str]:
    with suppress(ValueError):
        value = json.loads(data)
        parents = value.get("parents") if isinstance(value, dict) else None
        yield from map(str, parents if isinstance(parents, list) else ())


def _names_of_commits(repository: Repository) -> dict[str, str]:
    """Return a name to show for each commit that a branch, the stash or the reflog leads to."""
    names: dict[str, str] = {}
    for options in (("--all", "--reflog"), ("refs/stash",)):
        answer = run_git(repository.root, "rev-list", *options, check=False)
        label = "refs/stash" if options == ("refs/stash",) else "commit {}"
        names.update((commit, label.format(commit[:12])) for commit in answer.text.split())
    reflog = run_git(repository.root, "log", "--walk-reflogs", "--all", "--format=%H %gD", check=False)
    # Oldest first, so that the newest entry of the reflog names a commit.
    for row in reversed(reflog.text.splitlines()):
        commit, _, name = row.partition(" ")
        if not name.startswith("refs/stash"):
            names[commit] = name
    # A commit on a branch is named by itself: entries of the reflog are renumbered with every move of a branch, and
    # expire.
    listed = run_git(repository.root, "rev-list", "--branches", "--remotes", "--tags", check=False)
    names.update((commit, f"commit {commit[:12]}") for commit in listed.text.split())
    return names
