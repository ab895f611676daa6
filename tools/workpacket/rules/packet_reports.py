"""Rules about what a packet says after the work: reports, handoff, manifests and open questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from workpacket.documents.packet import NOT_YET, Packet
from workpacket.documents.structured import body_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.event_types import VERDICTS
from workpacket.model.ids import WorkPacketId, find_ids
from workpacket.model.lanes import HOLDER
from workpacket.problem import Problem
from workpacket.rules.packet import criteria_of
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import PLACEHOLDER, says_something
from workpacket.rules.text import instructions_in
from workpacket.text.blocks import Section, normal_key, read_fields

# A verdict, or the words in its place.
_VERDICT = lazy_pattern(
    r"(?:^|(?<=\r))[ \t]*(?:[-*+][ \t]+)?(?P<line>[*_`]*verdict[*_`]*[ \t]*:[*_`]*[ \t]*[*_`]*"
    r"(?:(?P<verdict>PASS|FAIL|CHANGES|OUTDATED)(?:\b|_)|(?P<other>[A-Za-z][^\r\n]*)))",
    re.IGNORECASE | re.MULTILINE,
)
_REPORT = lazy_pattern(r"(?i)\b(?:re)?validation report\b")

ReportRule = DocumentRule[Packet]


@lru_cache(maxsize=2)
def _stated_verdicts(document: Packet) -> tuple[re.Match[str], ...]:
    """Return what counts as a verdict in the reports of a packet, in text order. A report may have its own heading."""
    if not document.source.mentions(b"verdict"):
        return ()
    others = (*document.unknown, *document.sections_at((1,)))
    reports = [*reports_of(document), *(section for section in others if _REPORT.search(section.title))]
    matches = (_VERDICT.finditer(document.source.text, part.start, part.end) for part in reports)
    found = {match.start(): match for part in matches for match in part}
    return tuple(found[start] for start in sorted(found))


def reports_of(document: Packet) -> list[Section]:
    return [placed.section for placed in document.placed if placed.spec.key == "validation_reports"]


def verdicts(document: Packet) -> list[re.Match[str]]:
    """Return the verdicts of the reports in a packet, in text order."""
    return [match for match in _stated_verdicts(document) if match["verdict"]]


def _is_finished(document: Packet) -> bool:
    """Whether the packet was accepted, according to its status or its last verdict."""
    lanes = document.lanes.named(document.status.value) if document.status is not None else ()
    said = verdicts(document)
    return bool(lanes and all(lane.satisfies for lane in lanes)) or bool(said and said[-1]["verdict"].upper() == "PASS")


class CriterionOpen(ReportRule):
    """Unticked criteria in finished work

    The work was accepted, but apparently no one compared it with its criteria.

    Remedy: tick the criteria that are met; the verdict says which they are.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if document.light or "[ ]" not in document.source.text or not _is_finished(document):
            return
        boxes = [item for item in criteria_of(document) if item.ticked is not None]
        if len(boxes) > 1 and not any(item.ticked for item in boxes):
            yield self.fault(boxes[0].span, f"none of the {len(boxes)} criteria is ticked, but the work is done")


# The lane that follows from a verdict other than PASS.
_LANE_AFTER = {"FAIL": "Fail", "CHANGES": "In Progress", "OUTDATED": "Outdated only"}


class PacketStatusOldForm(ReportRule):
    """Status with extra text after the lane

    Scripts compare the whole line, so they do not recognize the lane if a remark follows it.

    Remedy: `workpacket board sync` writes only the lane; move the remark to the STATUS_HANDOFF section.
    """

    severity = "warning"
    strict_severity = "warning"

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
                hint = f"write {_LANE_AFTER.get(said[-1]['verdict'].upper(), 'the lane')}, as the last verdict says"
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


_NO_VERDICT_YET = lazy_pattern(r"(?i)(?:PENDING|N/?A|none|TODO|see|NOT)(?:\b|_)(?!ED|ING)")


