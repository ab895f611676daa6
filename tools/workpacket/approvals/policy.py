"""The approval rules in `policy.toml`: who has which role, what each gate requires, and when people who lost their keys
may start from a new root of trust.

    [approvals]
    repository = "example/project"

    [approvals.roles]
    approver = ["alice@example.org"]

    [approvals.gates.activation]
    roles = ["approver"]
    threshold = 1
    separation = ["author"]

`roles`, `threshold` and `separation` are required for every gate, so that leniency is always explicit; `hardware`
(none, touch or pin), `max_age_days` and `legacy_tokens` are optional and default to none, 30 and not accepted. An
unknown key is an error, because the intended rule would not be applied.

`[approvals.webauthn]` lists the web pages on which approvals may be signed; without it, there are none.

`read_policy_files` reads the policy together with the lists of keys.

The last policy seen is recorded outside the repository (`Pin`). Anyone who can push to the base, or give a person a
clone, could bring back an old policy with a key that has since been removed. The base's history alone cannot show that;
a record on the verifier's own machine can.

    [[reanchor]]
    at = "2026-11-19T03:00:00Z"
    reason = "the keys of 2025 were not kept"
    replaced = "<digest of the policy of the base>"
    policy = "<digest of the policy of the change>"

No key can approve such a change, so another authority must vouch for it: the CI configuration on the base contains the
digest of the new policy. Only people who may write to the base without the required check can put it there, because a
change that adds a digest is refused by that check (`reanchor_named`). A digest counts once: `unfit_record` refuses a
digest that is already in the record, because the old line in the CI configuration could otherwise bring back a replaced
policy.

The record only grows, and every output lists its entries as `policy_reanchored`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Literal, get_args

from workpacket.approvals.actors import Actors, read_actors
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.fields import (
    COMMIT,
    LONGEST_VALIDITY,
    NAME,
    PRINCIPAL,
    REPOSITORY,
    SHA256,
    Fields,
    load_json,
    read_instant,
)
from workpacket.digests import sha256
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.layout import POLICY_PATH, REANCHORED_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.text.toml_strict import plain_toml
from workpacket.value import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.sshsig import Signers
    from workpacket.approvals.webauthn import PagesAccepted


Hardware = Literal["none", "touch", "pin"]
HARDWARE: tuple[Hardware, ...] = get_args(Hardware)

# The parties to a packet that an approver may have to differ from.
PARTIES = ("author", "coder", "operator")

# The value with which a gate must say that it accepts a name and a date as a signature.
LEGACY_WORDS = "accepted although anyone can type them"

POLICY_GATE = "policy"
# The gate of answers to the questions of runs. Without rules for it, an answer counts as claimed.
ANSWER_GATE = "answer"
OPERATOR = "operator"
# The gate whose rules apply if the policy has none for the gate itself.
FIRST_OF = {"amendment": "activation"}

_MANY = 1000
_PARTY = lazy_pattern("|".join(PARTIES))
_HARDWARE = lazy_pattern("|".join(HARDWARE))
_LEGACY = lazy_pattern(re.escape(LEGACY_WORDS))


class GatePolicy(Value):
    """Requires `threshold` different principals, each with one of `roles`, and none of them a party named in
    `separation`.
    """

    roles: tuple[str, ...]
    threshold: int
    separation: tuple[str, ...]
    hardware: Hardware
    max_age: timedelta
    legacy_tokens: bool


class Policy(Value):
    repository: str
    roles: Mapping[str, frozenset[str]]
    gates: Mapping[str, GatePolicy]
    pages: PagesAccepted | None = None
    actors: Actors = Actors()

    def rules_of(self, gate: str) -> GatePolicy | None:
        """Return the rules of the gate. An amendment is approved like the first contract, unless it has its own
        rules.
        """
        return self.gates.get(gate) or (self.gates.get(FIRST_OF[gate]) if gate in FIRST_OF else None)

    def holds(self, principal: str, role: str) -> bool:
        return principal in self.roles.get(role, frozenset())


def policy_from_toml(data: bytes, path: str = "policy.toml") -> Policy | tuple[Problem, ...]:
    """Return the `[approvals]`, `[actors]` and `[verdict]` tables of a policy file; its other tables are read
    elsewhere.
    """
    from workpacket.text.toml_strict import plain_toml

    try:
        # Uses the bare values, not the tree of nodes: a date is text there, but a fault here.
        document = plain_toml(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        return (Problem("policy_malformed", f"not TOML: {fault}", Location(path)),)
    if "approvals" not in document:
        return (
            Problem(
                "approvers_unnamed",
                "the [approvals] table is missing, so no one may approve",
                Location(path),
            ),
        )
    policy = read_policy(document["approvals"], path)
    actors = read_actors(document.get("actors"), document.get("verdict"))
    faults = tuple(Problem("policy_malformed", fault, Location(path)) for fault in actors.faults)
    if isinstance(policy, Policy) and not faults:
        return replace(policy, actors=actors)
    return (*(policy if isinstance(policy, tuple) else ()), *faults)


def read_policy(table: object, path: str = "policy.toml") -> Policy | tuple[Problem, ...]:
    """Return the policy in an `[approvals]` table that has been loaded, or everything that is wrong with it."""
    faults: list[str] = []
    fields = Fields(table, "approvals", faults)
    repository = fields.text("repository", REPOSITORY, "the name of a repository")
    roles = _roles(fields.inner("roles"))
    gates = _gates(fields.inner("gates"), roles)
    pages = _pages(fields.inner("webauthn")) if fields.has("webauthn") else None
    fields.end()
    if faults:
        return tuple(Problem("policy_malformed", fault, Location(path)) for fault in faults)
    return Policy(repository, roles, gates, pages)


def _pages(fields: Fields) -> PagesAccepted:
    from workpacket.approvals.webauthn import read_pages_accepted  # few policies accept signatures made on a page

    return read_pages_accepted(fields)


def _roles(fields: Fields) -> dict[str, frozenset[str]]:
    roles: dict[str, frozenset[str]] = {}
    for name in fields.names():
        if not NAME.fullmatch(name):
            fields.fault(name, "is not the name of a role: lower-case letters, digits, '_' and '-'")
        roles[name] = frozenset(fields.texts(name, PRINCIPAL, "literal principals"))
    return roles


def _gates(fields: Fields, roles: dict[str, frozenset[str]]) -> dict[str, GatePolicy]:
    gates: dict[str, GatePolicy] = {}
    if not fields.has(POLICY_GATE):
        fields.fault(POLICY_GATE, "is missing: no one could approve a change to this policy")
    for name in fields.names():
        if not NAME.fullmatch(name):
            fields.fault(name, "is not the name of a gate: lower-case letters, digits, '_' and '-'")
        gates[name] = _gate(fields.inner(name), roles)
    answer = gates.get(ANSWER_GATE)
    if answer is not None and (answer.threshold != 1 or answer.separation or answer.legacy_tokens):
        # A run has no author or coder, and each answer is given by one person.
        fields.fault(ANSWER_GATE, "requires threshold = 1, separation = [], and no legacy_tokens")
    return gates


def _gate(fields: Fields, roles: dict[str, frozenset[str]]) -> GatePolicy:
    gate = GatePolicy(
        roles=fields.texts("roles", NAME, "names of roles"),
        threshold=fields.whole("threshold", 1, _MANY),
        separation=fields.texts("separation", _PARTY, f"parties: {', '.join(PARTIES)}"),
        hardware=_hardware(fields),
        max_age=_max_age(fields),
        legacy_tokens=_legacy_tokens(fields),
    )
    fields.end()
    for role in gate.roles:
        if role not in roles:
            fields.fault("roles", f"names the role {role!r}, which is not in [approvals.roles]")
    eligible = {principal.casefold() for role in gate.roles for principal in roles.get(role, ())}
    if len(eligible) < gate.threshold:
        fields.fault("threshold", f"is {gate.threshold}, but only {len(eligible)} people have one of the gate's roles")
    if gate.legacy_tokens and gate.threshold > 1:
        fields.fault("legacy_tokens", "is above 1, but the gate's approvers cannot be counted as individual people")
    return gate


def _hardware(fields: Fields) -> Hardware:
    text = fields.text("hardware", _HARDWARE, f"one of {', '.join(HARDWARE)}") if fields.has("hardware") else ""
    return next((each for each in HARDWARE if each == text), "none")


def _max_age(fields: Fields) -> timedelta:
    if not fields.has("max_age_days"):
        return LONGEST_VALIDITY
    return timedelta(days=fields.whole("max_age_days", 1, LONGEST_VALIDITY.days))


def _legacy_tokens(fields: Fields) -> bool:
    return fields.has("legacy_tokens") and bool(fields.text("legacy_tokens", _LEGACY, f"the words '{LEGACY_WORDS}'"))


class Trusted(Value):
    """The current policy. `digest`, which statements contain, is the SHA-256 of `policy.toml`.

    The digest does not cover the lists of keys: adding a colleague's key must not invalidate existing approvals, and
    the lists themselves say who may sign.
    """

    policy: Policy
    signers: Signers
    revoked: frozenset[bytes]
    digest: str


@lru_cache(maxsize=64)
def read_policy_files(files: PolicyFiles, revoked_keys_now: bytes | None = None) -> Trusted | tuple[Problem, ...]:
    """Return the policy, or every reason why it cannot be used. Cached, because a history has few policies and many
    events.
    """
    if files.policy is None or files.allowed_signers is None:
        missing = POLICY_PATH if files.policy is None else SIGNERS_PATH
        said = policy_from_toml(files.policy, POLICY_PATH) if files.policy is not None else None
        faults = said if isinstance(said, tuple) else ()
        return (*faults, Problem("policy_unanchored", f"the base revision has no {missing}", Location(missing)))
    # Only a repository whose policy comes with keys needs to parse them.
    from workpacket.approvals.sshsig import Signers, read_allowed_signers, read_revoked_keys

    policy = policy_from_toml(files.policy, POLICY_PATH)
    signers = read_allowed_signers(files.allowed_signers, SIGNERS_PATH)
    then = read_revoked_keys(files.revoked_keys or b"", REVOKED_PATH)
    now = read_revoked_keys(revoked_keys_now or b"", REVOKED_PATH)
    match policy, signers, then, now:
        case Policy() as policy, Signers() as signers, frozenset() as then, frozenset() as now:
            return Trusted(policy, signers, then | now, sha256(files.policy).hexdigest())
        case parts:
            refused = (part for part in parts if isinstance(part, tuple))
            return tuple(dict.fromkeys(refusal for part in refused for refusal in part))


FORMAT_VERSION = 1


class Pin(Value):
    """The repository, the base commit at which the repository's policy was last seen, and the digest of all policy
    files there."""

    root_commit: str
    base: str
    policy: str

    def to_bytes(self) -> bytes:
        content: dict[str, Json] = {
            "v": FORMAT_VERSION,
            "rootCommit": self.root_commit,
            "base": self.base,
            "policy": self.policy,
        }
        return canonical_bytes(content) + b"\n"


def read_pin(data: bytes, path: str = "") -> Pin | Problem:
    """Return the pin in a trust file."""
    faults: list[str] = []
    try:
        fields = Fields(load_json(data), "", faults)
    except WorkpacketError as refused:
        return Problem("trust_file_malformed", refused.message, Location(path))
    fields.whole("v", FORMAT_VERSION, FORMAT_VERSION)
    pin = Pin(
        root_commit=fields.text("rootCommit", COMMIT, "a commit"),
        base=fields.text("base", COMMIT, "a commit"),
        policy=fields.text("policy", SHA256, "a SHA-256 digest"),
    )
    fields.end()
    return Problem("trust_file_malformed", "; ".join(faults), Location(path)) if faults else pin


def judge_base(pinned: Pin | None, seen: Pin, *, pinned_is_ancestor: bool) -> Pin | Problem:
    """Return the pin to remember from now on, or why the base cannot be trusted.

    `pinned_is_ancestor` says whether the pinned base commit is the current one or an ancestor of it. The first policy
    seen is trusted; a base that does not contain the pinned commit is trusted as long as it has the pinned policy.
    """
    if pinned is None:
        return seen
    if pinned.root_commit != seen.root_commit:
        return Problem(
            "trust_file_foreign", f"the trust file is for the repository with the root commit {pinned.root_commit}"
        )
    if pinned.base == seen.base and pinned.policy != seen.policy:
        what = f"the base is still commit {seen.base}, but its policy is different: git objects were overwritten"
        return Problem("policy_rolled_back", what)
    if pinned_is_ancestor:
        return seen
    if pinned.policy == seen.policy:
        return pinned
    return Problem(
        "policy_rolled_back",
        f"base {seen.base} has a different policy and does not contain {pinned.base}, the commit where the "
        "policy was last seen",
    )


VARIABLE = "WORKPACKET_REANCHOR"
HEADER = (
    "# New roots of trust, which no key of the policy before approved: see docs/policy.md. Entries are only added.\n"
)
_REASON = lazy_pattern(r'[^\x00-\x1f\x7f-\x9f"\\]{1,240}')
_INSTANT = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_NAMED = lazy_pattern(rf"{VARIABLE}[ \t]*[:=][ \t]*[\"']?([0-9a-f]{{64}})(?![0-9a-f])")


class NewRoot(Value):
    """One entry: `replaced` and `policy` are the digests of all policy files before and after."""

    at: str
    reason: str
    replaced: str
    policy: str

    @property
    def sentence(self) -> str:
        why = self.reason.rstrip(".")
        return (
            f"the root of trust was replaced at {self.at} without approval by a key in the previous policy: "
            f"{why}; earlier approvals are judged by the policy that applied at the time"
        )


def is_reason(text: str) -> bool:
    """Whether the text is one line that needs no escapes, so that people see exactly what is recorded."""
    return bool(_REASON.fullmatch(text))


def written(root: NewRoot) -> str:
    """Return the entry as appended to the record."""
    return (
        f'\n[[reanchor]]\nat = "{root.at}"\nreason = "{root.reason}"\n'
        f'replaced = "{root.replaced}"\npolicy = "{root.policy}"\n'
    )


def read_record(data: bytes) -> tuple[NewRoot, ...] | Problem:
    """Return the record's entries, oldest first."""
    faults: list[str] = []
    try:
        fields = Fields(plain_toml(data.decode("utf-8")), "", faults)
    except (ValueError, RecursionError) as fault:
        return _unfit(f"not TOML: {fault}")
    roots = tuple(_entry(each, faults) for each in fields.tables("reanchor"))
    fields.end()
    return _unfit("; ".join(faults)) if faults else roots


