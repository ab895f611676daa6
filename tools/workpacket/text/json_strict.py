"""The one JSON loader: RFC 8259 to the letter, bounded, and with a position for every value and key.

Beyond the grammar it refuses, each with its own code: a key given twice, an integer that not every reader holds
exactly, a number too large for any, an escape for half a character, anything after the value. A byte order mark, which
the RFC lets a reader ignore, is a warning. The standard library's parser knows no positions and recurses; this one
keeps the open lists and mappings in a list of its own, so that depth is a limit and not a crash.
"""

from __future__ import annotations

import math
import re
from typing import Final

from workpacket.model.canonical import LARGEST_INTEGER
from workpacket.text.edits import fix_of
from workpacket.text.fault import Fault
from workpacket.text.json_errors import syntax_fault, trailing_fault
from workpacket.text.limits import DATA, Limits
from workpacket.text.loaded import Loaded, duplicate_key, unreadable
from workpacket.text.node import Node
from workpacket.text.source import Source

_BLANK = r"[ \t\n\r]*+"
_STRING = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+"
_VALUE = rf"{_BLANK}({_STRING}|{_NUMBER}|true|false|null|[\[{{])"

_A_VALUE: Final = re.compile(_VALUE)
_A_MEMBER: Final = re.compile(rf"{_BLANK}({_STRING}){_BLANK}:{_VALUE}")
_NEXT: Final = re.compile(rf"{_BLANK}([,\]}}])")
_CLOSES: Final = re.compile(rf"{_BLANK}([\]}}])")
_END: Final = re.compile(rf"{_BLANK}\Z")
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')

_SHORT_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


def load_json(source: Source, limits: Limits = DATA) -> Loaded:
    """The JSON value that is the whole of `source`."""
    faults = unreadable(source.text, 0, limits)
    if faults:
        return Loaded(None, tuple(faults))
    scanner = _Scanner(source, limits)
    root = scanner.scan()
    if source.bom:
        fix = fix_of((0, 0), (), safe=True, title="remove the byte order mark", bom=True)
        scanner.faults.append(Fault("json_byte_order_mark", 0, 0, "the file begins with a byte order mark", fix=fix))
    return Loaded(root, tuple(scanner.faults))


class _Open:
    """A list or mapping that is not closed yet."""

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
    """Reads one text from front to back; `_open` holds the lists and mappings that are not closed yet."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self.faults: list[Fault] = []
        self._source = source
        self._text = source.text
        self._limits = limits
        self._open: list[_Open] = []
        self._count = 0

    def scan(self) -> Node | None:
        """The root, if there are no faults."""
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
        """The value that `match` found; a bracket becomes the innermost open list or mapping."""
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
        """Go from `position`, past what ends values, to where the next one begins; none if there is none."""
        text, stack = self._text, self._open
        # A bracket that has just been opened may close at once; a comma may not follow it.
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
        if written.isdigit() and len(written) < 16:
            return int(written)
        end = start + len(written)
        if written.lstrip("-").isdigit():
            if len(written) < 20 and abs(int(written)) <= LARGEST_INTEGER:
                return int(written)
            message = f"an integer beyond {LARGEST_INTEGER:,} is not exact in every reader"
            self.faults.append(Fault("json_integer_range", start, end, message, "write it as a string"))
        elif math.isfinite(float(written)):
            return float(written)
        else:
            message = "this number is larger than any that a reader holds"
            self.faults.append(Fault("json_number_range", start, end, message, "write it as a string"))
        return None

    def _string(self, written: str, start: int) -> str:
        """The string that is written with escapes."""
        text = _ESCAPE.sub(_unescaped, written[1:-1])
        try:
            # Two escapes make one character beyond U+FFFF.
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message = "an escape that names half a character"
            self.faults.append(Fault("json_lone_surrogate", start, start + len(written), message))
            return ""


def _unescaped(match: re.Match[str]) -> str:
    return _SHORT_ESCAPES[match[1]] if match[1] else chr(int(match[2], 16))
