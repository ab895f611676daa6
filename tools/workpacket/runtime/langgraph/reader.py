"""The reading half of the saver: checkpoints, the writes of tasks after them, and the history of a channel.

Every asynchronous call runs the synchronous one in a thread, so the event loop never waits for a disk. A cancelled
LangGraph run leaves its pending checkpoints as tasks that wait for one another. Reading waits until they are stored;
otherwise someone who continues from the newest checkpoint would be refused, and a list would lack the pending ones.

Secrets are removed from state, metadata and configuration before these are stored. Serialized values are searched
verbatim: MessagePack stores text as UTF-8, even inside an object. In a channel that grew, only the new part is
searched. A value is taken apart, cleaned and reassembled only if a secret is found. In metadata and configuration,
names count too: LangGraph copies all of `configurable` into the metadata of each checkpoint.
"""

from __future__ import annotations

import asyncio
import builtins
import threading
from abc import ABC
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from workpacket.runtime.errors import RedactionFailed, WouldBeAltered
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.langgraph.parcels import CheckpointParts, Typed, checkpoint_parts, patch_of, task_writes
from workpacket.runtime.langgraph.thread import (
    CheckpointPlace,
    OlderId,
    Pen,
    Saved,
    Thread,
    ThreadContents,
    ThreadHistory,
    stream_of,
    thread_of,
)
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.runtime import Settings
from workpacket.runtime.stores.contract import Store

T = TypeVar("T")
Namespace = tuple[asyncio.AbstractEventLoop, str, str]  # the pending writes of a thread in one event loop

QUIET = 5  # turns of the loop without a write: a task that waited for another begins its write within two
LONGEST = (
    1000  # the number of writes that a reader waits for: a run that writes continuously does not block its readers
)


class AsyncCalls(BaseCheckpointSaver[Any], ABC):
    _writing: dict[Namespace, set[asyncio.Future[Any]]]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        raise NotImplementedError

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._read(config)
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        await self._read(config, None)
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._write(config, lambda: self.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._write(config, lambda: self.put_writes(config, writes, task_id, task_path))

    async def _write(self, config: RunnableConfig, call: Callable[[], T]) -> T:
        """Run the call in a thread. It completes, and readers know that it is pending, even if the caller is
        cancelled.
        """
        asked, loop = config["configurable"], asyncio.get_running_loop()
        space = loop, str(asked["thread_id"]), str(asked.get("checkpoint_ns", ""))
        # Like asyncio.to_thread, without a task, which would cost each super-step another turn of the loop.
        under_way = loop.run_in_executor(None, partial(copy_context().run, call))
        self._writing.setdefault(space, set()).add(under_way)
        under_way.add_done_callback(lambda done: self._is_written(space, done))
        return await asyncio.shield(under_way)

    def _is_written(self, space: Namespace, done: asyncio.Future[Any]) -> None:
        self._writing[space].discard(done)
        if not self._writing[space]:
            del self._writing[space]
        if not done.cancelled():
            done.exception()  # no one else awaits the tasks of a cancelled run

    async def _read(self, config: RunnableConfig | None, namespace: str | None = "") -> None:
        """Wait for pending writes to the thread and namespace about to be read. `namespace` is used if the
        configuration gives none; None means all namespaces.
        """
        asked = {} if config is None else config["configurable"]
        if not asked.get("checkpoint_id"):
            thread, namespace = asked.get("thread_id"), asked.get("checkpoint_ns", namespace)
            await self._written(None if thread is None else str(thread), namespace)

    async def _written(self, thread: str | None = None, namespace: str | None = None) -> None:
        """Wait until no write is pending: to a namespace, to a thread, or anywhere in this event loop.

        For the reason, see the module docstring.
        """
        loop, quiet = asyncio.get_running_loop(), 0
        for _ in range(LONGEST):
            under_way = {
                write
                for space in tuple(self._writing)
                if space[0] is loop and thread in {None, space[1]} and namespace in {None, space[2]}
                for write in self._writing.get(space, ())
            }
            if under_way:
                await asyncio.wait(under_way)
                quiet = 0
            elif quiet == QUIET:
                return
            else:
                await asyncio.sleep(0)
                quiet += 1

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._written(source_thread_id)
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        await self._read(config)
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))


BY_NAME = "[redacted:name]"
SEARCHED = frozenset({"null", "msgpack", "bytes", "bytearray"})
SHORT = 1024  # bytes that are searched sooner than compared
NAMING = frozenset({"v", "id", "ts", "channel_versions", "versions_seen", "updated_channels", "pending_sends"})
HEADER = 3  # bytes before the first item of a long list
APART = b"\n\0\n"  # neither a word nor a number goes on across this


