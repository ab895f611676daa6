"""Apply fixes, and prove that nothing else changed; rewrite a stub of the older family in the canonical form.

Edits are chosen so that none overlap and are applied from the end; then the text is read again. The new tree of values
may differ from the old one only where an edit touched it; a fix for which this cannot be proved is not applied. The
result is then compared by independent readers (`text.second_reading`), which know nothing of the rule behind the fix:
if they see any other change, the whole file is refused.

When a stub is rewritten, nothing is rendered from values. The lines of each section are moved unchanged under the
heading that the canonical form has for them; a section that has no such place keeps its own heading. Information that
the older form did not require gets a placeholder, which `check` reports: a person must fill it in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple, TypeAlias

from workpacket.documents.document import read_document
from workpacket.documents.stub import CHECKLIST, PREAMBLE, SECTIONS, Stub
from workpacket.model.ids import WorkPacketId
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.problem import Edit, Fix, Problem
from workpacket.text.blocks import LISTS, Field, Section
from workpacket.text.source import DROP_BOM, Node, Source, apply_edits, compatible

EditGroup: TypeAlias = tuple[Edit, ...]
Path: TypeAlias = tuple[str | int, ...]


class RepairRefused(Exception):
    """Raised if a repair would change more than its findings cover; the message gives the details."""


class Repair(NamedTuple):
    """A source after a repair, and the repaired findings."""

    source: Source
    made: tuple[Problem, ...] = ()


def repair(
    source: Source, kind: str, findings: Sequence[Problem], *, unsafe: bool, lanes: LaneTable = BUILT_IN
) -> Repair:
    """Return the source with the fixes of `findings` applied: the safe ones, or all. Fixes that could not be proved are
    left out.

    Raises RepairRefused if a fix does not fit the file, or if other readers see a change that no finding covers.
    """
    wanted = [(finding, finding.fix) for finding in findings if finding.fix and (finding.fix.safe or unsafe)]
    for finding, fix in wanted:
        _refuse_misfit(source, finding, fix)
    groups = compatible(fix.edits for _, fix in wanted)
    kept = _proved(source, kind, [group for group in groups if group is not None], lanes)
    edits = [edit for group in kept for edit in group]
    if not edits:
        return Repair(source)
    after = apply_edits(source, edits)
    if after.encode() == source.encode():
        return Repair(source)
    # Both libraries are imported only if something is repaired.
    from workpacket.text.second_reading import unexpected_change

    said = unexpected_change(source, after, edits)
    if said:
        raise RepairRefused(said)
    made = frozenset(kept)
    # Read from the bytes, like the findings of the next round: one byte order mark may follow another.
    after = Source.from_bytes(source.path, after.encode())
    return Repair(after, tuple(finding for (finding, _), group in zip(wanted, groups, strict=True) if group in made))


def _refuse_misfit(source: Source, finding: Problem, fix: Fix) -> None:
    """Require that edits are inside the file, and on the lines of their findings; white space may extend to adjacent
    blank lines.
    """
    ordered = sorted((edit.start, edit.end) for edit in fix.edits)
    fits = all(first[1] <= second[0] for first, second in pairwise(ordered))
    for edit in fix.edits if fits else ():
        if edit == DROP_BOM:
            continue
        fits = 0 <= edit.start <= edit.end <= len(source.text)
        if fits and (edit.text.strip() or source.text[edit.start : edit.end].strip()):
            lines = source.line_and_column(edit.start)[0], source.line_and_column(edit.end)[0]
            fits = finding.line <= lines[0] and lines[1] <= max(finding.location.end_line, finding.line)
        if not fits:
            break
    if not fits:
        raise RepairRefused(f"the fix for {finding.code} on line {finding.line} extends beyond the finding's lines")


def _proved(source: Source, kind: str, groups: Sequence[EditGroup], lanes: LaneTable) -> list[EditGroup]:
    """Return the groups of edits that change only what they touch: usually all, otherwise those found by bisection."""
    edits = [edit for group in groups for edit in group]
    if not edits or only_touched_changed(source, apply_edits(source, edits), kind, edits, lanes):
        return list(groups)
    half = len(groups) // 2
    if not half:
        return []
    return [*_proved(source, kind, groups[:half], lanes), *_proved(source, kind, groups[half:], lanes)]


def only_touched_changed(
    before: Source, after: Source, kind: str, edits: Sequence[Edit], lanes: LaneTable = BUILT_IN
) -> bool:
    """Whether every value that differs was touched by an edit, and the document can still be read."""
    old, new = read_document(kind, before, lanes).root, read_document(kind, after, lanes).root
    if old is None or new is None:
        return old is new
    return untouched_change(old, new, edits) is None


def untouched_change(old: Node, new: Node, edits: Sequence[Edit]) -> Path | None:
    """Return a place in the tree whose value differs although no edit touched it.

    For a deleted value, an edit must touch its old place; for a new value, its new place.
    """
    changes = _Changes(edits)
    waiting: list[tuple[Path, Node | None, Node | None]] = [((), old, new)]
    while waiting:
        path, before, after = waiting.pop()
        if before is not None and after is not None and before.plain() == after.plain():
            continue
        pairs = _pairs(before, after)
        if pairs:
            waiting.extend(((*path, step), first, second) for step, first, second in pairs)
        elif not ((before and changes.touched_before(before)) or (after and changes.touched_after(after))):
            return path
    return None


class _Changes:
    """The positions of the edits, in the text before and after them."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        ordered = sorted(set(edits) - {DROP_BOM}, key=lambda edit: (edit.start, edit.end))
        self._before = [(edit.start, edit.end) for edit in ordered]
        self._after: list[tuple[int, int]] = []
        moved = 0
        for edit in ordered:
            start = edit.start + moved
            self._after.append((start, start + len(edit.text)))
            moved += len(edit.text) - (edit.end - edit.start)

    def touched_before(self, node: Node) -> bool:
        return any(start <= node.end and node.start <= end for start, end in self._before)

    def touched_after(self, node: Node) -> bool:
        return any(start <= node.end and node.start <= end for start, end in self._after)


