"""How a reason of the family `approval` is made: refused at the gate, or found to be tampered with."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason

APPROVE_ANEW = "Have the approver run `workpacket approve` again."


def gate(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.REFUSED)


def tampered(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.INTEGRITY)
