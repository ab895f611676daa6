"""Savers on every store, checkpoints as LangGraph makes them, and a small graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import Annotated, Any, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from workpacket.runtime.langgraph import WorkpacketSaver
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.runtime import Settings
from workpacket.runtime.stores.contract import Store, contents_of

SETTINGS = Settings(actor="test", redactor=Redactor(values=("very-secret-value",)))


class State(TypedDict):
    number: int
    text: Annotated[list[str], add]


def on(store: Store) -> WorkpacketSaver:
    return WorkpacketSaver(store, settings=SETTINGS)


def graph(saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """One node that counts and answers."""
    builder = StateGraph(State)
    builder.add_node("work", lambda state: {"number": state["number"] + 1, "text": [f"answer {len(state['text'])}"]})
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


def thread(name: str, checkpoint: str | None = None, **more: Any) -> RunnableConfig:
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    return {"configurable": {"thread_id": name, "checkpoint_ns": "", **named, **more}}


def put(
    saver: WorkpacketSaver,
    config: RunnableConfig,
    values: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
) -> RunnableConfig:
    """A checkpoint with these channels that goes on from the one that `config` names."""
    checkpoint: Checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = dict(values)
    checkpoint["channel_versions"] = dict.fromkeys(values, 1)
    described = cast("CheckpointMetadata", {"source": "loop", "step": 1, **(metadata or {})})
    return saver.put(config, checkpoint, described, dict.fromkeys(values, 1))


def conversation(saver: WorkpacketSaver, name: str, turns: int, **metadata: Any) -> list[RunnableConfig]:
    """So many checkpoints, each of which has one text more."""
    made: list[RunnableConfig] = []
    for number in range(turns):
        config = made[-1] if made else thread(name)
        made.append(put(saver, config, {"text": texts(number)}, metadata))
    return made


def texts(number: int) -> Sequence[str]:
    return [f"message {one}: {'lorem ipsum ' * 20}" for one in range(number + 1)]


def values(saver: WorkpacketSaver, config: RunnableConfig) -> Mapping[str, Any]:
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


def stored_bytes(store: Store) -> bytes:
    """Everything the store would give away: each event, and each payload that is not erased."""
    from workpacket.runtime.langgraph.thread import said_in_thread

    found: list[bytes] = []
    for head in store.heads():
        for event, said in said_in_thread(store, head.stream):
            found += [repr(event).encode("utf-8"), said or b""]
    return b"\n".join(found)


def require_sound(store: Any) -> None:
    """Every chain, payload and index entry of the store verifies."""
    assert contents_of(store) == []
