"""Which states the policy has had on the base: an approval of a change is used up when the change arrives there.

Without that, the approval that once added a key could bring the key back after it was removed.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from workpacket.approvals.policy_files import FOLDER
from workpacket.approvals.statement import Subject
from workpacket.git.objects import read_blobs
from workpacket.git.repository import Repository
from workpacket.git.run import run_git
from workpacket.shell.base.revision import tree_at


@lru_cache(maxsize=16)
def policy_states(repository: Repository, commit: str) -> dict[tuple[Subject, ...], tuple[str, ...]]:
    """The states of the policy, as subjects, each with the commits of the base that brought it about."""
    if not commit:
        return {}
    answer = run_git(
        repository.root, "log", "--first-parent", "--diff-merges=first-parent", "--format=%H", "--end-of-options",
        commit, "--", FOLDER,
    )  # fmt: skip
    states: dict[tuple[Subject, ...], tuple[str, ...]] = {}
    for each in answer.text.split():
        state = _state(repository, each)
        states[state] = (*states.get(state, ()), each)
    return states


def _state(repository: Repository, commit: str) -> tuple[Subject, ...]:
    entries = tree_at(repository, commit, FOLDER)
    contents = read_blobs(repository, entries.values())
    digests = {path: hashlib.sha256(contents[identity]).hexdigest() for path, identity in entries.items()}
    return tuple(sorted(Subject(path, digest) for path, digest in digests.items()))
