"""Record a decision: draft the statement, make the envelope, and write both together.

    draft = draft_decision(approvals, wish, moment)      what the person must read before anything is signed
    blob = sign(draft.message, key.path)                 by ssh-keygen, in the person's terminal, or elsewhere
    written = write_decision(approvals, draft, blob)     judged first; refinement and envelope in one transaction

A draft is refused as soon as it is clear that a gate would refuse the result, so that no one reads it for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial

from workpacket.approvals.decide import decide
from workpacket.approvals.envelope import (
    DEFAULT_VALIDITY,
    STATEMENT_VERSION,
    EnvelopeFile,
    RepositoryName,
    Statement,
    Subject,
    pae,
    write_envelope,
)
from workpacket.approvals.facts import Verdict
from workpacket.approvals.keys import PublicKey
from workpacket.approvals.policy import OPERATOR, POLICY_GATE, Trusted
from workpacket.approvals.sshsig import Signer, read_signature
from workpacket.approvals.verify import judge_envelope, own_work
from workpacket.documents.refinement import fill, tokens_of
from workpacket.documents.registry import with_row
from workpacket.git.repository import current_branch, without_remote
from workpacket.lifecycle.contract import Contract
from workpacket.lifecycle.gates import ACTIVATING, VERDICT_GATE, terms_in, written
from workpacket.model.events import LogEvent
from workpacket.model.layout import (
    ATTESTATIONS_FOLDER,
    AUDIT_PATH,
    LOG_FOLDER,
    envelope_name,
    envelope_path,
    packet_paths,
    refinement_paths,
    stub_path,
)
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Moment, Plan, digest
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.approvals.subject import ApprovalSubject, contract_to_approve
from workpacket.shell.approvals.uses import free_token
from workpacket.shell.base import read_base_policy, unanchored
from workpacket.shell.transactions.transaction import writing
from workpacket.shell.work_done import submission_doubt
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value, replace


class Wish(Value):
    """The requested decision, and the key to sign it with. `role` is '' if the policy leaves no choice."""

    packet: str
    gate: str
    decision: str
    key: PublicKey
    role: str = ""
    terms: Mapping[str, str] = NOTHING
    validity: timedelta = DEFAULT_VALIDITY


class StatementDraft(Value):
    """A statement ready to be signed. `changes` are the files to write together with the envelope; `token` is the value
    filled into them, and `contract` is the contract recorded in the statement.
    """

    statement: Statement
    matter: ApprovalSubject
    changes: tuple[FileChange, ...]
    tx: str
    token: str = ""
    contract: Contract | None = None

    @property
    def message(self) -> bytes:
        return pae(self.statement.payload())


def draft_decision(approvals: Approvals, wish: Wish, moment: Moment) -> StatementDraft:
    """Return the statement to sign; raise WorkpacketError with the code of the first problem that would make the
    statement worthless.
    """
    trusted = trusted_or_error(approvals)
    signer = signer_of(trusted, wish.key)
    rules = trusted.policy.rules_of(wish.gate)
    if rules is None:
        known = ", ".join(sorted(trusted.policy.gates))
        raise WorkpacketError(
            "gate_without_policy", f"the policy does not define gate {wish.gate!r}", hint=f"it has: {known}"
        )
    role = role_of(trusted, signer.principal, rules.roles, wish.role)
    matter = _matter(approvals, wish)
    contract = _contract(approvals, wish.packet, wish.gate)
    before = approvals.facts(wish.packet, wish.gate, terms=wish.terms)
    filling = _Filling(matter)
    if wish.decision == "approve":
        # Now and not after signing: otherwise a person would touch a key for an envelope that does not count.
        _require_no_standing_no(approvals, wish, signer.principal)
        for refusal in own_work(signer.principal, before, rules):
            raise WorkpacketError.of(refusal)
        filling = _filled(approvals, wish, signer.principal, matter)
    statement = Statement(
        subjects=filling.matter.subjects,
        packet=wish.packet,
        gate=wish.gate,
        decision=wish.decision,
        role=role,
        approver=signer.principal,
        repository=RepositoryName(trusted.policy.repository, before.root_commit),
        base=approvals.base.commit,
        spec=before.spec,
        policy=trusted.digest,
        log_heads=tuple(sorted(approvals.log(wish.packet).heads)),
        # Statements of before may say nothing of a report; this one does.
        scope=tuple(sorted({*matter.scope, *written(wish.terms)})),
        issued_at=approvals.now,
        expires_at=approvals.now + wish.validity,
        nonce=moment.nonce,
        contract=contract.digest if contract is not None else None,
    )
    return StatementDraft(statement, filling.matter, filling.changes, moment.tx, filling.token, contract)


def _contract(approvals: Approvals, packet: str, gate: str) -> Contract | None:
    """Return the packet's contract according to the files; None at the `policy` gate."""
    if gate == POLICY_GATE:
        return None
    said = contract_to_approve(partial(read_file, approvals.tree), approvals.log(packet), packet, gate)
    if isinstance(said, Contract):
        return said
    raise WorkpacketError(said.code, said.message, hint=f"workpacket packet contract {packet}")


