"""The records of a role's checkpoint, and the checkpoint that follows from them. Pure.

The log begins with the file as it was found, or with the first milestone, and holds each milestone since. Folded, it
gives the front matter and the notes again, so a file that was lost, or is late because its writer was killed, can be
written from it. What people write into the file besides the seven fields is theirs, and no contradiction of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from workpacket.bridges import importing
from workpacket.bridges.foreign import stream_named
from workpacket.bridges.stream_log import Record
from workpacket.documents.role_progress import KEYS
from workpacket.documents.role_writing import EMPTY_BODY, noted
from workpacket.model.canonical import Json
from workpacket.runtime.records.kinds import Kind
from workpacket.text.node import Plain
from workpacket.text.source import Source

ADVANCED = "role.advanced"
IMPORTED = importing.IMPORTED.type
FORM = "role"

KINDS: Mapping[str, Kind] = {
    **importing.KINDS,
    ADVANCED: Kind(ADVANCED, {
        "milestone": "public", "feature": "scan", "team": "scan", "agent": "scan", "phase": "scan", "status": "public",
        "last_action": "scan", "updated": "public", "note": "scan", "instance": "scan", "artifacts": "scan",
    }),
}  # fmt: skip


def stream_of(feature: str, team: str, agent: str) -> str:
    """The stream of one role in one feature. Its lease makes one writer of the file."""
    return stream_named(FORM, feature, team, agent)


class Fields(NamedTuple):
    """The seven, in the order of the published format."""

    feature: str
    team: str
    agent: str
    phase: str
    status: str
    last_action: str
    updated: str


@dataclass(slots=True)
class RoleState:
    """`earlier` are the fields that the file may still show because its writer was killed.

    `artifacts` are the files that the role named, with their digests at its last milestone.
    """

    version: int = 0
    front: dict[str, Plain] = field(default_factory=dict)
    body: str = EMPTY_BODY
    note: str = ""
    earlier: list[Fields] = field(default_factory=list)
    artifacts: dict[str, str] = field(default_factory=dict)
    _writer: str = ""

    @property
    def fields(self) -> Fields:
        return fields_of(self.front)

    def apply(self, record: Record) -> None:
        if record.writer != self._writer:
            self.earlier, self._writer = [], record.writer
        if self.version:
            self.earlier.append(self.fields)
        if record.type == IMPORTED and isinstance(record.payload, Mapping):
            front = record.payload.get("front")
            self.front = dict(cast("Mapping[str, Plain]", front)) if isinstance(front, Mapping) else {}
            self.body, self.note = str(record.payload.get("body") or ""), ""
        elif record.type == ADVANCED:
            self.front |= {key: str(record.data.get(key) or "") for key in KEYS}
            self.note = str(record.data.get("note") or "")
            self.body = with_note(self.body, self.note)
            self.artifacts = _artifacts(record.data.get("artifacts"))
        self.version = record.version


def fold(records: Iterable[Record]) -> RoleState:
    state = RoleState()
    for record in records:
        state.apply(record)
    return state


def fields_of(front: Mapping[str, object]) -> Fields:
    """The seven fields that the log and the file have in common."""
    return Fields(*(str(front[key]) if front.get(key) is not None else "" for key in KEYS))


def artifact_rows(artifacts: Mapping[str, str]) -> list[Json]:
    """Artifacts as a record has them: in rows, since the key of a mapping may look like the name of a secret."""
    return [{"path": path, "sha256": digest} for path, digest in artifacts.items()]


def _artifacts(rows: Json) -> dict[str, str]:
    """None in the records of a time that knew no artifacts."""
    found = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return {str(row["path"]): str(row["sha256"]) for row in found}


def with_note(body: str, note: str) -> str:
    """The text below the front matter with one more note."""
    start = "---\n---\n"
    return noted(Source("", start + body), note).text.removeprefix(start)
