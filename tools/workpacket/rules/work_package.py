"""Rules about work packages of spec-kitty: single ones, and all of a mission (their ids, dependencies and claims).

An id such as WP07 is meaningful only within its mission, so every rule about several handles one mission at a time.
Summaries have scoped ids (`<mission>--WP07`), which distinguish them from packages of other missions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from workpacket.documents.document import as_text, without_quotes
from workpacket.documents.structured import items_of_section, walk_items
from workpacket.documents.summary import Mention, PackageSummary, circles
from workpacket.documents.work_package import OLDER_LANES, Stated, WorkPackage, mission_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import DocumentRule, RepositoryRule, first_lines, repeated
from workpacket.text.blocks import walk
from workpacket.text.edits import TextRun

# Lanes of packages that are no longer worked on.
_FINISHED = frozenset({"approved", "done"})


_PACKAGE = lazy_pattern(r"\bWP\d{2,}\b")

_MERGED_INTO = lazy_pattern(
    r"(?:\bmust merge (?:back )?into |(?i:\bmerge target)(?: branch)?(?:\*{0,2}:\*{0,2})? (?=`|main\b|master\b|\w+/))"
    r"`?(?P<branch>[A-Za-z0-9][\w./-]*)`?"
)

WorkPackageRule = DocumentRule[WorkPackage]


class PackageFrontMatterMissing(WorkPackageRule):
    """Work package without front matter

    The package's id, lane and dependencies are unknown, so no tool can start it, move it or wait for it.

    Remedy: start the file with a line `---`, the fields `work_package_id`, `title` and `dependencies`, and another line
    `---`.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.has_front_matter and not document.faults:
            yield self.fault((0, 0), "the file has no front matter", hint="start it with `---` and work_package_id")


class PackageTitleMismatch(WorkPackageRule):
    """Heading of another work package

    The text may have been copied from the other package, with its scope.

    Remedy: correct the heading, or the text below it.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        stated = document.work_package_id
        title = next((section for section in document.sections() if section.level == 1), None)
        named = _PACKAGE.search(title.title) if title is not None else None
        if stated is not None and title is not None and named and named[0] != stated.value and document.file_id:
            start = title.title_span[0] + named.start()
            message = f"the heading names {named[0]}, but this is {stated.value}"
            yield self.fault((start, start + len(named[0])), message)


class PackageFileMismatch(WorkPackageRule):
    """Work package id that differs from the file name

    Commands find the file by its name, but then act on the package that its id names.

    Remedy: rename the file or correct `work_package_id`.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        stated = document.work_package_id
        if stated is not None and document.file_id and stated.value != document.file_id:
            message = f"work_package_id is {stated.value}, but the file name begins with {document.file_id}"
            yield self.fault(stated.span, message, hint="rename the file or correct the id")


class PackageDependenciesText(WorkPackageRule):
    """Dependencies written as text instead of a list

    Some tools read the text as one dependency with an invalid id, others as none.

    Remedy: `workpacket check --fix` writes them as a list.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        written = document.dependencies_text
        if written is None:
            return
        names = [dependency.value for dependency in document.dependencies]
        written_anew = f"[{', '.join(names)}]"
        # Text that is not an id may be a word between ids; only a person can tell what was meant.
        clear = all(WorkPacketId.try_parse(name) is not None for name in names)
        run = TextRun.on_line(document.source.text, written.start, written.end) if clear else None
        edits = [run.replaced_by(written_anew)] if run is not None else []
        message = f"dependencies is the text {written.value!r} instead of a list"
        yield self.fault(written.span, message, hint=f"write {written_anew}", edits=edits, fix_title="write a list")


class PackageLaneOld(WorkPackageRule):
    """Outdated lane name

    Newer tools do not know the old name and refuse the file.

    Remedy: `workpacket check --fix` writes the current name.
    """

    severity = "warning"
    fix = "safe"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        lane = document.lane
        if lane is not None and lane.value in OLDER_LANES:
            now = OLDER_LANES[lane.value]
            run = document.run(without_quotes(document.source, lane))
            edits = [run.replaced_by(now)] if run is not None else []
            yield self.fault(lane.span, f"the lane {lane.value} is now called {now}", edits=edits)


class PackageOwnedFileMalformed(WorkPackageRule):
    """Owned file that matches nothing

    The pattern cannot match a file of the repository, so a conflict with another package stays hidden.

    Remedy: write a path or a pattern from the root of the repository.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        for text in document.owned_files:
            reason = _why_no_path(text.value)
            if reason:
                yield self.fault(text.span, f"{text.value!r} {reason}")


