"""Rules about what happened to a work package: its lane, its checkboxes, its reviews and its activity log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from workpacket.documents.document import as_text
from workpacket.documents.structured import items_of_section, walk_items
from workpacket.documents.work_package import OLDER_LANES, WorkPackage
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule, first_lines
from workpacket.rules.text import instructions_in
from workpacket.text.blocks import Section, read_items
from workpacket.text.source import Node

WorkPackageRule = DocumentRule[WorkPackage]

# Lanes of packages that are no longer worked on.
_FINISHED = frozenset({"approved", "done"})


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


class PackageDoneUnticked(WorkPackageRule):
    """Finished work package with an unticked definition of done

    The definition of done was not checked, or its boxes are not used.

    Remedy: check the definition of done, or move the package back to an earlier lane.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        lane = document.lane
        passed = _last_acceptance(document)
        finished = lane is not None and lane.value in _FINISHED
        if not finished and passed is None:
            return
        boxes = list(document.done_items())
        if not boxes and not finished:
            items = (walk_items(items_of_section(document.source, section)) for section in document.sections())
            boxes = list({item.span: item for part in items for item in part if item.ticked is not None}.values())
        open_boxes = [box for box in boxes if not box.ticked]
        if open_boxes:
            some = f"{len(open_boxes)} of the {len(boxes)} boxes {'is' if len(open_boxes) == 1 else 'are'} not ticked"
            count = some if len(open_boxes) < len(boxes) else f"none of the {len(boxes)} boxes is ticked"
            count = count if len(boxes) > 1 else "the box is not ticked"
            why = f"the lane is {lane.value}" if finished and lane is not None else ""
            if not why and passed is not None:
                line = document.source.line_and_column(passed.start("passed"))[0]
                why = f"the log says {passed['passed']!r} (line {line})"
            yield self.fault(open_boxes[0].span, f"{why}, but {count}")


class PackageInstructionLeft(WorkPackageRule):
    """Instruction of a template left in a finished work package

    Either the part was never written, or the instruction was not deleted when it was.

    Remedy: write the part, and delete the instruction.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        lane = document.lane
        finished = (lane is not None and lane.value in _FINISHED) or _last_acceptance(document) is not None
        for match in instructions_in(document) if finished else ():
            # `package_placeholder_left` reports an instruction above the entries that replaced it.
            if not _DATED.match(document.source.text[match.end() :].lstrip("\r\n")):
                yield self.fault(match.span("text"), f"finished, but {match['text']!r} is left from the template")


# What the activity log says about the package: it was accepted, or went back to work.
_MOVED = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]{0,300}?(?:(?P<passed>\blane=(?:done|approved)\b|\breview passed\b"
    r"|\bmoved to (?:done|approved)\b|\bdone override\b|[\u2013-] (?:arbiter )?approved?\b(?! plan| spec))"
    r"|\blane=[a-z_]+|\bchanges requested\b"
    r"|\bstarted (?:implementation|review)\b)"
)
_ACTIVITY_LOG = lazy_pattern("(?i)activity log")
_PASSED = (
    *(b"lane=done", b"lane=approved", b"review passed", b"moved to done", b"moved to approved", b"done override"),
    *("\u2013 approve".encode(), b"- approve"),
)


def _last_acceptance(document: WorkPackage) -> re.Match[str] | None:
    """Return the last entry of the activity log, if it says that the package was accepted."""
    if not document.source.mentions(*_PASSED):
        return None
    text = document.source.text
    log = _ACTIVITY_LOG.search(text, document.body)
    moves = list(_MOVED.finditer(text, log.start())) if log is not None else []
    return moves[-1] if moves and moves[-1]["passed"] else None


_LOGGED = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-\S+ [\u2013-] (?P<agent>[^\r\n\u2013]{1,80}?) [\u2013-] "
    r"(?:shell_pid=\d+ [\u2013-] )?(?:lane=\w+ [\u2013-] )?"
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
        reviewer, author = document.text_at("reviewed_by"), document.text_at("assignee")
        if reviewer is not None and author is not None and reviewer.value and reviewer.value == author.value:
            yield self.fault(reviewer.span, f"{reviewer.value} reviewed its own work")
            return
        authors: set[str] = set()
        logged = document.source.mentions(b"review passed")
        for match in _LOGGED.finditer(document.source.text, document.body) if logged else ():
            agent = match["agent"].strip()
            if match["what"].casefold() != "review passed":
                authors.add(agent)
            elif agent in authors:
                yield self.fault(match.span("agent"), f"{agent} reviewed its own work")
                return


_FEEDBACK = lazy_pattern(r"(?i)\*\*status\*\*:[^\r\n]{0,12}(?P<said>\bchanges requested\b)")


class PackageFeedbackOpen(WorkPackageRule):
    """Finished work package with a review that still requests changes

    A reader of the feedback cannot tell whether the changes were made.

    Remedy: below the feedback, describe how it was resolved, and change its status.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.source.mentions(b"changes requested"):
            return
        feedback = next((one for one in document.sections() if one.name == "review_feedback"), None)
        asked = feedback and _FEEDBACK.search(document.source.text, feedback.start, feedback.end)
        lane, passed = document.lane, _last_acceptance(document)
        finished = lane is not None and lane.value in _FINISHED
        if asked and (finished or passed is not None):
            why = f"the lane is {lane.value}" if finished and lane is not None else ""
            if passed is not None:
                why = f"line {document.source.line_and_column(passed.start('passed'))[0]} says {passed['passed']!r}"
            yield self.fault(asked.span("said"), f"the feedback asks for changes, but {why}")


