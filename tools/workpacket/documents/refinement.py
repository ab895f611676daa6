"""Technical refinements: the findings required before a packet may be activated, and the person's approval. The
approval fields are filled in before signing, because the signed text must say that it was approved. The token is the
older form of a signature, a name with a date, for programs that look for it. It proves nothing by itself: the proof is
the envelope, which covers exactly these bytes. Each packet needs a different token, so approvals within one minute use
the next free minutes. An approver has only a few possible tokens at a given time, so a statement signed elsewhere can
be attached to the same bytes later. The scaffold of a refinement is complete in form, with every open item marked as a
TODO.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from workpacket.documents.document import FieldSpec, Layout, SectionSpec, Text, TextAt, fields, heading_key, value_of
from workpacket.documents.structured import PlacedSection, StructuredDocument, fields_of_section
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, leading_id
from workpacket.problem import Edit
from workpacket.text.blocks import BLANKS, Field, Section, normal_key, walk
from workpacket.text.source import Node, Source, apply_edits
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.spec_pointer import Passage
    from workpacket.documents.summary import AnchorSummary, Place, RefinementSummary

_FENCE_LINE = lazy_pattern(r"(?:^|(?<=\r)) *(`{3,}|~{3,})[^\r\n]*", re.MULTILINE)
_NEXT_ANCHOR = lazy_pattern(r"(?:^|(?<=\r))#{2,5} ANCHOR\b", re.MULTILINE)
_NOT_PASSED = lazy_pattern(r"\[ *\]|(?:\[[xX]\] *)?(?:FAIL|NO)\b", re.IGNORECASE)
_PROPOSED = lazy_pattern(r"(?:^|(?<=\r))[ \t]*[-*+][ \t]+[*_`]*PROPOSED_SPEC_ENRICHMENT\b", re.MULTILINE)
_ANY_LEVEL = (1, 2, 3, 4, 5, 6)

APPROVAL_WORDS = "APPROVE REFINEMENT"
COVERAGE_POINTS = (
    "Appears in Main Body",
    "Explicitly named",
    "Specific",
    "Measurable acceptance criteria",
    "No ambiguity",
)

ANCHOR_FIELDS = fields(
    *("SPEC_ANCHOR", "CONTEXT_START_LINE", "CONTEXT_END_LINE", "CONTEXT_TOKEN", "EXCERPT_ASCII_ESCAPED"), required=True
)

SECTIONS = (
    SectionSpec(
        "metadata",
        "METADATA",
        "fields",
        required=True,
        fields=(
            *fields("WP_ID", "CREATED_AT", "SPEC_TARGET_RESOLVED", "SPEC_TARGET_SHA1", required=True),
            FieldSpec("SPEC_TARGET_SHA256"),
            *fields("USER_REVIEW_STATUS", "USER_SIGNATURE", required=True),
            FieldSpec("USER_APPROVAL_EVIDENCE"),
        ),
    ),
    SectionSpec("gaps_identified", "GAPS_IDENTIFIED", "prose", required=True),
    SectionSpec(
        "flight_recorder_interaction",
        "FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)",
        "prose",
        required=True,
    ),
    SectionSpec("red_team_advisory", "RED_TEAM_ADVISORY (security failure modes)", "prose", required=True),
    SectionSpec("primitives", "PRIMITIVES (traits/structs/enums)", "prose", required=True),
    SectionSpec(
        "clearly_covers",
        "CLEARLY_COVERS (5-point checklist)",
        "fields",
        required=True,
        fields=(
            *fields(*COVERAGE_POINTS),
            FieldSpec("CLEARLY_COVERS_VERDICT", required=True, aliases=("verdict",)),
            FieldSpec("CLEARLY_COVERS_REASON", aliases=("reason",)),
            *fields("AMBIGUITY_FOUND", "AMBIGUITY_REASON"),
        ),
    ),
    SectionSpec(
        "enrichment",
        "ENRICHMENT",
        "fields",
        required=True,
        fields=(
            FieldSpec("ENRICHMENT_NEEDED", required=True),
            *fields("REASON_NO_ENRICHMENT", "PROPOSED_SPEC_ENRICHMENT"),
        ),
    ),
    SectionSpec("spec_anchors", "SPEC_ANCHORS (REQUIRED: one or more)", "prose", required=True),
)


class Refinement(StructuredDocument):
    kind = "refinement"
    layout = Layout((3, 2), SECTIONS, frames=frozenset({"technical_refinement"}))
    answers = frozenset({"user_review_status", "user_signature", "user_approval_evidence"})

    wp_id = TextAt("metadata", "wp_id")
    created_at = TextAt("metadata", "created_at")
    spec_target = TextAt("metadata", "spec_target_resolved")
    spec_sha1 = TextAt("metadata", "spec_target_sha1")
    spec_sha256 = TextAt("metadata", "spec_target_sha256")
    review_status = TextAt("metadata", "user_review_status")
    signature = TextAt("metadata", "user_signature")
    approval_evidence = TextAt("metadata", "user_approval_evidence")
    verdict = TextAt("clearly_covers", "clearly_covers_verdict")
    ambiguity_found = TextAt("clearly_covers", "ambiguity_found")
    enrichment_needed = TextAt("enrichment", "enrichment_needed")
    reason_no_enrichment = TextAt("enrichment", "reason_no_enrichment")

    @property
    def anchors(self) -> list[Node]:
        """Return one mapping per anchor, with its fields in lower case."""
        return self.items_at("spec_anchors")

    @property
    def open_points(self) -> list[tuple[str, Text]]:
        """Return the checklist points that are not met, including those with an unticked box, whatever follows the
        box."""
        said = ((point, self.text_at("clearly_covers", normal_key(point))) for point in COVERAGE_POINTS)
        return [(point, text) for point, text in said if text is not None and _NOT_PASSED.match(text.value)]

    @property
    def proposed_enrichment(self) -> str:
        """Return the text proposed for the specification."""
        for section in self.sections_at(_ANY_LEVEL):
            if heading_key(section.title) == "proposed_spec_enrichment":
                # The text may contain headings of its own, outside a fence; it ends where a known section begins.
                start = section.title_span[1]
                later = [known.section.start for known in self.placed if known.section.start > start]
                body = self.source.text[start : min(later, default=len(self.source.text))]
                return _proposed(body)
        # Some have a list item instead of the heading, and the text in a fence below it.
        placed = self.placed_section("enrichment")
        item = _PROPOSED.search(self.source.text, placed.section.start, placed.section.end) if placed else None
        if placed is None or item is None:
            return ""
        blocks = (block for block in walk(placed.section.blocks) if block.start > item.start())
        return next((_proposed(block.text(self.source.text)) for block in blocks if block.kind == "fence"), "")

    def unsigned(self) -> bytes | None:
        """Return the file before approval: without the values of its three USER fields, and with LF line endings; None
        if one of these fields appears twice.
        """
        source, placed = self.source, self.placed_section("metadata")
        names = [normal_key(label) for label in LABELS]
        fields = [field for field in placed.fields if field.name in names] if placed is not None else []
        if len({field.name for field in fields}) < len(fields):
            return None
        kept, end = [], 0
        for field in sorted(fields, key=lambda field: field.value_span):
            kept.append(source.text[end : field.value_span[0]].rstrip(BLANKS))
            end = field.value_span[1]
        text = "".join([*kept, source.text[end:]])
        mark = b"\xef\xbb\xbf" if source.bom else b""
        return mark + text.replace("\r\n", "\n").encode("utf-8", "surrogateescape")

    @property
    def own_id(self) -> str:
        return leading_id(self.wp_id.value) if self.wp_id is not None and self.wp_id.value else self.stem

    @property
    def spec_path(self) -> str:
        """Return the refinement's specification: the text after the arrow."""
        target = self.spec_target
        return target.value.rpartition("->")[2].strip().strip("`") if target is not None else ""

    def section_node(self, placed: PlacedSection) -> Node:
        if placed.spec.key != "spec_anchors":
            return super().section_node(placed)
        anchors = [
            anchor_node(self.source, section)
            for section in placed.section.subsections
            if heading_key(section.title).startswith("anchor")
        ]
        return Node(anchors, *placed.section.title_span)

    @property
    def awaits_answers(self) -> bool:
        """Whether the fields in which a person answers still contain the placeholders that the tool writes."""
        return value_of(self.review_status).upper() == "PENDING"

    def has_own_rules_for(self, field: str) -> bool:
        return field in self.answers and value_of(self.review_status).upper() in ("PENDING", "APPROVED")

    @property
    def spec_digest(self) -> Text | None:
        """Return the digest that counts; older refinements have a SHA-256 in the field named after SHA-1."""
        return self.spec_sha256 or self.spec_sha1

    def summary(self) -> Mapping[str, object]:
        summary: RefinementSummary = {
            "id": self.own_id,
            "place": self.place(self.wp_id),
            "approved": value_of(self.review_status) == "APPROVED",
            "review_status": value_of(self.review_status),
            "enrichment_needed": value_of(self.enrichment_needed).strip("`*").upper() == "YES",
            "signature": (value_of(self.signature), *self.place(self.signature)),
            "spec": self.spec_path,
            "spec_place": self.place(self.spec_target),
            "spec_digest": value_of(self.spec_digest).lower(),
            "spec_sha1": value_of(self.spec_sha1).lower(),
            "anchors": [self._anchor_summary(anchor) for anchor in self.anchors],
        }
        return summary

    def _anchor_summary(self, anchor: Node) -> AnchorSummary:
        return {
            "place": self.source.line_and_column(anchor.start),
            "name_place": self._place_in(anchor, "spec_anchor"),
            "end_place": self._place_in(anchor, "context_end_line"),
            "name": anchor.string_at("spec_anchor"),
            "start": anchor.string_at("context_start_line"),
            "end": anchor.string_at("context_end_line"),
            "token": anchor.string_at("context_token"),
            "excerpt": anchor.string_at("excerpt_ascii_escaped"),
        }

    def _place_in(self, anchor: Node, key: str) -> Place:
        field = anchor.get(key)
        return self.source.line_and_column(field.start if field is not None else anchor.start)


