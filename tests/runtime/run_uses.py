"""A use of each public method of a run, and programs made of them: what they answer must not depend on kills.

Each use takes names of its own, so that the uses can stand in any order. Its answer is what the program got to know;
an exception that the program caught is an answer too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from workpacket.runtime import NotDone, Runtime
from workpacket.runtime.async_run import AsyncRun
from workpacket.runtime.attempts.session import SavedCheckpoint
from workpacket.runtime.attempts.steps import Retry
from workpacket.runtime.errors import EffectKeyReused, ReceiptUnkept, RunBlocked
from workpacket.runtime.run import Run

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SECRET = "ghp_" + "A" * 36


class World(Protocol):
    """Where a program runs: its runtime, and what it did to the world outside."""

    @property
    def runtime(self) -> Runtime: ...

    def note(self, what: Any) -> Any:
        """Do something that can be seen."""

    def was_noted(self, what: Any) -> bool:
        """Look whether it happened."""


Use = Callable[[Run, World], Any]
AsyncUse = Callable[[AsyncRun, World], Awaitable[Any]]


class Upper:
    """A codec whose stored form is not the value."""

    def encode(self, value: str) -> str:
        return value.lower()

    def decode(self, stored: Any) -> str:
        return str(stored).upper()


def caught(call: Callable[[], object], *kinds: type[Exception]) -> Any:
    try:
        return call()
    except kinds as error:
        return ["raised", type(error).__name__, str(error)]


def by_hand(run: Run, world: World) -> Any:
    """A person who settles it knows no receipt, so it has none."""

    def act() -> None:
        world.note("by hand")

    return run.effect("by-hand", act)


def by_probe(run: Run, world: World) -> Any:
    def look() -> str:
        if world.was_noted("by probe"):
            return "by probe"
        raise NotDone("not in the world")

    return run.effect("probed", world.note, "by probe", recovery="probe", probe=look)


def raising(world: World, error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        world.note(f"failed: {error}")
        raise error

    return fail


def in_step(run: Run, world: World) -> Any:
    return run.step("outer", lambda: [run.step("inner", world.note, "a"), run.step("inner", world.note, "b")])


def in_loop(run: Run, world: World) -> Any:
    point: Any = run.cursor() or {"page": 0, "seen": []}
    page, seen = point["page"], list(point["seen"])
    while page < 3:
        seen.append(run.step("page", world.note, page))
        page += 1
        run.checkpoint({"page": page, "seen": seen}, name="page")
    return seen


def in_pieces(run: Run, world: World) -> Any:
    return [run.step("piece", world.note, item) for item in run.boundary(range(3))]


def saved(checkpoint: SavedCheckpoint) -> Any:
    """Without its token, which is shown once."""
    return [checkpoint.id, checkpoint.version]


def said_no(error: RunBlocked) -> Any:
    """A denial, without its digest and the one who answered; a question that nobody has answered stops the run."""
    if error.code != "confirmation_denied":
        raise error
    return ["denied", error.message.partition(" said no: ")[2]]


def denied(run: Run, _: World) -> Any:
    try:
        return run.confirm("No?", {"to": "production"})
    except RunBlocked as error:
        return said_no(error)


def refused_act(run: Run, world: World) -> Any:
    return caught(lambda: run.effect("refuse", raising(world, NotDone("queue full"))), NotDone)


def failed_step(run: Run, world: World) -> Any:
    return caught(lambda: run.step("fail", raising(world, ValueError("no such row"))), ValueError)


def with_codec(run: Run, world: World) -> Any:
    """Of one killed between the act and its receipt only the world knows the result."""
    coded = run.using(codec=Upper())
    return coded.effect("coded effect", world.note, "ABC", key="c", recovery="keyed", probe=lambda: "ABC")


def with_secret(run: Run, world: World) -> Any:
    def act() -> str:
        world.note("logged in")
        return SECRET

    return run.effect("login", act, recovery="idempotent", probe=lambda: SECRET)


def unkept(run: Run, world: World) -> Any:
    """Its message names the step, whose number may be another one behind a checkpoint."""

    def ask() -> Any:
        return run.effect("unkept", lambda: {world.note("unkept")}, key="unkept", recovery="keyed")

    return caught(ask, ReceiptUnkept)[:2]


def key_again(run: Run, world: World) -> Any:
    def pay(amount: int, *, confirm: bool) -> Any:
        return run.effect("pay", world.note, amount, key="pay", recovery="keyed", confirm=confirm)

    return [pay(100, confirm=True), caught(lambda: pay(200, confirm=True), EffectKeyReused)[:2]]


def tried_again(run: Run, world: World) -> Any:
    left = [0]

    def second() -> str:
        left[0] += 1
        if left[0] == 1:
            raise OSError("not yet")
        return "at last"

    return run.using(retry=Retry(attempts=100, first=0.01, factor=1)).step("retried", second)


def signalled(run: Run, world: World) -> Any:
    """Each attempt sends a signal, because one that goes on from a cursor waits anew; nobody sends the other one."""
    if run.state.status != "completed":
        world.runtime.signal(run.id, "go", {"to": "town"}, key=f"go {run.attempt}")
    return [run.wait_for("go"), caught(lambda: run.wait_for("never", timeout=0), TimeoutError)]


def child(run: Run, world: World) -> Any:
    """A child with a cursor, a wait and an effect of its own, which publishes how far it is."""

    def job(run: Run, number: int) -> Any:
        point: Any = run.cursor() or {"page": 0, "seen": []}
        page, seen = point["page"], list(point["seen"])
        while page < 2:
            seen.append(run.step("child page", world.note, [number, page]))
            page += 1
            run.publish("page", page)
            run.checkpoint({"page": page, "seen": seen}, name="child page")
        run.sleep(0)
        return [seen, run.effect("child", world.note, f"child {number}", key=f"child {number}", recovery="keyed")]

    return [run.child("child", job, 1), run.using(on_cancel="finish").child("child", job, 2)]


def side_children(run: Run, world: World) -> Any:
    def job(run: Run, number: int) -> Any:
        return run.step("in child", world.note, f"side child {number}")

    return run.gather(*[run.call_child("side child", job, number) for number in range(2)], workers=1)


def accepted(run: Run, world: World) -> Any:
    try:
        return run.effect("doubtful", raising(world, TimeoutError("no answer")), key="doubtful")
    except TimeoutError as error:
        run.accept_unknown("doubtful")
        return str(error)


def publishing(run: Run, world: World) -> None:
    for number in range(2):
        run.publish("progress", number)


USES: dict[str, Use] = {
    "id": lambda run, _: run.id,
    "state": lambda run, _: run.state.name,
    "using": lambda run, _: run.using(codec=Upper(), version="2").step("coded", lambda: "ABC"),
    "using retry": tried_again,
    "step": lambda run, world: [run.step("load", world.note, {"n": n}) for n in range(2)],
    "step nested": in_step,
    "step that held a secret": lambda run, _: run.step("secret", lambda: {"token": SECRET}),
    "step that failed": failed_step,
    "call": lambda run, world: run.gather(run.call("called", world.note, "x"), run.call("called", world.note, "y")),
    "gather": lambda run, world: run.gather(*[run.call(f"side-{n}", world.note, n) for n in range(3)], workers=1),
    "gather of nothing": lambda run, _: run.gather(),
    "map": lambda run, world: run.map("item", world.note, [1, 2, 3], workers=1),
    "child": child,
    "call_child": side_children,
    "publish": publishing,
    "accept_unknown": accepted,
    "command": lambda run, _: dict(run.command("echo", ["echo", "said"])),
    "effect": lambda run, world: run.effect("keyed", world.note, "k", key="k", recovery="keyed"),
    "effect by hand": by_hand,
    "effect by probe": by_probe,
    "effect confirmed": lambda run, world: run.effect("ask", world.note, "c", recovery="idempotent", confirm=True),
    "effect that failed": refused_act,
    "effect with a codec": with_codec,
    "effect whose receipt held a secret": with_secret,
    "effect whose result is not JSON": unkept,
    "effect whose key is used again": key_again,
    "checkpoint": lambda run, _: saved(run.checkpoint(run.cursor(), kind="periodic", preconditions={"a": 1})),
    "checkpoint in a loop": in_loop,
    "cursor": lambda run, _: run.cursor("none"),
    "boundary": in_pieces,
    "confirm": lambda run, _: run.confirm("Yes?", {"to": "production"}),
    "confirm that was denied": denied,
    "sleep": lambda run, _: run.sleep(0),
    "sleep_until": lambda run, _: run.sleep_until(LONG_AGO),
    "wait_for": signalled,
    "patched": lambda run, _: [run.patched("new way"), run.patched("new way")],
}


async def async_denied(run: AsyncRun, _: World) -> Any:
    try:
        return await run.confirm("No?", {"to": "production"})
    except RunBlocked as error:
        return said_no(error)


async def acaught(call: Awaitable[Any], *kinds: type[Exception]) -> Any:
    try:
        return await call
    except kinds as error:
        return ["raised", type(error).__name__, str(error)]


def noted(world: World) -> Callable[[Any], Awaitable[Any]]:
    async def note(what: Any) -> Any:
        return world.note(what)

    return note


async def async_by_hand(run: AsyncRun, world: World) -> Any:
    async def act() -> None:
        world.note("by hand")

    return await run.effect("by-hand", act)


async def async_with_secret(run: AsyncRun, world: World) -> Any:
    async def act() -> str:
        world.note("logged in")
        return SECRET

    async def look() -> str:
        return SECRET

    return await run.effect("login", act, recovery="idempotent", probe=look)


async def async_unkept(run: AsyncRun, world: World) -> Any:
    async def act() -> Any:
        return {world.note("unkept")}

    return (await acaught(run.effect("unkept", act, key="unkept", recovery="keyed"), ReceiptUnkept))[:2]


async def async_by_probe(run: AsyncRun, world: World) -> Any:
    async def look() -> str:
        if world.was_noted("by probe"):
            return "by probe"
        raise NotDone("not in the world")

    return await run.effect("probed", noted(world), "by probe", recovery="probe", probe=look)


def failing(error: Exception) -> Callable[[], Awaitable[Any]]:
    async def fail() -> Any:
        raise error

    return fail


async def async_pieces(run: AsyncRun, world: World) -> Any:
    async def items() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    return [await run.step("piece", noted(world), item) async for item in run.boundary(items())]


async def async_loop(run: AsyncRun, world: World) -> Any:
    point: Any = await run.cursor() or {"page": 0, "seen": []}
    page, seen = point["page"], list(point["seen"])
    while page < 3:
        seen.append(await run.step("page", noted(world), page))
        page += 1
        await run.checkpoint({"page": page, "seen": seen}, name="page")
    return seen


async def async_beside(run: AsyncRun, world: World) -> Any:
    return await asyncio.gather(*[run.step(f"side-{n}", noted(world), n) for n in range(3)])


async def async_secret(run: AsyncRun, _: World) -> Any:
    async def secret() -> Any:
        return {"token": SECRET}

    return await run.step("secret", secret)


async def async_late(run: AsyncRun, world: World) -> Any:
    """A step that does not end in the time that it is given."""
    with suppress(TimeoutError):
        await asyncio.wait_for(run.step("late", asyncio.sleep, 30), 0.05)
    return await run.step("instead", noted(world), "instead")


async def async_saved(run: AsyncRun, _: World) -> Any:
    return saved(await run.checkpoint(await run.cursor(), kind="periodic", preconditions={"a": 1}))


async def async_cursor(run: AsyncRun, _: World) -> Any:
    return await run.cursor("none")


async def async_signalled(run: AsyncRun, world: World) -> Any:
    if run.state.status != "completed":
        await asyncio.to_thread(partial(world.runtime.signal, run.id, "go", {"to": "town"}, key=f"go {run.attempt}"))
    return [await run.wait_for("go"), await acaught(run.wait_for("never", timeout=0), TimeoutError)]


async def async_patched(run: AsyncRun, _: World) -> Any:
    return await run.patched("new way")


async def async_child(run: AsyncRun, world: World) -> Any:
    async def job(run: AsyncRun, number: int) -> Any:
        point: Any = await run.cursor() or {"page": 0, "seen": []}
        page, seen = point["page"], list(point["seen"])
        while page < 2:
            seen.append(await run.step("child page", noted(world), [number, page]))
            page += 1
            await run.publish("page", page)
            await run.checkpoint({"page": page, "seen": seen}, name="child page")
        await run.sleep(0)
        return [seen, await run.effect("child", noted(world), number, key=f"child {number}", recovery="keyed")]

    return [await run.child("child", job, 1), await run.using(on_cancel="finish").child("child", job, 2)]


async def async_accepted(run: AsyncRun, world: World) -> Any:
    try:
        return await run.effect("doubtful", failing(TimeoutError("no answer")), key="doubtful")
    except TimeoutError as error:
        await run.accept_unknown("doubtful")
        return str(error)


async def async_id(run: AsyncRun, _: World) -> Any:
    return run.id


async def async_state(run: AsyncRun, _: World) -> Any:
    return run.state.name


ASYNC_USES: dict[str, AsyncUse] = {
    "id": async_id,
    "state": async_state,
    "using": lambda run, world: run.using(version="2").step("versioned", noted(world), "v"),
    "step": lambda run, world: run.step("load", noted(world), {"n": 1}),
    "step beside others": async_beside,
    "step that held a secret": async_secret,
    "step that failed": lambda run, _: acaught(run.step("fail", failing(ValueError("no such row"))), ValueError),
    "step that was late": async_late,
    "effect": lambda run, world: run.effect("keyed", noted(world), "k", key="k", recovery="keyed"),
    "effect by hand": async_by_hand,
    "effect by probe": async_by_probe,
    "effect confirmed": lambda run, world: run.effect("ask", noted(world), "c", recovery="idempotent", confirm=True),
    "effect that failed": lambda run, _: acaught(run.effect("refuse", failing(NotDone("queue full"))), NotDone),
    "effect whose receipt held a secret": async_with_secret,
    "effect whose result is not JSON": async_unkept,
    "checkpoint": async_saved,
    "checkpoint in a loop": async_loop,
    "cursor": async_cursor,
    "boundary": async_pieces,
    "confirm": lambda run, _: run.confirm("Yes?", {"to": "production"}),
    "confirm that was denied": async_denied,
    "child": async_child,
    "publish": lambda run, _: run.publish("progress", 1),
    "accept_unknown": async_accepted,
    "map": lambda run, world: run.map("item", noted(world), [1, 2, 3], workers=1),
    "sleep": lambda run, _: run.sleep(0),
    "sleep_until": lambda run, _: run.sleep_until(LONG_AGO),
    "wait_for": async_signalled,
    "patched": async_patched,
}


def lasting(answers: dict[str, Any]) -> dict[str, Any]:
    """The answers that a later attempt gives as well: where it goes on, and what it repeats, is its own."""
    return {name: answer for name, answer in answers.items() if name not in {"repeated", "cursor", "checkpoint"}}


# What needs another process: only a program with a person beside it does these.
def child_outside(run: Run, _: World) -> Any:
    def asking(run: Run) -> Any:
        run.confirm("In a child?")
        return run.wait_for("in")

    return run.child("asking", asking)


OUTSIDE: dict[str, Use] = {
    "wait_for from outside": lambda run, _: [run.wait_for("from outside") for _ in range(2)],
    "child from outside": child_outside,
}


async def async_outside(run: AsyncRun, _: World) -> Any:
    return [await run.wait_for("from outside") for _ in range(2)]


async def async_child_outside(run: AsyncRun, _: World) -> Any:
    async def asking(run: AsyncRun) -> Any:
        await run.confirm("In a child?")
        return await run.wait_for("in")

    return await run.child("asking", asking)


ASYNC_OUTSIDE: dict[str, AsyncUse] = {
    "wait_for from outside": async_outside,
    "child from outside": async_child_outside,
}


def performed(world: World, uses: Sequence[str]) -> dict[str, Any]:
    """The answers of one start of the program, which ends well or raises."""
    known = USES | OUTSIDE
    with world.runtime.run("all", key="once") as run:
        return {name: known[name](run, world) for name in uses} | {"repeated": sorted(run.repeated)}


def async_performed(world: World, uses: Sequence[str]) -> dict[str, Any]:
    known = ASYNC_USES | ASYNC_OUTSIDE

    async def program() -> dict[str, Any]:
        async with world.runtime.async_run("all", key="once") as run:
            answers = {name: await known[name](run, world) for name in uses}
            return answers | {"repeated": sorted(run.repeated)}

    return asyncio.run(program())
