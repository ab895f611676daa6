"""The page on which a person approves by touch: the text that the terminal would show, row by row, and two buttons.

Everything from the repository is text, escaped as on the terminal and again for HTML. If the window wraps a row,
the rest is indented further than any row begins, so no text can pass for text of the tool here either. The content
security policy allows one style sheet and one script, by digest, and requests only to the page's own origin.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape as html_escape
from typing import Literal

from workpacket.model.canonical import Json
from workpacket.report.audit_page import PageFiles, inert
from workpacket.report.escape import escape, escape_lines
from workpacket.value import Value

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
    """The content of the page. `title` and `lead` are ours, but may contain words of others; `text` is what the
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
    """Return the header with which the page is served."""
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(files.style)}; script-src {_digest(files.script)}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _page(page: TouchPage, files: PageFiles) -> Iterator[str]:
    title = html_escape(escape(page.title))
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
    yield f"<style>{files.style}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    yield f"<p>{html_escape(escape(page.lead))}</p>\n</header>\n"
    if page.text:
        yield '<main class="rows">\n'
        yield from _rows(page.text)
        yield "</main>\n"
    # The buttons work once the script has checked the page's address.
    yield "<form>\n"
    yield f'<button type="button" id="yes" disabled>{html_escape(page.yes)}</button>\n'
    yield '<button type="button" id="no" class="no" disabled>Decline</button>\n'
    yield '<p id="said" role="status" aria-live="polite"></p>\n'
    yield "<noscript><p>This page requires its script, which is part of the page.</p></noscript>\n</form>\n"
    yield f'<script type="application/json" id="asked">{inert(page.asked.to_json())}</script>\n'
    yield f"<script>{files.script}</script>\n</body>\n</html>\n"


def _rows(text: str) -> Iterator[str]:
    """Yield the rows as HTML. A row of text by others begins with a bar, so a row that begins with dashes is one of our
    titles.
    """
    in_changes = False
    for line in escape_lines(text.rstrip("\n")).split("\n"):
        kind = ""
        if line.startswith(_TITLE):
            kind, in_changes = "title", _CHANGES in line
        elif in_changes:
            kind = {"| +": "added", "| -": "removed"}.get(line[:3], "")
        yield f'<div class="{kind}">{html_escape(line)}</div>\n' if kind else f"<div>{html_escape(line)}</div>\n"