def draft_revocation(approvals: Approvals, envelope: str, key: PublicKey, moment: Moment) -> StatementDraft:
    """Return the statement that revokes the envelope with this digest."""
    trusted = trusted_or_error(approvals)
    signer = signer_of(trusted, key)
    said = approvals.claims.get(envelope_name(envelope))
    if said is None:
        raise WorkpacketError(
            "approval_unknown", f"no envelope with the digest {envelope}", hint="workpacket approvals list"
        )
    gate = trusted.policy.rules_of(said.gate)
    roles = (*(gate.roles if gate is not None else ()), OPERATOR)
    held = [role for role in roles if trusted.policy.holds(signer.principal, role)]
    if signer.principal != said.approver and not held:
        what = f"{signer.principal} is not {said.approver} and does not have one of the roles {', '.join(roles)}"
        raise WorkpacketError("role_not_held", what)
    statement = replace(
        said,
        subjects=(Subject(envelope_path(envelope), envelope),),
        decision="revoke",
        role=held[0] if held else said.role,
        approver=signer.principal,
        base=approvals.base.commit,
        policy=trusted.digest,
        issued_at=approvals.now,
        expires_at=approvals.now + DEFAULT_VALIDITY,
        nonce=moment.nonce,
        contract=None,
        version=STATEMENT_VERSION,
    )
    return StatementDraft(statement, ApprovalSubject(()), (), moment.tx)


def redraft(approvals: Approvals, statement: Statement, moment: Moment) -> StatementDraft:
    """Return the draft of a statement that was signed elsewhere, if the statement still matches the files here."""
    if statement.decision == "revoke":
        return StatementDraft(statement, ApprovalSubject(()), (), moment.tx)
    matter = approvals.matter(statement.packet, statement.gate)
    contract = _contract(approvals, statement.packet, statement.gate)
    if matter.subjects == statement.subjects:
        return StatementDraft(statement, matter, (), moment.tx, contract=contract)
    if statement.decision == "approve" and statement.gate in ACTIVATING and matter.files:
        # The machine of the signer filled in the fields with a token of their name and the minute; the same one is
        # looked for here.
        for token in tokens_of(statement.approver, statement.issued_at):
            filled = _fill(matter, statement.packet, token)
            if filled.matter.subjects == statement.subjects:
                return StatementDraft(statement, filled.matter, filled.changes, moment.tx, token, contract)
    raise WorkpacketError(
        "statement_unfit",
        "the statement is about different versions of "
        f"{', '.join(path for path, _ in matter.files) or statement.packet}",
        hint="create a new statement: workpacket approve WP --statement-out FILE",
    )


def trusted_or_error(approvals: Approvals) -> Trusted:
    if approvals.base.policy.policy is None:
        raise WorkpacketError.of(unanchored(approvals.base))
    trusted = approvals.trusted
    if isinstance(trusted, Trusted):
        return trusted
    raise WorkpacketError.of(trusted[0])


def signer_of(trusted: Trusted, key: PublicKey) -> Signer:
    """Return the owner of the key."""
    signer = trusted.signers.by_key.get(key.blob)
    if key.blob in trusted.revoked:
        raise WorkpacketError("key_revoked", f"key {key.fingerprint} is revoked")
    if signer is None:
        raise WorkpacketError("signer_unknown", f"allowed_signers on the base does not list {key.fingerprint}")
    return signer


