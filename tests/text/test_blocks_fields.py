"""Fields and items, in the ways in which people write them."""

from __future__ import annotations

import pytest
from hypothesis import given

from text.markdown_documents import DOCUMENTS
from workpacket.text.blocks import Block, Field, Item, first_label, later_label, read_fields, read_items
from workpacket.text.markdown import read_blocks
from workpacket.text.source import Source


def blocks_of(source: Source) -> list[Block]:
    blocks = read_blocks(source)
    assert isinstance(blocks, list)
    return blocks


def fields_of(text: str) -> list[Field]:
    source = Source("file.md", text)
    return read_fields(source, blocks_of(source))


def items_of(text: str) -> list[Item]:
    source = Source("file.md", text)
    return read_items(source, blocks_of(source))


def pairs(text: str) -> list[tuple[str, str]]:
    return [(field.key, field.value) for field in fields_of(text)]


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("WP_ID: WP-1-A-v1", "WP_ID", "WP-1-A-v1"),
        ("WP_ID:   WP-1-A-v1  ", "WP_ID", "WP-1-A-v1"),
        ("**Status:** Done", "Status", "Done"),
        ("**Status**: Done", "Status", "Done"),
        ("**Status** : Done", "Status", "Done"),
        ("**Verdict: PASS**", "Verdict", "PASS"),
        ("__Status__: Done", "Status", "Done"),
        ("*Status*: Done", "Status", "Done"),
        ("`STATUS`: Done", "STATUS", "Done"),
        ("KEY:", "KEY", ""),
        ("**KEY:**", "KEY", ""),
        ("**KEY**:", "KEY", ""),
        ("KEY:value", "KEY", "value"),
        ("KEY : value", "KEY", "value"),
        ("Created: 2026-01-11", "Created", "2026-01-11"),
        ("Last Updated: 2026-01-11", "Last Updated", "2026-01-11"),
        ("Pre-SHA1: `0000`", "Pre-SHA1", "`0000`"),
        ("No ambiguity: [ ] PASS", "No ambiguity", "[ ] PASS"),
        ("IN_SCOPE (first half: only): a", "IN_SCOPE (first half: only)", "a"),
        ("**IN_SCOPE (first half):** a", "IN_SCOPE (first half)", "a"),
        ("**IN_SCOPE** (first half): a", "IN_SCOPE", "a"),
        ("Authority [CX-1]: a", "Authority [CX-1]", "a"),
        ("Risks & Actions: a", "Risks & Actions", "a"),
        ("BASE_WP_ID: WP-1-A (copy from stub)", "BASE_WP_ID", "WP-1-A (copy from stub)"),
        ("DATE: <!-- fill in -->", "DATE", "<!-- fill in -->"),
        ("LINES: 1:2, 3:4", "LINES", "1:2, 3:4"),
        ("src/a.rs: new", "src/a.rs", "new"),
    ],
)
def test_a_label_makes_a_field_of_a_line_whatever_its_marker(line: str, key: str, value: str) -> None:
    for marker in ("", "- ", "* ", "+ ", "1. ", "12) ", "- [ ] ", "- [x] "):
        text = marker + line
        (field,) = fields_of(text)

        assert (field.key, field.value) == (key, value), text
        assert text[slice(*field.key_span)] == key, text
        assert text[slice(*field.value_span)] == value, text
        assert field.key_span[1] < field.value_span[0] <= field.value_span[1] <= len(text), text


@pytest.mark.parametrize(
    "line",
    [
        "words",
        "a sentence, with a comma: no label",
        "a sentence of many more words than labels have: no label",
        "see http://example.org",
        "src/a.rs:12",
        "WP-1-A:12",
        "std::vec",
        "KEY:: value",
        "KEY:/path",
        "`struct A { b: C }`",
        "`KEY: value`",
        "**KEY: value",
        "/ FAIL: words",
        ": value",
        '"KEY": value',
        "<KEY>: value",
        "[KEY]: value",
        "(aside): value",
        "a|b: c",
        "- ",
    ],
)
def test_a_line_that_is_no_label_makes_no_field(line: str) -> None:
    assert fields_of("* " + line) == []