class VerdictUnknown(ReportRule):
    """Report with an invalid verdict

    Gates and boards recognize only PASS, FAIL, CHANGES and OUTDATED_ONLY, so they see no verdict here.

    Remedy: write one of these four verdicts.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        reports = reports_of(document)
        for match in (match for match in _stated_verdicts(document) if match["other"]):
            inside = any(part.start <= match.start() < part.end for part in reports)
            if inside and not _NO_VERDICT_YET.match(match["other"]):
                hint = f"write one of {', '.join(VERDICTS)}"
                yield self.fault(match.span("other"), f"the verdict is {match['other'][:40]!r}", hint=hint)


_REPORTED_ON = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t]*[-*+][ \t]+[*_`]*task packet[*_`]*[ \t]*:[*_` \t]*(?P<said>[^\r\n]+)"
)


_MISSES = lazy_pattern(
    r"(?i)\bmissing (?:required )?(?:fields?|sections?)[^()\r\n]{0,20}\((?P<names>[^()\r\n]{3,200})\)"
)
_NAME = lazy_pattern(r"[A-Z][A-Z_]{2,}")


class ReportContradicts(ReportRule):
    """Report that does not match the packet

    The report names a different packet, or says that this packet lacks something that it contains: the report was
    copied from another packet, or the packet was completed later and not judged again.

    Remedy: judge the packet again, and append a report.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        own = WorkPacketId.try_parse(document.own_id)
        reports = reports_of(document)
        named_in = own is not None and document.source.mentions(b"task packet")
        spans = ((part.start, part.end) for part in reports if named_in)
        for match in (one for span in spans for one in _REPORTED_ON.finditer(document.source.text, *span)):
            named = [name for name, *_ in find_ids(match["said"])]
            if named and own is not None and all(name.base != own.base for name in named):
                yield self.fault(match.span("said"), f"the report is about {named[0]}, but this is {own}")
        yield from self._other_versions(document, reports)
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

    def _other_versions(self, document: Packet, reports: list[Section]) -> Iterator[Problem]:
        """Report a verdict that was based on a different version of the specification than the packet."""
        baseline = document.text_at("authority", "spec_baseline")
        stated = baseline is not None and reports and ".md" in baseline.value
        wanted = dict(_VERSIONED.findall(baseline.value)) if baseline is not None and stated else {}
        for match in _REPORTED_SPEC.finditer(document.source.text, *_span_of(reports[-1])) if wanted else ():
            for stem, version in _VERSIONED.findall(match["said"]):
                if wanted.get(stem, version) != version:
                    message = f"the report is based on {stem}{version}, but SPEC_BASELINE is {stem}{wanted[stem]}"
                    yield self.fault(match.span("said"), message)


_REPORTED_SPEC = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t]*[-*+][ \t]+[*_`]*(?:master )?spec(?:ification)?[*_`]*[ \t]*:[*_` \t]*(?P<said>[^\r\n]+)"
)


_VERSIONED = lazy_pattern(r"([A-Za-z][\w-]{0,60}?_)(v\d+(?:\.\d+)*)(?=\.md\b)")
_HANDOFF = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*[*_`]*(?:Current )?WP_STATUS[*_`]*[ \t]*:[*_ \t]*(?P<said>\S[^\r\n]*)"
)
_UNFINISHED = lazy_pattern(r"(?i)\b(?:in progress|ready for|awaiting|pending|not started|blocked)\b")


_ENDED = lazy_pattern(r"(?i)(?:done|validated|merged|closed|completed?)\b(?! when| once| if| after)")


class HandoffContradicts(ReportRule):
    """Handoff that contradicts the status

    The next session reads the handoff first, and would repeat or skip the work.

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
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        said = verdicts(document)
        if last is not None and said and said[-1]["verdict"].upper() != "PASS" and _ENDED.match(last["said"]):
            message = f"WP_STATUS is {last['said'][:60]!r}, but the last verdict is {said[-1]['verdict'].upper()}"
            yield self.fault(last.span("said"), message)
        at_work = bool(lanes) and all(lane.in_work and (lane.waits or lane.acts == HOLDER) for lane in lanes)
        if last is not None and at_work and _ENDED.match(last["said"]) and not verdicts(document):
            message = f"WP_STATUS is {last['said'][:60]!r}, but the status is {lanes[0].title}"
            yield self.fault(last.span("said"), message)


_MANIFEST = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*(?P<key>Line Delta|Pre-SHA1|Post-SHA1)[*_`]*[ \t]*:[*_` \t]*"
    r"(?P<value>[0-9a-f]{40}|[+-]?\d{1,9})\b"
)


class ManifestUnchanged(ReportRule):
    """Change manifest with the same digest before and after

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
                hint = f"for a new file, Pre-SHA1 is that of an empty file, {_EMPTY_BLOB}"
                yield self.fault(before.span("key"), message, hint=hint)
            values.clear()


_WINDOW = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*(?P<key>Target File|Start|End|Line Delta|Pre-SHA1|Post-SHA1)[*_`]*[ \t]*:[*_` \t]*"
    r"(?P<value>[^\r\n`*]*)"
)
_EMPTY_BLOB = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
_FORTY = lazy_pattern(r"[0-9a-fA-F]{40}")
_WHOLE = lazy_pattern(r"[+-]?\d{1,7}")


