"""The tour plays to its end: each of its commands ends as the tour says, or it stops."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from architecture.source_tree import ROOT
from guided_tour.__main__ import NEEDED
from workpacket.cli.commands import resolve

# In the order in which they are first typed.
LIFE = (
    "init", "key", "policy", "new", "refine", "activate", "evidence", "approve", "approvals", "check",
    "prepare", "claim", "resume", "submit", "verdict", "merged", "board", "history", "log", "trace", "audit",
)  # fmt: skip
PICTURE = ROOT / "docs" / "tour.svg"
pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")


class Played(NamedTuple):
    screen: str
    drawing: bytes


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("tour")
    drawing = folder / "tour.svg"
    done = tour(folder, "--fast", "--record", str(drawing))
    assert done.returncode == 0, done.stdout + done.stderr
    return Played(done.stdout, drawing.read_bytes())


def tour(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder)}
    if path is not None:
        environment["PATH"] = path
    command = [sys.executable, "-m", "guided_tour", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_it_shows_the_whole_life_of_a_packet(played: Played) -> None:
    lines = re.findall(r"^\$ workpacket (.+)", played.screen, re.MULTILINE)
    typed = [resolve(line.split())[0] for line in lines]
    assert tuple(dict.fromkeys(typed))[: len(LIFE)] == LIFE
    for words in ("3 conditions are not met", "signature_invalid", "board_drift", "inputs_changed", "verdict_by_coder"):
        assert words in played.screen
    # A rewritten criterion, a file without a packet, a second name as judge.
    for refused in ("contract_changed", "change_uncovered", "event_key_missing"):
        assert refused in played.screen
    # `true`, an empty test and a skipped one.
    for hollow in ("proof_trivial", "proof_not_needed", "no_test_executed"):
        assert hollow in played.screen
    assert "WP-1-Greeting-v1 is VALIDATED" in played.screen
    assert re.search(r"^1 de\n2 fr\n1 it$", played.screen, re.MULTILINE)


def test_it_leaves_a_repository_without_findings(played: Played) -> None:
    (left,) = re.findall(r"^cd (\S+)\nworkpacket status$", played.screen, re.MULTILINE)
    root = Path(left)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    checked = subprocess.run(
        [root.parent / "bin" / "workpacket", "check"], cwd=root, capture_output=True, env=environment, check=False
    )
    assert checked.returncode == 0, checked.stdout.decode()


def test_the_picture_in_the_documentation_is_what_the_recipe_draws(played: Played) -> None:
    assert PICTURE.read_bytes() == played.drawing, "look at what the commands show now, and run `just record`"


def test_the_picture_begins_with_success_and_ends_with_refusals(played: Played) -> None:
    shown = [text.text or "" for text in ET.fromstring(played.drawing).iter("{http://www.w3.org/2000/svg}text")]
    refused = next(at for at, text in enumerate(shown) if "refused" in text or "exit status" in text)
    assert any("Nothing is wrong" in text for text in shown[:refused])
    assert "is a stub in the backlog" in shown[2]


def test_the_picture_is_well_formed_and_says_in_words_what_it_shows() -> None:
    root = ET.fromstring(PICTURE.read_text("utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    described = root.findtext(f"{space}desc")
    assert described is not None
    assert "workpacket approve" in described
    shown = [text.text for text in root.iter(f"{space}text") if text.get("class") == "command"]
    assert len([text for text in shown if text and text.startswith("$ ")]) == described.count("; ") + 1


@pytest.mark.parametrize("missing", sorted(NEEDED))
def test_a_missing_program_is_named_with_its_remedy(tmp_path: Path, missing: str) -> None:
    for program in NEEDED.keys() - {missing}:
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    done = tour(tmp_path, "--fast", path=str(tmp_path))
    assert done.returncode == 6
    assert done.stderr == f"tour: {missing} is missing; {NEEDED[missing]} and run this again\n"


def test_help_says_how_to_leave_out_the_pauses(tmp_path: Path) -> None:
    assert "--fast" in tour(tmp_path, "--help").stdout