@pytest.mark.parametrize("text", ["> KEY: value", "```\nKEY: value\n```", "<!--\nKEY: value\n-->", "    KEY: value"])
def test_what_is_quoted_or_code_or_a_comment_makes_no_field(text: str) -> None:
    assert fields_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "- A:\n- B: 2",
        "- A:\nB: 2",
        "A:\nB: 2",
        "- A:\n**B:** 2",
        "**A:**\n**B**: 2",
        "- A:\n\n- B: 2",
        "A:\n\n- B: 2",
        "A:\n- B: 2",
        "A:\r\nB: 2",
        "A:\rB: 2",
        "- A: \t\n  B: 2",
        "* A:\n+ B: 2",
    ],
)
def test_an_empty_field_never_swallows_the_next_line(text: str) -> None:
    assert pairs(text) == [("A", ""), ("B", "2")]


def test_an_empty_value_stands_right_behind_its_label() -> None:
    text = "- A:   \n- **B:**\n"

    assert [field.value_span for field in fields_of(text)] == [(4, 4), (16, 16)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("- What: one\n  two,\n  three", "one two, three"),
        ("- What:\n  one\n   two", "one two"),
        ("What: one\n two", "one two"),
        ("10. What: one\n  two", "one two"),
        ("- What: one\n  and the rest: two", "one and the rest: two"),
        ("- What: one\n  Note, that is: two", "one Note, that is: two"),
    ],
)
def test_lines_that_are_indented_continue_the_value(text: str, value: str) -> None:
    (field,) = fields_of(text)

    assert field.value == value
    assert field.tail == []
    assert text[slice(*field.value_span)].split() == value.split()


@pytest.mark.parametrize(
    "text",
    ["- What: one\ntwo\n three", "What: one\ntwo\n three", "1. What: one\ntwo\n  three", "**What: one**\n two\nthree"],
)
def test_lines_that_are_not_indented_are_left_over(text: str) -> None:
    (field,) = fields_of(text)

    assert field.value == "one"
    assert [text[start:end] for start, end in field.tail] == ["two", "three"]


def test_a_later_line_of_a_paragraph_is_a_field_if_its_label_is_bold_or_short_and_capital() -> None:
    text = "VALIDATION REPORT\nVerdict: FAIL\n**and bold:** a\nReason for FAIL (first): b\nand so on: c\nIf it is so: d"

    assert pairs(text) == [("Verdict", "FAIL"), ("and bold", "a"), ("Reason for FAIL (first)", "b")]


def test_a_later_field_is_continued_by_lines_that_are_indented_deeper_than_itself() -> None:
    (first, second) = fields_of("- A: 1\n  B:\n  two\n   three")

    assert (first.value, second.value, len(second.tail)) == ("1", "", 2)


def test_further_paragraphs_of_an_item_may_be_fields_too() -> None:
    assert pairs("- A: 1\n\n  B: 2\n\n  no such label: 3") == [("A", "1"), ("B", "2")]
    assert pairs("- words\n\n  B: 2") == [("B", "2")]


def test_lists_and_fences_in_the_item_belong_to_its_field() -> None:
    text = "- A: 1\n  - one\n    - deeper: 2\n      - deepest\n  ```sh\n  just\n  ```\n- B: 3\n"
    (field, other) = fields_of(text)
    (one,) = field.children
    (deeper,) = one.children

    assert (one.text, deeper.text, deeper.children[0].text) == ("one", "deeper: 2", "deepest")
    assert [fence.text(text) for fence in field.fences] == ["just"]
    assert (other.children, other.fences, other.fields) == ([], [], [])
    assert [(inner.key, inner.value) for inner in deeper.fields] == [("deeper", "2")]


def test_nested_items_are_read_as_fields_on_demand() -> None:
    (field,) = fields_of("- EVIDENCE: `run`\n  - COMMAND: just\n  - prose\n  - EXIT_CODE: 0\n")

    assert [(inner.name, inner.value) for inner in field.fields] == [("command", "just"), ("exit_code", "0")]


def test_what_follows_the_last_field_of_an_item_belongs_to_that_field() -> None:
    (first, second) = fields_of("- A: 1\n  B: 2\n  - b")

    assert (first.children, [item.text for item in second.children]) == ([], ["b"])


