"""What a command has to ask the approvals: whether the gates that it passes are approved, and which waivers count.

A `Question` is asked only about a packet that stands where the gate lies, so that a command which looks (`why`) can ask
about every gate that might be the next one. What verifies signatures is loaded when there is something to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.approvals.facts import Verdict
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.gates import ACTIVATION_GATE, VERDICT_GATE, ended, moves_under
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.lifecycle.transitions import transition
from workpacket.model.plan import Moment
from workpacket.shell.base import Base, find_base, gate_policy, no_verdict, remember_base
from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
    base = find_base(repository)
    asked = [each for each in wanted if not each.optional or gate_policy(base.policy, each.gate)]
    # Where nobody may approve yet, no envelope and no history is read to say so. A waiver was judged by the policy of
    # its day, and a damaged log is the first thing to hear of.
    sound = not any(each.severity == "error" for each in packet.log.findings)
    faults = no_verdict(base) if sound and not waivers else ()
    if faults:
        said = Said({each.gate: Verdict(each.gate, "none", (), faults) for each in asked})
    else:
        said = _judged(base, packet, asked, waivers, now)
    if said.verdicts:
        remember_base(base)
    return said


def _judged(
    base: Base, packet: PacketFacts, asked: Sequence[Question], waivers: Sequence[LogEvent], now: Moment
) -> Said:
    from workpacket.shell.approvals.facts import open_approvals

    name = packet.id.text
    with open_approvals(base.repository, base, now, name) as approvals:
        approvals.know(packet.log)
        verdicts = {each.gate: approvals.verdict(name, each.gate, terms=each.terms) for each in asked}
        return Said(verdicts, frozenset(_accepted(approvals, waivers)) if waivers else frozenset())


def _accepted(approvals: Approvals, waivers: Sequence[LogEvent]) -> Iterator[str]:
    from workpacket.shell.approvals.event_approvals import lifts

    return (event.id for event in waivers if lifts(approvals, event))
