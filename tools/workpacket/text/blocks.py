"""The blocks of a Markdown document, produced by the parsers and used by all readers.

Positions are exact: rules point to line and column, and edits replace [start, end) of `Source.text`. Lines count from 1
and are those of `Source.line_starts`; a block includes its last line, but not the blank lines after it.

Also has the functions that both Markdown parsers share: the words of a heading, the cells of a table row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workpacket.lazy_pattern import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.fields import Item

BLANKS = " \t"

# The characters that markdown-it strips from a table row before it looks for the outer pipes.
_ROW_TRIM = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_CELL_BORDER = lazy_pattern(r"(?<!\\)\|")


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return [start, end) without the white space at both ends; an empty span stays where it starts."""
    body = text[start:end]
    core = body.strip(BLANKS)
    if not core:
        return start, start
    start += len(body) - len(body.lstrip(BLANKS))
    return start, start + len(core)


def heading_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of an ATX heading's words: `start` follows the opening `#`s, and a closing run of `#` is left
    out.
    """
    body = text[start:end].rstrip(BLANKS)
    words = body.rstrip("#")
    if not words.endswith((" ", "\t")):
        words = body
    return trimmed(text, start, start + len(words))


def row_cells(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return all cells of a table row as written, whatever the header says."""
    row = text[start:end]
    start += len(row) - len(row.lstrip(_ROW_TRIM))
    row = row.strip(_ROW_TRIM)
    borders = [match.start() for match in _CELL_BORDER.finditer(row)]
    starts = [0, *(border + 1 for border in borders)]
    ends = [*borders, len(row)]
    cells = [(start + first, start + last) for first, last in zip(starts, ends, strict=True)]
    if cells[0][0] == cells[0][1]:
        del cells[0]
    if cells and cells[-1][0] == cells[-1][1]:
        del cells[-1]
    return [trimmed(text, first, last) for first, last in cells]


MAX_BYTES = 2 * 1024 * 1024
MAX_LINES = 200_000
MAX_NODES = 20_000
MAX_DEPTH = 32

# The kinds of blocks that contain items.
LISTS = frozenset({"bullet_list", "ordered_list"})


class Block:
    """One block. This is a plain class, because hundreds of them are made for each of thousands of files.

    `kind` is one of heading, paragraph, bullet_list, ordered_list, item, quote, fence, code, html, table, rule and
    definition (a link reference definition, which is not rendered).

    `start` is the offset of the block's first character: the `#`, `-`, `>`, the first backtick, the first letter.
    `spans` are the lines of text of a leaf, each as [start, end) without container prefixes, markers and surrounding
    blanks: the words of a heading, each line of a paragraph, each line inside a fence (this one verbatim to its end).
    `marker` is the mark of the block: `##`, `-`, `1.`, the backticks of a fence; for a list, the character that its
    items share. `level` belongs to headings, `info` to fences, `content_start` to items: the offset of the first
    character after the marker, or of the end of the marker if the line contains nothing else. `rows` of a table are its
    header and its body rows, each a list of cells; the delimiter row is line `line + 1`. `items` belongs to
    `fields.read_items`, which reads each list once.
    """

    __slots__ = (
        "children",
        "content_start",
        "end_line",
        "info",
        "items",
        "kind",
        "level",
        "line",
        "marker",
        "rows",
        "spans",
        "start",
    )

    def __init__(
        self,
        kind: str,
        line: int,
        end_line: int,
        start: int,
        spans: Sequence[tuple[int, int]] = (),
        marker: str = "",
        children: list[Block] | None = None,
    ) -> None:
        self.kind = kind
        self.line = line
        self.end_line = end_line
        self.start = start
        self.spans = spans
        self.marker = marker
        self.children = [] if children is None else children
        self.level = 0
        self.content_start = start
        self.info = ""
        self.rows: Sequence[Sequence[tuple[int, int]]] = ()
        self.items: list[Item] | None = None

    def __repr__(self) -> str:
        return f"Block({self.kind!r}, lines {self.line}..{self.end_line})"

    @property
    def closed(self) -> bool:
        """Whether a fence has a closing line. Without one, it swallows the rest of the document."""
        return self.end_line - self.line > len(self.spans)

    def text(self, source_text: str) -> str:
        """Return the lines of a leaf, joined by newlines."""
        return "\n".join(source_text[start:end] for start, end in self.spans)


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield all blocks in document order, each before its children."""
    stack = list(blocks)
    stack.reverse()
    while stack:
        block = stack.pop()
        yield block
        stack.extend(reversed(block.children))


def node_count(blocks: Iterable[Block]) -> int:
    """Return the number of blocks and table cells, which the limit on nodes counts."""
    return sum(1 + sum(map(len, block.rows)) for block in walk(blocks))
