"""Whether events of the log had the approvals that they need, for the gates of waivers and for every check; also which
approvals no longer count, and the events that replace them.

An event is judged as of the moment when it arrived on the base (`Base.place_of`), using the envelopes that it names.
`spoken_against` judges many events: the files of the base are read in advance, and events that were sound before are
not judged again.

An event is never rewritten. `reapproved` names new envelopes for the same event, gate and terms, which are judged by
the policy that applies when they are merged. This helps two kinds of event: one on the base whose approval or key was
revoked, and one that the base lacks, whose approvals counted when they were given but no longer do, because the policy,
the specification or a key changed, or time passed. An event that never had the approvals it needed stays refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from workpacket.approvals.decide import decide
from workpacket.approvals.facts import PolicyFiles, Verdict
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import POLICY_GATE, GatePolicy, Trusted, read_policy_files
from workpacket.git.objects import line_times
from workpacket.lifecycle.gates import CONSUMING, OPTIONAL_GATES, STANDARD, terms_of
from workpacket.lifecycle.side_moves import Withdrawn
from workpacket.model.events import LogEvent
from workpacket.model.layout import (
    ENVELOPE_SUFFIX,
    PACKETS,
    REFINEMENTS,
    envelope_name,
    packet_paths,
    refinement_paths,
    stub_path,
)
from workpacket.problem import Problem
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.subject import spec_places
from workpacket.shell.approvals.uses import gates_asked, policy_states
from workpacket.shell.base import (
    NOBODY_YET,
    OF_EVERY_JUDGEMENT,
    BaseLine,
    base_line,
    committed,
    gate_policy,
    policy_at,
    read_ahead,
)
from workpacket.shell.cache import Cache
from workpacket.value import replace


def rested_upon(approvals: Approvals, event: LogEvent) -> Iterator[Problem]:
    """Report every problem with the approvals of this event; nothing if the event needs none."""
    policy = approvals.place(event).policy
    asked = approvals.gates(event)
    if not asked:
        # Events on the base were judged when they landed, by versions that did not check this.
        if not approvals.place(event).brought_by:
            yield from _unfit(approvals, event, asked)
        return
    complete = True
    for gate in asked:
        rules = gate_policy(policy, gate)
        if rules is None and not _named(approvals, event, gate) and _unasked(approvals, event, gate, policy):
            continue
        verdict = approvals.verdict(event.packet, gate, event)
        # After a revocation, a later event may name new approvals. Otherwise one revoked key on the base would stop
        # every change after it.
        if not verdict.met and is_taken_over(approvals, event, verdict):
            continue
        yield from _about(verdict, event)
        complete = complete and verdict.met
        if verdict.met and rules is not None:
            yield from unnamed(verdict, event, rules)
    if complete:
        yield from _unfit(approvals, event, asked)
        yield from misplaced(approvals, event) if event.type == REAPPROVED else ()


def _about(verdict: Verdict, event: LogEvent) -> Iterator[Problem]:
    """Yield why the gate is not satisfied. Faults of envelopes that the event does not name are left out, if it names
    others: they were given for another event, or for the one that will replace these.
    """
    named = {envelope_name(digest) for digest in event.attest} & {each.name for each in verdict.judged}
    for each in verdict.unmet:
        if not named or not each.path.endswith(ENVELOPE_SUFFIX) or each.path in named:
            yield each


def lifts(approvals: Approvals, waiver: LogEvent) -> bool:
    """Whether a waiver is effective. If the policy has no rules for its gate, the waiver is only a note, regardless of
    the envelope that it lists.
    """
    rules = gate_policy(approvals.place(waiver).policy, CONSUMING[waiver.type])
    return rules is not None and not list(rested_upon(approvals, waiver))


def _named(approvals: Approvals, event: LogEvent, gate: str) -> bool:
    """Whether the event claims an approval at the gate, including one that is missing here."""
    said = [approvals.claims.get(envelope_name(digest)) for digest in event.attest]
    return any(each is None or (each.packet, each.gate) == (event.packet, gate) for each in said)


def _unasked(approvals: Approvals, event: LogEvent, gate: str, policy: PolicyFiles) -> bool:
    """Whether a gate without rules counts as open: an optional gate, or any gate before the first policy."""
    return gate in OPTIONAL_GATES or (not event.attest and _before_any(approvals, event, policy))


def _before_any(approvals: Approvals, event: LogEvent, policy: PolicyFiles) -> bool:
    """Whether the event was on the base before anyone could approve: the state at the anchor is accepted."""
    if not approvals.place(event).brought_by:
        return False
    trusted = read_policy_files(policy)
    return isinstance(trusted, tuple) and {each.code for each in trusted} <= NOBODY_YET


def _unfit(approvals: Approvals, event: LogEvent, gates: tuple[str, ...]) -> Iterator[Problem]:
    """Report envelopes listed in the event that are about something else, or about a gate that the event does not need.

    If the event is on the base, an envelope for a gate of an older policy is unnecessary, but not a fault.
    """
    settled = bool(approvals.place(event).brought_by)
    for digest in event.attest:
        said = approvals.claims.get(envelope_name(digest))
        unasked = said is not None and said.gate not in gates
        other = unasked and said is not None and not (settled and said.gate not in STANDARD)
        if said is None or said.packet != event.packet or other:
            about = f"about gate {said.gate} of {said.packet}" if said is not None else "about an unknown gate"
            what = f"the event names envelope {digest[:12]}, which is {about}"
            wanted = f"the gate {' or '.join(gates)} of {event.packet}" if gates else "a gate that the event needs"
            yield Problem("attest_unfit", f"{what}, not about {wanted}")


_MATTERS = (REFINEMENTS, PACKETS)


def events_at_gates(approvals: Approvals, consuming: Sequence[LogEvent]) -> list[LogEvent]:
    """Return the events that had to pass a gate, after reading everything on the base that concerns them.

    All commits are read by two calls to git, and contents in batches. Anything outside the base's first-parent history,
    such as a commit that the base lacks, is looked up by git itself.
    """
    repository = approvals.repository
    line = _line(approvals, *OF_EVERY_JUDGEMENT, *_MATTERS)
    befores = dict.fromkeys(approvals.place(event).policy_commit for event in consuming)
    read_ahead(repository, (f"{before}:{path}" for before in befores if before for path in OF_EVERY_JUDGEMENT), line)
    events = [event for event in consuming if event.attest or approvals.gates(event)]
    read_ahead(repository, _matters(approvals, events), line)
    specifications = list(_specifications(approvals, events))
    read_ahead(repository, specifications, _line(approvals, *(name.partition(":")[2] for name in specifications)))
    return events


def _line(approvals: Approvals, *paths: str) -> BaseLine | None:
    commit = approvals.base.commit
    return base_line(approvals.repository, commit, *dict.fromkeys(paths)) if commit and paths else None


def _matters(approvals: Approvals, events: Iterable[LogEvent]) -> Iterator[str]:
    """Yield the packets' files in the commits that settled their events."""
    for event in events:
        commit = approvals.place(event).brought_by
        if commit:
            packet = event.packet
            for path in (*refinement_paths(packet), *packet_paths(packet), stub_path(packet)):
                yield f"{commit}:{path}"


