"""The bases of the Markdown kinds: sections with fields (stubs, refinements, packets), and front matter above a text.

The reader of sections builds a tree of nodes from a layout and is tolerant of the ways in which people write: any
bullet, bold keys, old headings, any case. Deviations from the layout are not judged here; sections and fields are kept,
with their positions, for the rules.

Stubs and packets both have an id, a status, dependencies, and the summary made from them. Packets also state evidence:
blocks of COMMAND, EXIT_CODE, LOG_PATH and so on, and EVIDENCE_MAPPING. A block begins with COMMAND. Indented lines,
bullets, bold keys and backticks around values are accepted; an empty value never continues on the next line.

Front matter is a YAML block that begins on the very first line with `---` and ends with the next line that is `---` or
`...`; white space may follow either, a byte order mark may come first, and any kind of line ending is accepted. Its
positions are those of the file. In the fields that a kind lists, every plain scalar is read as the characters in the
file, because ids, labels and titles are always text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from workpacket.documents.document import Document, FieldSpec, Layout, SectionSpec, Text, TextAt, heading_key, value_of
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids, leading_id
from workpacket.problem import Location, Problem
from workpacket.text.blocks import (
    LISTS,
    Block,
    Field,
    Item,
    Section,
    first_label,
    outline,
    read_fields,
    read_items,
    walk,
)
from workpacket.text.markdown import read_blocks
from workpacket.text.source import DATA, Limits, Loaded, Node, Source
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.summary import EvidenceSummary, Mention, WorkSummary


_VALUES = LISTS | {"fence"}

# In quoted lines, the statement that nothing ran is at the beginning, or the line is short.
_LONGEST_PROOF = 2000


class PlacedSection:
    """A section of the document, with its layout and its fields."""

    __slots__ = ("fields", "section", "spec")

    def __init__(self, section: Section, spec: SectionSpec, fields: list[Field]) -> None:
        self.section = section
        self.spec = spec
        self.fields = fields


class StructuredDocument(Document):
    """A document with a layout. `placed` are the sections that the layout defines, and `unknown` are the others."""

    layout: Layout

    def has_own_rules_for(self, _field: str) -> bool:
        """Whether a placeholder that the tool wrote into this field is judged by separate rules."""
        return False

    def __init__(self, source: Source) -> None:
        super().__init__(source, None)
        blocks = read_blocks(source)
        if isinstance(blocks, Problem):
            self.faults = (blocks,)
            blocks = []
        self.outline = outline(source, blocks)
        # Fields above the first section, where older documents have their status.
        self.preamble_fields = read_fields(source, list(self._preamble()))
        self.placed: list[PlacedSection] = []
        self.unknown: list[Section] = []
        # Sections whose heading has a different level: they are still read, and reported as such.
        self.misplaced = list(self._at_other_levels())
        sections = [*self.sections_at(self.layout.levels), *self.misplaced]
        for section in sorted(sections, key=lambda section: section.line):
            spec = self.layout.section(section.title)
            if spec is None:
                if heading_key(section.title) not in self.layout.frames:
                    self.unknown.append(section)
            else:
                fields = fields_of_section(source, section, self.misplaced) if spec.shape == "fields" else []
                self.placed.append(PlacedSection(section, spec, fields))
        if not self.faults:
            self.root = self._tree()

    @property
    def is_older(self) -> bool:
        """Whether the document belongs to an older family; rules about the current layout skip it."""
        return False

    def dates(self) -> Iterator[tuple[str, Text]]:
        for key in ("created_at", "date", "orchestration_started_at_utc"):
            text = self.text_at("metadata", key)
            if text is not None:
                yield key.upper(), text

    @cached_property
    def every_block(self) -> list[Block]:
        """Return all blocks below all headings, each before its children."""
        return [block for section in self.outline.walk() for block in walk(section.blocks)]

    def sections_at(self, levels: tuple[int, ...]) -> Iterator[Section]:
        """Yield all sections whose heading has one of these levels, wherever they are nested."""
        return (section for section in self.outline.walk() if section.level in levels)

    def _at_other_levels(self) -> Iterator[Section]:
        named = (self.layout.section(section.title) for section in self.sections_at(self.layout.levels))
        present = {spec.key for spec in named if spec is not None}
        for section in self.outline.walk():
            if section.level and section.level not in self.layout.levels:
                spec = self.layout.section(section.title)
                wanted = spec is not None and (spec.required or spec in self.layout.extra)
                if spec is not None and wanted and spec.key not in present:
                    present.add(spec.key)
                    yield section

    def placed_section(self, key: str) -> PlacedSection | None:
        return next((placed for placed in self.placed if placed.spec.key == key), None)

    def _preamble(self) -> Iterator[Block]:
        for section in self.outline.walk():
            if section.level < min(self.layout.levels):
                yield from section.blocks

    def _tree(self) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        for placed in self.placed:
            # If a section occurs twice, the first one counts; a rule reports the second.
            if placed.spec.key not in entries:
                entries[placed.spec.key] = self.section_node(placed)
                keys[placed.spec.key] = placed.section.title_span
        return Node(entries, 0, len(self.source.text), keys)

    def section_node(self, placed: PlacedSection) -> Node:
        """Return the value of one section, in the shape that its layout defines."""
        section = placed.section
        if placed.spec.shape == "fields":
            return _fields_node(placed)
        if placed.spec.shape == "prose":
            body = body_of(self.source, section)
            start = self.source.text.index(body, section.title_span[1])
            return Node(body, start, start + len(body)) if body else Node("", *section.title_span)
        items = items_of_section(self.source, section)
        if placed.spec.shape == "checklist":
            boxes = [{"text": Node(item.text, *item.span), "ticked": Node(item.ticked, *item.span)} for item in items]
            return Node([Node(box, *box["text"].span) for box in boxes], *section.title_span)
        return Node([Node(item.text, *item.span) for item in walk_items(items)], *section.title_span)


def body_of(source: Source, section: Section) -> str:
    """Return everything below the heading of a section, as written."""
    return source.text[section.title_span[1] : section.end].strip()


def fields_of_section(source: Source, section: Section, apart: Sequence[Section] = ()) -> list[Field]:
    """Return the fields of a section. A subsection is a field too: its heading is the key, and its list is the value.
    Subsections in `apart` count as sections instead.
    """
    fields = read_fields(source, section.blocks)
    for subsection in section.subsections:
        if subsection in apart:
            continue
        span = subsection.title_span
        key, value = first_label(source.text, *span) or (span, (span[1], span[1]))
        field = Field(source, subsection.heading or section.blocks[0], key, value)
        field.owned = [block for inner in subsection.walk() for block in inner.blocks if block.kind in _VALUES]
        fields.append(field)
    return fields


def items_of_section(source: Source, section: Section) -> list[Item]:
    """Return the items in the lists of a section and of its subsections, each with its nested items."""
    return [item for inner in section.walk() for item in read_items(source, inner.blocks)]


def walk_items(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items, each before its nested items."""
    for item in items:
        yield item
        if len(item.block.children) > 1:
            yield from walk_items(item.children)


