"""The TOML loader: values by tomllib, and the places of all keys and values."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings

from text.reading import TOML_TEXTS, exactly, places, source_of
from workpacket.text.source import Limits, Node, Source
from workpacket.text.toml_strict import load_toml

DOCUMENT = '''# a policy
title = "one"   # of many
"quoted key" . sub = 'a'
'l"iteral' = """
[not.a] = "header" \\
"""
"esc\\u0061ped" = \'\'\'
b\'\'\'
[check.ignore]
"a.md" = [
  { rule = "x", reason = "[y]" },  # }
  [1, -2.5, true],
]
empty = [ ]
none = { }
[[signer]]
name = "a"
[signer.key]
kind = "b"
[[signer]]
since = 1979-05-27 07:32:00Z
until = 2030-01-01
at = 07:32:00
[check]
strict = false
'''

PLACES = {
    ("title",): ("title", '"one"'),
    ("quoted key",): ('"quoted key"', '"quoted key"'),
    ("quoted key", "sub"): ("sub", "'a'"),
    ('l"iteral',): ("'l\"iteral'", '"""\n[not.a] = "header" \\\n"""'),
    ("escaped",): ('"esc\\u0061ped"', "'''\nb'''"),
    ("check",): ("check", "[check]"),
    ("check", "ignore"): ("ignore", "[check.ignore]"),
    ("check", "ignore", "a.md"): (
        '"a.md"',
        '[\n  { rule = "x", reason = "[y]" },  # }\n  [1, -2.5, true],\n]',
    ),
    ("check", "ignore", "a.md", 0): (None, '{ rule = "x", reason = "[y]" }'),
    ("check", "ignore", "a.md", 0, "rule"): ("rule", '"x"'),
    ("check", "ignore", "a.md", 0, "reason"): ("reason", '"[y]"'),
    ("check", "ignore", "a.md", 1): (None, "[1, -2.5, true]"),
    ("check", "ignore", "a.md", 1, 1): (None, "-2.5"),
    ("check", "ignore", "empty"): ("empty", "[ ]"),
    ("check", "ignore", "none"): ("none", "{ }"),
    ("check", "strict"): ("strict", "false"),
    ("signer",): ("signer", "[[signer]]"),
    ("signer", 0, "name"): ("name", '"a"'),
    ("signer", 0, "key"): ("key", "[signer.key]"),
    ("signer", 0, "key", "kind"): ("kind", '"b"'),
    ("signer", 1): (None, "[[signer]]"),
    ("signer", 1, "since"): ("since", "1979-05-27 07:32:00Z"),
}


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(("path", "expected"), PLACES.items(), ids=str)
def test_a_key_and_its_value_stand_at(path: tuple[str | int, ...], expected: tuple[str | None, str], eol: str) -> None:
    text = DOCUMENT.replace("\n", eol)
    root = load_toml(source_of(text)).root
    assert root is not None
    node, above = root.get(*path), root.get(*path[:-1])
    assert node is not None
    assert above is not None
    assert text[node.start : node.end] == expected[1].replace("\n", eol)
    if expected[0] is not None:
        assert above.keys is not None
        start, end = above.keys[str(path[-1])]
        assert text[start:end] == expected[0]


def test_dates_are_the_text_that_was_written() -> None:
    root = load_toml(source_of(DOCUMENT)).root
    assert root is not None
    signer = root.get("signer", 1)
    assert signer is not None
    assert signer.plain() == {"since": "1979-05-27 07:32:00Z", "until": "2030-01-01", "at": "07:32:00"}


def test_the_second_table_of_a_list_stands_at_its_own_header() -> None:
    root = load_toml(source_of(DOCUMENT)).root
    assert root is not None
    starts = [node.start for node in root.mapping["signer"].items]
    assert starts == [DOCUMENT.index("[[signer]]"), DOCUMENT.rindex("[[signer]]")]


def without_dates(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_dates(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


@settings(deadline=None)
@given(TOML_TEXTS)
def test_values_are_those_of_tomllib(text: str) -> None:
    loaded = load_toml(source_of(text))
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert loaded.root is None
        return
    if loaded.root is None:
        assert {fault.code for fault in loaded.faults} == {"toml_number_range"}
        return
    assert _sorted(loaded.root.plain()) == _sorted(without_dates(value))
    assert _all_places_lie_inside(loaded.root, text)


def _sorted(value: object) -> str:
    """Without the order of keys: a table may be opened before and filled after another."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_sorted(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_sorted, value)) + "]"
    return exactly(value)


