"""Run functions, each with what keeps it from running on every engine: the codes, in the order of the lines.

A function without `@wants` is fit. The fit ones resemble the others as closely as they can.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import sys
import time
import time as chronos
import uuid
from collections.abc import Callable
from datetime import UTC
from functools import partial, wraps
from pathlib import Path
from random import choice as pick
from typing import Any

WANTED: dict[str, tuple[str, ...]] = {}
CACHE: dict[str, int] = {}
SEEN: list[str] = []
LIMIT = 3


def wants(*codes: str) -> Callable[[Any], Any]:
    def noted(function: Any) -> Any:
        WANTED[function.__name__] = codes
        return function

    return noted


async def fetch(url: str) -> str:
    return f"{url}: {time.time()}"  # in a step, everything is allowed


async def charge(amount: int, key: str = "") -> str:
    await asyncio.sleep(0)
    return f"{amount} {key} {random.random()} {os.getpid()}"


async def was_charged() -> str:
    return "yes"


def blocking(url: str) -> str:
    return url


class Bank:
    async def pay(self, amount: int) -> int:
        return amount


BANK = Bank()


def pure(rows: list[str]) -> str:
    return ",".join(sorted(set(rows)))


def reads_the_clock() -> float:
    return time.monotonic()


def traced(function: Any) -> Any:
    @wraps(function)
    async def inner(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    return inner


# ---- fit ---------------------------------------------------------------------------------------------------------


async def plain(run: Any, url: str) -> str:
    page = await run.step("fetch", fetch, url)
    return pure([page, str(LIMIT)])


async def every_method(run: Any) -> Any:
    pages = await run.map("fetch", fetch, ["a", "b"], workers=2)
    receipt = await run.effect("charge", charge, 3, key="k", recovery="probe", probe=was_charged)
    await run.checkpoint({"at": 1}, name="half")
    await run.sleep(5)
    await run.sleep_until(datetime.datetime(2030, 1, 1, tzinfo=UTC))
    await run.confirm("go on?", {"pages": pages})
    value = await run.wait_for("more", timeout=10)
    await run.publish("state", value)
    if await run.patched("second way"):
        return await run.child("inner", plain, url="x")
    return [receipt, run.id, run.attempt]


async def concurrently(run: Any) -> list[str]:
    return list(await asyncio.gather(run.step(fetch, "a"), run.step(fetch, "b")))


async def with_times_that_are_given(run: Any, begun: str) -> str:
    then = datetime.datetime.fromisoformat(begun) + datetime.timedelta(hours=1)
    await run.sleep_until(then)
    return then.isoformat()


async def with_paths_that_are_only_names(run: Any, folder: str) -> str:
    return str(Path(folder) / "x") + os.path.join(folder, "y") + os.sep


async def with_a_sorted_set(run: Any, names: list[str]) -> list[str]:
    return [await run.step("fetch", fetch, name) for name in sorted(set(names))]


async def a_member_of_a_set(run: Any, name: str) -> bool:
    allowed = {"a", "b"}
    return name in allowed


async def with_a_seed(run: Any, seed: int) -> float:
    return random.Random(seed).random()


async def a_local_named_like_a_module(run: Any, time: Any) -> Any:
    return time.time()


async def changes_its_own_list(run: Any) -> list[int]:
    rows: list[int] = []
    rows.append(1)
    return rows


async def reads_a_global_constant(run: Any) -> int:
    return LIMIT + len(CACHE)


async def a_partial_of_a_step(run: Any) -> Any:
    return await run.step("fetch", partial(fetch, "a"))


async def with_other_options(run: Any) -> Any:
    patient = run.using(version="2")
    return await patient.step("fetch", fetch, "a"), await run.using(changed="redo").step(fetch, "b")


async def the_clock_in_a_step(run: Any) -> Any:
    return await run.step("wait", asyncio.sleep, 0)


@traced
async def decorated(run: Any) -> Any:
    return await run.step(fetch, "a")


async def chosen_at_run_time(run: Any, urgent: bool) -> Any:
    step = fetch if urgent else charge
    return await run.step("chosen", step, "a")


# ---- not fit -----------------------------------------------------------------------------------------------------


@wants("clock")
async def reads_time(run: Any) -> float:
    return time.time()


@wants("clock")
async def reads_time_by_another_name(run: Any) -> float:
    return chronos.monotonic()


@wants("clock")
async def imports_it_inside(run: Any) -> float:
    from time import perf_counter as now

    return now()


@wants("clock")
async def reads_now(run: Any) -> str:
    return datetime.datetime.now(UTC).isoformat()


@wants("clock")
async def reads_today(run: Any) -> str:
    return datetime.date.today().isoformat()


@wants("clock")
async def sleeps_by_itself(run: Any) -> None:
    time.sleep(1)


@wants("clock")
async def through_a_helper(run: Any) -> float:
    return reads_the_clock()


@wants("clock")
async def as_a_default_of_sorting(run: Any, rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda _: time.time())


@wants("randomness")
async def draws(run: Any) -> float:
    return random.random()


@wants("randomness")
async def draws_by_another_name(run: Any) -> str:
    return pick(["a", "b"])


@wants("randomness")
async def without_a_seed(run: Any) -> float:
    return random.Random().random()


@wants("randomness")
async def makes_an_id(run: Any) -> str:
    return str(uuid.uuid4())


@wants("randomness")
async def reads_random_bytes(run: Any) -> bytes:
    return os.urandom(4)


@wants("randomness")
async def hashes_text(run: Any, name: str) -> int:
    return hash(name) % 4


@wants("outside")
async def reads_a_file(run: Any, path: str) -> str:
    with open(path) as file:
        return file.read()


@wants("outside")
async def reads_a_file_by_its_path(run: Any, path: str) -> str:
    return Path(path).read_text()


@wants("outside")
async def lists_a_folder(run: Any) -> list[str]:
    return os.listdir(".")


@wants("outside")
async def reads_the_environment(run: Any) -> str:
    return os.environ["HOME"]


@wants("outside")
async def reads_the_environment_by_a_function(run: Any) -> str | None:
    return os.getenv("HOME")


@wants("outside")
async def reads_the_command_line(run: Any) -> str:
    return sys.argv[0]


@wants("outside")
async def looks_whether_a_file_exists(run: Any) -> bool:
    return os.path.exists("x")


@wants("outside")
async def starts_a_thread(run: Any) -> str:
    return await asyncio.to_thread(blocking, "a")


@wants("outside")
async def starts_a_program(run: Any) -> None:
    import subprocess

    subprocess.run(["true"])


@wants("order")
async def iterates_over_a_set(run: Any, names: list[str]) -> list[str]:
    return [await run.step("fetch", fetch, name) for name in set(names)]


@wants("order")
async def iterates_over_a_set_with_a_name(run: Any, names: list[str]) -> None:
    left = set(names)
    for name in left:
        await run.step("fetch", fetch, name)


@wants("order")
async def makes_a_list_of_a_set(run: Any, names: list[str]) -> list[str]:
    return list({name.lower() for name in names})


@wants("order")
async def whichever_comes_first(run: Any) -> None:
    for one in asyncio.as_completed([run.step(fetch, "a"), run.step(fetch, "b")]):
        await one


@wants("closure")
async def a_lambda_as_a_step(run: Any) -> Any:
    return await run.step("fetch", lambda: fetch("a"))


@wants("closure")
async def an_inner_function_as_a_step(run: Any, url: str) -> Any:
    async def inner() -> str:
        return await fetch(url)

    return await run.step("fetch", inner)


@wants("closure")
async def a_bound_method_as_an_effect(run: Any) -> Any:
    return await run.effect("pay", BANK.pay, 3)


@wants("closure")
async def a_lambda_as_a_probe(run: Any) -> Any:
    return await run.effect("charge", charge, 3, recovery="probe", probe=lambda: was_charged())


@wants("run")
async def a_blocking_step(run: Any) -> Any:
    return await run.step("fetch", blocking, "a")


@wants("run")
async def runs_a_command(run: Any) -> Any:
    return run.command("list", ["ls"])


@wants("run")
async def looks_at_the_state(run: Any) -> Any:
    return run.state.version


@wants("state")
async def keeps_it_in_a_global(run: Any) -> None:
    CACHE["a"] = 1


@wants("state")
async def adds_to_a_global(run: Any) -> None:
    SEEN.append("a")


@wants("state")
async def rebinds_a_global(run: Any) -> None:
    global LIMIT
    LIMIT = 4


@wants("clock")
async def in_a_child(run: Any) -> Any:
    return await run.child("inner", reads_time)


@wants("clock", "randomness")
async def two_things(run: Any) -> str:
    begun = time.time()
    return f"{begun} {uuid.uuid4()}"


@wants("run")
def not_async(run: Any) -> int:
    return 1


@wants("closure")
async def _outer() -> None: ...


def made(factor: int) -> Any:
    async def inner(run: Any) -> int:
        return factor

    return inner


WANTED.pop("_outer")
