"""The bytes of a thread's events: a checkpoint with its channels, or the writes of a task. Pure.

The values are the output of LangGraph's serializer, with their types; pickle is refused. They are never interpreted, so
every serializer works. Small parts come first and the largest last: the largest is nearly always the part that grows,
and growth at the end is found fastest.

A payload is such content, in full or as a patch against other contents, plus a few random bytes: no two events share a
payload, so erasing one leaves the others intact.

A patch is a list: bytes are new, and a pair of numbers refers to a piece of the earlier content. It is found in one
pass that looks for the remaining text first where it should be, then a few bytes further on (a count that grew, a time,
an id), and only then anywhere, through an index of the pieces. A patch can always be made: anything that is not found
is new.

Short texts are not searched: a short part that changed is new as a whole. The patch is deflated with the beginnings of
the earlier contents as its dictionary, which finds the rest in less time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import ormsgpack

Operation = bytes | tuple[int, int]

PIECE = 16  # the shortest text worth referring to, and the width of the index
NEAR = 96  # how far the text may have shifted before the index is used
SMALL = 16 * 1024  # this much of each source is indexed at once; all of it only if more than REST is still new
REST = 8 * 1024
MOST = 4096  # pieces in one patch: text more fragmented than that counts as new
SHORT, PATIENCE = 4096, 16  # this many shorter pieces suggest that the texts are misaligned
BRIEF, SCRAP = 2048, 256  # a shorter part, or the shorter remainder of a part, is looked for only where it should be


def patch_of(sources: Sequence[bytes], new: bytes, likely: Sequence[tuple[int, int]] = ()) -> list[Operation]:
    """Return the patch that turns the sources, which count as one text, into `new`. `likely` maps the start of each
    part in the new text to its start in the old one, so that similar parts, such as messages of one conversation, are
    not confused.
    """
    old = b"".join(sources)
    if not old:
        return [new] if new else []
    return _Comparison(old, [len(source) for source in sources], new, likely).operations()


def patched(sources: Sequence[bytes], patch: Sequence[Operation | Sequence[int]]) -> bytes:
    old = b"".join(sources)
    made: list[bytes] = []
    for operation in patch:
        if isinstance(operation, bytes):
            made.append(operation)
        else:
            start, length = operation
            made.append(old[start : start + length])
    return b"".join(made)


class _Comparison:
    def __init__(self, old: bytes, lengths: Sequence[int], new: bytes, likely: Sequence[tuple[int, int]]) -> None:
        self.old, self.new = old, new
        self.lengths = lengths
        begins = [(0, 0), *likely]
        ends = [at for at, _ in likely] + [len(new)]
        self.parts = [(at, expected, end) for (at, expected), end in zip(begins, ends, strict=True) if at < end]
        self.index: dict[bytes, int] = {}
        self.repeated: set[bytes] = set()
        self.indexed = ""

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        kept = 0  # end of the new text covered so far
        for at, start, length in self._pieces():
            if at > kept:
                found.append(self.new[kept:at])
            last = found[-1] if found else b""
            if isinstance(last, tuple) and at == kept and sum(last) == start:
                found[-1] = last[0], last[1] + length
            else:
                found.append((start, length))
            kept = at + length
        if kept < len(self.new):
            found.append(self.new[kept:])
        return found

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield where in the new text a piece of the old text occurs, which piece, and its length."""
        count = 0
        for begin, likely, end in self.parts:
            at, expected, short, patience = begin, likely, 0, PATIENCE
            while at + PIECE <= end and count < MOST:
                count += 1
                if end - at <= (BRIEF if at == begin else SCRAP):
                    if self.new[at:end] == self.old[expected : expected + end - at]:
                        yield at, expected, end - at
                    break
                place = self._near(at, expected, end) or self._far(at, end)
                if place is None:
                    break
                length = common(self.old, place[1], self.new, place[0], end)
                short += length < SHORT
                if (
                    short > patience and end - at > REST
                ):  # for a short remainder, no better place is worth searching for
                    patience *= 2
                    place, length = self._better(at, end, place, length)
                at, start = place
                yield at, start, length
                at, expected = at + length, start + length

    def _better(self, at: int, end: int, place: tuple[int, int], length: int) -> tuple[tuple[int, int], int]:
        """After many short pieces, look for a better alignment: a string that occurs only once shows the shift."""
        other = self._far(at, min(end, at + SHORT), alone=True)
        if other is not None:
            reach = common(self.old, other[1], self.new, other[0], end)
            if reach > 2 * length:
                return other, reach
        return place, length

    def _near(self, at: int, expected: int, end: int) -> tuple[int, int] | None:
        if self.new[at : at + PIECE] == self.old[expected : expected + PIECE]:
            return at, expected
        steps = range(1, min(NEAR, end - at - PIECE + 1))
        for (
            step
        ) in steps:  # the same number of bytes, but different ones: in repetitive text, only this is the right place
            if self.new[at + step : at + step + PIECE] == self.old[expected + step : expected + step + PIECE]:
                return at + step, expected + step
        for step in steps:
            probe = self.new[at + step : at + step + PIECE]
            start = self.old.find(probe, max(0, expected - NEAR), expected + 2 * NEAR)
            if start >= 0:
                return at + step, start
        return None

    def _far(self, at: int, end: int, *, alone: bool = False) -> tuple[int, int] | None:
        self._make_index(everything=alone or end - at > REST)
        position, misses, last = at, 0, end - PIECE
        while position <= last:
            piece = self.new[position : position + PIECE]
            start = self.index.get(piece)
            if start is not None and not (alone and piece in self.repeated):
                while position > at and start > 0 and self.new[position - 1] == self.old[start - 1]:
                    position, start = position - 1, start - 1
                return position, start
            misses += 1
            position += 1 + (misses >> 12)  # entirely new text is not looked up byte by byte
        return None

    def _make_index(self, *, everything: bool) -> None:
        wanted = "all" if everything or sum(self.lengths) <= SMALL else "small"
        if self.indexed in {wanted, "all"}:
            return
        self.indexed = wanted
        begin = 0
        for length in self.lengths:
            end = begin + (length if wanted == "all" else min(length, SMALL))
            for start in range(begin, end - PIECE + 1, PIECE):
                piece = self.old[start : start + PIECE]
                if self.index.setdefault(piece, start) != start:
                    self.repeated.add(piece)
            begin += length


