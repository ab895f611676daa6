"""Rules about what proves that a packet is done: its evidence, and what its reports examined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import cast

from workpacket.documents.packet import Packet
from workpacket.documents.summary import EvidenceSummary, WorkSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.scope import outside, pattern_of
from workpacket.problem import Problem
from workpacket.rules.anchors import anchors_of
from workpacket.rules.packet import criteria_of
from workpacket.rules.packet_reports import ReportRule, verdicts
from workpacket.rules.rule import DocumentRule, Files, ReferenceRule
from workpacket.rules.structured import PLACEHOLDER, says_something
from workpacket.rules.text import places_of
from workpacket.text.blocks import Field, read_fields, walk
from workpacket.text.source import PATH_LENGTH

_EVIDENCE_PLACE = lazy_pattern(r"`?(?P<path>[^\s`:]+):(?P<line>0*[1-9]\d*)(?:-\d+)?`?")
# How templates say what to write.
_EVIDENCE_FORM = "path/to/file:line"
_SOME_FAILED = lazy_pattern(r"(?i)(?<![0-9.])[1-9][0-9]* (?:tests? )?(?:failed|failing|failures)\b")
_FAILED = lazy_pattern(r"-?0*[1-9][0-9]*")


class EvidencePlaceMissing(DocumentRule[Packet]):
    """Evidence without a place

    Neither a reviewer nor a tool can verify the evidence.

    Remedy: write `EVIDENCE: path/to/file:line`.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        fields = list(_evidence_fields(document))
        for field in fields:
            shown = field.value.strip("`") == _EVIDENCE_FORM
            if field.name == "evidence" and not field.owned and not shown and not _EVIDENCE_PLACE.search(field.value):
                yield self.fault(field.key_span, "the evidence does not give a `path:line`")
        stated = [field for field in fields if field.name in {"requirement", "evidence"}]
        stated = sorted({field.key_span: field for field in stated}.values(), key=lambda field: field.key_span)
        names = [field.name for field in stated]
        for field, following in zip(stated, [*names[1:], "requirement"], strict=False):
            if field.name == following == "requirement" and "evidence" in names and not PLACEHOLDER.match(field.value):
                yield self.fault(field.key_span, f"no evidence is given for {field.value.strip('`')[:60]!r}")


class CriterionUnmapped(DocumentRule[Packet]):
    """Finished work with a criterion that the evidence does not mention

    The evidence quotes the other criteria, but apparently no one has looked at this one.

    Remedy: add its REQUIREMENT and EVIDENCE to EVIDENCE_MAPPING, or correct the quotation.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        done = bool(lanes) and all(lane.satisfies for lane in lanes)
        if not done or "REQUIREMENT" not in document.source.text:
            return
        criteria = {_quoted(item.text): item for item in criteria_of(document)}
        mapped = {_quoted(field.value): field for field in _evidence_fields(document) if field.name == "requirement"}
        if criteria.keys().isdisjoint(mapped):
            return  # the requirements are told in other words
        # Requirements of the specification may be quoted, too; a caption is told by what is below it.
        strangers = [each for said, each in mapped.items() if not any(_alike(said, other) for other in criteria)]
        untold = [
            item
            for said, item in criteria.items()
            if not any(_alike(said, other) for other in mapped)
            and says_something(item.text)
            and not item.text.rstrip().endswith(":")
        ]
        for item in untold:
            yield self.fault(item.span, "EVIDENCE_MAPPING quotes other criteria, but not this one")
        for field in strangers if len(strangers) <= len(untold) else ():
            if says_something(field.value):
                yield self.fault(field.key_span, "EVIDENCE_MAPPING quotes a requirement that is not a criterion")


_ASIDE = lazy_pattern(r"\([^()]*\)")
_IN_A_QUOTATION = lazy_pattern(r"\w+")


def _quoted(text: str) -> str:
    return " ".join(_IN_A_QUOTATION.findall(_ASIDE.sub(" ", text).casefold()))


def _alike(first: str, second: str) -> bool:
    """Whether one quotes the other: literally, shortened, or with most of its words."""
    if first == second or (first and second and (first in second or second in first)):
        return True
    words, others = set(first.split()), set(second.split())
    fewer = min(len(words), len(others))
    return fewer > _FEW_WORDS and 3 * len(words & others) >= 2 * fewer


_FEW_WORDS = 5


def _evidence_fields(document: Packet) -> Iterator[Field]:
    """Yield the fields of EVIDENCE_MAPPING: those in lists at any depth, and those on separate lines."""
    placed = document.placed_section("evidence_mapping")
    for section in placed.section.walk() if placed is not None else ():
        lists = [block for block in walk(section.blocks) if block.kind.endswith("_list")]
        paragraphs = [block for block in section.blocks if block.kind == "paragraph"]
        yield from read_fields(document.source, [*paragraphs, *lists])


_NOTHING = lazy_pattern(
    r"\bcollected 0 items\b|\bno tests ran\b|\bno tests (?:were )?(?:found|to run|executed)\b|\bno test files\b"
    r"|\bran 0 tests\b|\brunning 0 tests\b|(?<![0-9.])0 (?:tests )?(?:passed|passing|selected)\b|\btests:? +0 total\b"
    r"|(?<![0-9.])0 tests? (?:ran|run|executed|found|collected)\b|\bno tests collected\b",
    re.IGNORECASE,
)
_SOMETHING = lazy_pattern(
    r"(?<![0-9.])[1-9][0-9]* (?:tests? )?(?:passed|passing|failed|failing)\b|\bran [1-9][0-9]* tests?\b"
    r"|\brunning [1-9][0-9]* tests?\b|^ok\b[ \t]+(?!.*\[no test)|^--- (?:PASS|FAIL)",
    re.IGNORECASE | re.MULTILINE,
)


def ran_nothing(log: str) -> str:
    """Return the words in a log that say that no test was run; '' if there are none, or if some tests were run."""
    match = _NOTHING.search(log)
    return match[0] if match is not None and not _SOMETHING.search(log) else ""


class EvidenceExitCodeMissing(DocumentRule[Packet]):
    """Evidence without the exit code of its command

    A command proves something only if its exit code is 0.

    Remedy: write the command's exit code after EXIT_CODE.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for block in document.evidence_blocks:
            if block.value("COMMAND") and not re.fullmatch(r"-?[0-9]+", block.value("EXIT_CODE")):
                code = block.fields.get("EXIT_CODE")
                message = (
                    f"EXIT_CODE is {code.value!r}, not a number" if code and code.value else "no EXIT_CODE follows"
                )
                yield self.fault((code or block.fields["COMMAND"]).span, message)


