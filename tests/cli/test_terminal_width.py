"""What commands print fits the terminal, and has colors only where they are wanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from cli.commands import Commands
from workpacket.cli.overview import _headed
from workpacket.problem import Problem
from workpacket.report.terminal import Style, unmet_lines

WP = "WP-1-Parser-v1"

SHOW = "from workpacket.cli.options import terminal; print(terminal()[:2])"


def test_a_terminal_without_a_size_counts_as_one_of_unknown_width() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", SHOW], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    assert os.read(ours, 100).decode().strip() == "(True, None)"
    os.close(ours)


CONDITION = Problem(
    "approval_missing", "the packet needs an approval from somebody else", hint="workpacket approve " + WP
)


def test_conditions_fit_the_terminal_and_their_commands_stay_whole() -> None:
    lines = "".join(unmet_lines([CONDITION], Style(width=40))).splitlines()
    assert [line for line in lines if len(line) > 40] == [f"     -> {CONDITION.hint}"]
    assert " ".join(" ".join(lines).split()) == f"1. {CONDITION.message} (approval_missing) -> {CONDITION.hint}"


def test_conditions_have_colors_only_where_they_are_wanted() -> None:
    plain, painted = (unmet_lines([CONDITION], Style(colour=wanted)) for wanted in (False, True))
    assert "\x1b" not in "".join(plain)
    assert "\x1b[1mapproval_missing\x1b[0m" in painted[0]
    assert re.sub(r"\x1b\[[0-9;]*m", "", "".join(painted)) == "".join(plain)


@pytest.mark.parametrize("words", [["why", WP], ["status"], ["submit", WP]])
def test_what_is_missing_is_colored_on_request(commands: Commands, words: list[str]) -> None:
    commands("init")
    commands("new", WP, "--what", "Read", "--why", "To read")
    commands.write(".GOV/log/WP-1-Other-v1/x.json", "not an event")
    plain, painted = commands(*words), commands(*words, "--color", "always")
    assert "\x1b" not in plain.out + plain.err
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted.out + painted.err) == plain.out + plain.err
    if words[0] != "status":
        assert "\x1b[" in painted.out + painted.err


@pytest.mark.parametrize("width", [30, 60])
def test_a_line_of_the_status_is_wrapped_below_its_first_word(width: int) -> None:
    lines = _headed("held", "WP-1-Parser-v1 by somebody with a name that is long", "path", Style(width=width))
    assert max(map(len, lines)) <= width
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == "held: WP-1-Parser-v1 by somebody with a name that is long"
