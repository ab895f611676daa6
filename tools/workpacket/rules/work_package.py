"""Rules about single work packages of spec-kitty. `missions` compares the packages of a mission."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from fnmatch import fnmatchcase

from workpacket.documents.document import without_quotes
from workpacket.documents.structured import items_of_section, walk_items
from workpacket.documents.work_package import OLDER_LANES, WorkPackage
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, first_lines
from workpacket.rules.text import places_of
from workpacket.text.blocks import walk
from workpacket.text.source import TextRun

_PACKAGE = lazy_pattern(r"\bWP\d{2,}\b")

_MERGED_INTO = lazy_pattern(
    r"(?:\bmust merge (?:back )?into |(?i:\bmerge target)(?: branch)?(?:\*{0,2}:\*{0,2})? (?=`|main\b|master\b|\w+/))"
    r"`?(?P<branch>[A-Za-z0-9][\w./-]*)`?"
)

_MERGED = ("ust merge ", "erge target", "erge Target", "ERGE TARGET")

WorkPackageRule = DocumentRule[WorkPackage]


class PackageFrontMatterMissing(WorkPackageRule):
    """Work package without front matter

    The package's id, lane and dependencies are unknown, so no tool can start it, move it or wait for it.

    Remedy: start the file with a `---` line, the fields `work_package_id`, `title` and `dependencies`, and another
    `---` line.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.has_front_matter and not document.faults:
            yield self.fault((0, 0), "the file has no front matter", hint="start it with `---` and work_package_id")


class PackageTitleMismatch(WorkPackageRule):
    """Heading of a different work package

    The text, including its scope, may have been copied from the other package.

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

    Commands find the file by its name, but then act on the package that its id refers to.

    Remedy: rename the file or correct `work_package_id`.
    """

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        stated = document.work_package_id
        if stated is not None and document.file_id and stated.value != document.file_id:
            message = f"work_package_id is {stated.value}, but the file name begins with {document.file_id}"
            yield self.fault(stated.span, message, hint="rename the file or correct the id")


class PackageDependenciesText(WorkPackageRule):
    """Dependencies written as text instead of a list

    Some tools read the text as one dependency with an invalid id, and others read no dependency.

    Remedy: `workpacket check --fix` writes the dependencies as a list.
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
        message = f"dependencies is the string {written.value!r} instead of a list"
        yield self.fault(written.span, message, hint=f"write {written_anew}", edits=edits, fix_title="write a list")


class PackageLaneOld(WorkPackageRule):
    """Outdated lane name

    Newer tools do not know the old name and reject the file.

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
    """Owned file pattern that matches nothing

    The pattern cannot match a file in the repository, so a conflict with another package remains hidden.

    Remedy: write a path or a pattern relative to the root of the repository.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        for text in document.owned_files:
            reason = _why_no_path(text.value)
            if reason:
                yield self.fault(text.span, f"{text.value!r} {reason}")


def _why_no_path(path: str) -> str:
    if any(path.count(left) != path.count(right) for left, right in ("<>", "{}", "[]")):
        return "has an unclosed bracket"
    if "\\" in path:
        return "contains a backslash"
    if path.startswith("/") or ".." in path.split("/"):
        return "leaves the repository"
    if path.endswith((",", ";")):
        return "ends with a comma" if path.endswith(",") else "ends with a semicolon"
    return "ends with a dot" if path.endswith(".") and not path.endswith("/.") and path != "." else ""


class PackageTargetContradicts(WorkPackageRule):
    """Merge target in the text differs from the front matter

    The finished work may be merged into the wrong branch.

    Remedy: make the two agree.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        target = document.text_at("merge_target_branch")
        if target is None or not target.value:
            return
        text = document.source.text
        places = sorted(at - 1 for words in _MERGED for at in places_of(words, text, document.body))
        for match in (one for at in places if (one := _MERGED_INTO.match(text, at)) is not None):
            line = document.source.line(document.source.line_and_column(match.start())[0])
            # A line that names both branches says what is merged where.
            if match["branch"].rstrip(".") != target.value and target.value not in line:
                message = f"the text says {match['branch'].rstrip('.')}, but merge_target_branch is {target.value}"
                yield self.fault(match.span("branch"), message)
                return


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
    """Section for a subtask that the front matter does not list

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
                yield self.fault(text.span, f"{text.value} is not in the front matter's subtask list")


class PackageSubtaskEmpty(WorkPackageRule):
    """Heading of a subtask without text

    The heading names what to do, but not how, nor when it is done.

    Remedy: describe the subtask below its heading.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        ids = {text.start: text.value for text in document.subtask_headings}
        headed = [(section, ids[at]) for section in document.sections() if (at := section.title_span[0]) in ids]
        told = {name for section, name in headed if section.blocks or section.subsections}
        # A package may list its subtasks by title only.
        empty = [(section, name) for section, name in headed if name not in told] if told else []
        if empty:
            names = ", ".join(name for _, name in empty)
            yield self.fault(empty[0][0].title_span, f"nothing is written below the heading of {names}")