class EvidenceFailed(DocumentRule[Packet]):
    """Failed command as evidence of validated work

    The work was accepted although its own evidence shows a failure.

    Remedy: run the command again and record the result, or explain in the report why the failure is expected.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or not all(lane.satisfies for lane in lanes):
            return
        last = {block.value("COMMAND"): block for block in document.evidence_blocks}
        for block in last.values():
            code = block.fields.get("EXIT_CODE")
            if code is not None and _FAILED.fullmatch(code.value):
                message = f"the packet is {lanes[0].token}, but the command ended with exit code {code.value}"
                yield self.fault(code.span, message)
                continue
            proof, failed = block.fields.get("PROOF_LINES"), _SOME_FAILED.search(block.proof)
            if proof is not None and failed is not None:
                yield self.fault(proof.span, f"the packet is {lanes[0].token}, but the log shows {failed[0]!r}")


class EvidenceRule(ReferenceRule):
    """A rule about the logs listed as evidence."""

    kinds = ("packet",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        for evidence in logs_of(summary):
            yield evidence["log"][0], True


class EvidenceLogMissing(EvidenceRule):
    """Missing evidence log

    The command's output can no longer be read.

    Remedy: commit the log, or correct LOG_PATH.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in cast("WorkSummary", summary)["evidence"]:
            log, *place = evidence["log"]
            if log and not is_inside(log):
                yield self.finding(path, place, f"log {log[:PATH_LENGTH]!r} is not a file in the repository")
            elif log and files[log].source is None:
                yield self.finding(path, place, f"log {log} not found")


class EvidenceLogDiffers(EvidenceRule):
    """Changed evidence log

    LOG_SHA256 does not match: the log was edited, or the command was run again without updating the record.

    Remedy: restore the log from git, or run the command again and record the result.
    """

    family = "integrity"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            source = files[evidence["log"][0]].source
            said = evidence["sha256"][0].lower()
            if source is not None and said and said != source.digest:
                message = f"{evidence['log'][0]} has the digest {source.digest[:12]}..., not {said[:12]}..."
                yield self.finding(path, evidence["sha256"][1:], message)


_COUNTED = lazy_pattern(r"(?i)(?<![0-9.])[0-9]+ (?:tests? )?(?:passed|passing|failed|failing|skipped)\b")


