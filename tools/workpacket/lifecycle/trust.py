"""`policy trust` and `policy re-anchor`: what they write into the policy of the work tree.

`trust` adds the first person who may approve, or the key of one more. It counts once the base holds it; people who may
approve already have to approve that, and at the very first there are none. `re-anchor` records that the policy of the
work tree replaces that of the base although no key is left that could approve it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workpacket.approvals.reanchor import HEADER, VARIABLE, NewRoot, written
from workpacket.lifecycle.gates import ANCHORING
from workpacket.lifecycle.moves import Planned
from workpacket.model.layout import POLICY_PATH, REANCHORED_PATH, SIGNERS_PATH
from workpacket.model.plan import FileChange, Moment, Plan, digest
from workpacket.text.source import Source

_TABLE: Final = """
# Who may approve what. One person may do it all; with a second one, `separation = ["author"]` asks for both of them.
[approvals]
repository = "{repository}"

[approvals.roles]
approver = ["{principal}"]
operator = ["{principal}"]
"""
_GATE: Final = """
[approvals.gates.{gate}]
roles = ["{role}"]
threshold = 1
separation = []
"""
_GATES: Final = {"activation": "approver", "waiver": "approver", "override": "operator", "policy": "operator"}


def plan_trust(
    moment: Moment, policy: Source, signers: Source | None, *, repository: str, principal: str, line: str, first: bool
) -> Planned:
    """`first`: whether the base names no approver yet. `line` is the one of allowed_signers for the key."""
    changes = tuple(_changes(policy, signers, repository, principal, line))
    named = any(change.path == POLICY_PATH for change in changes)
    said = f"{principal} may approve with this key" if changes else f"{principal} is trusted with this key already"
    if first:
        then = f"{ANCHORING}, on the main branch"
    elif named or not changes:
        then = "workpacket key list"
    else:
        then = f"name {principal} in a role of {POLICY_PATH}, then: workpacket approve policy --gate policy"
    plan = Plan("policy trust", moment.tx, changes)
    return Planned(plan, f"{said}, once the base holds it", then, {"principal": principal, "line": line})


def _changes(
    policy: Source, signers: Source | None, repository: str, principal: str, line: str
) -> Iterator[FileChange]:
    from workpacket.documents.policy import PolicyDocument

    root = PolicyDocument(policy).root
    if root is not None and root.get("approvals") is None:
        gates = "".join(_GATE.format(gate=gate, role=role) for gate, role in _GATES.items())
        text = _ended(policy.text) + _TABLE.format(repository=repository, principal=principal) + gates
        yield FileChange(POLICY_PATH, policy.digest, Source(POLICY_PATH, text, bom=policy.bom).encode())
    there = signers.text if signers is not None else ""
    if line not in there.splitlines():
        old = signers.digest if signers is not None else None
        yield FileChange(SIGNERS_PATH, old, f"{_ended(there)}{line}\n".encode())


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def plan_reanchor(moment: Moment, before: bytes | None, here: bytes | None, root: NewRoot) -> Planned:
    """`before` is the record of the base, `here` that of the work tree, which an earlier attempt may have written."""
    record = (before or HEADER.encode()) + written(root).encode()
    change = FileChange(REANCHORED_PATH, digest(here) if here is not None else None, record)
    line = f"{VARIABLE}={root.policy}"
    then = (
        f"somebody who may write to the base past the required check commits {line} (a comment is enough) to the CI "
        f"configuration there; then commit this change on top of it, and land it"
    )
    said = f"{REANCHORED_PATH} says that the policy {root.policy[:12]} replaces {root.replaced[:12]} of the base"
    data = {"policy": root.policy, "replaced": root.replaced, "reason": root.reason, "line": line}
    return Planned(Plan("policy re-anchor", moment.tx, (change,)), said, then, {**data})
