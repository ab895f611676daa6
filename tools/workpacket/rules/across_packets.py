"""Rules that compare packets and stubs with one another: their ids and what they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.documents.summary import Mention
from workpacket.model.circles import circles
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries, WorkFile, WorkIndex, base_of
from workpacket.rules.rule import RepositoryRule, repeated

# Of a longer circle, the message names this many at the beginning and one at the end.
_NAMED = 6


class IdTwice(RepositoryRule):
    """Two files for one packet

    One is edited and the other is read.

    Remedy: keep one of the two.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repository.work.repeated:
            message = f"{work.id} has a file already: {earlier.path}"
            yield self.finding(work.path, work.summary["place"], message, hint="keep one of the two")


class IdCaseCollision(RepositoryRule):
    """Ids that differ in nothing but letter case

    On many disks their files are one file, and one packet overwrites the other.

    Remedy: give one of the two another id.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repeated(repository.work.files(), lambda work: work.id.casefold()):
            if earlier.id != work.id:
                message = f"{work.id} and {earlier.id} ({earlier.path}) differ in nothing but letter case"
                yield self.finding(work.path, work.summary["place"], message)


class DependencyUnknown(RepositoryRule):
    """Dependency on a packet that nobody knows

    Whether the work may begin depends on something that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for file in work.files():
            for mention in file.summary["depends"]:
                if mention[0] not in work.known and mention[0].startswith("WP-"):
                    message = f"there is no {mention[0]}, on which {file.id} depends"
                    yield self.finding(file.path, mention[1:], message, hint=work.suggestions.hint(mention[0]))


class DependencyCycle(RepositoryRule):
    """Packets that depend on one another in a circle

    None of them can ever begin.

    Remedy: delete one of the dependencies, or split a packet.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        edges = _dependencies(repository.work)
        for circle in circles(edges, edges):
            file, mention = edges[circle[-2]][circle[-1]]
            left_out = len(circle) - _NAMED - 2
            named = [*circle[:_NAMED], f"({left_out} more)", *circle[-2:]] if left_out > 0 else circle
            yield self.finding(file.path, mention[1:], f"a circle of dependencies: {' -> '.join(named)}")


# What a packet depends on, each with the file and the place that says so.
_Edges = Mapping[str, Mapping[str, tuple[WorkFile, Mention]]]


def _dependencies(work: WorkIndex) -> _Edges:
    edges: dict[str, dict[str, tuple[WorkFile, Mention]]] = {}
    for file in work.files():
        for mention in file.summary["depends"]:
            target = mention[0] if work.has_file(mention[0]) else work.packet_of_base(mention[0])
            # A packet that names its own base means the work before it.
            if target and target != file.id:
                edges.setdefault(file.id, {}).setdefault(target, (file, mention))
    return edges


class DependencyContradiction(RepositoryRule):
    """Dependencies that stub and packet state differently

    The stub says what the work waits for and the packet says something else; the gate can hold to only one.

    Remedy: make the packet say what holds, and the stub the same.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for name, packet in work.packets.items():
            stub = work.stubs.get(name)
            if stub is None:
                continue
            ours, theirs = _by_base(packet), _by_base(stub)
            if not ours or not theirs or ours.keys() == theirs.keys():
                continue
            more = [ours[base][0] for base in ours if base not in theirs]
            less = [theirs[base][0] for base in theirs if base not in ours]
            parts = [f"{kind} {', '.join(names)}" for kind, names in (("also", more), ("not", less)) if names]
            differing = [mention for base, mention in ours.items() if base not in theirs]
            place = (differing or list(ours.values()))[0][1:]
            message = f"the packet depends {' and '.join(parts)}, other than its stub ({stub.path})"
            yield self.finding(packet.path, place, message)


def _by_base(file: WorkFile) -> dict[str, Mention]:
    """Dependencies by base: a later revision of the same work is no contradiction."""
    found: dict[str, Mention] = {}
    for mention in file.summary["depends"]:
        found.setdefault(base_of(mention[0]), mention)
    return found
