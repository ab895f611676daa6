"""Whether a window of a text contains a quotation.

Excerpts are written ASCII-escaped (`\\u00a7`) and indented like their fence, and people wrap and trim them. White space
is therefore folded and escapes are decoded; every other character counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.lazy_pattern import lazy_pattern

_ESCAPE = lazy_pattern(r"\\u([0-9a-fA-F]{4})")
_ELLIPSIS = lazy_pattern(r"\s*(?:\[?\.\.\.\]?)\s*\Z")


def contains_token(lines: Sequence[str], token: str) -> bool:
    """Whether one of the lines contains the token."""
    wanted = folded(token)
    return any(wanted in folded(line) for line in lines)


def contains_excerpt(lines: Sequence[str], excerpt: str) -> bool:
    """Whether the window contains every line of the excerpt, in order. A line of dots represents omitted lines."""
    window = [folded(line) for line in lines]
    position = 0
    for line in excerpt.split("\n"):
        wanted = folded(_ELLIPSIS.sub("", line))
        if not wanted:
            continue
        found = next((index for index in range(position, len(window)) if wanted in window[index]), None)
        if found is None:
            return False
        position = found
    return True


def folded(text: str) -> str:
    """Return the text with escapes decoded and white space folded."""
    return " ".join(_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text).split())
