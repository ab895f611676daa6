"""The event log of a pipeline: a file of JSON lines that several processes append to.

What was acknowledged is durable: a line is written under a lock and synced before `append` returns. A line that a dying
writer left without its end was never acknowledged. It is moved to `<log>.quarantine` before the next append, so that it
cannot swallow the line written behind it; where another writer did glue a line to it, that line is read all the same.
Any other line that is not JSON is damage: it may have been anything, and whoever depends on what stands there is told.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, StoreUnavailable
from workpacket.runtime.step.model import line_of
from workpacket.runtime.stores.sqlite.files import sync_folder

LONGEST_LINE = 256 * 1024
_MOST_BEGINNINGS = 1000  # where a line behind a torn one is looked for

_UNAVAILABLE = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.EROFS: "store_read_only",
                errno.EACCES: "store_read_only", errno.EPERM: "store_read_only"}  # fmt: skip


class LogLine(NamedTuple):
    number: int
    event: Mapping[str, Json]


class Damage(NamedTuple):
    """A line, or the beginning of one, that says nothing. `torn`: it was never acknowledged."""

    number: int
    torn: bool
    text: bytes

    def __str__(self) -> str:
        what = "was not written to its end" if self.torn else "is not JSON"
        return f"line {self.number} {what} ({len(self.text)} bytes)"


class LogContents(NamedTuple):
    """What a log holds, in order; `tail` is what stands behind its last whole line."""

    lines: tuple[LogLine, ...] = ()
    damaged: tuple[Damage, ...] = ()
    tail: bytes = b""


class StepLog:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.quarantine = Path(f"{os.fspath(path)}.quarantine")

    def read(self) -> LogContents:
        """All of it. A log that does not exist is empty."""
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return parsed(file.read())
        except FileNotFoundError:
            return LogContents()
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def append(
        self, *events: Mapping[str, Json], unless: Callable[[LogContents], None] | None = None
    ) -> tuple[Damage, ...]:
        """Write the events, all at once; gives what was quarantined before.

        `unless` is shown the log as it is while nobody else can write, and raises if the events may not be added.
        """
        written = "".join(f"{line_of(event)}\n" for event in events).encode("ascii")
        if len(written) > LONGEST_LINE:
            raise ValueError(f"{len(written):,} bytes are more than a line of a log may have ({LONGEST_LINE:,})")
        with self._locked() as descriptor:
            log = parsed(_whole(descriptor))
            if unless is not None:
                unless(log)
            end = self._heal(descriptor, log.tail)
            try:
                _write(descriptor, written)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)  # nothing half-written stays: nothing of it was acknowledged
                raise
            return tuple(damage for damage in log.damaged if damage.torn)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if new:
                    sync_folder(self.path.parent)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def _heal(self, descriptor: int, tail: bytes) -> int:
        """Bring the log to the end of its last whole line; gives its size."""
        size = os.fstat(descriptor).st_size
        if not tail:
            return size
        if _event(tail) is not None:
            _write(descriptor, b"\n")  # a whole line that lacks only its end
            return size + 1
        record: dict[str, Json] = {
            "log": self.path.name,
            "offset": size - len(tail),
            "sha256": hashlib.sha256(tail).hexdigest(),
            "base64": base64.b64encode(tail).decode("ascii"),
        }
        with self.quarantine.open("ab") as file:
            file.write(f"{line_of(record)}\n".encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.quarantine.parent)
        os.ftruncate(descriptor, size - len(tail))
        return size - len(tail)


def parsed(data: bytes) -> LogContents:
    lines: list[LogLine] = []
    damaged: list[Damage] = []
    *whole, tail = data.split(b"\n")
    for number, text in enumerate([*whole, tail], start=1):
        if not text.strip():
            continue
        event = _event(text)
        if event is not None:
            lines.append(LogLine(number, event))
            continue
        lost, glued = _glued(text)
        damaged.append(Damage(number, glued is not None or number > len(whole), lost))
        if glued is not None:
            lines.append(LogLine(number, glued))
    return LogContents(tuple(lines), tuple(damaged), tail)


def _event(text: bytes) -> Mapping[str, Json] | None:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Json]", event) if isinstance(event, dict) else None


def _glued(text: bytes) -> tuple[bytes, Mapping[str, Json] | None]:
    """Take apart a torn beginning and the whole event that somebody wrote behind it."""
    start = 0
    for _ in range(_MOST_BEGINNINGS):
        start = text.find(b'{"', start + 1)
        event = _event(text[start:]) if start > 0 else None
        if event is not None and "event_type" in event:
            return text[:start], event
        if start < 0:
            break
    return text, None


def _whole(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, size, 0)
    if len(data) != size:
        raise LogDamaged("the event log", 0, f"{len(data)} of {size} bytes could be read")
    return data


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    code = _UNAVAILABLE.get(error.errno or 0, "storage_failed")
    return StoreUnavailable(f"{path}: {error.strerror}", code=code)
