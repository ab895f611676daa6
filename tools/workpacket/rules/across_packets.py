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

    People may edit one while tools read the other.

    Remedy: keep only one of them.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repository.work.repeated:
            message = f"{work.id} has a file already: {earlier.path}"
            yield self.finding(work.path, work.summary["place"], message, hint="keep only one of them")


class IdCaseCollision(RepositoryRule):
    """Ids that differ only in case

    On case-insensitive file systems their files are the same file, so one packet overwrites the other.

    Remedy: change one of the ids.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repeated(repository.work.files(), lambda work: work.id.casefold()):
            if earlier.id != work.id:
                message = f"{work.id} and {earlier.id} ({earlier.path}) differ only in case"
                yield self.finding(work.path, work.summary["place"], message)


class DependencyUnknown(RepositoryRule):
    """Dependency on an unknown packet

    The work waits for something that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for file in work.files():
            for mention in file.summary["depends"]:
                if mention[0] not in work.known and mention[0].startswith("WP-"):
                    message = f"{file.id} depends on {mention[0]}, which does not exist"
                    yield self.finding(file.path, mention[1:], message, hint=work.suggestions.hint(mention[0]))


class DependencyCycle(RepositoryRule):
    """Circular dependency between packets

    None of them can ever start.

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

    Stub and packet disagree about what the work waits for; the gate can follow only one of them.

    Remedy: correct the packet, and make the stub agree.
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
            message = f"the packet depends {' and '.join(parts)}, unlike its stub ({stub.path})"
            yield self.finding(packet.path, place, message)


def _by_base(file: WorkFile) -> dict[str, Mention]:
    """Dependencies by base: a later revision of the same work is no contradiction."""
    found: dict[str, Mention] = {}
    for mention in file.summary["depends"]:
        found.setdefault(base_of(mention[0]), mention)
    return found