def role_of(trusted: Trusted, principal: str, accepted: tuple[str, ...], wished: str) -> str:
    """Return the role in which the person decides: the requested one, or the first one that they have."""
    if wished and wished not in accepted:
        raise WorkpacketError("role_not_accepted", f"the gate requires {' or '.join(accepted)}, not {wished}")
    roles = (wished,) if wished else accepted
    held = next((role for role in roles if trusted.policy.holds(principal, role)), None)
    if held is None:
        raise WorkpacketError("role_not_held", f"{principal} does not have the {' or '.join(roles)} role")
    return held


def _matter(approvals: Approvals, wish: Wish) -> ApprovalSubject:
    """Return what is to be approved; raise an error if that is missing or if its log cannot be trusted."""
    for fault in approvals.log(wish.packet).findings:
        if fault.severity == "error":
            raise WorkpacketError(fault.code, fault.message, path=fault.path)
    doubt = submission_doubt(approvals.repository, approvals.log(wish.packet)) if wish.gate == VERDICT_GATE else None
    if doubt is not None and wish.decision == "approve":
        raise WorkpacketError.of(doubt)
    matter = approvals.matter(wish.packet, wish.gate)
    unchanged = wish.gate == POLICY_GATE and dict(matter.files) == approvals.base.policy_files
    if not matter.files or unchanged:
        raise _nothing(wish)
    return matter


def _nothing(wish: Wish) -> WorkpacketError:
    what = "refinement" if wish.gate in ACTIVATING else "packet" if wish.gate != POLICY_GATE else "change"
    return WorkpacketError(
        "nothing_to_approve",
        f"{wish.packet} has no {what} to approve at gate {wish.gate}",
        hint="workpacket list shows what there is",
    )


def _require_no_standing_no(approvals: Approvals, wish: Wish, principal: str) -> None:
    """Refuse if someone rejected this text: filling in the fields changes the bytes, but cannot bypass a rejection."""
    verdict = approvals.verdict(wish.packet, wish.gate)
    for each in verdict.judged:
        said = each.opened.statement if each.opened is not None else None
        if said is not None and said.decision == "reject" and not each.refusals and said.approver != principal:
            raise WorkpacketError(
                "approval_rejected",
                f"{said.approver} has rejected this text",
                hint="change the text, or have the rejection revoked: "
                f"workpacket approvals revoke {each.name.partition('.')[0]}",
            )


class _Filling(Value):
    """The approved text with its fields filled in, and the resulting changes."""

    matter: ApprovalSubject
    changes: tuple[FileChange, ...] = ()
    token: str = ""


def _filled(approvals: Approvals, wish: Wish, principal: str, matter: ApprovalSubject) -> _Filling:
    """Fill in the fields. A file that others have already approved, or with which a packet was activated, is left
    unchanged.
    """
    # A light packet has no fields in which the user answers.
    if wish.gate not in ACTIVATING or matter.light:
        return _Filling(matter)
    (path, data), *_ = matter.files
    if any(_names(event, path, digest(data)) for event in approvals.log(wish.packet).events):
        return _Filling(matter)
    # Others have signed these bytes; another token in them would invalidate their envelopes.
    if any(voice.principal != principal for voice in approvals.verdict(wish.packet, wish.gate).voices):
        return _Filling(matter)
    token = free_token(approvals.tree, tokens_of(principal, approvals.now), wish.packet)
    return _fill(matter, wish.packet, token)


def _names(event: LogEvent, path: str, sha256: str) -> bool:
    """Whether the packet was activated with the file that has this digest."""
    return event.type == "activated" and event.data.get("refinement") == {"path": path, "sha256": sha256}


def _fill(matter: ApprovalSubject, packet: str, token: str) -> _Filling:
    (path, old), *_ = matter.files
    filled = fill(Source.from_bytes(path, old), packet, token)
    if isinstance(filled, str):
        hint = f"add the fields that `workpacket check {path}` lists, then: workpacket approve {packet}"
        raise WorkpacketError("refinement_unfillable", filled, hint=hint, path=path)
    new = filled.encode()
    return _Filling(replace(matter, files=((path, new),)), (FileChange(path, digest(old), new),), token)


