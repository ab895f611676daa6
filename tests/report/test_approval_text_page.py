"""The page of `approve --browser`: what is in it, and that nothing in it can pass for something else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from workpacket.report.approval_text import Asked, TouchPage, render_touch_page, security_policy
from workpacket.report.audit_page import PageFiles

FILES = PageFiles("p { color: red }", "'use strict';")
HOSTILE = "</script><script>harm()</script><!-- & \u202e \x1b[31m \"'"
ASKED = Asked("touched", "secret", "http://localhost:7363", "localhost", "Y2hhbGxlbmdl", 1000, "AQ", True, "", HOSTILE)


class Seen(HTMLParser):
    """The tags in order, the text outside of scripts, and what scripts and rows hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.rows: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        if tag == "div":
            self.rows.append((dict(attrs).get("class") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        if self._inside == "div":
            kind, text = self.rows.pop()
            self.rows.append((kind, text + data))


def page(text: str = "", title: str = "Approve", lead: str = "As ann") -> Seen:
    return Seen(render_touch_page(TouchPage(title, lead, text, "Approve with a touch", ASKED), FILES))


def test_every_row_of_the_text_is_a_row_of_the_page() -> None:
    text = "--- the contract, in full:\nwhat:\n| Greet <b>the</b> user\n|> on and on\n\nsha256 12\n"
    assert page(text).rows == [
        ("title", "--- the contract, in full:"),
        ("", "what:"),
        ("", "| Greet <b>the</b> user"),
        ("", "|> on and on"),
        ("", ""),
        ("", "sha256 12"),
    ]


def test_changes_have_colours_and_other_rows_do_not() -> None:
    text = "--- a.md: changes since May:\n| -old\n| +new\n| same\n--- b.md (3 bytes), in full:\n| -a\n| +b\n"
    kinds = [kind for kind, _ in page(text).rows]
    assert kinds == ["title", "removed", "added", "", "title", "", ""]


def test_words_of_others_are_text_wherever_they_are() -> None:
    usual = page("| x")
    hostile = page(f"| {HOSTILE}", HOSTILE, HOSTILE)
    assert hostile.tags == usual.tags
    assert hostile.scripts[-1] == FILES.script
    assert len(hostile.scripts) == 2
    assert hostile.rows[0][1].endswith("\\u202e \\u001b[31m \"'")


def test_a_row_of_others_is_no_title_and_no_change() -> None:
    assert [kind for kind, _ in page("| --- a.md: changes since May:\n| +x").rows] == ["", ""]


def test_the_script_is_told_what_is_asked_and_no_tag_can_end_it() -> None:
    seen = page()
    assert json.loads(seen.scripts[0]) == {
        "kind": "touched",
        "page": "secret",
        "origin": "http://localhost:7363",
        "party": "localhost",
        "challenge": "Y2hhbGxlbmdl",
        "milliseconds": 1000,
        "credential": "AQ",
        "pin": True,
        "user": "",
        "person": HOSTILE,
    }
    assert "<" not in seen.scripts[0]


def test_the_policy_allows_this_style_and_script_and_no_others() -> None:
    policy = dict(part.strip().partition(" ")[::2] for part in security_policy(FILES).split(";"))

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": digest(FILES.style),
        "script-src": digest(FILES.script),
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_the_page_fetches_nothing_and_has_no_handlers() -> None:
    text = render_touch_page(TouchPage("t", "l", "| x", "Yes", ASKED), FILES)
    assert re.findall(r'(?:src|href|action)="([^"]*)"', text) == ["data:,"]
    assert not re.search(r"\son[a-z]+=", text)


def test_without_text_there_are_only_the_buttons() -> None:
    assert page().rows == []
    assert page().tags.count("button") == 2