def _proposed(body: str) -> str:
    text = _FENCE_LINE.sub("", body).strip()
    return "" if text.startswith("<") and text.endswith(">") else text


def anchor_node(source: Source, section: Section) -> Node:
    """Return the fields of one anchor; the excerpt is the content of its fence."""
    known = {spec.key for spec in ANCHOR_FIELDS}
    entries: dict[str, Node] = {}
    keys: dict[str, tuple[int, int]] = {}
    for field in fields_of_section(source, section):
        if field.name in known and field.name not in entries:
            text = field.value or "\n".join(fence.text(source.text) for fence in field.fences)
            # A fence at column 0 ends the list, but still is the excerpt.
            if field.name == "excerpt_ascii_escaped":
                text = text or _fence_after(source, section, field)
            entries[field.name] = Node(text, *(field.value_span if field.value else field.key_span))
            keys[field.name] = field.key_span
    return Node(entries, *section.title_span, keys)


def _fence_after(source: Source, section: Section, field: Field) -> str:
    """Return the content of the first fence below a field, in the same section. A list item ends at text at column 0,
    and cuts its fence short; then the excerpt is what people read: the lines between the two marks.
    """
    inside = [*field.fences, *section.blocks]
    later = (block for block in inside if block.kind == "fence" and block.start > field.key_span[0])
    whole = next((fence.text(source.text) for fence in later), "") if not field.fences else ""
    # A heading at column 0, quoted in the excerpt, ends the section, too.
    later_anchor = _NEXT_ANCHOR.search(source.text, field.key_span[1]) if not whole else None
    limit = later_anchor.start() if later_anchor is not None else len(source.text)
    marks = list(islice(_FENCE_LINE.finditer(source.text, field.key_span[1], limit), 2)) if not whole else []
    alike = len(marks) > 1 and marks[0][1] == marks[1][1]
    return source.text[marks[0].end() : marks[1].start()].strip("\r\n") if alike else whole


