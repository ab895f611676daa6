"""The properties of `loader_properties`, a hundred cases each."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from text import loader_properties as properties
from text.reading import ANY_BYTES, REPAIRABLE_TEXTS, WRITABLE_VALUES, YAML_DOCUMENTS, YAML_TEXTS
from workpacket.text.source import Plain

# The first case imports yaml and tomllib.
patient = settings(deadline=None)


@patient
@given(ANY_BYTES)
def test_every_loader_gives_a_tree_or_faults(data: bytes) -> None:
    properties.every_loader_gives_a_tree_or_faults(data)


@patient
@given(st.one_of(YAML_DOCUMENTS, YAML_TEXTS))
def test_both_yaml_parsers_agree(text: str) -> None:
    properties.both_yaml_parsers_agree(text)


@patient
@given(st.one_of(YAML_DOCUMENTS, YAML_TEXTS))
def test_a_yaml_scalar_reads_the_same_alone(text: str) -> None:
    properties.a_yaml_scalar_reads_the_same_alone(text)


@patient
@given(REPAIRABLE_TEXTS)
def test_a_repair_leaves_the_meaning(text: str) -> None:
    properties.a_repair_leaves_the_meaning(text)


@patient
@given(WRITABLE_VALUES)
def test_what_is_written_as_yaml_reads_back(value: Plain) -> None:
    properties.what_is_written_as_yaml_reads_back(value)


@patient
@given(st.one_of(YAML_DOCUMENTS, YAML_DOCUMENTS, YAML_TEXTS), st.integers(0, 30), WRITABLE_VALUES)
def test_an_edit_changes_only_what_was_meant(text: str, number: int, value: Plain) -> None:
    properties.an_edit_changes_only_what_was_meant(text, number, value)
