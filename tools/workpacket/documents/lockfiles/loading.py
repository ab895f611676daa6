"""From a loaded text to its root: what could not be loaded is malformed, at its own place."""

from __future__ import annotations

from workpacket.documents.lockfiles.dependencies import Malformed, malformed
from workpacket.text.fault import Fault
from workpacket.text.loaded import Loaded
from workpacket.text.node import Node


def rooted(loaded: Loaded) -> Node:
    """The root, a mapping. The message says what the strict loader objects to, with its code."""
    if loaded.root is None:
        first = loaded.faults[0]
        raise Malformed(Fault("lockfile_malformed", first.start, first.end, f"{first.message} ({first.code})"))
    if not isinstance(loaded.root.value, dict):
        raise malformed(loaded.root, "the file holds no mapping")
    return loaded.root
