"""What a verdict on an approval needs to know of the world, what a person is asked to sign, and what checks find.

Whether a repository has anything to do with signed approvals: asked on every check, so it reads next to nothing.
"""

from __future__ import annotations

import os

from workpacket.model.layout import ATTESTATIONS_FOLDER, POLICY_PATH

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