def _why_no_path(path: str) -> str:
    if any(path.count(left) != path.count(right) for left, right in ("<>", "{}", "[]")):
        return "has a bracket that is not closed"
    if path.startswith("/") or ".." in path.split("/"):
        return "leaves the repository"
    return "ends with a dot" if path.endswith(".") and not path.endswith("/.") and path != "." else ""


class PackageLaneContradicts(WorkPackageRule):
    """Lane that differs from the last entry of the history

    The two disagree about whether the package is done.

    Remedy: correct the lane, or add the missing entry to the history.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        lane = document.lane
        entries = [as_text(entry.get("lane")) for entry in document.items_at("history") if entry.mapping]
        moves = [text.value for text in entries if text is not None and text.value]
        if lane is None or not moves or not lane.value:
            return
        last = OLDER_LANES.get(moves[-1], moves[-1])
        # A history that names only the first lane was never continued.
        if len(moves) > 1 and last != OLDER_LANES.get(lane.value, lane.value):
            yield self.fault(lane.span, f"the lane is {lane.value}, but the history ends with {moves[-1]}")


class PackageTargetContradicts(WorkPackageRule):
    """Merge target in the text that differs from the front matter

    The finished work may be merged into the wrong branch.

    Remedy: make the two agree.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        target = document.text_at("merge_target_branch")
        if target is None or not target.value:
            return
        for match in _MERGED_INTO.finditer(document.source.text, document.body):
            if match["branch"].rstrip(".") != target.value:
                message = f"the text says {match['branch'].rstrip('.')}, but merge_target_branch is {target.value}"
                yield self.fault(match.span("branch"), message)
                return


class PackageDependencyContradiction(WorkPackageRule):
    """Dependencies in the text that differ from the front matter

    Tools follow the front matter and people the text, so work may start too early.

    Remedy: correct the front matter, and make the text agree.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if document.root is None:
            return
        listed = sorted({dependency.value.rpartition("--")[2] for dependency in document.dependencies})
        line = document.source.line_and_column((document.root.keys or {}).get("dependencies", (0, 0))[0])[0]
        named: dict[str, Stated] = {}
        for stated in document.stated:
            name = stated.id.rpartition("--")[2]
            if name not in listed and name != document.own_id and (name or listed):
                named.setdefault(name, stated)
        none = named.pop("", None)
        if none is not None:
            message = f"the text says that there are no dependencies, but the front matter has {', '.join(listed)}"
            hint = f"delete them from `dependencies` (line {line}), or correct the text"
            yield self.fault((none.start, none.end), message, hint=hint)
        if named:
            first, ids = next(iter(named.values())), ", ".join(named)
            verb = "the command builds on" if first.way == "command" else "the text depends on"
            lines = [*dict.fromkeys(document.source.line_and_column(one.start)[0] for one in named.values())]
            where = f" ({first_lines(lines)})" if len(lines) > 1 else ""
            message = f"{verb} {ids}{where}, but the front matter has {', '.join(listed) or 'no dependencies'}"
            hint = f"add {ids} to `dependencies` (line {line}), or correct the text"
            yield self.fault((first.start, first.end), message, hint=hint)


class PackageSubtaskUndescribed(WorkPackageRule):
    """Subtask that the text does not describe

    People who follow the text skip the subtask, and the package is finished without it.

    Remedy: add a section `### T0xx: ...`, or remove the id from `subtasks`.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        for text in document.subtask_ids:
            if text.value not in document.described_subtasks:
                yield self.fault(text.span, f"no section describes {text.value}", hint=f"add ### {text.value}")


class PackageSubtaskUnlisted(WorkPackageRule):
    """Section about a subtask that the front matter does not list

    Progress is computed from the list, so the subtask is counted neither as open nor as done.

    Remedy: add the id to `subtasks`, or delete the section.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if document.root is None:
            return
        listed = {text.value.casefold() for text in document.subtask_ids}
        for text in document.subtask_headings:
            if text.value.casefold() not in listed:
                listed.add(text.value.casefold())
                yield self.fault(text.span, f"{text.value} is not in the front matter's list of subtasks")


class PackageDoneUnticked(WorkPackageRule):
    """Finished work package with an unticked definition of done

    The definition of done was not checked, or its boxes are not used.

    Remedy: check the definition of done, or move the package back to an earlier lane.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        lane = document.lane
        log = document.source.text.lower().find("activity log", document.body)
        moves = list(_MOVED.finditer(document.source.text, log)) if log >= 0 else []
        passed = moves[-1] if moves and moves[-1]["passed"] else None
        finished = lane is not None and lane.value in _FINISHED
        if not finished and passed is None:
            return
        boxes = list(document.done_items())
        if not boxes and not finished:
            items = (walk_items(items_of_section(document.source, section)) for section in document.sections())
            boxes = list({item.span: item for part in items for item in part if item.ticked is not None}.values())
        if boxes and not any(box.ticked for box in boxes):
            count = f"none of the {len(boxes)} boxes is ticked" if len(boxes) > 1 else "the box is not ticked"
            why = f"the lane is {lane.value}" if finished and lane is not None else ""
            if not why and passed is not None:
                line = document.source.line_and_column(passed.start("passed"))[0]
                why = f"the log says {passed['passed']!r} (line {line})"
            yield self.fault(boxes[0].span, f"{why}, but {count}")