def _entry(fields: Fields, faults: list[str]) -> NewRoot:
    root = NewRoot(
        at=fields.text("at", _INSTANT, "a valid time"),
        reason=fields.text("reason", _REASON, "a single line of text without quotes or backslashes"),
        replaced=fields.text("replaced", SHA256, "a SHA-256 digest"),
        policy=fields.text("policy", SHA256, "a SHA-256 digest"),
    )
    fields.end()
    if root.at and read_instant(root.at) is None:
        faults.append(f"{root.at} is not a valid time")
    return root


def named_in(text: str) -> frozenset[str]:
    """Return the digests in these lines of the CI configuration."""
    return frozenset(_NAMED.findall(text))


class PolicyChange(Value):
    """The record before and after the change (b"" if missing), the digests of all policy files before and after it, and
    the digests named in the CI configuration.
    """

    before: bytes
    after: bytes
    replaced: str
    policy: str
    named: frozenset[str]


def unfit_record(change: PolicyChange) -> Iterator[Problem]:
    """Report what is wrong with the new entry of the record; nothing if the change may introduce the new root."""
    old, new = read_record(change.before), read_record(change.after)
    if isinstance(new, Problem):
        yield new
        return
    known = () if isinstance(old, Problem) else old
    if not change.after.startswith(change.before) or len(new) != len(known) + 1:
        yield _unfit("a change must preserve every byte of the record and append exactly one entry")
        return
    root = new[-1]
    if (root.replaced, root.policy) != (change.replaced, change.policy):
        yield _unfit(
            f"its last entry replaces policy {root.replaced[:12]} with {root.policy[:12]}, but the base has "
            f"{change.replaced[:12]} and the change has {change.policy[:12]}"
        )
    if root.policy in {digest for each in known for digest in (each.replaced, each.policy)}:
        yield _unfit(f"policy {root.policy[:12]} was used before, and the same policy cannot be used twice")
    if root.policy not in change.named:
        what = f"the CI configuration on the base does not contain the new policy's digest: {VARIABLE}={root.policy}"
        yield Problem("reanchor_unnamed", what, Location(REANCHORED_PATH))


def _unfit(what: str) -> Problem:
    return Problem("reanchor_unfit", what, Location(REANCHORED_PATH))