def _specifications(approvals: Approvals, events: Iterable[LogEvent]) -> Iterator[str]:
    """Yield the possible paths of the specifications listed in the pointers."""
    for before in {place.policy_commit for event in events if (place := approvals.place(event)).brought_by}:
        read = partial(committed, approvals.repository, before)
        yield from (f"{before}:{path}" for path in spec_places(read))


def spoken_against(approvals: Approvals, events: list[LogEvent], cache: Cache) -> Iterator[tuple[LogEvent, Problem]]:
    """Yield every problem with the approvals of these events, each with its event.

    Events that the cache records as sound are not judged again. An event that is not on the base is judged every time,
    as is an event whose verdict depends on the clock.
    """
    keys = _keys(approvals, events) if cache.is_open else {}
    known = cache.recall("sound", keys.values())
    doubted: set[str] = set()
    waiting = [
        event for event in events if not approvals.place(event).brought_by or keys.get(event.packet) not in known
    ]
    for event in events_at_gates(approvals, waiting):
        refusals, by_clock = _judged(approvals, event)
        # Only what cannot change is recorded as sound: no refusal, which new files may settle, and nothing that ends
        # with time. An event that the base lacks is judged every time, so it does not keep those of its packet from
        # being recorded.
        if refusals or by_clock or POLICY_GATE in approvals.gates(event):
            doubted.add(event.packet if approvals.place(event).brought_by else "")
        yield from ((event, refusal) for refusal in refusals)
    cache.keep("sound", ((key, "") for packet, key in keys.items() if packet not in doubted and key not in known))


