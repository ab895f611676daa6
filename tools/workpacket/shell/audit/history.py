"""What git tells an audit: commits that the logs name, files as they were in them, who touched which file last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from workpacket.approvals.instants import write_instant
from workpacket.audit.facts import Change, Commit
from workpacket.git.objects import read_objects
from workpacket.git.repository import Repository
from workpacket.git.revisions import default_branch, head_commit
from workpacket.git.run import run_git
from workpacket.shell.base.revision import known_to

_GOVERNED = ".GOV"


def commits(repository: Repository, wanted: Iterable[str], target: str) -> dict[str, Commit]:
    """Those of the commits that are in this clone; `target` is the commit of the branch that work is merged into."""
    contents = read_objects(repository, sorted({each for each in wanted if each}))
    held = known_to(repository, target, contents) if contents else frozenset()
    return {identity: _commit(identity, data, identity in held) for identity, data in contents.items()}


def _commit(identity: str, data: bytes, on_target: bool) -> Commit:
    text = data.decode("utf-8", "replace")
    header, _, message = text.partition("\n\n")
    fields = dict(line.partition(" ")[::2] for line in reversed(header.split("\n")))
    author = fields.get("author", "").partition(" <")[0]
    moment = fields.get("committer", "0 +0000").rsplit(" ", 2)[-2]
    at = write_instant(datetime.fromtimestamp(int(moment), UTC)) if moment.isdecimal() else "1970-01-01T00:00:00Z"
    return Commit(identity, at, author, message.partition("\n")[0], on_target)


def target_commit(repository: Repository, target: str) -> str:
    """The commit of the target branch; without one that of the main branch, else the one checked out."""
    names = (f"refs/heads/{target}", f"refs/remotes/origin/{target}", target) if target else ()
    for name in names:
        answer = run_git(
            repository.root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False
        )
        if answer.status == 0:
            return answer.text.strip()
    branch = default_branch(repository)
    return branch.commit if branch is not None else head_commit(repository) or ""


def blobs(repository: Repository, names: Iterable[str]) -> dict[str, str | None]:
    """The digests of files as commits hold them, by `<commit>:<path>`; None for one that is not there."""
    wanted = sorted({name for name in names if "\n" not in name})
    found = read_objects(repository, wanted)
    return {name: hashlib.sha256(found[name]).hexdigest() if name in found else None for name in wanted}


def last_changes(repository: Repository, head: str, also: Iterable[str]) -> dict[str, Change]:
    """For each governed file, and each of these, the last commit that touched it."""
    if not head:
        return {}
    answer = run_git(
        repository.root, "log", "--no-renames", "--name-only", "--format=%x01%ct %an", "-z", "--end-of-options", head,
        "--", _GOVERNED, *also,
    )  # fmt: skip
    changes: dict[str, Change] = {}
    for block in answer.text.split("\x01")[1:]:
        header, *paths = block.replace("\n", "\0").split("\0")
        moment, _, author = header.partition(" ")
        at = write_instant(datetime.fromtimestamp(int(moment), UTC))
        for path in paths:
            if path:
                changes.setdefault(path, Change(at, author))
    return changes
