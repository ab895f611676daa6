"""The event log of a pipeline: a JSON Lines file that several processes append to.

Acknowledged events are durable: a line is written under a lock and synced before `append` returns. A line that a dying
writer left incomplete was never acknowledged. It is moved to `<log>.quarantine` before the next append, so that it
cannot swallow the next line; if another writer did append to it, that second line is still read. Any other line that is
not JSON is damage: the line could have been anything, and readers that depend on it get an error.

A checkpoint is a line, `json.dumps(event, sort_keys=True)`: an object with the nine fields of `StepCheckpointed`.
Our events also record the form of the inputs that was hashed (`input_hash_variant`), one hash per key, so that a
mismatch can name the keys, and the results of the earlier layers (`state`).

The state of one step is a pure fold over the lines: its checkpoints, spent tokens and answered questions. A damaged
line after the checkpoint to be used may have been a later checkpoint, or the record that its token is spent, so the
step does not continue past it.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, RunBlocked, StoreUnavailable
from workpacket.runtime.holders import is_certainly_alive, this_process
from workpacket.runtime.step.checkpoint import VARIANTS, ScopeRef, StepCheckpoint, Strictness
from workpacket.runtime.stores.sqlite.files import sync_folder

CHECKPOINTED = "StepCheckpointed"

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def event_of(checkpoint: StepCheckpoint) -> dict[str, Json]:
    event: dict[str, Json] = {
        "event_type": CHECKPOINTED,
        "mission_id": checkpoint.mission_id,
        "run_id": checkpoint.run_id,
        "step_id": checkpoint.step_id,
        "strictness": str(checkpoint.strictness),
        "scope_refs": [{"scope": ref.scope, "version_id": ref.version_id} for ref in checkpoint.scope_refs],
        "input_hash": checkpoint.input_hash,
        "cursor": checkpoint.cursor,
        "retry_token": checkpoint.retry_token,
        "timestamp": checkpoint.timestamp.isoformat(),
    }
    optional: dict[str, Json] = {
        "input_hash_variant": checkpoint.input_hash_variant,
        "input_hashes": dict(checkpoint.input_hashes),
        "inputs": dict(checkpoint.inputs),
        "state": dict(checkpoint.state),
    }
    return event | {name: value for name, value in optional.items() if value}


def line_of(event: Mapping[str, Json]) -> str:
    """Return the canonical line, without its line ending."""
    return json.dumps(event, sort_keys=True)


def is_checkpoint(event: Mapping[str, Json]) -> bool:
    return event.get("event_type") == CHECKPOINTED


def checkpoint_of(event: Mapping[str, Json]) -> StepCheckpoint:
    """Return the checkpoint in an event; raise ValueError, listing everything that is wrong with it."""
    wrong = [f"{name}: {why}" for name, why in problems(event)]
    if wrong:
        raise ValueError("; ".join(wrong))
    known: Any = event
    return StepCheckpoint(
        known["mission_id"],
        known["run_id"],
        known["step_id"],
        Strictness(known["strictness"]),
        tuple(ScopeRef(ref["scope"], ref["version_id"]) for ref in known["scope_refs"]),
        known["input_hash"],
        known["cursor"],
        known["retry_token"],
        moment_of(known["timestamp"]),
        known.get("input_hash_variant", ""),
        known.get("input_hashes", {}),
        known.get("inputs", {}),
        known.get("state", {}),
    )


def moment_of(text: str) -> datetime:
    """Parse a timestamp; one without an offset counts as UTC, as its writers intend."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def problems(event: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the fields of a `StepCheckpointed` event: the field, and why."""
    for name, (fits, what) in _FIELDS.items():
        if name not in event:
            yield name, "it is missing"
        elif not fits(event[name]):
            yield name, f"it must be {what}"
    for name, (fits, what) in _MORE_FIELDS.items():
        if name in event and not fits(event[name]):
            yield name, f"it must be {what}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_moment(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) > len("2026-02-16") and moment_of(value) is not None
    except ValueError:
        return False


def _are_refs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(ref, Mapping) and _is_text(ref.get("scope")) and _is_text(ref.get("version_id")) for ref in value
    )


def _are_hashes(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) and _HASH.match(one) for one in value.values())


_Fits = Callable[[Any], object]
_FIELDS: Mapping[str, tuple[_Fits, str]] = {
    "mission_id": (_is_text, "text"),
    "run_id": (_is_text, "text"),
    "step_id": (_is_text, "text"),
    "strictness": (lambda value: value in [one.value for one in Strictness], "off, medium or max"),
    "scope_refs": (_are_refs, "a list of {scope, version_id}"),
    "input_hash": (lambda value: isinstance(value, str) and _HASH.match(value), "a SHA-256 in hexadecimal"),
    "cursor": (_is_text, "text"),
    "retry_token": (lambda value: isinstance(value, str) and _UUID.match(value), "a UUID"),
    "timestamp": (_is_moment, "a date and time"),
}
_MORE_FIELDS: Mapping[str, tuple[_Fits, str]] = {
    "input_hash_variant": (lambda value: value in VARIANTS, "ascii or unicode"),
    "input_hashes": (_are_hashes, "a SHA-256 for each key"),
    "inputs": (lambda value: isinstance(value, Mapping), "a mapping"),
    "state": (lambda value: isinstance(value, Mapping), "a mapping"),
}


