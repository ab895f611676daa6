"""The dependency changes that the policy of a commit allows; the policy of the work tree allows none.

[deps] allow = ["zod", "@org/*"] threshold = 50
"""

from __future__ import annotations

from workpacket.documents.lockfiles.comparison import Leave
from workpacket.documents.policy import PolicyDocument
from workpacket.git.objects import read_file_at
from workpacket.git.repository import Repository
from workpacket.model.layout import POLICY_PATH
from workpacket.text.node import Node
from workpacket.value import replace


def leave_at(repository: Repository, commit: str) -> Leave:
    """Return what the policy of the commit allows. '' is the time before the first commit. An unreadable policy allows
    nothing.
    """
    data = read_file_at(repository, commit, POLICY_PATH) if commit else None
    return Leave() if data is None else dependency_leave(PolicyDocument.from_bytes(data).root)


def dependency_leave(root: Node | None) -> Leave:
    """Return what a loaded `policy.toml` allows; values that violate its schema allow nothing."""
    leave = Leave()
    table = root.get("deps") if root is not None else None
    if table is None:
        return leave
    allow, threshold = table.get("allow"), table.get("threshold")
    if allow is not None:
        leave = replace(leave, patterns=tuple(item.text for item in allow.items if item.text))
    if threshold is not None and type(threshold.value) is int and threshold.value >= 0:
        leave = replace(leave, threshold=threshold.value)
    return leave
