"""The only YAML loader: strict, bounded, and with a position for every value and key.

It reads the part of YAML on which all parsers agree. It refuses, each with its own code: anchors and aliases (an alias
bomb needs them), tags, directives, merge keys, a second document, duplicate keys, keys that are not text, and the
spellings listed in `yaml_tree`. A key is always the text as written.

A node's span includes its quotes or its block header. An omitted value is null with an empty span, where it would be; a
block scalar ends with the line end of its last line, a block list or mapping with its last value.

YAML guesses the types of unquoted scalars, and every version guesses differently: `no` is false, `12:30` is 750 and
`2026-06-08` a date in one parser and text in the next; a commit id that consists of digits becomes a number without its
leading zeros. Here a plain scalar is text, unless it is null, true or false as spelled in YAML 1.2, or an integer of at
most 15 digits in the form that `str` returns. Nothing is lost: the text of an integer is `str` of it, and
`written_as_text` gives a text field (a commit id, a batch label) the characters in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.source import DATA, Limits, Loaded, Node, Source, unreadable

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

# What YAML 1.1, or the core schema of YAML 1.2, makes of values that are text here, most informative name first.
_READ_OTHERWISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("boolean", re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE)),
    ("date", re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z")),
    ("base 60", re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")),
    ("number", re.compile(r"[-+]?(?:0[xob][0-9a-fA-F_]+|(?=\.?[0-9])[0-9_]*+(?:\.[0-9_]*+)?(?:[eE][-+]?[0-9]+)?)\Z")),
    ("number", re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)),
    ("merge key", re.compile(r"(?:<<|=)\Z")),
)

# Characters that YAML forbids, line ends of YAML 1.1 only, a byte order mark inside the text, and the code point (or an
# escape for it) that `yaml_events` reserves for itself.
_UNPRINTABLE = lazy_pattern(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\U0010ffff]" + r"|\\U0010[Ff]{4}"
)
_DIRECTIVE = lazy_pattern(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*+(%[^\r\n]*)")


def resolve(text: str) -> str | int | bool | None:
    """Return the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.match(text) else text


def read_otherwise(text: str) -> str | None:
    """Return the type that another YAML parser gives the plain scalar `text`, if it is text only here."""
    return next((kind for kind, pattern in _READ_OTHERWISE if pattern.match(text)), None)


def raw_text(source: Source, node: Node) -> str:
    """Return the characters from which `node` was read. If it is not a string, these are all of its characters."""
    return source.text[node.start : node.end]


def written_as_text(source: Source, root: Node, is_text: Callable[[NodePath], bool]) -> Node:
    """Return `root` with each integer and boolean at a path accepted by `is_text` replaced by its characters.

    Null stays null: an empty field is empty, whatever its type.
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
    """Return the YAML document in [start, end) of `source`, with positions in `source`."""
    text = source.text[start:end]
    faults = unreadable(text, start, limits) or _characters(text, start) or _directive(text, start)
    if faults:
        return Loaded(None, tuple(faults))
    # Importing `yaml` takes longer than reading a file, so a run without YAML avoids it.
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
