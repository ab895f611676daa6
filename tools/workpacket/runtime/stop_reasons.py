"""The registry of stop reasons as the runtime asks it: every code has an answer, also one that nobody registered."""

from __future__ import annotations

from functools import cache
from typing import cast

from workpacket.model.reason_tables.stops import REASONS
from workpacket.model.reasons import Registry
from workpacket.model.stops import StopReason


@cache
def _registry() -> Registry:
    return Registry(REASONS)


def reason_of(code: str) -> StopReason:
    """The reason of a code or alias; `unregistered` (exit status 9) for any other text."""
    registry = _registry()
    return cast(StopReason, registry[code] if code in registry else registry["unregistered"])