def _judged(approvals: Approvals, event: LogEvent) -> tuple[list[Problem], bool]:
    """Return the problems of one event, and whether its verdict depends on the clock."""
    # `by_clock` is about all questions of the command; here it is asked about this event alone.
    before, approvals.by_clock = approvals.by_clock, False
    refusals = list(rested_upon(approvals, event))
    asked = approvals.by_clock
    approvals.by_clock = before or asked
    return refusals, asked


def _keys(approvals: Approvals, events: list[LogEvent]) -> Mapping[str, str]:
    """Return for each packet a digest of everything that its verdicts depend on; no digest if the log or the policy
    cannot be trusted. The commit that brought an event never changes. Everything else is in the digest: the events of
    the packet and their commits, the envelopes that are about the packet or revoke such an envelope, the bases in these
    envelopes that are known here, the first authors of its files, the keys revoked today, and the first commit. While
    these are unchanged, no approval of the packet can have become invalid, and no new objection can have appeared.
    """
    if not isinstance(approvals.trusted, Trusted):
        return {}
    revoked = hashlib.sha256(approvals.base.policy.revoked_keys or b"").hexdigest()
    everywhere = (approvals.base.root_commit, approvals.base.policy.revoked_keys is None, revoked)
    envelopes = _Envelopes(approvals)
    keys = {}
    for packet in dict.fromkeys(event.packet for event in events):
        log = approvals.log(packet)
        if log.findings:
            continue
        arrived = approvals.arrivals(packet)
        brought = sorted((event.id, arrived.get(event.path)) for event in log.events)
        named = {envelope_name(digest) for event in log.events for digest in event.attest}
        paths = (*refinement_paths(packet), *packet_paths(packet))
        authors = [sorted(approvals.first_authors.of(path)) for path in paths]
        # `repr` of texts and numbers is the same in every process; `hash` is not.
        rests_on = ("packet", packet, everywhere, brought, envelopes.about(packet, named), authors)
        keys[packet] = hashlib.sha256(repr(rests_on).encode("utf-8", "surrogateescape")).hexdigest()
    return keys


class _Envelopes:
    """All envelopes, indexed by packet and by what they revoke."""

    def __init__(self, approvals: Approvals) -> None:
        self._bases = approvals.known_bases
        self._claims = approvals.claims
        self._digests = {file.name: hashlib.sha256(file.data).hexdigest() for file in approvals.envelopes}
        self._by_packet: dict[str, set[str]] = {}
        self._revoking: dict[str, set[str]] = {}
        for name, said in self._claims.items():
            self._by_packet.setdefault(said.packet, set()).add(name)
            for subject in said.subjects if said.decision == "revoke" else ():
                self._revoking.setdefault(subject.sha256, set()).add(name)

    def about(self, packet: str, named: Iterable[str]) -> list[tuple[str, str, bool]]:
        """Return the envelopes about the packet, those that its events list, and those that revoke one of these: name,
        digest, and whether their base is known. A listed envelope that is missing or unreadable is marked as such.
        """
        own = self._by_packet.get(packet, set()).union(named)
        own = own.union(*(self._revoking.get(name.partition(".")[0], ()) for name in own))
        return [(name, self._digests.get(name, ""), self._saw_known_base(name)) for name in sorted(own)]

    def _saw_known_base(self, name: str) -> bool:
        said = self._claims.get(name)
        return said is not None and said.base in self._bases


