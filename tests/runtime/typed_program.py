"""The types that an author's program gets from the runtime: mypy checks this file strictly, with all others, and
`nox -s pyright` lets pyright infer the same. Nothing in it is executed.

Each `type: ignore` proves that the mistake beside it is found: one that is not needed is an error for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

from workpacket.runtime import AsyncRun, Retry, Run, RunBlocked, Runtime
from workpacket.runtime.decorators import effect, step
from workpacket.runtime.model_sessions.async_session import AsyncModelRun, AsyncOpenSession, open_async_session
from workpacket.runtime.model_sessions.session import ModelRun, OpenSession, open_session


def convert(number: int, *, unit: str = "m") -> str:
    return f"{number} {unit}"


def count(text: str) -> int:
    return len(text)


async def convert_later(number: int, *, unit: str = "m") -> str:
    return convert(number, unit=unit)


# ---- functions that are steps and effects --------------------------------------------------------------------------


@step
def plain(number: int, *, unit: str = "m") -> str:
    return convert(number, unit=unit)


@step(retry=Retry(attempts=2), name="other")
def with_options(number: int) -> list[str]:
    return [str(number)]


def key_of(number: int) -> str:
    return f"key-{number}"


@effect
def act(number: int) -> str:
    return str(number)


@effect(key=key_of, recovery="keyed", confirm=True)
def keyed(number: int) -> dict[str, int]:
    return {str(number): number}


@step
async def plain_later(number: int) -> str:
    return str(number)


@effect(key=key_of, recovery="keyed")
async def keyed_later(number: int) -> int:
    return number


class Bill:
    @step
    def total(self, month: int) -> float:
        return float(month)


async def decorated() -> None:
    assert_type(plain(1, unit="km"), str)
    assert_type(with_options(1), list[str])
    assert_type(act(1), str)
    assert_type(keyed(1), dict[str, int])
    assert_type(Bill().total(3), float)
    assert_type(await plain_later(1), str)
    assert_type(await keyed_later(1), int)


async def decorated_wrongly() -> None:
    plain("one")  # type: ignore[arg-type]
    with_options()  # type: ignore[call-arg]
    keyed("one")  # type: ignore[arg-type]
    Bill().total("May")  # type: ignore[arg-type]
    await plain_later("1")  # type: ignore[arg-type]
    step(retries=3)  # type: ignore[call-overload]
    effect(recovery="perhaps")  # type: ignore[call-overload]


# ---- a run ---------------------------------------------------------------------------------------------------------


def month(run: Run, name: str, *, year: int = 2026) -> list[int]:
    assert_type(run.child(week, 3), str)
    return [len(name), year]


def week(run: Run, number: int) -> str:
    return f"{run.id} {number}"


def program(run: Run) -> None:
    assert_type(run.step(convert, 1), str)
    assert_type(run.step("named", convert, 2, unit="km"), str)
    assert_type(run.step("named", lambda: 3), int)
    assert_type(run.step(Path, "folder"), Path)
    assert_type(run.using(version="2", retry=Retry(attempts=3)).step(convert, 10), str)
    assert_type(run.call("named", convert, 3).function(4), str)
    assert_type(run.gather(run.call(convert, 5), run.call("other", convert, 6)), list[str])
    assert_type(run.gather(run.call(convert, 5), run.call(convert, 6), errors="return"), list[str | Exception])
    run.gather(run.call(convert, 5), run.call(count, "6"))
    assert_type(run.map("each", convert, [7, 8]), list[str])
    assert_type(run.map("each", convert, (7, 8), workers=2, errors="return"), list[str | Exception])
    assert_type(run.effect("send", convert, 9, key="k"), str)
    assert_type(run.effect("send", convert, 9, recovery="probe", probe=lambda: "found", target="bank"), str)
    assert_type(run.child(month, "May", year=2027), list[int])
    assert_type(run.child("named", month, "May"), list[int])
    assert_type(run.gather(run.call_child(month, "May"), run.call_child("june", month, "June")), list[list[int]])
    assert_type(run.patched("as-table"), bool)
    for page in run.boundary(["a", "b"]):
        assert_type(page, str)
    run.sleep(1)
    run.sleep_until(datetime.now(UTC))
    run.checkpoint({"page": run.cursor()})
    run.publish("rows", run.wait_for("rows", timeout=3))
    try:
        run.confirm("Go on?", {"to": "ann"})
    except RunBlocked as blocked:
        assert_type(blocked.code, str)


def wrong_program(run: Run) -> None:
    run.step(convert, "one")  # type: ignore[call-overload]
    run.step("named", convert, 1, united="km")  # type: ignore[call-arg]
    run.step("named", convert)  # type: ignore[call-overload]
    run.child(month)  # type: ignore[call-overload]
    run.child(month, 3)  # type: ignore[call-overload]
    run.child(convert, 3)  # type: ignore[call-overload]
    run.map("each", convert, ["a"])  # type: ignore[arg-type]
    run.gather(convert)  # type: ignore[call-overload]
    run.effect("send", convert, 9, recovery="perhaps")  # type: ignore[arg-type]


async def month_later(run: AsyncRun, name: str) -> list[int]:
    assert_type(await run.child(week_later, 3), str)
    return [len(name)]


async def week_later(run: AsyncRun, number: int) -> str:
    return f"{run.id} {number}"


async def pages() -> AsyncIterator[str]:
    yield "a"


async def async_program(run: AsyncRun) -> None:
    assert_type(await run.step(convert_later, 1), str)
    assert_type(await run.step("named", convert_later, 2, unit="km"), str)
    assert_type(await run.using(version="2").step(convert_later, 10), str)
    assert_type(await run.map("each", convert_later, [7, 8]), list[str])
    assert_type(await run.map("each", convert_later, [7, 8], errors="return"), list[str | Exception])
    assert_type(await run.effect("send", convert_later, 9, key="k"), str)
    assert_type(await run.child(month_later, "May"), list[int])
    assert_type(await run.child("named", month_later, "May"), list[int])
    text, days = await asyncio.gather(run.step(convert_later, 1), run.child(month_later, "May"))
    assert_type(text, str)
    assert_type(days, list[int])
    async for page in run.boundary(pages()):
        assert_type(page, str)
    await run.checkpoint({"page": await run.cursor()})
    await run.publish("rows", await run.wait_for("rows", timeout=3))
    await run.confirm("Go on?")


async def wrong_async_program(run: AsyncRun) -> None:
    await run.step(convert_later, "one")  # type: ignore[call-overload]
    await run.child(month_later)  # type: ignore[call-overload]
    await run.child(month, "May")  # type: ignore[call-overload]
    await run.map("each", convert_later, ["a"])  # type: ignore[arg-type]
    run.step(convert_later, 1) + 1  # type: ignore[operator]


# ---- what opens them -----------------------------------------------------------------------------------------------


def answer(arriving: ModelRun) -> str:
    for chunk in arriving.chunks(["a", "b"]):
        assert_type(chunk, str)
    for number in arriving.chunks([1, 2], text=str):
        assert_type(number, int)
    return arriving.text


async def answer_later(arriving: AsyncModelRun) -> str:
    async for chunk in arriving.chunks(pages()):
        assert_type(chunk, str)
    return arriving.text


def opened() -> None:
    with Runtime.open("runs.db") as runtime:
        assert_type(runtime, Runtime)
        with runtime.run("import", key="1", inputs={"month": "May"}) as run:
            assert_type(run, Run)
        with open_session(runtime, "talk", model="m") as session:
            assert_type(session, OpenSession)
            assert_type(session.model_run(answer).content, str)
            assert_type(session.tool("call-1", convert, 3), str)
            assert_type(session.messages[0].role, str)


async def opened_later() -> None:
    with Runtime.open() as runtime:
        async with runtime.async_run("import") as run:
            assert_type(run, AsyncRun)
        async with open_async_session(runtime, "talk", model="m") as session:
            assert_type(session, AsyncOpenSession)
            assert_type((await session.model_run(answer_later)).content, str)
            assert_type(await session.tool("call-1", convert_later, 3), str)
            assert_type((await session.messages())[0].role, str)
