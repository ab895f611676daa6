"""The hash of an event: of its canonical header and its data, whatever they hold."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.runtime.records.events import CHAIN_FORMAT, Event, event_hash
from workpacket.runtime.records.jcs import jcs_text, value_in

texts = st.text('aZ0 "\\\n\x00\x7fÄ€\U0001f600', max_size=8)
numbers = st.integers(0, 2**53 - 1)
events = st.builds(
    Event, texts, numbers, texts, numbers, numbers, numbers, texts, texts, numbers, st.none() | texts, numbers,
    texts, st.none() | texts, texts, texts,
)  # fmt: skip


@given(events)
def test_the_header_that_is_hashed_is_canonical(event: Event) -> None:
    header = {name: value for name, value in event._asdict().items() if name not in {"data", "hash"}}
    text = f"{jcs_text({**header, 'v': CHAIN_FORMAT})}\n{event.data}"
    assert event_hash(event) == hashlib.sha256(text.encode()).hexdigest()


@given(events)
def test_a_column_of_another_type_has_no_hash(event: Event) -> None:
    for name, value in event._asdict().items():
        if name not in {"data", "hash", "key", "payload"}:
            wrong: Any = str(value) if isinstance(value, int) else 5
            with pytest.raises((TypeError, ValueError)):
                event_hash(event._replace(**{name: wrong}))


@given(st.recursive(numbers | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20))
def test_the_value_in_a_text_is_the_one_that_was_written(value: object) -> None:
    assert value_in(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", "{}x", " {}", "{} "])
def test_what_is_not_exactly_one_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        value_in(text)