def _all_places_lie_inside(root: Node, text: str) -> bool:
    return all(0 <= node.start <= node.end <= len(text) for node in root.walk())


REFUSED = {
    "no value": ("a = 1\nb = \n", [("toml_syntax", 2, 5)]),
    "a key twice": ("a = 1\na = 2\n", [("toml_syntax", 2, 6)]),
    "a key twice at the end": ("a = 1\na = 2", [("toml_syntax", 2, 5)]),
    "a table twice": ("[a]\nb = 1\n[a]\n", [("toml_syntax", 3, 3)]),
    "crlf": ("a = 1\r\n\r\nb = \x01", [("toml_syntax", 3, 5)]),
    "a carriage return alone": ("a = 1\rb = 2", [("toml_syntax", 1, 6)]),
    "an open string": ('a = 1\nb = "x\n', [("toml_syntax", 2, 7)]),
    "the end of the file": ("a = [1,\n", [("toml_syntax", 1, 7)]),
    "NUL": ("\0", [("toml_syntax", 1, 1)]),
    "infinity": ("a = 1\nb = -inf", [("toml_number_range", 2, 5)]),
    "not a number": ("a = [1, nan]", [("toml_number_range", 1, 9)]),
    "two integers beyond exactness": (
        "a = 9007199254740992\nb = -9007199254740992",
        [("toml_number_range", 1, 5), ("toml_number_range", 2, 5)],
    ),
    "thousands of digits": ("a = 1\nb = " + "9" * 5000, [("toml_number_range", 2, 5)]),
}


@pytest.mark.parametrize(("text", "faults"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_toml(source)
    assert loaded.root is None
    assert places(source, loaded) == faults


def test_bytes_that_are_not_utf8_are_refused_at_their_place() -> None:
    source = Source.from_bytes("file", b'a = 1\nb = "\xe9"')
    assert places(source, load_toml(source)) == [("text_not_utf8", 2, 6)]


def test_a_byte_order_mark_is_let_pass() -> None:
    loaded = load_toml(Source.from_bytes("file", b"\xef\xbb\xbfa = 1"))
    assert loaded.root is not None
    assert loaded.root.plain() == {"a": 1}


SMALL = Limits(size=60, depth=4, nodes=6)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a = [[[]]]", []),
        ("a = [[[[]]]]", [("limit_depth", 1, 8)]),
        ("a = {b={c={d={}}}}", [("limit_depth", 1, 14)]),
        ("a.b.c.d = 1", []),
        ("a.b.c.d.e = 1", [("limit_depth", 1, 8)]),
        ("'a'.\"b\".c.d.e = 1", [("limit_depth", 1, 12)]),
        ("[a.b]\nc.d.e = 1", [("limit_depth", 2, 3)]),
        ("[a.b]\nc = [[]]", [("limit_depth", 2, 6)]),
        ("a = '[[[[[[.......'", []),
        ("# [[[[[[.......", []),
        ("a = [1, 2, 3, 4]", []),
        ("a = [1, 2, 3, 4, 5]", [("limit_nodes", 1, 18)]),
        ("# " + "x" * 59, [("limit_size", 1, 1)]),
    ],
)
def test_limits_hold_exactly(text: str, faults: list[tuple[str, int, int]]) -> None:
    source = source_of(text)
    loaded = load_toml(source, SMALL)
    assert places(source, loaded) == faults
    assert (loaded.root is None) == bool(faults)
