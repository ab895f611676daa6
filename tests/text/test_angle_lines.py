"""Lines that begin with `<`: placeholders take the fast way, and nothing that may be HTML does."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it.common.html_blocks import block_names

from text.markdown_documents import everything
from workpacket.text.blocks import MAX_NODES
from workpacket.text.markdown import HTML_NAME, begins_no_html, fast_blocks, parse_blocks
from workpacket.text.source import Source

_PIECES = [
    *["<", "<", "</", ">", "/>", " ", " ", "\t", "=", '"', "'", ":", ",", "-", "!", "?", "[", "x", "a1", "fill in"],
    *["fill", "div", "DIV", "pre", "script", "textarea", "source", "h1", "h7", "br", "!--", "-->", "![CDATA[", "\f"],
    *["https://a.b", "\x1c", "\x85", "\u017fcript", "lin\u212a", "é"],
]
ANGLE_LINES = st.tuples(
    st.sampled_from(["", "- ", "words\n", "- words\n  ", "1. ", "   ", "a | b\n"]),
    st.lists(st.sampled_from(_PIECES), max_size=8).map(lambda pieces: "<" + "".join(pieces)),
    st.sampled_from(["", "\n", "\nmore", "\n\nmore", "\n---", "\r\n"]),
).map("".join)


@pytest.mark.parametrize(
    "line",
    [
        "<fill in: what the specification leaves open, or NONE>",
        "<pending> since Monday",
        "<https://example.org>",
        "<-- see above",
        "<3",
        "<",
        "<name, date>",
    ],
)
def test_a_placeholder_takes_the_fast_way(line: str) -> None:
    assert begins_no_html(line)
    assert fast_blocks(Source("file.md", f"- {line}\n"), 0, MAX_NODES) is not None


@pytest.mark.parametrize(
    "line",
    ["<fill in>", "<br>", "<br/>", "<a b=c>", "</a>", "<div", "<DIV words", "<pre>", "<!-- x", "<?x", "<a b='>,'>"],
)
def test_what_may_be_html_is_left_to_the_full_parser(line: str) -> None:
    assert not begins_no_html(line)


def test_every_name_that_begins_a_block_of_html_is_known() -> None:
    names = (*block_names, "script", "pre", "style", "textarea")

    assert [name for name in names if HTML_NAME.fullmatch(name.upper()) is None] == []


@given(ANGLE_LINES)
@example("<fill in>\n\nmore")
@example("- words\n  <div, and more>\n")
def test_both_ways_read_a_line_with_an_angle_alike(text: str) -> None:
    source = Source("file.md", text)
    fast = fast_blocks(source, 0, MAX_NODES)
    full = parse_blocks(source)

    assert isinstance(full, list)
    assert fast is None or everything(fast) == everything(full)
