"""The changes that `policy trust` and `policy re-anchor` make to the policy in the work tree.

`trust` adds the first person who may approve, or the key of another person. It takes effect once it is on the base;
existing approvers must approve that change, unless there are none yet. `re-anchor` records that the policy in the work
tree replaces the base's policy although no remaining key could approve it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from workpacket.approvals.policy import HEADER, POLICY_GATE, VARIABLE, NewRoot, written
from workpacket.approvals.webauthn import LOCAL, local_origin
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.gates import ANCHORING, APPROVAL_GATES, ApprovalGate
from workpacket.lifecycle.moves import Planned
from workpacket.model.canonical import Json
from workpacket.model.layout import POLICY_PATH, REANCHORED_PATH, SIGNERS_PATH
from workpacket.model.plan import FileChange, Moment, Plan, digest
from workpacket.problem import WorkpacketError
from workpacket.text.source import Node, Source
from workpacket.value import Value

_HEADER: Final = """
# Who may approve what. `separation` says from whom the approver differs: see docs/policy.md.
[approvals]
repository = "{repository}"

[approvals.roles]
approver = ["{principal}"]
validator = ["{principal}"]
operator = ["{principal}"]
"""
_GATE: Final = """
[approvals.gates.{gate}]
roles = ["{role}"]
threshold = 1
separation = [{separation}]
"""
_ACTORS: Final = "\n# Who may act as whom: new events must be signed with one of these keys.\n"
_JUDGE: Final = """
# The judge must not be the coder. Add "operator" as soon as a second person can judge: then the judge must not be
# the person who operates the agent that did the work, either.
[verdict]
separation = ["coder"]
"""
_COVERAGE: Final = """
# Every changed file outside .GOV needs a packet.
[coverage]
mode = "required"
"""
_EVIDENCE: Final = """
# The contract names the tests that prove each criterion, or says why there are none.
[evidence]
tests = "required"
"""
_BARE: Final = lazy_pattern(r"[A-Za-z0-9_-]+")


_PAGES: Final = """
# Approvals by touch: on the page of `approve --browser`, and on no other.
[approvals.webauthn]
rp_ids = ["{party}"]
origins = ["{origin}"]
port = {port}
"""


class OwnActor(Value):
    """An event key of this account: its owner, and its fingerprint."""

    name: str
    agent: bool
    fingerprint: str


class Trusting(Value):
    """Whom `policy trust` names: a principal with the line of allowed_signers for the key, and the event keys of this
    account. `person` is the actor behind them. `first`: whether the base names no approver yet. `port` is the port of
    the page on which the key signs; 0 for a key that signs in a terminal. `role` is a role to add the principal to.
    """

    repository: str
    principal: str
    line: str
    person: str
    actors: tuple[OwnActor, ...]
    first: bool
    port: int = 0
    role: str = ""


def plan_trust(moment: Moment, policy: Source, signers: Source | None, whom: Trusting) -> Planned:
    changes = tuple(_changes(policy, signers, whom))
    named = any(change.path == POLICY_PATH for change in changes)
    principal, as_role = whom.principal, f" as {whom.role}" if whom.role else ""
    trusted = f"{principal} is already trusted with this key{as_role}"
    said = f"{principal} may approve with this key{as_role}" if changes else trusted
    said += ", once it is on the base"
    roleless = bool(changes) and not named and f'"{principal}"' not in policy.text
    if roleless:
        said = f"{principal} has no role yet, so their key cannot open any gate"
        then = f"workpacket policy trust --principal {principal} --role ROLE"
    elif whom.first:
        then = f"{ANCHORING}, on the main branch"
    elif changes and whom.role:
        then = "workpacket approve policy --gate policy"
    elif named or not changes:
        then = "workpacket key list"
    else:
        then = "workpacket approve policy --gate policy"
    names = [actor.name for actor in whom.actors]
    data: dict[str, Json] = {"principal": principal, "line": whom.line, "actors": [*names]}
    notes = (f"events are signed by {', '.join(names)}",) if names else (_UNSIGNED,)
    return Planned(Plan("policy trust", moment.tx, changes), said, then, data, notes)


_UNSIGNED: Final = (
    "this account has no event keys, so names in the log are only claimed, and authors may approve their own "
    "text; to change that, run: workpacket key init --event, workpacket key init --agent NAME for each agent, "
    "and then this command again"
)


def _changes(policy: Source, signers: Source | None, whom: Trusting) -> Iterator[FileChange]:
    from workpacket.documents.policy import PolicyDocument

    root = PolicyDocument(policy).root
    if root is not None:
        text = _with_rules(_with_role(policy.text, root, whom), root, whom)
        if text != policy.text:
            yield FileChange(POLICY_PATH, policy.digest, Source(POLICY_PATH, text, bom=policy.bom).encode())
    there = signers.text if signers is not None else ""
    if whom.line not in there.splitlines():
        old = signers.digest if signers is not None else None
        yield FileChange(SIGNERS_PATH, old, f"{_ended(there)}{whom.line}\n".encode())


def _with_role(text: str, root: Node, whom: Trusting) -> str:
    """Add the principal to the role. The first approver has every role."""
    roles = root.mapping_at("approvals", "roles")
    if not whom.role or root.get("approvals") is None:
        return text
    if whom.role not in roles:
        known = ", ".join(sorted(roles))
        raise WorkpacketError("invalid_value", f"the policy has no role {whom.role!r}; its roles are: {known}")
    holders = roles[whom.role]
    if any(holder.text == whom.principal for holder in holders.items):
        return text
    start = holders.start + 1
    before = text[start : holders.end - 1].rstrip()
    separator = "" if not before or before.endswith(",") else ", "
    end = start + len(before)
    return f"{text[:end]}{separator}{_quoted(whom.principal)}{text[end:]}"


def _with_rules(text: str, root: Node, whom: Trusting) -> str:
    """Add what the policy lacks: for the first approver, rules for every gate and for coverage; for every approver, the
    actors.
    """
    known = root.get("actors")
    new = [actor for actor in whom.actors if known is None or known.get(actor.name) is None]
    added = ""
    if root.get("approvals") is None:
        # Without event keys, authors and approvers cannot be distinguished, and separating them would refuse everyone.
        apart = whom.actors or (known is not None and known.mapping)
        added += _HEADER.format(repository=whom.repository, principal=whom.principal)
        for gate in (*APPROVAL_GATES, ApprovalGate(POLICY_GATE, "", role="operator", apart="")):
            separation = f'"{gate.apart}"' if gate.apart and (apart or gate.apart == "coder") else ""
            added += _GATE.format(gate=gate.name, role=gate.role, separation=separation)
        added += _EVIDENCE if root.get("evidence") is None else ""
        if root.get("coverage") is None:
            added += _COVERAGE
        else:
            text = _required(text, root)
    approvals = root.get("approvals")
    if whom.port and (approvals is None or approvals.get("webauthn") is None):
        added += _PAGES.format(party=LOCAL, origin=local_origin(whom.port), port=whom.port)
    if new:
        added += _ACTORS + "".join(_actor(actor, whom) for actor in _with_person(new, known, whom))
        added += _JUDGE if root.get("verdict") is None else ""
    return _ended(text) + added if added else text


def _required(text: str, root: Node) -> str:
    """Make coverage required: a policy from `init` only warns about changes without a packet, but with approvers they
    are errors.
    """
    table = root.get("coverage")
    mode = table.get("mode") if table is not None else None
    if mode is None or mode.text != "warn":
        return text
    return f'{text[: mode.start]}"required"{text[mode.end :]}'


def _with_person(new: list[OwnActor], known: Node | None, whom: Trusting) -> list[OwnActor]:
    """Add the person: an agent's entry names its operator, so the table includes the person behind it, even without a
    key."""
    there = {actor.name for actor in new} | (set(known.mapping) if known is not None else set())
    return new if whom.person in there else [OwnActor(whom.person, agent=False, fingerprint=""), *new]


def _actor(actor: OwnActor, whom: Trusting) -> str:
    name = actor.name if _BARE.fullmatch(actor.name) else _quoted(actor.name)
    keys = _quoted(actor.fingerprint) if actor.fingerprint else ""
    if actor.agent:
        kind = f'kind = "agent"\noperator = {_quoted(whom.person)}'
    else:
        kind = f'kind = "person"\nprincipal = {_quoted(whom.principal)}'
    return f"\n[actors.{name}]\n{kind}\nkeys = [{keys}]\n"


def _quoted(text: str) -> str:
    """Quote the string as a TOML basic string, which accepts JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def plan_reanchor(moment: Moment, before: bytes | None, here: bytes | None, root: NewRoot) -> Planned:
    """Plan the new root. `before` is the record on the base; `here` is the record in the work tree, which an earlier
    attempt may have written.
    """
    record = (before or HEADER.encode()) + written(root).encode()
    change = FileChange(REANCHORED_PATH, digest(here) if here is not None else None, record)
    line = f"{VARIABLE}={root.policy}"
    then = (
        f"ask someone with permission to write to the base without the required check to add {line} to the CI "
        "configuration there, for example in a comment; then commit this change on top of that commit, and "
        "merge it"
    )
    said = (
        f"{REANCHORED_PATH} says that policy {root.policy[:12]} replaces {root.replaced[:12]}, the policy on the base"
    )
    data = {"policy": root.policy, "replaced": root.replaced, "reason": root.reason, "line": line}
    return Planned(Plan("policy re-anchor", moment.tx, (change,)), said, then, {**data})
