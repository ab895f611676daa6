"""What an unquoted scalar means: text, unless it is null, a boolean or a short integer without ornaments."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from text.reading import YAML_TEXTS, exactly, source_of
from workpacket.text.yaml_strict import has_plain_shape, load_yaml, raw_text, read_otherwise, resolve, written_as_text

# fmt: off
TEXT = [
    "2a", "2026-06-08", "2026-06-08T10:00:00Z", "12:30", "no", "yes", "on", "off", "y", "n", "nUll", "tRue", "1e3",
    "1E3", "0o17", "0x1F", "0123", "007", "1.5", ".5", "1.", "+5", "-0", "1_000", ".inf", ".nan", "1234567890123456",
    "-", "--", "<<", "=", "a",
]
# fmt: on


@pytest.mark.parametrize("text", TEXT)
def test_what_readers_guess_about_is_text(text: str) -> None:
    assert resolve(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("True", True),
        ("false", False),
        ("FALSE", False),
        ("0", 0),
        ("-1", -1),
        ("12", 12),
        ("123456789012345", 123456789012345),
        ("-999999999999999", -999999999999999),
    ],
)
def test_null_booleans_and_short_integers_are_values(text: str, value: object) -> None:
    assert exactly(resolve(text)) == exactly(value)


@given(st.one_of(YAML_TEXTS, st.from_regex(r"[-+]?[0-9]{1,17}", fullmatch=True)))
def test_the_text_of_an_integer_is_never_lost(text: str) -> None:
    value = resolve(text)
    assert not isinstance(value, int) or isinstance(value, bool) or str(value) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("no", "boolean"),
        ("Y", "boolean"),
        ("2026-06-08", "date"),
        ("2026-06-08T10:00:00Z", "date"),
        ("12:30", "base 60"),
        ("1e3", "number"),
        ("1.5", "number"),
        ("0123", "number"),
        ("0x1F", "number"),
        (".inf", "number"),
        ("1234567890123456", "number"),
        ("<<", "merge key"),
        ("WP-1", None),
        ("2a", None),
        ("1.2.3", None),
        (".", None),
        ("north", None),
    ],
)
def test_what_another_reader_would_make_of_it_has_a_name(text: str, kind: str | None) -> None:
    assert read_otherwise(text) == kind


@given(st.text("0123456789abcdefox_+-.:TZ~<=ynNYsertflu", max_size=8))
def test_pyyaml_reads_as_text_whatever_no_reader_is_said_to_read_otherwise(text: str) -> None:
    if has_plain_shape(text) and resolve(text) == text and read_otherwise(text) is None:
        assert exactly(yaml.safe_load(text)) == exactly(text)


def test_a_long_number_does_not_hold_up_the_reader() -> None:
    assert read_otherwise("1" * 200_000 + "x") is None
    assert read_otherwise("1_" * 100_000) == "number"


YAML = "sha: 1234567\nfixed: True\nbatches: [1, 2a]\nempty:\ncount: 7\n"


def test_a_field_that_is_text_gets_the_characters_that_were_written() -> None:
    source = source_of(YAML)
    root = load_yaml(source).root
    assert root is not None
    texts = {("sha",), ("fixed",), ("batches", 0), ("batches", 1), ("empty",)}

    retyped = written_as_text(source, root, texts.__contains__)

    assert retyped.plain() == {"sha": "1234567", "fixed": "True", "batches": ["1", "2a"], "empty": None, "count": 7}
    assert retyped.keys == root.keys
    sha = root.get("sha")
    assert sha is not None
    assert (sha.value, raw_text(source, sha)) == (1234567, "1234567")
