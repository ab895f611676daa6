"""Who had a hand in a packet: the people from whom a gate may require its approver to differ.

What the log says are claims, and git's authors are claims too; together they are harder to leave out than each alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from workpacket.approvals.policy import GatePolicy
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.git.run import run_git
from workpacket.ledger.log import Log
from workpacket.shell.approval_matter import Matter

_AUTHORING = frozenset({"created", "adopted", "refinement.recorded"})
_CODING = frozenset({"claimed", "lease.renewed", "submitted"})


def parties_of(repository: Repository, log: Log, matter: Matter, rules: GatePolicy) -> Mapping[str, frozenset[str]]:
    """The parties that the gate's rules name, each with its people; an empty set where nobody is recorded."""
    parties: dict[str, frozenset[str]] = {}
    if "author" in rules.separation:
        written = {event.actor.id for event in log.events if event.type in _AUTHORING}
        head = head_commit(repository)
        first = (_first_authors(repository, head, path) for path, _ in matter.files) if head else ()
        parties["author"] = frozenset(written).union(*first)
    if "coder" in rules.separation:
        held = {event.text("holder") or event.actor.id for event in log.events if event.type in _CODING}
        parties["coder"] = frozenset(held)
    return parties


@lru_cache(maxsize=1024)
def _first_authors(repository: Repository, head: str, path: str) -> frozenset[str]:
    """Who committed the file first. Later commits may hold nothing but the approval itself."""
    answer = run_git(
        repository.root, "log", "--diff-filter=A", "--no-renames", "--format=%an <%ae>", "--end-of-options", head,
        "--", path,
    )  # fmt: skip
    return frozenset(line for line in answer.text.splitlines() if line)
