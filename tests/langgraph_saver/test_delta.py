"""Patches: what they make is always what was asked for, and they are small where little changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workpacket.runtime.langgraph.parcels import packed, patch_of, patched, renamed, unpacked

TEXTS = st.lists(st.binary(max_size=120) | st.text("ab", max_size=120).map(str.encode), max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.data(), TEXTS)
def test_a_patch_makes_what_was_asked_for(data: st.DataObject, sources: list[bytes]) -> None:
    old = b"".join(sources)
    cuts = st.tuples(st.integers(0, len(old)), st.integers(0, 80), st.binary(max_size=20))
    new = b"".join(old[at : at + length] + more for at, length, more in data.draw(st.lists(cuts, max_size=6)))
    places = st.tuples(st.integers(0, len(new)), st.integers(0, len(old)))
    likely = sorted(data.draw(st.lists(places, max_size=3)))
    assert patched(sources, patch_of(sources, new, likely)) == new
    made = packed(new, sources, "n", likely)
    assert unpacked(made.payload, sources if made.is_patch else ()) == new
    assert unpacked(renamed(made.payload, "other"), sources if made.is_patch else ()) == new
    assert renamed(made.payload, "other") != made.payload


MESSAGES = [b"\xda\x03\xe8%06d" % number + b"y" * 994 for number in range(300)]
NOISE = random.Random(1).randbytes(100_000)
CHANGES = {
    "a count that grew and a message more": (b"\xdc\x01" + NOISE, b"\xdc\x02" + NOISE + MESSAGES[0], 1100),
    "bytes in the middle": (NOISE, NOISE[:50_000] + b"hello" + NOISE[50_000:], 30),
    "bytes out of the middle": (NOISE, NOISE[:50_000] + NOISE[50_100:], 30),
    "messages that look alike, and the first gone": (b"".join(MESSAGES[:200]), b"".join(MESSAGES[1:201]), 400),
    "messages that look alike, and the first thirty gone": (b"".join(MESSAGES[:200]), b"".join(MESSAGES[30:203]), 800),
    "messages that look alike, and one before them": (b"".join(MESSAGES[1:200]), b"".join(MESSAGES[:201]), 400),
    "the same text again and again": (b"a" * 99_999 + b"b", b"b" + b"a" * 99_999, 60),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_small_change_makes_a_small_patch(change: str) -> None:
    old, new, most = CHANGES[change]
    patch = patch_of([old], new)
    assert patched([old], patch) == new
    assert sum(len(operation) if isinstance(operation, bytes) else 4 for operation in patch) <= most


def test_a_text_that_is_cut_up_very_finely_is_not_searched_for_ever() -> None:
    pieces = [NOISE[at : at + 18] for at in range(0, len(NOISE), 18)]
    random.Random(2).shuffle(pieces)
    new = b"".join(pieces)
    patch = patch_of([NOISE], new)
    assert patched([NOISE], patch) == new
    assert len(patch) <= 2 * 4096 + 1


def test_text_that_is_new_through_and_through_is_kept_whole() -> None:
    made = packed(NOISE[:50_000], [NOISE[50_000:]], "n")
    assert not made.is_patch
    assert unpacked(made.payload, ()) == NOISE[:50_000]
