"""What stubs and packets have in common: an id, a status, dependencies, and the summary made from them.

Packets also state evidence: blocks of COMMAND, EXIT_CODE, LOG_PATH and so on, and EVIDENCE_MAPPING. A block begins with
COMMAND. Indented lines, bullets, bold keys and backticks around values are accepted; an empty value never continues on
the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from workpacket.documents.document import Text, TextAt, value_of
from workpacket.documents.structured import StructuredDocument
from workpacket.documents.summary import EvidenceSummary, Mention, WorkSummary
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId, find_ids, leading_id
from workpacket.text.source import Source
from workpacket.value import Value

# What an item below a criterion demands as its proof, instead of being a criterion itself.
_DEMAND = lazy_pattern(r"(?:PROVED_BY|TESTS|PATHS|EXEMPT):")
_UNTICKED = lazy_pattern(r"\[ \]\s+\Z")
# Of quoted lines, what tells whether anything ran is at the beginning or is short.
_LONGEST_PROOF = 2000


class WorkDocument(StructuredDocument):
    """A stub or a packet. Each kind defines where its values are."""

    wp_id = TextAt("metadata", "wp_id")
    base_wp_id = TextAt("metadata", "base_wp_id")
    created_at = TextAt("metadata", "created_at")
    what = TextAt("scope", "what")
    user_signature = TextAt("metadata", "user_signature")
    refinement_file = TextAt("technical_refinement", "refinement_file")

    def id_text(self) -> Text | None:
        """Where the document states its own id."""
        return self.wp_id

    def status_text(self) -> Text | None:
        raise NotImplementedError

    def risk_text(self) -> Text | None:
        return None

    def dependency_texts(self) -> Iterable[Text]:
        """Texts in which every work packet id counts as a dependency."""
        return ()

    @property
    def evidence_blocks(self) -> Sequence[EvidenceBlock]:
        """The commands that the document lists as evidence."""
        return ()

    def criteria(self, texts: Sequence[Text]) -> tuple[Text, ...]:
        """Those that are criteria: not what is nested below one and demands its proof."""
        depths = [self._depth(text) for text in texts]
        return tuple(
            text
            for text, depth in zip(texts, depths, strict=True)
            if depth <= depths[0] or not _DEMAND.match(text.value)
        )

    def _depth(self, text: Text) -> int:
        line = self.source.line(self.source.line_and_column(text.start)[0])
        return len(line) - len(line.lstrip())

    def is_unticked(self, text: Text) -> bool:
        """Whether an item has a box that is not ticked."""
        number, column = self.source.line_and_column(text.start)
        return _UNTICKED.search(self.source.line(number)[: column - 1]) is not None

    @property
    def own_id(self) -> str:
        """The id in the document, otherwise the one in its file name."""
        text = self.id_text()
        return leading_id(text.value) if text is not None and text.value else self.stem

    def summary(self) -> Mapping[str, object]:
        status = self.status_text()
        own_id = self.own_id
        summary: WorkSummary = {
            "id": own_id,
            "base": _base_of(own_id),
            "title": value_of(self.what),
            "place": self.place(self.id_text()),
            "lanes": [lane.token for lane in self.lanes.named(status.value)] if status is not None else [],
            "status": value_of(status),
            "status_place": self.place(status),
            "created": value_of(self.created_at),
            "risk": value_of(self.risk_text()),
            "depends": self.mentions(self.dependency_texts(), own_id),
            "signature": self.mention(self.user_signature),
            "refinement": self.mention(self.refinement_file),
            "evidence": [self._evidence_summary(block) for block in self.evidence_blocks],
        }
        return summary

    def _evidence_summary(self, block: EvidenceBlock) -> EvidenceSummary:
        return {
            "place": self.source.line_and_column(block.start),
            "log": self.mention(block.fields.get("LOG_PATH")),
            "sha256": self.mention(block.fields.get("LOG_SHA256")),
            "proof": block.proof[:_LONGEST_PROOF],
        }

    def mentions(self, texts: Iterable[Text], own_id: str) -> list[Mention]:
        """Every other packet that the texts name, once, with its place."""
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
    """One command that was run as evidence. `fields` are by key; an empty or placeholder value is ''. `start` is the
    offset of the block. `proof` is the text below PROOF_LINES.
    """

    start: int
    fields: dict[str, Text]
    proof: str = ""

    def value(self, key: str) -> str:
        text = self.fields.get(key)
        return text.value if text is not None else ""


def evidence_blocks(source: Source, start: int, end: int) -> list[EvidenceBlock]:
    """The blocks between two offsets of a document."""
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
    """The value on a line: for a path, the text in backticks; for a command, everything. '' for a placeholder."""
    quoted = _QUOTED.match(written) if key.startswith("LOG_") else None
    value = quoted[1] if quoted is not None else written.strip("`\"'* ")
    unfilled = _UNFILLED.match(value) or (key.startswith("LOG_") and _PLACEHOLDER.search(value))
    return "" if unfilled else value


def mapped_evidence(items: Iterable[Text]) -> Iterator[tuple[Text, str]]:
    """Pairs of EVIDENCE_MAPPING: the requirement as quoted, and where it is met. An unfilled form is not a pair."""
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
