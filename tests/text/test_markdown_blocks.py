"""Blocks of Markdown: their kinds, their nesting, and where each line of their text stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from text.markdown_documents import ANYTHING, DOCUMENTS, everything, short
from text.markdown_oracle import seen_by_markdown_it, seen_by_us
from workpacket.text.blocks import Block, walk
from workpacket.text.markdown import parse_blocks, read_blocks
from workpacket.text.source import Source


def blocks_of(text: str, start: int = 0) -> list[Block]:
    """What both ways of reading give."""
    source = Source("file.md", text)
    read, parsed = read_blocks(source, start), parse_blocks(source, start)
    assert isinstance(read, list)
    assert isinstance(parsed, list)
    assert everything(read) == everything(parsed)
    return read


def read(text: str) -> str:
    return short(Source("file.md", text), blocks_of(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n \n\t\n", ""),
        ("words", "p:words"),
        ("one\n  two \nthree\t\n", "p:one/two/three"),
        ("one\n\n\ntwo", "p:one p:two"),
        ("# Title", "h1:Title"),
        ("###   Title ##  ", "h3:Title"),
        ("# Title#", "h1:Title#"),
        ("#", "h1:"),
        ("## ##", "h2:"),
        ("####### seven", "p:####### seven"),
        ("#tag", "p:#tag"),
        ("Title\n===", "h1:Title"),
        ("Two\nlines\n---", "h2:Two/lines"),
        ("---\n\n***\n\n_ _ _", "hr hr hr"),
        ("- a\n- b", "ul[li[p:a] li[p:b]]"),
        ("- a\n* b", "ul[li[p:a]] ul[li[p:b]]"),
        ("- a\n\n- b", "ul[li[p:a] li[p:b]]"),
        ("- a\n  - b\n    - c\n- d", "ul[li[p:a ul[li[p:b ul[li[p:c]]]]] li[p:d]]"),
        ("- a\n - b\n  - c", "ul[li[p:a] li[p:b] li[p:c]]"),
        ("- a\n\n  more\n\nout", "ul[li[p:a p:more]] p:out"),
        ("- a\nlazy", "ul[li[p:a/lazy]]"),
        ("1. a\n2. b\n3) c", "ol[li[p:a] li[p:b]] ol[li[p:c]]"),
        ("words\n1. a", "p:words ol[li[p:a]]"),
        ("words\n2. a", "p:words/2. a"),
        ("words\n- a", "p:words ul[li[p:a]]"),
        ("-\n- a", "ul[li[] li[p:a]]"),
        ("-\n  a", "ul[li[p:a]]"),
        ("- - 1. a", "ul[li[ul[li[ol[li[p:a]]]]]]"),
        ("- # Title", "ul[li[h1:Title]]"),
        ("-     a", "ul[li[code:a]]"),
        ("```py\nx = 1\n\n  y\n```\nwords", "fence(py):x = 1//  y p:words"),
        ("~~~~\n~~~\n```\n~~~~", "fence:~~~/```"),
        ("```\n- a\n# b", "fence:- a/# b"),
        ("- ```\n  a\n  ```\n- b", "ul[li[fence:a] li[p:b]]"),
        ("- ```\n  a\nb", "ul[li[fence:a]] p:b"),
        ("``` a`b", "p:``` a`b"),
        ("words\n\n    code\n\n      more\n", "p:words code:code//  more"),
        ("> a\nb\n\n> # c", "q[p:a/b] q[h1:c]"),
        ("> - a\n>   b", "q[ul[li[p:a/b]]]"),
        ("<!-- KEY: a\n\n- KEY: b\n-->\nwords", "html:<!-- KEY: a//- KEY: b/--> p:words"),
        (
            "<details>\n<summary>s</summary>\n\n- a\n\n</details>",
            "html:<details>/<summary>s</summary> ul[li[p:a]] html:</details>",
        ),
        ("- <!-- a\n  b -->", "ul[li[html:<!-- a/b -->]]"),
        ("[a]: /b\n'title'\n\nwords", "def:[a]: /b/'title' p:words"),
        ("[a] b", "p:[a] b"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 |\n\nwords", "table(a,b;1,2;3) p:words"),
        ("a | b\n--|--\n1 | 2 | 3", "table(a,b;1,2,3)"),
        ("| a \\| b |\n|---|\n|  |", "table(a \\| b;)"),
        ("words\n| a |\n| - |", "p:words table(a)"),
        ("| a | b |\n|---|\n", "p:| a | b |/|---|"),
        ("a\u2028b\n\x0c\n", "p:a\u2028b/\x0c"),
        ("\ufeff# a", "p:\ufeff# a"),
        ("\x00# a\n- \x00", "p:\x00# a ul[li[p:\x00]]"),
        ("a\rb\r\nc\n", "p:a/b/c"),
    ],
)
def test_blocks_are_those_of_commonmark_with_tables(text: str, expected: str) -> None:
    assert read(text) == expected


def test_lines_count_from_one_and_leave_out_the_blank_lines_after_a_block() -> None:
    blocks = blocks_of("# a\n\n- b\n\n  c\n\n\n- d\n\n\nwords\n")
    (item, last) = blocks[1].children

    assert [(block.line, block.end_line) for block in blocks] == [(1, 1), (3, 8), (11, 11)]
    assert [(item.line, item.end_line), (last.line, last.end_line)] == [(3, 5), (8, 8)]


def test_an_item_knows_where_its_marker_and_its_text_begin() -> None:
    text = "words\n\n  10.  a\n   *   \n"
    (number, bullet) = [block for block in walk(blocks_of(text)) if block.kind == "item"]

    assert (text[number.start :][:3], number.marker, text[number.content_start]) == ("10.", "10.", "a")
    assert (text[bullet.start], bullet.marker, bullet.content_start) == ("*", "*", bullet.start + 1)


@pytest.mark.parametrize(
    ("text", "start", "marker"),
    [
        ("  ## a", 2, "##"),
        ("> # a", 0, ">"),
        ("a\n---", 0, "-"),
        (" ````\n", 1, "````"),
        ("- a", 0, "-"),
        ("   1) a", 3, ")"),
        (" ***", 1, ""),
        (" words", 1, ""),
    ],
)
def test_a_block_starts_at_its_first_character_and_knows_its_marker(text: str, start: int, marker: str) -> None:
    (block,) = blocks_of(text)

    assert (block.start, block.marker) == (start, marker)


@pytest.mark.parametrize(
    ("text", "closed"),
    [("```\n```", True), ("```\na\n```\n", True), ("```", False), ("```\na\n\n", False), ("~~~\n```\n", False)],
)
def test_a_fence_knows_whether_it_is_closed(text: str, closed: bool) -> None:
    (fence,) = blocks_of(text)

    assert fence.closed is closed


def test_a_fence_keeps_the_blanks_at_the_ends_of_its_lines() -> None:
    assert read("```\n  a  \n\t\n```") == "fence:  a  /\t"


def test_the_indentation_of_a_fence_is_not_part_of_its_lines() -> None:
    assert read("- a\n\n   ```\n     b\n    c\n  d\n   ```") == "ul[li[p:a fence:  b/ c/d]]"


def test_a_tab_that_stands_half_in_the_indentation_is_left_out_of_the_line() -> None:
    assert read("-\ta\n\n\t\tb") == "ul[li[p:a code:b]]"


def test_reading_can_begin_behind_the_front_matter() -> None:
    front = "---\r\nkey: value\r\n---\r\n"
    body = "# a\r\n\r\n- b\r\n> c\r\n"
    whole, alone = blocks_of(front + body, len(front)), blocks_of(body)

    assert short(Source("file.md", front + body), whole) == short(Source("file.md", body), alone)
    assert [block.line - 3 for block in walk(whole)] == [block.line for block in walk(alone)]
    assert [block.start - len(front) for block in walk(whole)] == [block.start for block in walk(alone)]


def test_a_block_shows_its_kind_and_lines() -> None:
    assert repr(blocks_of("a\nb")) == "[Block('paragraph', lines 1..2)]"


@given(DOCUMENTS)
def test_text_and_lines_are_those_that_markdown_it_sees(text: str) -> None:
    blocks = parse_blocks(Source("file.md", text))

    assert isinstance(blocks, list)
    assert seen_by_us(text, blocks) == seen_by_markdown_it(text)


@given(DOCUMENTS)
def test_spans_stand_inside_their_block_in_order_and_apart(text: str) -> None:
    source = Source("file.md", text)
    blocks = read_blocks(source)
    assert isinstance(blocks, list)

    assert_ordered(source, blocks, 1, source.line_count)
    end = 0
    for block in walk(blocks):
        assert block.start >= source.line_starts[block.line - 1]
        for first, last in [*block.spans, *(cell for row in block.rows for cell in row)]:
            assert end <= first <= last <= len(text)
            assert block.line <= source.line_and_column(first)[0] <= block.end_line
            end = last


def assert_ordered(source: Source, blocks: list[Block], first: int, last: int) -> None:
    for block in blocks:
        assert first <= block.line <= block.end_line <= last
        assert_ordered(source, block.children, block.line, block.end_line)
        first = block.end_line + 1


@given(DOCUMENTS)
def test_every_line_that_is_not_blank_belongs_to_a_block(text: str) -> None:
    source = Source("file.md", text)
    blocks = read_blocks(source)
    assert isinstance(blocks, list)
    covered = {line for block in blocks for line in range(block.line, block.end_line + 1)}

    filled = {line for line in range(1, source.line_count + 1) if source.line(line).strip(" \t")}
    assert filled <= covered


@given(DOCUMENTS)
def test_the_kind_of_line_end_makes_no_difference(text: str) -> None:
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    expected = short(Source("file.md", unix), blocks_of(unix))

    for line_end in ("\r\n", "\r"):
        assert read(unix.replace("\n", line_end)) == expected


@given(ANYTHING)
@settings(max_examples=300)
def test_what_a_fence_encloses_is_kept_to_the_letter(content: str) -> None:
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    assert read("\n".join(["`" * 61, *lines, "`" * 61])) == f"fence:{'/'.join(lines)}"
