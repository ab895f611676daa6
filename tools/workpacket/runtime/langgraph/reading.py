"""The reading half of the saver: checkpoints, what tasks wrote after them, and the history of a channel."""

from __future__ import annotations

import builtins
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.langgraph.asynchronous import AsyncCalls
from workpacket.runtime.langgraph.cleaning import Cleaner
from workpacket.runtime.langgraph.contents import Contents
from workpacket.runtime.langgraph.history import History, Saved
from workpacket.runtime.langgraph.parcels import CheckpointParts, Typed, checkpoint_parts, task_writes
from workpacket.runtime.langgraph.records import OlderId, Place, stream_of, thread_of
from workpacket.runtime.langgraph.thread import Pen, Thread
from workpacket.runtime.runtime import Settings
from workpacket.runtime.stores.contract import Store

HELD = 256  # histories held at once


class ReadingSaver(AsyncCalls):
    def __init__(
        self, store: Store, *, serde: SerializerProtocol | None = None, settings: Settings | None = None
    ) -> None:
        super().__init__(serde=serde)
        chosen = settings or Settings()
        self.store = store
        self.cleaner = Cleaner(chosen.redactor)
        self.pen = Pen(store, Contents(store), chosen.redactor, chosen.actor, chosen.clock, chosen.ids)
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._lock = threading.Lock()
        self._writing = {}

    # ---- checkpoints --------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread_id, namespace, wanted = named(config)
        thread = self.thread(thread_id)
        with thread.lock:
            history = thread.catch_up()
            head = history.head(self.cleaner.name(namespace))
            if wanted is None:
                place = head
                if place is None:
                    thread.seen_empty.add(self.cleaner.name(namespace))
            else:
                place = Place(self.cleaner.name(namespace), self.cleaner.name(wanted))
                if place in history.saved and place != head:
                    thread.branches.add(place)
            return self._tuple(thread, thread_id, place) if place in history.saved else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The newest first: in the order in which the store took them, whatever the clocks said."""
        namespace = wanted = None
        if config is None:
            threads = [thread_of(head.stream) for head in self.store.heads(THREADS)]
        else:
            thread_id, _, wanted = named(config)
            threads = [thread_id]
            namespace = config["configurable"].get("checkpoint_ns")
        asked = self._comparable(filter) if filter else {}
        left = limit if limit is not None else -1
        for thread_id in threads:
            for found in self._matching(thread_id, namespace, wanted, asked, before):
                if left == 0:
                    return
                left -= 1
                yield found

    def _matching(
        self,
        thread_id: str,
        namespace: str | None,
        wanted: str | None,
        asked: Mapping[str, Any],
        before: RunnableConfig | None,
    ) -> Iterator[CheckpointTuple]:
        thread = self.thread(thread_id)
        end = None if before is None else before["configurable"].get("checkpoint_id")
        space = None if namespace is None else self.cleaner.name(namespace)
        found_any = False
        with thread.lock:
            history = thread.catch_up()
            places = [*history.newest_first(space)]
            point = None if end is None else _place_of(history, self.cleaner.name(end), space)
        for place in places:
            if wanted is not None and place.id != self.cleaner.name(wanted):
                continue
            with thread.lock:
                history = thread.history
                if place not in history.saved or not self._is_before(thread, place, point, end):
                    continue
                found = self._tuple(thread, thread_id, place, older=place != history.head(place.namespace))
            found_any = True
            if all(_same(found.metadata, key, value) for key, value in asked.items()):
                yield found
        if space is not None and end is not None and not found_any:
            with thread.lock:
                thread.restarts[space] += 1

    def _is_before(self, thread: Thread, place: Place, point: Place | None, end: str | None) -> bool:
        if end is None:
            return True
        if point is None or point not in thread.history.positions:  # unknown here: its id says when it was made
            return place.id < end
        return thread.history.is_before(place, point, lambda one: self._parents(thread, one))

    def _parents(self, thread: Thread, place: Place) -> Mapping[str, str]:
        """In which step of each enclosing graph a checkpoint was made, as its metadata says."""
        saved = thread.history.saved.get(place)
        if saved is None:
            return {}
        named = self.serde.loads_typed(self._parts(thread, saved).metadata).get("parents") or {}
        return {self.cleaner.name(space): self.cleaner.name(one) for space, one in named.items()}

    def _comparable(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values to look for, as they would have been kept."""
        cleaned = self.cleaner.typed(self.serde.dumps_typed(self.cleaner.metadata(values)))
        return cast("dict[str, Any]", self.serde.loads_typed(cleaned))

    def _tuple(self, thread: Thread, thread_id: str, place: Place, *, older: bool = False) -> CheckpointTuple:
        saved = thread.history.saved[place]
        parts = self._parts(thread, saved)
        checkpoint = cast("Checkpoint", self.serde.loads_typed(parts.structure))
        checkpoint["channel_values"] = {name: self.serde.loads_typed(value) for name, value in parts.channels.items()}
        return CheckpointTuple(
            config_of(thread_id, place.namespace, OlderId(place.id) if older else place.id),
            checkpoint,
            cast("CheckpointMetadata", self.serde.loads_typed(parts.metadata)),
            None if saved.parent is None else config_of(thread_id, place.namespace, OlderId(saved.parent)),
            self._pending(thread, place),
        )

    def _parts(self, thread: Thread, saved: Saved) -> CheckpointParts:
        return checkpoint_parts(self.pen.contents.of(thread.history.records, saved.record))

    def _pending(self, thread: Thread, place: Place, channels: set[str] | None = None) -> builtins.list[PendingWrite]:
        """What tasks wrote after a checkpoint, in the order in which a super-step applies it."""
        kept: dict[tuple[str, str, int], tuple[str, Typed]] = {}
        for record in thread.history.writes.get(place, {}).values():
            task = str(record.event.values()["task"])
            path, writes = task_writes(self.pen.contents.of(thread.history.records, record))
            for write in writes:
                key = writes_sort_key(path, task, write.number)
                if write.number < 0 or key not in kept:  # a task's own writes stay, what is said of it is replaced
                    kept[key] = write.channel, write.value
        return [
            (task, kept[path, task, index][0], self.serde.loads_typed(kept[path, task, index][1]))
            for path, task, index in sorted(kept)
            if channels is None or kept[path, task, index][0] in channels
        ]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors wrote to the channels, back to where each has a value. Reads no state on its way."""
        thread_id, namespace, wanted = named(config)
        thread = self.thread(thread_id)
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        left = set(channels)
        with thread.lock:
            history = thread.catch_up()
            space = self.cleaner.name(namespace)
            target = history.head(space) if wanted is None else Place(space, self.cleaner.name(wanted))
            for place in history.ancestors(target) if target is not None and left else ():
                for write in reversed(self._pending(thread, place, left)):
                    found[write[1]]["writes"].append(write)
                parts = self._parts(thread, history.saved[place])
                for channel in left & set(parts.channels):
                    found[channel]["seed"] = self.serde.loads_typed(parts.channels[channel])
                    left.discard(channel)
                if not left:
                    break
        for entry in found.values():
            entry["writes"].reverse()
        return found

    # ---- parts ---------------------------------------------------------------------------------------------------

    def thread(self, thread_id: str) -> Thread:
        stream = stream_of(self.cleaner.name(str(thread_id)))
        with self._lock:
            found = self._threads.pop(stream, None) or Thread(stream, self.pen)
            self._threads[stream] = found
            while len(self._threads) > HELD:
                self._threads.popitem(last=False)
            return found


def named(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Thread, namespace and checkpoint of a configuration."""
    asked = config["configurable"]
    return str(asked["thread_id"]), str(asked.get("checkpoint_ns", "")), asked.get("checkpoint_id")


def _place_of(history: History, checkpoint: str, space: str | None) -> Place | None:
    """The checkpoint of this id, in whatever namespace; LangGraph names none when it asks what was before a step."""
    places = [place for place in history.positions if place.id == checkpoint]
    return next((place for place in places if place.namespace == space), places[0] if places else None)


def config_of(thread_id: str, namespace: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


def _same(metadata: Mapping[str, Any], key: str, value: Any) -> bool:
    return key in metadata and metadata[key] == value
