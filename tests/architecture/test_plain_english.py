"""The linter of our English finds each phrase, leaves good English alone, and its counts only fall."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys

import pytest

from architecture.source_tree import ROOT, nodes, parsed, python_files, relative

_SPEC = importlib.util.spec_from_file_location("plain_english", ROOT / "tools" / "plain_english.py")
assert _SPEC is not None
assert _SPEC.loader is not None
lint = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(lint)


def words(path: str, text: str) -> list[tuple[int, str]]:
    return [(line, found) for line, found, _ in lint.places(path, text)]


@pytest.mark.parametrize(
    "phrase",
    ["is no lane", "were no\nfiles", "Anew", "stands", "stood", "whoever", "of which", "Nobody", "in so many words"],
)
def test_each_phrase_is_found_in_a_page_with_its_line(phrase: str) -> None:
    assert words("page.md", f"Good.\n\nIt {phrase} here.\n") == [(3, " ".join(phrase.split()))]


@pytest.mark.parametrize(
    "good", ["There is no lane.", "It is no longer so.", "X stands for Y.", "Type `stands`.", "```\nanew\n```"]
)
def test_good_english_and_code_are_left_alone(good: str) -> None:
    assert words("page.md", good) == []


def test_docstrings_strings_and_comments_of_a_module_are_read_but_its_names_are_not() -> None:
    text = '"""Drawn anew."""\nanew = f"{1} nobody"  # whoever\n'
    assert words("m.py", text) == [(1, "anew"), (2, "nobody"), (2, "whoever")]


def test_a_module_named_with_a_gerund_and_a_class_name_used_twice_are_found() -> None:
    texts = {"a/judging.py": "class A: ...", "a/string.py": "class A: ...\nclass B: ...\nclass _C: ...", "c.py": ""}
    assert {path: [found for _, found, _ in seen] for path, seen in lint.search(texts).items()} == {
        "a/judging.py": ["A", "judging"],
        "a/string.py": ["A"],
    }


def test_a_count_may_neither_rise_nor_stay_above_what_is_left() -> None:
    found = {"a.md": [(1, "anew", "again")]}
    assert list(lint.compare(found, {"a.md": 1})) == []
    assert "at most 0 allowed" in list(lint.compare(found, {}))[-1]
    assert "--lower" in next(iter(lint.compare(found, {"a.md": 2})))
    assert "--lower" in next(iter(lint.compare(found, {"a.md": 1, "gone.md": 1})))


def test_the_listed_files_are_sorted_and_counted_once() -> None:
    paths = [line.split()[1] for line in (ROOT / lint.LIST).read_text("utf-8").splitlines()]
    assert sorted(set(paths)) == paths


def test_the_command_shows_places_and_ends_well() -> None:
    command = [sys.executable, "tools/plain_english.py", "--show", "README.md"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_PROSE = re.compile(r"^(?: |\||[-*] |\d+\. |\w+ = |\[)", re.MULTILINE)


def torn(text: str) -> list[str]:
    """The paragraphs of a docstring that end within a sentence."""
    paragraphs = [each for each in re.split(r"\n\s*\n", text) if each.strip() and not _NO_PROSE.search(each)]
    return [each for each in paragraphs if not re.search(r"[.:!?)\]`'\"]$", each.rstrip())]


def test_a_paragraph_that_was_torn_is_found() -> None:
    assert torn("Finish the job. If\n\n`seconds` is None, claim nothing.") == ["Finish the job. If"]


def test_no_sentence_of_a_docstring_is_torn_by_a_blank_line() -> None:
    found = [
        f"{relative(path)}:{getattr(node, 'lineno', 1)}: {each}"
        for path in python_files(ROOT / "tools/workpacket")
        for node in nodes(parsed(path))
        if isinstance(node, _DOCUMENTED) and "Remedy:" not in (text := ast.get_docstring(node) or "")
        for each in torn(text)
    ]
    assert found == []
