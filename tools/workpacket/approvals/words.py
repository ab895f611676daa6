"""A digest as six pronounceable words, for a person to compare what one screen shows with what another signs.

Each word holds 16 bits as consonant-vowel-consonant-vowel-consonant (the scheme known as proquint), so the six words
hold the first 96 bits of the digest. To find another text with the same words takes about 2**96 tries; to make two
texts that share their words, 2**48, which is why the words are for the eye and the signature covers all 256 bits.
"""

from __future__ import annotations

WORDS = 6

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"


def six_words(sha256: str) -> str:
    """The words for a digest in hexadecimal."""
    data = bytes.fromhex(sha256)
    return " ".join(_word(int.from_bytes(data[start : start + 2], "big")) for start in range(0, 2 * WORDS, 2))


def _word(number: int) -> str:
    return "".join(
        (
            _CONSONANTS[number >> 12],
            _VOWELS[number >> 10 & 3],
            _CONSONANTS[number >> 6 & 15],
            _VOWELS[number >> 4 & 3],
            _CONSONANTS[number & 15],
        )
    )
