"""A session with a model for async code: the same log and the same rules, awaited.

    async with open_async_session(runtime, "review-42", model="some-model") as session:
        await session.add("user", "look at the change")
        answer = await session.model_run(ask)             # `ask` is an async function that is given an AsyncModelRun
        await session.tool("call-7", post_comment, answer.content, target="comment")

Messages are a sequence, so each is awaited before the next; tools may be called concurrently. If a task is cancelled
while something is being stored, it is stored, and the task is cancelled afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

from workpacket.model.canonical import Json
from workpacket.runtime.async_run import AsyncRun, apart
from workpacket.runtime.attempts.effects import Recovery
from workpacket.runtime.attempts.relay import Relayed
from workpacket.runtime.model_sessions.record import CheckpointKind, Message
from workpacket.runtime.model_sessions.session import (
    CHUNKS_BETWEEN_CHECKPOINTS,
    ModelRun,
    OpenSession,
    Restored,
    open_session,
)
from workpacket.runtime.run import Run, session_of
from workpacket.runtime.runtime import Runtime

__all__ = ["AsyncModelRun", "AsyncOpenSession", "open_async_session"]

P = ParamSpec("P")
T = TypeVar("T")
Chunk = TypeVar("Chunk")


def open_async_session(
    runtime: Runtime, session_id: str, *, model: str, packet: str = "", every: int = CHUNKS_BETWEEN_CHECKPOINTS
) -> AsyncOpenSession:
    """Return the session for `async with`, which begins or continues it as `open_session` does."""
    return AsyncOpenSession(partial(open_session, runtime, session_id, model=model, packet=packet, every=every))


class RunOfLoop(Run):
    """The run of a session whose calls are made in other threads, one at a time, for the event loop."""

    def _line(self) -> int:
        return self._session.scope().line or 1


class AsyncModelRun:
    """One answer from the model as it arrives; see `ModelRun`."""

    def __init__(self, session: AsyncOpenSession, answer: ModelRun) -> None:
        self._session = session
        self._answer = answer

    @property
    def partial(self) -> str:
        """The text that an interrupted attempt had received."""
        return self._answer.partial

    @property
    def text(self) -> str:
        return self._answer.text

    async def chunks(
        self,
        stream: AsyncIterable[Chunk],
        *,
        text: Callable[[Chunk], str] = str,
        number: Callable[[Chunk], int] | None = None,
    ) -> AsyncIterator[Chunk]:
        """Yield the chunks one by one; see `ModelRun.chunks`."""
        async for chunk in self._session.run.boundary(stream):
            self._answer.take(text(chunk), None if number is None else number(chunk))
            yield chunk
            if self._answer.is_due:
                await self._session.checkpoint("periodic")


class AsyncOpenSession:
    """A session in progress. Use `open_async_session` to create one."""

    run: AsyncRun
    _session: OpenSession

    def __init__(self, opening: Callable[[], OpenSession]) -> None:
        self._opening = opening
        self._in_turn = False

    async def __aenter__(self) -> AsyncOpenSession:
        self._session = await asyncio.to_thread(self._opening)
        inside = session_of(self._session.run)
        self._session.run = RunOfLoop(inside)
        self.run = AsyncRun(lambda: inside)
        await self.run.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        await self._apart(self._session.last_checkpoint, error)
        return await self.run.__aexit__(kind, error, trace)

    # ---- messages ------------------------------------------------------------------------------------------------

    async def messages(self) -> tuple[Message, ...]:
        """Return all messages in the log, including those that this program has not reached yet."""
        return await self._apart(lambda: self._session.messages)

    async def restore(self) -> Restored:
        """Continue after everything that is already done, instead of replaying it call by call."""
        return await self._apart(self._session.restore)

    async def add(self, role: str, content: str) -> Message:
        """Add a message from the user or from a tool. The same message at the same position returns the stored one."""
        with self._turn():
            return await self._apart(self._session.add, role, content)

    async def model_run(self, function: Callable[[AsyncModelRun], Awaitable[str]]) -> Message:
        """Get an answer from the model, exactly once: `function` receives an `AsyncModelRun` and returns the whole
        text."""
        with self._turn():
            begun = await self._apart(self._session.begin_answer)
            if isinstance(begun, Message):
                return begun
            text = await function(AsyncModelRun(self, begun))
            return await self._apart(self._session.end_answer, text)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._in_turn:
            raise RuntimeError("the messages of a session are a sequence: await the previous one before the next")
        self._in_turn = True
        try:
            yield
        finally:
            self._in_turn = False

    # ---- tools ---------------------------------------------------------------------------------------------------

    async def tool(
        self,
        call_id: str,
        function: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        target: str = "",
        recovery: Recovery = "manual",
        probe: Callable[[], Awaitable[T]] | None = None,
        compensate: Callable[[], Awaitable[object]] | None = None,
        **kwargs: Any,
    ) -> T:
        """Call a tool that acts on the world. The call is never silently repeated: its id is its key."""
        await self._apart(self._session.boundary)
        result = await self.run.effect(
            f"tool-{call_id}", function, *args, key=call_id, recovery=recovery, target=target or call_id, probe=probe,
            compensate=compensate, **kwargs,
        )  # fmt: skip
        await self._apart(self._session.boundary)
        return result

    async def program(self, call_id: str, argv: Sequence[str], *, timeout: float | None = None) -> Relayed:
        """Run a program as a tool, and repeat it if it was interrupted. It is stopped if the task is cancelled."""
        boundary = session_of(self.run).boundary
        before = boundary.leaving

        def leave() -> None:
            boundary.leaving = lambda: True

        try:
            return await self._apart(partial(self._session.program, call_id, argv, timeout=timeout), leave=leave)
        finally:
            boundary.leaving = before

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    async def checkpoint(self, kind: CheckpointKind = "event_triggered", state: Json = None) -> str:
        """Save a snapshot of the session as an artifact, and return its id. If no state is given, the last one is
        kept."""
        return await self._apart(self._session.checkpoint, kind, state)

    async def _apart(self, call: Callable[..., T], *args: Any, leave: Callable[[], object] = lambda: None) -> T:
        """Make a call in a thread. If the task is cancelled, `leave` is called, and the call ends first."""
        session = session_of(self.run)
        session.note_line(session.scope(), id(asyncio.current_task()))
        under_way = asyncio.ensure_future(apart(session, call, *args))
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            leave()
            if not under_way.done():
                await asyncio.wait([under_way])
            if not under_way.cancelled():
                under_way.exception()  # the cancellation is raised instead
            raise
