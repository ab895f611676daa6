"""Detect a rollback of the policy: a file outside the repository records the policy last seen. ¶ Anyone who can push to
the base, or give a person a clone, could bring back an old policy with a key that has since been removed. The history
of the base alone cannot show that; a record on the verifier's own machine can.
"""

from __future__ import annotations

from workpacket.approvals.encodings import COMMIT, SHA256
from workpacket.approvals.fields import Fields, load_json
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.problem import Location, Problem
from workpacket.value import Value

FORMAT_VERSION = 1


class Pin(Value):
    """The repository, the base commit at which its policy was last seen, and the digest of all policy files there."""

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
    """Return the pin to remember from now on, or why the base cannot be trusted. ¶ `pinned_is_ancestor` says whether
    the pinned base commit is the seen one or an ancestor of it. The first policy seen is trusted; a base that does not
    contain the pinned one is trusted as long as it has the pinned policy.
    """
    if pinned is None:
        return seen
    if pinned.root_commit != seen.root_commit:
        return Problem(
            "trust_file_foreign", f"the trust file belongs to the repository with the first commit {pinned.root_commit}"
        )
    if pinned.base == seen.base and pinned.policy != seen.policy:
        what = f"the base is still the commit {seen.base}, but has another policy: its objects were overwritten"
        return Problem("policy_rolled_back", what)
    if pinned_is_ancestor:
        return seen
    if pinned.policy == seen.policy:
        return pinned
    return Problem(
        "policy_rolled_back",
        f"the base {seen.base} does not contain {pinned.base}, where the policy was last seen, and its policy differs",
    )
