"""What an unquoted YAML scalar means, here and to other parsers.

YAML guesses types, and every version guesses differently: `no` is false, `12:30` is 750 and `2026-06-08` a date in one
parser and text in the next; a commit id of digits becomes a number that has lost its zeros. Here a plain scalar is
text, unless it is null, true or false as spelled in YAML 1.2, or an integer of at most 15 digits in the form that `str`
returns. Nothing is lost: the text of an integer is `str` of it, and `written_as_text` gives a text field (a commit id,
a batch label) the characters in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.node import Node
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

# What YAML 1.1 or the core schema of YAML 1.2 makes of values that are text here, most informative name first.
_READ_OTHERWISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("boolean", re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE)),
    ("date", re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z")),
    ("base 60", re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")),
    ("number", re.compile(r"[-+]?(?:0[xob][0-9a-fA-F_]+|(?=\.?[0-9])[0-9_]*+(?:\.[0-9_]*+)?(?:[eE][-+]?[0-9]+)?)\Z")),
    ("number", re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)),
    ("merge key", re.compile(r"(?:<<|=)\Z")),
)


def resolve(text: str) -> str | int | bool | None:
    """Return the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.match(text) else text


def read_otherwise(text: str) -> str | None:
    """Return what another YAML parser makes of the plain scalar `text`, if it is text only here."""
    return next((kind for kind, pattern in _READ_OTHERWISE if pattern.match(text)), None)


def raw_text(source: Source, node: Node) -> str:
    """Return the characters from which `node` was read; all of them, if it is not a string."""
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
