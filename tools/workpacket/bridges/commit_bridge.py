"""Sidecars of checkpoint commits, `.runr/checkpoints/<sha>.json`, as a foreign form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from workpacket.bridges.foreign import Bridge, Foreign, stream_named
from workpacket.documents.commit_sidecar import CommitSidecar
from workpacket.documents.places import kind_of
from workpacket.model.canonical import Json
from workpacket.model.checkpoint_commit import sidecar_bytes
from workpacket.rules.by_kind import rules_for
from workpacket.rules.engine import examine
from workpacket.shell.shipped_schemas import schemas
from workpacket.text.source import Fault, Source


class CommitBridge:
    name = "commit"
    lossy: tuple[str, ...] = ("cursor", "tree of a milestone without changes", "promises of the checkpoint")

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        """The one checkpoint of a sidecar, every key in its place; or what stands against believing it."""
        source = Source.from_bytes(path, data)
        sidecar = CommitSidecar(source)
        faults = tuple(fault for fault in examine(sidecar, _RULES, schemas()) if _counts(fault, path))
        if sidecar.root is None or faults:
            return faults
        values = cast("Mapping[str, Json]", sidecar.root.plain())
        stream = stream_named(self.name, str(values["run_id"]), str(values["milestone_index"]))
        return (Foreign(self.name, stream, values),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """A sidecar is one checkpoint."""
        (checkpoint,) = checkpoints
        return sidecar_bytes(checkpoint.values)


def _counts(fault: Fault, path: str) -> bool:
    """What only concerns how the text is laid out, or only warns, does not; a name says which commit it is only in its
    own folder."""
    if fault.code in _WARNINGS:
        return False
    if fault.code == "sidecar_sha_mismatch" and kind_of(path) != "commit_sidecar":
        return False
    return fault.fix is None or not fault.fix.safe


_RULES = rules_for(CommitSidecar.kind)
_WARNINGS = frozenset(rule.code() for rule in _RULES if rule.severity != "error")
BRIDGE: Bridge = CommitBridge()
