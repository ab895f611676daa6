"""Six words for a digest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workpacket.approvals.fields import six_words

DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


def test_the_words_are_those_of_the_published_scheme() -> None:
    """127.0.0.1 and 63.84.220.193, the examples that everybody gives for proquints."""
    assert six_words("7f000001" + "3f54dcc1" + "0000ffff" + "0" * 40) == "lusab babad gutih tugad babab zuzuz"


@given(DIGESTS)
def test_the_words_are_six_and_pronounceable(digest: str) -> None:
    words = six_words(digest).split(" ")
    assert len(words) == 6
    for word in words:
        assert [letter in "aiou" for letter in word] == [False, True, False, True, False]


@given(DIGESTS, st.integers(0, 23), st.sampled_from("0123456789abcdef"))
def test_every_one_of_the_first_24_digits_changes_the_words(digest: str, place: int, digit: str) -> None:
    other = digest[:place] + digit + digest[place + 1 :]
    assert (six_words(other) == six_words(digest)) == (other == digest)
