"""The YAML writer: block style, and quotes wherever some reader would guess otherwise."""

from __future__ import annotations

import pytest

from workpacket.text.source import Plain
from workpacket.text.yaml_strict import NotWritable, double_quoted, inline, literal, single_quoted, write_yaml

DOCUMENT: Plain = {
    "checkpoint": {
        "branch": "feat/fuel-gauge",
        "timestamp": "2026-06-08",
        "last_batch": "2",
        "last_commit": "0123456",
        "number": 3,
        "parallel": True,
        "next_batch": None,
        "tasks": {"done": ["T-1", "2a"], "pending": []},
        "deferred_issues": [{"batch": "1", "description": "a: b\n# c\n"}, {}, [["x"], "y"]],
    }
}

WRITTEN = """\
checkpoint:
  branch: feat/fuel-gauge
  timestamp: "2026-06-08"
  last_batch: "2"
  last_commit: "0123456"
  number: 3
  parallel: true
  next_batch: null
  tasks:
    done:
      - T-1
      - 2a
    pending: []
  deferred_issues:
    - batch: "1"
      description: |
        a: b
        # c
    - {}
    - - - x
      - "y"
"""


def test_a_document_is_written_in_one_style() -> None:
    assert write_yaml(DOCUMENT) == WRITTEN


def test_on_one_line_it_fits_in_brackets() -> None:
    assert inline({"a": [1, "b, c", {}], "d?": None}) == '{a: [1, "b, c", {}], "d?": null}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b\n"),
        ("", '""\n'),
        ("no", '"no"\n'),
        ("12:30", '"12:30"\n'),
        ("1e3", '"1e3"\n'),
        ("true", '"true"\n'),
        ("a: b", '"a: b"\n'),
        ("a:b", "a:b\n"),
        ("a #b", '"a #b"\n'),
        ("a#b", "a#b\n"),
        ("- a", '"- a"\n'),
        ("a ", '"a "\n'),
        ("...", '"..."\n'),
        ("what?", "what?\n"),
        ("a\tb", '"a\\tb"\n'),
        ('a"\\b', 'a"\\b\n'),
        ('"a\\b', '"\\"a\\\\b"\n'),
        ("a\0\x1b\x85\u2028\ufeff", '"a\\0\\x1b\\x85\\u2028\\ufeff"\n'),
        ("one\ntwo", '"one\\ntwo"\n'),
        (None, "null\n"),
        (False, "false\n"),
        (-12, "-12\n"),
        ([], "[]\n"),
        (["one\ntwo"], "- |-\n  one\n  two\n"),
        (["one\n\n  two\n\n"], "- |+\n  one\n\n    two\n\n"),
        ([" one\ntwo"], '- " one\\ntwo"\n'),
        (["one \ntwo"], '- "one \\ntwo"\n'),
        (["\n"], '- "\\n"\n'),
        (["one\r\ntwo"], '- "one\\r\\ntwo"\n'),
    ],
)
def test_a_value_is_written_as(value: Plain, text: str) -> None:
    assert write_yaml(value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (1.5, "not an integer"),
        (10**15, "more digits"),
        (-(10**15), "more digits"),
        ("\ud800", "a lone surrogate"),
        ("\U0010ffff", "a lone surrogate or U\\+10FFFF"),
        ({"a" * 1001: 1}, "longer than YAML allows"),
        ([{"a": ["b\n\udfff"]}], "a lone surrogate"),
    ],
)
def test_what_would_not_read_back_is_refused(value: Plain, why: str) -> None:
    with pytest.raises(NotWritable, match=why):
        write_yaml(value)
    with pytest.raises(NotWritable, match=why):
        inline(value)


def test_single_quotes_hold_what_shows() -> None:
    assert single_quoted('it\'s \\ "x"') == "'it''s \\ \"x\"'"
    assert single_quoted("a\nb") is None
    assert single_quoted("a\u200bb") is None


def test_double_quotes_hold_everything() -> None:
    assert double_quoted('a\n"\\') == '"a\\n\\"\\\\"'


def test_a_block_holds_lines_that_show_all_of_themselves() -> None:
    assert literal("a\nb\n") == ["|", "a", "b"]
    assert literal("a") is None
    assert literal("a\n\udc80") is None
