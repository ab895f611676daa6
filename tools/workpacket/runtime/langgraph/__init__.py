"""LangGraph checkpoints in our log: `WorkpacketSaver`, for `pip install 'workpacket[langgraph]'`.

LangGraph is imported only when the name is used; if it is missing, the error says what to install.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from workpacket.runtime.catalog import RESERVED
from workpacket.runtime.errors import RuntimeFault

if TYPE_CHECKING:
    from workpacket.runtime.langgraph.saver import WorkpacketSaver
    from workpacket.runtime.records.events import Event
    from workpacket.runtime.stores.contract import Store


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


def said_in(store: Store, stream: str) -> Iterator[tuple[Event, bytes | None]]:
    """Yield the events of a thread with what each one adds: everything, or only the new parts if it is a patch. Events
    whose payload was erased are left out; nothing is said of one that is encrypted.
    """
    if find_spec("ormsgpack") is not None:
        from workpacket.runtime.langgraph.thread import said_in_thread

        yield from said_in_thread(store, stream)