class ManifestContradicts(ReportRule):
    """Manifest with contradictory numbers

    The changed lines cannot be found with these numbers, so the manifest proves nothing.

    Remedy: correct the numbers: the lines from Start to End in the new file, and the number of lines added.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "Line Delta" not in document.source.text:
            return
        for values in _manifests(document):
            numbers = {
                key: int(one["value"].strip()) for key, one in values.items() if _WHOLE.fullmatch(one["value"].strip())
            }
            first, last, more = (numbers.get(key) for key in ("Start", "End", "Line Delta"))
            if first is not None and last is not None and last < first and last + first > 0:
                yield self.fault(values["End"].span("key"), f"End is {last}, but Start is {first}")
            new = "Pre-SHA1" in values and values["Pre-SHA1"]["value"].strip() == _EMPTY_BLOB
            if new and first == 1 and last is not None and more is not None and more > last:
                message = f"Line Delta is {more}, but the new file ends at line {last}"
                yield self.fault(values["Line Delta"].span("key"), message)


def _manifests(document: Packet) -> Iterator[dict[str, re.Match[str]]]:
    """Yield the fields of each manifest in the VALIDATION section."""
    values: dict[str, re.Match[str]] = {}
    for match in _WINDOW.finditer(document.source.text, *_span_of(_validation(document))):
        if match["key"] == "Target File" and values:
            yield values
            values = {}
        values.setdefault(match["key"], match)
    if values:
        yield values


def _validation(document: Packet) -> Section | None:
    placed = document.placed_section("validation")
    return placed.section if placed is not None else None


def _span_of(section: Section | None) -> tuple[int, int]:
    return (section.start, section.end) if section is not None else (0, 0)


_EMPTY_FIELDS = lazy_pattern(
    r"(?m)(?:(?:^|(?<=\r))[ \t>*+-]*[*_`]*(?:Lint Results|Artifacts|Timestamp|Operator|Notes)"
    r"[*_`]*[ \t]*:[*_ \t]*(?:\r\n|\n|\r)){2,}"
)


# The gates of a manifest have names of several words: `current_file_matches_preimage`.
_OPEN_GATE = lazy_pattern(r"(?m)(?:^|(?<=\r))(?:[ \t]+|-[ \t]+)[-*+] \[ \] (?P<name>[a-z0-9]+(?:_[a-z0-9]+)+)\b")


class ManifestIncomplete(ReportRule):
    """Incomplete manifest in finished work

    It can no longer be determined who changed what, and what was run afterwards.

    Remedy: fill in the fields, and tick the gates that were passed.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        text = document.source.text
        gates = list(_OPEN_GATE.finditer(text, *_span_of(_validation(document)))) if "[ ]" in text else []
        manifest = "Lint Results" in text
        passed = (match["verdict"].upper() == "PASS" for match in verdicts(document) if gates or manifest)
        accepted = any(passed) or ((bool(gates) or manifest) and _is_finished(document))
        if gates and accepted:
            more = f", nor {len(gates) - 1} more" if len(gates) > 1 else ""
            why = "the work is done" if _is_finished(document) else "a verdict is PASS"
            yield self.fault(gates[0].span("name"), f"the gate {gates[0]['name']} is not ticked{more}, but {why}")
        if not manifest or not accepted:
            return
        for match in _EMPTY_FIELDS.finditer(document.source.text):
            count = len(match[0].splitlines())
            yield self.fault((match.start(), match.start() + 1), f"{count} fields of the manifest are empty")
        for values in _manifests(document):
            digests = [values[key] for key in ("Pre-SHA1", "Post-SHA1") if key in values]
            # A file that was deleted or is new may have words in place of one of them.
            known = [match for match in digests if _FORTY.fullmatch(match["value"].strip())]
            for match in digests if known and "Target File" in values else ():
                value = match["value"].strip()
                if match not in known and not any(map(str.isspace, value)) and "/" not in value:
                    shown = f"is {value!r}" if value else "is empty"
                    yield self.fault(match.span("key"), f"{match['key']} {shown}, not a 40-digit digest")


