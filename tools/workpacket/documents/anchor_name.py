"""Whether the name of an anchor names a passage at all, or says in other words that there is none."""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern

_WORD = lazy_pattern(r"n[/.]a\b|[^\W_]+")
_NONE = frozenset(["n/a", "n.a", "na", "nil", "no", "none", "nothing", "null", "not", "unknown"])
_LATER = frozenset(["fixme", "pending", "placeholder", "tba", "tbc", "tbd", "todo", "xxx"])
# What goes with such a word and names nothing either.
_FILLING = frozenset(
    [
        *("a", "an", "anchor", "anchors", "any", "anything", "applicable", "as", "at", "available", "be", "been"),
        *("candidate", "candidates", "decided", "defined", "determined", "far", "fill", "for", "found", "here"),
        *("identified", "in", "is", "it", "kind", "known", "later", "moment", "needed", "now", "of", "one", "passage"),
        *("present", "required", "section", "so", "sort", "specified", "such", "that", "the", "there", "this", "to"),
        *("was", "were", "yet"),
    ]
)


def names_passage(name: str) -> bool:
    """False of `None known.`, `Nothing of that kind.`, `n/a`, `TBD`, `-` and their like.

    Every word has to be one that names nothing, and one of them to say so: `4.2 None of the above` names a passage.
    """
    words = _WORD.findall(name.casefold())
    empty = _NONE | _LATER
    says_none = all(word in empty or word in _FILLING for word in words) and not empty.isdisjoint(words)
    return bool(words) and not says_none
