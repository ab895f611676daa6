"""Files made to crash, confuse or exhaust a reader: each ends in a fault at its place, and soon.

The small ones are files in `hostile`, whose `expected.toml` says what must come of them. Those that need size are made
here. Seconds are not measured: a reader for which one of these families is quadratic would need minutes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from text.reading import codes, exactly, places, source_of
from workpacket.text.json_strict import load_json
from workpacket.text.source import DATA, REGISTER, Loaded, Source
from workpacket.text.toml_strict import load_toml
from workpacket.text.yaml_strict import load_yaml

HOSTILE = Path(__file__).with_name("hostile")
EXPECTED: list[dict[str, Any]] = tomllib.loads((HOSTILE / "expected.toml").read_text("utf-8"))["file"]
LOADERS: dict[str, Callable[[Source], Loaded]] = {".yaml": load_yaml, ".json": load_json, ".toml": load_toml}


def test_every_hostile_file_is_expected() -> None:
    assert {path.name for path in HOSTILE.iterdir()} - {"expected.toml", ".gitattributes"} == {
        expected["name"] for expected in EXPECTED
    }


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected["name"])
def test_a_hostile_file_ends_as_expected(expected: dict[str, Any]) -> None:
    path = HOSTILE / expected["name"]
    source = Source.from_bytes(path.name, path.read_bytes())
    loaded = LOADERS[path.suffix](source)
    if "value" in expected:
        assert loaded.root is not None
        assert exactly(loaded.root.plain()) == exactly(json.loads(expected["value"]))
        return
    assert loaded.root is None
    if "codes" in expected:
        assert codes(loaded) == set(expected["codes"])
    else:
        assert places(source, loaded) == [tuple(fault) for fault in expected["faults"]]


SIZE = DATA.size


def filled(unit: str, before: str = "", after: str = "") -> str:
    """`unit` as often as the limit of size allows."""
    return before + unit * ((SIZE - len(before) - len(after)) // len(unit.encode())) + after


YAML_BOMBS = {
    "30,000 brackets": ("[" * 30_000, "limit_depth"),
    "30,000 braces": ("{a: " * 30_000, "limit_depth"),
    "30,000 closed brackets": ("[" * 30_000 + "]" * 30_000, "limit_depth"),
    "dashes": ("- " * 30_000, "limit_depth"),
    "marked keys": ("? " * 30_000, "limit_depth"),
    "stairs of keys": ("".join(" " * depth + "a:\n" for depth in range(300)), "limit_depth"),
    "values": (filled("- a\n"), "limit_nodes"),
    "values in brackets": (filled("a,", "[", "]"), "limit_nodes"),
    "keys": (filled("a: b\n"), "yaml_duplicate_key"),
    "anchors": (filled("- &a b\n"), "yaml_anchor"),
    "tabs in a comment": (filled("\t", "a: b # "), None),
    "tabs in a block": (filled("\t", "a: |\n  b"), None),
    "tabs in quotes": (filled("\t", 'a: "', '"'), None),
    "tabs between values": (filled("\t", "[a,", "]"), "yaml_tab"),
    "comments in brackets": (filled("# a: b\n", "[\n", "]"), None),
    "number signs": (filled("a#", "b: "), None),
    "question marks": (filled("?x", "a: ["), "yaml_syntax"),
    "lone question marks": (filled(" ?", "a: [b", "]"), "yaml_question_mark"),
    "a scalar of many lines": (filled("a\n"), None),
    "a block of many blank lines": (filled(" \n", "a: |\n"), None),
    "a block of many blank lines and a tab": (filled(" \n", "a: |\n", "\tb"), "yaml_tab"),
    "escapes": (filled("\\x41", 'a: "', '"'), None),
    "a long key": ("a" * 200_000 + ": b", "yaml_syntax"),
    "an open quote": (filled("'' ", "a: '"), "yaml_syntax"),
    "blank lines": (filled("\n"), None),
    "control characters": (filled("\0"), "yaml_character"),
    "bytes that are not UTF-8": ("\udcff" * 200_000, "text_not_utf8"),
    "too much": (filled("a") + "a", "limit_size"),
    "too much in few characters": ("😀" * (SIZE // 4 + 1), "limit_size"),
}


@pytest.mark.parametrize(("text", "code"), YAML_BOMBS.values(), ids=YAML_BOMBS)
def test_a_yaml_bomb_does_not_go_off(text: str, code: str | None) -> None:
    loaded = load_yaml(source_of(text))
    assert (code is None) == (loaded.root is not None)
    assert code is None or code in codes(loaded)


@pytest.mark.usefixtures("engine")
def test_30_000_brackets_are_one_fault_with_either_parser() -> None:
    source = source_of("a: " + "[" * 30_000)
    loaded = load_yaml(source)
    assert places(source, loaded) == [("limit_depth", 1, 35)]


JSON_BOMBS = {
    "30,000 brackets": ("[" * 30_000, "limit_depth"),
    "30,000 braces": ('{"a":' * 30_000, "limit_depth"),
    "values": (filled("1,", "[", "1]"), "limit_nodes"),
    "digits": (filled("9"), "json_integer_range"),
    "digits behind the point": (filled("9", "0."), None),
    "digits of an exponent": (filled("9", "1e"), "json_number_range"),
    "escapes": (filled("\\ud83d\\ude00", '"', '"'), None),
    "halves of characters": (filled("\\ud83d", '"', '"'), "json_lone_surrogate"),
    "backslashes": (filled("\\", '"'), "json_syntax"),
    "an open string": (filled("a", '"'), "json_syntax"),
    "blanks": (filled(" "), "json_syntax"),
    "minus signs": (filled("-"), "json_syntax"),
    "keys": ('{"a":1' + ',"a":1' * 15_000 + "}", "json_duplicate_key"),
    "too much": (filled(" ", "1") + " ", "limit_size"),
}


@pytest.mark.parametrize(("text", "code"), JSON_BOMBS.values(), ids=JSON_BOMBS)
def test_a_json_bomb_does_not_go_off(text: str, code: str | None) -> None:
    loaded = load_json(source_of(text))
    assert (code is None) == (loaded.root is not None)
    assert code is None or code in codes(loaded)


TOML_BOMBS = {
    "30,000 brackets": ("a = " + "[" * 30_000, "limit_depth"),
    "30,000 braces": ("a = " + "{a = " * 30_000, "limit_depth"),
    "dots in a key": (filled("a.", "", "a = 1"), "limit_depth"),
    "dots in a header": (filled("a.", "[", "a]"), "limit_depth"),
    "headers": (filled("[[a]]\n"), "limit_nodes"),
    "values": (filled("1,", "a = [", "]"), "limit_nodes"),
    "long headers": ("".join("[" + "a." * 30 + f"b{number}]\n" for number in range(3_500)), None),
    "quotes": (filled('"'), "toml_syntax"),
    "almost closed quotes": (filled('""a', 'a = """'), "toml_syntax"),
    "digits": (filled("9", "a = "), "toml_number_range"),
    "comments": (filled("#\n"), None),
    "too much": (filled("#") + "#", "limit_size"),
}


@pytest.mark.parametrize(("text", "code"), TOML_BOMBS.values(), ids=TOML_BOMBS)
def test_a_toml_bomb_does_not_go_off(text: str, code: str | None) -> None:
    loaded = load_toml(source_of(text))
    assert (code is None) == (loaded.root is not None)
    assert code is None or code in codes(loaded)


def test_a_register_may_hold_more() -> None:
    text = "[" + "1," * 400_000 + "1]"
    assert codes(load_json(source_of(text))) == {"limit_size"}
    assert load_json(source_of(text), REGISTER).root is not None
