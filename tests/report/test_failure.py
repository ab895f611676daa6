"""A command that cannot go on says so in one line, and what helps in another."""

from __future__ import annotations

from hypothesis import given

from report.samples import texts
from workpacket.problem import WorkpacketError
from workpacket.report.terminal import Style, hidden, render_failure


def test_a_failure_names_file_fault_code_and_help() -> None:
    error = WorkpacketError("file_unreadable", "permission denied", hint="give access", path="a.md")
    assert render_failure(error) == "error: a.md: permission denied (file_unreadable)\nhelp: give access\n"


def test_without_path_and_hint_it_is_one_line() -> None:
    error = WorkpacketError("no_repository", "this folder is in no git repository")
    assert render_failure(error) == "error: this folder is in no git repository (no_repository)\n"
    assert render_failure(error, Style(colour=True)).startswith("\x1b[1;31merror:\x1b[0m this")


def test_a_failure_is_a_finding_too() -> None:
    found = WorkpacketError("tool_missing", "git is not installed", hint="install git").problem
    assert (found.code, found.severity, found.path, found.line) == ("tool_missing", "error", "", 0)
    assert (found.message, found.hint) == ("git is not installed", "install git")


@given(texts, texts, texts)
def test_a_failure_shows_nothing_raw(message: str, hint: str, path: str) -> None:
    text = render_failure(WorkpacketError("tool_missing", message, hint=hint, path=path))
    assert all(hidden().search(line) is None for line in text.split("\n"))
    assert text.count("\n") == 1 + bool(hint)
