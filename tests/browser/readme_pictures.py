"""Draws the pictures of the README: the live board of this repository, in Chromium. `just pictures` calls it."""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from architecture.source_tree import ROOT
from browser.chromium import Page, browser, found
from live.serving import served

FOLDER = ROOT / "docs/pictures"
WIDTH, HEIGHT = 1280, 720


class Picture(NamedTuple):
    """`path` is the page that is drawn; `ready` is true in the page as soon as it shows what it should."""

    path: str
    ready: str
    dark: bool = False


PICTURES: Mapping[str, Picture] = {
    "board": Picture("/0/", "document.querySelectorAll('.card').length > 3"),
    "trace": Picture("/0/packet/{packet}/trace", "Boolean(document.querySelector('main svg'))", dark=True),
}


def draw(page: Page, root: Path, folder: Path) -> list[Path]:
    """The pictures, of what is committed in the repository at `root`; the packet is the one that was finished last."""
    drawn = []
    clone = folder / "clone" / "workpacket"
    subprocess.run(["git", "clone", "--quiet", str(root), str(clone)], check=True)
    with served(clone) as running:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
        page.open(running.address)
        packet = page.ask("document.querySelector('.card.validated').id")
        for name, wanted in PICTURES.items():
            page.look(width=WIDTH, height=HEIGHT, dark=wanted.dark)
            page.open(f"http://localhost:{running.port}{running.prefix}{wanted.path.format(packet=packet)}")
            assert page.ask(wanted.ready), page.ask("document.body.innerText")
            page.settle()
            reply = page.call("Page.captureScreenshot", format="webp", quality=80)
            drawn.append(folder / f"{name}.webp")
            drawn[-1].write_bytes(base64.b64decode(reply["data"]))
        page.look()
        running.end()
    shutil.rmtree(clone.parent)
    return drawn


def main() -> int:
    program = found()
    if program is None:
        sys.stderr.write("There is no Chromium here; on Debian: apt-get install chromium\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    profile = Path(tempfile.mkdtemp(prefix="workpacket-pictures-"))
    try:
        with browser(program, profile / "profile") as page:
            for path in draw(page, ROOT, FOLDER):
                sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KB\n")
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