UNSIGNED = "<pending>"
OPEN = "<fill in>"


class RefinementText(Value):
    """What is known when a refinement is started.

    `anchors` are the candidates in the stub; `passage` is a section of the specification that was given on the command
    line, and is then the only anchor.
    """

    wp_id: WorkPacketId
    created_at: str
    spec_pointer: str
    spec_path: str
    spec_digest: str
    anchors: Sequence[str] = ()
    spec_sha1: str = ""
    passage: Passage | None = None


def render_refinement(text: RefinementText) -> str:
    """Return the file, ending with a newline. It is ASCII, because approved text is compared byte for byte."""
    anchors = [_anchor(number, anchor) for number, anchor in enumerate(list(text.anchors) or [OPEN], 1)]
    if text.passage is not None:
        anchors = [_anchored(1, text.passage)]
    parts = [
        "## TECHNICAL_REFINEMENT (MASTER SPEC)\n",
        "\n".join(_metadata(text)),
        "### GAPS_IDENTIFIED\n- <fill in: what the specification leaves open, or NONE>",
        "### FLIGHT_RECORDER_INTERACTION (event IDs + telemetry triggers)\n- <fill in: events, or NONE>",
        "### RED_TEAM_ADVISORY (security failure modes)\n- <fill in: how it can be attacked, or NONE>",
        "### PRIMITIVES (traits/structs/enums)\n- <fill in: the types it needs, or NONE>",
        "\n".join(_coverage()),
        f"### ENRICHMENT\n- ENRICHMENT_NEEDED: {OPEN}\n- REASON_NO_ENRICHMENT: {OPEN}",
        "### SPEC_ANCHORS (REQUIRED: one or more)",
        *("\n".join(lines) for lines in anchors),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _metadata(text: RefinementText) -> list[str]:
    return [
        "### METADATA",
        f"- WP_ID: {text.wp_id}",
        f"- CREATED_AT: {text.created_at}",
        f"- SPEC_TARGET_RESOLVED: {text.spec_pointer} -> {text.spec_path}",
        f"- SPEC_TARGET_SHA1: {text.spec_sha1 or text.spec_digest}",
        *([f"- SPEC_TARGET_SHA256: {text.spec_digest}"] if text.spec_sha1 else []),
        "- USER_REVIEW_STATUS: PENDING",
        f"- USER_SIGNATURE: {UNSIGNED}",
        f"- USER_APPROVAL_EVIDENCE: {UNSIGNED}",
    ]


def _coverage() -> list[str]:
    return [
        "### CLEARLY_COVERS (5-point checklist)",
        *(f"- {point}: [ ] PASS" for point in COVERAGE_POINTS),
        f"- CLEARLY_COVERS_VERDICT: {OPEN}",
        f"- CLEARLY_COVERS_REASON: {OPEN}",
        f"- AMBIGUITY_FOUND: {OPEN}",
        f"- AMBIGUITY_REASON: {OPEN}",
    ]


def _anchor(number: int, anchor: str) -> list[str]:
    shown = anchor.encode("ascii", "backslashreplace").decode()
    return [
        f"#### ANCHOR {number}",
        f"- SPEC_ANCHOR: {shown}",
        f"- CONTEXT_START_LINE: {OPEN}",
        f"- CONTEXT_END_LINE: {OPEN}",
        f"- CONTEXT_TOKEN: {OPEN}",
        "- EXCERPT_ASCII_ESCAPED:",
        "  ```text",
        f"  {OPEN}",
        "  ```",
    ]


def _anchored(number: int | str, passage: Passage) -> list[str]:
    """Return the anchor for a section: its lines, its heading as the token, and its whole text as the excerpt."""
    lines = _escaped(passage.text).split("\n")
    fence = "```" if "```" not in passage.text else "~~~~"
    return [
        f"#### ANCHOR {number}",
        f"- SPEC_ANCHOR: {_escaped(passage.title)}",
        f"- CONTEXT_START_LINE: {passage.first}",
        f"- CONTEXT_END_LINE: {passage.first + len(lines) - 1}",
        f"- CONTEXT_TOKEN: {_escaped(passage.title)}",
        "- EXCERPT_ASCII_ESCAPED:",
        f"  {fence}text",
        *(f"  {line}".rstrip() for line in lines),
        f"  {fence}",
    ]


_OPEN_ANCHOR = lazy_pattern(
    r"#### ANCHOR (?P<number>\d+)\r?\n- SPEC_ANCHOR: [^\n]*\n" + r"\r?\n".join(map(re.escape, _anchor(1, "")[2:]))
)


def anchoring(source: Source, passage: Passage) -> Edit | None:
    """Return the edit that fills in the first open anchor; None if there is none."""
    found = _OPEN_ANCHOR.search(source.text)
    return found and Edit(*found.span(), source.eol.join(_anchored(found["number"], passage)))


def _escaped(text: str) -> str:
    return "".join(each if each.isascii() else f"\\u{ord(each):04x}" for each in text)


LABELS = ("USER_REVIEW_STATUS", "USER_SIGNATURE", "USER_APPROVAL_EVIDENCE")
_LONGEST_NAME = 40
# How many approvals one person can give in the same minute; a token up to an hour off still fits its time.
_MINUTES = 60


def tokens_of(approver: str, at: datetime) -> Iterator[str]:
    """Yield tokens such as `ann310120261200` for ann@example.org, in UTC: the token for this minute, then those for the
    following minutes.
    """
    name = re.sub(r"[^a-z]", "", approver.partition("@")[0].casefold())[:_LONGEST_NAME] or "approver"
    return (f"{name}{at + timedelta(minutes=later):%d%m%Y%H%M}" for later in range(_MINUTES))


def fill(source: Source, packet: str, token: str) -> Source | str:
    """Return the refinement with the three USER fields filled in and every other byte unchanged, or why that is
    impossible.
    """
    wanted = dict(zip(LABELS, ("APPROVED", token, f"{APPROVAL_WORDS} {packet}"), strict=True))
    fields = _fields(Refinement(source))
    missing = [label for label, value in fields.items() if value is None]
    if missing == ["USER_APPROVAL_EVIDENCE"]:
        source = _with_evidence(source, fields["USER_SIGNATURE"])
        fields = _fields(Refinement(source))
        missing = [label for label, value in fields.items() if value is None]
    if missing:
        return f"METADATA lacks {' and '.join(missing)}, which must be filled in"
    long = [label for label, value in fields.items() if value and "\n" in source.text[slice(*value[1])]]
    if long:
        return f"its METADATA field {long[0]} spans several lines; everything after its first line would be lost"
    edits = [_edit(source, span, wanted[label]) for label, value in fields.items() if value for span in [value[1]]]
    filled = apply_edits(source, edits)
    reread = {label: value[0] if value else None for label, value in _fields(Refinement(filled)).items()}
    if reread != wanted:
        return "its METADATA would be read differently once filled in"
    return filled


def _fields(document: Refinement) -> dict[str, tuple[str, tuple[int, int]] | None]:
    """Return values with their spans, including empty values, which a typed document omits."""
    placed = document.placed_section("metadata")
    found = {field.name: (field.value, field.value_span) for field in reversed(placed.fields)} if placed else {}
    return {label: found.get(normal_key(label)) for label in LABELS}


def _edit(source: Source, span: tuple[int, int], value: str) -> Edit:
    start, end = span
    space = "" if start and source.text[start - 1] in " \t" else " "
    return Edit(start, end, space + value)


def _with_evidence(source: Source, signature: tuple[str, tuple[int, int]] | None) -> Source:
    """Add an empty evidence field below the signature line, in the same style as that line."""
    if signature is None:
        return source
    line = source.line_and_column(signature[1][0])[0]
    start, end = source.line_span(line)
    match = re.match(r"\s*(?:[-*+]\s+)?", source.text[start:end])
    lead = match.group() if match is not None else "- "
    return apply_edits(source, [Edit(end, end, f"{source.eol}{lead}USER_APPROVAL_EVIDENCE:")])
