"""Giving a decision: what would be signed, the envelope made of it, and both written together.

draft = draft_decision(approvals, wish, moment)      what the person has to read before anything is signed
blob = sign(draft.message, key.path)                 by ssh-keygen, in the person's terminal, or elsewhere
written = write_decision(approvals, draft, blob)     judged first; refinement and envelope in one transaction
"""

from __future__ import annotations

from workpacket.approvals.decide import Verdict, decide
from workpacket.approvals.envelope import write_envelope
from workpacket.approvals.opening import EnvelopeFile
from workpacket.approvals.policy import POLICY_GATE
from workpacket.approvals.refusal import Refusal
from workpacket.approvals.sshsig import read_signature
from workpacket.approvals.verify import judge_envelope
from workpacket.documents.audit_row import AUDIT_PATH, with_row
from workpacket.errors import WorkpacketError
from workpacket.lifecycle.approval_terms import terms_in
from workpacket.model.events import ATTESTATIONS_FOLDER, LOG_FOLDER
from workpacket.model.plan import FileChange, FileSeen, FolderSeen, Plan, digest
from workpacket.shell.approvals.attestations import read_file
from workpacket.shell.approvals.drafts import Draft, as_error, trusted_or_error
from workpacket.shell.approvals.facts import Approvals
from workpacket.shell.transactions.transaction import writing
from workpacket.text.source import Source
from workpacket.value import Value, replace


class Written(Value):
    """The envelope's path, and how the gate stands with it."""

    envelope: str
    verdict: Verdict
    changed: tuple[str, ...]


def write_decision(approvals: Approvals, draft: Draft, signature: bytes) -> Written:
    """Judge the envelope as a gate would, and write it with the files that belong to it; or nothing of it."""
    parsed = read_signature(signature)
    if isinstance(parsed, Refusal):
        raise as_error(parsed)
    statement = draft.statement
    name, data = write_envelope(statement.payload(), parsed.key.fingerprint, signature)
    file = EnvelopeFile(name, data)
    facts = approvals.facts(statement.packet, statement.gate, more=(file,))
    if statement.decision != "revoke":
        # The terms are the person's to name; an event will have to name the same.
        scope = tuple(sorted((*draft.matter.scope, *terms_in(statement.gate, statement.scope))))
        facts = replace(facts, subjects=draft.matter.subjects, scope=scope)
    trusted = trusted_or_error(approvals)
    gates = trusted.policy.gates
    gate = gates.get(statement.gate) or (gates[POLICY_GATE] if statement.decision == "revoke" else None)
    if gate is None:
        raise WorkpacketError("gate_without_policy", f"the policy has no gate {statement.gate!r}")
    for refusal in judge_envelope(file, facts, gate, trusted).refusals:
        raise as_error(refusal)
    changes = (*draft.changes, *_audited(approvals, draft, name), FileChange(_path(name), None, data))
    changed = {change.path for change in changes}
    seen = tuple(FileSeen(path, digest(each)) for path, each in draft.matter.files if path not in changed)
    plan = Plan(f"approve {statement.packet}", draft.tx, changes, (), (*seen, _log_seen(approvals, statement.packet)))
    with writing(approvals.repository, "approve") as transaction:
        written = transaction.apply(plan)
    return Written(_path(name), decide(facts), written)


def _audited(approvals: Approvals, draft: Draft, envelope: str) -> tuple[FileChange, ...]:
    """The row in the signature audit, where there is one and a token was given."""
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
