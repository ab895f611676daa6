"""The only TOML loader: `tomllib` for the values, and our own scan for their positions.

`tomllib` is already strict: duplicate keys, tables defined twice and everything else outside TOML 1.0 are errors with a
line and a column. But it has no limits, and accepts numbers that some parsers cannot represent. Dates become strings,
as in YAML.

The scan reads only text that `tomllib` has accepted, so it finds positions and determines nothing else: values come
from `tomllib`. The span of a table is its header; for a table implied by a dotted key, the span is the part of the key
that names it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import LARGEST_INTEGER
from workpacket.problem import Location, Problem
from workpacket.text.source import DATA, Limits, Loaded, Node, Scalar, Source, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOTHING = lazy_pattern(r"(?:[ \t\r\n]|#[^\n]*)*+")
_KEY_PART = lazy_pattern(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_DOT = lazy_pattern(r"[ \t]*\.[ \t]*")
_SCALAR = lazy_pattern(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\''''
    r"""|[0-9]{4}-[0-9]{2}-[0-9]{2}[ ][0-9]{2}:[^\s,\]}#]+|[^\s,\]}#]+""",
    re.DOTALL,
)


def place(source: Source, plain: dict[str, Any]) -> tuple[Node, list[Problem]]:
    """Return the tree of `source`, which has the value `plain`, and a fault for each value that JSON cannot
    represent."""
    placer = _Placer(source.text)
    return placer.document(plain), placer.faults


class _Placer:
    """Walks through the text once; `_at` is the current position."""

    def __init__(self, text: str) -> None:
        self.faults: list[Problem] = []
        self._text = text
        self._at = 0

    def document(self, plain: dict[str, Any]) -> Node:
        root = Node({}, 0, len(self._text), {})
        table, values = root, plain
        self._skip()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table, values = self._header(root, plain)
            else:
                self._pair(table, values)
            self._skip()
        return root

    def _header(self, root: Node, plain: dict[str, Any]) -> tuple[Node, Any]:
        """Return the table opened by a header, and its values."""
        start = self._at
        brackets = 2 if self._text.startswith("[[", start) else 1
        self._at += brackets
        self._skip()
        path = self._path()
        self._skip()
        self._at += brackets
        above, values = _descend(root, plain, path[:-1])
        name, span = path[-1]
        values = values[name]
        if brackets == 1:
            table = _table(above, name, span)
            table.start, table.end = start, self._at
            return table, values
        tables = above.mapping.get(name) or _put(above, name, span, Node([], start, self._at))
        tables.items.append(Node({}, start, self._at, {}))
        return tables.items[-1], values[len(tables.items) - 1]

    def _pair(self, table: Node, values: Any) -> None:
        path = self._path()
        self._skip()
        self._at += len("=")
        self._skip()
        above, values = _descend(table, values, path[:-1])
        name, span = path[-1]
        _put(above, name, span, self._value(values[name]))

    def _value(self, plain: Any) -> Node:
        start = self._at
        if isinstance(plain, list):
            return Node(self._list(plain), start, self._at)
        if isinstance(plain, dict):
            node = Node({}, start, start, {})
            self._at += len("{")
            self._skip()
            while self._text[self._at] != "}":
                self._pair(node, plain)
                self._skip_comma()
            self._at += len("}")
            node.end = self._at
            return node
        match = _SCALAR.match(self._text, start)
        self._at = match.end() if match else start
        return Node(self._scalar(plain, start), start, self._at)

    def _list(self, plain: list[Any]) -> list[Node]:
        self._at += len("[")
        self._skip()
        nodes = []
        for item in plain:
            nodes.append(self._value(item))
            self._skip_comma()
        self._at += len("]")
        return nodes

    def _scalar(self, plain: Any, start: int) -> Scalar:
        if isinstance(plain, (str, bool)):
            return plain
        too_large = isinstance(plain, int) and abs(plain) > LARGEST_INTEGER
        if too_large or (isinstance(plain, float) and not math.isfinite(plain)):
            message = f"{self._text[start : self._at][:40]} is not a number that every parser can represent"
            self.faults.append(Problem("toml_number_range", message, Location.span(start, self._at)))
        # Only dates and times are left, which are text here, as in YAML and JSON.
        return plain if isinstance(plain, (int, float)) else self._text[start : self._at]

    def _path(self) -> list[tuple[str, tuple[int, int]]]:
        """Return the parts of a key, each with its position."""
        path = []
        while True:
            match = _KEY_PART.match(self._text, self._at)
            start, self._at = self._at, match.end() if match else self._at
            written = self._text[start : self._at]
            path.append((_name(written), (start, self._at)))
            dot = _DOT.match(self._text, self._at)
            if dot is None:
                return path
            self._at = dot.end()

    def _skip(self) -> None:
        match = _NOTHING.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _skip_comma(self) -> None:
        self._skip()
        if self._text[self._at] == ",":
            self._at += len(",")
            self._skip()


