"""Runs and packets on Temporal, for `pip install 'workpacket[temporal]'`. docs/runtime/temporal.md shows how to use it.

Temporal's SDK is imported only when a name is used; if it is missing, the error says what to install.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from workpacket.runtime.errors import RuntimeFault

if TYPE_CHECKING:
    from workpacket.temporal.client import Mismatch, answer, differences, move, questions, settle, start, tell_gate
    from workpacket.temporal.decisions import confirm, gate
    from workpacket.temporal.fitness import Unfit, unfit
    from workpacket.temporal.run_function import TemporalRun
    from workpacket.temporal.worker import EffectMark, WorkpacketPlugin, effect

__all__ = [
    "EffectMark", "Mismatch", "TemporalRun", "Unfit", "WorkpacketPlugin", "answer", "confirm", "differences",
    "effect", "gate", "move", "questions", "settle", "start", "tell_gate", "unfit",
]  # fmt: skip

_MODULES = {
    "client": ("Mismatch", "answer", "differences", "move", "questions", "settle", "start", "tell_gate"),
    "decisions": ("confirm", "gate"),
    "fitness": ("Unfit", "unfit"),
    "run_function": ("TemporalRun",),
    "worker": ("EffectMark", "WorkpacketPlugin", "effect"),
}


def __getattr__(name: str) -> object:
    module = next((module for module, names in _MODULES.items() if name in names), "")
    if not module:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if module != "fitness" and find_spec("temporalio") is None:
        raise RuntimeFault(
            "this needs Temporal's SDK", code="storage_unsuitable", hint="pip install 'workpacket[temporal]'"
        )
    return getattr(import_module(f"{__name__}.{module}"), name)
