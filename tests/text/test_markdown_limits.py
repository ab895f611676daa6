"""Markdown that asks for too much is refused with its place, and never a crash, a hang or a silent loss."""

from __future__ import annotations

import pytest

from text.hostile_markdown import hostile_texts
from text.markdown_documents import everything
from workpacket.model.reason_tables.document import MARKDOWN
from workpacket.problem import Problem
from workpacket.text.blocks import MAX_LINES, walk
from workpacket.text.markdown import parse_blocks, read_blocks
from workpacket.text.source import Source

SMALL = hostile_texts(2_500)


def refusal(text: str, *, most_bytes: int = 1_000_000, most_nodes: int = 100) -> Problem:
    source = Source("file.md", text)
    read = read_blocks(source, most_bytes=most_bytes, most_nodes=most_nodes)
    parsed = parse_blocks(source, most_bytes=most_bytes, most_nodes=most_nodes)
    assert isinstance(read, Problem)
    assert read == parsed
    return read


def line_of(fault: Problem, text: str) -> int:
    return Source("file.md", text).line_and_column(fault.start)[0]


@pytest.mark.parametrize(
    ("text", "most_bytes"), [("a" * 101, 100), ("é" * 51, 100), ("a" * 26 + "\U0001f680" * 19, 101)]
)
def test_a_document_may_not_have_too_many_bytes(text: str, most_bytes: int) -> None:
    fault = refusal(text, most_bytes=most_bytes)

    assert (fault.code, fault.start) == ("markdown_too_large", 0)
    assert f"more than {most_bytes} bytes" in fault.message
    assert isinstance(read_blocks(Source("file.md", text), most_bytes=102), list)


def test_a_document_may_not_have_too_many_lines() -> None:
    fault = refusal("a\n" * MAX_LINES + "b")

    assert (fault.code, fault.start) == ("markdown_too_large", 2 * MAX_LINES)
    assert f"more than {MAX_LINES:,} lines" in fault.message


def test_lists_and_quotes_may_not_nest_too_deep() -> None:
    deepest = "".join("  " * level + "- a\n" for level in range(15))
    too_deep = deepest + "  " * 15 + "- b\n"
    fault = refusal(too_deep, most_nodes=1000)

    assert isinstance(read_blocks(Source("file.md", deepest)), list)
    assert (fault.code, line_of(fault, too_deep)) == ("markdown_too_deep", 16)


@pytest.mark.parametrize("text", ["> " * 32 + "a", "- " * 16 + "a", "1. " * 16 + "a", "> - " * 11 + "a"])
def test_depth_on_one_line_is_refused(text: str) -> None:
    assert refusal(text).code == "markdown_too_deep"


@pytest.mark.parametrize("text", ["> " * 31 + "a", "- " * 15 + "a", "> - " * 10 + "a"])
def test_depth_up_to_the_limit_loses_no_text(text: str) -> None:
    source = Source("file.md", text)
    blocks = read_blocks(source)

    assert isinstance(blocks, list)
    assert list(walk(blocks))[-1].text(text) == "a"


@pytest.mark.parametrize(
    ("unit", "nodes"), [("a\n\n", 1), ("# a\n", 1), ("- a\n+ b\n", 6), ("|a|b|\n|-|-|\n|1|\n\n", 4), ("> a\n\n", 2)]
)
def test_blocks_and_cells_are_counted_alike_on_both_ways(unit: str, nodes: int) -> None:
    source = Source("file.md", unit * 10)
    enough = [read(source, most_nodes=10 * nodes) for read in (read_blocks, parse_blocks)]

    assert all(isinstance(blocks, list) for blocks in enough)
    assert everything(enough[0]) == everything(enough[1])  # type: ignore[arg-type]
    assert refusal(unit * 10, most_nodes=10 * nodes - 1).code == "markdown_too_many_blocks"


@pytest.mark.parametrize("name", SMALL)
def test_a_hostile_text_is_read_or_refused_alike_whichever_way(name: str) -> None:
    source = Source("file.md", SMALL[name])
    parsed = parse_blocks(source, most_nodes=500)
    read = read_blocks(source, most_nodes=500)

    if isinstance(parsed, Problem):
        assert parsed.code in {reason.code for reason in MARKDOWN}
        assert 0 <= parsed.start <= parsed.end <= len(source.text)
        assert isinstance(read, Problem) or parsed.code == "markdown_too_costly"
    else:
        assert isinstance(read, list)
        assert everything(read) == everything(parsed)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("an endless title", "markdown_too_costly"),
        ("an endless staircase", "markdown_too_deep"),
        ("a wide table", "markdown_too_many_blocks"),
        ("a wide row", "markdown_too_many_blocks"),
    ],
)
def test_what_a_parser_would_choke_on_is_refused(name: str, code: str) -> None:
    text = hostile_texts(350_000)[name]
    fault = parse_blocks(Source("file.md", text), most_nodes=2_000)

    assert isinstance(fault, Problem)
    assert fault.code == code