def common(old: bytes, start: int, new: bytes, at: int, end: int) -> int:
    """Return how far the two texts agree from this offset. The step size doubles, so memcmp does the comparing."""
    most = min(len(old) - start, end - at)
    known, step = 0, PIECE
    same: Callable[[int, int], bool] = lambda a, b: old[start + a : start + b] == new[at + a : at + b]  # noqa: E731
    while known < most:
        end = min(known + step, most)
        if same(known, end):
            known, step = end, step * 2
        elif step == 1 or end - known == 1:
            return known
        else:
            step = max(1, (end - known) // 2)
            while step > 1 and not same(known, known + step):
                step //= 2
    return known


Typed = tuple[str, bytes]
WORTH_IT = 0.75  # a patch larger than this share of the whole is not used
SMALLEST_TO_DEFLATE = 128
_PLAIN, _DEFLATED, _REFERRING = b"p", b"z", b"d"
# A small window needs little memory, and most of the time of deflating a short text is the time of preparing memory.
_WINDOW, _EFFORT, _MEMORY = -13, 1, 6
_FILLS = 1 << 13  # bytes in that window
_HEAD, _REST = 4096, 2048  # so much of the first source, and of all others, is in the dictionary


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
    """Return the name, type, start and end of each part."""
    begin = 4 + int.from_bytes(content[:4])
    found: list[tuple[str, str, int, int]] = []
    for name, kind, length in ormsgpack.unpackb(content[4:begin]):
        found.append((name, kind, begin, begin + length))
        begin += length
    return found


def likely_places(old: bytes, new: bytes) -> list[tuple[int, int]]:
    """Return where each part of a checkpoint begins, and where the part with the same name began in the previous
    checkpoint."""
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
    """Return the payload for this content: a patch against the sources if that is worthwhile. See `patch_of` for
    `likely`."""
    patch = patch_of(sources, content, likely) if sources else [content]
    new = sum(len(operation) if isinstance(operation, bytes) else 8 for operation in patch)
    is_patch = bool(sources) and (new <= _HEAD or new <= WORTH_IT * len(content))
    body = ormsgpack.packb(_flat(patch) if is_patch else content)
    if not SMALLEST_TO_DEFLATE <= len(body) <= _FILLS:
        return Packed(_closed([nonce, ormsgpack.unpackb(body)]), is_patch)
    deflating = zlib.compressobj(
        _EFFORT, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _dictionary(sources if is_patch else ())
    )
    deflated = deflating.compress(body) + deflating.flush()
    return Packed(_REFERRING + ormsgpack.packb([nonce, deflated]), is_patch)


def _dictionary(sources: Sequence[bytes]) -> bytes:
    return b"".join(sources[1:])[:_REST] + sources[0][:_HEAD] if sources else b""


def unpacked(payload: bytes, sources: Sequence[bytes]) -> bytes:
    content = _body(payload, sources)
    return content if isinstance(content, bytes) else patched(sources, _operations(content))


def _body(payload: bytes, sources: Sequence[bytes]) -> bytes | Sequence[Any]:
    """Return the content, or the patch that makes it from the sources."""
    content = _opened(payload)[1]
    if payload[:1] == _REFERRING:
        content = ormsgpack.unpackb(zlib.decompressobj(_WINDOW, _dictionary(sources)).decompress(content))
    return cast("bytes | Sequence[Any]", content)


def renamed(payload: bytes, nonce: str) -> bytes:
    """Return the same payload for another record."""
    content = _opened(payload)[1]
    return _REFERRING + ormsgpack.packb([nonce, content]) if payload[:1] == _REFERRING else _closed([nonce, content])


def brought(payload: bytes, sources: Sequence[bytes]) -> bytes:
    """Return the new pieces that the payload adds to its sources."""
    content = _body(payload, sources)
    return content if isinstance(content, bytes) else b"\0".join(one for one in content if isinstance(one, bytes))


def _closed(body: Sequence[Any]) -> bytes:
    plain = ormsgpack.packb(body)
    deflated = zlib.compress(plain) if len(plain) >= SMALLEST_TO_DEFLATE else plain
    return _DEFLATED + deflated if len(deflated) < len(plain) else _PLAIN + plain


def _opened(payload: bytes) -> Sequence[Any]:
    """Return the nonce, and the content or patch; or the nonce, and what was deflated with a dictionary."""
    plain = zlib.decompress(payload[1:]) if payload[:1] == _DEFLATED else payload[1:]
    return cast("Sequence[Any]", ormsgpack.unpackb(plain))


def _flat(patch: Sequence[Operation]) -> list[Any]:
    """Flatten the pairs; in the result, a number marks the beginning of a pair."""
    flat: list[Any] = []
    for operation in patch:
        flat += [operation] if isinstance(operation, bytes) else operation
    return flat


def _operations(flat: Sequence[Any]) -> list[Operation]:
    items = iter(flat)
    return [item if isinstance(item, bytes) else (item, next(items)) for item in items]
