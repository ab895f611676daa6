"""The foreign forms of a checkpoint: name, and the module below workpacket.bridges that holds its `BRIDGE`."""

from __future__ import annotations

BRIDGES: dict[str, str] = {
    "commit": "commit_bridge",
}
