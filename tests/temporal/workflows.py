"""Workflows as somebody has them already, with activities of which one is an effect."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from workpacket.temporal import confirm, effect, gate

with workflow.unsafe.imports_passed_through():
    from temporal.jobs import happened, write_down

TIMES: Any = {"start_to_close_timeout": timedelta(seconds=30), "heartbeat_timeout": timedelta(seconds=1)}


@effect(recovery="manual", target="the bank", compensate="give_back")
@activity.defn
async def transfer(amount: int) -> str:
    write_down(f"transferred {amount}")
    if amount > 100:
        raise ConnectionError("no answer")
    return f"receipt {amount}"


@effect(recovery="manual")
@activity.defn
def transfer_in_a_thread(amount: int) -> str:
    write_down(f"transferred {amount}")
    return f"receipt {amount}"


@effect(recovery="manual")
@activity.defn
async def refuse(amount: int) -> str:
    raise ApplicationError(f"{amount} is too much", type="NotDone", non_retryable=True)


@effect(recovery="probe", probe="look_for_it")
@activity.defn
async def send(amount: int) -> str:
    write_down(f"sent {amount}")
    raise ConnectionError("no answer")


@activity.defn
async def look_for_it(amount: int) -> str:
    if f"sent {amount}" in happened():
        return f"found {amount}"
    raise ApplicationError("nothing was sent", type="NotDone", non_retryable=True)


@activity.defn
async def give_back(amount: int) -> None:
    write_down(f"gave back {amount}")


@activity.defn
async def read(amount: int) -> int:
    write_down("read")
    if happened().count("read") < 2:
        raise OSError("not yet")
    return amount


@activity.defn
async def nothing(number: int) -> int:
    return number


@workflow.defn
class Transfer:
    """Another activity first, which Temporal repeats as it always does; then the effect named in the request."""

    @workflow.run
    async def run(self, amount: int, how: str = "transfer") -> Any:
        await workflow.execute_activity(
            read, amount, retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=1)), **TIMES
        )
        return await workflow.execute_activity(how, amount, **TIMES)


@workflow.defn
class Release:
    @workflow.run
    async def run(self, packet: str) -> str:
        await gate(packet, "activation", poll=timedelta(seconds=30))
        await confirm("release?", {"packet": packet})
        return "released"


@workflow.defn
class Repeats:
    """The same effect in several executions of one workflow."""

    @workflow.run
    async def run(self, left: int) -> str:
        receipt: str = await workflow.execute_activity("transfer", left, **TIMES)
        if left > 1:
            workflow.continue_as_new(left - 1)
        return receipt


@workflow.defn
class Endless:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


@workflow.defn
class Fails:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("it is broken", type="budget_exhausted", non_retryable=True)


@workflow.defn
class Many:
    """Activities without anything of ours, for the measurement."""

    @workflow.run
    async def run(self, count: int, name: str, together: bool = False) -> int:
        if together:
            calls = [workflow.execute_activity(name, each, **TIMES) for each in range(count)]
            return len(await asyncio.gather(*calls))
        for each in range(count):
            await workflow.execute_activity(name, each, **TIMES)
        return count


WORKFLOWS = [Transfer, Release, Repeats, Endless, Fails, Many]
ACTIVITIES = [transfer, transfer_in_a_thread, refuse, send, look_for_it, give_back, read, nothing]