REAPPROVED = "reapproved"
_TAKEN_BACK = frozenset({"approval_revoked", "key_revoked"})


def unnamed(verdict: Verdict, event: LogEvent, rules: GatePolicy) -> Iterator[Problem]:
    """Report envelopes that satisfy the gate but are not listed in the event: a later envelope cannot open a gate
    retroactively.
    """
    named = [voice for voice in verdict.voices if voice.envelope in event.attest]
    if verdict.assurance == "signed" and len({voice.principal for voice in named}) < rules.threshold:
        what = f"the event lists {len(named)} of the envelopes that satisfy gate {verdict.gate}"
        yield Problem("approval_missing", f"{what}; the gate requires {rules.threshold}")


def is_taken_over(approvals: Approvals, event: LogEvent, verdict: Verdict) -> bool:
    """Whether the approvals of the event stopped counting, and a later event names new ones."""
    log, origin = approvals.log(event.packet), approvals.origin(event)
    later = [
        each
        for each in log.events
        if each.type == REAPPROVED
        and (each.text("event"), each.text("gate")) == (origin.id, verdict.gate)
        and event.id in log.ancestry(each.parents)
    ]
    if not later or not (_taken_back(approvals, event, verdict) or counted_before(approvals, event, verdict.gate)):
        return False
    return any(_holds(approvals, each) for each in later)


def _taken_back(approvals: Approvals, event: LogEvent, verdict: Verdict) -> tuple[str, ...]:
    """Of the envelopes named by the event on the base, return those that have been revoked or whose keys have been
    revoked."""
    if not approvals.place(event).brought_by:
        return ()
    judged = {each.name.partition(".")[0]: {refusal.code for refusal in each.refusals} for each in verdict.judged}
    return tuple(digest for digest in event.attest if judged.get(digest, set()) & _TAKEN_BACK)


def counted_before(approvals: Approvals, event: LogEvent, gate: str) -> bool:
    """Whether the event had what the gate required when it was written, under a policy that the base had: approvals
    that counted then, or none if none were required.
    """
    repository, tip = approvals.repository, approvals.base.commit
    if not _named(approvals, event, gate):
        policies = [policy_at(repository, each) for some in policy_states(repository, tip).values() for each in some]
        optional = gate in OPTIONAL_GATES and any(gate_policy(policy, gate) is None for policy in policies)
        return optional or any(gate not in gates_asked(event, policy.policy) for policy in policies)
    said = (approvals.claims.get(envelope_name(digest)) for digest in event.attest)
    # A statement names the commit whose policy its signer saw. Only commits on the line of the base count: anyone can
    # make one with a policy of their own.
    line = {commit for commit, _ in line_times(repository, tip)} if tip else set()
    seen = {each.base for each in said if each is not None and each.gate == gate} & line
    return any(_counted_at(approvals, event, gate, commit) for commit in seen)


def _counted_at(approvals: Approvals, event: LogEvent, gate: str, commit: str) -> bool:
    """Whether the envelopes that the event names satisfied the gate under the policy of this commit, at the time that
    the event gives. Later revocations are not considered, because new approvals are needed anyway.
    """
    policy, at = policy_at(approvals.repository, commit), read_instant(event.at)
    rules = gate_policy(policy, gate)
    if rules is None or at is None:
        return False
    place = replace(approvals.place(event), policy_commit=commit, on_base_since=at, first_landed=None)
    facts = approvals.facts(event.packet, gate, event, place=place)
    named = {envelope_name(digest) for digest in event.attest}
    envelopes = tuple(each for each in facts.envelopes if each.name in named)
    verdict = decide(replace(facts, envelopes=envelopes, revoked_keys_now=None))
    return verdict.met and not list(unnamed(verdict, event, rules))


