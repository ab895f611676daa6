"""What a verdict on an approval needs to know of the world, what a person is asked to sign, and what checks find.

What is here is asked by every check before it reads anything, to find out on what its output rests. So it imports next
to nothing.
"""

from __future__ import annotations

import os

from workpacket.model.layout import ATTESTATIONS_FOLDER, PACKETS, POLICY_FOLDER, POLICY_PATH, REFINEMENTS

# Where verdicts on approvals are read from, besides the log, on which every check rests.
READ_FROM = tuple(f"{folder}/" for folder in (ATTESTATIONS_FOLDER, POLICY_FOLDER, REFINEMENTS, PACKETS))
_LARGEST = 256 * 1024


def approvals_here(root: str) -> bool:
    """Whether there are attestations, or a policy that speaks of approvals."""
    if os.path.lexists(os.path.join(root, ATTESTATIONS_FOLDER)):
        return True
    try:
        with open(os.path.join(root, POLICY_PATH), "rb") as policy:
            return b"approvals" in policy.read(_LARGEST)
    except OSError:
        return False


def deciding(root: str) -> tuple[str, ...] | None:
    """What decides besides files of the work tree and the clock: base, HEAD, and the policy that this person saw last.

    Commits never change, so their names stand for all that they hold. None where they cannot be told.
    """
    import hashlib
    from pathlib import Path

    from workpacket.errors import WorkpacketError
    from workpacket.git.repository import find_repository
    from workpacket.git.revisions import head_commit
    from workpacket.shell.base import find_base, trust_path

    try:
        repository = find_repository(Path(root))
        base = find_base(repository)
        head = head_commit(repository) or ""
        seen = trust_path(base.root_commit) if base.root_commit else None
        pinned = hashlib.sha256(seen.read_bytes()).hexdigest() if seen is not None and seen.exists() else ""
    except (WorkpacketError, OSError):
        return None
    return base.commit, base.name, head, pinned
