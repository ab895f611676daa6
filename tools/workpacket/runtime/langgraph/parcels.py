"""What an event of a thread holds, as bytes: a checkpoint with its channels, or the writes of a task.

The values are what LangGraph's serialiser made of them, with their type beside them; pickle is refused. Small parts
stand first and the largest, which is nearly always the one that grows, last: that is what `delta` finds quickest.

A payload is such a content, whole or as a patch on others, with a few bytes that nobody else has: so two events never
share a payload, and erasing what one of them held leaves the other alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import ormsgpack

from workpacket.runtime.langgraph.delta import Operation, patch_of, patched

Typed = tuple[str, bytes]
WORTH_IT = 0.75  # a patch larger than this part of the whole is not used
SMALLEST_TO_DEFLATE = 128
_PLAIN, _DEFLATED = b"p", b"z"


class CheckpointParts(NamedTuple):
    """`structure` is the checkpoint without the values of its channels."""

    structure: Typed
    metadata: Typed
    channels: Mapping[str, Typed]


class Write(NamedTuple):
    number: int
    channel: str
    value: Typed


class TaskWrites(NamedTuple):
    path: str
    writes: tuple[Write, ...]


def checkpoint_bytes(parts: CheckpointParts) -> bytes:
    channels = sorted(parts.channels.items(), key=lambda item: (len(item[1][1]), item[0]))
    named = [("", *parts.metadata), ("", *parts.structure), *((name, *value) for name, value in channels)]
    table = ormsgpack.packb([(name, kind, len(value)) for name, kind, value in named])
    return b"".join([len(table).to_bytes(4), table, *(value for _, _, value in named)])


def checkpoint_parts(content: bytes) -> CheckpointParts:
    metadata, structure, *channels = [(name, kind, content[begin:end]) for name, kind, begin, end in _table(content)]
    return CheckpointParts(structure[1:], metadata[1:], {name: (kind, value) for name, kind, value in channels})


def _table(content: bytes) -> list[tuple[str, str, int, int]]:
    """Name, type, beginning and end of each part."""
    begin = 4 + int.from_bytes(content[:4])
    found: list[tuple[str, str, int, int]] = []
    for name, kind, length in ormsgpack.unpackb(content[4:begin]):
        found.append((name, kind, begin, begin + length))
        begin += length
    return found


def likely_places(old: bytes, new: bytes) -> list[tuple[int, int]]:
    """Where each part of a checkpoint begins, and where the part of the same name began in the one before."""
    before: dict[tuple[str, int], int] = {}
    for number, (name, _, begin, _) in enumerate(_table(old)):
        before[name, min(number, 2)] = begin
    nowhere = len(old)
    return [
        (begin, before.get((name, min(number, 2)), nowhere))
        for number, (name, _, begin, end) in enumerate(_table(new))
        if end > begin
    ]


def writes_bytes(path: str, writes: Sequence[Write]) -> bytes:
    return ormsgpack.packb([path, [(write.number, write.channel, *write.value) for write in writes]])


def task_writes(content: bytes) -> TaskWrites:
    path, writes = ormsgpack.unpackb(content)
    return TaskWrites(path, tuple(Write(number, channel, (kind, value)) for number, channel, kind, value in writes))


class Packed(NamedTuple):
    payload: bytes
    is_patch: bool


def packed(content: bytes, sources: Sequence[bytes], nonce: str, likely: Sequence[tuple[int, int]] = ()) -> Packed:
    """The payload of a content: a patch on the sources if that is worth it. For `likely` see `delta`."""
    patch = patch_of(sources, content, likely) if sources else [content]
    new = sum(len(operation) if isinstance(operation, bytes) else 8 for operation in patch)
    is_patch = bool(sources) and new <= WORTH_IT * len(content)
    return Packed(_closed([nonce, _flat(patch) if is_patch else content]), is_patch)


def unpacked(payload: bytes, sources: Sequence[bytes]) -> bytes:
    _, content = _opened(payload)
    return content if isinstance(content, bytes) else patched(sources, _operations(content))


def renamed(payload: bytes, nonce: str) -> bytes:
    """The same payload for another record."""
    return _closed([nonce, _opened(payload)[1]])


def brought(payload: bytes) -> bytes:
    """What the payload adds to what it rests on, piece after piece."""
    content = _opened(payload)[1]
    return content if isinstance(content, bytes) else b"\0".join(one for one in content if isinstance(one, bytes))


def _closed(body: Sequence[Any]) -> bytes:
    plain = ormsgpack.packb(body)
    deflated = zlib.compress(plain) if len(plain) >= SMALLEST_TO_DEFLATE else plain
    return _DEFLATED + deflated if len(deflated) < len(plain) else _PLAIN + plain


def _opened(payload: bytes) -> Sequence[Any]:
    plain = zlib.decompress(payload[1:]) if payload[:1] == _DEFLATED else payload[1:]
    return cast("Sequence[Any]", ormsgpack.unpackb(plain))


def _flat(patch: Sequence[Operation]) -> list[Any]:
    """Pairs without a list around each: a number begins one."""
    flat: list[Any] = []
    for operation in patch:
        flat += [operation] if isinstance(operation, bytes) else operation
    return flat


def _operations(flat: Sequence[Any]) -> list[Operation]:
    items = iter(flat)
    return [item if isinstance(item, bytes) else (item, next(items)) for item in items]