# What the activity log says about the package: it was accepted, or went back to work.
_MOVED = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]{0,300}?(?:(?P<passed>\blane=(?:done|approved)\b|\breview passed\b"
    r"|\bmoved to (?:done|approved)\b|\bdone override\b)|\blane=[a-z_]+|\bchanges requested\b"
    r"|\bstarted (?:implementation|review)\b)"
)
_LOGGED = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-\S+ [\u2013-] (?P<agent>[^\r\n\u2013]{1,80}?) [\u2013-] "
    r"(?:shell_pid=\d+ [\u2013-] )?"
    r"(?P<what>started implementation|assigned agent|review passed)"
)


class PackageReviewedByAuthor(WorkPackageRule):
    """Review by the agent that did the work

    No one else has looked at the work.

    Remedy: have another agent, or a person, review it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        authors: set[str] = set()
        for match in _LOGGED.finditer(document.source.text, document.body):
            agent = match["agent"].strip()
            if match["what"].casefold() != "review passed":
                authors.add(agent)
            elif agent in authors:
                yield self.fault(match.span("agent"), f"{agent} reviewed its own work")
                return


_BRACES = lazy_pattern(r"(?<![`{$])\{\{ ?[a-z_]+ ?\}\}(?![`}])")


class PackagePlaceholderLeft(WorkPackageRule):
    """Template variable left in a work package

    The program that wrote the file did not know the value, so the reader does not either.

    Remedy: write the value.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        text = document.source.text
        sections = document.sections() if "{{" in text else ()
        blocks = (block for section in sections for block in walk(section.blocks))
        spans = (span for block in blocks if block.kind == "paragraph" for span in block.spans)
        matches = (match for start, end in spans for match in _BRACES.finditer(text, start, end))
        found = [one for one in matches if text.count("`", *_before(document, one.start())) % 2 == 0]
        if found:
            lines = [*dict.fromkeys(document.source.line_and_column(match.start())[0] for match in found)]
            more = f", and {len(found) - 1} more ({first_lines(lines)})" if len(found) > 1 else ""
            yield self.fault(found[0].span(), f"the variable {found[0][0]} was not filled in{more}")


def _before(document: WorkPackage, position: int) -> tuple[int, int]:
    """Return the span from the beginning of a line to a position on it."""
    return document.source.line_starts[document.source.line_and_column(position)[0] - 1], position


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
    """The packages of one mission, in file order; of several with the same id, the first one counts."""

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
        needs = self._needs(names[0]), self._needs(names[1])
        if needs[0] is None or needs[1] is None or names[0] == names[1]:
            return False
        return names[0] not in needs[1] and names[1] not in needs[0]

    def _needs(self, name: str) -> frozenset[str] | None:
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

    The package waits for work that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for package, mention, missing in _missing_dependencies(repository):
            if not missing:
                name = mention[0].rpartition("--")[2]
                yield self.finding(
                    package.path, mention[1:], f"this package depends on {name}, which is not in the mission"
                )


class PackageFileMissing(RepositoryRule):
    """Dependency on a work package whose file is missing

    The numbering of the mission shows that the package existed. Without its file, it is unknown whether it is done.

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

    The subtask may be done twice, or each package may leave it to the other.

    Remedy: remove the id from one of them.
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

    Neither waits for the other, so both may be done at once: one overwrites the other, or the merge fails.

    Remedy: let only one of them own the file, or make one depend on the other.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for mission in missions(repository):
            for (first, second), shared in _shared_files(mission).items():
                owner, package = mission.packages[first], mission.packages[second]
                more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
                message = f"{shared[0][0]}{more} also belongs to {owner.short}, and neither depends on the other"
                yield self.finding(package.path, shared[0][1:], message)


def _shared_files(mission: Mission) -> Mapping[tuple[int, int], list[Mention]]:
    """Return the files that two independent packages both own. A file with many owners is compared with only one
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
