"""Approvals in the shell: the facts for a verdict, the text for a person to sign, and the findings of checks.

Every check calls this module before it reads anything, to find out what its output depends on. The module therefore
imports almost nothing.
"""

from __future__ import annotations

import os

from workpacket.model.layout import (
    ATTESTATIONS_FOLDER,
    LARGEST_DATA,
    LOG_FOLDER,
    PACKETS,
    POLICY_FOLDER,
    POLICY_PATH,
    REFINEMENTS,
)
from workpacket.shell.tree import may_name

# The files that determine verdicts on approvals, besides the log, on which every check depends.
READ_FROM = tuple(f"{folder}/" for folder in (ATTESTATIONS_FOLDER, POLICY_FOLDER, REFINEMENTS, PACKETS))


def approvals_here(root: str) -> bool:
    """Whether there are attestations, or a policy that mentions approvals."""
    if os.path.lexists(os.path.join(root, ATTESTATIONS_FOLDER)):
        return True
    try:
        with open(os.path.join(root, POLICY_PATH), "rb") as policy:
            return may_name(policy.read(LARGEST_DATA), b"approvals")
    except OSError:
        return False


def commits_decide(root: str) -> bool:
    """Whether the result of a check may depend on commits: there is a log, whose moves may need approvals, or
    `approvals_here` is true.
    """
    return os.path.lexists(os.path.join(root, LOG_FOLDER)) or approvals_here(root)


def deciding(root: str) -> tuple[str, ...] | None:
    """Return what the result depends on besides the work tree and the clock: the base, HEAD, and the policy that this
    person saw last. None if they cannot be determined.

    Commits never change, so their ids represent their contents.
    """
    import hashlib
    from pathlib import Path

    from workpacket.git.repository import find_repository, head_commit
    from workpacket.problem import WorkpacketError
    from workpacket.shell.base import find_base, trust_path

    try:
        repository = find_repository(Path(root))
        base = find_base(repository)
        head = head_commit(repository) or ""
        seen = trust_path(base.root_commit) if base.root_commit else None
        pinned = hashlib.sha256(seen.read_bytes()).hexdigest() if seen is not None and seen.exists() else ""
    except (WorkpacketError, OSError):
        # With None, nothing is cached: the command itself reports what is wrong.
        return None
    return base.commit, base.name, head, pinned
