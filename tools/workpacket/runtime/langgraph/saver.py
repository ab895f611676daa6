"""`WorkpacketSaver`: a LangGraph checkpointer on any of our stores.

    with WorkpacketSaver.open() as saver:            # this project's store, a path, or a postgresql:// URL
        graph = builder.compile(checkpointer=saver)

A thread is a stream of the log (`thread`), and a checkpoint is one record with a payload that is a patch against its
parent (`parcels`). Deleting or pruning erases payloads; the hash chain remains intact, and
`workpacket runtime runs verify` still passes.

First, remaining records that depend on a removed one are rewritten in full; then payloads are erased. Each call is one
append, so that a crash leaves the thread either unchanged or as requested; the next writer of the thread erases
payloads that a crash left behind.

A channel that LangGraph itself stores as deltas (`DeltaChannel`) is assembled from the writes of its ancestors. `prune`
keeps those ancestors, and deleting the run that made them is refused, because the loss would not be detected.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from random import random
from types import TracebackType
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from workpacket.runtime.errors import RunBlocked, RuntimeFault, StoreUnavailable, VersionConflict
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.langgraph.parcels import (
    CheckpointParts,
    Typed,
    Write,
    checkpoint_bytes,
    likely_places,
    packed,
    renamed,
    task_writes,
    writes_bytes,
)
from workpacket.runtime.langgraph.reader import ReadingSaver, config_of, named
from workpacket.runtime.langgraph.thread import (
    CHECKPOINT,
    DELETED,
    STRIDE,
    WRITES,
    CheckpointPlace,
    NewRecord,
    OlderId,
    PayloadRecord,
    Saved,
    Thread,
    ThreadHistory,
    WaitingWrites,
    run_mark,
    thread_of,
)
from workpacket.runtime.records.events import NewEvent
from workpacket.runtime.records.redaction import plain_payload
from workpacket.runtime.runtime import Runtime, Settings

Parts = Callable[[Thread, Saved], CheckpointParts]
# Each try fails only because another writer succeeded, so the writers together always advance.
TRIES = 100
COUNTERS = "counters_since_delta_snapshot"  # LangGraph's name for the channels that it stores as deltas


def remove(thread: Thread, choose: Callable[[], Set[CheckpointPlace]], reason: str) -> None:
    """Delete the checkpoints that `choose` selects and the writes after them, and erase their payloads."""
    for _ in range(TRIES):
        history = thread.catch_up()
        doomed = choose()
        if not doomed:
            return thread.erase()
        gone = {record.origin: record for place in doomed for record in history.records_of(place)}
        kept = [r for r in history.records.values() if r.origin not in gone and not gone.keys().isdisjoint(r.sources)]
        erased = sorted(record.event.version for record in (*gone.values(), *kept))
        data: dict[str, Any] = {
            "checkpoints": [list(place) for place in sorted(doomed)], "records": erased,
            "reason": reason, "by": thread.pen.actor,
        }  # fmt: skip
        news = (*(_whole(thread, record) for record in kept), thread.pen.new(DELETED, data))
        try:
            thread.append(*news, expected=history.version)
        except VersionConflict:
            continue
        for record in gone.values():
            thread.pen.contents.forget(record)
        return thread.erase()
    raise StoreUnavailable(f"{thread.stream}: another writer wrote first, {TRIES} times in a row", code="store_busy")


def everything(thread: Thread) -> Set[CheckpointPlace]:
    return set(thread.history.saved) | set(thread.history.writes)


def of_runs(thread: Thread, marks: Set[str], parts: Parts, serde: SerializerProtocol) -> Set[CheckpointPlace]:
    """Return the checkpoints of these runs. Refuse if any remaining checkpoint could not be assembled without them."""
    history = thread.history
    doomed = {place for place, saved in history.saved.items() if saved.run in marks}
    for place in history.saved.keys() - doomed if doomed else ():
        lost = doomed & set(_delta_ancestors(thread, place, parts, serde))
        if lost:
            raise RunBlocked(
                f"{thread.stream}: checkpoint {place.id} depends on data that {min(lost).id} wrote to a delta channel",
                code="thread_needs_run",
                details={"stream": thread.stream, "checkpoint": place.id, "needed": min(lost).id},
            )
    return doomed


def all_but_latest(thread: Thread, parts: Parts, serde: SerializerProtocol) -> Set[CheckpointPlace]:
    kept = set(thread.history.heads.values())
    for head in tuple(kept):
        kept |= set(_delta_ancestors(thread, head, parts, serde))
    return thread.history.saved.keys() - kept


def _delta_ancestors(
    thread: Thread, place: CheckpointPlace, parts: Parts, serde: SerializerProtocol
) -> Iterator[CheckpointPlace]:
    """Yield the ancestors from which LangGraph would assemble the delta channels of a checkpoint."""
    own = parts(thread, thread.history.saved[place])
    counters = serde.loads_typed(own.metadata).get(COUNTERS) or {}
    left = set(counters) - set(own.channels)
    for ancestor in thread.history.ancestors(place):
        if not left:
            return
        yield ancestor
        left -= set(parts(thread, thread.history.saved[ancestor]).channels)


def _whole(thread: Thread, record: PayloadRecord) -> NewEvent:
    """Return the record written in full, without dependencies on other records."""
    content = thread.pen.contents.of(thread.history.records, record)
    values = record.event.values()
    data = {name: values[name] for name in ("ns", "id", "parent", "run", "task") if name in values}
    payload = packed(content, (), thread.pen.nonce()).payload
    return thread.pen.new(record.event.type, {**data, "of": record.origin}, payload)


def copied(source: Thread, target: Thread) -> None:
    """Copy every record of the source, with new payloads, in one append."""
    records = sorted(source.catch_up().records.values(), key=lambda record: record.origin)
    there = target.catch_up()
    if there.saved or there.writes:
        raise VersionConflict(
            f"{target.stream} already has checkpoints; copy the thread to a new one", code="thread_moved",
            details={"stream": target.stream, "checkpoint": "", "parent": None, "head": None},
        )  # fmt: skip
    if not records:
        return
    target.erase()
    place_of = {record.origin: there.version + number for number, record in enumerate(records, start=1)}
    target.append(*(_copy(source, record, place_of) for record in records), expected=there.version)


def _copy(source: Thread, record: PayloadRecord, place_of: dict[int, int]) -> NewEvent:
    payload = source.pen.store.payload(record.event)
    assert payload is not None  # each of these records has one, or reading it would have raised an error
    data = {name: value for name, value in record.event.values().items() if name != "of"}
    parent = data.get("parent")
    if isinstance(parent, int):
        data["parent"] = place_of.get(parent, source.history.ids[parent])
    if record.sources:
        data["base"] = place_of[record.sources[0]]
        if len(record.sources) > 1:
            data["with"] = [place_of[origin] for origin in record.sources[1:]]
    return source.pen.new(record.event.type, data, renamed(plain_payload(payload), source.pen.nonce()))


GATHERING = 0.001  # seconds: less than a disk needs to make a record durable
WHOLE = 512  # writes of this many bytes are stored in full
DEEPEST = 4096  # the number of patches until a checkpoint is stored in full again, once they have grown to its size


class WorkpacketSaver(ReadingSaver):
    @classmethod
    def open(cls, where: str | Path | None = None, *, settings: Settings | None = None) -> WorkpacketSaver:
        """Open the saver on the store that `Runtime.open` would open. Close it, or use it in a `with` block."""
        return cls(Runtime.open(where, settings).store, settings=settings)

    def __enter__(self) -> WorkpacketSaver:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.store.close()

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version: a whole number in our own threads, a string of the same form in a thread from
        another saver.

        The random part distinguishes versions that one channel gets on two branches; InMemorySaver, SqliteSaver and
        PostgresSaver write the same form, so a thread can return to them.
        """
        if not isinstance(current, str):
            return super().get_next_version(current, channel)
        number = current.partition(".")[0]
        if not number.isdecimal():
            raise RuntimeFault(
                f"the channel version {current!r} does not begin with a number, so the next version is unknown",
                code="thread_version_invalid",
                hint="continue the thread with the saver that wrote the version, or copy the thread's state into a "
                "new thread",
            )
        return f"{int(number) + 1:032}.{random():016}"  # noqa: S311  # tells branches apart, guards nothing

    # ---- writing -------------------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, namespace, before = named(config)
        place = CheckpointPlace(self.cleaner.name(namespace), self.cleaner.name(checkpoint["id"]))
        parent = None if before is None else str(self.cleaner.name(before))  # an OlderId is not stored as such
        # LangGraph copies the first checkpoint of a thread as a second root, which it calls a fork.
        branches = isinstance(before, OlderId) or (before is None and metadata.get("source") == "fork")
        described = get_serializable_checkpoint_metadata(config, metadata)
        thread = self.thread(thread_id)
        with thread.lock:
            for _ in range(TRIES):
                history = thread.catch_up()
                thread.erase()
                thread.require_successor(place, parent, branches=branches)
                base = None if parent is None else history.saved.get(CheckpointPlace(place.namespace, parent))
                content = self._content(thread, base, checkpoint, described, new_versions)
                known = history.saved.get(place)
                if known is not None and self.pen.contents.of(history.records, known.record) == content:
                    break
                # A present parent is named by its record: an id is long, and every child would repeat it.
                data = _placed(place) | {"parent": parent if base is None else base.record.origin}
                if "run_id" in described:
                    data["run"] = run_mark(described["run_id"])
                try:
                    self._store(thread, data, content, base)
                except VersionConflict:
                    continue
                thread.put_done(place, parent)
                thread.versions = history.version, dict(checkpoint["channel_versions"])
                break
            else:
                raise StoreUnavailable(f"{thread.stream}: another writer wrote first, {TRIES} times", code="store_busy")
        return config_of(thread_id, namespace, checkpoint["id"])

    def _content(
        self,
        thread: Thread,
        base: Saved | None,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> bytes:
        """Serialize the checkpoint without secrets. An unchanged channel is not serialized again.

        Nor is it lost if LangGraph omits its value, as it does with the snapshot of a `DeltaChannel`: each version of a
        channel has exactly one value.
        """
        before = None if base is None else self._parts(thread, base)
        old = {} if before is None or base is None else self._versions(thread, base, before)
        known = {} if before is None else before.channels
        versions = checkpoint["channel_versions"]
        channels = {
            name: value
            for name, value in known.items()
            if name in old and name not in new_versions and old[name] == versions.get(name)
        }
        dumped = self.serde.dumps_typed
        changed = {name: dumped(value) for name, value in checkpoint["channel_values"].items() if name not in channels}
        rest = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        cleaned = self.cleaner.metadata(metadata)
        structure, described = dumped(rest), dumped(cleaned)
        asked = [(value, known.get(name)) for name, value in changed.items()]
        if not self.cleaner.has_plain_names(rest):
            asked.append((structure, None))
        # The checkpoints of a run differ in the number of their step.
        numbered = type(metadata.get("step")) is int
        apart_from_step = dumped({**cleaned, "step": 0}) if numbered else None
        if apart_from_step is None or apart_from_step != thread.described:
            asked.append((described, None))
        if self.cleaner.are_plain(*asked):
            thread.described = apart_from_step
        else:
            structure, described = self.cleaner.typed(structure), self.cleaner.typed(described)
            changed = {name: self._state(name, value, known.get(name)) for name, value in changed.items()}
        return checkpoint_bytes(CheckpointParts(structure, described, channels | changed))

    def _versions(self, thread: Thread, base: Saved, parts: CheckpointParts) -> Mapping[str, Any]:
        """Return the versions of the channels of a checkpoint, which are usually those that were stored last."""
        version, versions = thread.versions
        if version == base.record.event.version:
            return versions
        return cast("Mapping[str, Any]", self.serde.loads_typed(parts.structure).get("channel_versions", {}))

    def _state(self, channel: str, value: Typed, known: Typed | None = None) -> Typed:
        return self.cleaner.state(f"the channel {channel!r}", value, known)

    def _store(self, thread: Thread, data: dict[str, Any], content: bytes, base: Saved | None) -> None:
        """Append the checkpoint as a patch against its parent or, periodically, as a patch against an older checkpoint,
        or in full. Writes that wait to be stored are appended with it.
        """
        history = thread.history
        waiting = [*thread.waiting]
        writes = self._records_of(thread, waiting)
        sources = [] if base is None else self._sources(history, base, len(content))
        if base is not None and sources and sources[0][0] == base.record.origin:
            numbered = enumerate(writes, start=history.version + 1)
            sources += [(number, one.content) for number, one in numbered if one.place == base.record.place]
        texts = [text for _, text in sources]
        likely = likely_places(texts[0], content) if texts else ()
        payload, is_patch = packed(content, texts, self.pen.nonce(), likely)
        if is_patch and base is not None:
            data |= {"base": sources[0][0], "with": [origin for origin, _ in sources[1:]]}
            data |= {"depth": base.depth + 1, "grown": base.grown + len(payload)}
        made = NewRecord(CHECKPOINT, CheckpointPlace(data["ns"], data["id"]), data, payload, content)
        self._append(thread, *writes, made, expected=history.version)
        thread.settled(waiting)

    def _sources(self, history: ThreadHistory, base: Saved, size: int) -> builtins.list[tuple[int, bytes]]:
        """Return the stored records against which the next checkpoint is a patch, by origin; none if the patches have
        grown large compared with the whole.
        """
        depth = base.depth + 1
        if depth >= DEEPEST and base.grown >= size:
            return []
        if depth % STRIDE == 0 and base.anchor in history.records:
            found = [history.records[base.anchor]]
        else:
            found = [base.record, *history.writes.get(base.record.place, {}).values()]
        return [(record.origin, self.pen.contents.of(history.records, record)) for record in found]

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        dumped = [(channel, self.serde.dumps_typed(value)) for channel, value in writes]
        if not self.cleaner.are_plain(*((value, None) for _, value in dumped)):
            dumped = [(channel, self._state(channel, value)) for channel, value in dumped]
        news = [
            Write(WRITES_IDX_MAP.get(channel, number), channel, (value[0], bytes(value[1])))
            for number, (channel, value) in enumerate(dumped)
        ]
        self.put_numbered(config, news, task_id, task_path, seconds=GATHERING)

    def put_numbered(
        self, config: RunnableConfig, news: Sequence[Write], task_id: str, task_path: str, *, seconds: float = 0
    ) -> None:
        """Store writes whose values are already serialized and searched. They may wait this long for a checkpoint or
        other writes, to be stored in one append with them; the call returns when they are durable.
        """
        thread_id, namespace, wanted = named(config)
        place = CheckpointPlace(self.cleaner.name(namespace), self.cleaner.name(str(wanted)))
        mine = WaitingWrites(place, self.cleaner.name(task_id), self.cleaner.redactor.clean_text(task_path), news)
        thread = self.thread(thread_id)
        with thread.lock, thread.gathering(mine, seconds):
            if not mine.settled:
                thread.catch_up()
                waiting = [*thread.waiting]
                records = self._records_of(thread, waiting)
                if records:
                    self._append(thread, *records)
                thread.settled(waiting)
        if mine.refusal is not None:
            raise mine.refusal

    def _records_of(self, thread: Thread, waiting: Sequence[WaitingWrites]) -> builtins.list[NewRecord]:
        """Return the records that store these writes. Writes that are already stored need none."""
        history, records = thread.history, list[NewRecord]()
        for one in waiting:
            if one.place in history.gone:
                one.refusal = VersionConflict(
                    f"{thread.stream}: checkpoint {one.place.id} was deleted", code="thread_moved",
                    details={"stream": thread.stream, "checkpoint": one.place.id},
                )  # fmt: skip
                continue
            contents = [
                self.pen.contents.of(history.records, record)
                for record in history.writes.get(one.place, {}).values()
                if record.event.values()["task"] == one.task
            ]
            contents += [made.content for made in records if (made.place, made.data["task"]) == (one.place, one.task)]
            known: dict[int, Write] = {}
            for content in contents:
                stored = task_writes(content).writes
                known |= {write.number: write for write in stored if write.number < 0 or write.number not in known}
            added = [w for w in one.news if w.number not in known or (w.number < 0 and w != known[w.number])]
            if added:
                records.append(self._record_of(history, one, writes_bytes(one.path, added)))
        return records

    def _record_of(self, history: ThreadHistory, writes: WaitingWrites, content: bytes) -> NewRecord:
        """Return the record of a task's writes. Long writes are often copies from the checkpoint, and are stored as a
        patch against it.
        """
        saved = history.saved.get(writes.place) if len(content) > WHOLE else None
        texts = [] if saved is None else [self.pen.contents.of(history.records, saved.record)]
        payload, is_patch = packed(content, texts, self.pen.nonce())
        data = _placed(writes.place) | {"task": writes.task}
        if is_patch and saved is not None:
            data["base"] = saved.record.origin
        return NewRecord(WRITES, writes.place, data, payload, content)

    def _append(self, thread: Thread, *records: NewRecord, expected: int | None = None) -> None:
        news = []
        for record in records:
            kept = {name: value for name, value in record.data.items() if value not in (None, "", [], 0)}
            news.append(self.pen.new(record.type, kept, record.payload))
        stored = thread.append(*news, expected=expected)
        for record, event in zip(records, stored, strict=True):
            self.pen.contents.remember(thread.history.records[event.version], record.content)

    # ---- removing and copying ------------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        thread = self.thread(thread_id)
        with thread.lock:
            remove(thread, partial(everything, thread), "delete_thread")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        marks = {run_mark(run) for run in run_ids}
        for head in self.store.heads(THREADS) if marks else ():
            thread = self.thread(thread_of(head.stream))
            with thread.lock:
                remove(thread, partial(of_runs, thread, marks, self._parts, self.serde), "delete_for_runs")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"unknown strategy {strategy!r}; use 'keep_latest' or 'delete'")
        for thread_id in thread_ids:
            thread = self.thread(thread_id)
            with thread.lock:
                if strategy == "delete":
                    remove(thread, partial(everything, thread), "prune")
                else:
                    remove(thread, partial(all_but_latest, thread, self._parts, self.serde), "prune")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        source, target = self.thread(source_thread_id), self.thread(target_thread_id)
        first, second = sorted((source, target), key=lambda thread: thread.stream)
        with first.lock, second.lock:
            copied(source, target)


def _placed(place: CheckpointPlace) -> dict[str, Any]:
    return {"ns": place.namespace, "id": place.id}
