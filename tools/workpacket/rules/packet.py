"""Rules about task packets and the evidence in them: a command, its exit code, and an unchanged log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from workpacket.documents.packet import Packet, scope_pieces
from workpacket.documents.structured import body_of, items_of_section, walk_items
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids
from workpacket.problem import Problem
from workpacket.rules.identity import is_hollow
from workpacket.rules.keys_and_dates import is_near
from workpacket.rules.rule import DocumentRule
from workpacket.rules.structured import PLACEHOLDER, elsewhere, says_something
from workpacket.text.blocks import Field, Item, Section, read_fields
from workpacket.text.formats import legacy_signature

_TODO = lazy_pattern(r"\bTODO\b")
# Several quoted paths in one entry, and nothing else: words between them may reverse what they mean.
_ONLY_PATHS = lazy_pattern(r"`[^`\s]+`(?:(?:\s*[,;]\s*|\s+)`[^`\s]+`)+")
_SIGNATURES = frozenset({"signature", "user_signature_locked"})
_ONE_VALUE = frozenset({"risk_tier", "user_signature", "merge_base_sha"})

PacketRule = DocumentRule[Packet]


class PacketIdMissing(PacketRule):
    """Packet that does not state its id

    The packet is identified only by its file name, so renaming the file turns it into a different packet.

    Remedy: add `- WP_ID: <WP_ID>` to METADATA; a later revision also needs BASE_WP_ID.
    """

    severity = "warning"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        placed = document.placed_section("metadata")
        if placed is not None and document.wp_id is None:
            alone = " (only TASK_ID)" if document.task_id is not None else ""
            yield self.fault(placed.section.title_span, f"METADATA has no WP_ID{alone}")
        own = WorkPacketId.try_parse(document.own_id)
        later = own is not None and (own.revision or 1) > 1 and not document.light
        if own is not None and later and placed is not None and document.base_wp_id is None:
            message = f"METADATA has no BASE_WP_ID, but this is revision {own.revision} of {own.base}"
            yield self.fault(placed.section.title_span, message)


class PacketStatusUnknown(PacketRule):
    """Status that is not a lane

    The board cannot show the packet, and gates cannot judge it.

    Remedy: `workpacket board sync` writes the lane recorded in the log.
    """

    def check(self, document: Packet) -> Iterator[Problem]:
        status = document.status
        if (
            status is not None
            and status.value
            and not status.value.startswith("<")
            and not document.lanes.named(status.value)
        ):
            hint = f"write one of {', '.join(lane.title for lane in document.lanes.lanes if not lane.derived)}"
            yield self.fault(status.span, f"the status {status.value!r} is not a lane", hint=hint)


class CriterionTicked(PacketRule):
    """Ticked criteria in a packet that no one has claimed

    The work has not begun, so its criteria cannot be met; a reader may assume that the work is done.

    Remedy: clear the boxes; the verdict records which criteria are met.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        if "[x]" not in document.source.text and "[X]" not in document.source.text:
            return
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or not all(lane.in_work and lane.waits for lane in lanes):
            return
        boxes = [item for item in criteria_of(document) if item.ticked is not None]
        # Single ticks may record what was there before the work.
        if boxes and all(item.ticked for item in boxes):
            what = "all criteria are" if len(boxes) > 1 else "the criterion is"
            yield self.fault(boxes[0].span, f"{what} ticked, but the packet is {lanes[0].token}")


@lru_cache(maxsize=2)
def criteria_of(document: Packet) -> tuple[Item, ...]:
    return tuple(_criteria_of(document))


def _criteria_of(document: Packet) -> Iterator[Item]:
    for placed in document.placed:
        for field in placed.fields:
            if field.name == "done_means":
                yield from walk_items(field.children)
        if placed.spec.key == "done_means":
            yield from walk_items(items_of_section(document.source, placed.section))