_FEW = 2
_ENTRY = lazy_pattern(r"(?m)(?:^|(?<=\r))[-*] (?P<at>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z) [\u2013-] ")


class PackageLogBackwards(WorkPackageRule):
    """Activity log entry older than the one before it

    The log is append-only. An entry out of order was inserted later, or its time was made up.

    Remedy: find out what happened, but do not sort the log, because it is evidence.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        log = _log(document)
        entries = list(_ENTRY.finditer(document.source.text, log.start, log.end)) if log is not None else []
        times = [match["at"] for match in entries]
        if len(times) > _FEW and times == sorted(times, reverse=True):
            return  # the newest entry comes first
        for before, after in pairwise(entries):
            if after["at"] < before["at"]:
                yield self.fault(after.span("at"), f"{after['at']} is before {before['at']}, the entry above")
                return


_BY_AGENT = lazy_pattern(r"\d{4}-\d{2}-\d{2}T\S+ [\u2013-] [^\r\n]{1,80}? [\u2013-] ")


class PackageLogElsewhere(WorkPackageRule):
    """Activity log entries outside the activity log

    They were appended to the file, below another heading, so readers of the log miss them.

    Remedy: move them to the "Activity Log" section.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        log = _log(document)
        if log is None:
            return
        later = (section for section in document.sections() if section.start > log.start)
        items = (item for section in later for item in read_items(document.source, section.blocks))
        lines = [item.block.line for item in items if _BY_AGENT.match(item.text)]
        if lines:
            place = document.source.line_span(lines[0])
            yield self.fault(place, f"this belongs in the Activity Log on line {log.line} ({first_lines(lines)})")


_TIMES = ("timestamp", "at", "date", "time", "created_at")
_ACTORS = ("agent", "actor", "by", "author", "user")


class PackageHistoryIncomplete(WorkPackageRule):
    """History of a work package that does not say when, or who

    It is unknown who moved the package, and in what order.

    Remedy: give each entry a time and an actor: `- at: 2026-04-01T08:00:00Z`, `actor: ann`, `action: ...`.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        history = document.at("history")
        entries = document.items_at("history")
        if history is None or document.root is None:
            return
        if not entries:
            key = (document.root.keys or {}).get("history", history.span)
            yield self.fault(key, "the history is empty")
            return
        found = [(entry, lacks) for entry in entries if (lacks := _lacks(entry))]
        if found:
            entry, lacks = found[0]
            more = f", nor {'do' if len(found) > 2 else 'does'} {len(found) - 1} more" if len(found) > 1 else ""
            yield self.fault(entry.span, f"this entry does not say {lacks}{more}")


def _lacks(entry: Node) -> str:
    if not entry.mapping:
        return "when it happened, and who did it"
    absent = [
        said
        for said, names in (("when it happened", _TIMES), ("who did it", _ACTORS))
        if all(entry.get(name) is None for name in names)
    ]
    return " or ".join(absent)


_STEP = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]{0,300}?(?:(?P<begun>\bstarted implementation\b|\bassigned agent\b"
    r"|\blane=(?:doing|in_progress)\b|\bmoved to (?:doing|in_progress)\b|\bclaimed\b)"
    r"|(?P<handed>\blane=for_review\b|\bready for review\b|\bmoved to for_review\b|\bstarted review\b)"
    r"|(?P<passed>\blane=(?:done|approved)\b|\breview passed\b|\bmoved to (?:done|approved)\b|\bAPPROVED?\b))"
)


@lru_cache(maxsize=2)
def _log(document: WorkPackage) -> Section | None:
    return next((one for one in document.sections() if one.name == "activity_log"), None)


@lru_cache(maxsize=2)
def _steps(document: WorkPackage) -> tuple[re.Match[str], ...]:
    log = _log(document)
    return tuple(_STEP.finditer(document.source.text, log.start, log.end)) if log is not None else ()


class PackageLogGap(WorkPackageRule):
    """Work package that passed, although its log has no start or no review

    Either the steps were left out, or they never happened.

    Remedy: find out what happened, and add an entry that says so.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        log = _log(document)
        if log is None or not document.source.mentions(*_PASSED, b"approve"):
            return
        begun = handed = passed = False
        for step in _steps(document):
            line = document.source.text[step.start() : document.source.line_span(_line_of(document, step))[1]]
            if step["begun"]:
                # After a package passed, only a new start needs another review.
                begun, handed = True, "review" in line.casefold()
            elif step["handed"]:
                if not begun and not passed and not handed:
                    yield self.fault(
                        step.span("handed"), f"{step['handed']!r}, but the log says of no one that they began"
                    )
                    return
                handed = True
            elif not passed or begun:
                if not begun and not handed:
                    yield self.fault(
                        step.span("passed"), f"{step['passed']!r}, but the log says of no one that they began"
                    )
                    return
                if begun and not handed:
                    yield self.fault(step.span("passed"), f"{step['passed']!r}, but the log has no review before it")
                    return
                begun, handed, passed = False, False, True


