"""The base of the Markdown kinds with front matter: fields above, text below.

The tree of values is the front matter. In the fields that a kind lists, every plain scalar is read as the characters in
the file, because ids, labels and titles are always text.

The front matter is a YAML block that begins on the very first line with `---` and ends with the next line that is `---`
or `...`; white space may follow either, a byte order mark may come first, and line ends may be of any kind. Its
positions are those of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from workpacket.documents.document import Document
from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.blocks import Block, Section, outline
from workpacket.text.markdown import read_blocks
from workpacket.text.source import DATA, Limits, Loaded, Node, Source
from workpacket.text.yaml_strict import load_yaml, written_as_text
from workpacket.value import Value

_LINE_END = r"[ \t]*(?:\r\n|\r|\n|\Z)"
_OPENING = lazy_pattern(rf"---{_LINE_END}")
_CLOSING = lazy_pattern(rf"(?:---(?<=[\r\n]---)|\.\.\.(?<=[\r\n]\.\.\.)){_LINE_END}")
_LATE = lazy_pattern(rf"(?:[ \t]*(?:\r\n|\r|\n))++(---){_LINE_END}")


class FrontMatter(Value):
    """The loaded block. Its YAML is [start, end); the Markdown begins at `body`, the start of `body_line`.

    For a file without such a block, `present` is false, the body is the whole file, and there is no root.
    """

    loaded: Loaded
    present: bool
    start: int
    end: int
    body: int
    body_line: int


def read_front_matter(source: Source, limits: Limits = DATA) -> FrontMatter:
    """Return the front matter of `source`; its faults explain why a block that was intended is missing."""
    text = source.text
    opening = _OPENING.match(text)
    if opening is None:
        late = _LATE.match(text)
        if late is None or _CLOSING.search(text, late.end()) is None:
            return _absent()
        hint = "remove the text before it"
        message = "front matter must begin on the first line of a file"
        return _absent(Problem("front_matter_not_first", message, Location.span(late.start(1), late.end(1)), hint))
    start = opening.end()
    closing = _CLOSING.search(text, start)
    if closing is None:
        message = "front matter begins here but is never closed with '---'"
        return _absent(Problem("front_matter_unclosed", message, Location.span(0, len("---"))))
    end, body = closing.start(), closing.end()
    loaded = load_yaml(source, start=start, end=end, limits=limits)
    if loaded.root is not None and not isinstance(loaded.root.value, dict):
        found = {list: "a list", type(None): "nothing"}.get(type(loaded.root.value), "a single value")
        message = f"front matter must consist of keys and values, but contains {found}"
        loaded = Loaded(None, (Problem("front_matter_not_a_mapping", message, Location.span(*loaded.root.span)),))
    return FrontMatter(loaded, True, start, end, body, source.line_and_column(body)[0])


def _absent(*faults: Problem) -> FrontMatter:
    return FrontMatter(Loaded(None, faults), False, 0, 0, 0, 1)


class FrontMatterDocument(Document):
    """A document with front matter. `blocks` and `outline` are those of the text below it."""

    # Top-level fields that contain text, or lists of text.
    text_fields: ClassVar[frozenset[str]]

    def __init__(self, source: Source) -> None:
        front = read_front_matter(source)
        root = front.loaded.root
        super().__init__(source, _texts_of(source, root, self.text_fields) if root is not None else None)
        self.has_front_matter = front.present
        # The offset where the text below the front matter begins.
        self.body = front.body
        self.faults = front.loaded.faults
        blocks = read_blocks(source, front.body)
        if isinstance(blocks, Problem):
            self.faults += (blocks,)
            blocks = []
        self.blocks: list[Block] = blocks
        self.outline = outline(source, blocks, front.body)

    def sections(self) -> Iterator[Section]:
        """Yield the sections that have a heading."""
        return (section for section in self.outline.walk() if section.heading is not None)


def _texts_of(source: Source, root: Node, names: frozenset[str]) -> Node:
    entries = {
        key: written_as_text(source, node, lambda _: True) if key in names else node
        for key, node in root.mapping.items()
    }
    return Node(entries, root.start, root.end, root.keys)