class StatusElsewhere(PacketRule):
    """Status line outside the metadata

    The line is part of an old report, but tools that use the first status line will read this one.

    Remedy: quote it as text, or delete it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for field in document.preamble_fields:
            if field.name == "status":
                message = "this status is above METADATA, where only some tools look"
                yield self.fault(field.key_span, message)


# The content that a packet needs before anyone works on it: its name, its section, its fields, and the section in older
# packets that contains nothing else.
_CONTENT: Final = (
    ("What", "scope", ("what",), ""),
    ("Why", "scope", ("why",), ""),
    ("IN_SCOPE_PATHS", "scope", ("in_scope_paths", "in_scope"), ""),
    ("OUT_OF_SCOPE", "scope", ("out_of_scope", "out_of_scope_paths"), ""),
    ("DONE_MEANS", "quality_gate", ("done_means",), "done_means"),
    ("TEST_PLAN", "quality_gate", ("test_plan",), "test_plan"),
    ("SPEC_ANCHOR", "authority", ("spec_anchor", "spec_anchors"), ""),
    ("RISK_TIER", "metadata", ("risk_tier",), "risk_tier"),
    ("DATE", "metadata", ("date", "created_at", "created"), ""),
    ("REFINEMENT_FILE", "technical_refinement", ("refinement_file",), ""),
)
# Limits the text of a field that is repeated without end.
_ENOUGH: Final = 20
_ALWAYS_THERE: Final = frozenset({"metadata", "scope", "quality_gate", "authority"})


# Patterns and words for everything. A pattern with a folder or an ending limits the scope.
_EVERYTHING = lazy_pattern(
    r"(?i)(?:\./)?(?:\*{1,2}(?:/\*{1,2}|\.\*)?)?/?|\.?"
    r"|(?:the )?(?:whole|entire|full) (?:repo(?:sitory)?|code ?base|project|tree)"
    r"|(?:all|any|every)(?: of)?(?: the)?(?: files?| paths?)?(?: as needed)?|everything|anything"
    r"|(?:various(?: files)?|as needed|where needed)"
)


def is_too_wide(entry: str) -> bool:
    """Whether a scope entry allows every file."""
    path = entry.strip().strip("`\"'").rstrip(".,; ") or "."
    return bool(entry.strip()) and _EVERYTHING.fullmatch(path) is not None


class PacketContentMissing(PacketRule):
    """Packet that lacks part of the contract, such as the scope or the criteria

    Without the missing part, any change could pass for the work.

    Remedy: add the missing part from the stub or the refinement.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if not lanes or any(lane.may_be_stub or lane.archived for lane in lanes):
            return
        fields = list(_all_fields(document))
        absent: dict[tuple[int, int], list[str]] = {}
        for name, home, keys, older in _CONTENT:
            given = [field for field in fields if field.name in keys][:_ENOUGH]
            # That nothing is out of scope is an answer, too.
            # `ScopeTooWide` reports a scope such as `**`.
            wide = "in_scope_paths" in keys and any(is_too_wide(text.value) for text in document.in_scope_paths)
            said = wide or any(
                (home == "scope" and "out_of_scope" in keys) or not is_hollow(document, field) for field in given
            )
            if said or _is_told(document, older) or (name in {"What", "Why"} and _describes(document, name)):
                continue
            placed = document.placed_section(home)
            if given:
                yield self.fault(given[0].key_span, f"{given[0].key} is empty, but the packet is {lanes[0].token}")
            elif placed is not None or home not in _ALWAYS_THERE:  # another rule reports a missing required section
                place = placed or document.placed_section("metadata")
                span = place.section.title_span if place is not None else (0, 0)
                near = _nearly(document, keys)
                if near is not None and near.name in keys and says_something(body_of(document.source, near)):
                    continue  # written in other letters, such as `In-scope paths`
                if near is not None:
                    message = f"the heading {near.title!r} is not {keys[0].upper()}, so {name} is missing"
                    yield self.fault(near.title_span, message)
                    continue
                absent.setdefault(span, []).append(f"{name} is missing{elsewhere(document, *keys)}")
        for span, missing in absent.items():
            yield self.fault(span, f"{'; '.join(missing)}, but the packet is {lanes[0].token}")


class RefinementUnnamed(PacketRule):
    """Packet without a status that names no refinement

    Without a status, nothing else says whether the packet was refined and approved before the work began.

    Remedy: add the status, and REFINEMENT_FILE with the path of the refinement.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        metadata = document.placed_section("metadata")
        stated = document.status is not None and document.status.value
        if document.light or stated or metadata is None or document.source.mentions(b"refinement"):
            return
        yield self.fault(metadata.section.title_span, "the packet has no status, and names no refinement")


class SpecificationUnnamed(PacketRule):
    """Packet that does not name a version of the specification

    The sections in SPEC_ANCHOR may say something else in each version.

    Remedy: add SPEC_BASELINE with the file of the specification.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        authority = document.placed_section("authority")
        usual = any(document.text_at("authority", name) is not None for name in ("spec_baseline", "spec_target"))
        lanes = document.lanes.named(document.status.value) if document.status is not None else ()
        if usual or document.light or authority is None or any(lane.may_be_stub or lane.archived for lane in lanes):
            return
        fields = {field.name for field in _all_fields(document) if field.value or field.owned}
        text = document.source.text
        parts = (one.section for one in document.placed if one.spec.key in _NAMING_SECTIONS)
        if not fields & _VERSION_FIELDS and not any(_NAMES_A_VERSION.search(text, one.start, one.end) for one in parts):
            title = authority.section.title_span
            yield self.fault(title, "no field and no anchor names a version of the specification")


_VERSION_FIELDS: Final = frozenset(
    {"spec_baseline", "spec_target", "spec_current", "spec_target_resolved", "master_spec", "spec_version"}
)
_NAMING_SECTIONS: Final = frozenset({"metadata", "technical_refinement", "scope", "authority", "bootstrap"})
_NAMES_A_VERSION = lazy_pattern(r"(?i)spec\w*_v\d+(?:\.\d+)*\b|SPEC_CURRENT\.md")


def _nearly(document: Packet, keys: tuple[str, ...]) -> Section | None:
    """Return the section whose heading differs from a field's heading in one or two letters."""
    sections = (section for section in document.outline.walk() if section.heading is not None)
    names = [key for key in keys if "_" in key]
    return next((section for section in sections if any(is_near(section.name, name) for name in names)), None)


