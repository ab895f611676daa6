"""The pages look as they did when somebody last looked at them. WORKPACKET_PICTURES=write takes new references."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.audited import DONE, WORKED, build
from browser.chromium import Page
from browser.pictures import difference, picture
from live.running import with_runs
from live.serving import Server, served

REFERENCES = Path(__file__).parent / "references"
WRITE = os.environ.get("WORKPACKET_PICTURES") == "write"
# The share of blocks of 8 by 8 pixels that may differ: the machines' fonts are smoothed in slightly different ways.
TOLERANCE = 0.02
PAGES = {
    "board": "/0/", "packet": f"/0/packet/{WORKED}", "trace": f"/0/packet/{DONE}/trace", "waiting": "/0/waiting",
    "run": f"/0/run/{WORKED}/nightly@00000001", "stopped": "/0/run/import@00000001", "runs": "/0/runs",
    "history": "/0/history",
}  # fmt: skip
HEIGHT = 900
LOOKS = {"narrow": (400, False), "wide": (1600, False), "dark": (1024, True)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = build(tmp_path_factory.mktemp("pictures") / "town").root
    with served(with_runs(root, WORKED), options=("--write", "--as", "coder")) as running:
        yield running


@pytest.fixture(scope="module")
def opened(page: Page, server: Server) -> Page:
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.open(server.address)
    return page


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_it_did(name: str, look: str, opened: Page, server: Server, tmp_path: Path) -> None:
    width, dark = LOOKS[look]
    opened.look(width=width, height=HEIGHT, dark=dark)
    opened.open(f"http://localhost:{server.port}{server.prefix}{PAGES[name]}")
    # What differs in every run: times, the folder, and how long steps took.
    for rule in (".tree small, .bars rect, .repository { visibility: hidden }", "time, .said { display: none }"):
        opened.ask(f"document.styleSheets[0].insertRule({rule!r}, document.styleSheets[0].cssRules.length)")
    opened.settle()
    taken = picture(opened, tmp_path / "taken.png", width, HEIGHT)
    reference = REFERENCES / f"{name}-{look}.png"
    if WRITE:
        REFERENCES.mkdir(exist_ok=True)
        reference.write_bytes(taken.read_bytes())
    assert difference(opened, taken, reference) <= TOLERANCE


def test_a_page_that_looks_different_is_noticed(opened: Page, server: Server, tmp_path: Path) -> None:
    width, _ = LOOKS["narrow"]
    opened.look(width=width, height=HEIGHT, dark=True)
    opened.open(f"http://localhost:{server.port}{server.prefix}/0/")
    dark = picture(opened, tmp_path / "taken.png", width, HEIGHT)
    assert difference(opened, dark, REFERENCES / "board-narrow.png") > 10 * TOLERANCE
    assert difference(opened, REFERENCES / "runs-wide.png", REFERENCES / "history-wide.png") > TOLERANCE
