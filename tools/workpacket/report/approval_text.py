"""What a person reads before signing: every file in full, escaped, and what the signature will say. Each line of a file
is shown after a bar, so that a file cannot imitate our text; the words of its digest follow it. Nothing is ever
truncated.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from workpacket.approvals.encodings import six_words, write_instant
from workpacket.approvals.statement import Statement
from workpacket.report.escape import escape, escape_lines
from workpacket.report.terminal import PLAIN, Style

_BAR = "| "


def render_file(path: str, data: bytes, style: Style = PLAIN) -> str:
    """The whole file."""
    lines = [style.paint(f"--- {escape(path)} ({len(data)} bytes), in full:", "path")]
    lines += [f"{_BAR}{line}" for line in _lines(data)]
    return "\n".join(lines) + "\n"


def render_changes(path: str, before: bytes, after: bytes, since: str, style: Style = PLAIN) -> str:
    """The differences from the version `before`, which `since` describes."""
    if before == after:
        return f"--- {escape(path)}: unchanged since {since}\n"
    changed = difflib.unified_diff(_lines(before), _lines(after), "before", "now", lineterm="", n=3)
    lines = [style.paint(f"--- {escape(path)}: changes since {since}:", "path")]
    for line in list(changed)[2:]:
        painted = style.paint(line, "added" if line.startswith("+") else "removed")
        lines.append(_BAR + (painted if line.startswith(("+", "-")) else line))
    return "\n".join(lines) + "\n"


def render_statement(statement: Statement, style: Style = PLAIN) -> str:
    """What will be signed, in words; the digest of each file as six words."""
    rows = [("decision", f"{statement.decision} {statement.packet} at the gate {statement.gate}")]
    rows += [("as", f"{statement.approver} ({statement.role}) of {statement.repository.name}")]
    rows += [("specification", statement.spec.anchor)] if statement.spec is not None else []
    rows += [("in scope", item) for item in statement.scope]
    rows += [("policy of", f"{statement.base[:12]}")]
    rows += [("valid", f"{write_instant(statement.issued_at)} to {write_instant(statement.expires_at)}")]
    for subject in statement.subjects:
        rows += [("file", subject.name), ("sha256", subject.sha256), ("in words", six_words(subject.sha256))]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{style.paint(name.ljust(width), 'help')}  {escape(text)}" for name, text in rows) + "\n"


def words_to_type(statement: Statement) -> str:
    """What the person types to sign."""
    what = {"activation": "REFINEMENT"}.get(statement.gate, statement.gate.upper())
    return f"{statement.decision.upper()} {what} {statement.packet}"


def _lines(data: bytes) -> list[str]:
    return list(_shown(data.decode("utf-8", "surrogateescape").split("\n")))


def _shown(lines: list[str]) -> Iterator[str]:
    if lines[-1] == "":
        lines = lines[:-1]
        yield from map(escape_lines, lines)
    else:
        yield from map(escape_lines, lines)
        yield "(no line feed at the end)"


def render_refusals(refusals: Iterable[tuple[str, str, str]], style: Style = PLAIN) -> str:
    """Reasons with code, message and path, one per line."""
    rows = (f"  {style.paint(code, 'code')}  {escape(message)}" + _where(path) for code, message, path in refusals)
    return "".join(f"{row}\n" for row in rows)


def _where(path: str) -> str:
    return f" ({escape(path)})" if path else ""
