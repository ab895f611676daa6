"""Findings and outcomes to render, and strategies that make hostile ones."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from workpacket.model.reasons import Reason, Registry
from workpacket.problem import Confidence, Edit, Fix, Location, Problem, Severity
from workpacket.report.outcome import CheckOutcome, SourceLine, no_source

STUB = ".GOV/task_packets/stubs/WP-1-Sync-v1.md"
PACKET = ".GOV/task_packets/WP-1-Index-v2.md"

REASONS = Registry(
    [
        Reason(
            "empty_field",
            "A required field is empty",
            "An empty field stops the activation.",
            "Write its value.",
            family="document",
            fix="safe",
        ),
        Reason(
            "stale_cell",
            "A cell of the registry is stale",
            "People read the registry first.",
            "Run `workpacket board registry sync`.",
            family="cross-file",
            severity="warning",
        ),
        Reason(
            "event_altered",
            "An event was altered",
            "The log proves nothing then.",
            "Restore it.",
            "integrity",
            exit_code=5,
        ),
        Reason(
            "file_unreadable",
            "A file cannot be read",
            "It may hold anything.",
            "Give access.",
            "environment",
            exit_code=6,
        ),
    ]
)


def finding(
    code: str = "empty_field",
    severity: Severity = "error",
    path: str = STUB,
    line: int = 2,
    column: int = 3,
    message: str = "the field SPEC_ANCHOR is empty",
    hint: str = "",
    fix: Fix | None = None,
    end_line: int = 0,
    end_column: int = 0,
) -> Problem:
    return Problem(
        code,
        message,
        Location(path, line, column, end_line=end_line, end_column=end_column),
        hint,
        fix=fix,
        severity=severity,
    )


def fix(*edits: Edit, safe: bool = True, title: str = "") -> Fix:
    return Fix(edits or (Edit(0, 1, "x"),), safe=safe, title=title)


def outcome(
    *findings: Problem,
    files: Mapping[str, str] | None = None,
    lines: Mapping[tuple[str, int], str] | None = None,
    notes: tuple[str, ...] = (),
    fail_on: Severity = "error",
) -> CheckOutcome:
    def known_line(path: str, line: int) -> str | None:
        return (lines or {}).get((path, line))

    source_line: SourceLine = known_line if lines else no_source
    return CheckOutcome(findings, {STUB: "stub"} if files is None else files, notes, source_line, fail_on)


# What hides, steers or breaks: half pairs, bidi, ANSI, separators, the special characters of XML and of GitHub.
DANGEROUS = [
    *("\x00", "\x07", "\x08", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\r\n", "\n", "\t", "\x1b[31m", "\x9b2J"),
    *("\u061c", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u2029", "\ufe0f", "\u26a0\ufe0f", "\U000e0041"),
    *("\ud800", "\udcff", "\udfff", "\ufffe", "\uffff", "\u0600", "\u6f22\u5b57", "e\u0301", "a\U0001f469\u200d"),
    *("]]>", "<![CDATA[", "&amp;", "<x>", "--", "'", '"', "\\", "::error::", "##[error]", "##vso[t]", "##teamcity[x]"),
    *("%0A", "%", ",", ":", "a" * 50),
]

texts = st.lists(st.one_of(st.sampled_from(DANGEROUS), st.text(st.characters(), max_size=8)), max_size=6).map("".join)
severities: st.SearchStrategy[Severity] = st.sampled_from(["error", "warning", "info"])
confidences: st.SearchStrategy[Confidence] = st.sampled_from(["certain", "likely", "possible"])
edits = st.builds(
    lambda start, length, text: Edit(start, start + length, text), st.integers(0, 9), st.integers(0, 9), texts
)
fixes = st.builds(Fix, st.lists(edits, max_size=2).map(tuple), safe=st.booleans(), title=texts)
numbers = st.integers(0, 60)
findings = st.builds(
    Problem,
    code=st.sampled_from([*REASONS, "unheard_of"]),
    severity=severities,
    location=st.builds(Location, texts, *[numbers] * 4),
    message=texts,
    hint=texts,
    fix=st.none() | fixes,
    confidence=confidences,
)


@st.composite
def outcomes(draw: st.DrawFn) -> CheckOutcome:
    found = tuple(draw(st.lists(findings, max_size=5)))
    paths = draw(st.lists(texts, max_size=2)) + [finding.path for finding in found if draw(st.booleans())]
    line = draw(st.none() | texts)
    files = dict.fromkeys(paths, draw(texts))
    return CheckOutcome(
        found, files, tuple(draw(st.lists(texts, max_size=2))), lambda _path, _line: line, draw(severities)
    )
