"""`board show` at a terminal and in a pipe, and `board export`."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from guided_tour.terminal import at_terminal
from lifecycle.governed import Governed
from shell.approvals.test_tutorial import environment_of

NAME = "WP-1-Greeting-v1"


@pytest.fixture
def board(governed: Governed) -> Governed:
    governed.begin()
    governed.stub("WP-1-Song-v1")
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "ann", "--branch", "b")
    governed.stub("WP-1-Voice-v1")
    governed.done("packet", "abandon", "WP-1-Voice-v1", "--reason", "x")
    return governed


def test_a_pipe_gets_the_words_of_the_board_file(board: Governed) -> None:
    out = board.done("board", "show").out
    assert f"## In Progress\n- **[{NAME}]** - [IN_PROGRESS]\n\n## In Review\n\n## Done" in out


def test_a_terminal_gets_columns_with_signs_and_no_colour_if_none_is_wanted(board: Governed, tmp_path: Path) -> None:
    environment = environment_of(tmp_path) | {"TERM": "xterm"}
    command = ["sh", "-c", "stty cols 120; workpacket board show"]
    plain = at_terminal(command, board.root, [], environment)
    assert plain.status == 0, plain.screen
    assert "\x1b[" not in plain.screen
    assert f"> {NAME}" in plain.screen
    assert "ann, until" in plain.screen
    assert "Greet the user" in plain.screen
    assert "- WP-1-Voice-v1" in plain.screen
    del environment["NO_COLOR"]
    coloured = at_terminal(command, board.root, [], environment)
    assert f"\x1b[1;36m> {NAME}\x1b[0m" in coloured.screen


def test_the_page_tells_titles_and_notes_and_depends_on_no_clock(board: Governed) -> None:
    page = board.done("board", "export").out
    assert f'<li id="{NAME}">' in page
    assert "ann, until" in page
    board.clock.turn(days=30)
    assert board.done("board", "export").out == page
    assert board.done("board", "export", "--at", "2026-02-01").out != page


def test_the_page_goes_into_a_new_file_only(board: Governed) -> None:
    page = board.done("board", "export").out
    assert board.done("board", "export", "--out", "board.html").next == "open board.html in a browser"
    assert board.read("board.html") == page
    refused = board("board", "export", "--out", "board.html")
    assert (refused.status, "was not overwritten" in refused.err) == (6, True)


def test_the_board_is_exported_as_a_table_by_format_or_by_the_name_of_the_file(board: Governed) -> None:
    rows = list(csv.DictReader(io.StringIO(board.done("board", "export", "--format", "csv").out)))
    by_id = {row["id"]: row for row in rows}
    assert (by_id[NAME]["lane"], by_id[NAME]["section"]) == ("IN_PROGRESS", "In Progress")
    assert by_id[NAME]["title"] == "Greet the user"
    board.done("board", "export", "--out", "board.json")
    assert json.loads(board.read("board.json"))["packets"] == rows


def test_the_matrix_of_requirements_is_written_as_csv(board: Governed) -> None:
    board.done("report", "requirements", "--out", "matrix.csv")
    rows = list(csv.DictReader(io.StringIO(board.read("matrix.csv"))))
    assert {(row["packet"], row["number"], row["result"]) for row in rows} == {(NAME, "1", ""), (NAME, "2", "")}
    told = board.json("report", "requirements")["data"]["requirements"]
    assert [row["criterion"] for row in told] == [row["criterion"] for row in rows]


def test_an_empty_repository_has_an_empty_board(governed: Governed) -> None:
    governed.done("init")
    assert "0 packets, 0 of them open." in governed.done("board", "export").out
    assert "empty:" not in governed.done("board", "show").out


def test_a_packet_whose_log_names_no_title_is_shown_with_that_of_its_document(
    governed: Governed, tmp_path: Path
) -> None:
    governed.begin()
    governed.stub("WP-1-Old-v1")
    what = "Read every line of the old file, " + "and keep it as it is, " * 10
    text = re.sub(r"(?m)^- What: .*$", f"- What: {what}", governed.read(".GOV/task_packets/stubs/WP-1-Old-v1.md"))
    governed.write(".GOV/task_packets/stubs/WP-1-Old-v1.md", text)
    shutil.rmtree(governed.root / ".GOV" / "log")
    governed.done("adopt")
    environment = environment_of(tmp_path) | {"TERM": "xterm"}
    shown = at_terminal(["sh", "-c", "stty cols 120; workpacket board show"], governed.root, [], environment).screen
    assert "Read every line of the old file" in shown
    assert "…" in shown
