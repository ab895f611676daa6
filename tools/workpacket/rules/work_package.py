"""Rules about single work packages of spec-kitty. Rules about a whole mission are in `across_work_packages`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import without_quotes
from workpacket.documents.work_package import OLDER_LANES, Stated, WorkPackage
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.edits import TextRun

# Lanes of packages that are no longer worked on.
_FINISHED = frozenset({"approved", "done"})


_PACKAGE = lazy_pattern(r"\bWP\d{2,}\b")

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


class PackageDependencyContradiction(WorkPackageRule):
    """Dependencies in the text that differ from the front matter

    Tools follow the front matter and people the text, so work may start too early.

    Remedy: correct the front matter, and make the text agree.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if document.root is None:
            return
        listed = {dependency.value.rpartition("--")[2] for dependency in document.dependencies}
        said: set[str] = set()
        for stated in document.stated:
            name = stated.id.rpartition("--")[2]
            contradicts = name not in listed if name else bool(listed)
            if contradicts and name not in said and name != document.own_id:
                said.add(name)
                message = f"{_what(stated)}, but the front matter has {_shown(sorted(listed))}"
                yield self.fault((stated.start, stated.end), message, hint="make them agree")


def _what(stated: Stated) -> str:
    if not stated.id:
        return "the text says that there are no dependencies"
    verb = "the command builds on" if stated.way == "command" else "the text depends on"
    return f"{verb} {stated.id}"


def _shown(names: list[str]) -> str:
    return ", ".join(names) if names else "no dependencies"


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
        if lane is None or lane.value not in _FINISHED:
            return
        boxes = list(document.done_items())
        if boxes and not any(box.ticked for box in boxes):
            count = f"none of the {len(boxes)} boxes is ticked" if len(boxes) > 1 else "the box is not ticked"
            yield self.fault(boxes[0].span, f"the lane is {lane.value}, but {count}")