def test_a_list_in_an_item_of_prose_belongs_to_no_field() -> None:
    (item,) = items_of("- words\n  - a: 1")

    assert item.fields == []
    assert item.children[0].fields[0].value == "1"


def test_a_paragraph_that_ends_in_a_colon_owns_the_list_below_but_does_not_hide_its_fields() -> None:
    (caption, field) = fields_of("Scope Inputs:\n- Spec: v1\n- other\n")

    assert [item.text for item in caption.children] == ["Spec: v1", "other"]
    assert (field.key, field.value) == ("Spec", "v1")


@pytest.mark.parametrize(
    "text", ["A: 1\n\n- a", "A:\nwords\n\n- a", "A:\n\nwords\n\n- a", "A:\n\n---\n- a", "words\n\n- a\n\nA:\n"]
)
def test_only_the_block_right_below_an_empty_paragraph_field_belongs_to_it(text: str) -> None:
    (field,) = fields_of(text)

    assert field.owned == []


def test_a_fence_below_an_empty_paragraph_field_belongs_to_it() -> None:
    text = "TEST_PLAN:\n```bash\njust test\n```\n- a\n"
    (field,) = fields_of(text)

    assert [fence.text(text) for fence in field.fences] == ["just test"]
    assert field.children == []


@pytest.mark.parametrize(
    ("value", "bare"),
    [
        ("`a`", "a"),
        ("**a**", "a"),
        ("*a*", "a"),
        ("a", "a"),
        ("`a` b", "`a` b"),
        ("`a`, `b`", "`a`, `b`"),
        ("``", "``"),
    ],
)
def test_a_value_has_a_bare_form_without_its_marks(value: str, bare: str) -> None:
    text = f"- KEY: {value}"
    (field,) = fields_of(text)

    assert (field.value, field.bare, text[slice(*field.bare_span)]) == (value, bare, bare)


def test_a_field_shows_its_key_and_value() -> None:
    assert repr(fields_of("- A: 1")) == "[Field('A': '1')]"


def test_items_know_their_text_box_and_number() -> None:
    text = "1. [x] done\n2. [ ] open\n   more\n3. [X]\n4. [-] neither\n5. # Title\n6. ```\n   a\n   ```\n7.\n8. [x]y\n"
    items = items_of(text)

    assert [item.number for item in items] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [item.ticked for item in items] == [True, False, True, None, None, None, None, None]
    assert [item.text for item in items] == ["done", "open more", "", "[-] neither", "Title", "", "", "[x]y"]
    assert [text[slice(*item.box)] for item in items if item.box] == ["x", " ", "X"]
    assert text[slice(*items[1].span)] == "open\n   more"


def test_items_of_bullet_lists_have_no_number() -> None:
    (item,) = items_of("words\n\n- [ ] a\n\nwords")

    assert (item.number, repr(item)) == (None, "Item('a')")


def test_a_list_is_read_once_and_callers_may_change_what_they_were_given() -> None:
    source = Source("file.md", "- a\n- b\n")
    blocks = blocks_of(source)
    first = read_items(source, blocks)
    a, b = first
    first.clear()

    again = read_items(source, blocks)
    assert again[0] is a
    assert again[1] is b


@given(DOCUMENTS)
def test_fields_and_items_stand_in_the_text_in_order(text: str) -> None:
    source = Source("file.md", text)
    end = 0
    for field in read_fields(source, blocks_of(source)):
        assert end <= field.key_span[0] < field.key_span[1] < field.value_span[0] <= field.value_span[1] <= len(text)
        assert text[slice(*field.value_span)].split() == field.value.split()
        assert "\n" not in field.key
        end = field.value_span[1]
    for item in read_items(source, blocks_of(source)):
        assert 0 <= item.span[0] <= item.span[1] <= len(text)
        assert text[slice(*item.span)].split() == item.text.split()


@given(DOCUMENTS)
def test_a_label_begins_at_the_key_and_ends_in_a_colon(text: str) -> None:
    source = Source("file.md", text)
    for line in range(1, source.line_count + 1):
        label = first_label(text, *source.line_span(line))
        later = later_label(text, *source.line_span(line))
        assert later in (label, None)
        if label is not None:
            (_, key_end), (value_start, _) = label
            assert ":" in text[key_end:value_start]
