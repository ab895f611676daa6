"""Rules about all work packages of a mission together: their ids, dependencies and claims.

An id such as WP07 is meaningful only within its mission, so every rule handles one mission at a time. Summaries have
scoped ids (`<mission>--WP07`), which distinguish them from packages of other missions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from workpacket.documents.summary import Mention, PackageSummary, circles
from workpacket.documents.work_package import mission_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import RepositoryRule, first_lines, repeated

_NUMBER = lazy_pattern(r"WP([0-9]{1,9})\Z")
_FEW = 2
_PACKAGE_ID = lazy_pattern(r"WP[0-9]{2,}\Z")


class WorkPackageFile(NamedTuple):
    """The file of one work package."""

    path: str
    summary: PackageSummary

    @property
    def short(self) -> str:
        return self.summary["id"].rpartition("--")[2]


class Mission:
    """The packages of one mission, in file order; if several have the same id, the first one counts."""

    def __init__(self, packages: list[WorkPackageFile]) -> None:
        self.packages = packages
        self.by_id: dict[str, WorkPackageFile] = {}
        self._needed: dict[str, frozenset[str] | None] = {}
        for package in packages:
            self.by_id.setdefault(package.summary["id"], package)

    @cached_property
    def highest(self) -> int:
        """Return the highest package number."""
        return max((_number(package.short) for package in self.packages), default=0)

    def independent(self, first: int, second: int) -> bool:
        """Whether neither of two packages depends on the other. That is unknown if a file in between is missing."""
        names = self.packages[first].summary["id"], self.packages[second].summary["id"]
        needs = self.needs(names[0]), self.needs(names[1])
        if needs[0] is None or needs[1] is None or names[0] == names[1]:
            return False
        return names[0] not in needs[1] and names[1] not in needs[0]

    def needs(self, name: str) -> frozenset[str] | None:
        """Return all direct and indirect dependencies of a package; None if a file in between is missing."""
        if name not in self._needed:
            found: set[str] = set()
            waiting = [name]
            while waiting:
                package = self.by_id.get(waiting.pop())
                new = {mention[0] for mention in package.summary["depends"]} - found if package is not None else set()
                found |= new
                waiting += new
            self._needed[name] = frozenset(found) if found <= self.by_id.keys() else None
        return self._needed[name]


def missions(repository: RepositorySummaries) -> Iterator[Mission]:
    """Yield every mission that has packages."""
    found: dict[str, list[WorkPackageFile]] = {}
    for path, summary in sorted(repository.work_packages.items()):
        found.setdefault(path.rpartition("/")[0], []).append(WorkPackageFile(path, summary))
    yield from map(Mission, found.values())


def _number(short: str) -> int:
    match = _NUMBER.match(short)
    return int(match.group(1)) if match else 0


class PackageIdTwice(RepositoryRule):
    """Two files for one work package

    People may edit one file while tools read the other.

    Remedy: change the id of one of them, or delete it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            for package, first in repeated(mission.packages, lambda package: package.summary["id"]):
                message = f"{package.short} already has a file: {first.path}"
                yield self.finding(package.path, package.summary["place"], message)


class PackageDependencyUnknown(RepositoryRule):
    """Dependency on an unknown work package

    The package is waiting for work that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for package, mention, missing in _missing_dependencies(repository):
            if not missing:
                name = mention[0].rpartition("--")[2]
                yield self.finding(
                    package.path, mention[1:], f"this package depends on {name}, which is not in the mission"
                )


class PackageDependencyContradiction(RepositoryRule):
    """Dependencies in the text differ from the front matter

    Tools follow the front matter, but people follow the text, so work may start too early.

    Remedy: fix the front matter, and make the text agree.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            for package in mission.packages:
                if package.summary["unlisted"]:
                    yield from self._of_one(mission, package)

    def _of_one(self, mission: Mission, package: WorkPackageFile) -> Iterator[Problem]:
        listed = ", ".join(sorted({mention[0].rpartition("--")[2] for mention in package.summary["depends"]}))
        line = package.summary["dependencies_line"]
        implied = {name.rpartition("--")[2] for name in mission.needs(package.summary["id"]) or ()}
        # A command names the branch to start from, which is that of a direct dependency.
        named = [one for one in package.summary["unlisted"] if one[0] not in implied or one[1] == "command"]
        for _, _, *place in (stated for stated in named if not stated[0]):
            message = f"the text says that there are no dependencies, but the front matter lists {listed}"
            hint = f"delete them from `dependencies` (line {line}), or fix the text"
            yield self.finding(package.path, place, message, hint=hint)
        named = [stated for stated in named if stated[0]]
        if named:
            ids = ", ".join(name for name, *_ in named)
            verb = "the command builds on" if named[0][1] == "command" else "the text depends on"
            lines = [*dict.fromkeys(at for _, _, at, _ in named)]
            where = f" ({first_lines(lines)})" if len(lines) > 1 else ""
            message = f"{verb} {ids}{where}, but the front matter lists {listed or 'no dependencies'}"
            hint = f"add {ids} to `dependencies` (line {line}), or fix the text"
            yield self.finding(package.path, named[0][2:], message, hint=hint)


