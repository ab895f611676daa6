"""A small store whose file is damaged in every way, and the judgement: detected, harmless, or (never) believed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.events import Event, IndexEntry, NewEvent
from workpacket.runtime.stores.contract import Append, Store
from workpacket.runtime.stores.sqlite.store import SQLiteStore
from workpacket.runtime.testing import Writer

KINDS = ("runs", "checkpoints", "effects")


@dataclass(frozen=True)
class Truth:
    """What was acknowledged."""

    streams: dict[str, list[Event]]
    payloads: dict[str, bytes]
    entries: set[IndexEntry]
    files: dict[str, bytes]


def small_store(folder: Path, *, in_wal: bool) -> Truth:
    """Three streams in pages of 512 bytes; with `in_wal` the last events are in the write-ahead log only."""
    path = folder / "runs.db"
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA page_size = 512")
    raw.execute("VACUUM")
    raw.close()
    store = SQLiteStore(path)
    for number in range(3):
        writer = Writer(f"w{number}", f"run@{number}")
        store.append(writer.request("run.started", "checkpoint", "step.completed", key=f"k{number}"))
    store.append(Append("run@0", (NewEvent("effect.started", '{"effect":"e"}'),), "late", 1, "a", 1, 2))
    if not in_wal:
        store.close()
        store = SQLiteStore(path)
    truth = Truth(
        {head.stream: list(store.read(head.stream)) for head in store.heads()},
        {event.payload: store.payload(event) or b"" for e in _all(store) for event in [e] if event.payload},
        {entry for kind in KINDS for entry in store.entries(kind)},
        {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith("-shm")},
    )
    store.close()
    return truth


def _all(store: Store) -> Iterator[Event]:
    for head in store.heads():
        yield from store.read(head.stream)


@contextmanager
def quick_folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def judged(folder: Path, truth: Truth, name: str, damaged: bytes) -> str:
    """'detected' or 'harmless'; an AssertionError if something false was believed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file, content in truth.files.items():
        (folder / file).write_bytes(damaged if file == name else content)
    try:
        store = SQLiteStore(folder / "runs.db")
    except RuntimeFault:
        return "detected"
    try:
        return _read_everything(store, truth)
    finally:
        store.close()


def _read_everything(store: SQLiteStore, truth: Truth) -> str:
    detected = False
    for stream, events in truth.streams.items():
        try:
            head = store.head(stream)
            read = list(store.read(stream))
            assert read == events, f"believed {read} for {events}"
            assert head is not None
            assert head.hash == events[-1].hash
        except RuntimeFault:
            detected = True
    for stream, events in truth.streams.items():
        for event in events:
            try:
                assert store.payload(event) == (truth.payloads[event.payload] if event.payload else None)
            except RuntimeFault:
                detected = True
        try:
            latest = store.latest("checkpoints", stream)
            assert latest is None or latest in events
        except RuntimeFault:
            detected = True
    try:
        assert {head.stream for head in store.heads()} <= set(truth.streams)
        assert {entry for kind in KINDS for entry in store.entries(kind)} <= truth.entries
    except RuntimeFault:
        detected = True
    return "detected" if detected else "harmless"


def damages(content: bytes, step: int, bits: tuple[int, ...]) -> Iterator[bytes]:
    """The content with one bit flipped, for each of these bits of every `step`-th byte."""
    for position in range(0, len(content), step):
        for bit in bits:
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            yield bytes(changed)


def truncations(content: bytes, step: int) -> Iterator[bytes]:
    for length in range(0, len(content), step):
        yield content[:length]
