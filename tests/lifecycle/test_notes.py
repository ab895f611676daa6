"""`note`: what is said of a packet without moving it."""

from __future__ import annotations

import shutil

from lifecycle.governed import Governed

NAME = "WP-1-Greeting-v1"


def test_a_note_is_an_event_that_moves_nothing_and_history_shows_it(governed: Governed) -> None:
    governed.stub(NAME)
    lane = governed.json("show", NAME)["data"]["lane"]
    governed.done("note", NAME, "the report names\nthe wrong commit")
    shown = governed.json("log", "show", NAME)["data"]
    assert shown["lane"] == lane
    assert (shown["events"][-1]["type"], shown["events"][-1]["data"]) == (
        "noted",
        {"text": "the report names the wrong commit"},
    )
    assert "noted; text: the report names the wrong commit" in governed("log", "show", NAME).out


def test_a_packet_without_a_log_gets_no_note(governed: Governed) -> None:
    governed.stub(NAME)
    shutil.rmtree(governed.root / ".GOV/log" / NAME)
    assert governed.refused("note", NAME, "hello") == ["log_absent"]


def test_a_note_has_words_and_is_no_book(governed: Governed) -> None:
    governed.stub(NAME)
    for text in (" ", "x" * 4001):
        assert governed("note", NAME, text).status == 2