# How an item begins that is about other work, for which this work does not wait.
_OTHER_WORK = lazy_pattern(
    r"(?i)[*_`]*(?:coordinat\w+(?: with)?|related(?: to| work)?|see also|(?:un)?blocks|enables|informs|dependents"
    r"|downstream|required by|consumed by|follow-?ups?)[*_`]*\s*(?::|(?=[*_`]*WP-))"
)


def awaited(items: Iterable[Item]) -> Iterator[Text]:
    """Yield the items of a dependency list, with the items below them, except those about other work."""
    for item in items:
        if not _OTHER_WORK.match(item.text):
            yield Text(item.text, *item.span)
            if len(item.block.children) > 1:
                yield from awaited(item.children)


def is_empty(field: Field) -> bool:
    return not (field.value or field.owned)


def _fields_node(placed: PlacedSection) -> Node:
    entries: dict[str, Node] = {}
    keys: dict[str, tuple[int, int]] = {}
    for field in placed.fields:
        spec = placed.spec.field(field.name) or FieldSpec(field.name)
        if spec.key not in entries:
            entries[spec.key] = _value_node(field, spec, own_line=placed.spec.key == "metadata")
            keys[spec.key] = field.key_span
    return Node(entries, *placed.section.title_span, keys)


def _value_node(field: Field, spec: FieldSpec, *, own_line: bool) -> Node:
    """Return the value of a field. With `own_line` (for ids, dates and statuses), text nested below the value is not
    part of it.
    """
    if spec.many:
        own = [Node(field.value, *field.value_span)] if field.value else []
        return Node(own + [Node(item.text, *item.span) for item in walk_items(field.children)], *field.key_span)
    if field.owned and not (own_line and field.value):
        items = list(walk_items(field.children))
        texts = [field.value] * bool(field.value) + [item.text for item in items]
        return Node(
            "\n".join(texts), field.key_span[0], max((item.span[1] for item in items), default=field.key_span[1])
        )
    # Marks around an entire value are decoration: `**HIGH**` is HIGH.
    return Node(field.bare, *(field.bare_span if field.value else field.key_span))


