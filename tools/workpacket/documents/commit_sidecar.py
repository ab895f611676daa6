"""Sidecars of checkpoint commits: `.runr/checkpoints/<sha>.json`, stored next to the commit and never inside it."""

from __future__ import annotations

from workpacket.documents.document import Document, TextAt
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
