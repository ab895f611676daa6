"""What a repository decides about its dependencies: the table `[deps]` of `.GOV/policy/policy.toml`.

[deps]
allow = ["zod", "@org/*"]
threshold = 50
"""

from __future__ import annotations

from workpacket.documents.lockfiles.leave import Leave
from workpacket.text.node import Node
from workpacket.value import replace


def dependency_leave(root: Node | None) -> Leave:
    """The leave that a loaded `policy.toml` gives; what its schema does not allow gives none."""
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
