"""The YAML loader: what it reads, where everything stands, and what it refuses."""

from __future__ import annotations

import pytest

from text.reading import exactly, places, source_of
from workpacket.text.source import Limits, Node, Source
from workpacket.text.yaml_strict import load_yaml

pytestmark = pytest.mark.usefixtures("engine")

READ = {
    "a mapping in a mapping": ("a:\n  b: c\n  d: e\n", {"a": {"b": "c", "d": "e"}}),
    "a list below its key": ("a:\n- 1\n- 2\n", {"a": [1, 2]}),
    "a list in a list": ("- - a\n  - b\n- c\n", [["a", "b"], "c"]),
    "mappings in a list": ("- id: T1\n  files: [x]\n- id: T2\n", [{"id": "T1", "files": ["x"]}, {"id": "T2"}]),
    "brackets over several lines": ("a: [\n  1,\n  # two\n  {b: c},\n]\n", {"a": [1, {"b": "c"}]}),
    "a pair in a list": ("[a: b, c]", [{"a": "b"}, "c"]),
    "keys without values": ("a:\nb: {c, d: }\n", {"a": None, "b": {"c": None, "d": None}}),
    "a value on the next line": ("a:\n  b\n  c\n", {"a": "b c"}),
    "quotes": ("a: '1'\nb: \"\\x41\\n\"\nc: ''\n", {"a": "1", "b": "A\n", "c": ""}),
    "quotes over two lines": ("a: 'b\n  c'\n", {"a": "b c"}),
    "blocks of text": (
        "a: |\n  b\n   c\n\nd: >-\n  e\n  f\ng: |+\n  h\n\n",
        {"a": "b\n c\n", "d": "e f", "g": "h\n\n"},
    ),
    "a block at the end of a file without line end": ("a: |\n  b", {"a": "b\n"}),
    "keys that are text to us": ("1: a\ntrue: b\nnull: c\nno: d\n", {"1": "a", "true": "b", "null": "c", "no": "d"}),
    "a quoted merge key": ("'<<': a\n", {"<<": "a"}),
    "an empty quoted key": ('"": a\n', {"": "a"}),
    "comments": ("# one\na: b # two\n# three\n", {"a": "b"}),
    "a number sign in a word": ("a: C#\nb: x#y\n", {"a": "C#", "b": "x#y"}),
    "question marks": ("a: [what?, ?x, a?b]\nb: why? because\n", {"a": ["what?", "?x", "a?b"], "b": "why? because"}),
    "a colon in a word": ("a: http://b:c\n", {"a": "http://b:c"}),
    "tabs where they are allowed": ('a: "b\tc" # \td\ne: |\n  f\tg\n', {"a": "b\tc", "e": "f\tg\n"}),
    "crlf": ("a: b\r\nc: |\r\n  d\r\n", {"a": "b", "c": "d\n"}),
    "document marks": ("---\na: b\n...\n", {"a": "b"}),
    "characters of any kind": ("é😀: \u00a0\n", {"é😀": "\u00a0"}),
    "an escape for a character beyond the BMP": ('a: "\\U0001F600"', {"a": "😀"}),
    "nothing": ("", None),
    "nothing but comments": ("# a\n\n# b", None),
    "nothing but a mark": ("---", None),
    "one word": ("a", "a"),
}


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ)
def test_it_reads(text: str, value: object) -> None:
    loaded = load_yaml(source_of(text))
    assert loaded.faults == ()
    assert loaded.root is not None
    assert exactly(loaded.root.plain()) == exactly(value)


