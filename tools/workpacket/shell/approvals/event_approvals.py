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
from workpacket.lifecycle.gates import OPTIONAL_GATES, STANDARD
from workpacket.model.events import LogEvent
from workpacket.model.layout import envelope_name
from workpacket.shell.approvals.events import gates_asked
from workpacket.shell.approvals.facts import Approvals, gate_policy
from workpacket.shell.base.revision import policy_at

_NOBODY_YET = frozenset({"policy_unanchored", "approvers_unnamed"})


def rested_upon(approvals: Approvals, event: LogEvent) -> Iterator[Refusal]:
    """All that speaks against the approvals of this event; nothing where it needs none."""
    policy = policy_at(approvals.repository, approvals.policy_commit(event))
    asked = gates_asked(event, policy.policy)
    if not asked:
        return
    complete = True
    for gate in asked:
        rules = gate_policy(policy, gate)
        if rules is None and not _named(approvals, event, gate) and _unasked(approvals, event, gate, policy):
            continue
        verdict = approvals.verdict(event.packet, gate, event)
        yield from verdict.unmet
        complete = complete and verdict.met
        if verdict.met and rules is not None:
            yield from _unnamed(verdict, event, rules)
    if complete:
        yield from _unfit(approvals, event, asked)


def _named(approvals: Approvals, event: LogEvent, gate: str) -> bool:
    """Whether the event claims an approval at the gate, or one that is not here."""
    said = [approvals.claims.get(envelope_name(digest)) for digest in event.attest]
    return any(each is None or (each.packet, each.gate) == (event.packet, gate) for each in said)


def _unasked(approvals: Approvals, event: LogEvent, gate: str, policy: PolicyFiles) -> bool:
    """Whether a gate without rules was open: one that is only there where the policy says so, or before any policy."""
    return gate in OPTIONAL_GATES or (not event.attest and _before_any(approvals, event, policy))


def _before_any(approvals: Approvals, event: LogEvent, policy: PolicyFiles) -> bool:
    """Whether the base had the event before anybody could approve: what was so at the anchor is taken over."""
    if approvals.settled(event) is None:
        return False
    trusted = read_policy_files(policy)
    return isinstance(trusted, tuple) and {each.code for each in trusted} <= _NOBODY_YET


def _unnamed(verdict: Verdict, event: LogEvent, rules: GatePolicy) -> Iterator[Refusal]:
    """What satisfies the gate has to stand in the event: an envelope that came later opens nothing afterwards."""
    named = [voice for voice in verdict.voices if voice.envelope in event.attest]
    if verdict.assurance == "signed" and len({voice.principal for voice in named}) < rules.threshold:
        what = f"the event names {len(named)} of the envelopes that satisfy the gate {verdict.gate}"
        yield Refusal("approval_missing", f"{what}; it asks for {rules.threshold}")


def _unfit(approvals: Approvals, event: LogEvent, gates: tuple[str, ...]) -> Iterator[Refusal]:
    """Envelopes among those that the event names which are about something else.

    One of a gate that the policy added once, and no longer asks about, is more than is needed and no fault.
    """
    for digest in event.attest:
        said = approvals.claims.get(envelope_name(digest))
        other = said is not None and said.gate not in gates and said.gate in STANDARD
        if said is None or said.packet != event.packet or other:
            about = f"gate {said.gate} of {said.packet}" if said is not None else "nothing that is here"
            what = f"the event rests on the envelope {digest[:12]}, which is about {about}"
            yield Refusal("attest_unfit", f"{what}, not about the gate {' or '.join(gates)} of {event.packet}")
