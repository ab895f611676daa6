"""Gather the facts for a verdict, and return the verdict.

verdict = gate_verdict(repository, "WP-1-Parser-v1", "activation", moment=moment())

Policy and specification come from the base, the subject of the approval from the work tree, envelopes from both. For an
event on the base, they come from the point at which it was settled: `Approvals.place`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial

from workpacket.approvals.actors import Actors
from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import PACKET, EnvelopeFile, Selection, Statement, Subject
from workpacket.approvals.facts import GateFacts, LegacyUse, PolicyFiles, Verdict
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import POLICY_GATE, GatePolicy, Pin, Trusted, read_policy_files
from workpacket.git.repository import Repository
from workpacket.ledger.fold import SETS_CONTRACT
from workpacket.ledger.log import Log
from workpacket.lifecycle.gates import ACTIVATING, VERDICT_GATE, terms_of, with_report, written
from workpacket.model.events import LogEvent
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, envelope_name
from workpacket.model.plan import Moment
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.approvals.envelopes import (
    others_than,
    read_attestations,
    read_file,
    read_packet_log,
    with_those_of_base,
    work_tree,
)
from workpacket.shell.approvals.subject import ApprovalSubject, contract_asked, matter_of, spec_in_force
from workpacket.shell.approvals.uses import (
    FirstAuthors,
    TokenHistory,
    consumed_subjects,
    consumptions,
    gates_asked,
    legacy_uses,
    other_policies,
    packet_log,
    parties_of,
    policy_changes,
    token_history,
)
from workpacket.shell.base import (
    Base,
    Place,
    committed,
    committed_file,
    find_base,
    gate_policy,
    held_since,
    judge_pin,
    known_to,
    remember_base,
    tree_at,
    unanchored,
    with_former,
)
from workpacket.shell.transactions.storage import Tree
from workpacket.value import NOTHING


class Approvals:
    """The approvals of a repository for one command: one base, one reading of the folder, one clock.

    With `packet`, only its own envelopes and its part of the history are read.
    """

    def __init__(self, repository: Repository, base: Base, tree: Tree, now: datetime, packet: str = "") -> None:
        self.packet = packet
        self.repository = repository
        self.base = base
        self.tree = tree
        self.now = now
        self.by_clock = False  # whether any verdict depends on the current time
        self._logs: dict[str, Log] = {}
        self._places: dict[str, Place] = {}
        self._actors: dict[PolicyFiles, Actors] = {}

    @cached_property
    def envelopes(self) -> tuple[EnvelopeFile, ...]:
        return with_those_of_base(self.own_envelopes, self.base, self._left_out)

    @cached_property
    def own_envelopes(self) -> tuple[EnvelopeFile, ...]:
        """Return the envelopes in the work tree."""
        return read_attestations(self.tree, self._left_out)

    @cached_property
    def _left_out(self) -> frozenset[str]:
        """Return the envelopes known not to concern the packet."""
        if not (self.packet and self.base.commit):
            return frozenset()
        # Envelopes of other packets cannot open a gate of this one, and there may be tens of thousands. Those that its
        # log names are always read.
        named = [digest for event in self.log(self.packet).events for digest in event.attest]
        return others_than(self.tree, self.base, self.packet, named)

    @cached_property
    def claims(self) -> Mapping[str, Statement]:
        """Return the statement of each readable envelope, by file name; none of them is trusted yet."""
        return self.selection.claims

    @cached_property
    def selection(self) -> Selection:
        return Selection(self.envelopes)

    @cached_property
    def known_bases(self) -> frozenset[str]:
        """Return the base commits mentioned in statements that are part of the base's history."""
        return known_to(self.repository, self.base.commit, {said.base for said in self.claims.values()})

    @cached_property
    def pin(self) -> Pin | Problem | None:
        return judge_pin(self.base)

    @cached_property
    def trusted(self) -> Trusted | tuple[Problem, ...]:
        """Return the base's policy, or why there is none."""
        if isinstance(self.pin, Problem):
            return (self.pin,)
        return read_policy_files(self.base.policy, self.base.policy.revoked_keys)

    @cached_property
    def first_authors(self) -> FirstAuthors:
        return FirstAuthors(self.repository)

    @cached_property
    def token_history(self) -> TokenHistory:
        return token_history(self.repository, self.tree)

    def log(self, packet: str) -> Log:
        if packet not in self._logs:
            self._logs[packet] = read_packet_log(self.tree, packet)
        return self._logs[packet]

    def forget_logs(self) -> None:
        """Forget the logs that were read, and where their events are on the base. They are read again if needed."""
        self._logs.clear()
        self._places.clear()

    def know(self, log: Log) -> None:
        """Reuse a log that the command has already read. Listing the names in it verifies that no folder on its path is
        a link.
        """
        self.tree.names(f"{LOG_FOLDER}/{log.packet}")
        self._logs[log.packet] = log

    def matter(self, packet: str, gate: str) -> ApprovalSubject:
        """Return what would be approved now."""
        return matter_of(partial(read_file, self.tree), self.tree, packet, gate)

    def verdict(
        self, packet: str, gate: str, consumer: LogEvent | None = None, terms: Mapping[str, str] | None = None
    ) -> Verdict:
        """Return the verdict for this event, or for one yet to be written, on these terms."""
        if isinstance(self.pin, Problem):
            return _refused(gate, (self.pin,))
        if self.base.policy.policy is None:
            return _refused(gate, (unanchored(self.base),))
        # A policy that cannot be read closes every gate except its own: otherwise it could never be repaired.
        if gate != POLICY_GATE and self.base.unreadable and not self.place(consumer).brought_by:
            return _refused(gate, self.base.unreadable)
        doubts = tuple(each.at(each.path) for each in self.log(packet).findings if each.severity == "error")
        return _refused(gate, doubts) if doubts else decide(self.facts(packet, gate, consumer, terms=terms))

    def facts(
        self,
        packet: str,
        gate: str,
        consumer: LogEvent | None = None,
        *,
        terms: Mapping[str, str] | None = None,
        more: tuple[EnvelopeFile, ...] = (),
        place: Place | None = None,
    ) -> GateFacts:
        """Gather a gate's facts. `more` contains envelopes that have not been written yet; `place` replaces the event's
        own place."""
        place = place or self.place(consumer)
        policy = place.policy
        on_base = partial(committed_file, self.repository, place.brought_by)
        read = on_base if place.brought_by else partial(read_file, self.tree)
        matter = matter_of(read, self.tree, packet, gate)
        if consumer is not None:
            terms = terms_of(self.origin(consumer), gate)
        log = self.log(packet)
        selection = Selection((*self.envelopes, *more)) if more else self.selection
        envelopes = self._speaking(selection.about(packet, gate), place)
        wanted = {selection.claims[file.name].base for file in more if file.name in selection.claims}
        bases = self.known_bases | known_to(self.repository, self.base.commit, wanted) if wanted else self.known_bases
        heads = log.heads if consumer is None else consumer.parents
        read_base = partial(committed, self.repository, place.policy_commit)
        rules = gate_policy(policy, gate)
        tokens = rules is not None and rules.legacy_tokens
        parties, people = self._people(log, matter, rules, place)
        self.by_clock |= tokens or place.on_base_since is None
        said = [selection.claims.get(file.name) for file in envelopes]
        terms = _as_stated(terms or {}, consumer, envelopes, said) if gate == VERDICT_GATE else terms
        # Statements of version 1 name no contract, and finding the one in force requires parsing the packet.
        asks = any(each is not None and each.version > 1 for each in said)
        contract, fault = contract_asked(read, log, packet, gate, self._stating(consumer)) if asks else (None, "")
        return GateFacts(
            now=self.now,
            packet=packet,
            gate=gate,
            subjects=self._subjects(consumer, gate, matter),
            root_commit=self.base.root_commit,
            base_history=bases,
            spec=spec_in_force(read_base, matter) if gate != POLICY_GATE and not matter.light else None,
            scope=tuple(sorted((*matter.scope, *written(terms or {})))),
            parties=parties,
            people=people,
            log=packet_log(log, heads),
            policy=policy,
            envelopes=envelopes,
            consumptions=policy_changes(self) if gate == POLICY_GATE else consumptions(self, log, consumer),
            consumer=consumer.id if consumer is not None else None,
            on_base_since=place.on_base_since,
            first_landed=place.first_landed,
            other_policies=other_policies(self) if gate == POLICY_GATE else frozenset(),
            revoked_keys_now=self.base.policy.revoked_keys,
            legacy_uses=self._tokens(matter, packet, gate, consumer, rules) if not envelopes or tokens else (),
            contract=contract,
            contract_fault=fault,
            amended=self._is_amended(consumer, log),
        )

    def _people(
        self, log: Log, matter: ApprovalSubject, rules: GatePolicy | None, place: Place
    ) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
        """Return the parties listed in the gate's rules, and all names of each person."""
        if rules is None:
            return NOTHING, NOTHING
        # What is on the base was judged when it landed, by versions that did not link the names of a person.
        policy, linked = place.policy, place.on_base_since is None
        if policy not in self._actors:
            self._actors[policy] = with_former(self.repository, self.base.commit, actors_at(policy))
        actors = self._actors[policy]
        parties = parties_of(self.first_authors, log, matter, rules, actors, linked=linked)
        return parties, actors.people if linked else NOTHING

    def _tokens(
        self, matter: ApprovalSubject, packet: str, gate: str, consumer: LogEvent | None, rules: GatePolicy | None
    ) -> tuple[LegacyUse, ...]:
        return legacy_uses(
            lambda: self.token_history,
            matter,
            self.log(packet),
            packet,
            gate,
            self.now,
            accepted=rules is not None and rules.legacy_tokens,
            consumer=consumer,
        )

    def place(self, event: LogEvent | None) -> Place:
        """Return the place whose policy judges the event, and the time of judgement; nearly every question about a
        verdict depends on these two. None means an event that is yet to be written.
        """
        if event is None:
            return Place(self.repository, self.base.commit)
        if event.id not in self._places:
            self._places[event.id] = self.base.place_of(event.path, self._log_folder(event.packet))
        return self._places[event.id]

    def origin(self, event: LogEvent) -> LogEvent:
        """Return the event for which this one lists approvals: itself, or the event whose approvals it replaces."""
        replaced = event.text("event") if event.type == "reapproved" else None
        return self.log(event.packet).by_id.get(replaced or "", event)

    def _speaking(self, envelopes: tuple[EnvelopeFile, ...], place: Place) -> tuple[EnvelopeFile, ...]:
        """Return the envelopes in effect. Like a revoked key, a revocation applies only once it is on the base, so that
        the change that adds it can be merged.
        """
        if not (place.brought_by and self.base.chosen):
            return envelopes
        return tuple(file for file in envelopes if file.name not in self.new_revocations)

    def _stating(self, consumer: LogEvent | None) -> LogEvent | None:
        """Return the event that records the contract. New approvals of an old event are for the current contract in the
        files.
        """
        return consumer if consumer is None or self.origin(consumer) is consumer else None

    def _is_amended(self, consumer: LogEvent | None, log: Log) -> bool:
        """Whether the contract introduced by the event was replaced by a later one, on the base or in this change."""
        if consumer is None or consumer.type not in SETS_CONTRACT:
            return False
        later = (event for event in log.events if event.type == "amended" and event.id != consumer.id)
        return any(consumer.id in log.ancestry(event.parents) for event in later)

    def _subjects(self, consumer: LogEvent | None, gate: str, matter: ApprovalSubject) -> tuple[Subject, ...]:
        """Return the bytes to be approved. An activation fixes the refinement permanently. A light packet's document
        may change outside its contract, so new approvals cover the document for which they were given.
        """
        if consumer is None:
            return matter.subjects
        fixed = gate in ACTIVATING and not matter.light
        return consumed_subjects(self.origin(consumer) if fixed else consumer, matter)

    @cached_property
    def new_revocations(self) -> frozenset[str]:
        """Return the revocations that are not yet on the base."""
        held = tree_at(self.repository, self.base.commit, ATTESTATIONS_FOLDER)
        revoking = (name for name, said in self.claims.items() if said.decision == "revoke")
        return frozenset(name for name in revoking if f"{ATTESTATIONS_FOLDER}/{name}" not in held)

    def gates(self, event: LogEvent) -> tuple[str, ...]:
        """Return the gates that the event must pass under the policy that is current when it is merged."""
        return gates_asked(event, self.place(event).policy.policy)

    def arrivals(self, packet: str) -> Mapping[str, tuple[str, int]]:
        """Return when events (at least those of the packet) arrived on the base."""
        return held_since(self.repository, self.base.commit, self._log_folder(packet))

    def _log_folder(self, packet: str) -> str:
        """Return the packet's log folder if only this packet is examined, otherwise the whole log."""
        return f"{LOG_FOLDER}/{packet}" if packet == self.packet else LOG_FOLDER


