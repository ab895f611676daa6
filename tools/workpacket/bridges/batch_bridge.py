"""`checkpoint.yaml` of batch scopes, between its file and the log: every key is kept, known or not.

Of a scope that this store moves itself, what is exported is the checkpoint as it stands now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from workpacket.bridges.batch_facts import misfits
from workpacket.bridges.batch_state import KINDS, fold, folder_of, stream_of
from workpacket.bridges.foreign import Foreign
from workpacket.bridges.stream_log import records_of
from workpacket.documents.batch import BatchCheckpoint
from workpacket.documents.batch_writing import (
    BatchView,
    Values,
    Words,
    brought_up,
    canonical,
    differences,
    document_of,
    view_of,
)
from workpacket.model.canonical import Json
from workpacket.runtime.stores.contract import Store
from workpacket.text.node import Plain
from workpacket.text.source import Fault, Source


class BatchBridge:
    name = "batch"
    lossy: tuple[str, ...] = (
        "comments",
        "how values are quoted and laid out",
        "of a scope moved by `workpacket batch`: keys that were changed by hand since the file was taken into the log",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        document = BatchCheckpoint(Source.from_bytes(path, data))
        checkpoint = document.at("checkpoint")
        if document.root is None or document.faults:
            return tuple(document.faults)
        if checkpoint is None or not checkpoint.mapping:
            return (Fault("field_missing", 0, 0, "here is no mapping `checkpoint`"),)
        faults = tuple(misfits(document))
        if faults:
            return faults
        folder = path.rpartition("/")[0] or (document.name.value if document.name is not None else "")
        return (Foreign(self.name, stream_of(folder), _values(document)),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        return canonical(cast("Plain", dict(checkpoint.values)))

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        stream = f"{self.name}/{key}"
        if store.head(stream) is None:
            return ()
        state = fold(records_of(store, stream, KINDS))
        stated = cast("Values", dict(state.stated)) if state.stated is not None else None
        if stated is None or state.view != state.stated_view:
            stated = brought_up(stated, folder_of(stream), state.view, Words({}, {}))
        return (Foreign(self.name, stream, cast("dict[str, Json]", stated)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether they say the same of the work; a note, titles and who reviews belong to whoever writes them."""
        return not differences(_view(held), _view(found))


BRIDGE = BatchBridge()


def _values(document: BatchCheckpoint) -> dict[str, Json]:
    plain = document.root.plain() if document.root is not None else None
    return cast("dict[str, Json]", plain)


def _view(checkpoint: Foreign) -> BatchView:
    return view_of(document_of(cast("Plain", dict(checkpoint.values))))
