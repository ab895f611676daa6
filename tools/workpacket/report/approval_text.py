"""What a person reads before approving: the complete contract and files, escaped, and the statement to sign; on a
terminal, or on the page of an approval by touch.

Text written by others is shown behind a bar, in rows that fit the terminal: `| ` before the beginning of a line, `|>`
before its continuations. Therefore no text, however long, can pass for the tool's own text. Nothing is ever truncated.

Everything from the repository is text, escaped as on the terminal and again for HTML. If the window wraps a row, the
rest is indented further than any row begins, so no text can pass for the tool's own text here either. The content
security policy allows one style sheet and one script, by digest, and requests only to the page's own origin.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape as html_escape
from typing import Literal

from workpacket.approvals.envelope import Statement
from workpacket.approvals.fields import six_words, write_instant
from workpacket.model.canonical import Json
from workpacket.report.terminal import PLAIN, Role, Style, character_widths, escape, escape_lines
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.report.audit_page import PageFiles

_BAR, _ON = "| ", "|>"
# Zero-width marks could pile up in one row, so a row ends after this many characters per column.
_PILED = 3
# Longer texts are shown in full before and after, because comparing them would take minutes.
_MOST_WORDS = 2000
_NO_LINE_FEED = "(no newline at end of file)"
# Part of a contract: its name, and its texts.
Part = tuple[str, Sequence[str]]


def barred(text: str, style: Style, *, indent: int = 0, role: Role | None = None) -> list[str]:
    """Return a line written by others as rows that fit the terminal, each prefixed with the bar."""
    shown = escape(text)
    rows = _rows(shown, style.columns - indent - len(_BAR)) if style.columns is not None else [shown]
    before = " " * indent
    painted = [style.paint(row, role) if role is not None else row for row in rows]
    return [f"{'' if not number else before}{_ON if number else _BAR}{row}" for number, row in enumerate(painted)]


def _rows(text: str, room: int) -> list[str]:
    """Split `text` into rows of at most `room` columns, in linear time even for a line of two megabytes."""
    rows: list[str] = []
    start = used = 0
    for index, width in enumerate(character_widths(text)):
        if used + width > room or index - start >= _PILED * room:
            rows.append(text[start:index])
            start, used = index, 0
        used += width
    return [*rows, text[start:]]


def render_file(path: str, data: bytes, style: Style = PLAIN) -> str:
    """Return the whole file."""
    lines = [style.paint(f"--- {escape(path)} ({len(data)} bytes), in full:", "path")]
    text = _lines(data)
    for line in text[:-1] if data.endswith(b"\n") else text:
        lines += barred(line, style)
    lines += [] if data.endswith(b"\n") else [_NO_LINE_FEED]
    return "\n".join(lines) + "\n"


def render_contract(parts: Iterable[Part], digest: str, style: Style = PLAIN) -> str:
    """Return the whole contract, with each string in a part behind its own bar."""
    lines = [style.paint("--- the contract, in full:", "path")]
    for name, texts in parts:
        lines.append(style.paint(f"{name}:", "help"))
        lines += [row for text in texts for row in barred(text, style)] or ["(nothing)"]
    return "\n".join([*lines, f"sha256 {digest}"]) + "\n"


def render_difference(changed: Iterable[tuple[str, Sequence[str], Sequence[str]]], since: str, style: Style) -> str:
    """Return the differences in a contract, word by word: `[-removed-]`, `{+added+}`."""
    lines = [style.paint(f"--- the contract: changes since {since}:", "path")]
    for name, before, after in changed:
        lines.append(style.paint(f"{name}:", "help"))
        for old, new in _pairs(before, after):
            lines += barred(word_by_word(old, new), style)
    return "\n".join(lines) + "\n"


def _pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the strings that differ, each with its replacement, or '' if there is none."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind == "equal":
            continue
        old, new = list(before[first:last]), list(after[new_first:new_last])
        for index in range(max(len(old), len(new))):
            yield old[index] if index < len(old) else "", new[index] if index < len(new) else ""


def word_by_word(old: str, new: str) -> str:
    """Return both texts on one line. Marks in the texts themselves are escaped with a backslash."""
    before, after = ([_unmarked(word) for word in text.split()] for text in (old, new))
    if max(len(before), len(after)) > _MOST_WORDS:
        return f"[-{' '.join(before)}-] {{+{' '.join(after)}+}}"
    said: list[str] = []
    for kind, first, last, new_first, new_last in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if kind == "equal":
            said += before[first:last]
            continue
        said += [f"[-{' '.join(before[first:last])}-]"] if first < last else []
        said += [f"{{+{' '.join(after[new_first:new_last])}+}}"] if new_first < new_last else []
    return " ".join(said)


def _unmarked(word: str) -> str:
    for mark in ("[-", "-]", "{+", "+}"):
        word = word.replace(mark, "\\".join(mark))
    return word


def render_told(title: str, rows: Iterable[str], style: Style = PLAIN) -> str:
    """Return the signed information that is not in a file, such as the submitted commit."""
    lines = [style.paint(f"--- {title}:", "path")]
    for row in rows:
        lines += barred(row, style)
    return "\n".join(lines) + "\n"


def render_changes(path: str, before: bytes, after: bytes, since: str, style: Style = PLAIN) -> str:
    """Return the differences from the version `before`, which is described by `since`."""
    if before == after:
        return f"--- {escape(path)}: unchanged since {since}\n"
    old, new = (_ended(data) for data in (before, after))
    changed = difflib.unified_diff(old, new, "before", "now", lineterm="", n=3)
    lines = [style.paint(f"--- {escape(path)}: changes since {since}:", "path")]
    roles: dict[str, Role] = {"+": "added", "-": "removed"}
    for line in list(changed)[2:]:
        lines += barred(line, style, role=roles.get(line[:1]))
    return "\n".join(lines) + "\n"


def render_statement(statement: Statement, style: Style = PLAIN) -> str:
    """Return everything that will be signed; the digest of each file is also shown as six words."""
    rows = [("decision", f"{statement.decision} {statement.packet} at the gate {statement.gate}")]
    rows += [("as", f"{statement.approver} ({statement.role}) of {statement.repository.name}")]
    rows += [("of first", statement.repository.root_commit)]
    rows += [("contract", statement.contract)] if statement.contract is not None else []
    if statement.spec is not None:
        rows += [("spec", statement.spec.anchor), ("sha256", statement.spec.sha256)]
    rows += [("in scope", item) for item in statement.scope]
    rows += [("base", statement.base), ("policy", statement.policy)]
    rows += [("log head", head) for head in statement.log_heads]
    rows += [("valid", f"{write_instant(statement.issued_at)} to {write_instant(statement.expires_at)}")]
    rows += [("nonce", statement.nonce)]
    for subject in statement.subjects:
        rows += [("file", subject.name), ("sha256", subject.sha256), ("in words", six_words(subject.sha256))]
    width = max(len(name) for name, _ in rows)
    lines: list[str] = []
    for name, text in rows:
        first, *more = barred(text, style, indent=width + 2)
        lines += [f"{style.paint(name.ljust(width), 'help')}  {first}", *more]
    return "\n".join(lines) + "\n"


def words_to_type(statement: Statement) -> str:
    """Return the words that the person types to sign."""
    what = {"activation": "REFINEMENT", "standing": "REFINEMENT"}.get(statement.gate, statement.gate.upper())
    return f"{statement.decision.upper()} {what} {statement.packet}"


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").split("\n")


def _ended(data: bytes) -> list[str]:
    """Return the lines, and a note if the last line has no line feed."""
    lines = _lines(data)
    return [*lines[:-1], *([lines[-1], _NO_LINE_FEED] if lines[-1] else [])]


def render_refusals(refusals: Iterable[tuple[str, str, str]], style: Style = PLAIN) -> str:
    """Return the reasons, one per line, with code, message and path."""
    rows = (f"  {style.paint(code, 'code')}  {escape(message)}" + _where(path) for code, message, path in refusals)
    return "".join(f"{row}\n" for row in rows)


def _where(path: str) -> str:
    return f" ({escape(path)})" if path else ""


_TITLE = "--- "
_CHANGES = "changes since "


class Asked(Value):
    """The input of the page's script. `challenge`, `credential` and `user` are base64url; `page` is the secret that the
    script's answer must repeat; `person` is the owner of the registered key.
    """

    kind: Literal["touched", "registered"]
    page: str
    origin: str
    party: str
    challenge: str
    milliseconds: int
    credential: str = ""
    pin: bool = False
    user: str = ""
    person: str = ""

    def to_json(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "page": self.page,
            "origin": self.origin,
            "party": self.party,
            "challenge": self.challenge,
            "milliseconds": self.milliseconds,
            "credential": self.credential,
            "pin": self.pin,
            "user": self.user,
            "person": self.person,
        }


class TouchPage(Value):
    """The content of the page. `title` and `lead` are ours, but may contain words written by others; `text` is what the
    terminal would show.
    """

    title: str
    lead: str
    text: str
    yes: str
    asked: Asked


def render_touch_page(page: TouchPage, files: PageFiles) -> str:
    return "".join(_page(page, files))


def security_policy(files: PageFiles) -> str:
    """Return the HTTP header with which the page is served."""
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(files.style)}; script-src {_digest(files.script)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _page(page: TouchPage, files: PageFiles) -> Iterator[str]:
    from workpacket.report.audit_page import inert  # approvals at a terminal need neither page nor audit

    title = html_escape(escape(page.title))
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
    yield f"<style>{files.style}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    yield f"<p>{html_escape(escape(page.lead))}</p>\n</header>\n"
    if page.text:
        yield '<main class="rows">\n'
        yield from _page_rows(page.text)
        yield "</main>\n"
    # The buttons work once the script has checked the page's address.
    yield "<form>\n"
    yield f'<button type="button" id="yes" disabled>{html_escape(page.yes)}</button>\n'
    yield '<button type="button" id="no" class="no" disabled>Decline</button>\n'
    yield '<p id="said" role="status" aria-live="polite"></p>\n'
    yield "<noscript><p>This page requires its script, which is part of the page.</p></noscript>\n</form>\n"
    yield f'<script type="application/json" id="asked">{inert(page.asked.to_json())}</script>\n'
    yield f"<script>{files.script}</script>\n</body>\n</html>\n"


def _page_rows(text: str) -> Iterator[str]:
    """Yield the rows as HTML. A row of text written by others begins with a bar, so a row that begins with dashes is
    one of our titles.
    """
    in_changes = False
    for line in escape_lines(text.rstrip("\n")).split("\n"):
        kind = ""
        if line.startswith(_TITLE):
            kind, in_changes = "title", _CHANGES in line
        elif in_changes:
            kind = {"| +": "added", "| -": "removed"}.get(line[:3], "")
        yield f'<div class="{kind}">{html_escape(line)}</div>\n' if kind else f"<div>{html_escape(line)}</div>\n"
