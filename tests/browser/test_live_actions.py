"""Each action of the pages, once with the mouse and once with keys alone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from audit.audited import STUCK, WORKED, Audited, build
from browser.chromium import Page
from browser.test_live import at, click, command, key, until
from live.running import waiting_run, with_runs
from live.serving import served
from workpacket.cli.live_actions import ACTS


def nothing(town: Audited) -> None:
    """The repository is ready for the action."""


def unblocked(town: Audited) -> None:
    town.done("packet", "unblock", STUCK)
    town.commit("unblocked")


def worked(town: Audited) -> None:
    town.git("switch", "--quiet", f"wp/{WORKED}")
    town.git("merge", "--quiet", "main")
    town.write("src/greet.py", "print('Bye', name)\n")
    town.commit(f"Say goodbye\n\nPacket: {WORKED}")


def submitted(town: Audited) -> None:
    worked(town)
    town.done("submit", WORKED, "--as", "coder", "--prove", "1=python -c pass", "--prove", "2=src/greet.py:1")
    town.write("reports/farewell.md", "It says goodbye.\n")


def claimed(town: Audited) -> None:
    """Just now: a lease that has ended is not renewed."""
    unblocked(town)
    command(town, "claim", STUCK, "--branch", f"wp/{STUCK}", "--as", "coder")


def ran(town: Audited) -> None:
    """In this folder: a run that is moved to another one asks about that."""
    with_runs(town.root, WORKED)


class Case(NamedTuple):
    """What is filled in, and the title of the page that follows."""

    page: str
    fields: dict[str, str]
    title: str = "Done"
    actor: str = "coder"
    prepare: Callable[[Audited], None] = nothing


ON_WORKED, ON_STUCK = f"/0/packet/{WORKED}", f"/0/packet/{STUCK}"
CASES = {
    "start": Case(ON_STUCK, {}, prepare=unblocked),
    "claim": Case(ON_STUCK, {"branch": f"wp/{STUCK}"}, prepare=unblocked),
    "renew": Case(ON_STUCK, {}, prepare=claimed),
    "done": Case(ON_WORKED, {"prove": "1=python -c pass\n2=src/greet.py:1"}, prepare=worked),
    "verdict": Case(
        ON_WORKED, {"verdict": "PASS", "report": "reports/farewell.md"}, actor="validator", prepare=submitted
    ),
    "release": Case(ON_WORKED, {"reason": "no time"}),
    "block": Case(ON_WORKED, {"reason": "no weather", "waits-for": "the sun"}),
    "unblock": Case(ON_STUCK, {"reason": "licensed"}),
    "note": Case(ON_WORKED, {"text": "The weather is good."}),
    "answer": Case("/0/run/ask@00000001", {"answer": "yes"}, prepare=ran),
    "cancel": Case("/0/run/import@00000001", {"reason": "enough"}, prepare=ran),
    "fork": Case("/0/run/import@00000001", {"once": "again"}, prepare=ran),
    "signal": Case("/0/run/order@00000001", {"value": '{"sum": 7}'}),
    "verify": Case("/0/run/import@00000001", {}, prepare=ran),
    "settle": Case("/0/runs", {}, prepare=ran),
    # It is in this store, so it is not lost.
    "unlink": Case(
        "/0/runs", {"run": f"{WORKED}/nightly@00000001", "reason": "lost"}, title="Failed", actor="ann", prepare=ran
    ),
    # The queue is on a server: here the command says so.
    "revive": Case("/0/runs", {}, title=""),
}


def test_every_action_is_tried() -> None:
    assert CASES.keys() == ACTS.keys()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return build(tmp_path_factory.mktemp("original") / "town")


@pytest.fixture
def town(original: Audited, tmp_path: Path) -> Iterator[Audited]:
    root = tmp_path / "town"
    shutil.copytree(original.root, root, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield Audited(root, None, original.clock)


def form_of(action: str) -> str:
    return f"details.act:has(form[action$='/act/{action}'])"


@pytest.mark.parametrize("how", ["mouse", "keys"])
@pytest.mark.parametrize("action", [name for name, case in CASES.items() if case.title])
def test_an_action(action: str, how: str, page: Page, town: Audited) -> None:
    case = CASES[action]
    case.prepare(town)
    with ExitStack() as stack:
        if action == "signal":
            stack.enter_context(waiting_run(town.root))
        running = stack.enter_context(served(town.root, options=("--write", "--as", case.actor)))
        page.look()
        page.call("Emulation.setScriptExecutionDisabled", value=False)
        page.open(running.address)
        place = f"Boolean(document.querySelector({json.dumps(form_of(action))}))"
        for _ in range(50):
            page.open(at(running, case.page))
            if page.ask(place):
                break
            time.sleep(0.1)
        (with_mouse if how == "mouse" else with_keys)(page, action, case.fields)
        until(page, "['Done', 'Refused', 'Failed'].includes(document.querySelector('h1')?.textContent)")
        assert page.ask("document.querySelector('h1').textContent") == case.title, page.ask("document.body.innerText")


def with_mouse(page: Page, action: str, fields: dict[str, str]) -> None:
    form = form_of(action)
    click(page, f"{form} summary")
    assert "workpacket" in page.ask(f"document.querySelector({json.dumps(form + ' code')}).textContent")
    for name, value in fields.items():
        field = f"{form} [name='{name}']"
        if page.ask(f"document.querySelector({json.dumps(field)}).tagName") == "SELECT":
            # The list that it opens is not a part of the page.
            page.ask(f"document.querySelector({json.dumps(field)}).value = {json.dumps(value)}")
            continue
        click(page, field)
        page.type(value)
    click(page, f"{form} button")


def with_keys(page: Page, action: str, fields: dict[str, str]) -> None:
    here = f"document.activeElement?.closest({json.dumps(form_of(action))})"
    tab_to(page, f"{here} && document.activeElement.tagName === 'SUMMARY'")
    page.press("Enter")
    for name, value in fields.items():
        tab_to(page, f"{here} && document.activeElement.name === {json.dumps(name)}")
        if page.ask("document.activeElement.tagName") == "SELECT":
            letter = value[0]
            key(page, letter, ord(letter.upper()), letter)
            assert page.ask("document.activeElement.value") == value
        else:
            page.type(value)
    tab_to(page, f"{here} && document.activeElement.tagName === 'BUTTON'")
    page.press("Enter")


def tab_to(page: Page, condition: str) -> None:
    for _ in range(80):
        if page.ask(f"Boolean({condition})"):
            return
        page.press("Tab")
    raise AssertionError(f"not reached with Tab: {condition}")
