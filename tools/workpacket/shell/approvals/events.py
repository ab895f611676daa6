"""What the events of a packet say about approvals: who saw what, which bytes were used, who came first.

Who had a hand in a packet: the people from whom a gate may require its approver to differ.

What the log says are claims, and git's authors are claims too; together they are harder to leave out than each alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from workpacket.approvals.facts import PacketLog
from workpacket.approvals.policy import GatePolicy
from workpacket.approvals.statement import Subject
from workpacket.git.history import changes_before
from workpacket.git.repository import Repository
from workpacket.git.revisions import head_commit
from workpacket.ledger.log import Log
from workpacket.lifecycle.gates import CONSUMING, gates_of
from workpacket.model.events import LogEvent
from workpacket.model.layout import PACKETS, POLICY_FOLDER, REFINEMENTS
from workpacket.shell.approvals.subject import ApprovalSubject
from workpacket.shell.base.policy import lifecycle_of

_AUTHORING = frozenset({"created", "adopted", "refinement.recorded"})
_CODING = frozenset({"claimed", "lease.renewed", "submitted"})
# Where the files lie that are approved: refinements, packets, and the policy.
_FOLDERS = (REFINEMENTS, PACKETS, POLICY_FOLDER)
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


def parties_of(
    authors: FirstAuthors, log: Log, matter: ApprovalSubject, rules: GatePolicy
) -> Mapping[str, frozenset[str]]:
    """The parties that the gate's rules name, each with its people; an empty set where nobody is recorded."""
    parties: dict[str, frozenset[str]] = {}
    if "author" in rules.separation:
        written = {event.actor.id for event in log.events if event.type in _AUTHORING}
        parties["author"] = frozenset(written).union(*(authors.of(path) for path, _ in matter.files))
    if "coder" in rules.separation:
        held = {event.text("holder") or event.actor.id for event in log.events if event.type in _CODING}
        parties["coder"] = frozenset(held)
    return parties


def packet_log(log: Log, heads: tuple[str, ...]) -> PacketLog:
    """The log as somebody sees it who knows these heads."""
    seen = log.ancestry(heads)
    events = [event for event in log.events if event.id in seen]
    return PacketLog(
        {event.id: event.parents for event in events}, frozenset(event.id for event in events if event.moves_lane)
    )


def consumed_subjects(consumer: LogEvent, matter: ApprovalSubject) -> tuple[Subject, ...]:
    """The bytes that the event says it rests on: the refinement it names, else its files as they were before it."""
    named = consumer.data.get("refinement")
    if isinstance(named, Mapping):
        return (Subject(str(named.get("path")), str(named.get("sha256"))),)
    paths = {path for path, _ in matter.files}
    before = tuple(
        sorted(Subject(each.path, each.prev) for each in consumer.subjects if each.prev and each.path in paths)
    )
    return before or matter.subjects


def gates_asked(event: LogEvent, policy: bytes | None) -> tuple[str, ...]:
    """The gates that the event had to pass, by the policy under which it came, or is to come, onto the base."""
    if not event.moves_lane and event.type not in CONSUMING:
        return ()
    return gates_of(event, lifecycle_of(policy or b""))


def earlier(one: tuple[str, int] | None, other: tuple[str, int]) -> bool:
    """Whether a rival was on the base before; of two that came with one commit, each is the other's rival."""
    return one is not None and (one[1] < other[1] or one[0] == other[0])