def _all_fields(document: Packet) -> Iterator[Field]:
    for placed in document.placed:
        yield from placed.fields
    for section in document.unknown:
        yield from read_fields(document.source, section.blocks)


def _is_told(document: Packet, section: str) -> bool:
    placed = document.placed_section(section) if section else None
    if placed is None:
        return False
    return any(map(says_something, (placed.section.title.partition(":")[2], body_of(document.source, placed.section))))


_GOAL = lazy_pattern(
    r"(?im)(?:^|(?<=\r))[ \t>+-]*[*_]*(?:goal|purpose|rationale|motivation|reason)[*_]*[ \t]*:[*_]*[ \t]*\w"
)


def _describes(document: Packet, name: str) -> bool:
    """Whether the scope begins with free text, or names the goal in it, as in older packets."""
    placed = document.placed_section("scope")
    if placed is None:
        return False
    if name == "Why":
        return _GOAL.search(document.source.text, placed.section.start, placed.section.end) is not None
    parts = [placed.section, *placed.section.subsections[:1]]
    return any(block.kind == "paragraph" for part in parts for block in part.blocks)


class FieldContradicts(PacketRule):
    """Field with two different values in one packet

    A reader who sees only one of the values may act on the wrong one.

    Remedy: fix the file that is wrong.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        words = document.source.lowered
        if words.count(b"signature") < 2 and words.count(b"tier") < 2 and words.count(b"sha") < 2:
            return  # what is named once has one value
        said: dict[str, Field] = {}
        reported: set[str] = set()
        home = document.placed_section("metadata")
        sections = [section for section in document.outline.walk() if _may_have_one_value(document, section)]
        for field in (field for section in sections for field in read_fields(document.source, section.blocks)):
            value = field.bare.strip("`* ")
            # A field `Signature` may be that of a validator, and that of an envelope.
            signed = field.name in _SIGNATURES and not legacy_signature(value)
            name = "user_signature" if signed else field.name
            if name not in _ONE_VALUE or not value or PLACEHOLDER.match(value):
                continue
            # Outside of METADATA, two signatures may be those of two acts.
            inside = home is not None and home.section.start <= field.key_span[0] < home.section.end
            if name == "user_signature" and name not in said and not inside:
                continue
            earlier = said.setdefault(name, field)
            other = earlier.bare.strip("`* ").casefold().split()[:1] != value.casefold().split()[:1]
            if other and value not in reported:
                reported.add(value)
                line = document.source.line_and_column(earlier.key_span[0])[0]
                yield self.fault(field.key_span, f"{field.key} is {value!r} here, but {earlier.bare!r} on line {line}")


def _may_have_one_value(document: Packet, section: Section) -> bool:
    """Whether the section contains every word in the name of a single-value field. Reading its fields would take much
    longer."""
    text = document.source.text[section.start : section.end].casefold()
    signed = "signature" in text and ("locked" in text or "signature**:" in text or "- signature:" in text)
    return signed or any(all(word in text for word in name.split("_")) for name in _ONE_VALUE)


class ScopeContradicts(PacketRule):
    """Path that is both in scope and out of scope

    It is unclear whether the work may change the path.

    Remedy: delete it from one of the two lists.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        inside = {path for text in document.in_scope_paths for path in _paths_in(text.value)}
        for text in document.out_of_scope:
            for path in _paths_in(text.value):
                if path in inside:
                    yield self.fault(text.span, f"{path} is in IN_SCOPE_PATHS, too")


def _paths_in(entry: str) -> Iterator[str]:
    """Yield the paths in an entry that consists only of paths, in the same form with and without a final slash."""
    quoted = _ONLY_PATHS.fullmatch(entry.strip())
    for piece in scope_pieces(entry) if quoted else [entry]:
        path = piece.strip("`* ").removeprefix("./")
        if path and not any(map(str.isspace, path)) and ("/" in path or "." in path):
            yield path.rstrip("/")


class RefinementOfAnother(PacketRule):
    """Packet that names a different packet's refinement

    That refinement was approved for different work.

    Remedy: name this packet's refinement in REFINEMENT_FILE.
    """

    severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        named = document.refinement_file
        for name, start, end in find_ids(named.value) if named is not None else ():
            if name.text != document.own_id:
                span = (named.start + start, named.start + end) if named is not None else (0, 0)
                yield self.fault(span, f"the refinement is for {name}, but this is {document.own_id}")


class TodoField(PacketRule):
    """Unfilled field that is not in the template

    Someone meant to fill in the field later. Placeholders in template fields have their own code, `placeholder_left`.

    Remedy: fill it in.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, document: Packet) -> Iterator[Problem]:
        for placed in document.placed:
            for field in placed.fields:
                match = _TODO.match(field.value)
                if match and placed.spec.field(field.name) is None:
                    span = (field.value_span[0], field.value_span[0] + match.end())
                    yield self.fault(span, f"{field.key} is not filled in")
