"""The live board as a person uses it: in a real browser, with a mouse, with keys alone, without script, in the dark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode

import pytest

from audit.audited import DONE, STUB, STUCK, WORKED, Audited, build
from browser.chromium import Page
from live.running import with_runs
from live.serving import Server, served

PACKET = f"/0/packet/{WORKED}"
NIGHTLY = f"/0/run/{WORKED}/nightly@00000001"
PAGES = (
    "/0/", PACKET, f"/0/packet/{STUCK}", f"/0/packet/{STUB}", f"/0/packet/{DONE}/trace", "/0/waiting", "/0/runs",
    NIGHTLY, "/0/run/import@00000001", "/0/run/ask@00000001", "/0/history", "/0/trace?q=src/greet.py:1",
    "/0/trace?q=src/greet.py&about=impact", "/0/trace?all=1", "/0/?group=holder", "/0/?at=HEAD",
)  # fmt: skip
HOSTILE = (
    "<img src=x onerror='window.harmed=1'><svg onload='window.harmed=1'>\u202egnp</p></li>"
    "<script>window.harmed=1</script>"
)
# The file axe.min.js of the npm package axe-core.
AXE = os.environ.get("WORKPACKET_AXE", "")


@pytest.fixture
def town(tmp_path: Path) -> Audited:
    return build(tmp_path / "town")


@pytest.fixture(scope="module")
def town_with_runs(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    made = build(tmp_path_factory.mktemp("runs") / "town")
    with_runs(made.root, WORKED)
    return made


@pytest.fixture(scope="module")
def reading(town_with_runs: Audited) -> Iterator[Server]:
    """A server of a repository with runs, for tests that change nothing."""
    with served(town_with_runs.root, options=("--write", "--as", "coder")) as running:
        yield running


@pytest.fixture(scope="module")
def entered(reading: Server, page: Page) -> Page:
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.open(reading.address)
    return page


@pytest.fixture
def server(town: Audited) -> Iterator[Server]:
    with served(town.root, options=("--write", "--as", "coder")) as running:
        yield running
        assert running.end() == (0, "")


@pytest.fixture
def board(page: Page, server: Server) -> Page:
    page.look()
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.open("about:blank")
    page.requests.clear()
    page.complaints.clear()
    page.open(server.address)
    return page


def at(server: Server, path: str) -> str:
    return f"http://localhost:{server.port}{server.prefix}{path}"


def until(page: Page, expression: str, *, patience: float = 20.0) -> float:
    """Seconds until the expression is true in the page."""
    began = time.monotonic()
    while not asked(page, expression):
        assert time.monotonic() - began < patience, f"{expression}\n{page.ask('document.body.innerText')}"
        time.sleep(0.02)
    return time.monotonic() - began


def asked(page: Page, expression: str) -> bool:
    """Whether the expression is true; a page that is just being left, or has not come yet, has no answer."""
    try:
        return bool(page.ask(expression))
    except AssertionError:
        return False


_MIDDLE = """(e => {
  e.scrollIntoView({block: "center"});
  const r = e.getBoundingClientRect();
  return [r.x + r.width / 2, r.y + r.height / 2];
})(document.querySelector(%s))"""


def click(page: Page, selector: str) -> None:
    x, y = page.ask(_MIDDLE % json.dumps(selector))
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def key(page: Page, name: str, code: int, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if text and kind == "keyDown" else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)
    page.settle()


def command(town: Audited, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "workpacket", *words], cwd=town.root, check=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def titles(page: Page) -> list[str]:
    found: list[str] = page.ask("[...document.querySelectorAll('.card')].map(e => e.id)")
    return found


def lane_of(name: str) -> str:
    return f"document.getElementById('{name}')?.closest('section').querySelector('h2').firstChild.textContent.trim()"


def test_nothing_comes_from_elsewhere_and_nothing_complains(entered: Page, reading: Server) -> None:
    entered.open("about:blank")
    entered.requests.clear()
    entered.complaints.clear()
    for path in PAGES:
        entered.open(at(reading, path))
    asked = [address for address in entered.requests if address.startswith("http")]
    assert all(address.startswith(f"http://localhost:{reading.port}/") for address in asked)
    assert entered.complaints == []


def test_what_others_do_appears_by_itself(board: Page, town: Audited) -> None:
    """The fastest of some changes, because the machine may have other work, is on the page within a second."""
    took = []
    for change in ("unblock", "block", "unblock", "block", "unblock"):
        more = () if change == "unblock" else ("--reason", "no melody", "--waits-for", "licence")
        command(town, "packet", change, STUCK, *more, "--as", "ann")
        took.append(until(board, f"({lane_of(STUCK)} === 'Blocked') === {str(change == 'block').lower()}"))
    assert min(took) < 1
    path = town.root / town.packet_path(WORKED)
    command(town, "packet", "block", WORKED, "--reason", "waits for the weather", "--waits-for", "sun", "--as", "coder")
    until(board, f"document.getElementById('{WORKED}').textContent.includes('weather')")
    assert path.exists()
    town.git("stash", "--include-untracked", "--quiet")
    until(board, f"{lane_of(WORKED)} === 'In Progress'")
    assert board.complaints == []


def test_what_is_open_and_focused_stays_when_something_else_changes(board: Page, town: Audited) -> None:
    click(board, f"#{DONE} summary")
    until(board, f"document.querySelector('#{DONE} details div').textContent.length > 10")
    board.ask(f"document.querySelector('#{STUB} .title').focus()")
    command(town, "packet", "unblock", STUCK, "--as", "ann")
    until(board, f"{lane_of(STUCK)} !== 'Blocked'")
    assert board.ask(f"document.querySelector('#{DONE} details').open")
    assert board.ask("document.activeElement.closest('.card').id") == STUB


def test_every_condition_of_the_next_lane_unfolds_on_the_card(board: Page) -> None:
    click(board, f"#{WORKED} summary")
    until(board, f"document.querySelectorAll('#{WORKED} .unmet li').length === 3")
    shown = board.ask(f"document.querySelector('#{WORKED} .unmet').innerText")
    assert "evidence_missing" in shown
    assert "workpacket submit" in shown


def test_the_board_is_used_with_keys_alone(board: Page, server: Server) -> None:
    key(board, "/", 191, "/")
    assert board.ask("document.activeElement.id") == "q"
    board.type("melody")
    until(board, "document.querySelectorAll('.card').length === 1")
    assert titles(board) == [STUCK]
    key(board, "Escape", 27)
    until(board, "document.querySelectorAll('.card').length === 4")
    board.ask("document.getElementById('content').focus()")
    seen = []
    for _ in range(4):
        key(board, "ArrowRight", 39)
        seen.append(board.ask("document.activeElement.closest('.card')?.id"))
    assert sorted(seen) == sorted([STUB, WORKED, DONE, STUCK])
    key(board, "ArrowLeft", 37)
    board.press("Enter")
    until(board, "location.pathname.includes('/packet/')")
    assert board.ask("location.pathname") == f"{server.prefix}/0/packet/{seen[-2]}"


def test_an_action_by_mouse(board: Page, server: Server, town: Audited) -> None:
    board.open(at(server, PACKET))
    click(board, "#act-block summary")
    assert "workpacket packet block" in board.ask("document.querySelector('#act-block code').textContent")
    click(board, "#act-block-reason")
    board.type("no weather")
    click(board, "#act-block-waits-for")
    board.type("the sun")
    click(board, "#act-block button")
    until(board, "document.querySelector('h1')?.textContent === 'Done'")
    board.open(at(server, "/0/"))
    assert board.ask(lane_of(WORKED)) == "Blocked"
    assert town.events(WORKED)[-1].actor.id == "coder"


def test_an_action_by_keys_alone(board: Page, server: Server, town: Audited) -> None:
    board.open(at(server, PACKET))
    for _ in range(60):
        board.press("Tab")
        if board.ask("document.activeElement.closest('#act-note') && document.activeElement.tagName") == "SUMMARY":
            break
    board.press("Enter")
    board.settle()
    board.press("Tab")
    board.type("The weather is good.")
    board.press("Tab")
    board.press("Enter")
    until(board, "document.querySelector('h1')?.textContent === 'Done'")
    assert town.events(WORKED)[-1].text("text") == "The weather is good."


def test_a_refusal_is_shown_whole(board: Page, server: Server) -> None:
    board.open(at(server, PACKET))
    click(board, "#act-done summary")
    click(board, "#act-done button")
    until(board, "document.querySelector('h1')?.textContent === 'Refused'")
    told = board.ask("document.querySelector('main').innerText")
    assert "evidence_missing" in told or "other_work_branch" in told
    assert "workpacket" in told


def test_two_people_act_at_once_and_one_is_told(board: Page, server: Server, town: Audited) -> None:
    """Both pages were opened before either acted."""
    command(town, "packet", "unblock", STUCK, "--as", "ann")
    town.git("add", "--all")
    town.git("commit", "--quiet", "-m", "x")
    with served(town.root, options=("--write", "--as", "ben")) as second:
        one, two = server, second
        first, other = board, second.browser()
        first.open(at(one, f"/0/packet/{STUCK}"))
        csrf = other.csrf(f"/0/packet/{STUCK}")
        assert two.port != one.port
        click(first, "#act-block summary")
        click(first, "#act-block-reason")
        first.type("first")
        click(first, "#act-block-waits-for")
        first.type("the sun")
        click(first, "#act-block button")
        until(first, "document.querySelector('h1')?.textContent === 'Done'")
        given = {"csrf": csrf, "id": STUCK, "reason": "second", "waits-for": "x"}
        reply = other.ask("POST", "/0/act/block", urlencode(given).encode())
        told = other.get(reply.header("Location")).text
        assert "Refused" in told
        assert "BLOCKED" in told


def test_what_someone_types_is_kept_when_the_packet_changes(board: Page, server: Server, town: Audited) -> None:
    board.open(at(server, PACKET))
    click(board, "#act-note summary")
    click(board, "#act-note-text")
    board.type("half a sentence")
    command(town, "packet", "note", WORKED, "another", "--as", "ann")
    until(board, "document.getElementById('said').textContent.includes('changed')")
    assert board.ask("document.getElementById('act-note-text').value") == "half a sentence"


def test_without_script_everything_is_there(board: Page, server: Server) -> None:
    board.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        board.open(at(server, "/0/"))
        assert len(titles(board)) == 4
        click(board, f"#{WORKED} summary")
        click(board, f"#{WORKED} details a")
        until(board, "location.hash === '#missing'")
        assert "evidence_missing" in board.ask("document.getElementById('missing').innerText")
    finally:
        board.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("width", [400, 600, 1000, 1440, 2560])
def test_no_page_is_wider_than_the_window(entered: Page, reading: Server, width: int) -> None:
    for path in PAGES:
        entered.look(width=width, height=900)
        entered.open(at(reading, path))
        assert entered.ask("document.documentElement.scrollWidth") <= width, path
    entered.open(at(reading, "/0/"))
    tops = entered.ask("[...document.querySelectorAll('.lane')].map(e => Math.round(e.getBoundingClientRect().top))")
    assert len(set(tops)) == 1, "lanes are side by side"
    script = "[...document.querySelectorAll('.lane')].map(e => e.getBoundingClientRect()).map(r => [r.left, r.right])"
    assert all(one[1] <= other[0] for one, other in pairwise(entered.ask(script))), "and do not overlap"


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(entered: Page, reading: Server, dark: bool, width: int) -> None:
    """With everything unfolded."""
    if not AXE:
        pytest.skip("WORKPACKET_AXE does not name axe.min.js")
    script = Path(AXE).read_text("utf-8")
    entered.look(dark=dark, width=width)
    found = {}
    for path in (*PAGES, "/0/audit"):
        entered.open(at(reading, path))
        entered.ask("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        until(
            entered,
            "[...document.querySelectorAll('[data-load] > div')].every(each => !each.querySelector('a:only-child'))",
        )
        entered.settle()
        entered.call("Runtime.evaluate", expression=script)
        found_here = "v => [v.id, v.nodes.map(n => n.html + ' ' + n.failureSummary)]"
        result = entered.ask(f"axe.run().then(r => r.violations.map({found_here}))")
        if result:
            found[path] = result
    assert found == {}


def test_motion_is_reduced_when_that_is_asked_for(board: Page, server: Server) -> None:
    feature = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    board.call("Emulation.setEmulatedMedia", features=feature)
    board.ask(f"document.getElementById('{WORKED}').classList.add('fresh')")
    assert board.ask(f"getComputedStyle(document.getElementById('{WORKED}')).animationName") == "none"


def test_hostile_texts_do_nothing(page: Page, town: Audited) -> None:
    with_runs(town.root, WORKED, HOSTILE)
    command(town, "packet", "note", WORKED, HOSTILE, "--as", "ann")
    command(town, "packet", "block", WORKED, "--reason", HOSTILE, "--waits-for", HOSTILE, "--as", "coder")
    stub = town.root / f".GOV/task_packets/stubs/{STUB}.md"
    stub.write_text(stub.read_text("utf-8").replace("Greet the user", HOSTILE + "x" * 2_000_000), "utf-8")
    with served(town.root, options=("--write", "--as", "ann")) as running:
        page.look()
        page.open("about:blank")
        page.complaints.clear()
        page.open(running.address)
        for path in (*PAGES, "/0/run/odd@00000001", f"/0/?q={HOSTILE.partition(' ')[0]}"):
            page.open(at(running, path))
            assert page.ask("window.harmed") is None
            assert (
                page.ask(
                    "document.querySelectorAll('main img, main script, main svg:not(.bars, .graph, .chart)').length"
                )
                == 0
            )
            assert "\u202e" not in page.ask("document.body.textContent")
            assert page.ask("document.body.textContent.length") < 300_000
        assert page.complaints == []
        running.end()