class PackageFileMissing(RepositoryRule):
    """Dependency on a work package with a missing file

    The mission's numbering shows that the package existed. Without its file, it is unknown whether it is done.

    Remedy: restore the file, or correct the dependency.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for package, mention, missing in _missing_dependencies(repository):
            if missing:
                name = mention[0].rpartition("--")[2]
                message = f"this package depends on {name}, whose file is missing"
                yield self.finding(package.path, mention[1:], message)


def _missing_dependencies(repository: RepositorySummaries) -> Iterator[tuple[WorkPackageFile, Mention, bool]]:
    """Yield dependencies without a file; the last value says whether the number is a gap in the mission's numbering.

    A dependency on another mission is looked up there, if the repository has that mission.
    """
    everywhere = {mission.packages[0].summary["mission"]: mission for mission in missions(repository)}
    for mission in everywhere.values():
        for package in mission.packages:
            for mention in package.summary["depends"]:
                home = everywhere.get(mission_of(mention[0]))
                short = mention[0].rpartition("--")[2]
                if home is not None and mention[0] not in home.by_id and _PACKAGE_ID.match(short):
                    yield package, mention, 0 < _number(short) < home.highest


class PackageDependencyCycle(RepositoryRule):
    """Circular dependency between work packages

    None of the packages can ever start.

    Remedy: delete one of the dependencies, or split a package.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            edges: dict[str, dict[str, Mention]] = {name: {} for name in mission.by_id}
            for name, package in mission.by_id.items():
                for mention in package.summary["depends"]:
                    edges[name].setdefault(mention[0], mention)
            for circle in circles(edges, edges):
                place = edges[circle[-2]][circle[-1]][1:]
                message = f"circular dependency: {' -> '.join(mission.by_id[name].short for name in circle)}"
                yield self.finding(mission.by_id[circle[-2]].path, place, message)


class PackageSubtaskTwice(RepositoryRule):
    """Subtask claimed by two work packages

    The subtask may be done twice, or each package may leave it to the other one.

    Remedy: remove the id from one of the packages.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            claimed: dict[str, tuple[WorkPackageFile, int]] = {}
            by_path = {package.path: package for package in mission.packages}
            apart = _numbered_apart(mission)
            for package in mission.packages:
                known = {} if package in apart else claimed
                shared: dict[str, list[tuple[str, int, int, int]]] = {}
                for name, line, column in package.summary["subtasks"]:
                    first, at = known.setdefault(name, (package, line))
                    if first is not package:
                        shared.setdefault(first.path, []).append((name, at, line, column))
                    elif at != line:
                        message = f"the subtask {name} is already on line {at}"
                        yield self.finding(package.path, (line, column), message)
                for path, claims in shared.items():  # both packages may be numbered from one
                    _, at, line, column = claims[0]
                    names = ", ".join(name for name, *_ in claims)
                    subtasks = "the subtask" if len(claims) == 1 else "the subtasks"
                    message = f"{by_path[path].short} also claims {subtasks} {names} ({path}, line {at})"
                    yield self.finding(package.path, (line, column), message)


def _numbered_apart(mission: Mission) -> list[WorkPackageFile]:
    """Return the packages whose subtasks are numbered from one, if that is how the mission numbers them."""
    with_subtasks = [package for package in mission.packages if package.summary["subtasks"]]
    numbers = [[int(name[1:]) for name, *_ in one.summary["subtasks"] if name[1:].isdigit()] for one in with_subtasks]
    counted = [found == [*range(1, len(found) + 1)] for found in numbers]
    apart = [package for package, from_one in zip(with_subtasks, counted, strict=True) if from_one]
    usual = len(apart) == len(with_subtasks) or 2 * len(apart) > len(with_subtasks) > _FEW
    return apart if usual and len(apart) > 1 else []


class PackageOwnedFilesShared(RepositoryRule):
    """File owned by two independent work packages

    Neither package waits for the other, so both may be worked on at the same time: one overwrites the other, or the
    merge fails.

    Remedy: make only one of them the owner of the file, or make one depend on the other.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            for (first, second), shared in _shared_files(mission).items():
                owner, package = mission.packages[first], mission.packages[second]
                more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
                message = f"{shared[0][0]}{more} is also owned by {owner.short}, and neither depends on the other"
                yield self.finding(package.path, shared[0][1:], message)


def _shared_files(mission: Mission) -> Mapping[tuple[int, int], list[Mention]]:
    """Return the files that two independent packages both own. A file with many owners is compared only with one
    earlier owner.
    """
    owners: dict[str, list[int]] = {}
    shared: dict[tuple[int, int], list[Mention]] = {}
    for index, package in enumerate(mission.packages):
        own = {mention[0].removeprefix("./").rstrip("/"): mention for mention in package.summary["owned_files"]}
        own.pop("", None)
        for name, mention in own.items():
            before = owners.setdefault(name, [])
            owner = next((earlier for earlier in before if mission.independent(earlier, index)), None)
            if owner is not None:
                shared.setdefault((owner, index), []).append(mention)
            before.append(index)
    return shared
