"""A verdict, and the facts that it needs, gathered by the shell.

If the event that used an approval is on the base, the facts are taken from the first base commit with that event: its
time, and the policy and specification that were current before it. Only revocation is judged by today's facts.
Therefore an old packet does not fail because its approver left, but a stolen key fails everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from workpacket.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from workpacket.approvals.envelope import EnvelopeFile, Spec, Subject
    from workpacket.approvals.verify import Judged
    from workpacket.problem import Problem

Assurance: TypeAlias = "Literal['none', 'legacy', 'signed']"


class PolicyFiles(Value):
    """The bytes of `.GOV/policy/` at the base revision; None for a missing file."""

    policy: bytes | None
    allowed_signers: bytes | None
    revoked_keys: bytes | None = None


class PacketLog(Value):
    """The events of the packet that the consuming event can see: their parents by id, and the ids of those that moved
    the packet to another lane.

    The consuming event and later ones are not included.
    """

    parents: Mapping[str, tuple[str, ...]]
    lane_changes: frozenset[str]

    def seen_from(self, heads: tuple[str, ...]) -> frozenset[str]:
        """Return the heads and all their ancestors."""
        seen: set[str] = set()
        waiting = [head for head in heads if head in self.parents]
        while waiting:
            event = waiting.pop()
            if event not in seen:
                seen.add(event)
                waiting.extend(self.parents.get(event, ()))
        return frozenset(seen)


class LegacyUse(Value):
    """A name-and-date token found in the history, anywhere in the repository."""

    token: str
    packet: str
    gate: str
    recorded_at: datetime
    presented_at: datetime | None


class GateFacts(Value):
    """One gate of one packet.

    `subjects` are exactly the raw bytes that must have been approved. `parties` names the others involved in the packet
    (`author`, `coder`). `consumptions` maps a nonce to the events that used it. `consumer` is the event to be judged,
    or None if it is only planned; `on_base_since` is the time of the first base commit with it, or None. If the
    consumer is settled, only rivals that were on the base before it count. `revoked_keys_now` is the file on the base
    today. `contract` is the digest of the contract that must have been approved, or None at the `policy` gate;
    `contract_fault` says why there is no such contract. `first_landed` is the time when the consumer first reached the
    base, if it was reverted later. `other_policies` are bases named in statements whose policy files differ. `amended`:
    whether a different contract has replaced this one, so `scope` is no longer its scope. `people` maps each name
    of a person to all names of that person.
    """

    now: datetime
    packet: str
    gate: str
    subjects: tuple[Subject, ...]
    root_commit: str
    base_history: frozenset[str]
    spec: Spec | None
    scope: tuple[str, ...]
    parties: Mapping[str, frozenset[str]]
    log: PacketLog
    policy: PolicyFiles
    envelopes: tuple[EnvelopeFile, ...]
    consumptions: Mapping[str, frozenset[str]]
    consumer: str | None = None
    on_base_since: datetime | None = None
    revoked_keys_now: bytes | None = None
    legacy_uses: tuple[LegacyUse, ...] = ()
    contract: str | None = None
    contract_fault: str = ""
    first_landed: datetime | None = None
    other_policies: frozenset[str] = frozenset()
    amended: bool = False
    people: Mapping[str, frozenset[str]] = NOTHING

    def person(self, principal: str) -> str:
        """Return one name for all principals of a person."""
        return min(self.people.get(principal, (principal,)))

    @property
    def settled(self) -> bool:
        """Whether the approvals were used by an event that is on the base."""
        return self.consumer is not None and self.on_base_since is not None

    @property
    def judged_at(self) -> datetime:
        """Return the time at which expiry is judged: when the approval was used on the base, or now if it was not."""
        return (self.on_base_since if self.settled else None) or self.now


class Voice(Value):
    """An approval that counts."""

    principal: str
    role: str
    envelope: str
    nonce: str
    fingerprint: str


class Verdict(Value):
    """The verdict. `unmet` is empty if and only if the gate is satisfied. `judged` lists every envelope, counted or
    not.
    """

    gate: str
    assurance: Assurance
    voices: tuple[Voice, ...]
    unmet: tuple[Problem, ...]
    judged: tuple[Judged, ...] = ()

    @property
    def met(self) -> bool:
        return not self.unmet
