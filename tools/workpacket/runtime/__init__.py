"""Checkpoint and resume: runs that lose nothing and repeat nothing. This package can be used alone: see
docs/runtime/tutorial.md.

The names below are loaded on first use, so that `import workpacket.runtime` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workpacket.runtime.async_run import AsyncRun
    from workpacket.runtime.attempts.steps import Retry
    from workpacket.runtime.errors import NotDone, RunBlocked, RunCancelled, RuntimeFault, RunWaiting
    from workpacket.runtime.resume.observe import Observations, ResumePolicy
    from workpacket.runtime.run import Run
    from workpacket.runtime.runtime import Runtime, Settings

__all__ = [
    "AsyncRun",
    "NotDone",
    "Observations",
    "ResumePolicy",
    "Retry",
    "Run",
    "RunBlocked",
    "RunCancelled",
    "RunWaiting",
    "Runtime",
    "RuntimeFault",
    "Settings",
]

_HOME = {
    "AsyncRun": "async_run",
    "NotDone": "errors",
    "Observations": "resume.observe",
    "ResumePolicy": "resume.observe",
    "Retry": "attempts.steps",
    "Run": "run",
    "RunBlocked": "errors",
    "RunCancelled": "errors",
    "RunWaiting": "errors",
    "Runtime": "runtime",
    "RuntimeFault": "errors",
    "Settings": "runtime",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names: they are loaded on first use, so the default `dir` would omit them."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
