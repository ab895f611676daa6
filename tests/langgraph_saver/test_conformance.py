"""The suite that LangGraph publishes for checkpointers, all of it, on every store: nothing undetected or skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from langgraph_saver.worlds import on, require_sound
from workpacket.runtime.stores.contract import Store


def test_every_capability_passes(each_store: Store) -> None:
    @checkpointer_test(name="WorkpacketSaver")
    async def ours() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        yield on(each_store)

    broken: list[str] = []

    class Progress:
        on_capability_start = on_capability_end = None

        @staticmethod
        def on_test_result(capability: str, test: str, passed: bool, error: str | None) -> None:
            if not passed:
                broken.append(f"{capability}.{test}: {error}")
            require_sound(each_store)

    report = asyncio.run(validate(ours, progress=Progress()))  # type: ignore[arg-type]  # it asks for nothing else
    assert broken == []
    assert set(report.results) == {capability.value for capability in ALL_CAPABILITIES}
    told = {name: (one.detected, one.passed, one.tests_skipped) for name, one in report.results.items()}
    assert told == dict.fromkeys(told, (True, True, 0))
    assert sum(one.tests_passed for one in report.results.values()) >= 81
