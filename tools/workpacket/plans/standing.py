"""Whether a command stands on the branch of another packet: what it records there would travel with that one's work.

Nobody on the target branch would see the claim or the verdict before the other packet is merged; and if that never is,
never. The backlog may be worked on from anywhere: `new`, `refine` and `activate` are not asked, nor what only looks.
"""

from __future__ import annotations

from typing import Final

from workpacket.lifecycle.unmet import Unmet
from workpacket.plans.facts import Facts, PacketFacts

ASKED: Final = frozenset({"claim", "release", "handover", "verdict", "merged", "reopen", "block", "unblock", "abandon"})


def whose_branch(facts: Facts, branch: str) -> str:
    """The packet that was prepared on the branch, or would be by the pattern of the policy; '' if it is nobody's."""
    prepared = (name for name, packet in facts.packets.items() if branch and packet.state.assignment.branch == branch)
    named = (name for name in facts.known if facts.policy.branch_of(name) == branch)
    return next(prepared, None) or next(named, "")


def standing_unmet(facts: Facts, packet: PacketFacts, command: str, branch: str) -> tuple[Unmet, ...]:
    """The refusal of a command about `packet` that is typed on the branch of another one."""
    name, own = packet.id.text, packet.state.assignment.branch
    if command not in ASKED or branch in {"", own, facts.target_branch}:
        return ()
    whose = whose_branch(facts, branch)
    if whose in {"", name}:
        return ()
    message = f"the branch of {whose} is checked out here ({branch}); what is recorded here travels with its work"
    place = own if own and command != "merged" else facts.target_branch
    return (Unmet("other_work_branch", message, f"git switch {place}, then: workpacket {command} {name}"),)
