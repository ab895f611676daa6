"""Every transition between lanes: the one table that commands, gates, checks and pages read.

The names and board sections of lanes are in `model.lanes`; this table defines the moves between them: the command, the
gate, and the event in the log. `TRANSITIONS` is the built-in part; `transitions` returns the table with the lanes that
a policy adds. `move_unmet` says whether a packet may leave its lane at all, before any gate is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, Literal, TypeAlias

from workpacket.ledger.fold import PacketState
from workpacket.model.lanes import BUILT_IN, IN_WORK, WAY, LaneTable
from workpacket.model.layout import POLICY_PATH
from workpacket.model.wording import typed_as
from workpacket.problem import Location, Problem
from workpacket.value import Value, replace

Gate: TypeAlias = Literal["", "activation", "claim", "reason", "submit", "verdict", "containment"]
Role: TypeAlias = Literal["orchestrator", "coder", "validator"]

# Stands for the lane in which a blocked packet was blocked.
CAME_FROM: Final = "<came from>"
_OPEN: Final = tuple(lane.token for lane in BUILT_IN.lanes if lane.unfinished or lane.reclaimable)
# The lanes in which the contract may be amended: nothing is being judged there.
AMENDABLE: Final = ("READY_FOR_DEV", "IN_PROGRESS", "BLOCKED", "FAIL")
_CODER: Final[tuple[Role, ...]] = ("coder",)
_VALIDATOR: Final[tuple[Role, ...]] = ("validator",)
_ON_ADDED: Final[tuple[Role, ...]] = ("orchestrator", "validator")
_NOT_ARCHIVED: Final = tuple(lane.token for lane in BUILT_IN.lanes if not lane.archived)


class Transition(Value):
    """A move from any of `origins` to `target` by `command`, with `choice` if the command has several outcomes. `by`
    are the roles whose protocols list the move. Unless `anywhere` is set, the move is refused on the branch of another
    packet, because the target branch would show it only once that packet is merged.
    """

    command: str
    event: str
    origins: tuple[str, ...]
    target: str
    gate: Gate = ""
    choice: str = ""
    says: str = ""
    by: tuple[Role, ...] = ("orchestrator",)
    anywhere: bool = False

    @property
    def typed(self) -> str:
        """Return the command as typed, without the id."""
        return f"{self.command} {self.choice}".strip()


TRANSITIONS: Final[tuple[Transition, ...]] = (
    Transition("new", "created", (), "STUB", says="a stub is written", anywhere=True),
    Transition(
        "activate", "activated", ("STUB",), "READY_FOR_DEV", "activation",
        says="the stub becomes a packet", anywhere=True,
    ),
    Transition(
        "claim", "claimed", ("READY_FOR_DEV", "FAIL"), "IN_PROGRESS", "claim", says="someone claims the packet",
        by=_CODER,
    ),
    Transition(
        "release", "released", ("IN_PROGRESS",), "READY_FOR_DEV", "reason", says="the holder releases the packet",
        by=_CODER,
    ),
    Transition(
        "handover", "handed_over", ("IN_PROGRESS",), "READY_FOR_DEV", "reason", says="the holder hands the packet over",
        by=_CODER,
    ),
    # The gate compares the branch with that of the packet itself.
    Transition(
        "submit", "submitted", ("IN_PROGRESS",), "IN_REVIEW", "submit", says="the work is submitted for review",
        by=_CODER, anywhere=True,
    ),
    Transition(
        "verdict", "verdict.given", ("IN_REVIEW",), "IN_PROGRESS", "verdict", "CHANGES", "a validator requests changes",
        by=_VALIDATOR,
    ),
    Transition(
        "verdict", "verdict.given", ("IN_REVIEW",), "MERGE_PENDING", "verdict", "PASS", "a validator accepts the work",
        by=_VALIDATOR,
    ),
    Transition(
        "verdict", "verdict.given", ("IN_REVIEW",), "FAIL", "verdict", "FAIL", "a validator rejects the work",
        by=_VALIDATOR,
    ),
    Transition(
        "verdict", "verdict.given", ("IN_REVIEW", "VALIDATED"), "OUTDATED_ONLY", "verdict", "OUTDATED_ONLY",
        "the work is correct, but its specification has changed in the meantime", by=_VALIDATOR,
    ),
    Transition(
        "merged", "merged", ("MERGE_PENDING",), "VALIDATED", "containment", says="the work is on the target branch"
    ),
    Transition("reopen", "reopened", ("MERGE_PENDING",), "IN_PROGRESS", "reason", says="work is resumed"),
    Transition("block", "blocked", IN_WORK, "BLOCKED", "reason", says="the work cannot continue"),
    Transition("unblock", "unblocked", ("BLOCKED",), CAME_FROM, says="the work can continue"),
    Transition(
        "supersede", "superseded", _NOT_ARCHIVED, "SUPERSEDED", says="a later revision replaces the packet",
        anywhere=True,
    ),
    Transition("abandon", "abandoned", _OPEN, "ABANDONED", "reason", says="the packet is abandoned"),
)  # fmt: skip

# Events that place a packet in a lane without a transition: they record a fact for which a person is responsible.
PLACING_EVENTS: Final = frozenset({"adopted", "fork.resolved"})


# The command that leaves an added lane. Each such lane has its own row, so that a gate can be attached to it.
ADVANCE: Final = "advance"
ADVANCED: Final = "advanced"
# The commands that move a packet out of any lane with work in progress, including an added one.
_FROM_WORK: Final = frozenset({"block", "supersede", "abandon", "reopen"})


@cache
def transitions(lanes: LaneTable) -> tuple[Transition, ...]:
    """Return the table of a repository with its added lanes; `advance` leads out of each of them."""
    if not lanes.added:
        return TRANSITIONS
    added = tuple(lane.token for lane in lanes.added)
    rows = [_with_added(row, lanes, added) for row in TRANSITIONS]
    for lane in lanes.added:
        onward = lanes.onward(lane.token)
        says = lane.means or f"on to {onward}"
        rows.append(
            Transition(ADVANCE, ADVANCED, (lane.token,), onward, "", lane.token, says, _ON_ADDED, anywhere=True)
        )
    return tuple(rows)


def _with_added(row: Transition, lanes: LaneTable, added: tuple[str, ...]) -> Transition:
    if row.command in _FROM_WORK:
        return replace(row, origins=(*row.origins, *added))
    first = row.origins[0] if row.origins else ""
    if first in WAY[:-1] and BUILT_IN.onward(first) == row.target:
        return replace(row, target=lanes.onward(first))
    return row


def transition(command: str, choice: str = "", lanes: LaneTable = BUILT_IN) -> Transition:
    """Return the row for a command. A missing row is a bug in the program."""
    return next(row for row in transitions(lanes) if row.command == command and row.choice == choice)


def choices(command: str) -> tuple[str, ...]:
    """Return the outcomes from which a command chooses."""
    return tuple(row.choice for row in TRANSITIONS if row.command == command and row.choice)


def leaving(lane: str, lanes: LaneTable = BUILT_IN) -> Iterator[Transition]:
    """Yield the transitions out of a lane."""
    return (row for row in transitions(lanes) if lane in row.origins)


def is_legal(
    event: str,
    origin: str | None,
    target: str | None,
    *,
    came_from: str | None = None,
    lanes: LaneTable = BUILT_IN,
) -> bool:
    """Whether the table has a row for a move in a log."""
    if event in PLACING_EVENTS:
        return True
    return any(
        row.event == event
        and (origin in row.origins if row.origins else origin is None)
        and target == (came_from if row.target == CAME_FROM else row.target)
        for row in transitions(lanes)
    )


def move_unmet(state: PacketState, row: Transition, lanes: LaneTable = BUILT_IN) -> tuple[Problem, ...]:
    """Return why this transition cannot start; `()` if it can."""
    packet = state.packet
    if state.forked:
        message = f"{packet} was moved independently on two branches"
        return (
            Problem("packet_is_forked", message, hint=f"workpacket packet resolve {packet} --lane LANE --reason TEXT"),
        )
    # A file that is not an event would stop the plan, which requires the log to be as it was read.
    if not state.sound or any(finding.code == "log_foreign_file" for finding in state.findings):
        message = f"the log of {packet} is inconsistent"
        lost = any(finding.code in ("log_event_missing", "log_no_genesis") for finding in state.findings)
        hint = f"workpacket log {'recover' if lost else 'verify'} {packet}"
        return (Problem("log_unsound", message, hint=hint),)
    if not state.history:
        return (Problem("log_absent", f"{packet} has no log, so its lane is unknown", hint="workpacket adopt"),)
    retired = [token for token in (state.lane, target_of(row, state)) if lanes.lane(token) is None]
    if retired:
        return (lane_retired(packet, retired[0]),)
    if state.lane not in row.origins:
        return (_wrong_lane(state, row, lanes),)
    return ()


def lane_retired(packet: str, token: str) -> Problem:
    """Return the problem for a packet that is in, or would move to, a lane that the policy no longer defines."""
    message = f"{packet} is in {token}, or would return to it, but the current policy does not define that lane"
    command = f"edit {POLICY_PATH}: restore [lifecycle.lanes.{token}] until no packet is in that lane"
    return Problem("lane_not_in_policy", message, Location(POLICY_PATH), command)


def _wrong_lane(state: PacketState, row: Transition, lanes: LaneTable) -> Problem:
    packet, lane = state.packet, state.lane
    if lane == "STUB" and state.light:
        return Problem(
            "packet_is_stub", f"{packet} is a draft; no one works on it yet", hint=f"workpacket start {packet}"
        )
    if lane == "STUB":
        message = f"{packet} is a stub; work cannot start from a stub"
        return Problem("packet_is_stub", message, hint=forward_command(packet, lane, lanes, light=state.light))
    if lane == "SUPERSEDED":
        by = f" by {state.superseded_by}" if state.superseded_by else ""
        return Problem(
            "packet_superseded", f"{packet} is superseded{by}", hint=f"workpacket why {state.superseded_by or packet}"
        )
    possible = ", ".join(dict.fromkeys(typed_as(other.command) for other in leaving(lane, lanes))) or "nothing"
    message = (
        f"{packet} is {lane}, but {row.typed} applies only in {' or '.join(row.origins)}. Possible now: {possible}"
    )
    return Problem("wrong_lane", message, hint=forward_command(packet, lane, lanes, light=state.light))


def target_of(row: Transition, state: PacketState) -> str:
    """Return the lane that the transition leads to."""
    return (state.came_from or "READY_FOR_DEV") if row.target == CAME_FROM else row.target


# The command that leads on from a lane, and what is typed after it.
_FORWARD = {
    "STUB": ("activate", "{id}"),
    "READY_FOR_DEV": ("claim", "{id}"),
    "IN_PROGRESS": ("submit", "{id}"),
    "IN_REVIEW": ("verdict", "{id} PASS --report FILE"),
    "MERGE_PENDING": ("merged", "{id}"),
    "BLOCKED": ("unblock", "{id}"),
    "FAIL": ("claim", "{id}"),
    "FORKED": ("resolve", "{id} --lane LANE --reason TEXT"),
}


# The same in the light form, in which one command does what two do in the full form.
_FORWARD_LIGHT = {
    "STUB": ("start", "{id}"),
    "READY_FOR_DEV": ("start", "{id}"),
    "IN_PROGRESS": ("done", "{id}"),
    "IN_REVIEW": ("verdict", "{id} PASS --reason TEXT"),
    "FAIL": ("start", "{id}"),
}


def choice_of(event: str, lane_from: str, verdict: str) -> str:
    """Return what distinguishes moves with one event type: the verdict, or the added lane that the packet leaves."""
    return lane_from if event == ADVANCED else verdict


def verdict_command(packet: str, verdict: str, *, light: bool) -> str:
    """Return the whole command for a verdict, including everything that the form of the packet requires."""
    report = "--reason TEXT" if light else "--report FILE"
    return f"workpacket verdict {packet} {verdict} {'--reference PLACE' if verdict == 'CHANGES' else report}"


def forward_command(packet: str, lane: str, lanes: LaneTable = BUILT_IN, *, light: bool = False) -> str:
    """Return the command that moves a packet on from this lane; if there is none, the command that shows its log."""
    other = (ADVANCE if lanes.is_added(lane) else "history", "{id}")
    command, words = {**_FORWARD, **(_FORWARD_LIGHT if light else {})}.get(lane, other)
    return f"workpacket {typed_as(command)} {words.replace('{id}', packet)}"


def advancing(lane: str, lanes: LaneTable = BUILT_IN) -> Transition:
    """Return the row of `advance` for a lane; if a different command leads out of the lane, a row that lists the lanes
    of `advance`.
    """
    rows = [row for row in transitions(lanes) if row.command == ADVANCE]
    added = tuple(row.origins[0] for row in rows) or (
        "is recorded as an added lane, but the policy does not add any lanes",
    )
    return next((row for row in rows if lane in row.origins), Transition(ADVANCE, "advanced", added, "VALIDATED"))


def forward_transition(lane: str, lanes: LaneTable = BUILT_IN) -> Transition | None:
    if lanes.is_added(lane):
        return advancing(lane, lanes)
    command, _ = _FORWARD.get(lane, ("", ""))
    if command in {"", "resolve"}:
        return None
    return transition(command, "PASS" if command == "verdict" else "", lanes)
