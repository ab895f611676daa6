"""The blocks of a Markdown document, produced by the parsers and used by all readers; keys and values in them.

A line that begins with a label (see below) is a field. Its value follows on that line and on the more deeply indented
lines of the same paragraph. Other lines never become part of the value, even if Markdown counts them as part of the
same paragraph: an empty field must remain empty. Such lines are the field's `tail`.

Lists and fences below the key belong to it: those inside its list item or, for a field that is a paragraph without a
value, the one that follows directly. The items of such a list are also read as fields, because a paragraph that ends in
a colon may be a caption.

Nothing is interpreted: hints after a value, quotation marks and placeholders are part of the value.

The label of a field consists of a few words and a colon at the beginning of a line:

    KEY: value        **KEY**: value       **KEY:** value       **KEY: value**       `KEY`: value
    KEY (an aside): value                  **KEY** (an aside): value
    Mixed words: value                     KEY:value            (capitals only)

At the beginning of a paragraph or list item, a label may be any few words without a comma. On a later line of the same
paragraph it must be bold, or start with a capital and have at most three words: most lines there are wrapped sentences.

Sections, which begin with a heading, form the outline around the fields. A heading inside a quote or a list does not
count: it belongs to that quote or list.

Positions are exact: rules point to line and column, and edits replace [start, end) of `Source.text`. Lines are numbered
from 1, as in `Source.line_starts`; a block includes its last line, but not the blank lines after it.

This module also has the functions that both Markdown parsers share: the words of a heading, the cells of a table row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from workpacket.lazy_pattern import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.source import Source


_ASIDE = lazy_pattern(r"\([^()]*\)|\[[^\[\]]*\]")
_NO_WORD = lazy_pattern(r"[\W_]+")


@lru_cache(maxsize=4096)
def normal_key(raw: str) -> str:
    """Normalize a key: `SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)` and `Spec anchor candidates` both give
    `spec_anchor_candidates`.

    Text in parentheses or brackets is dropped, unless there is nothing else.
    """
    return _words(_ASIDE.sub(" ", raw)) or _words(raw)


def _words(text: str) -> str:
    return _NO_WORD.sub("_", text).strip("_").casefold()


def asides(text: str) -> list[str]:
    """Return the parts in parentheses or brackets, including the parentheses or brackets."""
    return _ASIDE.findall(text)


Span = tuple[int, int]

_MOST_WORDS = 6
_BEHIND_LABEL = r"\([^()\n]{0,80}\)|\[[^\[\]\n]{0,80}\]"
_ASIDES = lazy_pattern(_BEHIND_LABEL)
_LABEL = lazy_pattern(
    rf"(\*{{1,3}}|__|`)?(\w(?:[\w ./&+#'@-]|{_BEHIND_LABEL}){{0,80}}?)"  # the mark and the key
    # The mark is closed before the colon, after it, or not here. A mark after the colon ends the label even if no space
    # follows.
    rf"(?:\1(?: ?(?:{_BEHIND_LABEL})){{0,2}}[ \t]*:()(?=[ \t]|\Z)|:\1()|[ \t]*:(?=[ \t]|\Z))"
)
_TIGHT_LABEL = lazy_pattern(r"()([A-Z][A-Z0-9_]{2,}):()(?=[^\s:/\\])")
_LATER_KEY = lazy_pattern(rf"[A-Z][\w-]*(?: [\w/&-]+){{0,2}}(?: ?(?:{_BEHIND_LABEL}))*\Z")


def first_label(text: str, start: int, end: int) -> tuple[Span, Span] | None:
    """Return the spans of key and value, if the line [start, end), the first line of a paragraph, begins with a
    label."""
    match = _LABEL.match(text, start, end) or _TIGHT_LABEL.match(text, start, end)
    if match is None or len(_ASIDES.sub("", match[2]).split()) > _MOST_WORDS:
        return None
    mark, value = match[1], trimmed(text, match.end(), end)
    if mark and match.lastindex == 2:  # `**KEY: value**`: the value is inside the mark too
        if mark == "`" or not text.endswith(mark, *value):
            return None
        value = trimmed(text, value[0], value[1] - len(mark))
    return (match.start(2), match.start(2) + len(match[2].rstrip(BLANKS))), value


def later_label(text: str, start: int, end: int) -> tuple[Span, Span] | None:
    """Return the spans of key and value on a later line of a paragraph."""
    label = first_label(text, start, end)
    if label is None or text[start] in "*_" or _LATER_KEY.match(text, *label[0]):
        return label
    return None


_OWNED = ("bullet_list", "ordered_list", "fence")
_BOX = lazy_pattern(r"\[([ xX])\](?:[ \t]+|\Z)")


class Field:
    """One field. `name` is the normalized `key`; `block` is the list item or paragraph that contains it."""

    __slots__ = ("_source", "block", "key", "key_span", "name", "owned", "tail", "value", "value_span")

    def __init__(self, source: Source, block: Block, key_span: Span, value_span: Span) -> None:
        self._source = source
        self.block = block
        self.key_span = key_span
        self.key = source.text[key_span[0] : key_span[1]]
        self.name = normal_key(self.key)
        self.value_span = value_span
        self.value = source.text[value_span[0] : value_span[1]]
        self.tail: list[Span] = []
        self.owned: list[Block] = []

    def __repr__(self) -> str:
        return f"Field({self.key!r}: {self.value!r})"

    @property
    def children(self) -> list[Item]:
        """Return the items in the lists below the field."""
        return read_items(self._source, self.owned)

    @property
    def fields(self) -> list[Field]:
        """Return the fields found among those items."""
        return read_fields(self._source, self.owned)

    @property
    def fences(self) -> list[Block]:
        return [block for block in self.owned if block.kind == "fence"]

    @property
    def bare_span(self) -> Span:
        """Return the span of the value without backticks or asterisks enclosing all of it."""
        start, end = self.value_span
        for mark in ("`", "**", "*"):
            inner = self.value[len(mark) : -len(mark)]
            if inner and self.value == f"{mark}{inner}{mark}" and mark[0] not in inner:
                return start + len(mark), end - len(mark)
        return start, end

    @property
    def bare(self) -> str:
        start, end = self.bare_span
        return self._source.text[start:end]

    def extend(self, line: Span) -> None:
        """Add another line to the value."""
        text = self._source.text
        start = self.value_span[0] if self.value else line[0]
        self.value = f"{self.value} {text[line[0] : line[1]]}".lstrip(" ")
        self.value_span = (start, line[1])


class Item:
    """One list item: the words on all lines of its first paragraph, without its task box, and the items below it.

    `ticked` is None if the item has no task box; `box` is then None too, otherwise the span of the character inside the
    box. `number` is the number of an item in an ordered list.
    """

    __slots__ = ("_source", "block", "box", "number", "span", "text", "ticked")

    def __init__(self, source: Source, block: Block) -> None:
        self._source = source
        self.block = block
        self.number = int(block.marker[:-1]) if len(block.marker) > 1 else None
        lines = _first_lines(block)
        box = _BOX.match(source.text, *lines[0])
        self.box: Span | None = None
        self.ticked: bool | None = None
        if box:
            self.box = box.span(1)
            self.ticked = box[1] != " "
            lines[0] = (box.end(), lines[0][1])
        self.span = (lines[0][0], lines[-1][1])
        self.text = " ".join(source.text[start:end] for start, end in lines)

    def __repr__(self) -> str:
        return f"Item({self.text!r})"

    @property
    def children(self) -> list[Item]:
        return read_items(self._source, self.block.children)

    @property
    def fields(self) -> list[Field]:
        """Return the fields of the item: usually one, none if the item is prose."""
        return list(_item_fields(self._source, self.block))


def read_items(source: Source, blocks: Iterable[Block]) -> list[Item]:
    """Return the items in the lists among `blocks`."""
    found: list[Item] = []
    for block in blocks:
        if block.kind in LISTS:
            if block.items is None:  # several rules read the same lists
                block.items = [Item(source, item) for item in block.children]
            found += block.items
    return found


def read_fields(source: Source, blocks: Iterable[Block]) -> list[Field]:
    """Return the fields in the paragraphs and list items among `blocks`, in order; nested lists are excluded."""
    fields: list[Field] = []
    caption: Field | None = None
    for block in blocks:
        if caption is not None and block.kind in _OWNED:
            caption.owned.append(block)
        caption = None
        if block.kind == "paragraph":
            found = list(_paragraph_fields(source, block, block))
            fields += found
            caption = found[-1] if found and not found[-1].value and not found[-1].tail else None
        elif block.kind in LISTS:
            for item in block.children:
                fields += _item_fields(source, item)
    return fields


def _item_fields(source: Source, item: Block) -> Iterator[Field]:
    field: Field | None = None
    for block in item.children:
        if block.kind == "paragraph":
            found = list(_paragraph_fields(source, block, item))
            if not found and field is not None and not (field.value or field.owned):
                # A value may follow a blank line, as long as it belongs to the item.
                for line in block.spans:
                    field.extend(line)
            for field in found:
                yield field
        elif field is not None and block.kind in _OWNED:
            field.owned.append(block)


def _paragraph_fields(source: Source, paragraph: Block, holder: Block) -> Iterator[Field]:
    """Yield the fields of a paragraph, which is `holder` or inside it."""
    text, line_starts = source.text, source.line_starts
    column = holder.start - line_starts[holder.line - 1]
    previous_end = 0
    field: Field | None = None
    for index, (start, end) in enumerate(paragraph.spans):
        indent = start - line_starts[paragraph.line - 1 + index]
        if start == holder.content_start:
            box = _BOX.match(text, start, end)
            label = first_label(text, box.end() if box else start, end)
        else:
            label = later_label(text, start, end)
        if label is not None:
            if field is not None:
                yield field
            field = Field(source, holder, *label)
            column = column if index == 0 else indent
        elif field is not None:
            if indent > column and field.value_span[1] == previous_end:
                field.extend((start, end))
            else:
                field.tail.append((start, end))
        previous_end = end
    if field is not None:
        yield field


def _first_lines(item: Block) -> list[Span]:
    first = item.children[0] if item.children else item
    # `- <fill in>` is an HTML block to Markdown, but words to everyone else.
    return (
        list(first.spans)
        if first.kind in {"paragraph", "heading", "html"}
        else [(item.content_start, item.content_start)]
    )


TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.text.source import Source


class Section:
    """Everything below one heading, up to the next heading of the same or a higher level.

    `blocks` are the blocks before the first subsection, without the heading itself. [start, end) is the whole section
    in the source, from the line of its heading to the line of the next section's heading, blank lines included;
    `end_line` is its last line. The section of level 0 is the document: its `blocks` are those before the first
    heading.
    """

    __slots__ = ("blocks", "end", "end_line", "heading", "level", "line", "name", "start", "subsections", "title")

    def __init__(self, level: int, line: int, start: int, title: str, heading: Block | None) -> None:
        self.level = level
        self.line = line
        self.start = start
        self.title = title
        self.name = normal_key(title)
        self.heading = heading
        self.blocks: list[Block] = []
        self.subsections: list[Section] = []
        self.end = start
        self.end_line = line

    def __repr__(self) -> str:
        return f"Section({self.level}, {self.title!r}, lines {self.line}..{self.end_line})"

    @property
    def title_span(self) -> tuple[int, int]:
        """Return the span of the title's words; for the document as a whole, its start."""
        if self.heading is None:
            return self.start, self.start
        return self.heading.spans[0][0], self.heading.spans[-1][1]

    def walk(self) -> Iterator[Section]:
        """Yield this section and all sections below it, in document order."""
        stack = [self]
        while stack:
            section = stack.pop()
            yield section
            stack.extend(reversed(section.subsections))

    def find(self, name: str) -> Section | None:
        """Return the first section at or below this one whose title normalizes to `name` (see `normal_key`)."""
        return next((section for section in self.walk() if section.name == name), None)


