"""What decides about approvals besides the files of the work tree: so that the output of `check` can be remembered.

A verdict of `check` follows from the files below `READ_FROM`, from what git holds of the base and of HEAD, from the
policy that this person saw last, and from the clock. Commits never change, so their names stand for all that they hold.
Where a verdict asked the clock (`Approvals.by_clock`), nothing is remembered of it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from workpacket.errors import WorkpacketError
from workpacket.git.repository import find_repository
from workpacket.git.revisions import head_commit
from workpacket.model.layout import ATTESTATIONS_FOLDER, PACKETS, POLICY_FOLDER, REFINEMENTS
from workpacket.shell.base import find_base, trust_path

# Besides the log, on which every check rests: as folders, with everything below them.
READ_FROM = tuple(f"{folder}/" for folder in (ATTESTATIONS_FOLDER, POLICY_FOLDER, REFINEMENTS, PACKETS))


def deciding(root: str) -> tuple[str, ...] | None:
    """The names of it; None where they cannot be told, and nothing may be remembered."""
    try:
        repository = find_repository(Path(root))
        base = find_base(repository)
        head = head_commit(repository) or ""
        return base.commit, base.name, head, _pinned(base.root_commit)
    except (WorkpacketError, OSError):
        return None


def _pinned(root_commit: str) -> str:
    if not root_commit:
        return ""
    try:
        return hashlib.sha256(trust_path(root_commit).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