class Written(Value):
    """The envelope's path, and the resulting state of the gate."""

    envelope: str
    verdict: Verdict
    changed: tuple[str, ...]


def write_decision(approvals: Approvals, draft: StatementDraft, signature: bytes) -> Written:
    """Judge the envelope as a gate would, and write it together with the related files, or write nothing."""
    parsed = read_signature(signature)
    if isinstance(parsed, Problem):
        raise WorkpacketError.of(parsed)
    statement = draft.statement
    name, data = write_envelope(statement.payload(), parsed.key.fingerprint, signature)
    file = EnvelopeFile(name, data)
    facts = approvals.facts(statement.packet, statement.gate, more=(file,))
    if statement.decision != "revoke":
        # The person chooses the terms; an event must name the same ones.
        scope = tuple(sorted((*draft.matter.scope, *terms_in(statement.gate, statement.scope))))
        contract = draft.contract.digest if draft.contract is not None else None
        facts = replace(facts, subjects=draft.matter.subjects, scope=scope, contract=contract, contract_fault="")
    trusted = trusted_or_error(approvals)
    gate = trusted.policy.rules_of(statement.gate)
    # An approval can be revoked after the policy has lost its gate.
    if gate is None and statement.decision == "revoke":
        gate = trusted.policy.gates[POLICY_GATE]
    if gate is None:
        raise WorkpacketError("gate_without_policy", f"the policy does not define gate {statement.gate!r}")
    for refusal in judge_envelope(file, facts, gate, trusted).refusals:
        raise WorkpacketError.of(refusal)
    changes = (*draft.changes, *_audited(approvals, draft, name), FileChange(_path(name), None, data))
    changed = {change.path for change in changes}
    # The person saw these bytes, so none may change before the envelope is written.
    seen = tuple(FileSeen(path, digest(each)) for path, each in _rests_on(approvals, draft) if path not in changed)
    plan = Plan(f"approve {statement.packet}", draft.tx, changes, (), (*seen, _log_seen(approvals, statement.packet)))
    with writing(approvals.repository, "approve") as transaction:
        written = transaction.apply(plan)
    return Written(_path(name), decide(facts), written)


def _rests_on(approvals: Approvals, draft: StatementDraft) -> Iterator[tuple[str, bytes]]:
    """Yield the approved files and the files that state the contract: none of them may change between reading and
    writing.
    """
    yield from draft.matter.files
    own = {path for path, _ in draft.matter.files}
    packet = draft.statement.packet
    for path in (stub_path(packet), *packet_paths(packet), *refinement_paths(packet)) if draft.contract else ():
        data = read_file(approvals.tree, path)
        if data is not None and path not in own:
            yield path, data


def _audited(approvals: Approvals, draft: StatementDraft, envelope: str) -> tuple[FileChange, ...]:
    """Return the row for the signature audit, if there is an audit, a token was given, and the policy says that shared
    files are written on this branch.
    """
    policy = read_base_policy(approvals.repository)
    where = policy.lifecycle.packets.board
    on_target = current_branch(approvals.repository) == without_remote(approvals.repository, policy.target_branch)
    if where == "never" or (where == "base" and not on_target):
        return ()
    statement = draft.statement
    old = read_file(approvals.tree, AUDIT_PATH) if draft.token else None
    if old is None:
        return ()
    source = Source.from_bytes(AUDIT_PATH, old)
    spec = statement.spec.anchor.partition(":")[0] if statement.spec is not None else ""
    new = with_row(source, draft.token, statement.packet, spec, envelope, statement.issued_at).encode()
    return (FileChange(AUDIT_PATH, digest(old), new),) if new != old else ()


def _log_seen(approvals: Approvals, packet: str) -> FolderSeen:
    folder = f"{LOG_FOLDER}/{packet}"
    return FolderSeen(folder, frozenset(approvals.tree.names(folder)))


def _path(name: str) -> str:
    return f"{ATTESTATIONS_FOLDER}/{name}"
