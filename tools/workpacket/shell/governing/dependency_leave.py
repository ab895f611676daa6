"""The leave that the policy gives for dependencies, as a commit has it: that of the work tree gives none."""

from __future__ import annotations

from workpacket.documents.lockfiles.comparison import Leave
from workpacket.documents.policy import PolicyDocument
from workpacket.git.objects import read_file_at
from workpacket.git.repository import Repository
from workpacket.lifecycle.policy import dependency_leave
from workpacket.model.layout import POLICY_PATH


def leave_at(repository: Repository, commit: str) -> Leave:
    """'' is the time before the first commit. A policy that cannot be read gives no leave."""
    data = read_file_at(repository, commit, POLICY_PATH) if commit else None
    return Leave() if data is None else dependency_leave(PolicyDocument.from_bytes(data).root)
