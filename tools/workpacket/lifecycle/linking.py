"""Runs of the runtime and the packet that they work on: who may begin one, and what an unfinished one stands against.

All of it is judged from the log alone, so that CI, which has no store of runs, comes to the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.ledger.state import PacketState
from workpacket.lifecycle.moving import move_unmet
from workpacket.lifecycle.transitions import transition
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.lanes import BUILT_IN, lane_of_token


def link_unmet(state: PacketState) -> tuple[Unmet, ...]:
    """Why no run may begin, or go on, for this packet; `()` if one may."""
    packet, lane = state.packet, state.lane
    if state.forked or not state.sound or not state.history:
        return move_unmet(state, transition("claim"), BUILT_IN)
    commands = {"STUB": f"just create-task-packet {packet}", "BLOCKED": f"workpacket unblock {packet}",
                "FAIL": f"workpacket claim {packet}"}  # fmt: skip
    known = lane_of_token(lane)
    if lane not in commands and (known is None or known.unfinished):
        return ()
    by = f" by {state.superseded_by}" if state.superseded_by else ""
    message = f"{packet} is only a stub" if lane == "STUB" else f"{packet} is {lane}{by}"
    return (Unmet("packet_not_active", message, commands.get(lane, f"workpacket show {packet}")),)


def unfinished_runs(state: PacketState) -> Iterator[Unmet]:
    """Every run of the packet that nobody closed."""
    for run in state.open_runs:
        message = f"the run {run.run} still works on {state.packet}"
        yield Unmet("run_unfinished", message, f"workpacket cancel {run.run}")


def reminders(state: PacketState, what: str) -> tuple[str, ...]:
    """Notes for a command that an unfinished run does not stop; `what` is the end of the sentence."""
    return tuple(f"the run {run.run} is unfinished: {what}" for run in state.open_runs)
