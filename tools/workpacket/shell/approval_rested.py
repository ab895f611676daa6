"""Whether an event of the log had the approval that it rests on: asked by the gates of waivers, and by every check.

The event is judged as of the moment when it came onto the base (`approvals.facts`), from the envelopes that it names.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.decide import Verdict
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.policy import GatePolicy
from workpacket.approvals.policy_files import read_policy_files
from workpacket.approvals.refusal import Refusal
from workpacket.lifecycle.approval_terms import CONSUMING, OPTIONAL_GATES
from workpacket.model.events import Event
from workpacket.shell.approval_facts import Approvals, gate_policy
from workpacket.shell.base_revision import policy_at

_NOBODY_YET = frozenset({"policy_unanchored", "approvers_unnamed"})


def rested_upon(approvals: Approvals, event: Event) -> Iterator[Refusal]:
    """All that speaks against the approval of this event; nothing where it needs none."""
    gate = CONSUMING.get(event.type)
    if gate is None:
        return
    policy = policy_at(approvals.repository, approvals.policy_commit(event))
    rules = gate_policy(policy, gate)
    if rules is None and not event.attest and (gate in OPTIONAL_GATES or _before_any(approvals, event, policy)):
        return
    verdict = approvals.verdict(event.packet, gate, event)
    yield from verdict.unmet
    if verdict.met and rules is not None:
        yield from _unnamed(approvals, event, verdict, rules)


def _before_any(approvals: Approvals, event: Event, policy: PolicyFiles) -> bool:
    """Whether the base had the event before anybody could approve: what was so at the anchor is taken over."""
    if approvals.settled(event) is None:
        return False
    trusted = read_policy_files(policy)
    return isinstance(trusted, tuple) and {each.code for each in trusted} <= _NOBODY_YET


def _unnamed(approvals: Approvals, event: Event, verdict: Verdict, rules: GatePolicy) -> Iterator[Refusal]:
    """What satisfies the gate has to stand in the event: an envelope that came later opens nothing afterwards."""
    named = [voice for voice in verdict.voices if voice.envelope in event.attest]
    if verdict.assurance == "signed" and len({voice.principal for voice in named}) < rules.threshold:
        what = f"the event names {len(named)} of the envelopes that satisfy the gate {verdict.gate}"
        yield Refusal("approval_missing", f"{what}; it asks for {rules.threshold}")
    for digest in event.attest:
        said = approvals.claims.get(f"{digest}.dsse.json")
        if said is None or (said.packet, said.gate) != (event.packet, verdict.gate):
            about = f"gate {said.gate} of {said.packet}" if said is not None else "nothing that is here"
            what = f"the event rests on the envelope {digest[:12]}, which is about {about}"
            yield Refusal("attest_unfit", f"{what}, not about the gate {verdict.gate} of {event.packet}")