def outline(source: Source, blocks: Sequence[Block], start: int = 0) -> Section:
    """Return the document, whose Markdown begins at `start`, as a tree of sections."""
    document = Section(0, source.line_and_column(start)[0], start, "", None)
    open_sections = [document]
    for block in blocks:
        if block.kind != "heading":
            open_sections[-1].blocks.append(block)
            continue
        line_start = source.line_starts[block.line - 1]
        while open_sections[-1].level >= block.level:
            _close(open_sections.pop(), line_start, block.line - 1)
        title = " ".join(source.text[first:last] for first, last in block.spans)
        section = Section(block.level, block.line, line_start, title, block)
        open_sections[-1].subsections.append(section)
        open_sections.append(section)
    ends_with_line_end = source.line_starts[-1] == len(source.text)
    for section in open_sections:
        _close(section, len(source.text), max(section.line, source.line_count - ends_with_line_end))
    return document


def _close(section: Section, end: int, end_line: int) -> None:
    section.end = end
    section.end_line = end_line


BLANKS = " \t"

# The characters that markdown-it strips from a table row before it looks for the outer pipes.
_ROW_TRIM = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_CELL_BORDER = lazy_pattern(r"(?<!\\)\|")


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return [start, end) without leading and trailing white space; an empty span remains where it starts."""
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
    """Return all cells of a table row as written, regardless of the header."""
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


MAX_LINES = 200_000
MAX_NODES = 20_000
MAX_DEPTH = 32

# The kinds of blocks that contain items.
LISTS = frozenset({"bullet_list", "ordered_list"})


class Block:
    """One block. This is a plain class, because hundreds of blocks are made for each of thousands of files.

    `kind` is one of heading, paragraph, bullet_list, ordered_list, item, quote, fence, code, html, table, rule and
    definition (a link reference definition, which is not rendered).

    `start` is the offset of the block's first character: the `#`, `-`, `>`, the first backtick, the first letter.
    `spans` are the lines of text of a leaf, each as [start, end) without container prefixes, markers and surrounding
    white space: the words of a heading, each line of a paragraph, each line inside a fence (verbatim to its end).
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
        """Whether a fence has a closing line. Without one, the fence swallows the rest of the document."""
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
    """Return the number of blocks and table cells, which count toward the limit on nodes."""
    return sum(1 + sum(map(len, block.rows)) for block in walk(blocks))
