"""Every how-to page works as it stands: its files are written, its commands typed, in a repository of its own.

```sh                 typed; it has to end with 0
```sh exit=1          typed; it has to end with 1
```text               lines that the last commands showed, in this order; `*` stands for anything
```yaml file=PATH     written into PATH
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from shell.approvals.test_tutorial import environment_of
from workpacket.lifecycle.init import pinned

PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(r"^```(?P<kind>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Reader:
    """Somebody who does what the page says, in a repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.environment = environment_of(folder) | {"WORKPACKET_ACTOR": ""}
        self.root = folder / "repository"
        self.root.mkdir()
        self.screen = ""
        self.type("git init --quiet --initial-branch=main", 0)
        self.type("git config user.name ann && git config user.email ann@example.org", 0)
        self.type("git commit --quiet --allow-empty -m begin", 0)

    def type(self, text: str, status: int) -> None:
        done = subprocess.run(
            ["bash", "-eu", "-c", text],
            cwd=self.root, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{text}\n{done.stdout}"
        self.screen = done.stdout

    def do(self, kind: str, info: str, text: str) -> None:
        named = re.search(r"file=(\S+)", info)
        if named is not None:
            target = self.root / named[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        elif kind == "sh":
            ends = re.search(r"exit=(\d+)", info)
            self.type(text, int(ends[1]) if ends else 0)
        else:
            assert kind == "text", f"nobody knows what to do with a block of {kind}"
            self.see(text)

    def see(self, text: str) -> None:
        shown = self.screen.splitlines()
        for line in text.splitlines():
            pattern = re.compile(".*".join(map(re.escape, line.split("*"))))
            # A literal `*` of Markdown is matched too, because `.*` matches it.
            at = next((number for number, one in enumerate(shown) if pattern.fullmatch(one)), None)
            assert at is not None, f"{line}\n{self.screen}"
            del shown[: at + 1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_works_as_it_stands(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    blocks = list(BLOCK.finditer(page.read_text("utf-8")))
    assert len(blocks) > 3
    for block in blocks:
        reader.do(block["kind"], block["info"], block["text"])


def test_there_is_a_page_for_each_task() -> None:
    tasks = {"adopt", "agents", "ci", "editors", "harness", "lanes", "migrate", "pull-requests", "serve", "start"}
    assert {page.stem for page in PAGES} == tasks


def test_the_session_for_nox_runs_the_check(tmp_path: Path) -> None:
    """As users have it, but for the installation: the package of this test stands for it."""
    reader = Reader(tmp_path)
    text = (ROOT / "docs/howto/ci.md").read_text("utf-8")
    session = next(block["text"] for block in BLOCK.finditer(text) if "noxfile.py" in block["info"])
    (requirement,) = re.findall(r'session\.install\("([^"]+)"\)', session)
    assert pinned(requirement) == requirement
    (reader.root / "noxfile.py").write_text(session, "utf-8")
    nox = f"{sys.executable} -m nox --force-venv-backend none --no-install -s governance"
    reader.type("workpacket init", 0)
    reader.type(nox, 0)
    assert "no findings" in reader.screen
    (reader.root / ".GOV/roles_shared/SPEC_CURRENT.md").write_text("# Nothing\n", "utf-8")
    reader.type(nox, 1)
