"""Findings for people: grouped by file, each with its line, a caret, a hint, and whether there is a fix.

.GOV/task_packets/stubs/WP-1-Sync-v1.md
  12:3  error  empty_field [*]  the field SPEC_ANCHOR is empty
     12 | - SPEC_ANCHOR:
        |   ^^^^^^^^^^^^
        = help: name the heading of the specification

1 error in 1 of 35 files; 1 can be fixed with --fix [*]

A quoted line of a document has a caret below the position of the finding. Columns of a finding count characters, but
columns of a terminal do not: tabs, wide, combining and escaped characters all differ in width. Each character is
therefore measured in the form in which it is shown.

Statistics show how often each code was found, for a repository that has too many findings to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from workpacket.model.reasons import SEVERITIES, Reason
from workpacket.model.wording import counted
from workpacket.problem import Problem, Severity
from workpacket.report.outcome import CheckOutcome, SourceLine, by_file, by_gravity
from workpacket.report.terminal import PLAIN, Style, character_widths, escape, hidden, text_width, visible, wrap
from workpacket.value import NamedTuple, Value

TAB = 4
CUT = "..."
WITHOUT_TERMINAL = 160  # a paragraph on one line is cut around the caret even if nothing else is wrapped


_Cell: TypeAlias = tuple[str, int]
"""A character as displayed, and its width in columns."""


class QuotedLine(NamedTuple):
    """The `text` to show, and the `width` carets to put below it after `start` columns."""

    text: str
    start: int
    width: int


def excerpt(line: str, column: int, end_column: int, room: int) -> QuotedLine:
    """Return the part of `line` that fits into `room` columns and contains [column, end_column), both counted from 1.

    If `end_column` is not after `column`, the span is one character. A column after the end of the line refers to that
    end.
    """
    begin = min(max(column - 1, 0), len(line))
    end = min(max(end_column - 1, begin + 1), len(line))
    room = max(room, 4 * len(CUT))
    cells = _cells(line, 0, room)
    if len(cells) == len(line):
        return _excerpt(cells, begin, end, "", "")
    if end < len(cells) and _columns(cells[:end]) <= room - len(CUT):
        return _excerpt(_fitting(cells, room - len(CUT)), begin, end, "", CUT)
    first = max(begin - room // 4, 0)
    cells, tail = _cells(line, first, room - len(CUT)), ""
    if first + len(cells) < len(line):
        cells, tail = _fitting(cells, room - 2 * len(CUT)), CUT
    return _excerpt(cells, begin - first, max(end - first, 0), CUT if first else "", tail)


def _cells(line: str, first: int, room: int) -> list[_Cell]:
    """Return the characters starting at `first`, as many as fit into `room` columns."""
    part = line[first : first + room + 1]
    plain = escape(part) == part
    cells: list[_Cell] = []
    used = 0
    for offset, (character, width) in enumerate(zip(part, character_widths(part), strict=True)):
        if character == "\t":
            cell = _shown(" " * (TAB - used % TAB))
        elif not plain and hidden().match(part, offset):
            cell = _shown(visible(character))
        else:
            cell = (character, width)
        used += cell[1]
        if used > room:
            break
        cells.append(cell)
    return cells


def _shown(text: str) -> _Cell:
    return text, len(text)


def _fitting(cells: list[_Cell], room: int) -> list[_Cell]:
    used = 0
    for index, (_, width) in enumerate(cells):
        used += width
        if used > room:
            return cells[:index]
    return cells


def _columns(cells: list[_Cell]) -> int:
    return sum(width for _, width in cells)


def _excerpt(cells: list[_Cell], begin: int, end: int, head: str, tail: str) -> QuotedLine:
    start = len(head) + _columns(cells[:begin])
    text = head + "".join(shown for shown, _ in cells) + tail
    return QuotedLine(text.rstrip(" "), start, max(_columns(cells[begin:end]), 1))


SAFE_FIX_MARK = "[*]"
REPOSITORY = "(repository)"

_WIDEST_HANGING_INDENT = 44


# A code with more findings than this has one cause, and a list of them would hide the other findings.
MOST_SHOWN = 25
_EXAMPLES = 5


def render_text(outcome: CheckOutcome, style: Style = PLAIN, *, quiet: bool = False, every: bool = False) -> str:
    """Return the whole report, ending with a line feed; if `quiet`, only the findings. Files with errors come first.

    If a code has too many findings, the first ones are shown and the others are counted, unless `quiet` or `every` is
    set.
    """
    lines: list[str] = []
    shown, more = (outcome.findings, []) if quiet or every else shortened(outcome.findings)
    for path, findings in _gravest_first(by_file(shown)):
        lines.append(style.paint(shown_path(path), "path"))
        lines += _file_lines(findings, outcome.source_line, style)
        lines.append("")
    if quiet:
        return "\n".join(lines)
    for rest in more:
        where = f"{counted(rest.count, 'more finding')} in {counted(rest.files, 'file')}"
        lines += _hanging(
            f"{rest.code}: ", f"{where}; `workpacket check --select {rest.code}` lists them", style.columns
        )
    lines += [""] if more else []
    for note in outcome.notes:
        lines += _hanging("note: ", escape(note), style.columns)
    lines += _hanging("", summary(outcome), style.columns)
    return "\n".join(lines) + "\n"


def shortened(findings: tuple[Problem, ...]) -> tuple[tuple[Problem, ...], list[CodeCount]]:
    """Return the findings to show, and the number of other findings per code, the most severe first."""
    totals = Counter(finding.code for finding in findings)
    if all(total <= MOST_SHOWN for total in totals.values()):
        return findings, []
    seen: Counter[str] = Counter()
    shown: list[Problem] = []
    left: list[Problem] = []
    for finding in by_gravity(findings):
        seen[finding.code] += 1
        few = totals[finding.code] <= MOST_SHOWN or seen[finding.code] <= _EXAMPLES
        (shown if few else left).append(finding)
    return tuple(shown), code_counts(tuple(left))


def _gravest_first(groups: Mapping[str, list[Problem]]) -> list[tuple[str, list[Problem]]]:
    def gravity(group: tuple[str, list[Problem]]) -> int:
        return min(SEVERITIES.index(finding.severity) for finding in group[1])

    return sorted(groups.items(), key=gravity)


def summary(outcome: CheckOutcome) -> str:
    """Return a line such as `3 errors, 2 warnings in 2 of 35 files; 2 can be fixed with --fix [*]`."""
    files = counted(len(outcome.files), "file")
    if not outcome.files and not outcome.findings:
        return "0 files checked: no governance documents found (nothing_to_check)"
    if not outcome.findings:
        kinds = ", ".join(f"{escape(kind)} {count}" for kind, count in outcome.files_by_kind.items())
        return f"{files} checked, no findings" + (f" ({kinds})" if kinds else "")
    counts = ((severity, outcome.total(severity)) for severity in SEVERITIES)
    found = ", ".join(counted(count, severity) for severity, count in counts if count)
    where = f"{outcome.files_with_findings()} of {files}"
    return "; ".join([f"{found} in {where}", *_fix_offers(outcome)])


def shown_path(path: str) -> str:
    """Return a path as the first word of a line: one that starts with '::' would be a GitHub workflow command."""
    return escape(f"./{path}" if path.lstrip().startswith(":") else path) or REPOSITORY


def location(finding: Problem) -> str:
    return f"{finding.line}:{finding.column}" if finding.line else "-"


def _fix_offers(outcome: CheckOutcome) -> Iterator[str]:
    safe, unsafe = outcome.fixable(safe=True), outcome.fixable(safe=False)
    if safe:
        yield f"{safe} can be fixed with --fix {SAFE_FIX_MARK}"
    if unsafe:
        yield f"{unsafe}{' more' if safe else ''} can be fixed with --unsafe-fixes; a person should review the result"


def _file_lines(findings: list[Problem], source_line: SourceLine, style: Style) -> Iterator[str]:
    places = max(len(location(finding)) for finding in findings)
    severities = max(len(finding.severity) for finding in findings)
    for finding in findings:
        place = location(finding).rjust(places)
        head = f"  {place}  {finding.severity.ljust(severities)}  "
        yield from _head_lines(head, finding, style)
        yield from _detail_lines(finding, source_line, places + 2, style)


def _head_lines(head: str, finding: Problem, style: Style) -> Iterator[str]:
    code = escape(finding.code)
    mark = f" {SAFE_FIX_MARK}" if finding.fix is not None and finding.fix.safe else ""
    plain = f"{head}{code}{mark}  "
    first, *rest = _hanging(plain, escape(finding.message), style.columns)
    # Color comes last, because widths were measured without it.
    painted = head.replace(finding.severity, style.paint(finding.severity, finding.severity), 1)
    yield painted + style.paint(code, "code") + first[len(head) + len(code) :]
    yield from rest


def _detail_lines(finding: Problem, source_line: SourceLine, indent: int, style: Style) -> Iterator[str]:
    gutter = max(indent, len(str(finding.line)) + 2)
    line = source_line(finding.path, finding.line) if finding.line else None
    if line is not None:
        yield from _excerpt_lines(finding, line, gutter, style)
    if finding.hint:
        yield from _labelled("help", escape(finding.hint), gutter, style)
    if finding.fix is not None and finding.fix.title:
        flag = "--fix" if finding.fix.safe else "--unsafe-fixes"
        yield from _labelled("fix", f"{escape(finding.fix.title)} ({flag})", gutter, style)


def _excerpt_lines(finding: Problem, line: str, gutter: int, style: Style) -> Iterator[str]:
    several_lines = finding.location.end_line > finding.line
    end_column = len(line) + 1 if several_lines else finding.location.end_column
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
    """Return `head` and `text`, with further lines indented to the start of the text, or less if room is short."""
    if columns is None:
        return [(head + text).rstrip(" ")]
    start = text_width(head)
    indent = start if start <= min(_WIDEST_HANGING_INDENT, columns // 2) else 8
    if start > columns - 12:
        first, rest = "", wrap(text, columns - indent)
    else:
        first, *rest = wrap(text, columns - indent, columns - start)
    return [(head + first).rstrip(" "), *(" " * indent + line.rstrip(" ") for line in rest if line.strip(" "))]


class CodeCount(Value):
    """The findings of one code. `severity` is the highest among them; `fixable` counts safe fixes."""

    code: str
    severity: Severity
    count: int
    files: int
    fixable: int


def code_counts(findings: tuple[Problem, ...]) -> list[CodeCount]:
    """Return one entry per code, the most severe first, then the most frequent."""
    groups: dict[str, list[Problem]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    counts = [_code_count(code, group) for code, group in groups.items()]
    return sorted(counts, key=lambda entry: (SEVERITIES.index(entry.severity), -entry.count, entry.code))


def render_statistics(outcome: CheckOutcome, reasons: Mapping[str, Reason], style: Style = PLAIN) -> str:
    """Return a table of count, severity, code and title, followed by the summary line of the full report."""
    counts = code_counts(outcome.findings)
    digits = max((len(str(entry.count)) for entry in counts), default=0)
    severities = max((len(entry.severity) for entry in counts), default=0)
    codes = max((len(entry.code) for entry in counts), default=0)
    lines: list[str] = []
    for entry in counts:
        severity = style.paint(entry.severity.ljust(severities), entry.severity)
        mark = SAFE_FIX_MARK if entry.fixable else " " * len(SAFE_FIX_MARK)
        title = reasons[entry.code].title if entry.code in reasons else ""
        code = style.paint(escape(entry.code).ljust(codes), "code")
        lines.append(f"{entry.count:>{digits}}  {severity}  {code}  {mark}  {escape(title)}".rstrip(" "))
    if lines:
        lines.append("")
    lines += [f"note: {escape(note)}" for note in outcome.notes]
    lines.append(summary(outcome))
    return "\n".join(lines) + "\n"


def _code_count(code: str, group: list[Problem]) -> CodeCount:
    gravest = min((finding.severity for finding in group), key=SEVERITIES.index)
    fixable = sum(finding.fix is not None and finding.fix.safe for finding in group)
    return CodeCount(code, gravest, len(group), len({finding.path for finding in group}), fixable)