@contextmanager
def open_approvals(
    repository: Repository, base: Base | str | None, moment: Moment, packet: str = ""
) -> Iterator[Approvals]:
    """Open the approvals; with `packet`, for questions about that packet only."""
    now = read_instant(moment.now)
    if now is None:
        raise ValueError(f"{moment.now!r} is not a valid time")
    found = base if isinstance(base, Base) else find_base(repository, base)
    with work_tree(repository) as tree:
        yield Approvals(repository, found, tree, now, packet)


def gate_verdict(
    repository: Repository,
    packet: str,
    gate: str,
    *,
    base: str | None = None,
    moment: Moment,
    terms: Mapping[str, str] | None = None,
) -> Verdict:
    """Return the verdict of this gate for this packet now, with everything that is missing.

    Some gates have `terms` (see `lifecycle.gates.APPROVAL_GATES`): the content of the event to be written. The policy
    of a base is remembered only if we found the base ourselves: a base named by the caller might be any commit.
    """
    with open_approvals(repository, base, moment, require_id(packet)) as approvals:
        verdict = approvals.verdict(packet, gate, terms=terms)
        remember_base(approvals.base)
        return verdict


def require_id(packet: str) -> str:
    """Return `packet` if it is an id; anything else could be the path of another folder."""
    if not PACKET.fullmatch(packet):
        raise WorkpacketError("invalid_value", f"{packet!r} is not a packet id", hint="workpacket list")
    return packet


def _as_stated(
    terms: Mapping[str, str],
    consumer: LogEvent | None,
    envelopes: Sequence[EnvelopeFile],
    said: Sequence[Statement | None],
) -> Mapping[str, str]:
    """Return the terms of a verdict, including its report if the statements about it mention one."""
    used = {envelope_name(digest) for digest in consumer.attest} if consumer is not None else None
    named = (each for file, each in zip(envelopes, said, strict=True) if used is None or file.name in used)
    return with_report(terms, (each.scope for each in named if each is not None))


def actors_at(files: PolicyFiles) -> Actors:
    """Return the actors in a readable policy."""
    trusted = read_policy_files(files)
    return trusted.policy.actors if isinstance(trusted, Trusted) else Actors()


def _refused(gate: str, refusals: tuple[Problem, ...]) -> Verdict:
    return Verdict(gate, "none", (), refusals)
