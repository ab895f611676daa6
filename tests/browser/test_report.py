"""The page of the audit, used as a reader would: with a mouse, a keyboard, a screen reader, a printer, no script."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from audit.audited import DONE, STUB, WORKED, Audited
from audit.pages import hostile_page, many_packets
from browser.chromium import Page

HIDDEN = "document.getElementById({!r}).hidden"


@pytest.fixture
def opened(page: Page, report: Path) -> Page:
    """The report as it is first seen."""
    show(page, report)
    return page


def show(page: Page, path: Path) -> None:
    """Opens a page in a light window of usual size, with nothing noted yet."""
    page.look()
    page.open("about:blank")
    page.requests.clear()
    page.complaints.clear()
    page.open(path.as_uri())


def focused(page: Page) -> str:
    """What has the focus: the words that name it."""
    script = "(e => e.getAttribute('aria-label') || e.id || e.textContent.trim())(document.activeElement)"
    return str(page.ask(script))


def rows(page: Page) -> list[str]:
    names: list[str] = page.ask("[...document.querySelectorAll('#list tbody th')].map(e => e.textContent)")
    return names


def test_nothing_is_fetched_and_nothing_complains(opened: Page, report: Path) -> None:
    for place in (DONE, "packets", "find=code:run_zombie", "no-such-place", "%E0%A4%A"):
        opened.go(place)
    assert opened.requests == [report.as_uri()]
    assert opened.complaints == []


def test_the_first_screen_says_what_is_wrong_since_when_and_who_must_act(opened: Page) -> None:
    script = "[...document.querySelectorAll('#verdict *')].filter(e => e.getBoundingClientRect().bottom < 900)"
    seen = opened.ask(f"{script}.map(e => e.textContent).join(' ')")
    assert "3 errors" in seen
    assert "Run still open although its work has ended" in seen
    assert "since 2026-03-01" in seen
    assert "to act: the orchestrator" in seen


def test_search_finds_by_id_lane_holder_and_finding(opened: Page) -> None:
    for words, expected in (("dance", [STUB]), ("in_progress", [WORKED]), ("coder", [WORKED]), ("xyz", [])):
        opened.ask("document.getElementById('query').value = ''; document.getElementById('query').focus()")
        opened.type(words)
        assert rows(opened) == expected
    opened.go("find=code:run_zombie")
    assert rows(opened) == [DONE]
    assert opened.ask("document.getElementById('found').textContent") == "1 of 4 packets"


def heads(page: Page) -> list[str]:
    script = "[...document.querySelectorAll('#list thead th')].map(e => e.getAttribute('aria-sort') || '')"
    sorts: list[str] = page.ask(script)
    return sorts


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_it(opened: Page) -> None:
    names = rows(opened)
    opened.ask("document.querySelector('#list thead button').click()")
    assert rows(opened) == sorted(names)
    assert heads(opened)[0] == "ascending"
    opened.ask("document.querySelector('#list thead button').click()")
    assert rows(opened) == sorted(names, reverse=True)
    opened.ask("document.querySelectorAll('#list thead button')[4].click()")
    assert (rows(opened)[0], heads(opened)[0], heads(opened)[4]) == (DONE, "", "descending")


def test_packets_can_be_chosen_by_what_they_wait_for(opened: Page) -> None:
    opened.ask(
        "(e => { e.value = 'dependency'; e.dispatchEvent(new Event('change')); })(document.querySelector('#waits'))"
    )
    assert rows(opened) == [STUB]


def test_names_that_no_signature_proves_are_marked(opened: Page) -> None:
    opened.go("packets")
    script = f"document.querySelector('#list a[href=\"#{DONE}\"]').closest('tr').lastElementChild.textContent"
    assert opened.ask(script) == "validator claimed"


def test_a_board_that_hardly_moved_is_not_drawn_as_slabs(opened: Page) -> None:
    assert opened.ask("document.querySelectorAll('svg.chart').length") == 0
    assert opened.ask("[...document.querySelectorAll('meter + span')].every(e => /^[0-9]+ %$/.test(e.textContent))")


def test_files_and_commits_lead_to_the_forge(page: Page, faulty: Audited, tmp_path: Path) -> None:
    path = tmp_path / "linked.html"
    faulty.git("remote", "add", "origin", "git@github.com:acme/greet.git")
    faulty("audit", "--out", str(path))
    faulty.git("remote", "remove", "origin")
    show(page, path)
    page.go(DONE)
    links = page.ask("[...document.querySelectorAll('#packet a')].map(e => e.href).filter(e => e.startsWith('https'))")
    assert any(link.startswith("https://github.com/acme/greet/commit/") for link in links)
    assert any("/blob/" in link and link.endswith("SPEC_v1.md#L6") for link in links)
    assert page.requests == [path.as_uri()]


def test_a_deep_link_opens_the_packet(page: Page, report: Path) -> None:
    page.open("about:blank")
    page.open(f"{report.as_uri()}#{DONE}")
    assert page.ask("document.title") == DONE
    assert page.ask(HIDDEN.format("overview"))
    shown = page.ask("document.getElementById('packet').innerText")
    for words in ("run run-1 was never closed", "verdict.given", "exit code 0", "was changed", "on the target branch"):
        assert words in shown
    page.ask("history.pushState(null, '', '#')")
    page.go("packets")
    assert not page.ask(HIDDEN.format("overview"))


def test_the_keyboard_reaches_everything(opened: Page) -> None:
    wanted = {"Skip to the content", "Packets", "query", DONE, "Table of packets"}
    reached = set()
    for _ in range(60):
        opened.press("Tab")
        reached.add(focused(opened))
    assert wanted <= reached, wanted - reached
    assert opened.ask("document.querySelectorAll('summary').length") > 3
    opened.ask("document.querySelector('summary').focus()")
    opened.press("Enter")
    assert opened.ask("document.querySelector('details').open")
    opened.ask(f"document.querySelector('#list a[href=\"#{DONE}\"]').focus()")
    opened.press("Enter")
    opened.settle()
    assert focused(opened) == "packet-title"


def test_a_screen_reader_finds_its_way(opened: Page) -> None:
    opened.go(DONE)
    nodes: list[dict[str, Any]] = opened.call("Accessibility.getFullAXTree")["nodes"]
    shown = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    roles = {role for role, _ in shown}
    assert {"banner", "navigation", "main", "contentinfo", "article", "table", "columnheader"} <= roles
    assert ("heading", DONE) in shown
    unnamed = [role for role, name in shown if role in {"link", "button", "searchbox", "image", "region"} and not name]
    assert unnamed == []
    levels = opened.ask(
        "[...document.querySelectorAll('h1,h2,h3,h4')].filter(e => e.offsetParent).map(e => +e.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert opened.ask("document.documentElement.lang") == "en"


def contrast(page: Page, selector: str) -> float:
    """The ratio of luminances of an element's text and the page, as WCAG counts."""
    script = """(selector => {
      const light = text => { const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map(v => v / 255)
        .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
      const own = light(getComputedStyle(document.querySelector(selector)).color);
      const behind = light(getComputedStyle(document.body).backgroundColor);
      return (Math.max(own, behind) + .05) / (Math.min(own, behind) + .05); })"""
    return float(page.ask(f"{script}({selector!r})"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_can_be_read_in_light_and_dark(opened: Page, dark: bool) -> None:
    opened.look(dark=dark)
    background = opened.ask("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(253, 253, 251)") is not dark
    for selector in ("body", "h1", "h2.error", ".severity", ".who", "nav a", "header p", "#list th"):
        assert contrast(opened, selector) >= 4.5, selector


@pytest.mark.parametrize("place", ["", DONE])
def test_a_narrow_window_scrolls_in_one_direction_only(opened: Page, place: str) -> None:
    opened.look(width=360, height=800)
    opened.go(place)
    assert opened.ask("document.documentElement.scrollWidth") <= 360


def test_it_prints(opened: Page) -> None:
    printed = opened.printed()
    assert printed.startswith(b"%PDF")
    opened.look(media="print")
    assert opened.ask("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_without_a_script_the_summary_stays_readable(page: Page, report: Path) -> None:
    page.look()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(report.as_uri())
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        found = page.call("DOM.querySelectorAll", nodeId=root, selector="#list tbody tr")["nodeIds"]
        assert len(found) == 4
        hidden = page.call("DOM.querySelectorAll", nodeId=root, selector="form[hidden], #pages[hidden]")["nodeIds"]
        assert len(hidden) == 2
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_text_of_the_repository_is_never_run(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(hostile_page(), "utf-8")
    show(page, path)
    names = page.ask("JSON.parse(document.getElementById('index').textContent).rows.map(r => r[0])")
    for name in names:
        page.go(name)
    assert page.ask("window.harmed") is None
    assert page.ask("document.querySelectorAll('script').length") == 3
    assert page.ask("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert page.requests == [path.as_uri()]
    assert page.complaints == []


def test_ten_thousand_packets_are_not_all_in_the_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    path.write_text(many_packets(10_000), "utf-8")
    show(page, path)
    assert page.ask("document.getElementsByTagName('*').length") < 3_000
    assert len(rows(page)) == 100
    page.ask("document.getElementById('after').click()")
    page.settle()
    assert page.ask("document.getElementById('page').textContent") == "Page 2 of 100"
    page.ask("document.getElementById('query').focus()")
    page.type("WP-1-Part-9999-v1")
    assert rows(page) == ["WP-1-Part-9999-v1"]
    page.go("WP-1-Part-9999-v1")
    assert page.ask("document.getElementById('packet-title').textContent") == "WP-1-Part-9999-v1"
    assert page.complaints == []
