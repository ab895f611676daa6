"""Task packets: the executable form of a work packet.

Two generations are read. The current one has METADATA and QUALITY_GATE; an older one has separate sections for risk
tier, test plan and done criteria. Only METADATA describes the packet itself: reports further down quote other packets
and states. A new task packet is written from its stub and refinement; everything that is undecided becomes a named
TODO.

A packet in the light form is its own stub and refinement: one file with a scope, criteria and a REFINEMENT section. It
has no status, because only the log records its lane. Therefore its file changes only when its contract does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from workpacket.documents.document import FieldSpec, Layout, SectionSpec, Text, TextAt, TextsAt, fields
from workpacket.documents.structured import EvidenceBlock, WorkDocument, awaited, body_of, evidence_blocks
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.event_types import FULL_FORM, LIGHT_FORM
from workpacket.model.ids import WorkPacketId
from workpacket.text.source import Source
from workpacket.value import Value

METADATA_FIELDS = (
    *fields("TASK_ID", "WP_ID", "BASE_WP_ID", "DATE", "MERGE_BASE_SHA", "REQUESTOR", "AGENT_ID", "ROLE"),
    *fields("AGENTIC_MODE", "ORCHESTRATOR_MODEL", "ORCHESTRATION_STARTED_AT_UTC"),
    *fields("CODER_MODEL", "CODER_REASONING_STRENGTH"),
    FieldSpec("Status", required=True, bold=True),
    FieldSpec("RISK_TIER"),
    FieldSpec("USER_SIGNATURE", required=True),
    FieldSpec("PACKET_FORMAT_VERSION"),
)

SECTIONS = (
    SectionSpec("metadata", "METADATA", "fields", required=True, fields=METADATA_FIELDS),
    SectionSpec("sub_agent_delegation", "SUB_AGENT_DELEGATION", "fields", fields=(FieldSpec("SUB_AGENT_DELEGATION"),)),
    SectionSpec(
        "technical_refinement", "TECHNICAL_REFINEMENT (MASTER SPEC)", "fields", fields=(FieldSpec("REFINEMENT_FILE"),)
    ),
    SectionSpec(
        "scope",
        "SCOPE",
        "fields",
        required=True,
        fields=(
            FieldSpec("What", required=True),
            FieldSpec("Why"),
            FieldSpec("IN_SCOPE_PATHS", many=True, aliases=("in_scope",)),
            FieldSpec("OUT_OF_SCOPE", many=True),
        ),
    ),
    SectionSpec("waivers_granted", "WAIVERS GRANTED", "items"),
    SectionSpec(
        "quality_gate",
        "QUALITY_GATE",
        "fields",
        required=True,
        fields=(*fields("TEST_PLAN", "ROLLBACK_HINT", "RISK_TIER"), FieldSpec("DONE_MEANS", many=True)),
    ),
    SectionSpec(
        "authority",
        "AUTHORITY",
        "fields",
        required=True,
        fields=(
            FieldSpec("SPEC_BASELINE"),
            FieldSpec("SPEC_TARGET", aliases=("spec_current",)),
            FieldSpec("SPEC_ANCHOR", many=True),
        ),
    ),
    SectionSpec("lineage_audit", "LINEAGE_AUDIT (ALL VERSIONS)", "items"),
    SectionSpec(
        "bootstrap",
        "BOOTSTRAP",
        "fields",
        required=True,
        fields=(*fields("FILES_TO_OPEN", "SEARCH_TERMS", "RISK_MAP", many=True), FieldSpec("RUN_COMMANDS")),
    ),
    SectionSpec("skeleton", "SKELETON", "prose"),
    SectionSpec("end_to_end_closure_plan", "END_TO_END_CLOSURE_PLAN", "prose"),
    SectionSpec("implementation", "IMPLEMENTATION", "prose"),
    SectionSpec("hygiene", "HYGIENE", "prose"),
    SectionSpec("validation", "VALIDATION", "prose"),
    SectionSpec("status_handoff", "STATUS_HANDOFF", "prose"),
    SectionSpec("evidence_mapping", "EVIDENCE_MAPPING", "items"),
    SectionSpec("evidence", "EVIDENCE", "prose"),
    SectionSpec("validation_reports", "VALIDATION_REPORTS", "prose", aliases=("validation_report",), repeatable=True),
)

OLDER_SECTIONS = (
    SectionSpec("risk_tier", "RISK_TIER", "fields"),
    SectionSpec("test_plan", "TEST_PLAN", "prose"),
    SectionSpec("done_means", "DONE_MEANS", "items"),
    SectionSpec("rollback_hint", "ROLLBACK_HINT", "prose"),
    SectionSpec("user_context", "User Context", "prose"),
)

LIGHT_SECTIONS = (
    SectionSpec(
        "scope",
        "SCOPE",
        "fields",
        required=True,
        fields=(
            FieldSpec("FORM", required=True),
            *fields("What", "Why", "RISK_TIER", "DEPENDENCIES"),
            FieldSpec("IN_SCOPE_PATHS", many=True),
            FieldSpec("OUT_OF_SCOPE", many=True),
        ),
    ),
    SectionSpec("done_means", "DONE_MEANS", "items"),
    SectionSpec("refinement", "REFINEMENT", "prose"),
)
LIGHT: Final = Layout((2,), LIGHT_SECTIONS, extra=(SectionSpec("notes", "NOTES", "prose"),))
# A form is declared in only one place, so that no quotation further down can change how a packet is read.
_LIGHT = lazy_pattern(r"\A# [^\r\n]*[\r\n]\s*## SCOPE[ \t]*[\r\n]\s*- FORM: light[ \t]*(?=[\r\n]|\Z)")
_QUOTED = lazy_pattern(r"`[^`]+`")
# `1.1 Greeting` in .GOV/spec/SPEC_v1.md, sha256 1f2e...
_ANCHOR = lazy_pattern(
    r"(?:^|(?<=\r))- SPEC_ANCHOR: `(?P<heading>[^`\r\n]+)` in (?P<path>\S+), sha256 (?P<sha256>[0-9a-f]{64})[ \t]*"
    r"(?:\r(?=\n))?(?=[\r\n]|\Z)",
    re.MULTILINE,
)


NOT_YET = "(nothing yet)"
_EMPTY: Final = frozenset({"", NOT_YET})


def is_light(source: Source) -> bool:
    """Whether a packet is written in the light form."""
    return _LIGHT.match(source.text) is not None


class SpecAnchor(Value):
    """The section of the specification on which a light packet is based, and the section's digest when it was
    pinned."""

    heading: str
    path: str
    sha256: str

    def line(self) -> str:
        return f"- SPEC_ANCHOR: `{self.heading}` in {self.path}, sha256 {self.sha256}"


def scope_pieces(entry: str) -> list[str]:
    """Return the paths in an entry of a light packet: the whole text, or the paths in backticks if there are
    several."""
    quoted: list[str] = _QUOTED.findall(entry)
    return quoted if len(quoted) > 1 else [entry]


# The date of a report in its heading, and that of a manifest.
_DAY = lazy_pattern(r"\d{4}-\d{2}-\d{2}(?=\D|\Z)")
_MADE = lazy_pattern(r"Timestamp[*_`]*[ \t]*:[*_` \t]*(?P<day>\d{4}-\d{2}-\d{2})")
# A verdict, however it is written, and the signs of an examination in a report.
_VERDICT = lazy_pattern(r"(?i)\bverdict\b[^\r\n]{0,80}\b(?:PASS|FAIL|OUTDATED)")
_EXAMINATION = lazy_pattern(r"(?i)\bevidence\b|\btests?\b|`[^`\r\n]+`|[\w/.-]{1,200}\.\w+:[0-9]")
_EXAMINED: Final = ("evidence_mapping", "evidence", "validation", "implementation")
_DEPENDENCY_FIELDS = frozenset({"dependencies", "dependency", "depends_on", "dependencies_blockers"})


FULL: Final = Layout((2,), SECTIONS, older=OLDER_SECTIONS)


_TODO = lazy_pattern(r"TODO\b")


class Packet(WorkDocument):
    """A packet in the form that it declares; `layout` is the layout of that form."""

    kind = "packet"
    layout = FULL

    def __init__(self, source: Source) -> None:
        self.light = is_light(source)
        self.form = LIGHT_FORM if self.light else FULL_FORM
        if self.light:
            self.layout = LIGHT
        super().__init__(source)

    @property
    def schema(self) -> str:
        return "packet_light" if self.light else self.kind

    @property
    def title_text(self) -> str:
        return self.title if self.light else super().title_text

    @property
    def title(self) -> str:
        """Return the heading of the document, which describes the work of a light packet."""
        first = next((section for section in self.outline.walk() if section.level == 1), None)
        return first.title if first is not None else ""

    @property
    def refinement_text(self) -> str:
        """Return the technical refinement of a light packet, without its anchor; '' if it has none."""
        placed = self.placed_section("refinement")
        body = body_of(self.source, placed.section) if placed is not None else ""
        return _ANCHOR.sub("", body).strip()

    @property
    def anchor(self) -> SpecAnchor | None:
        placed = self.placed_section("refinement") if self.light else None
        match = _ANCHOR.search(body_of(self.source, placed.section)) if placed is not None else None
        return SpecAnchor(match["heading"], match["path"], match["sha256"]) if match is not None else None

    @property
    def anchor_file(self) -> Text | None:
        match = _ANCHOR.search(self.source.text) if self.light and self.anchor is not None else None
        return Text(match["path"], *match.span("path")) if match is not None else None

    task_id = TextAt("metadata", "task_id")
    created_at = TextAt("metadata", "date")
    status = TextAt("metadata", "status")
    out_of_scope = TextsAt("scope", "out_of_scope")
    evidence_mapping = TextsAt("evidence_mapping")

    @property
    def in_scope_paths(self) -> tuple[Text, ...]:
        listed = self.texts_at("scope", "in_scope_paths")
        if not self.light:
            return listed
        return tuple(Text(piece, text.start, text.end) for text in listed for piece in scope_pieces(text.value))

    @property
    def done_means(self) -> tuple[Text, ...]:
        """Return the items at every level, including those below a criterion (`PROVED_BY:`, `TESTS:`, `PATHS:`,
        `EXEMPT:`) and the headings of nested lists, which are not criteria.
        """
        return self.texts_at("quality_gate", "done_means") or self.texts_at("done_means")

    @property
    def evidence_blocks(self) -> Sequence[EvidenceBlock]:
        node = self.at("evidence")
        return evidence_blocks(self.source, node.start, node.end) if node is not None else ()

    @property
    def unproven(self) -> list[str]:
        """Return what a validated packet lacks entirely, `verdict` or `evidence`; older packets have no section for
        either."""
        lanes = self.lanes.named(self.status.value) if self.status is not None else ()
        if [lane.token for lane in lanes] != ["VALIDATED"]:
            return []
        text = self.source.text
        examined = (self.placed_section(key) for key in _EXAMINED)
        said = any(placed and body_of(self.source, placed.section).strip("- ") not in _EMPTY for placed in examined)
        reports = (placed.section for placed in self.placed if placed.spec.key == "validation_reports")
        shown = said or any(_EXAMINATION.search(text, part.start, part.end) for part in reports)
        found = {"verdict": _VERDICT.search(text) is not None, "evidence": shown}
        return [what for what, there in found.items() if not there]

    @property
    def left_open(self) -> list[str]:
        """The keys of the fields that still say TODO."""
        return [field.key for placed in self.placed for field in placed.fields if _TODO.match(field.value)]

    @property
    def risk_tier(self) -> Text | None:
        return (
            self.text_at("metadata", "risk_tier")
            or self.text_at("quality_gate", "risk_tier")
            or self.text_at("risk_tier", "level")
            or (self.text_at("scope", "risk_tier") if self.light else None)
        )

    def days(self) -> Sequence[tuple[str, Text]]:
        return self._days

    @cached_property
    def _days(self) -> list[tuple[str, Text]]:
        return list(self._dated())

    def _dated(self) -> Iterator[tuple[str, Text]]:
        for placed in self.placed:
            if placed.spec.key == "validation_reports":
                for section in placed.section.walk():
                    match = _DAY.match(section.title.strip())
                    if match is not None:
                        start = section.title_span[0] + section.title.index(match[0])
                        yield "the report", Text(match[0], start, start + len(match[0]))
        for match in _MADE.finditer(self.source.text) if "Timestamp" in self.source.text else ():
            yield "Timestamp", Text(match["day"], *match.span("day"))

    def sequences(self) -> Iterator[list[tuple[str, Text]]]:
        """Return every report or manifest date that is after the date of the packet."""
        made = self.text_at("metadata", "date")
        if made is not None:
            yield from ([("DATE", made), day] for day in self.days())

    def id_text(self) -> Text | None:
        return self.wp_id or self.task_id

    def status_text(self) -> Text | None:
        return self.status

    def risk_text(self) -> Text | None:
        return self.risk_tier

    def spec_texts(self) -> Iterable[Text]:
        baseline = self.text_at("authority", "spec_baseline")
        return (*([baseline] if baseline is not None else []), *self.texts_at("authority", "spec_anchor"))

    def anchor_texts(self) -> Iterable[Text]:
        return self.texts_at("authority", "spec_anchor")

    def dependency_texts(self) -> Iterable[Text]:
        """Return the values of the fields with this name, in any section."""
        for placed in self.placed:
            for field in placed.fields:
                if field.name in _DEPENDENCY_FIELDS:
                    yield Text(field.value, *field.value_span)
                    yield from awaited(field.children)


_LONGEST_LIST: Final = 100


class PacketText(Value):
    """The content of the packet. Lists contain the Markdown of one item each; `acceptance` is a list as in the stub.
    `coordination` is what the stub says about other work, including the dependencies.
    """

    wp_id: WorkPacketId
    date: str
    status: str
    requestor: str
    agent: str
    signature: str
    refinement_file: str
    what: str
    why: str
    acceptance: str
    spec_baseline: str
    spec_target: str
    risk_tier: str = ""
    merge_base: str = ""
    in_scope_paths: Sequence[str] = ()
    in_scope: Sequence[str] = ()
    out_of_scope: Sequence[str] = ()
    dependencies: Sequence[str] = ()
    coordination: Sequence[str] = ()
    anchors: Sequence[str] = ()
    risks: Sequence[str] = ()
    files_to_open: Sequence[str] = ()
    lineage: Sequence[str] = ()


def render_packet(packet: PacketText) -> str:
    """Return the file, which ends with a newline."""
    body = {
        "metadata": _metadata(packet),
        "sub_agent_delegation": ["- SUB_AGENT_DELEGATION: DISALLOWED"],
        "technical_refinement": [f"- REFINEMENT_FILE: {packet.refinement_file}"],
        "scope": _scope(packet),
        "waivers_granted": ["- NONE"],
        "quality_gate": _quality_gate(packet),
        "authority": _authority(packet),
        "lineage_audit": _items(packet.lineage, "N/A: this is the first packet of its base."),
        "bootstrap": _bootstrap(packet),
        "evidence_mapping": [f"- {NOT_YET}"],
    }
    parts = [f"# Task Packet: {packet.wp_id}\n"]
    parts += ["\n".join([f"## {spec.heading}", *body.get(spec.key, [NOT_YET])]) + "\n" for spec in SECTIONS]
    return "\n".join(parts)


def _metadata(packet: PacketText) -> list[str]:
    return [
        f"- TASK_ID: {packet.wp_id}",
        f"- WP_ID: {packet.wp_id}",
        f"- BASE_WP_ID: {packet.wp_id.base}",
        f"- DATE: {packet.date}",
        *([f"- MERGE_BASE_SHA: {packet.merge_base}"] if packet.merge_base else []),
        f"- REQUESTOR: {packet.requestor}",
        f"- AGENT_ID: {packet.agent}",
        "- ROLE: Orchestrator",
        "- AGENTIC_MODE: NO",
        f"- **Status:** {packet.status}",
        f"- RISK_TIER: {packet.risk_tier or 'TODO'}",
        f"- USER_SIGNATURE: {packet.signature}",
        "- PACKET_FORMAT_VERSION: 2026-03-01",
    ]


def _scope(packet: PacketText) -> list[str]:
    paths = [f"`{path}`" for path in packet.in_scope_paths]
    return [
        f"- What: {packet.what}",
        f"- Why: {packet.why}",
        *(["- IN_SCOPE_PATHS:", *(f"  - {path}" for path in paths)] if paths else ["- IN_SCOPE_PATHS: TODO"]),
        *_listed("SCOPE_OF_STUB", packet.in_scope),
        *_listed("OUT_OF_SCOPE", packet.out_of_scope),
        *(_listed("DEPENDENCIES", packet.dependencies) if packet.dependencies else []),
        *(_listed("DEPENDENCIES_OF_STUB", packet.coordination) if packet.coordination else []),
    ]


def _quality_gate(packet: PacketText) -> list[str]:
    return [
        "### TEST_PLAN",
        "```bash",
        f"just pre-work {packet.wp_id}",
        f"just post-work {packet.wp_id}",
        "```",
        "",
        "### DONE_MEANS",
        packet.acceptance.strip() or "- TODO",
        "",
        "### ROLLBACK_HINT",
        "```bash",
        "git revert <commit>",
        "```",
    ]


def _authority(packet: PacketText) -> list[str]:
    return [
        f"- SPEC_BASELINE: {packet.spec_baseline}",
        f"- SPEC_TARGET: {packet.spec_target}",
        *_listed("SPEC_ANCHOR", packet.anchors),
    ]


def _bootstrap(packet: PacketText) -> list[str]:
    return [
        *_listed("FILES_TO_OPEN", [packet.refinement_file, *packet.files_to_open]),
        "- SEARCH_TERMS: TODO",
        *_listed("RISK_MAP", packet.risks),
    ]


def _listed(key: str, items: Sequence[str]) -> list[str]:
    return [f"- {key}:", *(f"  {line}" for line in _items(items, "None known."))]


def _items(items: Sequence[str], empty: str) -> list[str]:
    """Return a list; items may have nested lists below their first line."""
    lines = [line for item in items for line in f"- {item.strip()}".replace("\n", "\n  ").split("\n")]
    return lines or [f"- {empty}"]


class LightText(Value):
    """The content of a packet in the light form. A criterion may state the command that proves it, or why it needs
    none.
    """

    title: str
    why: str = ""
    criteria: Sequence[tuple[str, str, str]] = ()
    scope: Sequence[str] = ()
    out_of_scope: Sequence[str] = ()
    risk: str = ""
    dependencies: Sequence[str] = ()
    refinement: str = ""
    anchor: SpecAnchor | None = None


def render_light(text: LightText) -> str:
    """Return the file. Empty parts are left out."""
    head = ["- FORM: light"]
    head += [f"- {key}: {said}" for key, said in (("Why", text.why), ("RISK_TIER", text.risk)) if said]
    head += [f"- DEPENDENCIES: {', '.join(text.dependencies)}"] if text.dependencies else []
    head += _paths("IN_SCOPE_PATHS", text.scope)
    head += _paths("OUT_OF_SCOPE", text.out_of_scope)
    parts = [f"# {text.title}\n", "\n".join(["## SCOPE", *head])]
    if text.criteria:
        parts.append("\n".join(["## DONE_MEANS", *(line for one in text.criteria for line in criterion_lines(*one))]))
    if text.refinement or text.anchor is not None:
        parts.append(light_refinement(text.refinement, text.anchor))
    return "\n".join(parts) + "\n"


def light_refinement(text: str, anchor: SpecAnchor | None) -> str:
    """Return the section REFINEMENT."""
    lines = [anchor.line()] if anchor is not None else []
    return "\n".join(["## REFINEMENT", *lines, *([text.strip()] if text.strip() else [])])


def _paths(key: str, entries: Sequence[str]) -> list[str]:
    """Return as many paths as fit on one line."""
    joined = ", ".join(entries)
    if len(joined) <= _LONGEST_LIST and all(entry.startswith("`") for entry in entries):
        return [f"- {key}: {joined}"] if entries else []
    return [f"- {key}:", *(f"  - {entry}" for entry in entries)]


def criterion_lines(said: str, command: str, exempt: str) -> list[str]:
    """Return a criterion as an item, with the required proof below it."""
    demands = [f"  - PROVED_BY: {_code(command)}"] if command else []
    return [f"- {said}", *demands, *([f"  - EXEMPT: {exempt}"] if exempt else [])]


def _code(command: str) -> str:
    return command if "`" in command else f"`{command}`"
