"""The one YAML loader: strict, bounded, and with a position for every value and key.

It reads the part of YAML that all readers agree on. Refused, each with its own code: anchors and aliases (an alias
bomb needs them), tags, directives, merge keys, a second document, duplicate keys, keys that are no text, and the
spellings of `yaml_portable`. Plain scalars mean what `plain_scalars` says; a key is always the text that was written.

A node's span holds its quotes or its block header. A value left out is null with an empty span, where it would stand;
a block scalar ends with the line end of its last line, a block list or mapping with its last value.
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.limits import DATA, Limits
from workpacket.text.node import Loaded, unreadable
from workpacket.text.source import Source

# What YAML forbids, what only YAML 1.1 takes for a line end, a byte order mark inside the text, and the code point
# (or an escape for it) that `yaml_events` needs for itself.
_UNPRINTABLE = lazy_pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U0010ffff]" + r"|\\U0010[Ff]{4}"
)
_DIRECTIVE = lazy_pattern(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*+(%[^\r\n]*)")


def load_yaml(source: Source, *, start: int = 0, end: int | None = None, limits: Limits = DATA) -> Loaded:
    """The YAML document in [start, end) of `source`, with positions in the whole of it."""
    text = source.text[start:end]
    faults = unreadable(text, start, limits) or _characters(text, start) or _directive(text, start)
    if faults:
        return Loaded(None, tuple(faults))
    # `yaml` costs more to import than a file to read, so a run that meets no YAML does without it.
    from workpacket.text.yaml_tree import build

    return build(source, text, start, limits)


def _characters(text: str, start: int) -> list[Problem]:
    first = _UNPRINTABLE.search(text)
    if first is None:
        return []
    more = sum(1 for _ in _UNPRINTABLE.finditer(text, first.end()))
    others = f", and {more} more like it" if more else ""
    message = f"the character U+{ord(first[0][0]):04X} is not allowed in YAML{others}"
    if len(first[0]) > 1:
        message = f"the escape {first[0]} is not allowed in YAML{others}"
    hint = "remove it, or write it as an escape in double quotes"
    return [Problem("yaml_character", message, Location.span(start + first.start(), start + first.end()), hint)]


def _directive(text: str, start: int) -> list[Problem]:
    found = _DIRECTIVE.match(text)
    if found is None:
        return []
    message = f"{found[1].split()[0]} is a directive"
    return [Problem("yaml_directive", message, Location.span(start + found.start(1), start + found.end(1)))]
