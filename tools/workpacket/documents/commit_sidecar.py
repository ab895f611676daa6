"""Sidecars for checkpoint commits: `.runr/checkpoints/<sha>.json`, stored next to the commit and never inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workpacket.documents.document import Document, Text, TextAt, value_of, without_quotes
from workpacket.documents.summary import Place, SidecarSummary
from workpacket.text.formats import date_time
from workpacket.text.json_strict import load_json
from workpacket.text.source import Source

# The newest supported version of the format.
SCHEMA_VERSION = 1


class CommitSidecar(Document):
    kind = "commit_sidecar"

    sha = TextAt("sha")
    run_id = TextAt("run_id")
    milestone_title = TextAt("milestone_title")
    created_at = TextAt("created_at")

    def __init__(self, source: Source) -> None:
        loaded = load_json(source)
        super().__init__(source, loaded.root, loaded.faults)

    def days(self) -> Iterator[tuple[str, Text]]:
        made = self.created_at
        if made is not None and not date_time(made.value):  # the schema judges its form
            yield "created_at", without_quotes(self.source, made)

    def summary(self) -> Mapping[str, object]:
        summary: SidecarSummary = {
            "run": value_of(self.run_id),
            "milestone": self.milestone_index if self.milestone_index is not None else -1,
            "created": value_of(self.created_at),
            "milestone_place": self._place_of("milestone_index"),
            "created_place": self._place_of("created_at"),
        }
        return summary

    def _place_of(self, key: str) -> Place:
        node = self.at(key)
        return self.source.line_and_column(node.start) if node is not None else (1, 1)

    @property
    def schema_version(self) -> int | None:
        return self._number("schema_version")

    @property
    def milestone_index(self) -> int | None:
        return self._number("milestone_index")

    def _number(self, key: str) -> int | None:
        node = self.at(key)
        value = node.value if node is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
