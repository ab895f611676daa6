"""The label of a field: a few words and a colon at the beginning of a line.

    KEY: value        **KEY**: value       **KEY:** value       **KEY: value**       `KEY`: value
    KEY (an aside): value                  **KEY** (an aside): value
    Mixed words: value                     KEY:value            (capitals only)

At the beginning of a paragraph or list item a label may be any few words without a comma. On a later line of the same
paragraph it has to be bold, or to start with a capital and have at most three words: most lines there are sentences
that wrap.
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.line_syntax import BLANKS, trimmed

Span = tuple[int, int]

_MOST_WORDS = 6
_ASIDE = r"\([^()\n]{0,80}\)|\[[^\[\]\n]{0,80}\]"
_ASIDES = lazy_pattern(_ASIDE)
_LABEL = lazy_pattern(
    rf"(\*{{1,3}}|__|`)?(\w(?:[\w ./&+#'@-]|{_ASIDE}){{0,80}}?)"  # the mark and the key
    # The mark is closed before the colon, behind it, or not here.
    # A mark behind the colon ends the label even if no blank follows.
    rf"(?:\1(?: ?(?:{_ASIDE})){{0,2}}[ \t]*:()(?=[ \t]|\Z)|:\1()|[ \t]*:(?=[ \t]|\Z))"
)
_TIGHT_LABEL = lazy_pattern(r"()([A-Z][A-Z0-9_]{2,}):()(?=[^\s:/\\])")
_LATER_KEY = lazy_pattern(rf"[A-Z][\w-]*(?: [\w/&-]+){{0,2}}(?: ?(?:{_ASIDE}))*\Z")


def first_label(text: str, start: int, end: int) -> tuple[Span, Span] | None:
    """The spans of key and value, if the line [start, end) that begins a paragraph begins with a label."""
    match = _LABEL.match(text, start, end) or _TIGHT_LABEL.match(text, start, end)
    if match is None or len(_ASIDES.sub("", match[2]).split()) > _MOST_WORDS:
        return None
    mark, value = match[1], trimmed(text, match.end(), end)
    if mark and match.lastindex == 2:  # `**KEY: value**`: the value, too, stands inside the mark
        if mark == "`" or not text.endswith(mark, *value):
            return None
        value = trimmed(text, value[0], value[1] - len(mark))
    return (match.start(2), match.start(2) + len(match[2].rstrip(BLANKS))), value


def later_label(text: str, start: int, end: int) -> tuple[Span, Span] | None:
    """The same for a later line of a paragraph."""
    label = first_label(text, start, end)
    if label is None or text[start] in "*_" or _LATER_KEY.match(text, *label[0]):
        return label
    return None
