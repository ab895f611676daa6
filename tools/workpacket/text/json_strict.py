"""The only JSON loader: RFC 8259 to the letter, bounded, and with a position for every value and key.

Beyond the grammar, it refuses, each with its own code: a duplicate key, an integer that not every parser represents
exactly, a number too large for any parser, an escape for a lone surrogate, and anything after the value. A byte order
mark, which the RFC allows parsers to ignore, results in a warning. The standard library's parser has no positions and
recurses; this one keeps the open lists and mappings in a list, so that deep nesting exceeds a limit instead of causing
a crash.

Syntax errors are explained in plain words: what was found, and what JSON requires.
"""

from __future__ import annotations

import math
import re
from typing import Final

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import LARGEST_INTEGER
from workpacket.problem import Location, Problem
from workpacket.text.source import DATA, Limits, Loaded, Node, Source, duplicate_key, fix_of, unreadable

_WHOLE_STRING = lazy_pattern(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_COMMENT = lazy_pattern(r"//|/\*|#")

# What people write for a value, the hint for it, and its code; the first match counts.
_MISTAKES: tuple[tuple[re.Pattern[str], str, str, str], ...] = (
    (
        lazy_pattern(r"[-+]?(?:NaN|Infinity|inf)\b"),
        "json_not_a_number",
        "JSON does not have NaN or infinity",
        "use null",
    ),
    (lazy_pattern(r"'"), "json_syntax", "JSON does not allow single quotes", "use double quotes"),
    (lazy_pattern(r"[-+.0-9]"), "json_syntax", "invalid JSON number", "write 0.5, 1.0, 10 or 1e10"),
    (lazy_pattern(r"True\b|False\b|None\b|TRUE\b|FALSE\b|NULL\b"), "json_syntax", "use true, false or null", ""),
    (lazy_pattern(r"\w"), "json_syntax", "text without quotes", "put it in double quotes"),
    (lazy_pattern(r"[,:]"), "json_syntax", "a value is missing before this", ""),
    (lazy_pattern(r"[]}]"), "json_syntax", "expected a value, found a closing bracket", "remove the comma before it"),
)


def syntax_fault(source: Source, position: int, inside: Node | None, *, after_value: bool = False) -> Problem:
    """Return why no value can be read at `position`; with `after_value`, why neither a comma nor the closing bracket
    can be read.
    """
    at = _past_blanks(source.text, position)
    if at == len(source.text):
        if inside is None:
            return Problem("json_syntax", "the file contains no value", Location.span(at, at))
        return _fault("json_syntax", inside.start, "this bracket is never closed")
    if after_value:
        return _comment_fault(source, at) or _missing_comma(source, at, inside)
    if inside is not None and isinstance(inside.value, dict):
        return _member_fault(source, at, inside)
    return _value_fault(source, at)


def trailing_fault(source: Source, position: int) -> Problem:
    """Return the fault in the text that follows the value ending at `position`."""
    at = _past_blanks(source.text, position)
    comment = _comment_fault(source, at)
    message = "unexpected data after the value; a JSON file must contain a single value"
    return comment or Problem("json_trailing_data", message, Location.span(at, len(source.text)))


def _member_fault(source: Source, at: int, inside: Node) -> Problem:
    text = source.text
    if text[at] == "}":
        return _fault("json_syntax", at, "expected a key, found a closing bracket", "remove the comma before it")
    if text[at] != '"':
        comment = _comment_fault(source, at)
        return comment or _fault("json_syntax", at, "expected a key in double quotes")
    fault = _string_fault(source, at)
    if fault is not None:
        return fault
    key = _WHOLE_STRING.match(text, at)
    colon = _past_blanks(text, (key.end() if key else at) + 1)
    if text[colon : colon + 1] != ":":
        return _fault("json_syntax", min(colon, len(text) - 1), "expected ':' after the key")
    return syntax_fault(source, colon + 1, Node([], inside.start, inside.end))


def _value_fault(source: Source, at: int) -> Problem:
    fault = _string_fault(source, at) if source.text[at] == '"' else _comment_fault(source, at) or _mistake(source, at)
    return fault or _fault("json_syntax", at, f"a value cannot begin with {source.text[at]!r}")


def _string_fault(source: Source, at: int) -> Problem | None:
    """Return what is wrong with the string that begins at `at`; None if it is valid."""
    good = _WHOLE_STRING.match(source.text, at)
    end = good.end() if good else at
    if end == len(source.text):
        return _fault("json_syntax", at, "this string is never closed")
    wrong = source.text[end]
    if wrong == '"':
        return None
    if wrong == "\\":
        return _fault("json_syntax", end, "invalid JSON escape", "double the backslash")
    name = "a line end" if wrong in "\r\n" else f"the control character U+{ord(wrong):04X}"
    return _fault("json_control_character", end, f"{name} is inside a string", "write it as an escape")


def _missing_comma(source: Source, at: int, inside: Node | None) -> Problem:
    text = source.text
    if text[at - 1].isdigit() and (text[at].isalnum() or text[at] == "."):
        return _fault("json_syntax", at, "invalid JSON number", "write 0.5, 1.0, 10 or 1e10")
    begun = source.line_and_column(inside.start)[0] if inside else 1
    kind, closing = ("list", "]") if inside and isinstance(inside.value, list) else ("mapping", "}")
    return _fault("json_syntax", at, f"expected ',' or '{closing}' in the {kind} that begins on line {begun}")


def _mistake(source: Source, at: int) -> Problem | None:
    for pattern, code, message, hint in _MISTAKES:
        if pattern.match(source.text, at):
            return _fault(code, at, message, hint)
    return None


def _comment_fault(source: Source, at: int) -> Problem | None:
    if _COMMENT.match(source.text, at) is None:
        return None
    return _fault("json_syntax", at, "JSON does not allow comments", "remove it, or make it a separate value")


def _fault(code: str, at: int, message: str, hint: str = "") -> Problem:
    return Problem(code, message, Location.span(at, at + 1), hint)


def _past_blanks(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip(" \t\n\r"))


# Possessive quantifiers (`*+`) never try again with less, so a scan takes time proportional to the length of any text.
_BLANK = r"[ \t\n\r]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+"
_VALUE = rf"{_BLANK}({_STRING}|{_NUMBER}|true|false|null|[\[{{])"

_A_VALUE: Final = lazy_pattern(_VALUE)
_A_MEMBER: Final = lazy_pattern(rf"{_BLANK}({_STRING}){_BLANK}:{_VALUE}")
_NEXT: Final = lazy_pattern(rf"{_BLANK}([,\]}}])")
_CLOSES: Final = lazy_pattern(rf"{_BLANK}([\]}}])")
_END: Final = lazy_pattern(rf"{_BLANK}\Z")
_ESCAPE: Final = lazy_pattern(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')

_SHORT_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


def load_json(source: Source, limits: Limits = DATA) -> Loaded:
    """Return the JSON value that makes up all of `source`."""
    faults = unreadable(source.text, 0, limits)
    if faults:
        return Loaded(None, tuple(faults))
    scanner = _Scanner(source, limits)
    root = scanner.scan()
    if source.bom:
        fix = fix_of((0, 0), (), safe=True, title="remove the byte order mark", bom=True)
        scanner.faults.append(
            Problem("json_byte_order_mark", "the file begins with a byte order mark", Location.span(0, 0), fix=fix)
        )
    return Loaded(root, tuple(scanner.faults))


class _Open:
    """A list or mapping that is not yet closed."""

    __slots__ = ("closing", "items", "keys", "members", "node", "pattern")

    def __init__(self, start: int, bracket: str) -> None:
        self.items: list[Node] = []
        self.members: dict[str, Node] = {}
        self.keys: dict[str, tuple[int, int]] = {}
        if bracket == "[":
            self.node = Node(self.items, start, start + 1)
            self.pattern, self.closing = _A_VALUE, "]"
        else:
            self.node = Node(self.members, start, start + 1, self.keys)
            self.pattern, self.closing = _A_MEMBER, "}"


class _Scanner:
    """Reads one text from beginning to end; `_open` contains the unclosed lists and mappings."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.faults: list[Problem] = []
        self._source = source
        self._text = source.text
        self._limits = limits
        self._open: list[_Open] = []
        self._count = 0

    def scan(self) -> Node | None:
        """Return the root, if there are no faults."""
        root: Node | None = None
        position: int | None = 0
        while position is not None:
            inside = self._open[-1] if self._open else None
            match = (inside.pattern if inside else _A_VALUE).match(self._text, position)
            if match is None:
                self.faults.append(syntax_fault(self._source, position, inside.node if inside else None))
                break
            node = self._node(match)
            self._count += 1
            if self._count > self._limits.nodes:
                self.faults.append(self._limits.nodes_fault(node.start, node.end))
                break
            if inside is None:
                root = node
            elif inside.pattern is _A_VALUE:
                inside.items.append(node)
            else:
                self._member(inside, node, match)
            if len(self._open) > self._limits.depth:
                self.faults.append(self._limits.depth_fault(node.start, node.end))
                break
            position = self._next(match.end())
        return None if self.faults else root

    def _node(self, match: re.Match[str]) -> Node:
        """Return the value that `match` found; a bracket becomes the innermost open list or mapping."""
        group = match.re.groups
        start, end = match.span(group)
        written = match[group]
        first = written[0]
        if first == '"':
            return Node(self._string(written, start) if "\\" in written else written[1:-1], start, end)
        if first in "tfn":
            return Node(_WORDS[written], start, end)
        if first not in "[{":
            return Node(self._number(written, start), start, end)
        self._open.append(_Open(start, written))
        return self._open[-1].node

    def _member(self, inside: _Open, node: Node, match: re.Match[str]) -> None:
        start, end = match.span(1)
        written = match[1]
        key = self._string(written, start) if "\\" in written else written[1:-1]
        if key in inside.keys:
            self.faults.append(duplicate_key("json_duplicate_key", self._source, key, inside.keys[key], (start, end)))
        else:
            inside.keys[key] = (start, end)
            inside.members[key] = node

    def _next(self, position: int) -> int | None:
        """Skip everything that may end values, from `position` to the start of the next value; return None if no more
        values follow.
        """
        text, stack = self._text, self._open
        # A bracket that was just opened may close immediately, but no comma may follow it.
        if stack and stack[-1].node.end == position and _CLOSES.match(text, position) is None:
            return position
        while stack:
            inside = stack[-1]
            match = _NEXT.match(text, position)
            if match is None or match[1] not in (",", inside.closing):
                self.faults.append(syntax_fault(self._source, position, inside.node, after_value=True))
                return None
            position = match.end()
            if match[1] == ",":
                return position
            stack.pop().node.end = position
        if _END.match(text, position) is None:
            self.faults.append(trailing_fault(self._source, position))
        return None

    def _number(self, written: str, start: int) -> int | float | None:
        # Up to 15 digits, every integer is exact in every parser, and conversion is cheap.
        if written.isdigit() and len(written) < 16:
            return int(written)
        end = start + len(written)
        if written.lstrip("-").isdigit():
            # The length is checked first: Python refuses to convert a number of thousands of digits.
            if len(written) < 20 and abs(int(written)) <= LARGEST_INTEGER:
                return int(written)
            message = f"an integer beyond {LARGEST_INTEGER:,} is not exact in every parser"
            self.faults.append(
                Problem("json_integer_range", message, Location.span(start, end), "write it as a string")
            )
        elif math.isfinite(float(written)):
            return float(written)
        else:
            message = "this number is too large"
            self.faults.append(Problem("json_number_range", message, Location.span(start, end), "write it as a string"))
        return None

    def _string(self, written: str, start: int) -> str:
        """Return a string that is written with escapes."""
        text = _ESCAPE.sub(_unescaped, written[1:-1])
        try:
            # Two escapes make one character beyond U+FFFF.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message = "an escape for a lone surrogate"
            self.faults.append(Problem("json_lone_surrogate", message, Location.span(start, start + len(written))))
            return ""


def _unescaped(match: re.Match[str]) -> str:
    return _SHORT_ESCAPES[match[1]] if match[1] else chr(int(match[2], 16))
