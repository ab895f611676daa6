"""docs/approvals/tutorial.md works as it stands: every line is typed at a real terminal, with the real ssh-keygen."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from architecture.source_tree import ROOT
from guided_tour.terminal import at_terminal

TUTORIAL = ROOT / "docs" / "approvals" / "tutorial.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PHRASE = "correct horse"

# What is typed when a block with this command asks.
ANSWERS = {
    "workpacket key init": [("Enter passphrase", PHRASE), ("same passphrase again", PHRASE)],
    "workpacket approve ": [("type: ", "APPROVE REFINEMENT WP-1-Parser-v1"), ("Enter passphrase", PHRASE)],
    "workpacket approvals revoke ": [("type: ", "REVOKE REFINEMENT WP-1-Parser-v1"), ("Enter passphrase", PHRASE)],
}

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")


def test_every_block_does_what_the_tutorial_says(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    screen = ""
    blocks = BLOCK.findall(TUTORIAL.read_text("utf-8"))
    assert len(blocks) > 12
    for kind, text in blocks:
        if kind == "sh":
            answers = next((typed for command, typed in ANSWERS.items() if command in text), [])
            status, screen = at_terminal(["sh", "-eu", "-c", text], tmp_path, answers, environment)
            assert status == 0, f"{text}\n{screen}"
        else:
            for line in text.splitlines():
                wanted = re.escape(line).replace(r"\.\.\.", ".*")
                assert re.search(wanted, screen), f"{line}\n{screen}"


def environment_of(folder: Path) -> dict[str, str]:
    """A home of its own, and a command `workpacket` in the PATH: that of an installed wheel in WORKPACKET_PROGRAMS."""
    installed = os.environ.get("WORKPACKET_PROGRAMS", "")
    programs = folder / "bin"
    programs.mkdir()
    command = programs / "workpacket"
    command.write_text(f"#!{sys.executable}\nfrom workpacket.cli.main import console\nconsole()\n")
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in {"SSH_AUTH_SOCK", "WORKPACKET_KEY"}}
    return {
        **kept,
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home" / "config"),
        "PATH": f"{installed or programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": "" if installed else os.pathsep.join(sys.path),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_MERGE_AUTOEDIT": "no",  # at a terminal, git would open an editor for the message and wait
        "NO_COLOR": "1",
    }
