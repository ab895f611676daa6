"""Progress files of roles: `docs/progress/<feature>-<role>.md`, and other files in their folder. A checkpoint records
the state of one role in one feature, in seven fields. Cost summaries, feature summaries, templates and other notes in
the same folder are recognized, but nothing is resumed from them. New checkpoints are written in the published format:
the seven fields in order and in double quotes, then other keys, then the text. In an existing file, only changed values
are replaced and one note is added; every other byte, including comments, is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal

from workpacket.documents.document import Text, TextAt, value_of, without_quotes
from workpacket.documents.structured import FrontMatterDocument, items_of_section, read_front_matter
from workpacket.documents.summary import RoleSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import lane_of_token
from workpacket.problem import Edit
from workpacket.text.blocks import LISTS, Block, Item, Section
from workpacket.text.source import Plain, Source, apply_edits
from workpacket.text.yaml_edit import CannotEdit, YamlText, insert_key, set_value, yaml_text
from workpacket.text.yaml_strict import double_quoted, writable, write_yaml

KEYS = ("feature", "team", "agent", "phase", "status", "last_action", "updated")
# The default vocabulary of phases.
PHASES = ("research", "design", "review", "implementation", "testing")
STATUSES = ("in_progress", "blocked", "awaiting_review", "complete")
_OPEN = frozenset(STATUSES[:-1])

Note = Literal["checkpoint", "older_checkpoint", "summary", "cost_summary", "template", "other"]

# Keys that occur almost only in checkpoints; this many of them suffice, so that some may be missing.
_TELLING = ("team", "agent", "phase", "last_action", "updated")
_ENOUGH = 3
_CHECKPOINT_TYPES = frozenset({"checkpoint", "progress_checkpoint"})
_COST = lazy_pattern(r"(?:\A|[-_])cost[-_]summary\Z")
_SUMMARY = lazy_pattern(r"(?:\A|(?P<before>[A-Za-z0-9]+)?[-_])summary\Z")
# Summaries of a part of the work; the feature continues after them.
_STAGES = frozenset(
    [
        *("architecture", "audit", "cost", "design", "plan", "planning", "quality", "research", "review", "roadmap"),
        *("session", "spec", "stories", "story", "testing"),
    ]
)
_PLACEHOLDER = lazy_pattern(r"\s*(?:<[^<>]*>|\{[^{}]*\}|\[[^\[\]]*\])?\s*\Z")


class RoleProgress(FrontMatterDocument):
    kind = "role_progress"
    text_fields = frozenset({*KEYS, "type", "completed", "skill", "session", "date", "created", "role"})

    feature = TextAt("feature")
    team = TextAt("team")
    agent = TextAt("agent")
    phase = TextAt("phase")
    status = TextAt("status")
    last_action = TextAt("last_action")
    updated = TextAt("updated")

    @cached_property
    def note(self) -> Note:
        """Return the kind of this file."""
        kind = _word(self.text_at("type"))
        if self.stem.startswith("_") or self._is_blank():
            return "template"
        if _COST.search(self.stem) or kind == "cost_summary":
            return "cost_summary"
        if _SUMMARY.search(self.stem) or kind == "summary":
            return "summary"
        telling = sum(self.at(key) is not None for key in _TELLING)
        if telling >= _ENOUGH and (not kind or kind in _CHECKPOINT_TYPES):
            return "checkpoint"
        if kind in _CHECKPOINT_TYPES:
            return "older_checkpoint"
        ends = self.at("completed") is not None or self.stem == value_of(self.feature)
        return "summary" if ends and telling == 0 and self.status is not None else "other"

    @property
    def is_checkpoint(self) -> bool:
        return self.note == "checkpoint"

    @cached_property
    def finishes(self) -> str:
        """Return the feature that this summary declares complete; '' for other files and partial summaries."""
        match = _SUMMARY.search(self.stem)
        # A feature may itself be named after a stage: `automated-testing`.
        whole = self.stem.casefold() == f"{value_of(self.feature)}-summary".casefold()
        partial = match is not None and (match["before"] or "").casefold() in _STAGES and not whole
        complete = _word(self.status) in {"complete", "completed", "done"}
        return value_of(self.feature) if self.note == "summary" and complete and not partial else ""

    def notes(self) -> Iterator[Item]:
        """Yield the lines in `## Progress Notes`."""
        for section in self.sections():
            if section.name == "progress_notes":
                yield from items_of_section(self.source, section)

    def dates(self) -> Iterator[tuple[str, Text]]:
        if self.note in {"checkpoint", "cost_summary"} and self.updated is not None:
            yield "updated", without_quotes(self.source, self.updated)

    def days(self) -> Iterator[tuple[str, Text]]:
        completed = self.text_at("completed")
        if self.note == "summary" and completed is not None:
            yield "completed", without_quotes(self.source, completed)

    def summary(self) -> Mapping[str, object]:
        summary: RoleSummary = {
            "feature": value_of(self.feature),
            "team": value_of(self.team),
            "agent": value_of(self.agent),
            "status": value_of(self.status),
            "is_checkpoint": self.is_checkpoint,
            "place": self.place(self.feature),
            "phase": value_of(self.phase),
            "phase_place": self.place(self.phase),
            "status_place": self.place(self.status),
            "agent_place": self.place(self.agent),
            "finishes": self.finishes,
        }
        return summary

    def _is_blank(self) -> bool:
        """Whether all fields are empty or placeholders, as in a template."""
        present = [text for key in ("feature", "team", "agent", "last_action") if (text := self.text_at(key))]
        return bool(present) and all(_PLACEHOLDER.match(text.value) for text in present)


def closing_of(feature: str, finishing: Iterable[tuple[str, str]], lanes: Mapping[str, str]) -> str:
    """Return what marks the feature as complete, a summary or the lane of the packet with this id; '' if nothing does.
    `finishing` maps paths to the features that they declare complete; `lanes` are the lanes of packets.
    """
    wanted = feature.casefold()
    for path, finished in finishing:
        if finished and finished.casefold() == wanted:
            return path
    known = {packet: lane for packet, lane in lanes.items() if wanted in {packet.casefold(), _base_of(packet)}}
    if known and all((lane := lane_of_token(token)) is not None and not lane.unfinished for token in known.values()):
        packet = max(known)
        return f"{packet} is {known[packet]}"
    return ""


def _base_of(packet: str) -> str:
    return re.sub(r"-v[1-9][0-9]*\Z", "", packet).casefold()


def is_open(status: str) -> bool:
    """Whether this status, however it is spelled, means that work continues."""
    return _spelled(status) in _OPEN


def _word(text: Text | None) -> str:
    return _spelled(value_of(text))


def _spelled(word: str) -> str:
    """Return a word normalized for comparison: `in-progress` and `In Progress` become `in_progress`."""
    return re.sub(r"[\s_-]+", "_", word.strip()).casefold()


HEADING = "## Progress Notes"
EMPTY_BODY = f"\n{HEADING}\n"


def canonical(front: Mapping[str, Plain], body: str) -> bytes:
    """Return the file of a checkpoint; raise `NotWritable` if a value cannot be written in YAML."""
    order = [*(key for key in KEYS if key in front), *(key for key in front if key not in KEYS)]
    lines = "".join(_line(key, front[key]) for key in order)
    return f"---\n{lines}---\n{body}".encode()


def _line(key: str, value: Plain) -> str:
    if isinstance(value, str) and writable(value):
        return write_yaml({key: None}).removesuffix("null\n") + double_quoted(value) + "\n"
    return write_yaml({key: value})


def body_of(document: RoleProgress) -> str:
    return document.source.text[document.body :]


def front_of(document: RoleProgress) -> dict[str, Plain]:
    plain = document.root.plain() if document.root is not None else None
    return dict(plain) if isinstance(plain, dict) else {}


def advanced(document: RoleProgress, fields: Mapping[str, str], note: str = "") -> bytes:
    """Return the file with these fields and, if `note` is not empty, one more note; raise `CannotEdit` if anything else
    would have to change.
    """
    text = _front(document)
    for key, value in fields.items():
        node = text.root.get(key)
        edits = insert_key(text, (), key, value) if node is None else set_value(text, (key,), value)
        text = text.edited(edits)
    after = RoleProgress(noted(text.source, note) if note else text.source)
    wanted = {**front_of(document), **fields}
    before, now = ([item.text for item in one.notes()] for one in (document, after))
    if front_of(after) != wanted or after.faults or now != [*before, *([note] if note else [])]:
        raise CannotEdit(f"{document.path}: this note cannot be added without changing other text; add it by hand")
    return after.source.encode()


def _front(document: RoleProgress) -> YamlText:
    front = read_front_matter(document.source)
    if not front.present:
        raise CannotEdit(f"{document.path}:1:1: there is no front matter")
    return yaml_text(document.source, start=front.start, end=front.end)


def noted(source: Source, note: str) -> Source:
    """Return the document with another note at the end of `## Progress Notes`; the section is added if necessary."""
    document = RoleProgress(source)
    sections = [section for section in document.sections() if section.name == "progress_notes"]
    eol = source.eol
    if not sections:
        start = "" if source.text.endswith(("\n", "\r")) else eol
        end = len(source.text)
        return apply_edits(source, [Edit(end, end, f"{start}{eol}{HEADING}{eol}{eol}- {note}{eol}")])
    holder = [section for section in sections[-1].walk() if _lists(section)]
    if not holder:
        return _first_note(source, sections[-1], note)
    last = _lists(holder[-1])[-1].children[-1]
    indent = " " * (last.start - source.line_starts[last.line - 1])
    marker = last.marker if last.marker in {"-", "*", "+"} else "-"
    return _after_line(source, last.end_line, f"{indent}{marker} {note}")


def _lists(section: Section) -> list[Block]:
    return [block for block in section.blocks if block.kind in LISTS]


def _first_note(source: Source, section: Section, note: str) -> Source:
    line = section.heading.end_line if section.heading is not None else section.line
    eol = source.eol
    gap = "" if section.end_line == line else eol
    return _after_line(source, line, f"{eol}- {note}{gap}" if gap else f"{eol}- {note}")


def _after_line(source: Source, line: int, text: str) -> Source:
    """Insert `text` on separate lines after this line."""
    _, end = source.line_span(line)
    has_end = source.text[end : end + 1] in {"\n", "\r"}
    addition = f"{source.eol}{text}" if has_end else f"{source.eol}{text}{source.eol}"
    return apply_edits(source, [Edit(end, end, addition)])
