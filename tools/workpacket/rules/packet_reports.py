"""Rules about what a packet says after the work: reports, handoff, manifests and open questions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from workpacket.documents.packet import NOT_YET, Packet
from workpacket.documents.structured import body_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import HOLDER
from workpacket.problem import Problem
from workpacket.rules.identity import PLACEHOLDER
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import says_something
from workpacket.text.blocks import normal_key, read_fields

_VERDICT = lazy_pattern(
    r"(?:^|(?<=\r))[ \t]*(?:[-*+][ \t]+)?"
    r"(?P<line>[*_`]*verdict[*_`]*[ \t]*:[*_`]*[ \t]*[*_`]*(?P<verdict>PASS|FAIL|OUTDATED)(?:\b|_))",
    re.IGNORECASE | re.MULTILINE,
)
_REPORT = lazy_pattern(r"(?i)\b(?:re)?validation report\b")

ReportRule = DocumentRule[Packet]


def verdicts(document: Packet) -> list[re.Match[str]]:
    """Return the verdicts of the reports in a packet, in text order. A report may have a heading of its own."""
    reports = [placed.section for placed in document.placed if placed.spec.key == "validation_reports"]
    reports += [section for section in document.unknown if _REPORT.search(section.title)]
    matches = (_VERDICT.finditer(document.source.text, part.start, part.end) for part in reports)
    found = {match.start(): match for part in matches for match in part}
    return [found[start] for start in sorted(found)]


def _is_finished(document: Packet) -> bool:
    """Whether the packet was accepted, according to its status or its last verdict."""
    lanes = document.lanes.named(document.status.value) if document.status is not None else ()
    said = verdicts(document)
    return bool(lanes and all(lane.satisfies for lane in lanes)) or bool(said and said[-1]["verdict"].upper() == "PASS")


class PacketStatusOldForm(ReportRule):
    """Status with extra text after the lane

    Scripts compare the whole line; because of the remark, they do not recognize the lane.

    Remedy: `workpacket board sync` writes only the lane; move the remark to the section STATUS_HANDOFF.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        status = document.status
        lanes = document.lanes.named(status.value) if status is not None else ()
        if status is None or not lanes:
            return
        plain = {name for lane in lanes for name in (lane.token, lane.title)} | {"Done"}
        if status.value not in plain:
            message = f"the status is {status.value!r} instead of just the lane"
            named = status.value.casefold().replace("_", " ")  # `Done (VALIDATED)` names one of the lanes of Done
            meant = [lane for lane in lanes if lane.title.casefold() in named] or lanes
            said = verdicts(document)
            if said and said[-1]["verdict"].upper() != "PASS" and all(lane.satisfies for lane in meant):
                hint = f"write the lane that follows from the last verdict, {said[-1]['verdict'].upper()}"
            else:
                hint = f"write {' or '.join(lane.title for lane in meant)}"
            yield self.fault(status.span, message, hint=hint)


class VerdictContradicts(ReportRule):
    """Status that contradicts the last verdict

    The last verdict counts, so the status must match it.

    Remedy: `workpacket board sync` writes the lane recorded in the log; without a log, correct the status.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        said = verdicts(document)
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not said or not lanes:
            return
        last = said[-1]
        passed = last["verdict"].upper() == "PASS"
        before = all(lane.in_work and (lane.waits or lane.acts == HOLDER) for lane in lanes)
        if (passed and before) or (not passed and all(lane.satisfies for lane in lanes)):
            message = f"the last verdict is {last['verdict'].upper()}, but the status is {lanes[0].title}"
            yield self.fault(last.span("line"), message)


_MISSES = lazy_pattern(
    r"(?i)\bmissing (?:required )?(?:fields?|sections?)[^()\r\n]{0,20}\((?P<names>[^()\r\n]{3,200})\)"
)
_NAME = lazy_pattern(r"[A-Z][A-Z_]{2,}")


class ReportContradicts(ReportRule):
    """Report that calls something missing that the packet contains

    Either the report was copied from another packet, or the packet was completed later and not judged again.

    Remedy: judge the packet again, and append a report.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for match in _MISSES.finditer(document.source.text) if "issing" in document.source.text else ():
            there = {
                key: line
                for placed in document.placed
                if placed.section.start < match.start() and body_of(document.source, placed.section)
                for key, line in [
                    (placed.spec.key, placed.section.line),
                    *((field.name, document.source.line_and_column(field.key_span[0])[0]) for field in placed.fields),
                ]
            }
            present = {
                name: there[normal_key(name)] for name in _NAME.findall(match["names"]) if normal_key(name) in there
            }
            if present:
                shown = ", ".join(f"{name} (line {line})" for name, line in present.items())
                yield self.fault(match.span(), f"this is said to be missing, but the packet has it: {shown}")


_HANDOFF = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*[*_`]*(?:Current )?WP_STATUS[*_`]*[ \t]*:[*_ \t]*(?P<said>\S[^\r\n]*)"
)
_UNFINISHED = lazy_pattern(r"(?i)\b(?:in progress|ready for|awaiting|pending|not started|blocked)\b")


