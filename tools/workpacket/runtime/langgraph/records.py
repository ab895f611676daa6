"""The records of a thread, and the names of its stream. Times, values and channel names stand in payloads only.

    langgraph.checkpoint   id, parent and namespace of a checkpoint; on which record its payload is a patch
    langgraph.writes       what a task wrote before the next checkpoint
    langgraph.deleted      which checkpoints are no more, and which records lose their payload for it
    langgraph.erased       that they have lost it: a deletion that was cut short is finished by whoever comes next

A thread is one stream, with all its namespaces, so that its records have one order; it is not a run and has no '@'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.records.kinds import Kind

CHECKPOINT, WRITES, DELETED, ERASED = (f"langgraph.{name}" for name in ("checkpoint", "writes", "deleted", "erased"))

KINDS: Mapping[str, Kind] = {
    kind.type: kind
    for kind in (
        Kind(
            CHECKPOINT, dict.fromkeys(("ns", "id", "parent", "base", "with", "depth", "grown", "run", "of"), "public")
        ),
        Kind(WRITES, dict.fromkeys(("ns", "id", "task", "base", "of"), "public")),
        Kind(DELETED, {"checkpoints": "public", "records": "public", "reason": "public", "by": "scan"}),
        Kind(ERASED, {"deleted": "public"}),
    )
}

LONGEST_NAME = 200


class Place(NamedTuple):
    """One checkpoint of a thread."""

    namespace: str
    id: str


class OlderId(str):
    """The id of a checkpoint that was handed out as an older one, by `list` or as the parent of what was read.

    LangGraph passes the configuration of what it read on to `put`, so that a put with such an id branches on purpose.
    A run that read the newest checkpoint has a plain id: listing the history elsewhere does not excuse it.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """As a plain string: a class of strings with an equality of its own is asked first."""
        return str.__eq__(self, other) if type(other) in {str, OlderId} else NotImplemented


def stream_of(thread: str) -> str:
    """The stream of a thread. A very long name is kept as its hash."""
    if len(thread) > LONGEST_NAME:
        thread = f"long-{hashlib.sha256(thread.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return THREADS + quote(thread, safe=" !()*+,:;=~", errors="surrogatepass")


def thread_of(stream: str) -> str:
    return unquote(stream.removeprefix(THREADS), errors="surrogatepass")


def run_mark(run_id: object) -> str:
    """By which the checkpoints of a run are found; the id itself stands in the metadata, which can be erased."""
    return hashlib.sha256(str(run_id).encode("utf-8", "surrogatepass")).hexdigest()[:16]