def _holds(approvals: Approvals, event: LogEvent) -> bool:
    gate = event.text("gate") or ""
    rules = gate_policy(approvals.place(event).policy, gate)
    verdict = approvals.verdict(event.packet, gate, event)
    return rules is not None and verdict.met and not [*unnamed(verdict, event, rules), *misplaced(approvals, event)]


def misplaced(approvals: Approvals, event: LogEvent) -> Iterator[Problem]:
    """Report a misplaced `reapproved`: the event that it refers to is missing, or never needed an approval."""
    log, origin, gate = approvals.log(event.packet), approvals.origin(event), event.text("gate") or ""
    before = log.ancestry(event.parents)
    named = {digest for each in _line_of(approvals, origin) if each.id in before for digest in each.attest}
    if origin.type == REAPPROVED or origin.id not in before:
        yield Problem("reapproval_unfit", "this event does not follow the event whose approvals it replaces")
    elif gate not in approvals.gates(origin):
        yield Problem("reapproval_unfit", f"{origin.type} did not need an approval at gate {gate}")
    elif not approvals.place(origin).brought_by and not counted_before(approvals, origin, gate):
        message = f"{origin.type} is not on the base, and never had the approvals that it needed: record it again"
        yield Problem("reapproval_unfit", message)
    elif not set(event.texts("replaces")) <= named:
        yield Problem("reapproval_unfit", f"this event replaces an envelope that {origin.type} does not use")


def _line_of(approvals: Approvals, origin: LogEvent) -> Iterator[LogEvent]:
    """Yield the event, and the events that replaced its approvals."""
    yield origin
    log = approvals.log(origin.packet)
    yield from (each for each in log.events if each.type == REAPPROVED and each.text("event") == origin.id)


def withdrawn(approvals: Approvals, packet: str, gate: str = "") -> Iterator[Withdrawn]:
    """Yield the gates that the packet passed with approvals that no longer count; with `gate`, only that gate."""
    for event in approvals.log(packet).events:
        if event.type == REAPPROVED:
            continue
        for asked in approvals.gates(event):
            if gate in ("", asked) and not any(_counts(approvals, each, asked) for each in _line_of(approvals, event)):
                lost = _lost(approvals, event, asked)
                if lost is not None:
                    now = approvals.verdict(packet, asked, terms=terms_of(event, asked))
                    yield Withdrawn(event, asked, lost, now)


def _counts(approvals: Approvals, event: LogEvent, gate: str) -> bool:
    return gate in approvals.gates(event) and approvals.verdict(event.packet, gate, event).met


def _lost(approvals: Approvals, origin: LogEvent, gate: str) -> tuple[str, ...] | None:
    """Return the envelopes of the event and of its replacements that no longer count; None if new ones would not help
    the event.
    """
    line = [each for each in _line_of(approvals, origin) if gate in approvals.gates(each)]
    place = approvals.place(origin)
    if place.brought_by:
        lost = (_taken_back(approvals, each, approvals.verdict(each.packet, gate, each)) for each in line)
        return tuple(sorted({digest for some in lost for digest in some})) or None
    open_gate = gate_policy(place.policy, gate) is None and _unasked(approvals, origin, gate, place.policy)
    if open_gate or not counted_before(approvals, origin, gate):
        return None
    at_gate = {file.name for file in approvals.selection.about(origin.packet, gate)}
    return tuple(sorted({digest for each in line for digest in each.attest if envelope_name(digest) in at_gate}))
