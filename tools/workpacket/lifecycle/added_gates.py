"""The gates that a repository adds to the moves of the table: `[lifecycle.gates.NAME]` of its policy.

[lifecycle.gates.security]
on = "merged"

Such a gate asks for an approval of its own name, by the rules of `[approvals.gates.security]`, before the move and
beside everything that the move asks for anyway: a policy can make a move harder and never easier. It lies on one move,
so that a yes to one cannot pass for a yes to another; `on = "advance QA"` is the move out of the added lane QA. What
begins before there is a packet (`new`, `activate`), or may, (`supersede`, `abandon`), bears none: there would be
nothing to approve.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from workpacket.lifecycle.gates import CONSUMING
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import ADVANCED, TRANSITIONS, Transition, transitions
from workpacket.model.events import LogEvent
from workpacket.model.lanes import LaneTable


def bearing(rows: Iterable[Transition]) -> tuple[Transition, ...]:
    return tuple(row for row in rows if row.origins and "STUB" not in row.origins)


BEARING: Final = bearing(TRANSITIONS)
# Names of gates that the tool asks about itself.
STANDARD: Final = frozenset({*CONSUMING.values(), "policy"})


def moves_under(on: str, lanes: LaneTable) -> tuple[Transition, ...]:
    """The moves on which a gate lies. One that names no move lies on all: a slip of the pen opens nothing."""
    rows = bearing(transitions(lanes))
    return tuple(row for row in rows if row.typed == on) or rows


def added_gates(policy: LifecyclePolicy, event: str, choice: str = "") -> tuple[str, ...]:
    """The gates that the policy adds to a move, by the type of its event and the outcome that it chooses."""
    return tuple(
        added.gate
        for added in policy.gates
        if any(row.event == event and row.choice == choice for row in moves_under(added.on, policy.lanes))
    )


def choice_of(event: str, lane_from: str, verdict: str) -> str:
    """What tells the moves apart that are events of one type: the verdict, or the added lane that is left."""
    return lane_from if event == ADVANCED else verdict


def gates_of(event: LogEvent, policy: LifecyclePolicy) -> tuple[str, ...]:
    """All gates whose approval an event rests upon."""
    own = CONSUMING.get(event.type)
    choice = choice_of(event.type, event.lane_from or "", event.text("verdict") or "")
    return (*((own,) if own is not None else ()), *added_gates(policy, event.type, choice))
