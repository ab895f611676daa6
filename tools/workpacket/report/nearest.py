"""Which code was meant. A module of its own, since only a mistake should pay for the import of difflib."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_codes(word: str, codes: Iterable[str]) -> list[str]:
    """The codes that someone who typed `word` may have meant, the likeliest first."""
    typed = word.lower().replace("-", "_")
    known = list(codes)
    close = get_close_matches(typed, known, n=3, cutoff=0.6)
    return close or [code for code in known if typed and typed in code][:3]
