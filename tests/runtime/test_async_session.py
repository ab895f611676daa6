"""An async session writes what a sync one does, whatever ends it, and its calls may be cancelled."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.worlds import Crash, World
from workpacket.runtime import RunBlocked, RunCancelled
from workpacket.runtime.model_sessions.async_session import AsyncModelRun, AsyncOpenSession, open_async_session
from workpacket.runtime.model_sessions.record import assess
from workpacket.runtime.model_sessions.session import ModelRun, OpenSession, open_session
from workpacket.runtime.stores.contract import contents_of

STREAM = "session@s"
WORDS = tuple(f"word{number} " for number in range(5))


def spoken() -> Iterator[str]:
    yield from WORDS


async def heard() -> AsyncIterator[str]:
    for word in WORDS:
        await asyncio.sleep(0)
        yield word


async def ask(answer: AsyncModelRun) -> str:
    async for _ in answer.chunks(heard()):
        pass
    return answer.text


def ask_plainly(answer: ModelRun) -> str:
    for _ in answer.chunks(spoken()):
        pass
    return answer.text


def opened(world: World) -> AsyncOpenSession:
    return open_async_session(world.runtime, "s", model="m", every=2)


def log(world: World) -> list[tuple[str, Any]]:
    """The types and places of the events of the session."""
    names = ("step", "name", "kind")
    return [
        (event.type, [event.values().get(name) for name in names if name != "name" or event.type != "checkpoint"])
        for event in world.store.read(STREAM)
    ]


async def converse(world: World) -> tuple[str, str]:
    async with opened(world) as session:
        await session.add("user", "say it")
        answer = await session.model_run(ask)
        result = await session.tool("c1", tool, answer.content)
        await session.checkpoint(state={"page": 2})
        await session.add("user", "thanks")
        return answer.content, result


async def tool(text: str) -> str:
    return f"sent {len(text)}"


def converse_plainly(world: World) -> None:
    with open_session(world.runtime, "s", model="m", every=2) as session:
        session.add("user", "say it")
        answer = session.model_run(ask_plainly)
        session.tool("c1", lambda text: f"sent {len(text)}", answer.content)
        session.checkpoint(state={"page": 2})
        session.add("user", "thanks")


def test_it_writes_what_a_sync_session_does() -> None:
    plain, world = World(), World()
    converse_plainly(plain)
    assert asyncio.run(converse(world)) == ("".join(WORDS), "sent 30")
    assert log(world) == log(plain)
    assert asyncio.run(converse(world)) == ("".join(WORDS), "sent 30")
    assert log(world) == log(plain)
    assert contents_of(world.store) == []


@pytest.mark.parametrize("kept", range(1, 16))
def test_killed_after_any_record_it_ends_with_the_same_answers(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    store, left = world.store, [kept]
    append = store.append

    def dying(*request: Any) -> Any:
        if left[0] == 0:
            raise Crash
        left[0] -= 1
        return append(*request)

    async def life() -> None:
        session = opened(world)
        await session.__aenter__()
        try:
            await session.add("user", "say it")
            answer = await session.model_run(ask)
            await session.tool("c1", tool, answer.content, recovery="idempotent")
            await session.add("user", "thanks")
        except Crash:
            session.run._session._over.set()

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", dying)
        asyncio.run(life())
    world.clock.advance(60)

    async def again() -> tuple[str, str]:
        async with opened(world) as session:
            await session.add("user", "say it")
            answer = await session.model_run(ask)
            return answer.content, await session.tool("c1", tool, answer.content, recovery="idempotent")

    assert asyncio.run(again()) == ("".join(WORDS), "sent 30")
    assert contents_of(world.store) == []


def test_a_task_that_is_cancelled_between_chunks_leaves_the_part_that_arrived() -> None:
    world = World()

    async def slowly() -> AsyncIterator[str]:
        for word in WORDS[:4]:
            yield word
        await asyncio.sleep(60)

    async def cut(answer: AsyncModelRun) -> str:
        async for _ in answer.chunks(slowly()):
            pass
        return answer.text

    async def life() -> None:
        async with opened(world) as session:
            await session.add("user", "say it")
            await session.model_run(cut)

    async def impatient() -> None:
        await asyncio.wait_for(life(), 0.5)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    report = assess(world.runtime, STREAM)
    assert report.artifact is not None
    assert report.artifact.body["partial"] == {"message": 2, "chunks": 4, "text": "".join(WORDS[:4])}

    async def again() -> str:
        async with opened(world) as session:
            await session.add("user", "say it")
            partial: list[str] = []

            async def resumed(answer: AsyncModelRun) -> str:
                partial.append(answer.partial)
                return await ask(answer)

            await session.model_run(resumed)
            return partial[0]

    assert asyncio.run(again()) == "".join(WORDS[:4])


def test_a_session_is_cancelled_between_chunks() -> None:
    world = World()

    async def life() -> None:
        async with opened(world) as session:

            async def stopped(answer: AsyncModelRun) -> str:
                async for _ in answer.chunks(heard()):
                    world.runtime.cancel(STREAM, "enough")
                return answer.text

            await session.model_run(stopped)

    with pytest.raises(RunCancelled):
        asyncio.run(life())


def test_a_missing_chunk_stops_it() -> None:
    world = World()

    async def gaps() -> AsyncIterator[int]:
        for number in (1, 2, 4):
            yield number

    async def life() -> None:
        async with opened(world) as session:

            async def numbered(answer: AsyncModelRun) -> str:
                async for _ in answer.chunks(gaps(), number=int):
                    pass
                return answer.text

            await session.model_run(numbered)

    with pytest.raises(RunBlocked, match="chunk 4 came after chunk 2"):
        asyncio.run(life())


def test_tools_run_at_the_same_time_and_messages_do_not() -> None:
    world = World()
    together: list[int] = []

    async def life() -> list[int]:
        async with opened(world) as session:
            inside = 0

            async def one(number: int) -> int:
                nonlocal inside
                inside += 1
                await asyncio.sleep(0.05)
                together.append(inside)
                inside -= 1
                return number

            calls = [session.tool(f"c{number}", one, number) for number in range(3)]
            results = await asyncio.gather(*calls)
            first = asyncio.ensure_future(session.add("user", "one"))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="await the previous one"):
                await session.add("user", "two")
            await first
            assert [message.content for message in await session.messages()] == ["one"]
            return list(results)

    assert [asyncio.run(life()) for _ in range(2)] == [[0, 1, 2], [0, 1, 2]]
    assert max(together) == 3
    assert contents_of(world.store) == []


def test_restore_continues_behind_what_was_said() -> None:
    world = World()

    async def life(*words: str) -> list[str]:
        async with opened(world) as session:
            restored = await session.restore()
            for word in words:
                await session.add("user", word)
            if "stop" in words:
                raise TimeoutError
            return [message.content for message in restored.messages]

    with pytest.raises(TimeoutError):
        asyncio.run(life("one", "stop"))
    assert asyncio.run(life("two")) == ["one", "stop"]


def test_a_program_is_stopped_when_its_task_is_cancelled(tmp_path: Path) -> None:
    world, up, over = World(), tmp_path / "up", tmp_path / "over"
    program = f"import time; open({str(up)!r}, 'w').close(); time.sleep(5); open({str(over)!r}, 'w').close()"

    async def life() -> float:
        async with opened(world) as session:
            running = asyncio.ensure_future(session.program("p", [sys.executable, "-c", program]))
            while not up.exists():
                await asyncio.sleep(0.02)
            began = time.monotonic()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            took = time.monotonic() - began
            await session.add("user", "it was stopped")
            return took

    assert asyncio.run(life()) < 4
    assert not over.exists()


def test_the_sync_session_has_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    inside = {"begin_answer", "end_answer", "boundary", "last_checkpoint"}
    assert methods(AsyncOpenSession) == methods(OpenSession) - inside
    assert methods(AsyncModelRun) <= methods(ModelRun) | {"partial", "text"}
