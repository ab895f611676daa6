"""The evidence that a packet states itself: blocks of COMMAND, EXIT_CODE, LOG_PATH and so on, and EVIDENCE_MAPPING.

A block begins with COMMAND. People indent the lines, put bullets and bold before the keys and backticks around the
values; an empty value never takes the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from workpacket.documents.document import Text
from workpacket.lazy_pattern import lazy_pattern
from workpacket.text.source import Source
from workpacket.value import Value

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
    """One command that was run as evidence. `fields` are by key; a key without a value, or with a placeholder, is ''.

    `start` is where the block begins. `proof` is the text below PROOF_LINES.
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
    """What a line states: of a path, what stands in its backticks; of a command, all of it. '' for a placeholder."""
    quoted = _QUOTED.match(written) if key.startswith("LOG_") else None
    value = quoted[1] if quoted is not None else written.strip("`\"'* ")
    unfilled = _UNFILLED.match(value) or (key.startswith("LOG_") and _PLACEHOLDER.search(value))
    return "" if unfilled else value


def mapped_evidence(items: Iterable[Text]) -> Iterator[tuple[Text, str]]:
    """Pairs of EVIDENCE_MAPPING: the requirement as quoted, and where it is met. A form to fill in is no pair."""
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