class WorkDocument(StructuredDocument):
    """A stub or a packet. Each kind defines where its values are found."""

    wp_id = TextAt("metadata", "wp_id")
    base_wp_id = TextAt("metadata", "base_wp_id")
    created_at = TextAt("metadata", "created_at")
    what = TextAt("scope", "what")
    why = TextAt("scope", "why")
    user_signature = TextAt("metadata", "user_signature")
    refinement_file = TextAt("technical_refinement", "refinement_file")

    form = ""

    @property
    def title_text(self) -> str:
        """Return the title of the work."""
        return value_of(self.what)

    def id_text(self) -> Text | None:
        """Return the string in which the document states its own id."""
        return self.wp_id

    def status_text(self) -> Text | None:
        raise NotImplementedError

    def risk_text(self) -> Text | None:
        return None

    def spec_texts(self) -> Iterable[Text]:
        """Return the strings that contain the version of the specification on which the work is based."""
        return ()

    @property
    def anchor_file(self) -> Text | None:
        """Return the specification in the anchor of a light packet."""
        return None

    def anchor_texts(self) -> Iterable[Text]:
        """Return the strings that contain section names of the specification."""
        return ()

    def dependency_texts(self) -> Iterable[Text]:
        """Return the strings in which every work packet id counts as a dependency."""
        return ()

    @property
    def evidence_blocks(self) -> Sequence[EvidenceBlock]:
        """Return the commands that the document lists as evidence."""
        return ()

    @property
    def unproven(self) -> list[str]:
        """Return what the document lacks entirely: `verdict`, `evidence` or both."""
        return []

    @property
    def own_id(self) -> str:
        """Return the id in the document; if it has none, the id in its file name."""
        text = self.id_text()
        return leading_id(text.value) if text is not None and text.value else self.stem

    def summary(self) -> Mapping[str, object]:
        status = self.status_text()
        own_id = self.own_id
        summary: WorkSummary = {
            "id": own_id,
            "base": _base_of(own_id),
            "title": self.title_text,
            "place": self.place(self.id_text()),
            "lanes": [lane.token for lane in self.lanes.named(status.value)] if status is not None else [],
            "status": value_of(status),
            "status_place": self.place(status),
            "created": value_of(self.created_at),
            "risk": value_of(self.risk_text()),
            "depends": self.mentions(self.dependency_texts(), own_id),
            "signature": self.mention(self.user_signature),
            "earlier_signatures": self._earlier_signatures(),
            "refinement": self.mention(self.refinement_file),
            "spec_versions": [self.mention(text) for text in self.spec_texts()],
            "anchors": [self.mention(text) for text in self.anchor_texts()],
            "light_spec": self.mention(self.anchor_file),
            "spec_target": self.mention(self.text_at("metadata", "spec_target")),
            "evidence": [self._evidence_summary(block) for block in self.evidence_blocks],
            "form": self.form,
            "unproven": self.unproven,
        }
        return summary

    def _earlier_signatures(self) -> list[str]:
        """Return the signatures that a later one replaced, as in `USER_SIGNATURE_PREVIOUS: ann010120261200 (scope)`."""
        placed = self.placed_section("metadata") if "USER_SIGNATURE_" in self.source.text else None
        fields = placed.fields if placed is not None else ()
        return [field.value.split()[0] for field in fields if field.name.startswith("user_signature_") and field.value]

    def _evidence_summary(self, block: EvidenceBlock) -> EvidenceSummary:
        return {
            "place": self.source.line_and_column(block.start),
            "log": self.mention(block.fields.get("LOG_PATH")),
            "sha256": self.mention(block.fields.get("LOG_SHA256")),
            "proof": block.proof[:_LONGEST_PROOF],
            "proof_place": self.place(block.fields.get("PROOF_LINES")),
            "command": block.value("COMMAND")[:_LONGEST_PROOF],
        }

    def mentions(self, texts: Iterable[Text], own_id: str) -> list[Mention]:
        """Return every other packet mentioned in the strings, once, with its position."""
        found: dict[str, Mention] = {}
        for text in texts:
            for name, start, _ in find_ids(text.value):
                if str(name) != own_id and str(name) not in found:
                    line, column = self.source.line_and_column(text.start + start)
                    found[str(name)] = (str(name), line, column)
        return list(found.values())


