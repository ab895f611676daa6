"""The blocks of a Markdown document: what the parsers make and all readers read.

Positions are exact: rules point at line and column, and edits replace [start, end) of `Source.text`. Lines count from 1
and are those of `Source.line_starts`; a block's last line is included, the blank lines after it are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

MAX_BYTES = 2 * 1024 * 1024
MAX_LINES = 200_000
MAX_NODES = 20_000
MAX_DEPTH = 32

# The kinds of blocks that hold items.
LISTS = frozenset({"bullet_list", "ordered_list"})


class Block:
    """One block. A plain class: some hundred of them are made for each of thousands of files.

    `kind` is one of heading, paragraph, bullet_list, ordered_list, item, quote, fence, code, html, table, rule and
    definition (a link reference definition, which shows nothing but is there).

    `start` is the offset of the block's first character: the `#`, `-`, `>`, the first backtick, the first letter.
    `spans` are the lines of text of a leaf, each as [start, end) without container prefixes, markers and surrounding
    blanks: the words of a heading, each line of a paragraph, each line inside a fence (this one verbatim to its end).
    `marker` is what makes the block what it is: `##`, `-`, `1.`, the backticks of a fence; of a list, the character
    that its items share. `level` belongs to headings, `info` to fences, `content_start` to items: the offset of the
    first character after the marker, or of the end of the marker if the line holds nothing else.
    `rows` of a table are its header and its body rows, each a list of cells; the delimiter row is line `line + 1`.
    """

    __slots__ = (
        "children",
        "content_start",
        "end_line",
        "info",
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

    def __repr__(self) -> str:
        return f"Block({self.kind!r}, lines {self.line}..{self.end_line})"

    @property
    def closed(self) -> bool:
        """Whether a fence has its closing line; without one it swallows all that follows."""
        return self.end_line - self.line > len(self.spans)

    def text(self, source_text: str) -> str:
        """The lines of a leaf, joined by newlines."""
        return "\n".join(source_text[start:end] for start, end in self.spans)


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, each before the blocks inside it, in the order of the document."""
    stack = list(blocks)
    stack.reverse()
    while stack:
        block = stack.pop()
        yield block
        stack.extend(reversed(block.children))


def node_count(blocks: Iterable[Block]) -> int:
    """How many blocks and table cells there are: what the limit on nodes counts."""
    return sum(1 + sum(map(len, block.rows)) for block in walk(blocks))
