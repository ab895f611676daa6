"""What an audit knows about the repository before it judges anything; gathered by the shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.problem import Problem
from workpacket.text.source import Source
from workpacket.value import NOTHING, Value


class KnownCommit(Value):
    """A commit that is in this clone. `on_target`: whether the target branch holds it."""

    id: str
    at: str
    author: str
    title: str
    on_target: bool


class SignedDecision(Value):
    """One signed decision at a gate, with the result of verification: it counts if there are no refusals. `used_by` is
    the event that uses it, or ''.
    """

    gate: str
    decision: str
    approver: str
    role: str
    key: str
    issued_at: str
    expires_at: str
    envelope: str
    used_by: str
    refusals: tuple[tuple[str, str], ...]
    covers: str = "contract"


class LastChange(Value):
    """The last commit that touched a file."""

    at: str
    author: str


class AuditFacts(Value):
    """`now` is when leases, approvals and waivers are judged: the time of the head commit, so that it never moves.

    `findings` are those of `check` and of the approvals. `digests` are those of files that the logs name, None for a
    missing one; `committed` are the same by `<commit>:<path>`. `specifications` are by path, as in the work tree.
    `uncommitted` are the governed files, and files that the logs name, that differ from the head commit. `proven` are
    the events whose signature proves their actor; of others the actor is claimed.
    """

    name: str
    now: str
    packets: Mapping[str, PacketFacts]
    policy: LifecyclePolicy
    findings: Sequence[Problem] = ()
    decisions: Mapping[str, Sequence[SignedDecision]] = NOTHING
    specification: Source | None = None
    specifications: Mapping[str, Source] = NOTHING
    digests: Mapping[str, str | None] = NOTHING
    committed: Mapping[str, str | None] = NOTHING
    commits: Mapping[str, KnownCommit] = NOTHING
    changes: Mapping[str, LastChange] = NOTHING
    target: str = ""
    head: KnownCommit | None = None
    uncommitted: frozenset[str] = frozenset()
    files_checked: int = 0
    proven: frozenset[str] = frozenset()