def _base_of(own_id: str) -> str:
    parsed = WorkPacketId.try_parse(own_id)
    return str(parsed.base) if parsed is not None else own_id


_LINE = lazy_pattern(
    r"(?:^|(?<=\r))[ \t]*(?:[-*+][ \t]+)?\**"
    r"(?P<key>COMMAND|EXIT_CODE|LOG_PATH|LOG_SHA256|PROOF_LINES)\**[ \t]*:\**[ \t]*"
    r"(?P<value>[^\r\n]*?)[ \t]*(?=[\r\n]|\Z)",
    re.MULTILINE,
)
_MAPPED = lazy_pattern(r"^\W*(?P<key>REQUIREMENT|EVIDENCE)\W*:\s*(?P<value>.*)\Z", re.DOTALL)
_QUOTED = lazy_pattern(r"[*_]*`([^`]+)`")
_PLACEHOLDER = lazy_pattern(r"<[^<>]+>")
_UNFILLED = lazy_pattern(r"\A(?:<.*>|path/to/file:line|TODO|N/A|PENDING|\(nothing yet\))?\Z", re.IGNORECASE | re.DOTALL)


class EvidenceBlock(Value):
    """One command that was run as evidence. `fields` is keyed by field name; an empty or placeholder value is ''.
    `start` is the offset of the block. `proof` is the text following PROOF_LINES.
    """

    start: int
    fields: dict[str, Text]
    proof: str = ""

    def value(self, key: str) -> str:
        text = self.fields.get(key)
        return text.value if text is not None else ""


def evidence_blocks(source: Source, start: int, end: int) -> list[EvidenceBlock]:
    """Return the blocks between two offsets of a document."""
    blocks: list[EvidenceBlock] = []
    matches = list(_LINE.finditer(source.text, start, end))
    for number, match in enumerate(matches):
        if match["key"] == "COMMAND" or not blocks:
            blocks.append(EvidenceBlock(match.start("key"), {}))
        value = _stated(match["key"], match["value"])
        blocks[-1].fields.setdefault(match["key"], Text(value, *match.span("value")))
        if match["key"] == "PROOF_LINES":
            stop = matches[number + 1].start() if number + 1 < len(matches) else end
            last = blocks[-1]
            blocks[-1] = EvidenceBlock(last.start, last.fields, source.text[match.start("value") : stop].strip())
    return [block for block in blocks if block.value("COMMAND") or block.value("LOG_PATH")]