LONGEST_LINE = 256 * 1024
_MOST_BEGINNINGS = 1000  # the number of places to look for a line after a torn one

_UNAVAILABLE = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.EROFS: "store_read_only",
                errno.EACCES: "store_read_only", errno.EPERM: "store_read_only"}  # fmt: skip


class LogLine(NamedTuple):
    number: int
    event: Mapping[str, Json]


class Damage(NamedTuple):
    """A damaged line, or the beginning of a line. `torn` means that it was never acknowledged."""

    number: int
    torn: bool
    text: bytes

    def __str__(self) -> str:
        what = "is incomplete" if self.torn else "is not JSON"
        return f"line {self.number} {what} ({len(self.text)} bytes)"


class LogContents(NamedTuple):
    """The contents of a log, in order; `tail` is the text after its last complete line."""

    lines: tuple[LogLine, ...] = ()
    damaged: tuple[Damage, ...] = ()
    tail: bytes = b""


class StepLog:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.quarantine = Path(f"{os.fspath(path)}.quarantine")

    def read(self) -> LogContents:
        """Read the whole log. A missing log is empty."""
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
        """Append the events atomically; return what was quarantined first.

        `unless` is called with the log while no one else can write, and raises an error if the events must not be
        added.
        """
        written = "".join(f"{line_of(event)}\n" for event in events).encode("ascii")
        if len(written) > LONGEST_LINE:
            raise ValueError(f"{len(written):,} bytes exceed the limit for a log line ({LONGEST_LINE:,})")
        with self._locked() as descriptor:
            log = parsed(_whole(descriptor))
            if unless is not None:
                unless(log)
            end = self._heal(descriptor, log.tail)
            try:
                _write(descriptor, written)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)  # nothing incomplete is left, because none of it was acknowledged
                raise
            return tuple(damage for damage in log.damaged if damage.torn)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                # Without this, a crash could remove the name of a file whose content was synced.
                if new:
                    sync_folder(self.path.parent)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def _heal(self, descriptor: int, tail: bytes) -> int:
        """Truncate the log after its last complete line; return its size."""
        size = os.fstat(descriptor).st_size
        if not tail:
            return size
        if _event(tail) is not None:
            _write(descriptor, b"\n")  # a complete line that lacks only its line end
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
        # A damaged line may be anything, including brackets nested too deeply for the parser.
        return None
    return cast("Mapping[str, Json]", event) if isinstance(event, dict) else None


def _glued(text: bytes) -> tuple[bytes, Mapping[str, Json] | None]:
    """Separate the torn beginning of a line from the complete event that another writer appended to it."""
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
        raise LogDamaged("the event log", 0, f"only {len(data)} of {size} bytes could be read")
    return data


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    code = _UNAVAILABLE.get(error.errno or 0, "storage_failed")
    return StoreUnavailable(f"{path}: {error.strerror}", code=code)


CONSUMED = "RetryTokenConsumed"
CONFIRMED = "StepResumeConfirmed"
COMPLETED = "StepCompleted"
RELEASED = "StepReleased"  # the session that resumed the step stopped before its end

Identity = tuple[str, str, str]


class Identified(Protocol):
    @property
    def mission_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def step_id(self) -> str: ...


def identity_of(step: Identified) -> Identity:
    return step.mission_id, step.run_id, step.step_id


class GivenAnswer(NamedTuple):
    """A recorded answer to a question about a checkpoint. `about` is the subject, if it was recorded."""

    subject: str
    yes: bool
    actor: str = ""
    at: str = ""
    token: str = ""
    about: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        denied = (
            f"{self.actor or 'someone'} answered {('yes' if self.yes else 'no')}{(f' at {self.at}' if self.at else '')}"
        )
        return f"{denied} to: {'; '.join(self.about)}" if self.about else denied


