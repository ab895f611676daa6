"""Writing checkpoints of the log in a foreign form: the file as it was imported, or as a session stands now."""

from __future__ import annotations

from typing import NamedTuple

from workpacket.bridges.foreign import Bridge, Foreign
from workpacket.bridges.importing import OfRuns, Placed, imported
from workpacket.errors import WorkpacketError
from workpacket.runtime.stores.contract import Store


class Exported(NamedTuple):
    keys: tuple[str, ...]
    data: bytes


def export(store: Store, bridge: Bridge, key: str) -> Exported:
    """The file of one key, or of all that came out of one file: `key` may be empty or end before a '/'."""
    own = bridge.from_runs(store, key) if isinstance(bridge, OfRuns) and key else ()
    found = own or _imported(store, bridge, key)
    keys = tuple(dict.fromkeys(one.stream.partition("/")[2] for one in found))
    return Exported(keys, bridge.write(found))


def _imported(store: Store, bridge: Bridge, key: str) -> tuple[Foreign, ...]:
    prefix = f"{bridge.name}/{key}"
    found: list[Placed] = []
    for head in store.heads(prefix):
        if not key or head.stream == prefix or head.stream.startswith(f"{prefix}/"):
            found += _held(store, bridge, head.stream)
    if not found:
        raise WorkpacketError("checkpoint_missing", f"no {bridge.name} checkpoint {key!r} is in the log",
                              hint=f"workpacket import {bridge.name} PATH")  # fmt: skip
    files = sorted({one.file for one in found})
    if len(files) > 1:
        keys = sorted({one.checkpoint.stream.partition("/")[2] for one in found})
        raise WorkpacketError("checkpoint_missing", f"{key or bridge.name!r} stands for several files: "
                              f"{', '.join(files)}", hint=f"name one of {', '.join(keys)}")  # fmt: skip
    return tuple(one.checkpoint for one in sorted(found, key=lambda one: one.position))


def _held(store: Store, bridge: Bridge, stream: str) -> list[Placed]:
    """What the stream holds: as it stands now if this store moves such streams, else what was imported."""
    found = list(imported(store, stream))
    own = bridge.from_runs(store, stream.partition("/")[2]) if isinstance(bridge, OfRuns) else ()
    return [Placed(one, found[-1].file if found else stream, 0) for one in own] or found
