"""Threads of LangGraph's own savers, taken over: from a `SqliteSaver` file or a `PostgresSaver` server.

The tables are read directly, in a transaction that cannot write, so the other saver need not be installed. Serialized
objects are copied without being deserialized: their classes need not be importable here, and no code from the source is
run. Each thread is built in memory and stored in one append: it is taken over as a whole, or not at all.

Checkpoints are put in the order of their ids, which LangGraph's savers use to find the newest one. A thread that is
already in the store is left as it is, so an import that was interrupted can be repeated.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import ormsgpack
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from workpacket.runtime.errors import LogDamaged, RuntimeFault, VersionConflict
from workpacket.runtime.langgraph.parcels import Typed, Write
from workpacket.runtime.langgraph.reader import SEARCHED, config_of
from workpacket.runtime.langgraph.saver import WorkpacketSaver
from workpacket.runtime.langgraph.thread import CheckpointPlace, OlderId, stream_of
from workpacket.runtime.runtime import Settings
from workpacket.runtime.stores.contract import Store
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.place import is_postgres, require_driver

OLDEST = 4  # the format of checkpoints since which the sends of a task are in a channel


class OpaqueSerializer(SerializerProtocol):
    """Copies serialized values: objects remain the bytes that they are."""

    def dumps_typed(self, obj: Any) -> Typed:
        if obj is None:
            return "null", b""
        if isinstance(obj, bytes | bytearray):
            return type(obj).__name__, bytes(obj)
        return "msgpack", ormsgpack.packb(obj, option=ormsgpack.OPT_NON_STR_KEYS)

    def loads_typed(self, data: Typed) -> Any:
        kind, content = data
        if kind not in SEARCHED:
            raise RuntimeFault(
                f"it contains a value of serializer type {kind!r}, which cannot be copied",
                code="newer_schema",
                hint="continue the thread with the saver that wrote it",
            )
        if kind == "msgpack":
            return ormsgpack.unpackb(content, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)
        return {"null": None, "bytes": content, "bytearray": bytearray(content)}[kind]


class ForeignCheckpoint(NamedTuple):
    namespace: str
    id: str
    parent: str | None
    checkpoint: Checkpoint
    metadata: CheckpointMetadata


class ForeignWrites(NamedTuple):
    """The writes of one task after a checkpoint."""

    namespace: str
    checkpoint: str
    task: str
    path: str
    writes: Sequence[Write]


class ForeignThreads(Protocol):
    def threads(self) -> Iterator[str]: ...

    def checkpoints(self, thread: str) -> Iterator[ForeignCheckpoint]:
        """Yield the checkpoints, oldest first."""
        ...

    def writes(self, thread: str) -> Iterator[ForeignWrites]: ...


class TakenOver(NamedTuple):
    """What happened to a thread: it is in `stream` now, or was left for the reason in `fault`."""

    thread: str
    stream: str
    checkpoints: int
    fault: RuntimeFault | None = None


_SERIALIZER = OpaqueSerializer()


def taken_over(
    source: ForeignThreads, store: Store, settings: Settings, only: Sequence[str] = ()
) -> Iterator[TakenOver]:
    """Take over all threads, or only those that are named. A thread that cannot be taken over does not stop the
    others."""
    there = [*source.threads()]
    for thread in only or there:
        stream = stream_of(settings.redactor.name(thread))
        try:
            if thread not in there:
                raise RuntimeFault("the source has no such thread", code="checkpoint_missing")
            if store.head(stream) is not None:
                raise _here_already(stream)
            count = _take_over(source, thread, stream, store, settings)
        except VersionConflict:  # someone else was faster, or its name was used before
            yield TakenOver(thread, stream, 0, _here_already(stream))
        except RuntimeFault as fault:
            yield TakenOver(thread, stream, 0, fault)
        except (ValueError, TypeError, LookupError) as error:  # rows that no saver writes
            yield TakenOver(thread, stream, 0, LogDamaged(stream, 0, f"the source is damaged: {error}"))
        else:
            yield TakenOver(thread, stream, count)


def _here_already(stream: str) -> RuntimeFault:
    return RuntimeFault(
        f"{stream} is in this store already, or was removed from it",
        code="view_conflict",
        hint=f"workpacket runtime runs tail {shlex.quote(stream)}",
    )


def _take_over(source: ForeignThreads, thread: str, stream: str, store: Store, settings: Settings) -> int:
    draft = MemoryStore()
    saver = WorkpacketSaver(draft, serde=_SERIALIZER, settings=settings)
    count = 0
    for count, found in enumerate(source.checkpoints(thread), start=1):  # noqa: B007  # the last number is the result
        _put(saver, thread, found)
    for writes in source.writes(thread):
        news = [one._replace(value=saver.cleaner.state(f"the channel {one.channel!r}", one.value))
                for one in writes.writes]  # fmt: skip
        config = config_of(thread, writes.namespace, writes.checkpoint)
        saver.put_numbered(config, news, writes.task, writes.path)
    events = [*draft.read(stream)]
    payloads = (draft.payload(event) for event in events)
    store.restore(events, [payload for payload in payloads if payload is not None])
    return count


def _put(saver: WorkpacketSaver, thread: str, found: ForeignCheckpoint) -> None:
    """Put a checkpoint after its parent, which may be an older one, or may have been pruned."""
    config = config_of(thread, found.namespace, OlderId(found.parent or ""))
    target = saver.thread(thread)
    if found.parent is None:
        del config["configurable"]["checkpoint_id"]
        if target.history.head(saver.cleaner.name(found.namespace)) is not None:
            target.restarts[saver.cleaner.name(found.namespace)] += 1
    else:
        parent = CheckpointPlace(saver.cleaner.name(found.namespace), saver.cleaner.name(found.parent))
        target.branches.add(parent)
    saver.put(config, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])


def checkpoint_in(content: Any, id_: str) -> Checkpoint:
    """Return the checkpoint that a row contains. An older format is refused: LangGraph changes it when its own saver
    reads it.
    """
    if not isinstance(content, Mapping) or content.get("id") != id_ or not isinstance(content.get("v"), int):
        raise ValueError("a checkpoint has a different id, or no format")
    if content["v"] < OLDEST:
        raise RuntimeFault(
            f"checkpoint {id_} has format {content['v']}, older than {OLDEST}",
            code="newer_schema",
            hint="run one turn of the thread with its own saver and a current LangGraph, then import it",
        )
    return cast("Checkpoint", content)


# ---- where they come from --------------------------------------------------------------------------------------------


@contextmanager
def threads_at(where: str) -> Iterator[ForeignThreads]:
    """Open a `SqliteSaver` file, or a `PostgresSaver` server, for reading."""
    if is_postgres(where):
        with _postgres(where) as source:
            yield source
        return
    path = Path(where)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN")
            yield SqliteThreads(connection)
        except sqlite3.Error as error:
            raise _unreadable(where, str(error)) from None


def _unreadable(where: str, why: str) -> RuntimeFault:
    return RuntimeFault(
        f"{where} cannot be read as the checkpoints of a LangGraph saver: {why}",
        code="checkpoint_missing",
        hint="name the file or URL that SqliteSaver or PostgresSaver uses",
    )


def _grouped(rows: Iterator[tuple[str, str, str, str, int, str, str | None, bytes | None]]) -> Iterator[ForeignWrites]:
    """Yield the writes of each task, from rows in the order of tasks."""
    last: ForeignWrites | None = None
    writes: list[Write] = []
    for namespace, checkpoint, task, path, number, channel, kind, value in rows:
        if last is None or (namespace, checkpoint, task, path) != last[:4]:
            if last is not None:
                yield last._replace(writes=writes)
            last, writes = ForeignWrites(namespace, checkpoint, task, path, ()), []
        writes.append(Write(number, channel, (kind or "null", bytes(value or b""))))
    if last is not None:
        yield last._replace(writes=writes)


class SqliteThreads:
    """The tables of `SqliteSaver` and `AsyncSqliteSaver`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(writes)")}
        self._path = "task_path" if "task_path" in columns else "''"

    def threads(self) -> Iterator[str]:
        rows = self._db.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")
        yield from (str(row[0]) for row in rows)

    def checkpoints(self, thread: str) -> Iterator[ForeignCheckpoint]:
        rows = self._db.execute(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints "
            "WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns",
            (thread,),
        )
        for namespace, checkpoint, parent, kind, content, metadata in rows:
            value = checkpoint_in(_SERIALIZER.loads_typed((kind or "", bytes(content))), checkpoint)
            described = cast("CheckpointMetadata", json.loads(metadata) if metadata is not None else {})
            yield ForeignCheckpoint(namespace, checkpoint, parent or None, value, described)

    def writes(self, thread: str) -> Iterator[ForeignWrites]:
        rows = self._db.execute(
            f"SELECT checkpoint_ns, checkpoint_id, task_id, {self._path}, idx, channel, type, value FROM writes "  # noqa: S608
            "WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id, 4, task_id, idx",
            (thread,),
        )
        yield from _grouped(rows)


