"""The tutorials work as they stand: every line is typed at a real terminal, one page after the other in one folder."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from guided_tour.terminal import at_terminal
from shell.approvals.test_tutorial import environment_of

PAGES = ("light", "orchestrator", "ci", "maintainer")
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PHRASE = "correct horse"
ANSWERS = {
    "workpacket key init": [("Enter passphrase", PHRASE), ("same passphrase again", PHRASE)],
    "--gate verdict": [("type: ", "APPROVE VERDICT WP-1-Greeting-v1"), ("Enter passphrase", PHRASE)],
    "workpacket approve ": [("type: ", "APPROVE REFINEMENT WP-1-Greeting-v1"), ("Enter passphrase", PHRASE)],
}

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")


def test_every_line_of_the_tutorials_does_what_the_page_says(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    for page in PAGES:
        folder = tmp_path
        screen = ""
        blocks = BLOCK.findall((ROOT / "docs" / "tutorials" / f"{page}.md").read_text("utf-8"))
        assert len(blocks) > 6
        for kind, text in blocks:
            if kind == "text":
                for line in text.splitlines():
                    wanted = re.escape(line).replace(r"\.\.\.", ".*")
                    assert re.search(wanted, screen), f"{page}: {line}\n{screen}"
                continue
            answers = next((typed for command, typed in ANSWERS.items() if command in text), [])
            command = f"{text}\npwd > '{tmp_path}/place'"
            status, screen = at_terminal(["sh", "-eu", "-c", command], folder, answers, environment)
            assert status == 0, f"{page}: {text}\n{screen}"
            folder = Path((tmp_path / "place").read_text("utf-8").strip())
