"""A new root of trust for people who lost their keys: its record, and when a change may introduce one.

    [[reanchor]]
    at = "2026-11-19T03:00:00Z"
    reason = "the keys of 2025 were not kept"
    replaced = "<digest of the policy of the base>"
    policy = "<digest of the policy of the change>"

No key can approve such a change, so another authority must vouch for it: the CI configuration on the base names the
digest of the new policy. Only people who may write to the base without the required check can put it there, because a
change that names a digest is refused by that check (`reanchor_named`). A digest counts once: `unfit_record` refuses a
digest that is already in the record, because the old line in the CI configuration could otherwise bring back a replaced
policy.

The record only grows, and every output lists its entries as `policy_reanchored`.
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.encodings import read_instant
from workpacket.approvals.fields import SHA256, Fields
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import REANCHORED_PATH
from workpacket.problem import Location, Problem
from workpacket.text.toml_strict import plain_toml
from workpacket.value import Value

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
            f"the root of trust was replaced at {self.at} without the approval of a key in the previous policy: "
            f"{why}; earlier approvals are judged by the policy of their time"
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
        reason=fields.text("reason", _REASON, "one line of text without quotes and backslashes"),
        replaced=fields.text("replaced", SHA256, "a SHA-256 digest"),
        policy=fields.text("policy", SHA256, "a SHA-256 digest"),
    )
    fields.end()
    if root.at and read_instant(root.at) is None:
        faults.append(f"{root.at} is not a valid time")
    return root


def named_in(text: str) -> frozenset[str]:
    """Return the digests that these lines of the CI configuration name."""
    return frozenset(_NAMED.findall(text))


class PolicyChange(Value):
    """The record before and after (b"" if missing), the digests of all policy files before and after, and those named
    in the CI configuration.
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
        yield _unfit("a change must keep every byte of the record and add one entry at its end")
        return
    root = new[-1]
    if (root.replaced, root.policy) != (change.replaced, change.policy):
        yield _unfit(
            f"its last entry replaces the policy {root.replaced[:12]} with {root.policy[:12]}, but the base "
            f"has {change.replaced[:12]} and the change {change.policy[:12]}"
        )
    if root.policy in {digest for each in known for digest in (each.replaced, each.policy)}:
        yield _unfit(f"the policy {root.policy[:12]} was already in force once, and a digest counts only once")
    if root.policy not in change.named:
        what = f"the CI configuration on the base does not name the new policy: {VARIABLE}={root.policy}"
        yield Problem("reanchor_unnamed", what, Location(REANCHORED_PATH))


def _unfit(what: str) -> Problem:
    return Problem("reanchor_unfit", what, Location(REANCHORED_PATH))
