"""The asynchronous half of the saver: every call is the synchronous one in a thread; no loop waits for a disk.

A cancelled run of LangGraph leaves its checkpoints behind as tasks that wait for one another. Who reads the newest
checkpoint afterwards would be overtaken by them and refused, so that reading waits until they are stored.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
        await self._written(config)
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
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
        space = _namespace(config)
        under_way = asyncio.ensure_future(asyncio.to_thread(call))
        self._writing.setdefault(space, set()).add(under_way)
        under_way.add_done_callback(lambda done: self._is_written(space, done))
        return await asyncio.shield(under_way)

    def _is_written(self, space: Namespace, done: asyncio.Future[Any]) -> None:
        self._writing[space].discard(done)
        if not self._writing[space]:
            del self._writing[space]
        if not done.cancelled():
            done.exception()  # of a cancelled run nobody else asks

    async def _written(self, config: RunnableConfig) -> None:
        """Wait until nothing more is on its way into this namespace; see the module docstring."""
        if config["configurable"].get("checkpoint_id"):
            return
        space, quiet = _namespace(config), 0
        for _ in range(LONGEST):
            if under_way := self._writing.get(space):
                await asyncio.wait(set(under_way))
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
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))


def _namespace(config: RunnableConfig) -> Namespace:
    asked = config["configurable"]
    return asyncio.get_running_loop(), str(asked["thread_id"]), str(asked.get("checkpoint_ns", ""))
