"""The only YAML loader: strict, bounded, and with a position for every value and key.

It reads the part of YAML on which all parsers agree. It refuses, each with its own code: anchors and aliases (an alias
bomb needs them), tags, directives, merge keys, a second document, duplicate keys, keys that are not text, and the
spellings listed in `yaml_tree`. Plain scalars mean what `yaml_scalars` says; a key is always the text as written.

A node's span includes its quotes or its block header. An omitted value is null with an empty span, where it would be; a
block scalar ends with the line end of its last line, a block list or mapping with its last value.
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.limits import DATA, Limits
from workpacket.text.node import Loaded, unreadable
from workpacket.text.source import Source

# Characters that YAML forbids, line ends of YAML 1.1 only, a byte order mark inside the text, and the code point (or an
# escape for it) that `yaml_events` reserves for itself.
_UNPRINTABLE = lazy_pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U0010ffff]" + r"|\\U0010[Ff]{4}"
)
_DIRECTIVE = lazy_pattern(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*+(%[^\r\n]*)")


def load_yaml(source: Source, *, start: int = 0, end: int | None = None, limits: Limits = DATA) -> Loaded:
    """Return the YAML document in [start, end) of `source`, with positions in all of it."""
    text = source.text[start:end]
    faults = unreadable(text, start, limits) or _characters(text, start) or _directive(text, start)
    if faults:
        return Loaded(None, tuple(faults))
    # Importing `yaml` costs more than reading a file, so a run without YAML avoids it.
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
