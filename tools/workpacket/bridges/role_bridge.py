"""Checkpoints of roles, `docs/progress/<feature>-<agent>.md`: every key of the front matter, and the text below it.

Of a role that this store moves itself, what is exported is the checkpoint as it stands now. A file without one of the
seven fields is refused, and so is one whose fields say that it is no checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from workpacket.bridges.foreign import Foreign
from workpacket.bridges.role_facts import FORM, KINDS, fields_of, fold, stream_of, unreadable_bytes
from workpacket.bridges.stream_log import records_of
from workpacket.documents.role_progress import KEYS, RoleProgress, body_of, canonical, front_of
from workpacket.model.canonical import Json
from workpacket.runtime.stores.contract import Store
from workpacket.text.node import Plain
from workpacket.text.source import Fault, Source

# What lies beside checkpoints and is known for what it is.
_BESIDE: Mapping[str, str] = {"summary": "summary", "cost_summary": "cost summary", "template": "template"}


class RoleBridge:
    name = FORM
    lossy: tuple[str, ...] = (
        "the digests of the files that a role named",
        "comments, quotes and layout of the front matter, and the order of keys behind the seven",
        "a byte order mark",
        "of a role moved by `workpacket progress`: what was written into the text by hand since it was imported",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        document = RoleProgress(Source.from_bytes(path, data))
        illegible = unreadable_bytes(document)
        if illegible is not None:
            return (illegible,)
        faults = tuple(document.faults) or tuple(_faults(document))
        return faults or (foreign_of(document),)

    def other_kind(self, path: str, data: bytes) -> str:
        """Not `other` and not an older form: those may be checkpoints that are broken, and are refused."""
        document = RoleProgress(Source.from_bytes(path, data))
        return "" if unreadable_bytes(document) is not None else _BESIDE.get(document.note, "")

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        front = cast("Mapping[str, Plain]", checkpoint.values["front"])
        return canonical(front, str(checkpoint.values["body"]))

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        stream = f"{FORM}/{key}"
        if store.head(stream) is None:
            return ()
        state = fold(records_of(store, stream, KINDS))
        return (Foreign(FORM, stream, _values(state.front, state.body)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether the seven fields are: the text and further keys belong to whoever writes them."""
        mine, theirs = (cast("Mapping[str, Json]", one.values["front"]) for one in (held, found))
        return fields_of(mine) == fields_of(theirs)


BRIDGE = RoleBridge()


def foreign_of(document: RoleProgress) -> Foreign:
    """The checkpoint of a file that is one."""
    front = front_of(document)
    feature, team, agent = fields_of(front)[:3]
    return Foreign(FORM, stream_of(feature, team, agent), _values(front, body_of(document)))


def _values(front: Mapping[str, Plain], body: str) -> dict[str, Json]:
    return {"front": cast("Json", dict(front)), "body": body}


def _faults(document: RoleProgress) -> list[Fault]:
    root = document.root
    if root is None or not document.has_front_matter:
        return [Fault("checkpoint_malformed", 0, 0, "here is no front matter, and so no checkpoint")]
    place = (root.start, root.start)
    missing = [key for key, value in zip(KEYS, fields_of(front_of(document)), strict=True) if not value.strip()]
    if missing:
        return [Fault("role_key_missing", *place, f"the checkpoint lacks {', '.join(missing)}")]
    if not document.is_checkpoint:
        return [Fault("checkpoint_malformed", *place, f"this is no checkpoint of a role but a {document.note}")]
    return []
