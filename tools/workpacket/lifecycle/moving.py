"""Whether a command may move a packet out of the lane that it is in, before any gate is asked."""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.ledger.state import PacketState
from workpacket.lifecycle.policy import POLICY_PATH
from workpacket.lifecycle.transitions import ADVANCE, CAME_FROM, Transition, leaving, transition, transitions
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.lanes import BUILT_IN, LaneTable


def move_unmet(state: PacketState, row: Transition, lanes: LaneTable = BUILT_IN) -> tuple[Unmet, ...]:
    """Why this transition cannot begin; `()` if it can."""
    packet = state.packet
    if state.forked:
        message = f"{packet} was moved independently on two branches"
        return (Unmet("packet_is_forked", message, f"workpacket resolve {packet} --lane LANE --reason TEXT"),)
    # A file that is no event would stop the plan, which rests on the log being what was read.
    if not state.sound or any(finding.code == "log_foreign_file" for finding in state.findings):
        return (Unmet("log_unsound", f"the log of {packet} does not hold together", f"workpacket log verify {packet}"),)
    if not state.history:
        return (Unmet("log_absent", f"{packet} has no log, so its lane is not known", "workpacket adopt"),)
    retired = [token for token in (state.lane, target_of(row, state)) if lanes.lane(token) is None]
    if retired:
        return (lane_retired(packet, retired[0]),)
    if state.lane not in row.origins:
        return (_wrong_lane(state, row, lanes),)
    return ()


def lane_retired(packet: str, token: str) -> Unmet:
    """That a packet stands in, or would come to, a lane that the policy no longer has."""
    message = f"{packet} is in {token}, or would come back to it, and the policy in force has no lane of that name"
    command = f"edit {POLICY_PATH}: put [lifecycle.lanes.{token}] back until no packet is in it"
    return Unmet("lane_not_in_policy", message, command, POLICY_PATH)


def _wrong_lane(state: PacketState, row: Transition, lanes: LaneTable) -> Unmet:
    packet, lane = state.packet, state.lane
    if lane == "STUB":
        message = f"{packet} is a stub; nobody may start work from one"
        return Unmet("packet_is_stub", message, f"workpacket activate {packet}")
    if lane == "SUPERSEDED":
        by = f" by {state.superseded_by}" if state.superseded_by else ""
        return Unmet(
            "packet_superseded", f"{packet} is superseded{by}", f"workpacket why {state.superseded_by or packet}"
        )
    possible = ", ".join(dict.fromkeys(other.command for other in leaving(lane, lanes))) or "nothing"
    message = f"{packet} is {lane}; {row.typed} leads from {' or '.join(row.origins)}. Possible now: {possible}"
    return Unmet("wrong_lane", message, forward_command(packet, lane, lanes))


def target_of(row: Transition, state: PacketState) -> str:
    """The lane that the transition leads to."""
    return (state.came_from or "READY_FOR_DEV") if row.target == CAME_FROM else row.target


# What brings a packet on, by the lane that it is in.
_FORWARD = {
    "STUB": "workpacket activate {id}",
    "READY_FOR_DEV": "workpacket claim {id}",
    "IN_PROGRESS": "workpacket submit {id}",
    "IN_REVIEW": "workpacket verdict {id} PASS --report FILE",
    "MERGE_PENDING": "workpacket merged {id}",
    "BLOCKED": "workpacket unblock {id}",
    "FAIL": "workpacket claim {id}",
    "FORKED": "workpacket resolve {id} --lane LANE --reason TEXT",
}


def forward_command(packet: str, lane: str, lanes: LaneTable = BUILT_IN) -> str:
    """The command that brings a packet of this lane on; `why` where nothing does."""
    other = "workpacket advance {id}" if lanes.is_added(lane) else "workpacket history {id}"
    return _FORWARD.get(lane, other).replace("{id}", packet)


def advancing(lane: str, lanes: LaneTable = BUILT_IN) -> Transition:
    """The row of `advance` for a lane; for one that another command leaves, a row that names those it is for."""
    rows = [row for row in transitions(lanes) if row.command == ADVANCE]
    added = tuple(row.origins[0] for row in rows) or ("an added lane, of which the policy has none",)
    return next((row for row in rows if lane in row.origins), Transition(ADVANCE, "advanced", added, "VALIDATED"))


def forward_transition(lane: str, lanes: LaneTable = BUILT_IN) -> Transition | None:
    if lanes.is_added(lane):
        return advancing(lane, lanes)
    words: Sequence[str] = _FORWARD.get(lane, "").split()
    if len(words) < 2 or words[1] == "resolve":
        return None
    return transition(words[1], "PASS" if words[1] == "verdict" else "", lanes)