def _pairs(before: Node | None, after: Node | None) -> list[tuple[str | int, Node | None, Node | None]]:
    """Pair the parts of two values; if either has no parts, there are no pairs."""
    if isinstance((before or after or _NOTHING).value, dict):
        first, second = (before or _NOTHING).mapping, (after or _NOTHING).mapping
        if (before is None or isinstance(before.value, dict)) and (after is None or isinstance(after.value, dict)):
            return [(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    lists = [node.items for node in (before, after) if node is not None and isinstance(node.value, list)]
    if len(lists) == 2:
        return [(index, first, second) for index, (first, second) in enumerate(zip_longest(*lists))]
    return []


_NOTHING = Node(None, 0, 0)


OPEN = "<fill in>"
# Headings for the text above the first section, and for the steps of the older checklist.
ABOVE = "CARRIED_OVER (from above the first section)"
STEPS = "OLDER_ACTIVATION_STEPS"
# Sections of the older form that become the value of one field, if they are no more than a value.
_VALUES = ("why", "roadmap_pointer", "anchors")
_OUTER_LEVELS = 2
_TITLE = re.compile(r"(?i:(?:task|work) packet stub):[ \t]*")
_NAME = re.compile(r"[^(\[:]*")
# Text that the older form itself appended to the names of its sections.
_ASIDES = frozenset(
    {
        "(draft)",
        "(non-authoritative)",
        "(main body, authoritative)",
        "(before any coding)",
        "(required before any coding)",
    }
)
_HTML_ENDS = (("<!--", "-->"), ("<?", "?>"), ("<![cdata[", "]]>"), ("<!", ">"))
_RAW_HTML = re.compile(r"<(pre|script|style|textarea)\b", re.IGNORECASE)


class _Chunk(NamedTuple):
    """A heading of level 1 or 2 with the lines below it; for the lines above the first heading, `section` is None."""

    section: Section | None
    heading: list[str]
    body: list[str]


def upgraded(source: Source) -> Source | None:
    """Return the canonical form of an older stub; None if it is not an older stub, or does not state its id.

    Raises RepairRefused if a line would be lost, or if a block never ends and would swallow everything after it.
    """
    stub = Stub(source)
    wp_id = WorkPacketId.try_parse(stub.own_id)
    if not stub.is_older or wp_id is None:
        return None
    _refuse_endless(stub)
    draft = _Draft(stub, wp_id)
    text = "\n".join(draft.lines()).rstrip("\n") + "\n"
    after = Source(source.path, text.replace("\n", source.eol), bom=source.bom)
    from workpacket.text.second_reading import not_carried_over

    lost = not_carried_over(source, after, draft.rewritten, OPEN)
    if lost:
        raise RepairRefused(lost)
    return after


class _Draft:
    """The canonical form in progress. `rewritten` are the lines of the older form that were reworded."""

    def __init__(self, stub: Stub, wp_id: WorkPacketId) -> None:
        self.stub = stub
        self.id = wp_id
        self.rewritten: list[str] = []
        self.chunks = _chunks(stub)
        self.places = self._places()
        if "metadata" not in self.places:
            raise RepairRefused("its Identity section is inside another section")
        # Fields that a section becomes: the label under which it is placed, and its lines.
        self.values = {key: lines for key in _VALUES if (lines := self._value(key)) is not None}
        self.moved = {index for key, index in self.places.items() if key not in _VALUES or key in self.values}

    def lines(self) -> Iterator[str]:
        for index in sorted(self.moved):
            self.rewritten += self.chunks[index].heading
        yield from [*PREAMBLE.splitlines(), "", f"# Work Packet Stub: {self.id}", ""]
        metadata = list(self._metadata())
        for spec in SECTIONS:
            if spec.key == "activation_checklist":
                yield from self._carried()
            yield f"## {spec.heading}{self._aside(spec.key)}"
            if spec.key == "metadata":
                yield from metadata
            elif spec.key == "intent":
                yield from self._with_fields("intent", {"What": None, "Why": self.values.get("why")})
            elif spec.key == "scope":
                yield from self._with_fields("scope", {"IN_SCOPE": None, "OUT_OF_SCOPE": None})
            elif spec.key == "activation_checklist":
                yield from (f"- [ ] {step.format(id=self.id)}" for step in CHECKLIST)
            else:
                yield from self._body(spec.key) or [f"- {OPEN}"]
            yield ""

    def _places(self) -> dict[str, int]:
        """Return the chunks that have a place in the canonical form, by section key; if there are two for a key, the
        first one.
        """
        known = {id(placed.section): placed.spec.key for placed in self.stub.placed}
        wanted = {*(spec.key for spec in SECTIONS), *_VALUES}
        places: dict[str, int] = {}
        for index, chunk in enumerate(self.chunks):
            key = known.get(id(chunk.section), "")
            if key in wanted and chunk.body:
                places.setdefault(key, index)
        return places

    def _body(self, key: str) -> list[str]:
        return self.chunks[self.places[key]].body if key in self.places else []

    def _aside(self, key: str) -> str:
        """Return what the author appended to the name of a section."""
        section = self.chunks[self.places[key]].section if key in self.places else None
        rest = _NAME.sub("", section.title, count=1).strip() if section is not None else ""
        if not rest or rest.casefold() in _ASIDES or key == "activation_checklist":
            return ""
        return rest if rest.startswith(":") else f" {rest}"

    def _value(self, key: str) -> list[str] | None:
        """Return the lines of a section as the value of a field; None if a value cannot contain them all."""
        chunk = self.chunks[self.places[key]] if key in self.places else None
        section = chunk.section if chunk is not None else None
        if chunk is None or section is None or section.subsections or self._aside(key) or self._is_stated(key):
            return None
        kinds = {block.kind for block in section.blocks}
        if any("\t" in line for line in chunk.body):
            return None
        if key == "anchors" and kinds <= LISTS:
            return ["", *(f"  {line}" if line.strip() else "" for line in chunk.body)]
        # The definition of a link, for example, is not in any block of words.
        words = sum(len(block.spans) for block in section.blocks)
        if kinds != {"paragraph"} or words != sum(bool(line.strip()) for line in chunk.body):
            return None
        return [
            f" {chunk.body[0].lstrip()}",
            *(f"  {line}".rstrip(" ") if not line.strip() else f"  {line}" for line in chunk.body[1:]),
        ]

    def _is_stated(self, key: str) -> bool:
        """Whether the field that the section would become already exists."""
        where, name = {"why": ("intent", "why"), "roadmap_pointer": ("metadata", "roadmap_pointer")}.get(
            key, ("metadata", "spec_anchor_candidates")
        )
        return name in self._fields(where)

    def _fields(self, key: str) -> Mapping[str, Field]:
        placed = self.stub.placed_section(key)
        return {field.name: field for field in placed.fields} if placed is not None and key in self.places else {}

    def _metadata(self) -> Iterator[str]:
        fields = self._fields("metadata")
        if "wp_id" not in fields:
            yield f"- WP_ID: {self.id}"
        yield from self._spaced("metadata")
        if "created" not in fields and "created_at" not in fields:
            yield f"- CREATED_AT: {OPEN}"
        if "stub_status" not in fields:
            yield f"- STUB_STATUS: {self._status() or OPEN}"
        if "spec_target" not in fields:
            yield f"- SPEC_TARGET: {OPEN}"
        if "roadmap_pointer" in self.values:
            yield from _labelled("ROADMAP_POINTER", self.values["roadmap_pointer"])
        if "anchors" in self.values:
            yield from _labelled("SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap)", self.values["anchors"])

    def _status(self) -> str:
        """Return the status as written. A line that contains only the status is not moved a second time."""
        field = self.stub.status_line or self._fields("metadata").get("status")
        if field is None:
            return ""
        source = self.stub.source
        start, end = field.value_span
        line = source.line_and_column(field.key_span[0])[0]
        value = source.text[start : min(end, source.line_span(line)[1])]
        block = field.block
        alone = block.line == block.end_line and not field.owned and field.key.casefold() == "status"
        if field is self.stub.status_line and alone:
            self.rewritten.append(source.line(line))
        return value

    def _with_fields(self, key: str, fields: Mapping[str, list[str] | None]) -> Iterator[str]:
        """Yield the lines of a section, followed by its missing fields."""
        yield from self._spaced(key)
        present = self._fields(key)
        for label, value in fields.items():
            if label.lower() not in present:
                yield from _labelled(label, value)

    def _spaced(self, key: str) -> list[str]:
        """Return the lines of a section, followed by a blank line if items after them would otherwise not start a
        list."""
        body = self._body(key)
        section = self.chunks[self.places[key]].section if body else None
        last = [block for inner in section.walk() for block in inner.blocks][-1:] if section is not None else []
        return [*body, ""] if body and not (last and last[0].kind in LISTS) else body

    def _carried(self) -> Iterator[str]:
        """Yield the text that has no place in the canonical form: lines above the first section, sections with their
        own headings, the older steps.
        """
        above: list[str] = []
        for index, chunk in enumerate(self.chunks):
            if chunk.section is None or self._is_title(chunk.section):
                self.rewritten += chunk.heading
                # A line is rewritten once: the same words elsewhere are carried over.
                above += [*(line for line in chunk.body if line not in self.rewritten), ""]
            elif index not in self.moved:
                yield from [*chunk.heading, *chunk.body, ""]
        for heading, lines in ((ABOVE, _trimmed(above)), (STEPS, self._body("activation_checklist"))):
            if lines:
                yield from [f"## {heading}", *lines, ""]

    def _is_title(self, section: Section) -> bool:
        return section.level == 1 and _TITLE.sub("", section.title) == str(self.id)


def _labelled(label: str, value: list[str] | None) -> list[str]:
    return [f"- {label}:{value[0]}", *value[1:]] if value is not None else [f"- {label}: {OPEN}"]


def _chunks(stub: Stub) -> list[_Chunk]:
    """Return the lines of the document, split before each heading of level 1 or 2."""
    source = stub.source
    lines = [source.line(number) for number in range(1, source.line_count + 1)]
    sections = [section for section in stub.outline.walk() if 0 < section.level <= _OUTER_LEVELS]
    starts = [*(section.line for section in sections), len(lines) + 1]
    chunks = [_Chunk(None, [], _trimmed(lines[: starts[0] - 1]))]
    for section, following in zip(sections, starts[1:], strict=True):
        end = section.heading.end_line if section.heading is not None else section.line
        chunks.append(_Chunk(section, lines[section.line - 1 : end], _trimmed(lines[end : following - 1])))
    return chunks


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Return the lines without leading and trailing blank lines."""
    full = [index for index, line in enumerate(lines) if line.strip()]
    return list(lines[full[0] : full[-1] + 1]) if full else []


def _refuse_endless(stub: Stub) -> None:
    for section in stub.outline.walk():
        for block in section.blocks:
            text = stub.source.text[slice(*stub.source.line_span(block.line))]
            if block.kind == "fence" and not block.closed:
                raise RepairRefused(f"the code fence on line {block.line} is never closed")
            if block.kind == "html":
                start = stub.source.line_starts[block.line - 1]
                whole = stub.source.text[start : stub.source.line_span(block.end_line)[1]].lstrip().casefold()
                end = next((end for begin, end in _HTML_ENDS if whole.startswith(begin)), "")
                raw = _RAW_HTML.match(whole)
                if (end and end not in whole) or (raw and f"</{raw[1]}>" not in whole):
                    raise RepairRefused(f"the HTML block on line {block.line} is never closed: {text.strip()!r}")