_VARIABLE = lazy_pattern(r"\{\{|\}\}")
# The line of a template above the entries that replace it, and the agent of an entry.
_LOG_TO_FILL = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] (?P<text>\((?:populated|to be filled|filled in)[^()\r\n]{0,60}\))[ \t]*(?:\r\n|\n|\r)"
    r"(?=[-*] \d{4}-)"
)
_NO_AGENT = lazy_pattern(r"(?P<text>__[A-Z_]+__)(?= )")
# What a template asks its author to write, alone on a line.
_INSTRUCTION = lazy_pattern(
    r"(?P<text>\[(?:Describe|Insert|Fill in|Explain|Your|Brief|List|Summarize|Specify|Provide)\b"
    r"[^\[\]\r\n]{0,200}\])[ \t]*(?=[\r\n]|\Z)"
)
_POPULATED = "Populated by finalize-tasks."
# What the heading of a template says about its own section.
_REMARK_LEFT = lazy_pattern(r"(?i)\((?:include|keep|add) (?:this )?(?:section )?only (?:when|if)[^()]{0,80}\)")
_BRACES = lazy_pattern(r"(?<![`{$])\{\{ ?[a-z_]+ ?\}\}(?![`}])")


class PackagePlaceholderLeft(WorkPackageRule):
    """Template variable left in a work package

    The program that wrote the file did not know the value, so the reader does not know it either.

    Remedy: write the value.
    """

    severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        text = document.source.text
        title = document.title
        if title is not None and _VARIABLE.search(title.value):
            yield self.fault(title.span, f"the title is {title.value!r}")
        left = [*_LOG_TO_FILL.finditer(text, document.body)] if " (populated" in text or " (filled" in text else []
        dashes = places_of("\u2013 __", text, document.body)
        left += [one for at in dashes if (one := _NO_AGENT.match(text, at + 2)) is not None]
        for match in left:
            yield self.fault(match.span("text"), f"the template text {match['text']!r} was not replaced")
        for at in places_of(_POPULATED, text, document.body):
            # Behind a value, the words say where the value came from.
            if not text[_before(document, at)[0] : at].strip(" \t-*+>"):
                yield self.fault((at, at + len(_POPULATED)), f"the template text {_POPULATED!r} was not replaced")
        starts = places_of("\n[", text, document.body)
        for match in (one for at in starts if (one := _INSTRUCTION.match(text, at + 1)) is not None):
            yield self.fault(match.span("text"), f"the template text {match['text'][:60]!r} was not replaced")
        for section in document.sections():
            remark = _REMARK_LEFT.search(section.title)
            if remark is not None:
                start = section.title_span[0] + remark.start()
                span = (start, start + len(remark[0]))
                yield self.fault(span, f"the template's text {remark[0]!r} was not deleted")
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


_REQUIREMENT = lazy_pattern(r"\((?P<id>(?:FR|NFR|C)-\d{3})\)")