@dataclass(slots=True)
class History:
    """The history of one step. `holder` is the process of the session that last resumed the step, until the process
    exits or releases the step.
    """

    identity: Identity
    checkpoints: list[tuple[int, StepCheckpoint]] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)
    answers: dict[str, GivenAnswer] = field(default_factory=dict)
    holder: str = ""
    completed: bool = False
    damage: tuple[int, str] = (0, "")  # the last damaged line

    @classmethod
    def of(cls, log: LogContents, step: Identified) -> History:
        history = cls(identity_of(step))
        history.read(log)
        return history

    def read(self, log: LogContents) -> None:
        for line in log.lines:
            if tuple(line.event.get(name) for name in ("mission_id", "run_id", "step_id")) == self.identity:
                self._apply(line.number, line.event)
        for damaged in log.damaged:
            if not damaged.torn and damaged.number > self.damage[0]:
                self.damage = (damaged.number, str(damaged))

    def _apply(self, number: int, event: Mapping[str, Json]) -> None:
        kind = event.get("event_type")
        if is_checkpoint(event):
            try:
                self.checkpoints.append((number, checkpoint_of(event)))
            except ValueError as error:
                self.damage = (number, f"line {number}: {error}")
            self.completed = False
        elif kind == CONSUMED:
            self.spent.add(str(event.get("retry_token")))
            self.holder = str(event.get("holder") or "")
        elif kind == CONFIRMED:
            answer = _answer(event)
            self.answers[answer.subject] = answer
        elif kind == RELEASED:
            self.holder = ""
        elif kind == COMPLETED:
            self.completed, self.holder = True, ""
            self.spent |= {checkpoint.retry_token for _, checkpoint in self.checkpoints}

    def wanted(self, token: str) -> StepCheckpoint | None:
        """Return the checkpoint to continue from; None if the step must start over. If a token is given, a step never
        starts over."""
        if token:
            self.require_unspent(token)
            found = next((pair for pair in reversed(self.checkpoints) if pair[1].retry_token == token), None)
            if found is None:
                raise RunBlocked(f"{'/'.join(self.identity)} has no checkpoint with the retry token {token}",
                                 code="checkpoint_missing", details={"retry_token": token})  # fmt: skip
        else:
            found = self.checkpoints[-1] if self.checkpoints else None
        if self.damage[0] > (found[0] if found else 0):
            message = f"{self.damage[1]}, and may have been about this step"
            raise LogDamaged("/".join(self.identity), self.damage[0], message)
        return None if found is None or (self.completed and not token) else found[1]

    def require_unspent(self, token: str) -> None:
        if token in self.spent:
            raise RunBlocked(f"{'/'.join(self.identity)}: the retry token {token} has already been used",
                             code="retry_token_spent", details={"retry_token": token})  # fmt: skip

    def require_free(self) -> None:
        """Raise RunBlocked while the session that resumed the step is alive on this machine."""
        if self.holder != this_process() and is_certainly_alive(self.holder):
            raise RunBlocked(f"{'/'.join(self.identity)}: {self.holder} is working on the step", code="run_busy",
                             hint="wait for that process to finish, or stop it",
                             details={"holder": self.holder})  # fmt: skip

    def denial(self) -> GivenAnswer | None:
        """Return the last answer about the latest checkpoint, if it was "no"."""
        token = self.checkpoints[-1][1].retry_token if self.checkpoints else ""
        last = next((one for one in reversed([*self.answers.values()]) if one.token == token), None)
        return None if last is None or last.yes else last


def _answer(event: Mapping[str, Json]) -> GivenAnswer:
    texts = {name: str(event.get(name) or "") for name in ("subject", "actor", "timestamp", "retry_token")}
    about = event.get("differences")
    said = tuple(map(str, about)) if isinstance(about, list) else ()
    yes = event.get("answer") == "yes"
    return GivenAnswer(texts["subject"], yes, texts["actor"], texts["timestamp"], texts["retry_token"], said)


def left_by_other_runs(log: LogContents, step: Identified) -> StepCheckpoint | None:
    """Return the latest checkpoint of the same step of the mission in another run that did not complete the step."""
    runs = {
        str(line.event.get("run_id")): None
        for line in log.lines
        if is_checkpoint(line.event)
        and (line.event.get("mission_id"), line.event.get("step_id")) == (step.mission_id, step.step_id)
    }
    found: list[tuple[int, StepCheckpoint]] = []
    for run in runs:
        history = History((step.mission_id, run, step.step_id))
        history.read(log)
        if run != step.run_id and history.checkpoints and not history.completed:
            found.append(history.checkpoints[-1])
    return max(found, key=lambda one: one[0])[1] if found else None


def load_checkpoint(
    log: StepLog | str | os.PathLike[str], step_id: str, *, mission_id: str = "", run_id: str = ""
) -> StepCheckpoint | None:
    """Return the latest checkpoint of a step, or None if it has none.

    Damaged lines are skipped; resuming is stricter about them.
    """
    named = {"step_id": step_id} | {k: v for k, v in (("mission_id", mission_id), ("run_id", run_id)) if v}
    lines = (log if isinstance(log, StepLog) else StepLog(log)).read().lines
    for line in reversed(lines):
        if is_checkpoint(line.event) and all(line.event.get(name) == value for name, value in named.items()):
            try:
                return checkpoint_of(line.event)
            except ValueError:
                continue
    return None