class HandoffContradicts(ReportRule):
    """Handoff that describes finished work as unfinished

    The next session reads the handoff first, and would do the work again.

    Remedy: update WP_STATUS in STATUS_HANDOFF.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "WP_STATUS" not in document.source.text:
            return
        last = next(reversed(list(_HANDOFF.finditer(document.source.text))), None)
        if last is not None and _UNFINISHED.search(last["said"]) and _is_finished(document):
            what = "the status" if document.status is not None and not verdicts(document) else "the last verdict"
            yield self.fault(last.span("said"), f"WP_STATUS is {last['said'][:60]!r}, but {what} says that it is done")


_MANIFEST = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*(?P<key>Line Delta|Pre-SHA1|Post-SHA1)[*_`]*[ \t]*:[*_` \t]*"
    r"(?P<value>[0-9a-f]{40}|[+-]?\d{1,9})\b"
)


class ManifestUnchanged(ReportRule):
    """Manifest of a change that has the same digest before and after

    One of the digests is wrong, so the manifest does not prove what was changed.

    Remedy: compute both digests again: `git show REV:PATH | sha1sum`.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        values: dict[str, re.Match[str]] = {}
        for match in _MANIFEST.finditer(document.source.text) if "Post-SHA1" in document.source.text else ():
            values[match["key"]] = match
            before = values.get("Pre-SHA1")
            if match["key"] != "Post-SHA1" or before is None or len(match["value"]) < 40:
                continue
            lines = values["Line Delta"]["value"] if "Line Delta" in values else "0"
            if before["value"] == match["value"] and lines.strip("+-0"):
                message = f"Pre-SHA1 and Post-SHA1 are equal, but Line Delta is {lines}"
                yield self.fault(before.span("key"), message)
            values.clear()


_EMPTY_FIELDS = lazy_pattern(
    r"(?m)(?:(?:^|(?<=\r))[ \t>*+-]*[*_`]*(?:Lint Results|Artifacts|Timestamp|Operator|Notes)"
    r"[*_`]*[ \t]*:[*_ \t]*(?:\r\n|\n|\r)){2,}"
)


class ManifestIncomplete(ReportRule):
    """Manifest with empty fields in finished work

    It is no longer known who made the change, and what was run afterwards.

    Remedy: fill in the fields.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "Lint Results" not in document.source.text or not _is_finished(document):
            return
        for match in _EMPTY_FIELDS.finditer(document.source.text):
            count = len(match[0].splitlines())
            yield self.fault((match.start(), match.start() + 1), f"{count} fields of the manifest are empty")


_QUESTIONS = lazy_pattern(
    r"(?m)(?:^|(?<=\r))(?P<label>[ \t>*+-]*#*[ \t]*[*_`]*Open [Qq]uestions?[^:\r\n]{0,80}:?[*_`]*)[ \t]*(?:\r\n|\n|\r)"
    r"(?P<items>(?:[ \t]+(?:[-*+]|\d+[.)])[ \t]+[^\r\n]*(?:\r\n|\n|\r))+)"
)
_ANSWERED = lazy_pattern(r"(?i)\b(?:answer\w*|resol\w+|decided|decision:|none|n/a|closed)\b")


class OpenQuestions(ReportRule):
    """Open question in finished work

    The work was accepted without an answer, so only the code shows how the question was decided.

    Remedy: write the answer below the question.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "uestion" not in document.source.text or not _is_finished(document):
            return
        for match in _QUESTIONS.finditer(document.source.text):
            if not _ANSWERED.search(match["items"]):
                yield self.fault(match.span("label"), "these questions are open, but the work is done")


_REMARK = lazy_pattern(r"\([^()]*\)")


class EvidenceEmpty(ReportRule):
    """Empty section EVIDENCE in finished work

    The section is where a reviewer looks for the logs of the commands.

    Remedy: add the commands with their exit codes and logs, or say where they are.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("evidence")
        if placed is None or not _is_finished(document):
            return
        lines = body_of(document.source, placed.section).splitlines()
        if lines == [NOT_YET]:
            return  # the tool wrote the packet, and its evidence is in the log
        # The template says in parentheses what to write.
        body = "\n".join(line for line in lines if not _REMARK.fullmatch(line.strip("-*+ \t")))
        if not says_something(body):
            yield self.fault(placed.section.title_span, "the section EVIDENCE is empty, but the work is done")


class StatusRepeated(ReportRule):
    """Second status that differs from the first

    Tools read the status in METADATA, and people the last one.

    Remedy: correct the status in METADATA, or quote the other as text.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        own = document.lanes.named(document.status.value) if document.status is not None else ()
        metadata = document.placed_section("metadata")
        if metadata is None or not own or document.source.text.lower().count("status") < 2:
            return
        reports = [placed.section for placed in document.placed if placed.spec.key == "validation_reports"]
        quoted = {id(inner) for report in reports for inner in report.walk()}  # reports quote the status they found
        later = (section for section in document.outline.walk() if section.start > metadata.section.end)
        blocks = [block for section in later if id(section) not in quoted for block in section.blocks]
        stated = [field for field in read_fields(document.source, blocks) if field.name == "status"]
        for field in stated[-1:]:
            lanes = document.lanes.named(field.bare)
            if lanes and not set(lanes) & set(own) and not PLACEHOLDER.match(field.value):
                message = f"this status is {lanes[0].title}, but that in METADATA is {own[0].title}"
                yield self.fault(field.key_span, message)
