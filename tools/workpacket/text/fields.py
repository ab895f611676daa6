"""`KEY: value` lines, as people write them.

    - WP_ID: WP-1-Parser-v1
    - **Status:** Ready for Dev
    **RISK_TIER**: HIGH
    - IN_SCOPE (first half only):
      - an item
        - an item of that item

A field is an item of a list or a line of a paragraph that starts with a name and a colon. What follows on the line is
its value; an empty value stays empty, whatever stands on the next line. Items and a fence below it belong to the field.
A subsection is a field too: its heading is the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from workpacket.text.blocks import Block
from workpacket.text.outline import Section
from workpacket.text.source import Source

# A name of up to eight words, perhaps bold, perhaps with a remark in parentheses, and a colon with a blank behind it: a
# colon inside a word (`a::b`, `http://`) ends no name. The bold may end before the colon, behind it, or with the line.
_FIELD = re.compile(
    r"(?P<bold>\*\*)?(?P<key>[A-Za-z][\w/-]*(?: [\w/&-]+){0,7}?)(?P<remark> ?\([^()\n]*\))?"
    r"(?:(?P<before>\*\*)?:(?P<after>\*\*)?)(?=\s|\Z)"
)
_TICK = re.compile(r"\[([ xX])\](?:\s+|\Z)")
_BLANK = " \t"

Span = tuple[int, int]

_LISTS = frozenset({"bullet_list", "ordered_list"})


class Item:
    """An item of a list: its first paragraph, and the items nested in it. `ticked` is None where there is no box."""

    __slots__ = ("_children", "block", "source", "span", "text", "ticked")

    def __init__(self, source: Source, block: Block) -> None:
        self.source = source
        self.block = block
        self._children: list[Item] | None = None
        first = block.children[0] if block.children else None
        lines = list(first.spans) if first is not None and first.kind == "paragraph" else []
        self.ticked: bool | None = None
        if lines:
            tick = _TICK.match(source.text, *lines[0])
            if tick is not None:
                self.ticked = tick.group(1) != " "
                lines[0] = (tick.end(), lines[0][1])
        self.span = (lines[0][0], lines[-1][1]) if lines else (block.content_start, block.content_start)
        if len(lines) == 1:
            self.text = source.text[lines[0][0] : lines[0][1]]
        else:
            self.text = " ".join(source.text[start:end] for start, end in lines)

    def __repr__(self) -> str:
        return f"Item({self.text!r})"

    @property
    def children(self) -> list[Item]:
        """The items nested in this one, made when they are first asked for: mostly nobody does."""
        if self._children is None:
            self._children = items_of(self.source, self.block.children) if len(self.block.children) > 1 else []
        return self._children

    @property
    def start(self) -> int:
        """Where the marker of the item stands."""
        return self.block.start


class Field:
    """One field.

    `name` is its key for comparison, `syntax_span` all from the bullet to the colon, `children` are the items below it,
    `fence` the fence below it.
    """

    __slots__ = ("children", "fence", "key", "key_span", "name", "source", "syntax_span", "value", "value_span")

    def __init__(self, source: Source, key: str, key_span: Span, syntax_span: Span, value_span: Span) -> None:
        self.source = source
        self.key = key
        self.name = field_name(key)
        self.key_span = key_span
        self.syntax_span = syntax_span
        self.value = source.text[value_span[0] : value_span[1]]
        self.value_span = value_span
        self.children: list[Item] = []
        self.fence: Block | None = None

    def __repr__(self) -> str:
        return f"Field({self.key!r}, {self.value!r})"

    @property
    def text(self) -> str:
        """The value, else what the fence below it holds."""
        return self.value or (self.fence.text(self.source.text) if self.fence is not None else "")

    @property
    def is_empty(self) -> bool:
        return not (self.value or self.children or self.fence is not None)


@lru_cache(maxsize=4096)
def field_name(key: str) -> str:
    """A key for comparison: `SPEC_TARGET`, `Spec Target` and `spec-target` are all `spec_target`."""
    return "_".join(re.findall(r"[a-z0-9]+", key.casefold()))


def read_fields(source: Source, section: Section) -> list[Field]:
    """The fields of a section. A subsection is a field as well: its heading is the key, its lists and fence the value."""
    return [*fields_of_blocks(source, section.blocks), *(_field_of_section(source, sub) for sub in section.subsections)]


def fields_of_blocks(source: Source, blocks: Sequence[Block]) -> list[Field]:
    """The fields among `blocks`, in order."""
    fields: list[Field] = []
    # A list or a fence behind a field without a value is its value.
    waiting: Field | None = None
    for block in blocks:
        if block.kind == "fence" and waiting is not None:
            waiting.fence = block
            waiting = None
            continue
        found: list[Field] = []
        if block.kind == "paragraph":
            found = [field for span in block.spans if (field := _field_of_line(source, span, span[0]))]
        elif block.kind in _LISTS:
            found = [field for item in block.children if (field := _field_of_item(source, item))]
            if not found and waiting is not None:
                waiting.children = items_of(source, [block])
        fields += found
        waiting = found[-1] if found and found[-1].is_empty else None
    return fields


def read_items(source: Source, section: Section) -> list[Item]:
    """The items of the lists of a section and of its subsections, each with the items nested in it."""
    items = items_of(source, section.blocks)
    for subsection in section.subsections:
        items += read_items(source, subsection)
    return items


def items_of(source: Source, blocks: Sequence[Block]) -> list[Item]:
    """The items of all lists among `blocks`."""
    return [Item(source, item) for block in blocks if block.kind in _LISTS for item in block.children]


def walk_items(items: Sequence[Item]) -> Iterator[Item]:
    """Items, each before the items inside it."""
    for item in items:
        yield item
        yield from walk_items(item.children)


def _field_of_item(source: Source, item: Block) -> Field | None:
    first = item.children[0] if item.children else None
    if first is None or first.kind != "paragraph":
        return None
    field = _field_of_line(source, first.spans[0], item.start)
    if field is None:
        return None
    if len(first.spans) > 1 and field.value:
        # Further lines of the paragraph continue a value that was begun.
        end = first.spans[-1][1]
        field.value_span = (field.value_span[0], end)
        field.value = " ".join(source.text[start:stop].strip(_BLANK) for start, stop in _from(first.spans, field))
    field.children = items_of(source, item.children[1:])
    field.fence = next((block for block in item.children[1:] if block.kind == "fence"), None)
    return field


def _from(spans: Sequence[Span], field: Field) -> list[Span]:
    return [(field.value_span[0], spans[0][1]), *spans[1:]]


def _field_of_line(source: Source, line: Span, start: int) -> Field | None:
    match = _FIELD.match(source.text, *line)
    if match is None:
        return None
    opened = match["bold"] is not None
    if not opened and (match["before"] or match["after"]):
        return None
    value_start, value_end = match.end(), line[1]
    text = source.text
    while value_start < value_end and text[value_start] in _BLANK:
        value_start += 1
    while value_end > value_start and text[value_end - 1] in _BLANK:
        value_end -= 1
    if opened and not (match["before"] or match["after"]) and text.endswith("**", value_start, value_end):
        value_end -= 2
    return Field(source, match["key"], match.span("key"), (start, match.end()), (value_start, value_end))


def _field_of_section(source: Source, section: Section) -> Field:
    start, end = section.title_span
    field = _field_of_line(source, section.title_span, section.heading.start)
    if field is None:
        key = section.title.partition("(")[0].rstrip()
        field = Field(source, key, (start, start + len(key)), (section.heading.start, end), (end, end))
    field.children = read_items(source, section)
    field.fence = next((block for block in section.blocks if block.kind == "fence"), None)
    return field