REFUSED = {
    "an anchor": ("a: &x b", [("yaml_anchor", 1, 4)]),
    "an alias": ("a: *x", [("yaml_alias", 1, 4)]),
    "an alias alone": ("*x", [("yaml_alias", 1, 1)]),
    "an alias as a key": ("a: b\n*x : c\n", [("yaml_alias", 2, 1)]),
    "an anchored list": ("a: &x [b]", [("yaml_anchor", 1, 4)]),
    "a tag": ("a: !!str 1", [("yaml_tag", 1, 4)]),
    "the shortest tag": ("a: ! 1", [("yaml_tag", 1, 4)]),
    "a tagged mapping": ("!x\na: b", [("yaml_tag", 1, 1)]),
    "a merge key": ("<<: {a: b}", [("yaml_merge_key", 1, 1)]),
    "a version": ("%YAML 1.2\n---\na: b", [("yaml_directive", 1, 1)]),
    "a directive below comments": ("# c\n\n  # d\n%FOO\n---\na", [("yaml_directive", 4, 1)]),
    "a second document": ("a: b\n---\nc: d\n", [("yaml_several_documents", 2, 1)]),
    "no key": ("?\n: a", [("yaml_key_not_text", 1, 2), ("yaml_question_mark", 1, 1)]),
    "a list as a key": ("[a]: b", [("yaml_key_not_text", 1, 1)]),
    "a mapping as a key in braces": ("{{a: b}: c, d: e}", [("yaml_key_not_text", 1, 2)]),
    "a marked key": ("? a\n: b\n", [("yaml_question_mark", 1, 1)]),
    "a trailing tab": ("a: b\t\n", [("yaml_tab", 1, 5)]),
    "a tab as indentation": ("a:\n\tb: c\n", [("yaml_tab", 2, 1)]),
    "a tab in plain text": ("a: b\tc", [("yaml_tab", 1, 5)]),
    "a tab after the mark of a block": ("a: |\t\n  b", [("yaml_tab", 1, 5)]),
    "a tab where a block begins": ("a: |\n \tb\n", [("yaml_tab", 2, 2)]),
    "a block as the document": ("|\n a\n", [("yaml_bare_block", 1, 1)]),
    "an unfinished block": ("a: |\n  b\n   ", [("yaml_unfinished_block", 3, 1)]),
    "NUL": ("a: b\n\0: d\0", [("yaml_character", 2, 1)]),
    "a line end of YAML 1.1": ("a: b\u2028c", [("yaml_character", 1, 5)]),
    "a byte order mark inside": ("a: b\ufeff", [("yaml_character", 1, 5)]),
    "the code point we use ourselves": ("a: \U0010ffff", [("yaml_character", 1, 4)]),
    "an escape for it": ('a: "\\U0010FFFF"', [("yaml_character", 1, 5)]),
    "no character": ('a: "\\U00110000"', [("yaml_syntax", 1, 7)]),
    "a lone dash in brackets": ("[-]", [("yaml_syntax", 1, 2)]),
    "a colon touching a bracket": ("{a:[b]}", [("yaml_syntax", 1, 3)]),
    "an open quote": ("a: 'b\nc: d\n", [("yaml_syntax", 1, 4)]),
    "an open bracket": ("a: b\nc: [d,\n  e\n", [("yaml_syntax", 2, 4)]),
    "an open bracket before more": ("a: [b\nc: d\n", [("yaml_syntax", 2, 2)]),
    "two colons": ("a: b: c", [("yaml_syntax", 1, 5)]),
    "a stray line": ("a: b\nc\nd: e\n", [("yaml_syntax", 2, 1)]),
    "a forbidden beginning": ("a: @b", [("yaml_syntax", 1, 4)]),
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", [("yaml_duplicate_key", 3, 1)]),
    "a duplicate key in other quotes": ("{'1': a, 1: b}", [("yaml_duplicate_key", 1, 10)]),
}