@contextmanager
def _postgres(url: str) -> Iterator[ForeignThreads]:
    require_driver()
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield PostgresThreads(connection)
    except psycopg.Error as error:
        raise _unreadable("the server", str(error)) from None


class PostgresThreads:
    """The tables of `PostgresSaver` and `AsyncPostgresSaver`: values are kept by channel and version."""

    def __init__(self, connection: Any) -> None:
        self._db = connection

    def threads(self) -> Iterator[str]:
        rows = self._db.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id")
        yield from (str(row[0]) for row in rows.fetchall())

    def checkpoints(self, thread: str) -> Iterator[ForeignCheckpoint]:
        blobs = self._db.execute(
            "SELECT checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = %s", (thread,)
        )
        values = {(row[0], row[1], row[2]): (row[3], bytes(row[4] or b"")) for row in blobs if row[3] != "empty"}
        rows = self._db.execute(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints "
            "WHERE thread_id = %s ORDER BY checkpoint_id, checkpoint_ns",
            (thread,),
        )
        for namespace, id_, parent, content, metadata in rows:
            versions = content.get("channel_versions", {})
            places = {channel: (namespace, channel, str(version)) for channel, version in versions.items()}
            blobbed = {
                channel: _SERIALIZER.loads_typed(values[place]) for channel, place in places.items() if place in values
            }
            channels = {**(content.get("channel_values") or {}), **blobbed}
            checkpoint = checkpoint_in({**content, "channel_values": channels}, id_)
            yield ForeignCheckpoint(namespace, id_, parent or None, checkpoint, metadata)

    def writes(self, thread: str) -> Iterator[ForeignWrites]:
        rows = self._db.execute(
            "SELECT checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob FROM checkpoint_writes "
            "WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id, task_path, task_id, idx",
            (thread,),
        )
        yield from _grouped(rows)