def _line_of(document: WorkPackage, match: re.Match[str]) -> int:
    return document.source.line_and_column(match.start())[0]


_BEGAN_REVIEW = lazy_pattern(r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]{0,200}?(?P<said>\bstarted review\b)")
_DATED = lazy_pattern(r"(?m)(?:^|(?<=\r))[-*] \d{4}-\d{2}-\d{2}")


class PackageReviewOpen(WorkPackageRule):
    """Activity log that ends when a review begins

    The log does not say whether the work was accepted.

    Remedy: finish the review, or add an entry with its result.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.source.mentions(b"started review"):
            return
        log = _log(document)
        lane = document.lane
        entries = list(_DATED.finditer(document.source.text, log.start, log.end)) if log is not None else []
        last = _BEGAN_REVIEW.match(document.source.text, entries[-1].start()) if entries else None
        if last is not None and (lane is None or lane.value not in {"for_review", "in_review"}):
            yield self.fault(last.span("said"), "the log ends with this, and does not say how the review went")


class PackageHistoryBehind(WorkPackageRule):
    """History in the front matter that lacks what the activity log says

    Tools that read the front matter assume that no one has begun the package.

    Remedy: add the later entries to the history.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        entries = document.items_at("history")
        log = _log(document)
        # Only a history of lanes says where the package is.
        if log is None or len(entries) != 1 or entries[0].get("lane") is None:
            return
        steps = [step for step in _steps(document) if step["begun"] or step["passed"]]
        if steps:
            line = document.source.line_and_column(steps[0].start())[0]
            more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
            yield self.fault(entries[0].span, f"the history ends here, but the log has the entry on line {line}{more}")


_OUTSIDE = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]*?(?P<said>(?<!\bno )(?<!\bzero )(?<!\bany )"
    r"\bout[- ]of[- ]map (?:edits?|changes?|fix(?:es)?|files?)|\b(?:justified|documented|necessary) out[- ]of[- ]map\b)"
)


class PackageChangedUnowned(WorkPackageRule):
    """Activity log that reports a change to files of other packages

    Other packages may have changed the file at the same time, because only owned files are compared.

    Remedy: add the file to `owned_files`, or record who agreed to the change.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.source.mentions(b"out-of-map", b"out of map"):
            return
        log = _log(document)
        said = _OUTSIDE.search(document.source.text, log.start, log.end) if log is not None else None
        if said is not None:
            yield self.fault(said.span("said"), "the log reports a change outside owned_files")


_RETURNED = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[-*] \d{4}-[^\r\n]{0,200}? [\u2013-] (?:lane=\w+ [\u2013-] )?"
    r"(?P<said>moved to (?:planned|doing|in_progress))[ \t.]*(?=[\r\n]|\Z)"
)


class PackageReturnedSilently(WorkPackageRule):
    """Return from a review without a reason

    The next agent does not know what to change, and no one can check that it was changed.

    Remedy: say what the review found, or where its report is.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: WorkPackage) -> Iterator[Problem]:
        if not document.source.mentions(b"moved to planned", b"moved to doing", b"moved to in_progress"):
            return
        log = _log(document)
        if log is None:
            return
        reviews = [match.start() for match in _BEGAN_REVIEW.finditer(document.source.text, log.start, log.end)]
        for match in _RETURNED.finditer(document.source.text, log.start, log.end):
            if any(at < match.start() for at in reviews) and "review_feedback" not in document.source.text:
                yield self.fault(match.span("said"), "the package was returned from a review without a reason")
                return