def _stated(key: str, written: str) -> str:
    """Return the value on a line: for a path, the text in backticks; for a command, the whole text; '' for a
    placeholder.
    """
    quoted = _QUOTED.match(written) if key.startswith("LOG_") else None
    value = quoted[1] if quoted is not None else written.strip("`\"'* ")
    unfilled = _UNFILLED.match(value) or (key.startswith("LOG_") and _PLACEHOLDER.search(value))
    return "" if unfilled else value


def mapped_evidence(items: Iterable[Text]) -> Iterator[tuple[Text, str]]:
    """Yield pairs from EVIDENCE_MAPPING: the requirement as quoted, and where it is met. An unfilled form is not a
    pair.
    """
    requirement: Text | None = None
    for item in items:
        for line in item.value.split("\n"):
            match = _MAPPED.match(line.strip())
            if match is None:
                continue
            value = match["value"].strip().strip("`\"'")
            if match["key"] == "REQUIREMENT":
                requirement = Text(value, item.start, item.end)
            elif requirement is not None and not _UNFILLED.match(value) and not _UNFILLED.match(requirement.value):
                yield requirement, value


_LINE_END = r"[ \t]*(?:\r\n|\r|\n|\Z)"
_OPENING = lazy_pattern(rf"---{_LINE_END}")
_CLOSING = lazy_pattern(rf"(?:---(?<=[\r\n]---)|\.\.\.(?<=[\r\n]\.\.\.)){_LINE_END}")
_LATE = lazy_pattern(rf"(?:[ \t]*(?:\r\n|\r|\n))++(---){_LINE_END}")


class FrontMatter(Value):
    """The loaded block. Its YAML is [start, end); the Markdown begins at `body`, the start of line `body_line`.

    For a file without such a block, `present` is false, the body is the whole file, and there is no root.
    """

    loaded: Loaded
    present: bool
    start: int
    end: int
    body: int
    body_line: int


def read_front_matter(source: Source, limits: Limits = DATA) -> FrontMatter:
    """Return the front matter of `source`; its faults explain why an intended block is missing."""
    text = source.text
    opening = _OPENING.match(text)
    if opening is None:
        late = _LATE.match(text)
        if late is None or _CLOSING.search(text, late.end()) is None:
            return _absent()
        hint = "remove the text before it"
        message = "front matter must begin on the first line of the file"
        return _absent(Problem("front_matter_not_first", message, Location.span(late.start(1), late.end(1)), hint))
    start = opening.end()
    closing = _CLOSING.search(text, start)
    if closing is None:
        message = "front matter begins here but is never closed with '---'"
        return _absent(Problem("front_matter_unclosed", message, Location.span(0, len("---"))))
    from workpacket.text.yaml_strict import load_yaml  # stubs and packets have no front matter

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
    """A document with front matter. `blocks` and `outline` describe the text below it."""

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

    @cached_property
    def every_block(self) -> list[Block]:
        """Return all blocks below the front matter, each before its children."""
        return list(walk(self.blocks))

    def sections(self) -> Iterator[Section]:
        """Yield the sections that have a heading."""
        return (section for section in self.outline.walk() if section.heading is not None)


def _texts_of(source: Source, root: Node, names: frozenset[str]) -> Node:
    from workpacket.text.yaml_strict import written_as_text

    entries = {
        key: written_as_text(source, node, lambda _: True) if key in names else node
        for key, node in root.mapping.items()
    }
    return Node(entries, root.start, root.end, root.keys)
