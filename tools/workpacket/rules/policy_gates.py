"""Rules about the gates that a policy adds to moves."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.policy import Policy
from workpacket.lifecycle.added_gates import STANDARD
from workpacket.rules.rule import DocumentRule
from workpacket.text.fault import Fault


class LifecycleGateUnfit(DocumentRule[Policy]):
    """Added gate that has the name of another, or no rules of approval

    A gate of that name is asked about elsewhere already, on other terms; or nobody could ever pass it.

    Remedy: choose another name, and say in [approvals.gates.NAME] who passes it.
    """

    kinds = ("policy",)

    def check(self, document: Policy) -> Iterator[Fault]:
        table = document.at("lifecycle", "gates")
        ruled = document.at("approvals", "gates")
        names = ruled.mapping.keys() if ruled is not None else ()
        for name, gate in table.mapping.items() if table is not None else ():
            span = (gate.start, gate.end)
            if name in STANDARD:
                yield self.fault(span, f"{name} is a gate that there is already", hint="choose another name")
            elif name not in names:
                message = f"the gate {name} has no rules, so nobody could pass it"
                yield self.fault(span, message, hint=f"add [approvals.gates.{name}]")
