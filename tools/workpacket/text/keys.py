"""One name for the many ways to write a key or a heading."""

from __future__ import annotations

from functools import lru_cache

from workpacket.lazy_pattern import lazy_pattern

_ASIDE = lazy_pattern(r"\([^()]*\)|\[[^\[\]]*\]")
_NO_WORD = lazy_pattern(r"[\W_]+")


@lru_cache(maxsize=4096)
def normal_key(raw: str) -> str:
    """`SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)` and `Spec anchor candidates` are both `spec_anchor_candidates`.

    What stands in parentheses or brackets is an aside, unless nothing else is there.
    """
    return _words(_ASIDE.sub(" ", raw)) or _words(raw)


def _words(text: str) -> str:
    return _NO_WORD.sub("_", text).strip("_").casefold()