class EvidenceProofAbsent(EvidenceRule):
    """Quoted result that is not in its log

    The log is the recorded one, so the quotation was changed, or comes from a different run.

    Remedy: quote the log, or run the command again and record the result.
    """

    severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            source = files[evidence["log"][0]].source
            if source is None or (evidence["sha256"][0].lower() or source.digest) != source.digest:
                continue
            log = " ".join(source.text.split()).casefold()
            absent = [said for said in _COUNTED.findall(evidence["proof"]) if said.casefold() not in log]
            if absent and _COUNTED.search(source.text):
                yield self.finding(path, evidence["proof_place"], f"{evidence['log'][0]} does not say {absent[0]!r}")


class EvidenceRanNothing(EvidenceRule):
    """Evidence from a test run without tests

    Many test runners exit with 0 if a filter matches nothing, so the run proves nothing.

    Remedy: fix the filter, and run the tests again.
    """

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in cast("WorkSummary", summary)["evidence"]:
            source = files[evidence["log"][0]].source if is_inside(evidence["log"][0]) else None
            place = evidence["proof_place"] if ran_nothing(evidence["proof"]) else evidence["place"]
            for text in (evidence["proof"], source.text if source is not None else ""):
                if nothing := ran_nothing(text):
                    yield self.finding(path, place, f"the log says {nothing!r}")
                    break
            else:
                if evidence["command"] and _is_trivial(evidence["command"]):
                    yield self.finding(path, evidence["place"], f"{evidence['command']!r} proves nothing")


def _is_trivial(command: str) -> bool:
    """Whether a command exits with 0 regardless of the work."""
    words = command.split()
    return bool(words) and (words[0] in {"true", ":"} or words[:2] == ["exit", "0"])


def is_inside(path: str) -> bool:
    """Whether this could be the path of a file in this repository."""
    leaves = not path or path.startswith("/") or ".." in path.split("/")
    return not leaves and len(path) <= PATH_LENGTH and path.isprintable()


def logs_of(summary: Mapping[str, object]) -> list[EvidenceSummary]:
    """Return the evidence whose log can be looked up."""
    return [evidence for evidence in cast("WorkSummary", summary)["evidence"] if is_inside(evidence["log"][0])]


_SPEC_SECTION = lazy_pattern(
    r"(?i)(?:\bspec(?:ification)?\.?[ \t]+(?:section[ \t]+)?|\u00a7 ?)(?P<number>\d+(?:\.\d+){2,8})"
)


class CriterionNotAnchored(DocumentRule[Packet]):
    """Criterion that rests on a section that is not an anchor

    The refinement and its approval concern the anchors, so no one has looked this section up.

    Remedy: add the section to SPEC_ANCHOR and to the refinement.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        # Few criteria name a section, and looking for the sign or the word takes a fraction of the time.
        cited = [item for item in criteria_of(document) if "\u00a7" in item.text or "spec" in item.text.lower()]
        found = [(item, match["number"]) for item in cited for match in _SPEC_SECTION.finditer(item.text)]
        anchors = anchors_of(document) if found else ()
        anchored = {number for _, text in anchors for number in _ANY_NUMBER.findall(text.value)}
        for item, number in found if anchored else ():
            near = any(_contains(one, number) or _contains(number, one) for one in anchored)
            if not near:
                yield self.fault(item.span, f"{number} is not among the anchors")
                return


_ANY_NUMBER = lazy_pattern(r"(?<![\w.])\d+(?:\.\d+)+(?![\w]|\.\d)")


def _contains(outer: str, inner: str) -> bool:
    return f"{inner}.".startswith(f"{outer}.")


_DAY = lazy_pattern(r"\b\d{4}-\d{2}-\d{2}\b|\b[a-z]+\d{12}\b")
_JUDGE = lazy_pattern(
    r"(?i)\b(?:validator|reviewer|auditor|judge|(?:reviewed|validated|judged|audited|signed) by)\b[^\r\n:]{0,20}:"
)
_COMMIT = lazy_pattern(
    r"(?i)\bcommits?\b|\bmerge[_ -]?base\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\bworking tree\b"
)
_TESTED = lazy_pattern(r"(?i)\btests?\b|\bcommands? (?:run|executed)\b|`[^`\r\n]+`[^\r\n]{0,20}\bPASS|\bTEST_PLAN\b")


class ReportIncomplete(ReportRule):
    """Report that does not say what was judged, when, or by whom

    No one can repeat the judgment or ask about it.

    Remedy: name the date, the validator, the commit, and the tests with their results.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Packet) -> Iterator[Problem]:
        said = verdicts(document) if not document.light else []
        if not said:
            return
        last = said[-1]
        start = _report_of(document, last)
        wanted = [("when", _DAY), ("by whom", _JUDGE), ("at which commit", _COMMIT)]
        if last["verdict"].upper() == "PASS" and not document.evidence_blocks:
            wanted.append(("with which tests", _TESTED))
        absent = [what for what, pattern in wanted if not pattern.search(document.source.text, start)]
        if absent:
            listed = " or ".join(filter(None, [", ".join(absent[:-1]), absent[-1]]))
            yield self.fault(last.span("line"), f"the report does not say {listed} the work was judged")


