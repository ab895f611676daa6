r"""The changes that a fix would make, as a unified diff made from its edits.

The edits determine the changed lines, so no text is compared, and a diff of one field in a large board is as fast as
the edit. For text without hidden characters, `git apply` accepts the output. Hidden characters are shown in a visible
form; in changed lines, that includes the `\r` of a CRLF.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from workpacket.problem import Edit
from workpacket.report.terminal import PLAIN, Style, escape_lines
from workpacket.text.source import Source, apply_edits
from workpacket.value import Value

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"


class _Change(Value):
    """Lines [start, end) of the old text become lines [new_start, new_end) of the new text, all counted from 0."""

    start: int
    end: int
    new_start: int
    new_end: int


def render_diff(source: Source, edits: Iterable[Edit], style: Style = PLAIN) -> str:
    """Return the diff of one file; empty if the edits change nothing."""
    edits = tuple(edits)
    after = apply_edits(source, edits)
    if after.text == source.text:
        return ""
    old, new = _lines(source), _lines(after)
    changes = [trimmed for change in _touched(source, after, edits) if (trimmed := _trim(change, old, new))]
    path = escape_lines(source.path).replace("\n", "\\n")
    output = [style.paint(f"--- a/{path}", "path"), style.paint(f"+++ b/{path}", "path")]
    for group in _hunks(changes):
        output += _hunk_lines(group, old, new, style)
    return "\n".join(output) + "\n"


def _lines(source: Source) -> list[str]:
    """Return the lines with their line endings; there is no empty line after the last line ending."""
    starts = [*source.line_starts, len(source.text)]
    lines = [source.text[start:end] for start, end in pairwise(starts)]
    return lines[:-1] if lines[-1] == "" else lines


def _touched(before: Source, after: Source, edits: tuple[Edit, ...]) -> list[_Change]:
    """Return the lines that each edit touches, extended by one character, because an edit may split or join a CRLF."""
    changes: list[_Change] = []
    moved = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        new_start = edit.start + moved
        new_end = new_start + len(edit.text)
        moved += len(edit.text) - (edit.end - edit.start)
        change = _Change(
            _line_index(before, edit.start - 1),
            _line_index(before, edit.end) + 1,
            _line_index(after, new_start - 1),
            _line_index(after, new_end) + 1,
        )
        if changes and (change.start < changes[-1].end or change.new_start < changes[-1].new_end):
            last = changes.pop()
            change = _Change(last.start, change.end, last.new_start, change.new_end)
        changes.append(change)
    return changes


def _line_index(source: Source, offset: int) -> int:
    return source.line_and_column(max(offset, 0))[0] - 1


def _trim(change: _Change, old: list[str], new: list[str]) -> _Change | None:
    """Return the change without equal lines at its start and end."""
    start, end = change.start, min(change.end, len(old))
    new_start, new_end = change.new_start, min(change.new_end, len(new))
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return _Change(start, end, new_start, new_end) if start < end or new_start < new_end else None


def _hunks(changes: list[_Change]) -> Iterator[list[_Change]]:
    """Group changes whose context lines would meet."""
    group = [changes[0]]
    for change in changes[1:]:
        if change.start - group[-1].end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    yield group


def _hunk_lines(group: list[_Change], old: list[str], new: list[str], style: Style) -> Iterator[str]:
    lead = min(CONTEXT, group[0].start)
    start, new_start = group[0].start - lead, group[0].new_start - lead
    end = min(group[-1].end + CONTEXT, len(old))
    new_end = group[-1].new_end + end - group[-1].end
    yield style.paint(f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@", "info")
    position = start
    for change in group:
        yield from _marked(" ", old[position : change.start], style)
        yield from _marked("-", old[change.start : change.end], style)
        yield from _marked("+", new[change.new_start : change.new_end], style)
        position = change.end
    yield from _marked(" ", old[position:end], style)


def _span(start: int, end: int) -> str:
    """Return `start,length`, counted from 1; an empty span is identified by the line before it."""
    length = end - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _marked(mark: str, lines: list[str], style: Style) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix("\n")
        if mark == " ":
            yield mark + escape_lines(text.removesuffix("\r"))
        else:
            yield style.paint(mark + escape_lines(text), "added" if mark == "+" else "removed")
        if not line.endswith(("\n", "\r")):
            yield NO_NEWLINE
