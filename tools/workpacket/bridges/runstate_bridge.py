"""Snapshots of runs, `state.json`, and their event logs, `timeline.jsonl`, as other tools keep them.

A snapshot without `schema_version` is a legacy one; it is read like one of "1.0.0" and written as one. A newer version
is refused: what it means by its fields is not known here. The events of a timeline are carried over line by line; their
run is the one that the first of them names, else the folder of the file. A run of this store is written as a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from workpacket.bridges.foreign import Foreign, stream_named
from workpacket.bridges.importing import alike
from workpacket.bridges.runstate_fields import LEGACY, SCHEMA_VERSION, TIMELINE, faults_of, is_newer
from workpacket.bridges.runstate_snapshot import snapshot
from workpacket.model.canonical import Json
from workpacket.runtime.resuming.observations import Observations
from workpacket.runtime.resuming.observe import read_state
from workpacket.runtime.stores.contract import Store
from workpacket.text.fault import Fault
from workpacket.text.json_strict import load_json
from workpacket.text.limits import DATA, REGISTER
from workpacket.text.loaded import unreadable
from workpacket.text.node import Node
from workpacket.text.source import Source


class RunStateBridge:
    name = "runstate"
    lossy: tuple[str, ...] = (
        "that a snapshot was a legacy one, without schema_version",
        "spacing and the order of keys",
        "blank lines of a timeline",
        "of a run of this store: its steps, effects and cursors",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        source = Source.from_bytes(path, data)
        faults = unreadable(source.text, 0, REGISTER)
        if faults:
            return tuple(faults)
        if path.endswith(".jsonl") or _is_timeline(source.text):
            return self._timeline(source)
        loaded = load_json(source, DATA)
        if loaded.root is None or loaded.faults:
            return loaded.faults
        values = loaded.root.plain()
        if isinstance(values, dict) and is_newer(values):
            return (_newer(loaded.root),)
        wrong = tuple(faults_of(loaded.root, LEGACY, "a snapshot is a JSON object"))
        if wrong:
            return wrong
        snapshot = {**cast("Mapping[str, Json]", values), "schema_version": SCHEMA_VERSION}
        return (Foreign(self.name, stream_named(self.name, str(snapshot["run_id"])), snapshot),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """One snapshot, or the events of timelines."""
        first, *more = [checkpoint.values for checkpoint in checkpoints]
        if "seq" in first:
            return "".join(f"{_line(values)}\n" for values in (first, *more)).encode()
        if more:
            raise ValueError("a snapshot is one file")
        return f"{json.dumps(first, sort_keys=True, indent=2, ensure_ascii=False)}\n".encode()

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """The run of this name as it stands in the store."""
        from urllib.parse import unquote

        run = unquote(key)
        head = store.head(run)
        if head is None or "/timeline" in key:
            return ()
        state, _ = read_state(store, run, Observations())
        if state.status == "none":
            return ()
        return (Foreign(self.name, stream_named(self.name, run), snapshot(store, state)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        return alike(held, found)

    def _timeline(self, source: Source) -> tuple[Foreign, ...] | tuple[Fault, ...]:
        events: list[Mapping[str, Json]] = []
        faults: list[Fault] = []
        for line, start in _lines(source.text):
            loaded = load_json(Source(source.path, line), DATA)
            found = list(loaded.faults)
            if loaded.root is not None and not found:
                found += faults_of(loaded.root, TIMELINE, "an event is a JSON object")
                found += _out_of_order(loaded.root, events) if not found else ()
            faults += [Fault(one.code, one.start + start, one.end + start, one.message, one.hint) for one in found]
            if loaded.root is not None and not found:
                events.append(cast("Mapping[str, Json]", loaded.root.plain()))
        if faults or not events:
            return tuple(faults) or (Fault("checkpoint_malformed", 0, 0, "no event is in it"),)
        stream = stream_named(self.name, _run_of(events[0], source.path), "timeline")
        return tuple(Foreign(self.name, stream, event) for event in events)


BRIDGE = RunStateBridge()


def _is_timeline(text: str) -> bool:
    """Whether the first line is a whole event, as in a file that was renamed."""
    line = text.lstrip().split("\n", 1)[0]
    root = load_json(Source("", line), DATA).root
    return root is not None and "seq" in root.mapping


def _lines(text: str) -> Iterator[tuple[str, int]]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield line, start
        start += len(line) + 1


def _line(values: Mapping[str, Json]) -> str:
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def _newer(root: Node) -> Fault:
    node = root.get("schema_version") or root
    message = f"schema_version {node.value!r} is newer than {SCHEMA_VERSION}, the newest known here"
    return Fault("newer_schema", *node.span, message, "update workpacket")


def _out_of_order(root: Node, before: Sequence[Mapping[str, Json]]) -> Iterator[Fault]:
    """An event log that lost or repeats an event is not believed."""
    node = root.get("seq")
    if before and node is not None and node.value != cast(int, before[-1]["seq"]) + 1:
        yield Fault("checkpoint_malformed", *node.span, f"seq: {before[-1]['seq']} stands before it")


def _run_of(event: Mapping[str, Json], path: str) -> str:
    payload = event.get("payload")
    named = payload.get("run_id") if isinstance(payload, Mapping) else None
    if isinstance(named, str) and named:
        return named
    return path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2] or "unnamed"