def _report_of(document: Packet, verdict: re.Match[str]) -> int:
    """Return where the report with this verdict begins: at its heading, or behind the report before it."""
    headings = [one.title_span[0] for one in document.outline.walk() if one.level and one.start <= verdict.start()]
    return max(headings, default=0)


_CHECKED = lazy_pattern(
    r"(?i)[#*_ \t-]*files? (?:checked|reviewed|examined)[^\r\n]{0,40}(?:\r\n|\n|\r)+"
    r"(?P<items>(?:[ \t]*[-*+][ \t][^\r\n]*(?:\r\n|\n|\r)?)+)"
)
_CODE_FILE = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t]*[-*+][ \t]+`?(?P<path>(?!\.GOV/|docs/)[\w.-]+/[\w./-]+\.(?!md\b)\w+)"
)


_TARGET = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t>*+-]*Target File[*_`]*[ \t]*:[*_` \t]*(?P<path>(?!\.GOV/|docs/|path/)[\w./-]+\.\w+)"
)


class ReportBeyondScope(ReportRule):
    """Report or manifest about files outside the packet's scope

    Either the work changed files that the packet does not allow, or the report is about other work.

    Remedy: add the files to IN_SCOPE_PATHS and have the packet approved again, or take the changes out.
    """

    severity = "info"
    strict_severity = "info"

    def check(self, document: Packet) -> Iterator[Problem]:
        checked = _checked(document) if verdicts(document) else {}
        if "Target File" in document.source.text:
            targets = _TARGET.finditer(document.source.text)
            checked = {match["path"]: match.span("path") for match in targets} | checked
        entries = [path for entry in document.in_scope_paths if (path := pattern_of(entry.value))] if checked else []
        folders = tuple(f"{entry.rstrip('/')}/" for entry in entries)
        # Most files are listed as they are; a pattern takes longer.
        other = [path for path in checked if path not in entries and not path.startswith(folders)]
        beyond = outside(other, entries) if entries and other else []
        if beyond:
            more = f", nor {len(beyond) - 1} more" if len(beyond) > 1 else ""
            yield self.fault(checked[beyond[0]], f"IN_SCOPE_PATHS does not contain {beyond[0]}{more}")


@lru_cache(maxsize=2)
def _checked(document: Packet) -> dict[str, tuple[int, int]]:
    """Return the code files that the last report lists as checked, with their positions."""
    text = document.source.text
    heads = sorted(at for words in _SAYS_CHECKED for at in places_of(words, text))
    starts = (document.source.line_span(document.source.line_and_column(at)[0])[0] for at in reversed(heads))
    listed = next((match for at in starts if (match := _CHECKED.match(text, at)) is not None), None)
    found = _CODE_FILE.finditer(text, *listed.span("items")) if listed is not None else ()
    return {match["path"]: match.span("path") for match in found}


_SAYS_CHECKED = ("iles Checked", "iles checked", "ILES CHECKED", "iles Reviewed", "iles reviewed", "iles Examined")


class ManifestUnchecked(ReportRule):
    """Changed file that the report does not list as checked

    The verdict does not cover the change to this file.

    Remedy: check the file, and add it to the report.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        checked = _checked(document) if verdicts(document) and "Target File" in document.source.text else {}
        found = {match["path"]: match for match in _TARGET.finditer(document.source.text)} if checked else {}
        absent = [match for path, match in found.items() if path not in checked]
        if absent and len(absent) < len(found):
            more = f", nor {len(absent) - 1} more" if len(absent) > 1 else ""
            yield self.fault(absent[0].span("path"), f"the report does not list {absent[0]['path']}{more} as checked")


_COMMAND_LINE = lazy_pattern(
    r"(?m)(?:^|(?<=\r))[ \t]*(?:[-*+][ \t]+)?`?(?P<command>[a-z][\w./-]*[ \t][^\r\n`#]{2,200}?)`?[ \t]*(?=[\r\n]|\Z)"
)
_OUTCOME = lazy_pattern(
    r"[ \t]*(?:\(|:|->|=>|-|\u2013|\u2192)[^`\r\n;|]{0,20}?\b(?:(?P<failed>fails|failed|FAIL(?:ED)?)|"
    r"(?P<passed>PASS(?:ED)?|passes|passed|ok|OK|0))\b"
)


class TestPlanFailed(ReportRule):
    """Finished work although a command of its test plan failed

    The test plan says what must succeed before the work is accepted.

    Remedy: make the command succeed, or record a waiver for it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        said = verdicts(document)
        if not said or said[-1]["verdict"].upper() != "PASS":
            return
        plan = next((one for one in document.outline.walk() if one.name.startswith("test_plan")), None)
        if plan is None:
            return
        text = document.source.text
        for command in dict.fromkeys(
            match["command"].strip() for match in _COMMAND_LINE.finditer(text, plan.start, plan.end)
        ):
            last = None
            for at in places_of(f"`{command}`", text, plan.end):
                # The outcome follows the command, apart from its options: `just validate` (fails: ...).
                start = document.source.line_span(document.source.line_and_column(at)[0])[0]
                outcome = _OUTCOME.match(text, at + len(command) + 2)
                last = None if _LIST_OF_PASSED.match(text, start) else outcome if outcome is not None else last
            if last is not None and last["failed"]:
                line = text[last.start() : document.source.line_span(_line(document, last))[1]].casefold()
                if not any(word in line for word in _EXCUSED):
                    yield self.fault(last.span("failed"), f"passed, but {command!r} in its test plan failed")


def _line(document: Packet, match: re.Match[str]) -> int:
    return document.source.line_and_column(match.start())[0]


_LIST_OF_PASSED = lazy_pattern(r"[ \t*_-]*PASS\b")
_EXCUSED = ("expected", "by design", "waive", "as planned", "then pass", "now pass", "fixed")


_ITEM_COMMAND = lazy_pattern(r"(?m)(?:^|(?<=\r))[-*+][ \t]+`[a-z][^`\r\n]{2,200}`[^\r\n]{0,60}(?:\r\n|\n|\r)[ \t]+```")


class EvidenceWithoutCodes(ReportRule):
    """Logs of commands without their exit codes

    The log of a command that failed may look like that of one that succeeded.

    Remedy: add the exit code of each command.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("evidence")
        if placed is None or document.light or document.evidence_blocks:
            return
        text = document.source.text[placed.section.start : placed.section.end]
        found = _ITEM_COMMAND.findall(text) if "```" in text else []
        if found and "exit" not in text.lower():
            count = "none of the commands has" if len(found) > 1 else "the command does not have"
            yield self.fault(placed.section.title_span, f"{count} an exit code")


_TABLE_HEADS = (b"| criteri", b"| requirement", b"|criteri", b"| done_means", b"| **criteri")
_CRITERIA_TABLE = lazy_pattern(
    r"(?im)(?:^|(?<=\r))\|[ \t*]*(?:criteri(?:on|a)|requirement|done_means)[^|\r\n]*\|[^\r\n]*(?:\r\n|\n|\r)"
    r"\|[ \t:|-]+(?:\r\n|\n|\r)"
    r"(?P<rows>(?:\|[^\r\n]*(?:\r\n|\n|\r|\Z))+)"
)


class CriterionWithoutRow(ReportRule):
    """Criterion that is missing from the table of evidence

    The table has the other criteria, but apparently no one has looked at this one.

    Remedy: add a row for the criterion, with its evidence.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        told = verdicts(document) and document.source.mentions(*_TABLE_HEADS)
        tables = list(_CRITERIA_TABLE.finditer(document.source.text)) if told else []
        rows = [_quoted(row.split("|")[1]) for table in tables for row in table["rows"].splitlines() if "|" in row[1:]]
        said = [(item, _quoted(item.text)) for item in criteria_of(document)] if rows else []
        absent = [item for item, text in said if text and not any(_akin(text, row) for row in rows)]
        # A table with few of them is about something else.
        if rows and absent and len(absent) * 2 <= len(said):
            more = f", nor do {len(absent) - 1} more" if len(absent) > 1 else ""
            yield self.fault(absent[0].span, f"this criterion has no row in the table of evidence{more}")


def _akin(criterion: str, row: str) -> bool:
    """Whether a row is about the criterion. A row may name only one of the things that a criterion lists."""
    words = {word for word in row.split() if len(word) > _SHORT_WORD}
    return _alike(criterion, row) or (bool(words) and 2 * len(words & set(criterion.split())) > len(words))


_SHORT_WORD = 3
