"""The diff of a fix is what `git apply` takes, and what a person can read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.problem import Edit
from workpacket.report.diff import NO_NEWLINE, render_diff
from workpacket.report.terminal import Style, hidden
from workpacket.text.source import Source, apply_edits

TEN = "".join(f"line {number}\n" for number in range(1, 11))


def replace(text: str, old: str, new: str) -> Edit:
    start = text.index(old)
    return Edit(start, start + len(old), new)


def test_one_line_is_shown_with_three_lines_around_it() -> None:
    assert render_diff(Source("a.md", TEN), [replace(TEN, "line 5", "LINE 5")]) == (
        "--- a/a.md\n+++ b/a.md\n@@ -2,7 +2,7 @@\n"
        " line 2\n line 3\n line 4\n-line 5\n+LINE 5\n line 6\n line 7\n line 8\n"
    )


def test_changes_far_apart_are_two_hunks_and_near_ones_one() -> None:
    far = [replace(TEN, "line 1\n", ""), replace(TEN, "line 10\n", "line 10\nline 11\n")]
    assert render_diff(Source("a.md", TEN), far).count("@@ -") == 2
    near = [replace(TEN, "line 2", "x"), replace(TEN, "line 9", "y")]
    assert render_diff(Source("a.md", TEN), near).count("@@ -") == 1


def test_edits_that_change_nothing_give_no_diff() -> None:
    assert render_diff(Source("a.md", TEN), [replace(TEN, "line 5", "line 5")]) == ""
    assert render_diff(Source("a.md", TEN), []) == ""


def test_a_missing_newline_at_the_end_is_told_on_the_side_that_misses_it() -> None:
    assert render_diff(Source("a.md", "one\ntwo"), [Edit(7, 7, "\n")]) == (
        f"--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n{NO_NEWLINE}\n+two\n"
    )


def test_a_carriage_return_is_visible_in_changed_lines() -> None:
    diff = render_diff(Source("a.md", "one\r\ntwo\r\n"), [Edit(8, 9, "")])
    assert diff.endswith("@@ -1,2 +1,2 @@\n one\n-two\\r\n+two\n")


def test_hidden_characters_of_text_and_path_are_visible() -> None:
    diff = render_diff(Source("a\u202e\n.md", "x\u202e\n"), [Edit(1, 2, "\x1b")])
    assert diff == "--- a/a\\u202e\\n.md\n+++ b/a\\u202e\\n.md\n@@ -1 +1 @@\n-x\\u202e\n+x\\u001b\n"


def test_colour_marks_added_and_removed_lines() -> None:
    diff = render_diff(Source("a.md", "x\n"), [Edit(0, 1, "y")], Style(colour=True))
    assert "\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n" in diff


HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def lines_of(text: str) -> list[str]:
    """As `patch` sees them: a last line without a line feed is told apart by that."""
    return re.findall(r".*\n|.+", text)


def patched(text: str, diff: str) -> str:
    """What a strict `patch` makes of `text`: every number of a hunk, every context line must be right."""
    old, new = lines_of(text), list[str]()
    taken = 0
    for hunk in re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)[1:]:
        header, *body = hunk.split("\n")[:-1]
        match = HUNK.fullmatch(header)
        assert match is not None
        sides: dict[str, list[str]] = {"-": [], "+": []}
        marks = ""
        for line in body:
            if line == NO_NEWLINE:
                for mark in marks:
                    sides[mark][-1] = sides[mark][-1].removesuffix("\n")
                continue
            marks = "-+" if line[0] == " " else line[0]
            for mark in marks:
                sides[mark].append(line[1:] + "\n")
        start, length, new_start, new_length = (1 if number is None else int(number) for number in match.groups())
        assert (length, new_length) == (len(sides["-"]), len(sides["+"]))
        position = start - 1 if length else start
        new += old[taken:position]
        assert len(new) == (new_start - 1 if new_length else new_start)
        assert old[position : position + length] == sides["-"]
        new += sides["+"]
        taken = position + length
    return "".join(new + old[taken:])


@st.composite
def edited(draw: st.DrawFn, alphabet: str, size: int) -> tuple[Source, list[Edit]]:
    text = draw(st.text(alphabet, max_size=size))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    replacement = st.text(alphabet, max_size=4)
    return Source("a.md", text), [Edit(start, end, draw(replacement)) for start, end in spans]


@given(edited(alphabet="a\n\n", size=40))
def test_a_strict_patch_makes_the_same_text_of_the_diff_as_the_edits_do(case: tuple[Source, list[Edit]]) -> None:
    source, edits = case
    after = apply_edits(source, edits).text
    diff = render_diff(source, edits)
    assert patched(source.text, diff) == after
    assert (diff == "") == (source.text == after)


@given(edited(alphabet="a\r\n\u202e\t", size=20))
def test_with_any_kind_of_line_end_nothing_raw_is_shown(case: tuple[Source, list[Edit]]) -> None:
    diff = render_diff(*case)
    assert all(hidden().search(line.replace("\t", "")) is None for line in diff.split("\n"))
    assert (diff == "") == (case[0].text == apply_edits(*case).text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apply")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


CASES = [
    (TEN, [replace(TEN, "line 1\n", ""), replace(TEN, "line 10\n", "")]),
    (TEN, [Edit(0, 0, "first\n\n"), replace(TEN, "line 9\n", "x\ny\n")]),
    (TEN, [Edit(0, len(TEN), "")]),
    ("", [Edit(0, 0, "new\n")]),
    ("no newline", [Edit(0, 2, "one")]),
    ("a\nb", [Edit(1, 3, "")]),
    ("\n\n\n", [Edit(1, 2, "x\n")]),
    ("a\ta\nb\n", [Edit(0, 1, "\t")]),
    (TEN * 3, [replace(TEN * 3, "line 3\nline 4", "line 3\nnew\nline 4"), Edit(100, 110, "")]),
]


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_git_applies_the_diff_and_has_the_text_of_the_edits(folder: Path, text: str, edits: list[Edit]) -> None:
    source = Source("a.md", text)
    path = folder / "a.md"
    path.write_bytes(source.encode())
    diff = render_diff(source, edits)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=diff.encode(), cwd=folder, check=True)
    left = path.read_bytes() if path.exists() else b""
    assert left == apply_edits(source, edits).encode()
