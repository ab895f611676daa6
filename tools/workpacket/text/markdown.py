"""The entry point for reading Markdown as blocks.

`read_blocks` uses the fast reader for plain documents and the full parser for others. If both return blocks, the blocks
are the same. Limits on bytes, lines, blocks and depth apply to both; the full parser also refuses text that would take
too many steps.

Most governed documents use only a little Markdown: headings, nested lists, fences, paragraphs, a table. For these, one
pass over the lines returns exactly the blocks of `markdown_full`, several times faster and without importing a parser.
It gives up (and returns `None`) as soon as it finds anything that is not plain: quotes, HTML, underlined headings,
indented code, link reference definitions, tabs that indent, a lone carriage return, an empty item before a blank line.

The tests prove that both agree: on every example of the CommonMark specification, on every document of the corpus and
on generated documents.

Columns count from 0. A list item remains open for a line that is indented at least to the column where the item's
content began; a paragraph also takes lines indented less, as long as they begin nothing else.

Lines that begin with `<` may still be plain words: placeholders such as `<fill in: events, or NONE>`, arrows.

CommonMark has seven ways to begin a block of HTML. The first six begin with a mark (`<!`, `<?`) or with a name from a
list that ends there (by a space, `>`, `/>` or the end of the line); the seventh is a whole tag, alone on its line. A
line counts as words only if it is certainly none of these. A line that is not ASCII is uncertain, because two non-ASCII
letters equal `s` and `k` when case is ignored.

The first line of a fence or table determines how the following lines are read. Both functions take the `lines` of the
document and their `starts` as offsets, the `index` of the block's first line and the column `inside` at which its
container begins. They return None when the block is not plain.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import LARGEST_MARKDOWN
from workpacket.problem import Location, Problem
from workpacket.text.blocks import (
    MAX_DEPTH,
    MAX_LINES,
    MAX_NODES,
    Block,
    heading_words,
    node_count,
    row_cells,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.source import Source


def read_blocks(
    source: Source, start: int = 0, *, most_bytes: int = LARGEST_MARKDOWN, most_nodes: int = MAX_NODES
) -> list[Block] | Problem:
    """Return the blocks of `source`, or the one fault that prevents reading them.

    `start` is where the Markdown begins: after the front matter, at the start of a line.
    """
    refusal = _refusal(source, most_bytes, most_nodes)
    if refusal is not None:
        return refusal
    blocks = fast_blocks(source, start, most_nodes)
    return parse_blocks(source, start, most_bytes=most_bytes, most_nodes=most_nodes) if blocks is None else blocks


def parse_blocks(
    source: Source, start: int = 0, *, most_bytes: int = LARGEST_MARKDOWN, most_nodes: int = MAX_NODES
) -> list[Block] | Problem:
    """Return the same blocks, always using the full parser, which is the reference for the fast reader."""
    refusal = _refusal(source, most_bytes, most_nodes)
    if refusal is not None:
        return refusal
    from workpacket.text.markdown_full import full_blocks

    return full_blocks(source, start, most_nodes)


def _refusal(source: Source, most_bytes: int, most_nodes: int) -> Problem | None:
    most_lines = max(MAX_LINES, most_nodes)
    too_many_bytes = _has_more_bytes(source, most_bytes)
    if not too_many_bytes and source.line_count <= most_lines:
        return None
    if too_many_bytes:
        return Problem("markdown_too_large", f"the file has more than {most_bytes:,} bytes", Location.span(0, 0))
    place = source.line_starts[most_lines]
    return Problem("markdown_too_large", f"the file has more than {most_lines:,} lines", Location.span(place, place))


def _has_more_bytes(source: Source, most_bytes: int) -> bool:
    characters = len(source.text)
    return characters * 4 > most_bytes and (characters > most_bytes or len(source.encode()) > most_bytes)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from workpacket.text.source import Source


# The tag names of the first and the sixth way.
HTML_NAME = lazy_pattern(
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|pre|script|search|section|source|style|summary|table|tbody|td"
    "|textarea|tfoot|th|thead|title|tr|track|ul",
    re.IGNORECASE,
)
_NAME = lazy_pattern(r"<([A-Za-z][A-Za-z0-9-]*)")
# Without a value, a tag consists only of these characters.
_BARE_TAG = lazy_pattern(r"<[A-Za-z0-9_:.\-\s/]*>\s*\Z")


def begins_no_html(body: str) -> bool:
    """Whether the line, which begins with `<`, is certainly not the beginning of an HTML block."""
    if not body.isascii():
        return False
    named = _NAME.match(body)
    if named is None:
        return body[1:2] not in ("/", "!", "?")
    after = body[named.end() : named.end() + 1]
    if after and after not in "/>" and not after.isspace():
        return True  # `<https://...`, `<name,`: neither a listed name nor a tag ends here
    return HTML_NAME.fullmatch(named[1]) is None and "=" not in body and _BARE_TAG.match(body) is None


_BLANKS = " \t\r"
_DELIMITER_ROW = lazy_pattern(r"(?!-(?: |\Z))\|? *:?-+:? *(?:\| *:?-+:? *)*\|?\Z")
_MOST_MISSING_CELLS = 65_536  # markdown-it ends a table when its short rows would need more cells than this


Span = tuple[int, int]
Row = list[Span]


def fenced_lines(
    lines: list[str], starts: list[int], index: int, inside: int, marker: str, column: int
) -> tuple[list[Span], bool] | None:
    """Return the lines after the opening `marker` at `column`, and whether a closing line follows them."""
    spans: list[Span] = []
    for number in range(index + 1, len(lines)):
        line = lines[number].removesuffix("\r")
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if body[:1] == "\t" and column:
            return None
        if body.strip(_BLANKS):
            if indent < inside:
                break
            closing = indent - inside < 4 and body.startswith(marker)
            if closing and not body.rstrip(_BLANKS).strip(marker[0]):
                return spans, True
        spans.append((starts[number] + min(indent, column), starts[number] + len(line)))
    return spans, False


def table_rows(
    text: str, lines: list[str], starts: list[int], index: int, inside: int, offset: int, most_cells: int
) -> list[Row] | None:
    """Return the header, which starts at `offset`, and the rows below the delimiter row."""
    header = row_cells(text, offset, starts[index] + len(lines[index]))
    delimiter = lines[index + 1].strip(_BLANKS)
    if not _belongs(lines[index + 1], inside) or not _DELIMITER_ROW.match(delimiter):
        return None
    if len(header) != len(delimiter.strip("|").split("|")):
        return None
    rows = [header]
    missing = 0
    for number in range(index + 2, len(lines)):
        line = lines[number]
        if not line.strip(_BLANKS):
            break
        if not _belongs(line, inside) or line.lstrip(" ")[0] != "|":
            return None  # without its first pipe, a row may be the start of something else
        rows.append(row_cells(text, starts[number], starts[number] + len(line)))
        missing += len(header) - len(rows[-1])
        most_cells -= len(rows[-1])
        if missing > _MOST_MISSING_CELLS or most_cells < 0:
            return None
    return rows


def _belongs(line: str, inside: int) -> bool:
    """Whether the line is indented as far as the container, but not so far that it would count as code."""
    body = line.lstrip(" ")
    return 0 <= len(line) - len(body) - inside < 4 and body[0] != "\t"


_RULE = lazy_pattern(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_BULLET = lazy_pattern(r"[-+*](?: {1,4}(?=[^ \t])|\Z)")
_NUMBER = lazy_pattern(r"([0-9]{1,9}[.)])(?: {1,4}(?=[^ \t])|\Z)")
_NUMBER_WITH_BLANK = lazy_pattern(r"[0-9]{1,9}[.)][ \t]")
_NO_DEFINITION = lazy_pattern(r"\[[^\[\]\\]*(?:\[|\](?!:))")
_MOST_OPEN_ITEMS = MAX_DEPTH // 2 - 1  # each is in a list, and both are levels of the tree


class _NotPlain(Exception):
    """Raised if the document needs the full parser."""


def fast_blocks(source: Source, start: int, most_nodes: int) -> list[Block] | None:
    """Return the blocks of `source` from the line that starts at `start`, if the document is plain."""
    if source.text.count("\r") != source.text.count("\r\n"):
        return None
    try:
        blocks = _Scan(source, start, most_nodes).run()
    except _NotPlain:
        return None
    return blocks if len(source.text) < most_nodes or node_count(blocks) <= most_nodes else None


class _Scan:
    """The state of the pass: the open items, outermost first, and the paragraph that the next line may continue."""

    def __init__(self, source: Source, start: int, most_nodes: int) -> None:
        self._left = most_nodes
        self._text = source.text
        self._first = bisect_right(source.line_starts, start)
        self._starts = source.line_starts[self._first - 1 :]
        self._lines = source.text[start:].split("\n")
        if not self._lines[-1].strip(_BLANKS):  # markdown-it sees no line in trailing blanks without a line end
            self._lines.pop()
        self._index = 0
        self._last = self._first
        self._columns = [0]
        self._children: list[list[Block]] = [[]]
        self._paragraph: Block | None = None
        self._words: list[tuple[int, int]] = []

    def run(self) -> list[Block]:
        lines, starts, readers = self._lines, self._starts, _READERS
        while self._index < len(lines):
            filled = lines[self._index].rstrip(_BLANKS)
            if filled:
                body = filled.lstrip(" ")
                column = len(filled) - len(body)
                reader = readers.get(body[0], _Scan._read_words)
                # "An indented code block cannot interrupt a paragraph": this far to the right, nothing can.
                if self._paragraph is not None and column - self._columns[-1] > 3 and body[0] != "\t":
                    reader = _Scan._read_words
                reader(self, body, column, starts[self._index] + column)
            else:
                self._paragraph = None
            self._index += 1
        while len(self._columns) > 1:
            self._leave_item()
        return self._children[0]

    def _enter(self, column: int) -> int:
        """Begin a new block at `column`: close everything that does not extend that far. Return the line number."""
        while column < self._columns[-1]:
            self._leave_item()
        if column - self._columns[-1] > 3:
            raise _NotPlain  # indented code
        self._left -= 1
        if self._left < 0:
            raise _NotPlain  # too many blocks; lists and cells have not even been counted
        self._paragraph = None
        self._last = self._first + self._index
        return self._last

    def _leave_item(self) -> None:
        self._columns.pop()
        self._children.pop()
        siblings = self._children[-1][-1]
        siblings.end_line = siblings.children[-1].end_line = self._last

    def _read_words(self, body: str, column: int, offset: int) -> None:
        span = (offset, offset + len(body))
        if self._paragraph is not None:
            self._words.append(span)
            self._paragraph.end_line = self._last = self._first + self._index
            return
        line = self._enter(column)
        self._words = [span]
        self._paragraph = Block("paragraph", line, line, offset, self._words)
        self._children[-1].append(self._paragraph)

    def _read_bracket(self, body: str, column: int, offset: int) -> None:
        if self._paragraph is None and not _NO_DEFINITION.match(body):
            raise _NotPlain
        self._read_words(body, column, offset)

    def _read_equals_sign(self, body: str, column: int, offset: int) -> None:
        if self._paragraph is not None and not body.strip("="):
            raise _NotPlain  # the underline of a heading
        self._read_words(body, column, offset)

    def _read_angle(self, body: str, column: int, offset: int) -> None:
        if not begins_no_html(body):
            raise _NotPlain
        self._read_words(body, column, offset)

    def _read_nothing(self, _body: str, _column: int, _offset: int) -> None:
        raise _NotPlain

    def _read_heading(self, body: str, column: int, offset: int) -> None:
        level = len(body) - len(body.lstrip("#"))
        if level > 6 or (level < len(body) and body[level] not in _BLANKS):
            self._read_words(body, column, offset)
            return
        line = self._enter(column)
        words = heading_words(self._text, offset + level, offset + len(body))
        block = Block("heading", line, line, offset, (words,), body[:level])
        block.level = level
        self._children[-1].append(block)

    def _read_dash(self, body: str, column: int, offset: int) -> None:
        if body[1:2] != " ":
            self._refuse_delimiter_row(body)
            if self._paragraph is not None and not body.strip("-"):
                raise _NotPlain  # the underline of a heading
        self._read_bullet(body, column, offset)

    def _read_bullet(self, body: str, column: int, offset: int) -> None:
        if self._read_rule(body, column, offset):
            return
        match = _BULLET.match(body)
        if match is not None:
            self._open_item(body[0], body[0], body, column, offset, match.end())
        elif body[1] in _BLANKS:
            raise _NotPlain  # the content is indented code, or a tab precedes it
        else:
            self._read_words(body, column, offset)

    def _read_number(self, body: str, column: int, offset: int) -> None:
        match = _NUMBER.match(body)
        if match is None:
            if _NUMBER_WITH_BLANK.match(body):
                raise _NotPlain
            self._read_words(body, column, offset)
            return
        marker = match[1]
        # "We allow a list item to interrupt a paragraph only if it starts with 1" (in a list, the next item may).
        if self._paragraph is not None and column >= self._columns[-1] and int(marker[:-1]) != 1:
            self._read_words(body, column, offset)
            return
        self._open_item(marker, marker[-1], body, column, offset, match.end())

    def _read_underscore(self, body: str, column: int, offset: int) -> None:
        if not self._read_rule(body, column, offset):
            self._read_words(body, column, offset)

    def _read_rule(self, body: str, column: int, offset: int) -> bool:
        if not _RULE.match(body):
            return False
        line = self._enter(column)
        self._children[-1].append(Block("rule", line, line, offset))
        return True

    def _open_item(self, marker: str, sign: str, body: str, column: int, offset: int, width: int) -> None:
        """Open an item. `width` is the width of the marker and the spaces after it; `sign` is the part of the marker
        that the items of a list share.
        """
        content = body[width:]
        if not content:
            self._require_plain_empty_item(column)
            width += 1
        line = self._enter(column)
        siblings = self._children[-1]
        children: list[Block] = []
        item = Block("item", line, line, offset, (), marker, children)
        item.content_start = offset + (width if content else len(marker))
        if siblings and siblings[-1].marker == sign:
            siblings[-1].children.append(item)
        else:
            kind = "bullet_list" if marker == sign else "ordered_list"
            siblings.append(Block(kind, line, line, offset, (), sign, [item]))
        self._columns.append(column + width)
        self._children.append(children)
        if len(self._columns) - 1 > _MOST_OPEN_ITEMS:
            raise _NotPlain
        if content:
            _READERS.get(content[0], _Scan._read_words)(self, content, column + width, offset + width)

    def _require_plain_empty_item(self, column: int) -> None:
        # "An empty list item cannot interrupt a paragraph", and "can begin with at most one blank line".
        if (self._paragraph is not None and column >= self._columns[-1]) or not self._following():
            raise _NotPlain

    def _following(self) -> str:
        """Return the next line without surrounding white space."""
        after = self._index + 1
        return self._lines[after].strip(_BLANKS) if after < len(self._lines) else ""

    def _read_fence(self, body: str, column: int, offset: int) -> None:
        info = body.lstrip(body[0])
        marker = body[: len(body) - len(info)]
        if len(marker) < 3 or (body[0] == "`" and "`" in info):
            self._read_words(body, column, offset)
            return
        if "|" in info:
            raise _NotPlain  # before a delimiter row this is the header of a table
        line = self._enter(column)
        content = fenced_lines(self._lines, self._starts, self._index, self._columns[-1], marker, column)
        if content is None:
            raise _NotPlain
        spans, closed = content
        self._last = line + len(spans) + closed
        self._index += len(spans) + closed
        block = Block("fence", line, self._last, offset, spans, marker)
        block.info = info.strip(_BLANKS)
        self._children[-1].append(block)

    def _read_pipe(self, body: str, column: int, offset: int) -> None:
        self._refuse_delimiter_row(body)
        following = self._following()
        if following and not following.strip("|:- \t"):
            self._read_table(column, offset)
        else:
            self._read_words(body, column, offset)

    def _read_colon(self, body: str, column: int, offset: int) -> None:
        self._refuse_delimiter_row(body)
        self._read_words(body, column, offset)

    def _refuse_delimiter_row(self, body: str) -> None:
        """Give up if the line may be a delimiter row: the previous line may then be the table's header."""
        if not body.strip("|:- \t") and self._index and "|" in self._lines[self._index - 1]:
            raise _NotPlain

    def _read_table(self, column: int, offset: int) -> None:
        if self._paragraph is not None and column < self._columns[-1]:
            raise _NotPlain  # a table that is indented less does not end the paragraph
        line = self._enter(column)
        rows = table_rows(self._text, self._lines, self._starts, self._index, self._columns[-1], offset, self._left)
        if rows is None:
            raise _NotPlain
        self._index += len(rows)
        self._last = line + len(rows)
        block = Block("table", line, self._last, offset)
        block.rows = rows
        self._children[-1].append(block)


_READERS: dict[str, Callable[[_Scan, str, int, int], None]] = {
    "#": _Scan._read_heading,
    "-": _Scan._read_dash,
    "*": _Scan._read_bullet,
    "+": _Scan._read_bullet,
    "_": _Scan._read_underscore,
    "`": _Scan._read_fence,
    "~": _Scan._read_fence,
    "|": _Scan._read_pipe,
    ":": _Scan._read_colon,
    "=": _Scan._read_equals_sign,
    "[": _Scan._read_bracket,
    "<": _Scan._read_angle,
    ">": _Scan._read_nothing,
    "\t": _Scan._read_nothing,
    **dict.fromkeys("0123456789", _Scan._read_number),
}
