"""The gates that a repository adds to the moves of the table: `[lifecycle.gates.NAME]` of its policy.

[lifecycle.gates.security]
on = "merged"

Such a gate asks for an approval of its own name, by the rules of `[approvals.gates.security]`, before the move and
beside everything that the move asks for anyway: a policy can make a move harder and never easier. It lies on one move,
so that a yes to one cannot pass for a yes to another. What begins before there is a packet (`new`, `activate`), or may,
(`supersede`, `abandon`), bears none: there would be nothing to approve.
"""

from __future__ import annotations

from typing import Final

from workpacket.lifecycle.approval_terms import CONSUMING
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import TRANSITIONS, Transition
from workpacket.model.events import Event

BEARING: Final = tuple(row for row in TRANSITIONS if row.origins and "STUB" not in row.origins)
# Names of gates that the tool asks about itself.
STANDARD: Final = frozenset({*CONSUMING.values(), "policy"})


def moves_under(on: str) -> tuple[Transition, ...]:
    """The moves on which a gate lies. One that names no move lies on all: a slip of the pen opens nothing."""
    return tuple(row for row in BEARING if row.typed == on) or BEARING


def added_gates(policy: LifecyclePolicy, event: str, choice: str = "") -> tuple[str, ...]:
    """The gates that the policy adds to a move, by the type of its event and the outcome that it chooses."""
    return tuple(
        added.gate
        for added in policy.gates
        if any(row.event == event and row.choice == choice for row in moves_under(added.on))
    )


def gates_of(event: Event, policy: LifecyclePolicy) -> tuple[str, ...]:
    """All gates whose approval an event rests upon."""
    own = CONSUMING.get(event.type)
    choice = event.text("verdict") or ""
    return (*((own,) if own is not None else ()), *added_gates(policy, event.type, choice))
