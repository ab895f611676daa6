"""What a record of a thread says of its own, to be searched; nothing where LangGraph's extra is not installed."""

from __future__ import annotations

from importlib.util import find_spec


def said_in(payload: bytes) -> bytes:
    """The bytes that this payload brought: all of them, or what a patch adds."""
    if find_spec("ormsgpack") is None:
        return b""
    from workpacket.runtime.langgraph.parcels import brought

    return brought(payload)
