"""What an unquoted YAML scalar means, and what it means to other readers.

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

# What YAML 1.1 or the core schema of YAML 1.2 makes of text that is text to us, most telling name first.
_READ_OTHERWISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("boolean", re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE)),
    ("date", re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z")),
    ("base 60", re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")),
    ("number", re.compile(r"[-+]?(?:0[xob][0-9a-fA-F_]+|(?=\.?[0-9])[0-9_]*+(?:\.[0-9_]*+)?(?:[eE][-+]?[0-9]+)?)\Z")),
    ("number", re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)),
    ("merge key", re.compile(r"(?:<<|=)\Z")),
)


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
