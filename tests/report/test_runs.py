"""Runs as a person sees them."""

from __future__ import annotations

from workpacket.report.runs import (
    CheckRow,
    RunRow,
    TimelineEvent,
    painted_next_line,
    render_checks,
    render_facts,
    render_runs,
    render_timeline,
)
from workpacket.report.terminal import PLAIN, Style

ROWS = [RunRow("nightly@00000001", "stopped", "stalled", "2026-11-18"), RunRow("b@00000002", "completed", "", "2026")]


def test_each_run_is_one_line() -> None:
    assert render_runs(ROWS) == (
        "nightly@00000001  stopped      2026-11-18  stalled\nb@00000002        completed    2026\n"
    )
    assert render_runs([]) == "no runs\n"


def test_on_a_narrow_terminal_the_id_has_its_own_line() -> None:
    assert render_runs(ROWS[:1], Style(width=40)) == "nightly@00000001\n  stopped      2026-11-18  stalled\n"


def test_states_are_coloured_when_colours_are_wanted() -> None:
    assert "\x1b[1;31mstopped    \x1b[0m" in render_runs(ROWS, Style(colour=True))


def test_what_a_run_says_cannot_steer_the_terminal() -> None:
    evil = "a\x1b[2J\nb"
    shown = (
        render_runs([RunRow(evil, "stopped", evil, "")])
        + render_facts([("name", evil)])
        + painted_next_line(evil, PLAIN)
    )
    shown += render_timeline([TimelineEvent(1, "t", "done", evil)]) + render_checks(
        [CheckRow("c", "block", evil, [evil])]
    )
    assert "\x1b" not in shown
    assert shown.count("\n") == 6


def test_a_long_moment_is_wrapped_below_its_text() -> None:
    shown = render_timeline(
        [TimelineEvent(7, "12:00:00", "fail", "step.failed one, a long error message")], Style(width=40)
    )
    assert shown == "    7  12:00:00  x step.failed one, a\n                   long error message\n"


def test_empty_facts_are_left_out() -> None:
    assert render_facts([("run", "a"), ("packet", ""), ("state", "live")]) == "run    a\nstate  live\n"


def test_checks_show_their_details() -> None:
    shown = render_checks([CheckRow("one", "pass", "", []), CheckRow("three", "block", "run_busy", ["pid 7"])])
    assert shown == "  one    pass\n  three  block           run_busy\n    pid 7\n"
