"""What a command has to ask the approvals: whether the gates that it passes are approved, and which waivers count.

A `Question` is asked only about a packet that stands where the gate lies, so that a command which looks (`why`) can ask
about every gate that might be the next one. What verifies signatures is loaded when there is something to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, STANDING_GATE, VERDICT_GATE, ended, moves_under, standing_until
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import transition
from workpacket.model.plan import Moment
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from workpacket.approvals.decide import Verdict
    from workpacket.model.events import LogEvent
    from workpacket.shell.approvals.facts import Approvals


class Question(Value):
    """`lanes` are those in which the gate is asked, () for any. A gate that is `optional` needs a rule in the policy
    to be there at all; one that is not, and has none, stays shut."""

    gate: str
    terms: Mapping[str, str] = NOTHING
    lanes: tuple[str, ...] = ()
    optional: bool = False


ACTIVATION = Question(ACTIVATION_GATE, lanes=transition("activate").origins)


def verdict_question(choice: str) -> Question:
    return Question(VERDICT_GATE, {"verdict": choice}, transition("verdict", choice).origins, optional=True)


def added_questions(policy: LifecyclePolicy) -> tuple[Question, ...]:
    """About every gate that the policy adds to a move that may be the next one."""
    return tuple(
        Question(added.gate, lanes=tuple(lane for row in moves_under(added.on, policy.lanes) for lane in row.origins))
        for added in policy.gates
    )


class Said(Value):
    """The verdict for each gate that was asked about, and the ids of the waivers that count."""

    verdicts: Mapping[str, Verdict] = NOTHING
    approved: frozenset[str] = frozenset()


def ask(repository: Repository, packet: PacketFacts, questions: Sequence[Question], now: Moment) -> Said:
    wanted = [question for question in questions if not question.lanes or packet.state.lane in question.lanes]
    waivers = [event for event in packet.state.waivers if event.attest and not ended(event, now.now)]
    if not (wanted or waivers) or not packet.state.history:
        return Said()
    from workpacket.shell.approvals.facts import gate_policy, open_approvals, remember_base
    from workpacket.shell.approvals.uses import names_standing

    name = packet.id.text
    with open_approvals(repository, None, now, name) as approvals:
        approvals.know(packet.log)
        asked = [each for each in wanted if not each.optional or gate_policy(approvals.base.policy, each.gate)]
        standing = _is_standing(packet) and names_standing(approvals.base.policy.policy)
        # Asked for by the name of the gate in whose place the other one stands.
        gates = {each.gate: STANDING_GATE if standing and each.gate == ACTIVATION_GATE else each.gate for each in asked}
        verdicts = {each.gate: approvals.verdict(name, gates[each.gate], terms=each.terms) for each in asked}
        accepted = frozenset(_accepted(approvals, waivers)) if waivers else frozenset[str]()
        if verdicts:
            remember_base(approvals)
    return Said(verdicts, accepted)


def _is_standing(packet: PacketFacts) -> bool:
    return packet.stub is not None and standing_until(item.value for item in packet.stub.in_scope) is not None


def _accepted(approvals: Approvals, waivers: Sequence[LogEvent]) -> Iterator[str]:
    from workpacket.shell.approvals.event_approvals import lifts

    return (event.id for event in waivers if lifts(approvals, event))