class PackageRequirementUnlisted(WorkPackageRule):
    """Subtask for a requirement that the front matter does not list

    Requirement coverage is computed from the list, so this requirement seems to have no work package.

    Remedy: add the requirement to `requirement_refs`, or correct the heading.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        listed = {text.value for text in document.texts_at("requirement_refs")}
        for section in document.sections() if listed else ():
            match = _REQUIREMENT.search(section.title) if section.title[:1] in {"T", "S"} else None
            if match is not None and match["id"] not in listed and match["id"][:2] in {each[:2] for each in listed}:
                start = section.title_span[0] + match.start("id")
                yield self.fault((start, start + len(match["id"])), f"{match['id']} is not in requirement_refs")
        for section in document.sections() if listed else ():
            done = "definition_of_done" in section.name and "(" in document.source.text[section.start : section.end]
            for item in walk_items(items_of_section(document.source, section)) if done else ():
                for match in _REQUIREMENT.finditer(item.text):
                    if match["id"] not in listed and match["id"][:2] in {each[:2] for each in listed}:
                        yield self.fault(item.span, f"{match['id']} is not in requirement_refs")


_FILES_LINE = lazy_pattern(r"(?:- )?(?:\*\*)?Files?(?:\*\*)?: (?P<said>[^\r\n]+)")
_FILE = lazy_pattern(r"`(?P<path>[\w.-]+/[\w./-]+\.\w+)`")
_MOST_FILES = 200
# The characters of a path that matches only itself.
_PLAIN_PATH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")


class _Owned:
    """The files that a package owns."""

    def __init__(self, document: WorkPackage) -> None:
        self.paths = [text.value.removeprefix("./").rstrip("/") for text in document.owned_files]
        self._folders = tuple(f"{pattern.removesuffix('/**').removesuffix('/*')}/" for pattern in self.paths)
        self._patterns = [pattern for pattern in self.paths if not _PLAIN_PATH.issuperset(pattern)]

    def has(self, path: str) -> bool:
        plain = path.removeprefix("./").rstrip("/")
        matched = any(fnmatchcase(plain, pattern) for pattern in self._patterns)
        return plain in self.paths or f"{plain}/".startswith(self._folders) or matched


class PackageFileUnowned(WorkPackageRule):
    """Subtask file that the package does not own

    Other packages may change the file at the same time, because only owned files are compared.

    Remedy: add the file to `owned_files`, or correct the path.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        owned = _Owned(document)
        text = document.source.text
        marks = ("**File", "- File") if owned.paths else ()
        places = sorted(at for mark in marks for at in places_of(mark, text, document.body))
        lines = [line for at in places if (line := _FILES_LINE.match(document.source.text, at)) is not None]
        starts = [text.start for text in document.subtask_headings] if lines else []
        # A subtask may read some files that it names; one that names only files of others changes them.
        outside: dict[int, list[re.Match[str]]] = {}
        inside: set[int] = set()
        for line in lines[:_MOST_FILES]:
            subtask = bisect_right(starts, line.start())
            for match in _FILE.finditer(document.source.text, *line.span("said")):
                if owned.has(match["path"]):
                    inside.add(subtask)
                else:
                    outside.setdefault(subtask, []).append(match)
        others = [match for subtask, matches in outside.items() if subtask not in inside for match in matches]
        if others:
            more = f", nor {len(others) - 1} more" if len(others) > 1 else ""
            yield self.fault(others[0].span("path"), f"owned_files does not contain {others[0]['path']}{more}")