@pytest.mark.parametrize(("text", "faults"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_yaml(source)
    assert loaded.root is None
    assert places(source, loaded) == faults


# Refused by both parsers, but not for the same reason or not at the same character.
REFUSED_DIFFERENTLY = {
    "a lone question mark in brackets": ("[a ? b]", ("yaml_question_mark", 1, 4), ("yaml_syntax", 1, 4)),
    "a comment glued to a block": ("a: >#c\n  b\n", ("yaml_comment_without_blank", 1, 5), ("yaml_syntax", 1, 5)),
    "half a character": ('a: "\\ud83d"', ("yaml_syntax", 1, 7), ("yaml_syntax", 1, 4)),
    "an escape that is none": ('a: "\\d"', ("yaml_syntax", 1, 5), ("yaml_syntax", 1, 6)),
}


@pytest.mark.parametrize(("text", "libyaml", "pyyaml"), REFUSED_DIFFERENTLY.values(), ids=REFUSED_DIFFERENTLY)
def test_each_parser_refuses_in_its_way(
    engine: str, text: str, libyaml: tuple[str, int, int], pyyaml: tuple[str, int, int]
) -> None:
    source = source_of(text)
    loaded = load_yaml(source)
    assert loaded.root is None
    assert places(source, loaded) == [{"libyaml": libyaml, "pyyaml": pyyaml}[engine]]


def test_a_glued_comment_is_refused_and_repaired() -> None:
    source = source_of("a: 'b'#c\n")
    loaded = load_yaml(source)
    assert places(source, loaded) == [("yaml_comment_without_blank", 1, 7)]
    assert loaded.faults[0].fix is not None
    assert [(edit.start, edit.end, edit.text) for edit in loaded.faults[0].fix.edits] == [(6, 6, " ")]


def test_a_duplicate_key_names_both_lines() -> None:
    faults = load_yaml(source_of("a: 1\nb: 2\na: 3\n")).faults
    assert [fault.message for fault in faults] == ["the key 'a' occurs on line 1 and again on line 3"]
    faults = load_yaml(source_of("{a: 1, a: 2}")).faults
    assert [fault.message for fault in faults] == ["the key 'a' occurs twice on line 1"]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    source = source_of("a: &x b\nc: *x\n[d]: e\na: !t f\n<<: g\n")
    assert places(source, load_yaml(source)) == [
        ("yaml_anchor", 1, 4),
        ("yaml_alias", 2, 4),
        ("yaml_key_not_text", 3, 1),
        ("yaml_duplicate_key", 4, 1),
        ("yaml_tag", 4, 4),
        ("yaml_merge_key", 5, 1),
    ]


MESSAGES = {
    "a: b: c": "a ':' starts a key where a key is not allowed",
    "a: b\nc\nd: e\n": "this is neither 'key: value' nor part of the value above",
    "a: @b": "a value cannot begin with this character",
    "a: 'b": "this quote is never closed",
    "a: 'b\n---\nc'": "this quote is not closed before the '---'",
    'a: "\\d"': "invalid YAML escape",
    'a: "\\U00110000"': "this escape does not represent a character",
    'a: "\\x4"': "this escape is incomplete",
    "a: [b\n": "a list in brackets lacks a ',' or its ']'",
    "a: {b\nc: d": "a mapping in braces lacks a ',' or its '}' (in the structure that begins on line 1)",
    "a: |b\n c": "only a comment may follow a block scalar indicator",
    "a: - b": "a list item is not allowed here",
    "a:\n  b: c\n d: e\n": "this line does not match the lines above it (in the structure that begins on line 1)",
    "- a\nb: c\n": "this line does not match the lines above it (in the structure that begins on line 1)",
    "a: 'b'c\n": "the value already ended before this point",
    "a:\n\tb": "a tab where spaces are required",
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.items())
def test_messages_are_for_people(text: str, message: str) -> None:
    assert [fault.message for fault in load_yaml(source_of(text)).faults] == [message]


def test_what_came_before_a_syntax_error_is_told_too() -> None:
    source = source_of("a: &x b\na: c\nd: 'e\n")
    assert places(source, load_yaml(source)) == [
        ("yaml_anchor", 1, 4),
        ("yaml_duplicate_key", 2, 1),
        ("yaml_syntax", 3, 4),
    ]


def test_tabs_and_number_signs_in_anchored_quotes_are_no_faults_of_their_own() -> None:
    source = source_of('a: &x "b\t#c"')
    assert places(source, load_yaml(source)) == [("yaml_anchor", 1, 4)]


def test_a_tab_between_values_is_repaired_by_a_blank(engine: str) -> None:
    fix = load_yaml(source_of("a: [b] \t# c\n")).faults[0].fix
    # PyYAML's own parser gives up at the tab, and who gives up repairs nothing.
    assert (fix is not None) == (engine == "libyaml")
    if fix is not None:
        assert [(edit.start, edit.end, edit.text) for edit in fix.edits] == [(7, 8, " ")]


def test_characters_are_counted_and_shown_once() -> None:
    faults = load_yaml(source_of("a: \x07\x07\nb: \x1b\n")).faults
    assert [fault.message for fault in faults] == ["character U+0007 is not allowed in YAML, and 2 more like it"]


def test_bytes_that_are_not_utf8_are_refused_at_their_place() -> None:
    source = Source.from_bytes("file", b"a: b\nc: \xe9t\xe9\n")
    loaded = load_yaml(source)
    assert loaded.root is None
    assert places(source, loaded) == [("text_not_utf8", 2, 4)]
    assert loaded.faults[0].message == "byte 0xE9 is not UTF-8, and 1 more after it"


def spans(text: str) -> dict[str, str]:
    """Of every value in `text`, the characters it stands for."""
    root = load_yaml(source_of(text)).root
    assert root is not None
    found: dict[str, str] = {}

    def visit(node: Node, path: str) -> None:
        found[path] = text[node.start : node.end]
        for key, child in node.mapping.items():
            assert node.keys is not None
            start, end = node.keys[key]
            found[f"{path}{key}:"] = text[start:end]
            visit(child, f"{path}{key}/")
        for index, child in enumerate(node.items):
            visit(child, f"{path}{index}/")

    visit(root, "")
    return found


SPANS = {
    "a scalar with its quotes": ("'a': \"b\" # c\n", {"": "'a': \"b\"", "a:": "'a'", "a/": '"b"'}),
    "a value over two lines": ("a: b\n  c # d\n", {"": "a: b\n  c", "a:": "a", "a/": "b\n  c"}),
    "a list in brackets": ("a: [b, ]\n", {"": "a: [b, ]", "a:": "a", "a/": "[b, ]", "a/0/": "b"}),
    "a list with dashes": ("a:\n- b # c\n\n# d\n", {"": "a:\n- b", "a:": "a", "a/": "- b", "a/0/": "b"}),
    "a block, without the blank lines below": (
        "a: | # b\n  c\n\n\n# d\n",
        {"": "a: | # b\n  c\n", "a:": "a", "a/": "| # b\n  c\n"},
    ),
    "a block that keeps its blank lines": (
        "a: |+\n  c\n\n# d\n",
        {"": "a: |+\n  c\n\n", "a:": "a", "a/": "|+\n  c\n\n"},
    ),
    "a block whose last line is blank": (
        "a: |\n  c\n   \n\n# d\n",
        {"": "a: |\n  c\n   \n", "a:": "a", "a/": "|\n  c\n   \n"},
    ),
    "an empty block": ("a: |\n\nb: c", {"": "a: |\n\nb: c", "a:": "a", "a/": "|\n\n", "b:": "b", "b/": "c"}),
    "a block with a stated indentation": ("a: |1\n  b\n\n", {"": "a: |1\n  b\n\n", "a:": "a", "a/": "|1\n  b\n\n"}),
}


@pytest.mark.parametrize(("text", "expected"), SPANS.values(), ids=SPANS)
def test_a_span_is(text: str, expected: dict[str, str]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    ("text", "path", "start"),
    [
        ("a:\nb: c\n", ("a",), 2),
        ("a:  # c\n", ("a",), 2),
        ("- \n-\n", (1,), 4),
        ("---", (), 3),
        ("{a: , b}", ("a",), 3),
        ("{a: , b}", ("b",), 7),
        ("{'a' :  # d\n}", ("a",), 6),
    ],
)
def test_a_value_left_out_stands_where_it_would_stand(text: str, path: tuple[str | int, ...], start: int) -> None:
    root = load_yaml(source_of(text)).root
    assert root is not None
    node = root.get(*path)
    assert node is not None
    assert (node.value, node.span) == (None, (start, start))


def test_a_part_of_a_file_is_read_with_the_places_of_the_whole() -> None:
    source = source_of("é\r\na: 'b'\r\nc: [1]\r\n---\nnot: [yaml")
    loaded = load_yaml(source, start=3, end=19)
    assert loaded.root is not None
    assert loaded.root.plain() == {"a": "b", "c": [1]}
    assert loaded.root.keys == {"a": (3, 4), "c": (11, 12)}
    assert places(source, load_yaml(source, start=24)) == [("yaml_syntax", 5, 6)]


def test_the_end_of_a_part_is_the_end_of_its_text() -> None:
    source = source_of("a: |\n  b\n---\n")
    loaded = load_yaml(source, start=0, end=8)
    assert loaded.root is not None
    assert loaded.root.plain() == {"a": "b\n"}
    assert loaded.root.span == (0, 8)


SMALL = Limits(size=100, depth=3, nodes=5)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: [[b]]", []),
        ("a: [[[b]]]", [("limit_depth", 1, 6)]),
        ("- - - a", []),
        ("- - - - a", [("limit_depth", 1, 7)]),
        ("a:\n  b:\n    c:\n      d: e\n", [("limit_depth", 4, 7)]),
        ("[1, 2, 3, 4]", []),
        ("[1, 2, 3, 4, 5]", [("limit_nodes", 1, 14)]),
        ("[1, 2, 3, 4, {}]", [("limit_nodes", 1, 14)]),
        ("[1, 2, 3, 4, *x]", [("yaml_alias", 1, 14), ("limit_nodes", 1, 14)]),
        ("a" * 100, []),
        ("a" * 101, [("limit_size", 1, 1)]),
        ("é" * 51, [("limit_size", 1, 1)]),
    ],
)
def test_limits_hold_exactly(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_yaml(source, limits=SMALL)
    assert places(source, loaded) == faults
    assert (loaded.root is None) == bool(faults)
