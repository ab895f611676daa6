"""What stands in records, read back to whole contents; a bounded memory of the last ones for all threads of a saver."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from workpacket.runtime.errors import LogDamaged
from workpacket.runtime.langgraph.history import PayloadRecord
from workpacket.runtime.langgraph.parcels import unpacked
from workpacket.runtime.stores.contract import Store

REMEMBERED = 64 * 1024 * 1024  # bytes


@dataclass(slots=True)
class ThreadContents:
    store: Store
    _known: OrderedDict[tuple[str, int], bytes] = field(default_factory=OrderedDict)
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, records: Mapping[int, PayloadRecord], record: PayloadRecord) -> bytes:
        """The content of a record, for which those it rests on are read as well, each no longer than it is needed."""
        made: dict[int, bytes] = {}
        waiting = [record]
        while waiting:
            asked = waiting[-1]
            needed = [records[origin] for origin in asked.sources if origin in records]
            if len(needed) < len(asked.sources):
                raise LogDamaged(asked.event.stream, asked.event.version, "what it rests on was deleted")
            known = self._recall(asked)
            if known is None:
                missing = [one for one in needed if one.origin not in made]
                if missing:
                    waiting += reversed(missing)
                    continue
                known = self._read(asked, [made[one.origin] for one in needed])
                self.remember(asked, known)  # a list of checkpoints, newest first, wants each of them next
            waiting.pop()
            made[asked.origin] = known
            still = {origin for one in waiting for origin in one.sources} | {record.origin}
            for origin in [origin for origin in made if origin not in still]:
                del made[origin]
        return made[record.origin]

    def _read(self, record: PayloadRecord, sources: list[bytes]) -> bytes:
        payload = self.store.payload(record.event)
        if payload is None:
            raise LogDamaged(record.event.stream, record.event.version, "it should have a payload")
        return unpacked(payload, sources)

    def remember(self, record: PayloadRecord, content: bytes) -> None:
        with self._lock:
            self._forget((record.event.stream, record.event.version))
            self._known[record.event.stream, record.event.version] = content
            self._size += len(content)
            while self._size > REMEMBERED:
                self._forget(next(iter(self._known)))

    def forget(self, record: PayloadRecord) -> None:
        with self._lock:
            self._forget((record.event.stream, record.event.version))

    def _forget(self, key: tuple[str, int]) -> None:
        self._size -= len(self._known.pop(key, b""))

    def _recall(self, record: PayloadRecord) -> bytes | None:
        with self._lock:
            key = record.event.stream, record.event.version
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)
