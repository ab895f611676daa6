"""The only YAML loader: strict, bounded, and with a position for every value and key; and YAML for files that the
package creates.

It reads the part of YAML on which all parsers agree. It refuses, each with its own code: anchors and aliases (an alias
bomb needs them), tags, directives, merge keys, a second document, duplicate keys, keys that are not strings, and the
spellings listed in `yaml_tree`. A key is always a string, as written.

A node's span includes its quotes or its block header. An omitted value is null with an empty span, where it would be; a
block scalar ends with the line ending of its last line, and a block list or mapping ends with its last value.

YAML guesses the types of unquoted scalars, and every version guesses differently: `no` is false, `12:30` is 750 and
`2026-06-08` a date in one parser and a string in the next; a commit id that consists of digits becomes a number without
its leading zeros. Here a plain scalar is a string, unless it is null, true or false as spelled in YAML 1.2, or an
integer of at most 15 digits in the form that `str` returns. Nothing is lost: the text of an integer is `str` of it, and
`written_as_text` gives a text field (a commit id, a batch label) the characters in the file.

A string is left unquoted only if every parser reads it as that string, including those that see dates, booleans and
numbers in base 60 (`read_otherwise`). Everything else is quoted; multi-line text without invisible
characters is a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.source import DATA, Limits, Loaded, Node, Plain, Scalar, Source, unreadable

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
# escape for it) that `yaml_tree` reserves for itself.
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
    """Return the type that other YAML parsers give the plain scalar `text`, if it is a string only here."""
    return next((kind for kind, pattern in _READ_OTHERWISE if pattern.match(text)), None)


def raw_text(source: Source, node: Node) -> str:
    """Return the characters from which `node` was read. If it is not a string, these are all of its characters."""
    return source.text[node.start : node.end]


def written_as_text(source: Source, root: Node, is_text: Callable[[NodePath], bool]) -> Node:
    """Return `root` with each integer and boolean at a path accepted by `is_text` replaced by its characters.

    Null remains null: an empty field is empty, whatever its type.
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
    message = f"character U+{ord(first[0][0]):04X} is not allowed in YAML{others}"
    if len(first[0]) > 1:
        message = f"escape {first[0]} is not allowed in YAML{others}"
    hint = "remove it, or write it as an escape in double quotes"
    return [Problem("yaml_character", message, Location.span(start + first.start(), start + first.end()), hint)]


def _directive(text: str, start: int) -> list[Problem]:
    found = _DIRECTIVE.match(text)
    if found is None:
        return []
    message = f"{found[1].split()[0]} is a directive"
    return [Problem("yaml_directive", message, Location.span(start + found.start(1), start + found.end(1)))]


_STEP = "  "
# Characters that YAML forbids, or that one version treats as a line end; a block can still contain tabs and line feeds.
_HIDDEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
# A first character without special meaning, followed by anything but a mark of a key, a comment or a line end.
_PLAIN = lazy_pattern(rf"(?!\.\.\.)[\w./(+$](?:[^\t\n{_HIDDEN}:#]|:(?=\S)|(?<=\S)#)*+(?<=\S)\Z")
_BRACKETS_OR_QUESTION = lazy_pattern(r"[,\[\]{}?]")
_UNFIT_FOR_BLOCK = lazy_pattern(rf"\A\s|[{_HIDDEN}]|[ \t](?:\n|\Z)")
_ESCAPED = lazy_pattern(rf'[\t\n"\\{_HIDDEN}]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
_UNWRITABLE = lazy_pattern("[\ud800-\udfff\U0010ffff]")
# YAML looks for the ':' of a key no further than this many characters.
_LONGEST_KEY = 1000


class NotWritable(ValueError):
    """Raised if the value cannot be written as YAML that the strict loader would read back."""


def write_yaml(value: Plain) -> str:
    """Return `value` as a YAML document, with a final newline."""
    if not isinstance(value, (dict, list)):
        return spelled(value) + "\n"
    return "\n".join(_block(value) if value else [inline(value)]) + "\n"


def inline(value: Plain) -> str:
    """Return `value` on one line, in a form that is valid inside brackets too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key, in_brackets=True)} {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    return spelled(value, in_brackets=True)


def spelled(value: Scalar, *, in_brackets: bool = False) -> str:
    """Return a scalar on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if resolve(str(value)) != value:
            raise NotWritable(f"{value} has more digits than a YAML parser is required to keep")
        return str(value)
    if isinstance(value, float):
        raise NotWritable(f"{value} is not an integer, and YAML parsers round differently")
    return value if is_plain(value, in_brackets=in_brackets) else double_quoted(value)


def is_plain(text: str, *, in_brackets: bool = False) -> bool:
    """Whether `text` can be left unquoted, so that every parser reads it as this string."""
    if in_brackets and _BRACKETS_OR_QUESTION.search(text):
        return False
    return has_plain_shape(text) and resolve(text) == text and read_otherwise(text) is None


def has_plain_shape(text: str) -> bool:
    """Whether nothing in `text` marks a key, a comment or a line ending; its meaning is a separate question."""
    return _PLAIN.match(text) is not None and writable(text)


def single_quoted(text: str) -> str | None:
    """Return `text` in single quotes, which allow no escapes; None if a character in it would be invisible."""
    if not text.isprintable():
        return None
    return "'" + text.replace("'", "''") + "'"


def double_quoted(text: str) -> str:
    """Return `text` in double quotes, with escapes for everything invisible."""
    if not writable(text):
        raise NotWritable("the text contains a lone surrogate or U+10FFFF, which YAML does not allow")
    return f'"{_ESCAPED.sub(_escape, text)}"'


def writable(text: str) -> bool:
    """Whether there is any way to write `text`."""
    return _UNWRITABLE.search(text) is None


def literal(text: str) -> list[str] | None:
    """Return `text` as the lines of a literal block, header first, not yet indented; None if a character in it would be
    invisible.
    """
    body = text.rstrip("\n")
    if "\n" not in text or not body or _UNFIT_FOR_BLOCK.search(body) or not writable(text):
        return None
    ends = len(text) - len(body)
    return [("|-", "|", "|+")[min(ends, 2)], *body.split("\n"), *[""] * (ends - 1)]


def _block(value: dict[str, Plain] | list[Plain]) -> list[str]:
    """Return the lines of a non-empty list or mapping."""
    if isinstance(value, list):
        return [line for item in value for line in _item(item)]
    return [line for key, item in value.items() for line in _entry(_key(key), item)]


def _item(value: Plain) -> list[str]:
    if isinstance(value, (dict, list)) and value:
        first, *rest = _block(value)
        return [f"- {first}", *(_indented(line) for line in rest)]
    return _entry("-", value)


def _entry(mark: str, value: Plain) -> list[str]:
    """Return `value` after `mark`, which is a key with its ':' or the '-' of an item."""
    if isinstance(value, (dict, list)) and value:
        return [mark, *(_indented(line) for line in _block(value))]
    block = literal(value) if isinstance(value, str) else None
    if block is None:
        return [f"{mark} {inline(value) if isinstance(value, (dict, list)) else spelled(value)}"]
    return [f"{mark} {block[0]}", *(_indented(line) for line in block[1:])]


def _indented(line: str) -> str:
    return _STEP + line if line else line


def _key(key: str, *, in_brackets: bool = False) -> str:
    written = spelled(key, in_brackets=in_brackets)
    if len(written) > _LONGEST_KEY:
        raise NotWritable(f"the key {key[:20]!r}… is longer than YAML allows")
    return f"{written}:"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"
