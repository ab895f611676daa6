"""LangGraph checkpoints in our log: `WorkpacketSaver`, for `pip install 'workpacket[langgraph]'`.

LangGraph is imported only when the name is used; if it is missing, the error says what to install.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from workpacket.runtime.catalog import RESERVED
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.jcs import SEALED

if TYPE_CHECKING:
    from workpacket.runtime.langgraph.saver import WorkpacketSaver


__all__ = ["THREADS", "WorkpacketSaver"]

THREADS = f"{RESERVED}/"  # the prefix of their stream names


def __getattr__(name: str) -> object:
    if name != "WorkpacketSaver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_langgraph()
    from workpacket.runtime.langgraph.saver import WorkpacketSaver

    return WorkpacketSaver


def require_langgraph() -> None:
    if find_spec("langgraph") is None or find_spec("langgraph.checkpoint") is None:
        raise RuntimeFault(
            "the saver requires langgraph-checkpoint",
            code="storage_unsuitable",
            hint="pip install 'workpacket[langgraph]'",
        )


def said_in(payload: bytes) -> bytes:
    """Return the bytes that this payload adds: all of them, or only the new ones in a patch."""
    if find_spec("ormsgpack") is None or payload.startswith(SEALED):
        return b""
    from workpacket.runtime.langgraph.parcels import brought

    return brought(payload)