class StateCleaner(NamedTuple):
    redactor: Redactor

    def state(self, field: str, value: Typed, known: Typed | None = None) -> Typed:
        """Return the serialized value of a channel unchanged, because the graph gets it back. A value that contains a
        secret is refused unless its payload is encrypted.
        """
        kind, content = value
        if self.redactor.policy == "encrypt" and kind in SEARCHED:
            return kind, bytes(content)
        if self.typed(value, known)[1] != content:
            raise WouldBeAltered(
                f"{field} contains text that looks like a secret, and would be returned without that text",
                hint="keep a reference to the secret in the state, or set WORKPACKET_REDACTION=encrypt",
                details={"field": field},
            )
        return kind, bytes(content)

    def typed(self, value: Typed, known: Typed | None = None) -> Typed:
        """Return the serialized value without secrets. `known` is the part of it that was stored before: only the rest
        is searched."""
        kind, content = value
        try:
            if kind in SEARCHED and not any(self._is_secret(part) for part in self._new_parts(content, known)):
                return kind, bytes(content)
            if kind == "msgpack":
                return kind, self._msgpack(content)
            if kind in SEARCHED:
                return kind, self._bytes(content)
        except Exception as error:
            raise RedactionFailed(f"a value could not be searched for secrets: {type(error).__name__}") from error
        raise RedactionFailed(
            f"data of serializer type {kind!r} cannot be searched for secrets, so it is not stored",
            hint="do not use a serializer that pickles or encrypts; encrypt the disk instead",
        )

    def are_plain(self, *values: tuple[Typed, Typed | None]) -> bool:
        """Whether no secret can be in any of these serialized values, each given with the part that was stored before.

        They are searched as one text, because much of the time of a search does not depend on the length.
        """
        if any(kind not in SEARCHED for (kind, _), _ in values):
            return False
        parts = [part for (_, content), known in values for part in self._new_parts(content, known)]
        try:
            return not self._is_secret(APART.join(parts))
        except Exception:  # searched one by one, it is told which of them cannot be searched
            return False

    def has_plain_names(self, structure: Mapping[str, Any]) -> bool:
        """Whether a checkpoint without its values consists of numbers, and of names and ids without secrets."""
        if structure.keys() - NAMING or structure.get("pending_sends"):
            return False
        versions, seen = structure["channel_versions"], structure["versions_seen"]
        names = {structure["id"], structure["ts"]}.union(
            versions, seen, *seen.values(), structure.get("updated_channels") or ()
        )
        for one in (versions, *seen.values()):
            names.update(version for version in one.values() if type(version) is not int)
        return all(isinstance(name, str) for name in names) and self.redactor.are_plain(names)

    def _is_secret(self, part: bytes) -> bool:
        """Whether a part may contain a secret. Mapping keys count only once the value is taken apart."""
        return self.redactor.may_hold_secret(part.decode("utf-8", "surrogateescape"))

    def _new_parts(self, content: bytes, known: Typed | None) -> Iterator[bytes]:
        """Yield the parts that are not in `known`, and the positions where pieces of it join, with enough context for
        the longest secret. A short value is one part.
        """
        if known is None or len(content) <= SHORT:
            yield bytes(content)
            return
        reach, begin, end, at = self.redactor.reach(known[1]), 0, 0, 0
        stays = len(known[1])
        if HEADER < stays <= len(content) and content[HEADER:stays] == known[1][HEADER:]:  # a list that grew at its end
            yield content[: HEADER + reach]
            yield content[max(0, stays - reach) :]
            return
        for operation in [*patch_of([known[1]], bytes(content)), b""]:
            length, new = (len(operation), True) if isinstance(operation, bytes) else (operation[1], False)
            around = max(0, at - reach), at + (length if new else 0) + reach
            if around[0] > end:
                yield content[begin:end]
                begin = around[0]
            end, at = max(end, around[1]), at + length
        yield content[begin:end]

    def name(self, text: str) -> str:
        """Return the stored name of a thread, namespace, checkpoint or task: the name itself, or its hash if it
        contains a secret.
        """
        return self.redactor.name(text)

    def metadata(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Remove the strings whose names mark them as secret. The rest is searched once it is serialized."""
        return {name: _by_name(name, value) for name, value in values.items()}

    def _msgpack(self, content: bytes) -> bytes:
        taken = _TakenApart(self.redactor)
        cleaned = taken.cleaned(content)
        return cleaned if taken.found else bytes(content)

    def _bytes(self, content: bytes) -> bytes:
        text = self.redactor.clean_text(content.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape")


@dataclass(slots=True)
class _TakenApart:
    """A value in MessagePack, rebuilt without secrets. `found` says whether there was one."""

    redactor: Redactor
    found: bool = False

    def cleaned(self, content: bytes) -> bytes:
        opened = ormsgpack.unpackb(content, ext_hook=self._object, option=ormsgpack.OPT_NON_STR_KEYS)
        return ormsgpack.packb(self._walk(opened), option=ormsgpack.OPT_NON_STR_KEYS)

    def _object(self, code: int, content: bytes) -> ormsgpack.Ext:
        """Remove secrets from a LangGraph object, which is nested MessagePack: the names of its constructor, and its
        arguments.
        """
        return ormsgpack.Ext(code, self.cleaned(content))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._seen(value, self.redactor.clean_text(value))
        if isinstance(value, bytes):
            text = self.redactor.clean_text(value.decode("utf-8", "surrogateescape"))
            return self._seen(value, text.encode("utf-8", "surrogateescape"))
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return {self._key(key): self._named(key, item) for key, item in value.items()}
        return value

    def _named(self, name: Any, value: Any) -> Any:
        if isinstance(name, str) and type(value) in {str, int}:
            return self._seen(value, self.redactor.clean_named(name, value))
        return self._walk(value)

    def _key(self, key: Any) -> Any:
        return tuple(map(self._walk, key)) if isinstance(key, tuple) else self._walk(key)

    def _seen(self, value: Any, cleaned: Any) -> Any:
        self.found = self.found or cleaned != value
        return cleaned


def _by_name(name: object, value: Any) -> Any:
    if isinstance(value, str) and isinstance(name, str) and names_a_secret(name):
        return BY_NAME
    if isinstance(value, Mapping):
        return {key: _by_name(key, item) for key, item in value.items()}
    return value


HELD = 256  # the number of histories kept in memory


class ReadingSaver(AsyncCalls):
    def __init__(
        self, store: Store, *, serde: SerializerProtocol | None = None, settings: Settings | None = None
    ) -> None:
        super().__init__(serde=serde)
        chosen = settings or Settings()
        self.store = store
        self.cleaner = StateCleaner(chosen.redactor)
        actor = chosen.redactor.clean_text(chosen.actor)
        self.pen = Pen(store, ThreadContents(store), chosen.redactor, actor, chosen.clock, chosen.ids)
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
                place = CheckpointPlace(self.cleaner.name(namespace), self.cleaner.name(wanted))
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
        """List checkpoints, newest first by the order in which the store received them, regardless of their
        timestamps."""
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
            metadata: Mapping[str, Any] = found.metadata
            if all(key in metadata and metadata[key] == value for key, value in asked.items()):
                yield found
        if space is not None and end is not None and not found_any:
            with thread.lock:
                thread.restarts[space] += 1

    def _is_before(
        self, thread: Thread, place: CheckpointPlace, point: CheckpointPlace | None, end: str | None
    ) -> bool:
        if end is None:
            return True
        if (
            point is None or point not in thread.history.positions
        ):  # unknown here: its id gives the time at which it was made
            return place.id < end
        return thread.history.is_before(place, point, lambda one: self._parents(thread, one))

    def _parents(self, thread: Thread, place: CheckpointPlace) -> Mapping[str, str]:
        """Return the step of each enclosing graph in which a checkpoint was made, according to its metadata."""
        saved = thread.history.saved.get(place)
        if saved is None:
            return {}
        named = self.serde.loads_typed(self._parts(thread, saved).metadata).get("parents") or {}
        return {self.cleaner.name(space): self.cleaner.name(one) for space, one in named.items()}

    def _comparable(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values to search for, in their stored form."""
        cleaned = self.cleaner.typed(self.serde.dumps_typed(self.cleaner.metadata(values)))
        return cast("dict[str, Any]", self.serde.loads_typed(cleaned))

    def _tuple(self, thread: Thread, thread_id: str, place: CheckpointPlace, *, older: bool = False) -> CheckpointTuple:
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

    def _pending(
        self, thread: Thread, place: CheckpointPlace, channels: set[str] | None = None
    ) -> builtins.list[PendingWrite]:
        """Return the writes of tasks after a checkpoint, in the order in which a super-step applies them."""
        kept: dict[tuple[str, str, int], tuple[str, Typed]] = {}
        for record in thread.history.writes.get(place, {}).values():
            task = str(record.event.values()["task"])
            path, writes = task_writes(self.pen.contents.of(thread.history.records, record))
            for write in writes:
                key = writes_sort_key(path, task, write.number)
                if write.number < 0 or key not in kept:  # a task's own writes are kept; writes about it are replaced
                    kept[key] = write.channel, write.value
        return [
            (task, kept[path, task, index][0], self.serde.loads_typed(kept[path, task, index][1]))
            for path, task, index in sorted(kept)
            if channels is None or kept[path, task, index][0] in channels
        ]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the ancestors' writes to the channels, back to where each channel has a value. No other state is
        read."""
        thread_id, namespace, wanted = named(config)
        thread = self.thread(thread_id)
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        left = set(channels)
        with thread.lock:
            history = thread.catch_up()
            space = self.cleaner.name(namespace)
            target = history.head(space) if wanted is None else CheckpointPlace(space, self.cleaner.name(wanted))
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
    """Return the thread, namespace and checkpoint in a configuration."""
    asked = config["configurable"]
    return str(asked["thread_id"]), str(asked.get("checkpoint_ns", "")), asked.get("checkpoint_id")


def _place_of(history: ThreadHistory, checkpoint: str, space: str | None) -> CheckpointPlace | None:
    """Return the checkpoint with this id in any namespace; LangGraph gives no namespace when it asks what preceded a
    step."""
    places = [place for place in history.positions if place.id == checkpoint]
    return next((place for place in places if place.namespace == space), places[0] if places else None)


def config_of(thread_id: str, namespace: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}
