"""Reasons of the family `approval`: why a sound approval does not carry this gate now.

What may be wrong with the signature itself stands in `approval_signature`, with the policy in `approval_policy`.
"""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

APPROVE_ANEW = "Have the approver run `workpacket approve` again."


def gate(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.REFUSED)


def tampered(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.INTEGRITY)


FIT: tuple[Reason, ...] = (
    gate(
        "packet_mismatch",
        "Approval of another packet",
        "A yes to one packet is not a yes to another.",
        APPROVE_ANEW,
    ),
    gate(
        "gate_mismatch",
        "Approval for another gate",
        "A yes to begin is not a yes to the result.",
        APPROVE_ANEW,
    ),
    gate(
        "repository_mismatch",
        "Approval from another repository",
        "Forks and copies hold the same packets; a yes given there was not given here.",
        APPROVE_ANEW,
    ),
    gate(
        "subject_mismatch",
        "Text that is not the one approved",
        "The approval covers the very bytes of the file. One byte more, and it was not what the person read.",
        "Restore the approved text, or have the new text approved: `workpacket approve` shows the difference.",
    ),
    gate(
        "approved_spec_moved",
        "Specification that has changed since the approval",
        "The person judged the work against another version of the specification, or another place in it.",
        "Check the packet against the specification in force, then have it approved again.",
    ),
    gate(
        "policy_moved",
        "Policy that has changed since the approval",
        "The approval was given under other rules than those at the base.",
        APPROVE_ANEW,
    ),
    gate(
        "scope_moved",
        "Paths in scope that were not approved",
        "The approval covers work on named paths; a wider scope is another decision.",
        "Restore the approved scope, or have the new one approved.",
    ),
    gate(
        "base_unknown",
        "Approval that saw a base this repository does not have",
        "The commit that the approver saw is not part of the base's history: another branch, or a history rewritten.",
        "In a shallow clone run `git fetch --unshallow`; otherwise have the packet approved again.",
    ),
    gate(
        "log_head_unknown",
        "Approval that saw events this log does not have",
        "The approver saw another history of the packet than the one presented.",
        "Restore the packet's log from the base (`workpacket log verify --base`), or have it approved again.",
    ),
    gate(
        "log_moved",
        "Packet that changed its lane behind the approver's back",
        "A move that the approver did not see may be the reason why the answer would have been no.",
        APPROVE_ANEW,
    ),
)

TIME: tuple[Reason, ...] = (
    gate(
        "issued_in_future",
        "Approval dated in the future",
        "An approval from tomorrow was made by a wrong clock or to outlive its time.",
        "Set the clock of the approver's machine, and approve again.",
    ),
    gate(
        "approval_expired",
        "Approval that was not used in time",
        "An approval must be used before it expires; once used, it stays good.",
        APPROVE_ANEW,
    ),
    gate(
        "approval_too_old",
        "Approval older than the gate accepts",
        "The gate sets a maximum age, however long the approval says it is valid.",
        APPROVE_ANEW,
    ),
    gate(
        "validity_too_long",
        "Approval valid for longer than 30 days",
        "A yes for ten years is a blank cheque.",
        APPROVE_ANEW,
    ),
    gate(
        "nonce_used",
        "Approval that was already used",
        "An approval is for one event. Used twice, it would say yes to something nobody asked about.",
        APPROVE_ANEW,
    ),
    gate(
        "nonce_repeated",
        "Two different statements with one nonce",
        "A nonce is made for one statement; two with the same are a mistake of the signing tool, or a trick.",
        APPROVE_ANEW,
    ),
)

COUNT: tuple[Reason, ...] = (
    gate(
        "approval_missing",
        "No approval at all",
        "The gate is human: it opens for a signature and nothing else.",
        "Ask a person with one of the gate's roles to run `workpacket approve`.",
    ),
    gate(
        "threshold_unmet",
        "Too few persons whose approval counts",
        "The gate asks for several persons. Several keys or several files of one person are one voice.",
        "Ask further persons with one of the gate's roles to run `workpacket approve`.",
    ),
    gate(
        "approval_rejected",
        "Person with a say who said no",
        "A no to this text stands until the same person says yes to it, revokes the no, or the text changes.",
        "Read the reason, change the text, and have it approved again.",
    ),
    gate(
        "approval_revoked",
        "Approval that was taken back",
        "A revocation holds for ever, also for approvals that were used before.",
        APPROVE_ANEW,
    ),
)

REASONS: tuple[Reason, ...] = (*FIT, *TIME, *COUNT)
