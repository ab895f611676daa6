"""The one YAML loader: strict, bounded, and with a position for every value and key.

It reads the part of YAML that all readers agree on. Refused, each with its own code: anchors and aliases (an alias
bomb needs them), tags, directives, merge keys, a second document, duplicate keys, keys that are no text, and the
spellings of `yaml_portable`. Plain scalars mean what `plain_scalars` says; a key is always the text that was written.

A node's span holds its quotes or its block header. A value left out is null with an empty span, where it would stand;
a block scalar ends with the line end of its last line, a block list or mapping with its last value.

What an unquoted YAML scalar means, and what it means to other readers.

YAML guesses types, and every version guesses differently: `no` is false, `12:30` is 750 and `2026-06-08` a date in one
reader and text in the next; a commit id of digits becomes a number that has lost its zeros. Here a plain scalar is
text, unless it is null, true or false as YAML 1.2 spells them, or an integer of at most 15 digits in the one form that
`str` gives back. So nothing is lost: the text of an integer is `str` of it, and `written_as_text` gives a field that
is text (a commit id, a batch label) the characters that stand in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.limits import DATA, Limits
from workpacket.text.node import Loaded, Node, unreadable
from workpacket.text.source import Source

NodePath: TypeAlias = "tuple[str | int, ...]"

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = lazy_pattern(r"(?:0|-?[1-9][0-9]{0,14})\Z")

# What YAML 1.1 or the core schema of YAML 1.2 makes of text that is text to us, most telling name first.
_READ_OTHERWISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("boolean", re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE)),
    ("date", re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z")),
    ("base 60", re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")),
    ("number", re.compile(r"[-+]?(?:0[xob][0-9a-fA-F_]+|(?=\.?[0-9])[0-9_]*+(?:\.[0-9_]*+)?(?:[eE][-+]?[0-9]+)?)\Z")),
    ("number", re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)),
    ("merge key", re.compile(r"(?:<<|=)\Z")),
)

# What YAML forbids, what only YAML 1.1 takes for a line end, a byte order mark inside the text, and the code point
# (or an escape for it) that `yaml_events` needs for itself.
_UNPRINTABLE = lazy_pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U0010ffff]" + r"|\\U0010[Ff]{4}"
)
_DIRECTIVE = lazy_pattern(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*+(%[^\r\n]*)")


def resolve(text: str) -> str | int | bool | None:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.match(text) else text


def read_otherwise(text: str) -> str | None:
    """What another YAML reader takes the plain scalar `text` for, if we take it for text and it does not."""
    return next((kind for kind, pattern in _READ_OTHERWISE if pattern.match(text)), None)


def raw_text(source: Source, node: Node) -> str:
    """The characters that `node` was read from; of a scalar that is not a string, all that was written."""
    return source.text[node.start : node.end]


def written_as_text(source: Source, root: Node, is_text: Callable[[NodePath], bool]) -> Node:
    """`root` with each integer and boolean at a path that `is_text` accepts turned into the characters written.

    Null stays null: a field left empty is empty, whatever its type.
    """
    return _as_text(source, root, (), is_text)


def _as_text(source: Source, node: Node, path: NodePath, is_text: Callable[[NodePath], bool]) -> Node:
    value = node.value
    if isinstance(value, dict):
        entries = {key: _as_text(source, child, (*path, key), is_text) for key, child in value.items()}
        return Node(entries, node.start, node.end, node.keys)
    if isinstance(value, list):
        return Node([_as_text(source, item, (*path, i), is_text) for i, item in enumerate(value)], node.start, node.end)
    if isinstance(value, (bool, int)) and is_text(path):
        return Node(raw_text(source, node), node.start, node.end)
    return node


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
