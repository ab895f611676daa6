"""Sections of a document."""

from __future__ import annotations

import pytest
from hypothesis import given

from text.markdown_documents import DOCUMENTS, short
from workpacket.text.blocks import Section, normal_key, outline
from workpacket.text.markdown import read_blocks
from workpacket.text.source import Source

DOCUMENT = """\
before

# Title
words
## One (DRAFT)
- a
  # not a section

### Deep
> # nor this
## Two
Below
---
# Last
"""


def outline_of(text: str, start: int = 0) -> Section:
    source = Source("file.md", text)
    blocks = read_blocks(source, start)
    assert isinstance(blocks, list)
    return outline(source, blocks, start)


def test_headings_make_a_tree_of_sections() -> None:
    document = outline_of(DOCUMENT)
    title, last = document.subsections
    one, two, below = title.subsections

    assert [section.title for section in document.walk()] == [
        "",
        "Title",
        "One (DRAFT)",
        "Deep",
        "Two",
        "Below",
        "Last",
    ]
    assert [section.level for section in document.walk()] == [0, 1, 2, 3, 2, 2, 1]
    assert [section.title for section in one.subsections] == ["Deep"]
    assert (two.subsections, below.subsections, last.subsections) == ([], [], [])


def test_a_section_holds_the_blocks_before_its_first_subsection() -> None:
    source = Source("file.md", DOCUMENT)
    blocks = {section.name: short(source, section.blocks) for section in outline_of(DOCUMENT).walk()}

    assert blocks == {
        "": "p:before",
        "title": "p:words",
        "one": "ul[li[p:a h1:not a section]]",
        "deep": "q[h1:nor this]",
        "two": "",
        "below": "",
        "last": "",
    }


def test_a_section_reaches_to_the_line_of_the_next_heading_of_its_level() -> None:
    document = outline_of(DOCUMENT)
    title, last = document.subsections
    one = title.subsections[0]

    assert DOCUMENT[one.start : one.end].startswith("## One (DRAFT)\n- a\n")
    assert DOCUMENT[one.start : one.end].endswith("> # nor this\n")
    assert (one.line, one.end_line) == (5, 10)
    assert (title.line, title.end_line) == (3, 13)
    assert (last.line, last.end_line) == (14, 14)
    assert (document.start, document.end, document.line, document.end_line) == (0, len(DOCUMENT), 1, 14)


def test_a_title_knows_where_it_stands() -> None:
    document = outline_of("a\n\n##   Two words ##\n\nTwo\nlines\n===\n")
    spans = [section.title_span for section in document.walk()]
    text = "a\n\n##   Two words ##\n\nTwo\nlines\n===\n"

    assert [text[start:end] for start, end in spans] == ["", "Two words", "Two\nlines"]
    assert document.subsections[1].title == "Two lines"


def test_sections_are_found_by_the_normal_form_of_their_title() -> None:
    document = outline_of("# A\n## STUB_METADATA\n## B\n### Stub metadata (again)\n")

    found = document.find("stub_metadata")
    assert found is not None
    assert found.line == 2
    assert [section.line for section in document.walk() if section.name == "stub_metadata"] == [2, 4]
    assert document.find("c") is None


def test_the_outline_can_begin_behind_the_front_matter() -> None:
    front = "---\n# no heading\n---\n"
    document = outline_of(front + "# A\n", len(front))

    assert (document.line, document.start) == (4, len(front))
    assert [section.title for section in document.subsections] == ["A"]


def test_a_section_shows_its_title_and_lines() -> None:
    assert repr(outline_of("# A\nb\n").subsections[0]) == "Section(1, 'A', lines 1..2)"


@given(DOCUMENTS)
def test_sections_of_one_parent_follow_each_other_without_a_gap(text: str) -> None:
    for section in outline_of(text).walk():
        ends = [section.start, *(child.end for child in section.subsections)]
        starts = [*(child.start for child in section.subsections), section.end]
        assert all(end == start for end, start in zip(ends[1:], starts[1:], strict=True))
        assert section.start <= starts[0] <= section.end
        assert section.line <= section.end_line


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("WP_ID", "wp_id"),
        ("SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)", "spec_anchor_candidates"),
        ("LINEAGE_AUDIT (ALL VERSIONS) [CX-580E]", "lineage_audit"),
        ("DEPENDENCIES / BLOCKERS (DRAFT)", "dependencies_blockers"),
        ("Pre-SHA1", "pre_sha1"),
        ("**Status**", "status"),
        ("\U0001f575 NOTE", "note"),
        ("(all aside)", "all_aside"),
        ("Größe", "grösse"),
        ("--", ""),
    ],
)
def test_a_key_has_one_normal_form(raw: str, key: str) -> None:
    assert normal_key(raw) == key
