"""Which foreign forms there are. Data only; a bridge is imported when its form is asked for."""

from __future__ import annotations

from importlib import import_module

from workpacket.bridges.foreign import Bridge

# Form, and the module that has it as its constant `BRIDGE`.
BRIDGES: dict[str, str] = {
    "batch": "batch_bridge",
    "commit": "commit_bridge",
    "role": "role_bridge",
    "runstate": "runstate_bridge",
    "session": "session_bridge",
    "step": "step_bridge",
}


def bridge_named(name: str) -> Bridge:
    """The bridge of a form of `BRIDGES`."""
    bridge: Bridge = import_module(f"workpacket.bridges.{BRIDGES[name]}").BRIDGE
    return bridge
