"""The JSON loader: RFC 8259 to the letter, with places, and a code for each way of going wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text.reading import JSON_TEXTS, exactly, places, source_of
from workpacket.text.json_strict import load_json
from workpacket.text.source import Limits, Node, Source, apply_edits

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)),
)


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 2]))
def test_it_reads_what_the_standard_library_writes(value: object, ascii_only: bool, indent: int | None) -> None:
    loaded = load_json(source_of(json.dumps(value, ensure_ascii=ascii_only, indent=indent)))
    assert loaded.root is not None
    assert exactly(loaded.root.plain()) == exactly(value)


def only_json(name: str) -> float:
    raise ValueError(name)


@given(JSON_TEXTS)
def test_it_accepts_nothing_that_the_standard_library_refuses(text: str) -> None:
    loaded = load_json(source_of(text))
    if loaded.root is not None:
        assert exactly(loaded.root.plain()) == exactly(json.loads(text, parse_constant=only_json))


@given(JSON_TEXTS)
def test_it_refuses_what_the_standard_library_accepts_only_for_a_stated_reason(text: str) -> None:
    loaded = load_json(source_of(text))
    try:
        json.loads(text, parse_constant=only_json)
    except ValueError:
        assert loaded.root is None
    else:
        beyond = {"json_duplicate_key", "json_lone_surrogate", "json_integer_range", "json_number_range"}
        assert {fault.code for fault in loaded.faults} <= beyond


REFUSED = {
    "nothing": ("", [("json_syntax", 1, 1)]),
    "blanks": (" \n", [("json_syntax", 2, 1)]),
    "an open list": ("[1,\n 2", [("json_syntax", 1, 1)]),
    "an open mapping": ('[\n {"a": 1,', [("json_syntax", 2, 2)]),
    "a mapping that ends in a key": ('{"a"', [("json_syntax", 1, 4)]),
    "a mapping that ends in a colon": ('{"a":', [("json_syntax", 1, 1)]),
    "an open string": ('["a', [("json_syntax", 1, 2)]),
    "an open key": ('{"a: 1}', [("json_syntax", 1, 2)]),
    "a trailing comma in a list": ("[1,\n]", [("json_syntax", 2, 1)]),
    "a trailing comma in a mapping": ('{"a": 1,\n}', [("json_syntax", 2, 1)]),
    "a leading comma": ("[,1]", [("json_syntax", 1, 2)]),
    "no comma": ("[1 2]", [("json_syntax", 1, 4)]),
    "no comma in a mapping": ('{"a": 1 "b": 2}', [("json_syntax", 1, 9)]),
    "no colon": ('{"a" 1}', [("json_syntax", 1, 6)]),
    "no value": ('{"a": }', [("json_syntax", 1, 7)]),
    "the wrong bracket": ("[1}", [("json_syntax", 1, 3)]),
    "a key that is no string": ("{1: 2}", [("json_syntax", 1, 2)]),
    "a comment for a key": ("{// c\n}", [("json_syntax", 1, 2)]),
    "a comment for a value": ("[/* c */ 1]", [("json_syntax", 1, 2)]),
    "a comment after a value": ("[1 # c\n]", [("json_syntax", 1, 4)]),
    "a comment at the end": ("[1] // c", [("json_syntax", 1, 5)]),
    "single quotes": ("['a']", [("json_syntax", 1, 2)]),
    "words": ("[yes]", [("json_syntax", 1, 2)]),
    "words of Python": ("[True]", [("json_syntax", 1, 2)]),
    "a leading zero": ("[01]", [("json_syntax", 1, 3)]),
    "a plus": ("[+1]", [("json_syntax", 1, 2)]),
    "a bare point": ("[1.]", [("json_syntax", 1, 3)]),
    "a star": ("[*]", [("json_syntax", 1, 2)]),
    "an escape that is none": ('["a\\d"]', [("json_syntax", 1, 4)]),
    "a short escape": ('{"\\u12": 1}', [("json_syntax", 1, 3)]),
    "a line end in a string": ('["a\nb"]', [("json_control_character", 1, 4)]),
    "NUL in a key": ('{"a\0": 1}', [("json_control_character", 1, 4)]),
    "NaN": ("[NaN]", [("json_not_a_number", 1, 2)]),
    "minus infinity": ('{"a": -Infinity}', [("json_not_a_number", 1, 7)]),
    "more after the value": ("{} {}", [("json_trailing_data", 1, 4)]),
    "a bracket too many": ("[]]", [("json_trailing_data", 1, 3)]),
    "one more than is exact": ("[9007199254740992]", [("json_integer_range", 1, 2)]),
    "a number of thousands of digits": ("-" + "9" * 5000, [("json_integer_range", 1, 1)]),
    "more than a float holds": ("[1e999, -1e999]", [("json_number_range", 1, 2), ("json_number_range", 1, 9)]),
    "half a character": ('["\\ud83d"]', [("json_lone_surrogate", 1, 2)]),
    "half a character in a key": ('{"\\udc00x": 1}', [("json_lone_surrogate", 1, 2)]),
    "halves in the wrong order": ('"\\ude00\\ud83d"', [("json_lone_surrogate", 1, 1)]),
    "a duplicate key": ('{"a": 1,\n "b": 2, "\\u0061": 3}', [("json_duplicate_key", 2, 10)]),
    "all that can be told at once": (
        '{"a": 1e999, "a": "\\ud800",\n "b": 9007199254740993, oops}',
        [
            ("json_number_range", 1, 7),
            ("json_lone_surrogate", 1, 19),
            ("json_duplicate_key", 1, 14),
            ("json_integer_range", 2, 7),
            ("json_syntax", 2, 25),
        ],
    ),
}


@pytest.mark.parametrize(("text", "faults"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_json(source)
    assert loaded.root is None
    assert places(source, loaded) == faults


@pytest.mark.parametrize(
    "text", ["9007199254740991", "-9007199254740991", "-0", "1E5", "-0.0", '"\\ud83d\\ude00\\/\\b"']
)
def test_the_last_value_before_a_limit_is_read(text: str) -> None:
    loaded = load_json(source_of(text))
    assert loaded.root is not None
    assert exactly(loaded.root.plain()) == exactly(json.loads(text))


def test_a_duplicate_key_names_both_lines() -> None:
    (fault,) = load_json(source_of('{"a": 1,\n "a": 2}')).faults
    assert fault.message == "the key 'a' occurs on line 1 and again on line 2"


def test_messages_say_what_json_wants() -> None:
    def message(text: str) -> str:
        return load_json(source_of(text)).faults[0].message

    assert message('{"a": [1\n 2]}') == "expected ',' or ']' in the list that begins on line 1"
    assert message('{"a": 1 "b"}') == "expected ',' or '}' in the mapping that begins on line 1"
    assert message("[1,]") == "expected a value, found a closing bracket"
    assert message("[\x0c]") == "a value cannot begin with '\\x0c'"


def test_a_byte_order_mark_is_a_warning_that_can_be_repaired() -> None:
    source = Source.from_bytes("file", b'\xef\xbb\xbf{"a": 1}')
    loaded = load_json(source)
    assert loaded.root is not None
    assert loaded.root.plain() == {"a": 1}
    assert places(source, loaded) == [("json_byte_order_mark", 1, 1)]
    assert loaded.faults[0].fix is not None
    assert apply_edits(source, loaded.faults[0].fix.edits).encode() == b'{"a": 1}'


def test_bytes_that_are_not_utf8_are_refused_at_their_place() -> None:
    source = Source.from_bytes("file", b'[\n"\xe9"]')
    assert places(source, load_json(source)) == [("text_not_utf8", 2, 2)]


def test_every_value_and_key_has_its_place() -> None:
    text = ' {"a" : [1 , "x\\n"],"b":{ },\n"c": -1.5e3 } '
    root = load_json(source_of(text)).root
    assert root is not None

    def slices(node: Node) -> list[str]:
        return [text[node.start : node.end], *(text[start:end] for start, end in (node.keys or {}).values())]

    assert [slices(node) for node in root.walk()] == [
        ['{"a" : [1 , "x\\n"],"b":{ },\n"c": -1.5e3 }', '"a"', '"b"', '"c"'],
        ['[1 , "x\\n"]'],
        ["1"],
        ['"x\\n"'],
        ["{ }"],
        ["-1.5e3"],
    ]


SMALL = Limits(size=60, depth=3, nodes=5)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("[[[1]]]", []),
        ("[[[[", [("limit_depth", 1, 4)]),
        ('{"a":{"a":{"a":{', [("limit_depth", 1, 16)]),
        ("[1,2,3,4]", []),
        ("[1,2,3,4,5]", [("limit_nodes", 1, 10)]),
        ('"' + "a" * 58 + '"', []),
        ('"' + "a" * 59 + '"', [("limit_size", 1, 1)]),
    ],
)
def test_limits_hold_exactly(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_json(source, SMALL)
    assert places(source, loaded) == faults
    assert (loaded.root is None) == bool(faults)
