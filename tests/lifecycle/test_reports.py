"""One report file may serve several verdicts; what no verdict names was changed behind the validators' backs."""

from __future__ import annotations

from lifecycle.governed import Governed, remembered

FIRST, SECOND = "WP-1-Greeting-v1", "WP-1-Farewell-v1"
REPORT = "src/report.md"


def begin(governed: Governed) -> None:
    governed.begin()
    governed.git("tag", "before")


@remembered
def in_review(governed: Governed, name: str) -> None:
    governed.activate(name)
    governed.commit("activated")
    governed.work(name)
    governed.done("submit", name, "--as", "coder", "--prove", "all=true")


def judged(governed: Governed, name: str, choice: str, text: str) -> None:
    governed.write(REPORT, text)
    governed.done("verdict", name, choice, "--report", REPORT, "--as", "judge")
    governed.commit(f"judged {name}")


def codes(governed: Governed, *words: str) -> set[str]:
    wanted = {"evidence_changed", "move_without_gate"}
    return {f["code"] for f in governed.json("check", *words)["findings"]} & wanted


def test_a_report_that_grows_from_changes_to_pass_is_right_for_both_verdicts(governed: Governed) -> None:
    begin(governed)
    in_review(governed, FIRST)
    judged(governed, FIRST, "CHANGES", "1. It does not greet.\n")
    governed.done("submit", FIRST, "--as", "coder", "--prove", "all=true")
    judged(governed, FIRST, "PASS", "1. It does not greet. It does now.\n")
    assert codes(governed) == codes(governed, "--base", "before", "--uncommitted") == set()


def test_a_report_about_two_packets_is_right_for_both(governed: Governed) -> None:
    begin(governed)
    in_review(governed, FIRST)
    judged(governed, FIRST, "PASS", "Greeting: good.\n")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{FIRST}")
    in_review(governed, SECOND)
    judged(governed, SECOND, "PASS", "Greeting: good.\nFarewell: good.\n")
    assert codes(governed) == codes(governed, "--base", "before", "--uncommitted") == set()


def test_a_report_that_no_verdict_names_any_more_was_changed(governed: Governed) -> None:
    begin(governed)
    in_review(governed, FIRST)
    judged(governed, FIRST, "CHANGES", "Bad.\n")
    governed.done("submit", FIRST, "--as", "coder", "--prove", "all=true")
    judged(governed, FIRST, "PASS", "Good.\n")
    governed.write(REPORT, "Very good.\n")
    assert codes(governed, "--base", "before", "--uncommitted") == {"evidence_changed", "move_without_gate"}


def test_an_older_report_does_not_vouch_for_a_later_verdict(governed: Governed) -> None:
    """Taken back to what it was when changes were wanted, it is not what the packet passed by."""
    begin(governed)
    in_review(governed, FIRST)
    judged(governed, FIRST, "CHANGES", "Bad.\n")
    governed.done("submit", FIRST, "--as", "coder", "--prove", "all=true")
    judged(governed, FIRST, "PASS", "Good.\n")
    governed.write(REPORT, "Bad.\n")
    assert codes(governed, "--base", "before", "--uncommitted") == {"evidence_changed", "move_without_gate"}
