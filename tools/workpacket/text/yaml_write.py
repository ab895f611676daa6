"""YAML for files that the package creates: one block style, and every value reads back as the same value.

A string is left unquoted only if every parser reads it as that string, including those that see dates, booleans and
numbers in base 60 (`yaml_scalars.read_otherwise`). Everything else is quoted; multi-line text without invisible
characters is a block.
"""

from __future__ import annotations

import re

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.source import Plain, Scalar
from workpacket.text.yaml_strict import read_otherwise, resolve

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
    """Raised if the value has no form in YAML that the strict loader would read back."""


def write_yaml(value: Plain) -> str:
    """Return `value` as a YAML document, with a final line end."""
    if not isinstance(value, (dict, list)):
        return spelled(value) + "\n"
    return "\n".join(_block(value) if value else [inline(value)]) + "\n"


def inline(value: Plain) -> str:
    """Return `value` on one line, valid inside brackets too."""
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
            raise NotWritable(f"{value} has more digits than a YAML parser must keep")
        return str(value)
    if isinstance(value, float):
        raise NotWritable(f"{value} is not an integer, and YAML parsers round differently")
    return value if is_plain(value, in_brackets=in_brackets) else double_quoted(value)


def is_plain(text: str, *, in_brackets: bool = False) -> bool:
    """Whether `text` can be left unquoted, so that every parser reads it as this text."""
    if in_brackets and _BRACKETS_OR_QUESTION.search(text):
        return False
    return has_plain_shape(text) and resolve(text) == text and read_otherwise(text) is None


def has_plain_shape(text: str) -> bool:
    """Whether nothing in `text` marks a key, a comment or a line end; its meaning is a separate question."""
    return _PLAIN.match(text) is not None and writable(text)


def single_quoted(text: str) -> str | None:
    """Return `text` in single quotes, which have no escapes; None if a character in it would be invisible."""
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
    """Return `text` as the lines of a literal block, header first, not yet indented; None if a character would be
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
