"""Govern work done by people and AI agents in a git repository.

Programs that run agents import what they need from here: see `workpacket.harness`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.harness import Claimed, Submitted, WorkPacket, claim, packets, start, submit, why
    from workpacket.problem import Problem, WorkpacketError

__version__ = "0.1.0"
__all__ = [
    "Claimed",
    "Problem",
    "Submitted",
    "WorkPacket",
    "WorkpacketError",
    "claim",
    "packets",
    "start",
    "submit",
    "why",
]


def __getattr__(name: str) -> object:
    """Load functions only on first use, because every command imports this module."""
    if name not in __all__:
        raise AttributeError(f"module 'workpacket' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("workpacket.harness"), name)
