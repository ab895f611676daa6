"""Findings for people: grouped by file, each with its line, a caret, what helps, and whether a fix is at hand.

.GOV/task_packets/stubs/WP-1-Sync-v1.md
  12:3  error  empty_field [*]  the field SPEC_ANCHOR is empty
     12 | - SPEC_ANCHOR:
        |   ^^^^^^^^^^^^
        = help: name the heading of the specification

1 error in 1 of 35 files; 1 can be fixed with --fix [*]
"""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.model.findings import Finding
from workpacket.model.reasons import SEVERITIES
from workpacket.report.door import escape
from workpacket.report.excerpt import WITHOUT_TERMINAL, excerpt
from workpacket.report.outcome import CheckOutcome, SourceLine, by_file
from workpacket.report.style import PLAIN, Style
from workpacket.report.width import text_width, wrap

SAFE_FIX_MARK = "[*]"
REPOSITORY = "(repository)"

_WIDEST_HANGING_INDENT = 44


def render_text(outcome: CheckOutcome, style: Style = PLAIN) -> str:
    """The whole report; ends with a line feed."""
    lines: list[str] = []
    for path, findings in by_file(outcome.findings).items():
        lines.append(style.paint(shown_path(path), "path"))
        lines += _file_lines(findings, outcome.source_line, style)
        lines.append("")
    for note in outcome.notes:
        lines += _hanging("note: ", escape(note), style.columns)
    lines += _hanging("", summary(outcome), style.columns)
    return "\n".join(lines) + "\n"


def summary(outcome: CheckOutcome) -> str:
    """`3 errors, 2 warnings in 2 of 35 files; 2 can be fixed with --fix [*]`."""
    files = counted(len(outcome.files), "file")
    if not outcome.files and not outcome.findings:
        return "0 files checked: no governance document was found, which is no success (nothing_to_check)"
    if not outcome.findings:
        kinds = ", ".join(f"{escape(kind)} {count}" for kind, count in outcome.files_by_kind.items())
        return f"{files} checked, no findings" + (f" ({kinds})" if kinds else "")
    counts = ((severity, outcome.total(severity)) for severity in SEVERITIES)
    found = ", ".join(counted(count, severity) for severity, count in counts if count)
    where = f"{outcome.files_with_findings()} of {files}"
    return "; ".join([f"{found} in {where}", *_fix_offers(outcome)])


def counted(count: int, noun: str) -> str:
    """`1 error`, `2 errors`, `2 info`."""
    return f"{count} {noun}" if count == 1 or noun == "info" else f"{count} {noun}s"


def shown_path(path: str) -> str:
    """A path as the first word of a line: one that starts with '::' would be a workflow command of GitHub."""
    return escape(f"./{path}" if path.lstrip().startswith(":") else path) or REPOSITORY


def location(finding: Finding) -> str:
    return f"{finding.line}:{finding.column}" if finding.line else "-"


def _fix_offers(outcome: CheckOutcome) -> Iterator[str]:
    safe, unsafe = outcome.fixable(safe=True), outcome.fixable(safe=False)
    if safe:
        yield f"{safe} can be fixed with --fix {SAFE_FIX_MARK}"
    if unsafe:
        yield f"{unsafe}{' more' if safe else ''} can be fixed with --unsafe-fixes, which a person should look over"


def _file_lines(findings: list[Finding], source_line: SourceLine, style: Style) -> Iterator[str]:
    places = max(len(location(finding)) for finding in findings)
    severities = max(len(finding.severity) for finding in findings)
    for finding in findings:
        place = location(finding).rjust(places)
        head = f"  {place}  {finding.severity.ljust(severities)}  "
        yield from _head_lines(head, finding, style)
        yield from _detail_lines(finding, source_line, places + 2, style)


def _head_lines(head: str, finding: Finding, style: Style) -> Iterator[str]:
    code = escape(finding.code)
    mark = f" {SAFE_FIX_MARK}" if finding.fix is not None and finding.fix.safe else ""
    plain = f"{head}{code}{mark}  "
    first, *rest = _hanging(plain, escape(finding.message), style.columns)
    # Colour comes last: widths were measured without it.
    painted = head.replace(finding.severity, style.paint(finding.severity, finding.severity), 1)
    yield painted + style.paint(code, "code") + first[len(head) + len(code) :]
    yield from rest


def _detail_lines(finding: Finding, source_line: SourceLine, indent: int, style: Style) -> Iterator[str]:
    gutter = max(indent, len(str(finding.line)) + 2)
    line = source_line(finding.path, finding.line) if finding.line else None
    if line is not None:
        yield from _excerpt_lines(finding, line, gutter, style)
    if finding.hint:
        yield from _labelled("help", escape(finding.hint), gutter, style)
    if finding.fix is not None and finding.fix.title:
        flag = "--fix" if finding.fix.safe else "--unsafe-fixes"
        yield from _labelled("fix", f"{escape(finding.fix.title)} ({flag})", gutter, style)


def _excerpt_lines(finding: Finding, line: str, gutter: int, style: Style) -> Iterator[str]:
    several_lines = finding.end_line > finding.line
    end_column = len(line) + 1 if several_lines else finding.end_column
    room = (style.columns or WITHOUT_TERMINAL) - gutter - len(" | ^")
    shown = excerpt(line, finding.column, end_column, room)
    yield f"{style.paint(f'{finding.line:>{gutter}} |', 'gutter')} {shown.text}".rstrip(" ")
    if finding.column:
        carets = style.paint("^" * shown.width, finding.severity)
        yield f"{style.paint(' ' * gutter + ' |', 'gutter')} {' ' * shown.start}{carets}"


def _labelled(label: str, text: str, gutter: int, style: Style) -> Iterator[str]:
    head = f"{' ' * gutter} = {label}: "
    first, *rest = _hanging(head, text, style.columns)
    yield f"{' ' * gutter} {style.paint('=', 'gutter')} {style.paint(f'{label}:', 'help')}{first[len(head) - 1 :]}"
    yield from rest


def _hanging(head: str, text: str, columns: int | None) -> list[str]:
    """`head` and `text`, the further lines set below the start of the text, or further left where room is short."""
    if columns is None:
        return [(head + text).rstrip(" ")]
    start = text_width(head)
    indent = start if start <= min(_WIDEST_HANGING_INDENT, columns // 2) else 8
    if start > columns - 12:
        first, rest = "", wrap(text, columns - indent)
    else:
        first, *rest = wrap(text, columns - indent, columns - start)
    return [(head + first).rstrip(" "), *(" " * indent + line.rstrip(" ") for line in rest if line.strip(" "))]