_QUESTIONS = lazy_pattern(
    r"(?m)(?:^|(?<=\r))(?P<label>[ \t>*+-]*#*[ \t]*[*_`]*Open [Qq]uestions?[^:\r\n]{0,80}:?[*_`]*)[ \t]*(?:\r\n|\n|\r)"
    r"(?P<items>(?:[ \t]+(?:[-*+]|\d+[.)])[ \t]+[^\r\n]*(?:\r\n|\n|\r))+)"
)
_ANSWERED = lazy_pattern(r"(?i)\b(?:answer\w*|resol\w+|decided|decision:|none|n/a|closed)\b")


class OpenQuestions(ReportRule):
    """Open question in finished work

    The work was accepted without an answer, so only the code shows how the question was resolved.

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


class InstructionLeft(ReportRule):
    """Instruction of a template left in finished work

    Either the part was never written, or the instruction was not deleted when it was.

    Remedy: write the part, and delete the instruction.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for match in instructions_in(document) if _is_finished(document) else ():
            yield self.fault(match.span("text"), f"the work is done, but {match['text']!r} is left from the template")


_REMARK = lazy_pattern(r"\([^()]*\)")


class EvidenceEmpty(ReportRule):
    """Empty EVIDENCE section in finished work

    Reviewers look in this section for the logs of the commands.

    Remedy: add the commands with their exit codes and logs, or state where they are.
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
            yield self.fault(placed.section.title_span, "the EVIDENCE section is empty, but the work is done")


_LABEL_ONLY = lazy_pattern(r"[-*+][ \t]+[^:\r\n]{1,80}:")


class SkeletonEmpty(ReportRule):
    """SKELETON section with only the template's labels in finished work

    No interface was proposed or approved before the work began.

    Remedy: state what was agreed, or that no skeleton was needed.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("skeleton")
        if placed is None or not _is_finished(document):
            return
        lines = [line.strip() for line in body_of(document.source, placed.section).splitlines() if line.strip()]
        if lines and all(_LABEL_ONLY.fullmatch(line) for line in lines):
            yield self.fault(placed.section.title_span, "the SKELETON section is empty, but the work is done")


class StatusRepeated(ReportRule):
    """Second status that differs from the first

    Tools read the status in METADATA, but people read the last one.

    Remedy: correct the status in METADATA, or quote the other status as text.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        own = document.lanes.named(document.status.value) if document.status is not None else ()
        metadata = document.placed_section("metadata")
        if metadata is None or not own or document.source.text.lower().count("status") < 2:
            return
        reports = reports_of(document)
        quoted = {id(inner) for report in reports for inner in report.walk()}  # reports quote the status they found
        later = (section for section in document.outline.walk() if section.start > metadata.section.end)
        blocks = [block for section in later if id(section) not in quoted for block in section.blocks]
        stated = [field for field in read_fields(document.source, blocks) if field.name == "status"]
        for field in stated[-1:]:
            lanes = document.lanes.named(field.bare)
            if lanes and not set(lanes) & set(own) and not PLACEHOLDER.match(field.value):
                message = f"this status is {lanes[0].title}, but the one in METADATA is {own[0].title}"
                yield self.fault(field.key_span, message)


_PLACE_IN_CODE = lazy_pattern(r"[\w)/-]\.\w{1,8}`?(?::| ?\(?(?:lines?|L) ?)`?\d|#L\d|\blines? \d+")


class VerdictWithoutPlace(ReportRule):
    """PASS without a place in the code

    A reader cannot check what the criteria were compared with.

    Remedy: name the file and line that meet each criterion, in EVIDENCE_MAPPING or in the report.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Packet) -> Iterator[Problem]:
        said = verdicts(document) if document.source.mentions(b"verdict") else []
        if document.light or not said or said[-1]["verdict"].upper() != "PASS":
            return
        work = next((one for one in document.placed if one.spec.key in _AFTER_THE_PLAN), None)
        start = min(work.section.start if work is not None else said[0].start(), said[0].start())
        if not _PLACE_IN_CODE.search(document.source.text, start):
            yield self.fault(said[-1].span("line"), "PASS, but no `path:line` is named anywhere")


_AFTER_THE_PLAN = frozenset({"implementation", "validation", "status_handoff", "evidence_mapping", "evidence"})
