"""The examples of the CommonMark specification, which `WORKPACKET_SUITES` points at.

Three things hold for each: our blocks have the structure of the HTML that the specification prints, their text is what
an unaltered markdown-it-py reads, and to edit one line of text changes no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest

from text.markdown_documents import everything
from text.markdown_oracle import seen_by_markdown_it, seen_by_us
from workpacket.problem import Edit
from workpacket.text.blocks import Block, walk
from workpacket.text.markdown import parse_blocks, read_blocks
from workpacket.text.source import Source, apply_edits

EXAMPLES_IN_THE_SPECIFICATION = 655
_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"<(/?)(h[1-6]|p|ul|ol|li|blockquote|pre|hr|table)\b[^>]*>")
_CODE = re.compile(r"<pre><code[^>]*>(.*?)</code></pre>", re.DOTALL)
_TAGS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "item": "li",
    "quote": "blockquote",
    "fence": "pre",
    "code": "pre",
    "rule": "hr",
    "definition": "",
}


def examples() -> Iterator[tuple[str, str]]:
    """Markdown and expected HTML, with the tabs that the specification writes as arrows."""
    suites = os.environ.get("WORKPACKET_SUITES")
    if suites is None:
        assert not os.environ.get("CI"), "WORKPACKET_SUITES must point at the published suites"
        pytest.skip("WORKPACKET_SUITES is not set")
    specification = Path(suites, "commonmark", "spec.txt").read_text("utf-8")
    for markdown, html in _EXAMPLE.findall(specification):
        yield markdown.replace("→", "\t"), html.replace("→", "\t")


def blocks_of(source: Source) -> list[Block]:
    blocks = parse_blocks(source)
    assert isinstance(blocks, list)
    return blocks


def tags_of_html(html: str) -> list[str]:
    """The block tags in their order. Paragraphs right inside an item are left out: tight lists have none."""
    open_tags: list[str] = []
    tags: list[str] = []
    for slash, name in _TAG.findall(html):
        if slash:
            open_tags.pop()
        if not (name == "p" and open_tags[-1:] == ["li"]):
            tags.append(slash + name)
        if not slash and name != "hr":
            open_tags.append(name)
    return tags


def tags_of_blocks(source: Source, blocks: Sequence[Block]) -> str:
    """Our blocks written as HTML, without their words."""
    return "".join(_html(source, block) for block in blocks)


def _html(source: Source, block: Block) -> str:
    tag = f"h{block.level}" if block.kind == "heading" else _TAGS[block.kind]
    if tag in {"hr", ""}:
        return "<hr />" if tag else ""
    return f"<{tag}>{tags_of_blocks(source, block.children)}</{tag}>"


def test_the_whole_specification_was_found() -> None:
    assert len(list(examples())) == EXAMPLES_IN_THE_SPECIFICATION


def examples_without_raw_html() -> Iterator[tuple[str, Source, list[Block], str]]:
    """Where raw HTML stands in an example, the printed tags are partly its own. markdown-it is the judge of those."""
    for markdown, html in examples():
        source = Source("spec.md", markdown)
        blocks = blocks_of(source)
        if all(block.kind != "html" for block in walk(blocks)):
            yield markdown, source, blocks, html


def test_blocks_have_the_structure_of_the_html_that_the_specification_prints() -> None:
    compared = 0
    for markdown, source, blocks, html in examples_without_raw_html():
        assert tags_of_html(tags_of_blocks(source, blocks)) == tags_of_html(html), markdown
        compared += 1
    assert compared > 600


def test_code_holds_the_lines_that_the_specification_prints() -> None:
    """Except where a tab stands half in the indentation: the spaces left of it are in no span of the source."""
    compared = 0
    for markdown, source, blocks, html in examples_without_raw_html():
        ours = [block.text(source.text) for block in walk(blocks) if block.kind in {"fence", "code"}]
        if ours and "\t" not in markdown:
            assert ours == [unescape(code).removesuffix("\n") for code in _CODE.findall(html)], markdown
            compared += 1
    assert compared > 50


def test_blocks_and_their_text_are_those_of_markdown_it() -> None:
    for markdown, _ in examples():
        source = Source("spec.md", markdown)
        assert seen_by_us(markdown, blocks_of(source)) == seen_by_markdown_it(markdown), markdown


def test_the_fast_way_reads_the_same_blocks() -> None:
    for markdown, _ in examples():
        source = Source("spec.md", markdown)
        blocks = read_blocks(source)
        assert isinstance(blocks, list)
        assert everything(blocks) == everything(blocks_of(source)), markdown


def test_an_edit_of_one_line_of_text_changes_no_other_text() -> None:
    """Raw HTML and link definitions are left alone: there, a line of text is also the syntax."""
    edited = 0
    for markdown, _ in examples():
        source = Source("spec.md", markdown)
        before = list(_texts(source))
        for index, (kind, start, end) in enumerate(before):
            if kind in {"html", "definition"} or start == end:
                continue
            changed = apply_edits(source, [Edit(start, end, "xyzzy")])
            after = [changed.text[first:last] for _, first, last in _texts(changed)]
            expected = [source.text[first:last] for _, first, last in before]
            expected[index] = "xyzzy"
            assert after == expected, (markdown, source.text[start:end])
            edited += 1
    assert edited > EXAMPLES_IN_THE_SPECIFICATION


def _texts(source: Source) -> Iterator[tuple[str, int, int]]:
    for block in walk(blocks_of(source)):
        for start, end in block.spans:
            yield block.kind, start, end
