"""How the tests of the loaders speak about texts, trees and faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from hypothesis import strategies as st

from workpacket.text import yaml_tree
from workpacket.text.source import Loaded, Node, Source

# libyaml through PyYAML, which the package takes where it is there, and PyYAML's own parser.
PARSERS: dict[str, type[yaml.CBaseLoader] | type[yaml.BaseLoader]] = {
    "libyaml": yaml.CBaseLoader,
    "pyyaml": yaml.BaseLoader,
}


@contextmanager
def parsed_by(name: str) -> Iterator[None]:
    usual = yaml_tree.LOADER
    yaml_tree.LOADER = PARSERS[name]
    try:
        yield
    finally:
        yaml_tree.LOADER = usual


def source_of(text: str) -> Source:
    return Source("file", text)


def places(source: Source, loaded: Loaded) -> list[tuple[str, int, int]]:
    """Code, line and column of every fault."""
    return [(fault.code, *source.line_and_column(fault.start)) for fault in loaded.faults]


def codes(loaded: Loaded) -> set[str]:
    return {fault.code for fault in loaded.faults}


def outline(node: Node) -> object:
    """All that a tree says: values with their types, the order of keys, and every span."""
    if isinstance(node.value, dict):
        return (node.span, node.keys, [(key, outline(child)) for key, child in node.value.items()])
    if isinstance(node.value, list):
        return (node.span, [outline(child) for child in node.value])
    return (node.span, type(node.value), node.value)


def paths(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every node with its path, the root first."""
    yield path, node
    for key, child in node.mapping.items():
        yield from paths(child, (*path, key))
    for index, child in enumerate(node.items):
        yield from paths(child, (*path, index))


def exactly(value: object) -> str:
    """A text that is equal for two values of JSON only if types and the order of keys are equal too."""
    return repr(value)


# Text that means something to a YAML reader far more often than chance would have it.
YAML_TOKENS = st.sampled_from(
    [
        *"ab1~:-?#,[]{}'\"|>&*!%@`\\. \n\t",
        ": ",
        "- ",
        "a: ",
        "b: ",
        "? ",
        " #",
        "\n  ",
        "\n- ",
        "\n\n",
        " |\n",
        ">+\n ",
        "\r\n",
    ]
)
YAML_TEXTS = st.lists(YAML_TOKENS, max_size=18).map("".join)

# A document as people write it: entries in every style, comments at every place a comment may stand.
YAML_ENTRIES = (
    "plain: one two  # p",
    "date: 2026-06-08",
    "single: 'it''s' # s",
    'double: "a\\tb"',
    "lines: one\n  two\n  three # l",
    "nothing:",
    "nothing said: # n",
    "null said: null # ns",
    "number: 12 # i",
    "flag: true",
    "block: | # b\n  one\n    two\n\n  three\n",
    "strip: >-\n  one\n  two",
    "keep: |+\n  one\n\n",
    "none: []",
    "no pairs: {} # np",
    "short: [a, b, 'c'] # sh",
    "long: [\n  a, # l1\n  # l2\n  b, # l3\n] # l4",
    "long too: [\n  a,\n  b # lt\n]",
    "wrapped: [a,\n  b, c]",
    "pairs: {x: 1, y, z: } # pa",
    "list:\n  - a # li1\n  # li2\n  - b\n\n  - 'c'",
    "margin:\n- a\n- b # m",
    "only: # o1\n  - a # o2\n  # o3",
    "items:\n  - id: T1 # i1\n    files: [x, y]\n  - id: T2\n    note: |\n      one\n      two\n  # i2\n  - {id: T3}",
    "lists:\n  - - a # ls\n    - b\n  - - c\n  - []",
    "inner:\n  one:\n    two: x # in\n  # in2\n  three:",
)
YAML_DOCUMENTS = st.builds(
    lambda entries, between, eol, end: eol.join("\n".join(f"{entry}{between}" for entry in entries).split("\n")) + end,
    st.lists(st.sampled_from(YAML_ENTRIES), min_size=1, max_size=4, unique=True),
    st.sampled_from(["", "", "\n", "\n# between", "\n  # deeper"]),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["\n", "", "\n\n# end\n"]),
)

# Documents in which tabs and number signs have slipped.
REPAIRABLE_TEXTS = st.builds(
    lambda text, slip: text.replace(*slip),
    YAML_DOCUMENTS,
    st.sampled_from([(", ", ",\t"), (" # ", "\t# "), ("' #", "'#"), ("] #", "]#"), (": ", ":\t\t"), ("\n", "\t\n")]),
)

JSON_TOKENS = st.sampled_from(
    [
        *'[]{}:,"\\ \n',
        '"a"',
        '"a":',
        '"b": ',
        "0",
        "-1.5e3",
        "true",
        "null",
        "NaN",
        "\\ud800",
        '"\\ud83d\\ude00"',
        "9" * 20,
    ]
)
JSON_TEXTS = st.lists(JSON_TOKENS, max_size=18).map("".join)

TOML_TOKENS = st.sampled_from(
    [
        *"[]{}=.,\"'#\n ",
        "a",
        "b = ",
        "a.b = ",
        "[a]\n",
        "[[b]]\n",
        "1",
        "-inf",
        "true",
        "1979-05-27 07:32:00",
        '"""\n',
        "'''",
    ]
)
TOML_TEXTS = st.lists(TOML_TOKENS, max_size=18).map("".join)

ANY_BYTES = st.one_of(
    st.binary(max_size=60),
    st.one_of(YAML_TEXTS, JSON_TEXTS, TOML_TEXTS).map(str.encode),
    st.tuples(st.sampled_from([b"", b"\xef\xbb\xbf"]), YAML_TEXTS.map(str.encode), st.binary(max_size=3)).map(b"".join),
)

# Strings that YAML readers are known to stumble over, and strings of any other kind.
WRITABLE_TEXTS = st.one_of(
    st.sampled_from(
        ["yes", "12", "0x1f", "1e3", "-", "---", "...", "null", "", "2020-01-01", "12:30", "<<", "=", "1_0"]
    ),
    st.text(alphabet="ab:-?#,[]{}'\"|>~1 \n\t\\.&*!%@`=<yn0e_\r\x85\u2028\ufeff\0", max_size=10),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\U0010ffff"), max_size=10),
)
WRITABLE_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(min_value=1 - 10**15, max_value=10**15 - 1), WRITABLE_TEXTS
)
WRITABLE_VALUES = st.recursive(
    WRITABLE_SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WRITABLE_TEXTS, inner, max_size=4)),
    max_leaves=12,
)