def _name(written: str) -> str:
    if written.startswith("'"):
        return written[1:-1]
    if written.startswith('"'):
        # The escapes are those of a value, so the same parser reads them.
        import tomllib

        return str(tomllib.loads(f"key = {written}")["key"])
    return written


def _descend(node: Node, values: Any, path: list[tuple[str, tuple[int, int]]]) -> tuple[Node, Any]:
    """Follow `path` from `node`, creating the tables that it implies. In a list of tables, the path refers to the last
    one.
    """
    for name, span in path:
        node, values = _table(node, name, span), values[name]
        if node.items:
            node, values = node.items[-1], values[len(node.items) - 1]
    return node, values


def _table(above: Node, name: str, span: tuple[int, int]) -> Node:
    return above.mapping.get(name) or _put(above, name, span, Node({}, *span, {}))


def _put(above: Node, name: str, span: tuple[int, int], node: Node) -> Node:
    keys = {} if above.keys is None else above.keys
    above.mapping[name], keys[name] = node, span
    return node


# Characters that nest, that hide brackets and dots, and that end a dotted key.
_NESTING = lazy_pattern(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[\[\]{}.\n,=]""",
    re.DOTALL,
)
_PLACE = lazy_pattern(
    r"(?P<problem>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)\Z", re.DOTALL
)
_ENDLESS_NUMBER = lazy_pattern(r"[0-9_]{1000,}")


@lru_cache(maxsize=64)
def plain_toml(text: str) -> dict[str, Any]:
    """Return only the values. They are parsed once for all callers. The result is shared, so do not modify it."""
    return _parsed(text)


def _parsed(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def load_toml(source: Source, limits: Limits = DATA) -> Loaded:
    """Return the TOML document that makes up all of `source`."""
    # Before `tomllib`, which has no limits of its own, sees the text.
    fault = next(iter(unreadable(source.text, 0, limits)), None) or _too_deep(source.text, limits)
    if fault is not None:
        return Loaded(None, (fault,))
    if not source.text:  # importing `tomllib` would take longer than the rest of a short command
        return Loaded(Node({}, 0, 0, {}), ())
    try:
        # Files that may be larger than our documents are not cached.
        plain = plain_toml(source.text) if limits is DATA else _parsed(source.text)
    except ValueError as error:
        return Loaded(None, (_syntax_fault(source.text, str(error)),))
    root, faults = place(source, plain)
    faults += _beyond(root, limits)
    return Loaded(None if faults else root, tuple(faults))


def _beyond(root: Node, limits: Limits) -> list[Problem]:
    """Return the first value beyond the limits on number or depth: headers, dotted keys and brackets may each be within
    the limits, but exceed them together.
    """
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


def _too_deep(text: str, limits: Limits) -> Problem | None:
    """Return the bracket or dot that nests too deeply: `tomllib` recurses, and copies the path to it."""
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


def _syntax_fault(text: str, said: str) -> Problem:
    parts = _PLACE.match(said)
    if parts is None:
        # Python refuses to convert a number of thousands of digits, without saying where it is.
        number = _ENDLESS_NUMBER.search(text)
        at, end = number.span() if number else (0, 0)
        return Problem("toml_number_range", "this number is too large", Location.span(at, end))
    problem = parts["problem"][:1].lower() + parts["problem"][1:]
    if parts["line"] is None:
        end = len(text.rstrip())
        return Problem("toml_syntax", f"{problem}, at the end of the file", Location.span(max(end - 1, 0), end))
    at = 0
    for _ in range(int(parts["line"]) - 1):
        at = text.index("\n", at) + 1
    at = min(at + int(parts["column"]) - 1, len(text))
    return Problem("toml_syntax", problem, Location.span(at, min(at + 1, len(text))))
