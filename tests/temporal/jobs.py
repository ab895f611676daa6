"""The run functions that the tests execute on every engine, and the world outside that their effects change."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import Any

from workpacket.runtime import NotDone

LEDGER = "WORKPACKET_TEST_LEDGER"


def ledger(path: str = "") -> sqlite3.Connection:
    """The world outside: one row for each time that an effect happened."""
    found = sqlite3.connect(path or os.environ[LEDGER], timeout=30, isolation_level=None)
    found.execute("create table if not exists happened (what text, by integer)")
    return found


def write_down(what: str) -> None:
    with closing(ledger()) as rows:
        rows.execute("insert into happened values (?, ?)", (what, os.getpid()))


def happened(path: str = "") -> list[str]:
    with closing(ledger(path)) as rows:
        return [what for (what,) in rows.execute("select what from happened order by rowid")]


async def double(number: int) -> int:
    return number * 2


async def pay(amount: int, key: str = "") -> str:
    write_down(f"paid {amount} {key}")
    return f"receipt {key or amount}"


async def pay_slowly(amount: int, key: str = "", seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    write_down(f"paid {amount} {key}")
    await asyncio.sleep(seconds)
    return f"receipt {key or amount}"


async def decline(amount: int) -> str:
    raise NotDone(f"{amount} is too much")


async def pay_and_fail(amount: int) -> str:
    write_down(f"paid {amount}")
    raise ConnectionError("no answer")


async def was_paid() -> str:
    if "paid 3 k" in happened():
        return "receipt found"
    raise NotDone("nothing was paid")


async def refund() -> None:
    write_down("refunded")


async def leak() -> str:
    return os.environ["PAYMENT_TOKEN"]


async def fail_twice() -> str:
    write_down("tried")
    if happened().count("tried") < 3:
        raise OSError(5, "not yet")
    return "done"


async def simple(run: Any, number: int) -> dict[str, Any]:
    """A step, an effect, steps in parallel, a child, a published value."""
    first = await run.step(double, number)
    receipt = await run.effect("pay", pay, first, key=f"k{number}")
    both = await run.map("double", double, [1, 2, 3], workers=2)
    inner = await run.child("inner", child, number=first)
    await run.publish("progress", {"at": "end"})
    return {"first": first, "receipt": receipt, "both": both, "inner": inner}


async def child(run: Any, number: int) -> int:
    doubled: int = await run.step(double, number)
    return doubled + 1


async def declined(run: Any) -> str:
    """The program catches the error of an effect that certainly did not happen."""
    try:
        paid: str = await run.effect("pay", decline, 9)
    except NotDone as error:
        return f"declined: {error}"
    return paid


async def unknown(run: Any) -> str:
    """The effect raises an error after it happened, and nothing catches it."""
    paid: str = await run.effect("pay", pay_and_fail, 3, compensate=refund)
    return f"then {paid}"


async def probed(run: Any) -> str:
    found: str = await run.effect("pay", fails_after_paying, 3, key="k", recovery="probe", probe=was_paid)
    return found


async def fails_after_paying(amount: int, key: str) -> str:
    write_down(f"paid {amount} {key}")
    raise ConnectionError("no answer")


async def retried(run: Any) -> str:
    from workpacket.runtime import Retry

    done: str = await run.using(retry=Retry(attempts=3, first=0.01, on=(OSError,))).step(fail_twice)
    return done


async def waits(run: Any) -> dict[str, Any]:
    await run.sleep(0.2)
    value = await run.wait_for("go", timeout=60)
    late = False
    try:
        await run.wait_for("never", timeout=0.1)
    except TimeoutError:
        late = True
    return {"value": value, "late": late}


async def asks(run: Any) -> str:
    await run.confirm("deploy?", {"to": "production"})
    return "deployed"


async def loops(run: Any, rounds: int) -> int:
    """A long run, which goes on from its cursor."""
    for number in range(int(await run.cursor(0) or 0), rounds):
        await run.step("double", double, number)
        await run.checkpoint(number + 1)
    return rounds


async def leaks(run: Any) -> str:
    return str(await run.step(leak))


async def large(run: Any, size: int) -> int:
    text = await run.step("make", make_text, size)
    return len(await run.step("echo", echo, text))


async def make_text(size: int) -> str:
    return "x" * size


async def echo(text: str) -> str:
    return text


async def interrupted(run: Any, number: int) -> dict[str, Any]:
    """Stops in the middle, until somebody writes down that it may go on."""
    first = await run.step(double, number)
    receipt = await run.effect("pay", pay, first, key="k")
    value = await run.wait_for("go", timeout=60)
    await run.checkpoint({"at": 1})
    await run.step(may_go_on)
    second = await run.effect("pay again", pay, first, key="k2")
    return {"first": first, "receipt": receipt, "value": value, "second": second}


async def may_go_on() -> bool:
    if "go on" not in happened():
        raise RuntimeError("not yet")
    return True


async def paying(run: Any, number: int, seconds: float = 0.0) -> str:
    """What the proof executes: two steps around an effect."""
    doubled = await run.step(double, number)
    receipt = await run.effect("pay", pay_slowly, doubled, key=f"{run.id}", seconds=seconds)
    return f"{receipt} {await run.step(double, doubled)}"


JOBS: dict[str, Any] = {
    job.__name__: job
    for job in (
        simple,
        child,
        declined,
        unknown,
        probed,
        retried,
        waits,
        asks,
        loops,
        leaks,
        large,
        interrupted,
        paying,
    )
}
