"""Syntax errors of JSON, in words for people: what stands there, and what JSON wants."""

from __future__ import annotations

import re

from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.fault import Fault
from workpacket.text.node import Node
from workpacket.text.source import Source

_WHOLE_STRING = lazy_pattern(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_COMMENT = lazy_pattern(r"//|/\*|#")

# What people write for a value, what to tell them, and under which code; the first that fits counts.
_MISTAKES: tuple[tuple[re.Pattern[str], str, str, str], ...] = (
    (re.compile(r"[-+]?(?:NaN|Infinity|inf)\b"), "json_not_a_number", "JSON has neither NaN nor infinity", "use null"),
    (re.compile(r"'"), "json_syntax", "JSON has no single quotes", "use double quotes"),
    (re.compile(r"[-+.0-9]"), "json_syntax", "this is not how JSON writes a number", "write 0.5, 1.0, 10 or 1e10"),
    (re.compile(r"True\b|False\b|None\b|TRUE\b|FALSE\b|NULL\b"), "json_syntax", "JSON writes true, false and null", ""),
    (re.compile(r"\w"), "json_syntax", "text without quotes", "put it in double quotes"),
    (re.compile(r"[,:]"), "json_syntax", "a value is missing before this", ""),
    (re.compile(r"[]}]"), "json_syntax", "a bracket closes where a value should stand", "remove the comma before it"),
)


def syntax_fault(source: Source, position: int, inside: Node | None, *, after_value: bool = False) -> Fault:
    """Why no value (or, `after_value`, neither a comma nor the closing bracket) can be read from `position`."""
    at = _past_blanks(source.text, position)
    if at == len(source.text):
        if inside is None:
            return Fault("json_syntax", at, at, "there is no value in this file")
        return _fault("json_syntax", inside.start, "this bracket is never closed")
    if after_value:
        return _comment_fault(source, at) or _missing_comma(source, at, inside)
    if inside is not None and isinstance(inside.value, dict):
        return _member_fault(source, at, inside)
    return _value_fault(source, at)


def trailing_fault(source: Source, position: int) -> Fault:
    """The fault of what follows the value that ends at `position`."""
    at = _past_blanks(source.text, position)
    comment = _comment_fault(source, at)
    message = "something stands after the value, and a JSON file is one value"
    return comment or Fault("json_trailing_data", at, len(source.text), message)


def _member_fault(source: Source, at: int, inside: Node) -> Fault:
    text = source.text
    if text[at] == "}":
        return _fault("json_syntax", at, "a bracket closes where a key should stand", "remove the comma before it")
    if text[at] != '"':
        comment = _comment_fault(source, at)
        return comment or _fault("json_syntax", at, "a key in double quotes should stand here")
    fault = _string_fault(source, at)
    if fault is not None:
        return fault
    key = _WHOLE_STRING.match(text, at)
    colon = _past_blanks(text, (key.end() if key else at) + 1)
    if text[colon : colon + 1] != ":":
        return _fault("json_syntax", min(colon, len(text) - 1), "a ':' should stand after the key")
    return syntax_fault(source, colon + 1, Node([], inside.start, inside.end))


def _value_fault(source: Source, at: int) -> Fault:
    fault = _string_fault(source, at) if source.text[at] == '"' else _comment_fault(source, at) or _mistake(source, at)
    return fault or _fault("json_syntax", at, f"no value begins with {source.text[at]!r}")


def _string_fault(source: Source, at: int) -> Fault | None:
    """What is wrong with the string that begins at `at`, if anything is."""
    good = _WHOLE_STRING.match(source.text, at)
    end = good.end() if good else at
    if end == len(source.text):
        return _fault("json_syntax", at, "this string is never closed")
    wrong = source.text[end]
    if wrong == '"':
        return None
    if wrong == "\\":
        return _fault("json_syntax", end, "this is no escape of JSON", "double the backslash")
    name = "a line end" if wrong in "\r\n" else f"the control character U+{ord(wrong):04X}"
    return _fault("json_control_character", end, f"{name} stands inside a string", "write it as an escape")


def _missing_comma(source: Source, at: int, inside: Node | None) -> Fault:
    text = source.text
    if text[at - 1].isdigit() and (text[at].isalnum() or text[at] == "."):
        return _fault("json_syntax", at, "this is not how JSON writes a number", "write 0.5, 1.0, 10 or 1e10")
    begun = source.line_and_column(inside.start)[0] if inside else 1
    kind, closing = ("list", "]") if inside and isinstance(inside.value, list) else ("mapping", "}")
    return _fault("json_syntax", at, f"a ',' or a '{closing}' should stand here, in the {kind} begun on line {begun}")


def _mistake(source: Source, at: int) -> Fault | None:
    for pattern, code, message, hint in _MISTAKES:
        if pattern.match(source.text, at):
            return _fault(code, at, message, hint)
    return None


def _comment_fault(source: Source, at: int) -> Fault | None:
    if _COMMENT.match(source.text, at) is None:
        return None
    return _fault("json_syntax", at, "JSON has no comments", "remove it, or make it a value of its own")


def _fault(code: str, at: int, message: str, hint: str = "") -> Fault:
    return Fault(code, at, at + 1, message, hint)


def _past_blanks(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip(" \t\n\r"))
