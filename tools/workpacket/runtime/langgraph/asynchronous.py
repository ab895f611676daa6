"""The asynchronous half of the saver: every call is the synchronous one in a thread; no loop waits for a disk.

A cancelled run of LangGraph leaves its checkpoints behind as tasks that wait for one another. A reader of the newest
checkpoint would be overtaken by them and refused, and a list would lack them, so reading waits until they are stored.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

T = TypeVar("T")
Namespace = tuple[asyncio.AbstractEventLoop, str, str]  # of a thread, as one event loop writes to it

QUIET = 5  # turns of the loop without a write: a task that waited for another begins its own within two
LONGEST = 1000  # writes that a reader waits for: a run that never stops writing does not stop its readers


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
        """The call in a thread. It is finished, and known to readers as under way, also if who asked is cancelled."""
        asked, loop = config["configurable"], asyncio.get_running_loop()
        space = loop, str(asked["thread_id"]), str(asked.get("checkpoint_ns", ""))
        # As asyncio.to_thread does it; a task around that would cost each super-step another turn of the loop.
        under_way = loop.run_in_executor(None, partial(copy_context().run, call))
        self._writing.setdefault(space, set()).add(under_way)
        under_way.add_done_callback(lambda done: self._is_written(space, done))
        return await asyncio.shield(under_way)

    def _is_written(self, space: Namespace, done: asyncio.Future[Any]) -> None:
        self._writing[space].discard(done)
        if not self._writing[space]:
            del self._writing[space]
        if not done.cancelled():
            done.exception()  # of a cancelled run nobody else asks

    async def _read(self, config: RunnableConfig | None, namespace: str | None = "") -> None:
        """Wait for what is about to be read. `namespace` is asked where the configuration has none, None for all."""
        asked = {} if config is None else config["configurable"]
        if not asked.get("checkpoint_id"):
            thread, namespace = asked.get("thread_id"), asked.get("checkpoint_ns", namespace)
            await self._written(None if thread is None else str(thread), namespace)

    async def _written(self, thread: str | None = None, namespace: str | None = None) -> None:
        """Wait until nothing more is on its way: into a namespace, a thread, or any of this event loop.

        See the module docstring for the reason.
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
