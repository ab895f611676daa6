"""Who had a hand in a packet: the people from whom a gate may require its approver to differ.

What the log says are claims, and git's authors are claims too; together they are harder to leave out than each alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from workpacket.approvals.policy import GatePolicy
from workpacket.git.history import changes_before
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.ledger.log import Log
from workpacket.shell.approvals.matter import Matter

_AUTHORING = frozenset({"created", "adopted", "refinement.recorded"})
_CODING = frozenset({"claimed", "lease.renewed", "submitted"})
# Where the files lie that are approved: refinements, packets, and the policy.
_FOLDERS = (".GOV/refinements", ".GOV/task_packets", ".GOV/policy")
_FEW = 4


class FirstAuthors:
    """Who committed a file first. Later commits may hold nothing but the approval itself.

    The first few files are asked for one by one; for more, the whole history is read once. Both look at all commits, on
    whatever branch they were made, so that the answer does not depend on how many were asked for before.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[str, frozenset[str]] = {}

    def of(self, path: str) -> frozenset[str]:
        if path not in self._known and self._head:
            if len(self._known) < _FEW:
                self._known[path] = self._added((path,)).get(path, frozenset())
            else:
                return self._of_all.get(path, frozenset())
        return self._known.get(path, frozenset())

    @cached_property
    def _head(self) -> str:
        return head_commit(self._repository) or ""

    @cached_property
    def _of_all(self) -> Mapping[str, frozenset[str]]:
        return self._added(_FOLDERS)

    def _added(self, paths: tuple[str, ...]) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        options = ("--full-history", "--diff-filter=A")
        for author, added in changes_before(self._repository, self._head, *paths, options=options, form="%an <%ae>"):
            for change in added:
                found.setdefault(change.path, set()).add(author)
        return {name: frozenset(authors) for name, authors in found.items()}


def parties_of(authors: FirstAuthors, log: Log, matter: Matter, rules: GatePolicy) -> Mapping[str, frozenset[str]]:
    """The parties that the gate's rules name, each with its people; an empty set where nobody is recorded."""
    parties: dict[str, frozenset[str]] = {}
    if "author" in rules.separation:
        written = {event.actor.id for event in log.events if event.type in _AUTHORING}
        parties["author"] = frozenset(written).union(*(authors.of(path) for path, _ in matter.files))
    if "coder" in rules.separation:
        held = {event.text("holder") or event.actor.id for event in log.events if event.type in _CODING}
        parties["coder"] = frozenset(held)
    return parties
