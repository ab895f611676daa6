"""Rules about one work package of spec-kitty. What concerns a whole mission is in `across_work_packages`."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.documents.document import without_quotes
from workpacket.documents.work_package import OLDER_LANES, Stated, WorkPackage
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.edits import Run

# Lanes in which nobody works on a package any more.
_FINISHED = frozenset({"approved", "done"})


WorkPackageRule = DocumentRule[WorkPackage]


class PackageFrontMatterMissing(WorkPackageRule):
    """Work package without front matter

    Its id, its lane and its dependencies are unknown, so no tool can start it, move it or wait for it.

    Remedy: begin the file with `---`, the fields `work_package_id`, `title` and `dependencies`, and `---` again.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.has_front_matter and not document.faults:
            yield self.fault((0, 0), "the file has no front matter", hint="begin it with `---` and work_package_id")


class PackageFileMismatch(WorkPackageRule):
    """Id of a work package that its file name contradicts

    Commands find the file by its name; then they read another id inside and act on another package.

    Remedy: rename the file or correct `work_package_id`.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        stated = document.work_package_id
        if stated is not None and document.file_id and stated.value != document.file_id:
            message = f"work_package_id is {stated.value}, the file name begins with {document.file_id}"
            yield self.fault(stated.span, message, hint="rename the file or correct the id")


class PackageDependenciesText(WorkPackageRule):
    """Dependencies written as text instead of a list

    To some readers the text is one dependency with an impossible id, to others it is none at all.

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
        # What is no id may be a word between ids; only a person can say what was meant.
        clear = all(WorkPacketId.try_parse(name) is not None for name in names)
        run = Run.on_line(document.source.text, written.start, written.end) if clear else None
        edits = [run.replaced_by(written_anew)] if run is not None else []
        message = f"dependencies is the text {written.value!r} instead of a list"
        yield self.fault(written.span, message, hint=f"write {written_anew}", edits=edits, fix_title="write a list")


class PackageLaneOld(WorkPackageRule):
    """Lane under the name that it had before

    Newer tools do not know the name and refuse the file.

    Remedy: `workpacket check --fix` writes the present name.
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
    """Text that states other dependencies than the front matter

    Tools wait for what the front matter says, people for what they read. One of the two starts too early.

    Remedy: make the front matter say what holds, and the text the same.
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
                message = f"{_what(stated)}, the front matter has {_shown(sorted(listed))}"
                yield self.fault((stated.start, stated.end), message, hint="make both say the same")


def _what(stated: Stated) -> str:
    if not stated.id:
        return "the text says that there are no dependencies"
    verb = "the command builds on" if stated.way == "command" else "the text depends on"
    return f"{verb} {stated.id}"


def _shown(names: list[str]) -> str:
    return ", ".join(names) if names else "no dependencies"


class PackageSubtaskUndescribed(WorkPackageRule):
    """Subtask that the text does not describe

    Whoever works through the text leaves it out, and the package is called done without it.

    Remedy: add a section `### T0xx: ...`, or take the id out of `subtasks`.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        for text in document.subtask_ids:
            if text.value not in document.described_subtasks:
                yield self.fault(text.span, f"no section below describes {text.value}", hint=f"add ### {text.value}")


class PackageSubtaskUnlisted(WorkPackageRule):
    """Section about a subtask that the front matter does not list

    Progress is counted by the list, so the subtask counts neither as open nor as done.

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
                yield self.fault(text.span, f"{text.value} is not among the subtasks of the front matter")


class PackageDoneUnticked(WorkPackageRule):
    """Finished work package with nothing ticked in its definition of done

    Either nobody went through the list, or the boxes mean nothing here.

    Remedy: go through the definition of done, or move the package back.
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
