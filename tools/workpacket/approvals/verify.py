"""Whether an envelope is an authentic statement by a known person about this gate, and still valid.

There are three separate questions, because approvals and rejections need different answers:

- **authentic**: the file, the payload and the signature are valid, and the key belongs to a person listed on the base;
- **fitting**: it is about this packet, gate, repository and exactly these bytes, and the person has a role here;
- **current**: nothing it depends on has changed (time, log, specification, policy, scope, contract), it has not been
used
  before, and the key and the person may approve here.

An approval needs all three. A rejection needs the first two: it counts even if the specification has changed since. A
revocation is about another envelope, so it only needs to be authentic and from this repository. All reasons are
collected, not just the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from workpacket.approvals.envelope import Envelope, EnvelopeFile, RepositoryName, Statement, Subject
from workpacket.approvals.facts import GateFacts, PacketLog, PolicyFiles
from workpacket.approvals.fields import CLOCK_SKEW, LONGEST_VALIDITY, write_instant
from workpacket.approvals.policy import ANSWER_GATE, GatePolicy, Trusted
from workpacket.approvals.sshsig import Signer, SshSignature
from workpacket.problem import Problem
from workpacket.value import Value, replace


class Opened(Value):
    """The parts of a readable envelope, not trusted yet; `signer` is None for an unknown key."""

    envelope: Envelope
    statement: Statement
    signature: SshSignature
    signer: Signer | None


class Judged(Value):
    """An envelope with every reason why it does not count as the approval, rejection or revocation that it claims to
    be.
    """

    name: str
    opened: Opened | None
    refusals: tuple[Problem, ...]

    def also(self, refusal: Problem) -> Judged:
        """Return a copy with one more reason."""
        return replace(self, refusals=(*self.refusals, refusal.at(self.name)))


def judge_envelope(file: EnvelopeFile, facts: GateFacts, gate: GatePolicy, trusted: Trusted) -> Judged:
    """Judge one envelope independently of the others."""
    opened, broken = _opened(file, trusted)
    if opened is None:
        return Judged(file.name, None, _of(file.name, broken))
    statement = opened.statement
    refusals = list(_not_authentic(opened, broken, trusted))
    if statement.decision == "revoke":
        refusals += _other_repository(statement, facts, trusted)
    else:
        refusals += _not_fitting(statement, facts, gate, trusted)
    if statement.decision == "approve":
        refusals += _not_current(opened, facts, gate, trusted)
    return Judged(file.name, opened, _of(file.name, refusals))


# What a statement about an answer names as its packet: a question belongs to a run, which need not have a packet.
RUNS = "runs"


class AnswerFacts(Value):
    """An answer to a run's question: the digest of everything that the answer covers, the decision that it amounts to,
    its description in plain text, and the time at which it was recorded.
    """

    subject: Subject
    decision: str
    scope: tuple[str, ...]
    root_commit: str
    at: datetime


def judge_answer(file: EnvelopeFile, answer: AnswerFacts, gate: GatePolicy, trusted: Trusted) -> Judged:
    """Judge the envelope of an answer. The envelope counts for this answer only. The signature covers the question, so
    there is nothing else to compare.
    """
    opened, broken = _opened(file, trusted)
    if opened is None:
        return Judged(file.name, None, _of(file.name, broken))
    statement = opened.statement
    facts = GateFacts(
        now=answer.at, packet=RUNS, gate=ANSWER_GATE, subjects=(answer.subject,), root_commit=answer.root_commit,
        base_history=frozenset(), spec=None, scope=answer.scope, parties={}, log=PacketLog({}, frozenset()),
        policy=PolicyFiles(None, None), envelopes=(file,), consumptions={},
    )  # fmt: skip
    refusals = [*_not_authentic(opened, broken, trusted), *_not_fitting(statement, facts, gate, trusted)]
    if statement.decision != answer.decision or statement.scope != answer.scope:
        refusals.append(Problem("subject_mismatch", "the statement answers a different question"))
    refusals += _out_of_time(statement, facts, gate)
    if opened.signer is not None:
        refusals += _key_out_of_time(opened.signer, statement, facts)
    refusals += _too_soft(opened.signature, gate)
    return Judged(file.name, opened, _of(file.name, refusals))


def _opened(file: EnvelopeFile, trusted: Trusted) -> tuple[Opened | None, tuple[Problem, ...]]:
    """Return the statement with its signature, and what is wrong with the signature; if the file cannot be read, return
    None instead of the statement, and what is wrong with the file.
    """
    parts = file.parts
    if isinstance(parts, Problem):
        return None, (parts,)
    signature, statement = parts.signature, parts.statement
    if isinstance(signature, Problem) or isinstance(statement, Problem):
        return None, parts.unreadable
    opened = Opened(parts.envelope, statement, signature, trusted.signers.by_key.get(signature.key.blob))
    return opened, (parts.broken,) if parts.broken is not None else ()


def _of(name: str, refusals: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(refusal.at(name) for refusal in refusals)


def _not_authentic(opened: Opened, broken: Iterable[Problem], trusted: Trusted) -> Iterator[Problem]:
    key = opened.signature.key
    # The key id is a hint for other tools and is not signed; the key is part of the signature.
    if opened.envelope.key_id != key.fingerprint:
        yield Problem(
            "key_id_wrong", f"the envelope gives {opened.envelope.key_id} as the key, but {key.fingerprint} signed"
        )
    yield from broken
    if key.blob in trusted.revoked:
        yield Problem("key_revoked", f"key {key.fingerprint} is revoked")
    # An event key need not have a passphrase, so any program of its owner could open the gate with it.
    if key.fingerprint in trusted.policy.actors.names_by_key:
        yield Problem("event_key_at_gate", f"key {key.fingerprint} signs events, so it cannot open a gate")
    yield from _page_not_accepted(opened.signature, trusted)
    if opened.signer is None:
        yield Problem("signer_unknown", f"allowed_signers on the base does not list key {key.fingerprint}")
        return
    if not opened.signer.may_approve:
        namespaces = ", ".join(opened.signer.namespaces)
        yield Problem("key_not_for_approvals", f"the key of {opened.signer.principal} is valid only for {namespaces}")
    if opened.signer.principal != opened.statement.approver:
        who = f"the key belongs to {opened.signer.principal}, but the statement was made by {opened.statement.approver}"
        yield Problem("approver_mismatch", who)


def _page_not_accepted(signature: SshSignature, trusted: Trusted) -> Iterator[Problem]:
    page, fido, accepted = signature.page, signature.fido, trusted.policy.pages
    if page is None or fido is None:
        return
    if accepted is None or not accepted.accept(signature.key.application, page.origin):
        what = (
            f"the policy on the base does not accept signatures made for {signature.key.application} on {page.origin}"
        )
        yield Problem("webauthn_not_accepted", what)
        return
    if fido.synced and not accepted.synced:
        yield Problem("passkey_synced", "the passkey can be copied to other devices, which the policy does not allow")
    if accepted.pin and not fido.person_verified:
        yield Problem("pin_missing", "the policy requires a PIN or fingerprint, which the security key did not verify")


def _not_fitting(statement: Statement, facts: GateFacts, gate: GatePolicy, trusted: Trusted) -> Iterator[Problem]:
    if statement.packet != facts.packet:
        yield Problem("packet_mismatch", f"the statement is about {statement.packet}, not {facts.packet}")
    if statement.gate != facts.gate:
        yield Problem("gate_mismatch", f"the statement is for gate {statement.gate}, not {facts.gate}")
    yield from _other_repository(statement, facts, trusted)
    yield from _other_subjects(statement, facts)
    if statement.role not in gate.roles:
        yield Problem(
            "role_not_accepted", f"the gate requires the {' or '.join(gate.roles)} role, not {statement.role}"
        )
    if not trusted.policy.holds(statement.approver, statement.role):
        yield Problem("role_not_held", f"{statement.approver} does not have the {statement.role} role")


def _other_repository(statement: Statement, facts: GateFacts, trusted: Trusted) -> Iterator[Problem]:
    here = RepositoryName(trusted.policy.repository, facts.root_commit)
    if statement.repository != here:
        told = " and ".join(f"{each.name} (root {each.root_commit})" for each in (statement.repository, here))
        yield Problem("repository_mismatch", f"the statement was made for a different repository: {told}")


def _other_subjects(statement: Statement, facts: GateFacts) -> Iterator[Problem]:
    approved = {subject.name: subject.sha256 for subject in statement.subjects}
    present = {subject.name: subject.sha256 for subject in facts.subjects}
    for name in sorted(approved.keys() | present.keys()):
        if name not in present:
            yield Problem("subject_mismatch", f"{name} was approved, but is not among the items being judged")
        elif name not in approved:
            yield Problem("subject_mismatch", f"{name} was not included in the approval")
        elif approved[name] != present[name]:
            yield Problem("subject_mismatch", f"{name} differs from the text that was approved")


def _not_current(opened: Opened, facts: GateFacts, gate: GatePolicy, trusted: Trusted) -> Iterator[Problem]:
    statement = opened.statement
    yield from _out_of_time(statement, facts, gate)
    if opened.signer is not None:
        yield from _key_out_of_time(opened.signer, statement, facts)
    yield from _moved(statement, facts, trusted)
    yield from _other_contract(statement, facts)
    if facts.consumptions.get(statement.nonce, frozenset()) - {facts.consumer}:
        yield Problem("nonce_used", "another event has already used this approval")
    yield from _too_soft(opened.signature, gate)
    yield from own_work(statement.approver, facts, gate)


def _out_of_time(statement: Statement, facts: GateFacts, gate: GatePolicy) -> Iterator[Problem]:
    # An event that is on the base is judged as of its first landing, so that it does not fail only because time has
    # passed.
    at = facts.first_landed or facts.judged_at
    if statement.issued_at > at + CLOCK_SKEW:
        yield Problem("issued_in_future", f"it is dated {write_instant(statement.issued_at)}, which is in the future")
    if statement.expires_at <= at:
        yield Problem("approval_expired", f"it expired at {write_instant(statement.expires_at)}")
    if statement.expires_at - statement.issued_at > LONGEST_VALIDITY:
        yield Problem("validity_too_long", f"it would be valid for more than {LONGEST_VALIDITY.days} days")
    if at - statement.issued_at > gate.max_age:
        yield Problem(
            "approval_too_old", f"the gate accepts only approvals that are at most {gate.max_age.days} days old"
        )


def _key_out_of_time(signer: Signer, statement: Statement, facts: GateFacts) -> Iterator[Problem]:
    if not (signer.valid_at(facts.judged_at) and signer.valid_at(statement.issued_at)):
        yield Problem("key_out_of_time", f"the key on line {signer.line} was not valid at that time")


def _moved(statement: Statement, facts: GateFacts, trusted: Trusted) -> Iterator[Problem]:
    if statement.spec != facts.spec:
        yield Problem(
            "approved_spec_moved", "the specification, or its anchored passage, has changed since the approval"
        )
    if statement.policy != trusted.digest:
        yield Problem("policy_moved", "policy.toml on the base has changed since the approval")
    elif statement.base in facts.other_policies:
        yield Problem("policy_moved", "the policy files on the base have changed since the approval")
    # The contract includes the scope. After an amendment, nothing else does.
    by_contract = facts.amended and statement.contract is not None and statement.contract == facts.contract
    if statement.scope != tuple(sorted(facts.scope)) and not by_contract:
        yield Problem("scope_moved", "the paths in scope differ from the approved paths")
    if statement.base not in facts.base_history:
        yield Problem(
            "base_unknown", f"base {statement.base}, which the approver saw, is not part of this base's history"
        )
    for head in statement.log_heads:
        if head not in facts.log.parents:
            yield Problem("log_head_unknown", f"event {head}, which the approver saw, is not in the packet's log")
    unseen = facts.log.lane_changes - facts.log.seen_from(statement.log_heads)
    if unseen:
        yield Problem("log_moved", f"the packet has moved since the approval ({', '.join(sorted(unseen))})")


def _other_contract(statement: Statement, facts: GateFacts) -> Iterator[Problem]:
    """Report a different contract. A version 1 statement has none, and counts only for events on the base.

    If a file differs from the approved one, so does the contract; this is reported once.
    """
    if statement.version == 1:
        if not facts.settled:
            yield Problem(
                "statement_outdated",
                "as a version 1 approval, it covers only the refinement, and counts only for those events on "
                "the base that already used it",
            )
    elif facts.contract_fault:
        yield Problem("contract_unreadable", facts.contract_fault)
    elif statement.contract != facts.contract and not any(_other_subjects(statement, facts)):
        yield Problem("contract_mismatch", "the approved contract differs from the one being judged")


def _too_soft(signature: SshSignature, gate: GatePolicy) -> Iterator[Problem]:
    if gate.hardware == "none":
        return
    if signature.fido is None or signature.fido.synced:
        what = "is a file" if signature.fido is None else "can be copied to other devices"
        yield Problem("hardware_required", f"the gate requires a key on a FIDO security key, but this key {what}")
    elif gate.hardware == "pin" and not signature.fido.person_verified:
        yield Problem("pin_missing", "the gate requires a PIN or fingerprint, which the security key did not verify")


def own_work(approver: str, facts: GateFacts, gate: GatePolicy) -> Iterator[Problem]:
    for party in gate.separation:
        names = facts.parties.get(party, frozenset())
        # An unknown person cannot be distinguished from the approver.
        if not names:
            yield Problem("party_unknown", f"no {party} is recorded, so the {party} could be the approver")
        elif any(same_person(name, approver) for name in names):
            yield Problem("own_work", f"{approver} is the {party} of what they approved")


def same_person(name: str, principal: str) -> bool:
    """Whether `name`, bare or as git writes it (`Name <address>`), is the principal, ignoring case."""
    folded = name.strip().casefold()
    return principal.casefold() in (folded, folded.rpartition("<")[2].removesuffix(">"))
