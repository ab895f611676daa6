"""The one TOML loader: `tomllib` for the values, `toml_places` for where they stand.

`tomllib` is strict already: duplicate keys, tables defined twice and everything else outside TOML 1.0 are errors with a
line and a column. What it lacks are limits, and numbers that every reader can hold; dates become the text that was
written, as in YAML.
"""

from __future__ import annotations

import re

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.fault import Fault
from workpacket.text.limits import DATA, Limits
from workpacket.text.loaded import Loaded, unreadable
from workpacket.text.node import Node
from workpacket.text.source import Source

# What nests, what hides brackets and dots, and what ends a dotted key.
_NESTING = lazy_pattern(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[\[\]{}.\n,=]""",
    re.DOTALL,
)
_PLACE = lazy_pattern(
    r"(?P<problem>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)\Z", re.DOTALL
)
_ENDLESS_NUMBER = lazy_pattern(r"[0-9_]{1000,}")


def load_toml(source: Source, limits: Limits = DATA) -> Loaded:
    """The TOML document that is the whole of `source`."""
    fault = next(iter(unreadable(source.text, 0, limits)), None) or _too_deep(source.text, limits)
    if fault is not None:
        return Loaded(None, (fault,))
    import tomllib

    from workpacket.text.toml_places import place

    try:
        plain = tomllib.loads(source.text)
    except ValueError as error:
        return Loaded(None, (_syntax_fault(source.text, str(error)),))
    root, faults = place(source, plain)
    faults += _beyond(root, limits)
    return Loaded(None if faults else root, tuple(faults))


def _beyond(root: Node, limits: Limits) -> list[Fault]:
    """The first value too many or too deep: headers, dotted keys and brackets, each within limits, add up."""
    level, depth, count = [root], 0, 0
    while level:
        count += len(level)
        if count > limits.nodes:
            return [limits.nodes_fault(*level[-1].span)]
        if depth == limits.depth and any(isinstance(node.value, (dict, list)) for node in level):
            return [limits.depth_fault(*level[0].span)]
        level = [child for node in level for child in (*node.mapping.values(), *node.items)]
        depth += 1
    return []


def _too_deep(text: str, limits: Limits) -> Fault | None:
    """The bracket or the dot that nests deeper than allowed: `tomllib` recurses and copies what leads there."""
    brackets = dots = 0
    for token in _NESTING.finditer(text):
        brackets += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] == ".":
            dots += 1
        elif token[0] in "[{\n,=":
            dots = 0
        # The root is one level, and so is every part of a dotted key but the last.
        if max(brackets, dots) >= limits.depth:
            return limits.depth_fault(token.start(), token.end())
    return None


def _syntax_fault(text: str, said: str) -> Fault:
    parts = _PLACE.match(said)
    if parts is None:
        # Python refuses to convert a number of thousands of digits, and says nothing about where it stands.
        number = _ENDLESS_NUMBER.search(text)
        at, end = number.span() if number else (0, 0)
        return Fault("toml_number_range", at, end, "this number is larger than any that a reader holds")
    problem = parts["problem"][:1].lower() + parts["problem"][1:]
    if parts["line"] is None:
        end = len(text.rstrip())
        return Fault("toml_syntax", max(end - 1, 0), end, f"{problem}, at the end of the file")
    at = 0
    for _ in range(int(parts["line"]) - 1):
        at = text.index("\n", at) + 1
    at = min(at + int(parts["column"]) - 1, len(text))
    return Fault("toml_syntax", at, min(at + 1, len(text)), problem)
