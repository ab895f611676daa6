"""Rules about the evidence that packets state: a command, how it ended, and a log that is still the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

from workpacket.documents.packet import Packet
from workpacket.documents.summary import EvidenceSummary, WorkSummary
from workpacket.problem import Problem
from workpacket.rules.files import Files
from workpacket.rules.rule import DocumentRule, ReferenceRule, Rule
from workpacket.text.limits import PATH_LENGTH

_NOTHING: Final = re.compile(
    r"\bcollected 0 items\b|\bno tests ran\b|\bno tests (?:were )?(?:found|to run|executed)\b|\bno test files\b"
    r"|\bran 0 tests\b|\brunning 0 tests\b|(?<![0-9.])0 (?:tests )?(?:passed|passing|selected)\b|\btests:? +0 total\b"
    r"|(?<![0-9.])0 tests? (?:ran|run|executed|found|collected)\b|\bno tests collected\b",
    re.IGNORECASE,
)
_SOMETHING: Final = re.compile(
    r"(?<![0-9.])[1-9][0-9]* (?:tests? )?(?:passed|passing|failed|failing)\b|\bran [1-9][0-9]* tests?\b"
    r"|\brunning [1-9][0-9]* tests?\b|^ok\b[ \t]+(?!.*\[no test)|^--- (?:PASS|FAIL)",
    re.IGNORECASE | re.MULTILINE,
)


def ran_nothing(log: str) -> str:
    """The words in which a log says that no test was run at all; '' if it does not, or others were run."""
    match = _NOTHING.search(log)
    return match[0] if match is not None and not _SOMETHING.search(log) else ""


class EvidenceExitCodeMissing(DocumentRule[Packet]):
    """Evidence that does not say how its command ended

    A command that was run proves nothing; that it ended with 0 does.

    Remedy: write the exit code behind EXIT_CODE, as the command gave it.
    """

    kinds = ("packet",)
    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for block in document.evidence_blocks:
            if block.value("COMMAND") and not re.fullmatch(r"-?[0-9]+", block.value("EXIT_CODE")):
                place = block.fields.get("EXIT_CODE") or block.fields["COMMAND"]
                yield self.fault(place.span, "EXIT_CODE does not say how the command ended")


class EvidenceRule(ReferenceRule):
    """A rule about the logs that packets name as evidence."""

    kinds = ("packet",)

    def wants(self, summary: Mapping[str, object]) -> Iterator[tuple[str, bool]]:
        for evidence in logs_of(summary):
            yield evidence["log"][0], True


class EvidenceLogMissing(EvidenceRule):
    """Log of evidence that is not there

    What the command said can no longer be read.

    Remedy: commit the log, or correct LOG_PATH.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            if files[evidence["log"][0]].source is None:
                yield self.finding(path, evidence["log"][1:], f"there is no log {evidence['log'][0]}")


class EvidenceLogDiffers(EvidenceRule):
    """Log of evidence that is not the one that was recorded

    LOG_SHA256 is the digest of another text: the log was edited, or the command was run again without saying so.

    Remedy: restore the log from git, or run the command again and record what it came to.
    """

    family = "integrity"

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in logs_of(summary):
            source = files[evidence["log"][0]].source
            said = evidence["sha256"][0].lower()
            if source is not None and said and said != source.digest:
                message = f"{evidence['log'][0]} has the digest {source.digest[:12]}..., not {said[:12]}..."
                yield self.finding(path, evidence["sha256"][1:], message)


class EvidenceRanNothing(EvidenceRule):
    """Evidence of a test run in which no test was run

    A filter that matches nothing ends with 0 in many test runners, and proves nothing.

    Remedy: correct the filter, and run the tests again.
    """

    def check(self, path: str, summary: Mapping[str, object], files: Files) -> Iterator[Problem]:
        for evidence in cast("WorkSummary", summary)["evidence"]:
            source = files[evidence["log"][0]].source if is_inside(evidence["log"][0]) else None
            for text in (evidence["proof"], source.text if source is not None else ""):
                if nothing := ran_nothing(text):
                    yield self.finding(path, evidence["place"], f"the log says {nothing!r}")
                    break


def is_inside(path: str) -> bool:
    """Whether it can be the path of a file of this repository."""
    outside = not path or path.startswith("/") or ".." in path.split("/")
    return not outside and len(path) <= PATH_LENGTH and path.isprintable()


def logs_of(summary: Mapping[str, object]) -> list[EvidenceSummary]:
    """The evidence whose log can be looked for."""
    return [evidence for evidence in cast("WorkSummary", summary)["evidence"] if is_inside(evidence["log"][0])]


RULES: tuple[type[Rule], ...] = (
    EvidenceExitCodeMissing,
    EvidenceLogMissing,
    EvidenceLogDiffers,
    EvidenceRanNothing,
)