class PackageRequirementUnaddressed(WorkPackageRule):
    """Requirement that the work package lists and never mentions

    Coverage counts the requirement as met here, but no subtask and no criterion says how.

    Remedy: say which subtask meets the requirement, or delete it from `requirement_refs`.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        listed = [text for text in document.texts_at("requirement_refs") if _REQUIREMENT_ID.fullmatch(text.value)]
        if not listed:
            return
        named: set[str] = set()
        for match in _REQUIREMENT_RANGE.finditer(document.source.text, document.body):
            first = int(match["first"])
            last = int(match["last"]) if match["last"] else first
            named.update(f"{match['kind']}-{number}" for number in range(first, min(last, first + _LONGEST_RANGE) + 1))
        without_zeros = {
            text.value: f"{text.value.partition('-')[0]}-{int(text.value.partition('-')[2])}" for text in listed
        }
        silent = [text for text in listed if without_zeros[text.value] not in named]
        # A text that names few of them does not use the ids.
        if len(silent) == len(listed):
            which = f"any of the {len(listed)} requirements" if len(listed) > 1 else listed[0].value
            yield self.fault(silent[0].span, f"the text of the package does not mention {which}")
        elif silent and len(silent) * 2 <= len(listed):
            names = ", ".join(text.value for text in silent)
            yield self.fault(silent[0].span, f"the text of the package does not mention {names}")


_REQUIREMENT_ID = lazy_pattern(r"(?:FR|NFR|C|SC)-\d{1,4}")
_REQUIREMENT_RANGE = lazy_pattern(
    r"\b(?P<kind>FR|NFR|C|SC)-0*(?P<first>\d{1,4})"
    r"(?:[a-z]?(?:\.\.|/|\u2013|\u2014|-| to | through )(?:FR-|NFR-|C-|SC-)?0*(?P<last>\d{1,4}))?(?!\d)"
)
_LONGEST_RANGE = 50


class PackageFieldEmpty(WorkPackageRule):
    """Field of the front matter that is there without a value

    Tools that need the value take the empty one.

    Remedy: fill in the field, or delete it.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if document.root is None:
            return
        given = {name: node for name in _FILLED_FIELDS if (node := document.at(name)) is not None}
        empty = [name for name, node in given.items() if node.value in (None, "")]
        if empty:
            span = (document.root.keys or {}).get(empty[0], (0, 0))
            yield self.fault(span, f"{', '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty")


_FILLED_FIELDS = ("authoritative_surface", "agent_profile", "execution_mode", "planning_base_branch")


_FIELD_ABOVE = lazy_pattern(r"`(?P<name>[a-z]+(?:_[a-z]+)+)` field (?:above|in the front ?matter)")


class PackageFieldAbsent(WorkPackageRule):
    """Text that refers to a field missing from the front matter

    The reader is told to act on a value that does not exist.

    Remedy: add the field, or delete the instruction.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        known = document.root.mapping if document.root is not None else {}
        for match in (
            _FIELD_ABOVE.finditer(document.source.text, document.body) if "` field " in document.source.text else ()
        ):
            if known and match["name"] not in known:
                yield self.fault(match.span("name"), f"the front matter has no field {match['name']}")


class PackageIntentUnowned(WorkPackageRule):
    """File to be created that the package does not own

    Another package may create the same file, because only owned files are compared.

    Remedy: add the file to `owned_files`.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        owned = _Owned(document)
        absent = [text for text in document.texts_at("create_intent") if owned.paths and not owned.has(text.value)]
        if absent:
            more = f", nor {len(absent) - 1} more" if len(absent) > 1 else ""
            yield self.fault(absent[0].span, f"owned_files does not contain {absent[0].value}{more}")


class PackageWithoutDone(WorkPackageRule):
    """Work package that does not say when it is done

    It has neither a definition of done nor criteria nor a checkbox, so anyone may call it finished.

    Remedy: add a section "Definition of Done" with one checkbox for each thing that must be true.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        sections = list(document.sections())
        if len(sections) < _FEW_SECTIONS or any(box in document.source.text for box in ("- [ ]", "- [x]", "- [X]")):
            return
        if not any(word in section.name for section in sections for word in _SAYS_WHEN_DONE):
            title = next((section for section in sections if section.level == 1), sections[0])
            yield self.fault(title.title_span, "nothing says when this package is done")


_FEW_SECTIONS = 3
_SAYS_WHEN_DONE = ("done", "accept", "criteria", "exit", "complete", "deliverable")
