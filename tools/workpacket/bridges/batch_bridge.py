"""`checkpoint.yaml` of batch scopes, between its file and the log: every key is kept, known or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from workpacket.bridges.batch_records import stream_of
from workpacket.bridges.foreign import Foreign
from workpacket.documents.batch import BatchCheckpoint
from workpacket.documents.batch_writing import canonical
from workpacket.text.fault import Fault
from workpacket.text.node import Plain
from workpacket.text.source import Source


class BatchBridge:
    name = "batch"
    lossy: tuple[str, ...] = ("comments", "how values are quoted and laid out")

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        document = BatchCheckpoint(Source.from_bytes(path, data))
        checkpoint = document.at("checkpoint")
        if document.root is None or document.faults:
            return document.faults
        if checkpoint is None or not checkpoint.mapping:
            return (Fault("field_missing", 0, 0, "here is no mapping `checkpoint`"),)
        plain = document.root.plain()
        folder = path.rpartition("/")[0] or (document.name.value if document.name is not None else "")
        return (Foreign(self.name, stream_of(folder), cast("dict[str, Plain]", plain)),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        return canonical(cast("Plain", dict(checkpoint.values)))


BRIDGE = BatchBridge()
