"""The rules of an append that every store shares: who may write, and which events are stored.

Pure. A store looks up the facts inside its transaction, calls these functions, and writes the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.runtime.errors import KeyConflict, LeaseLost, VersionConflict, WriterConflict
from workpacket.runtime.records.events import Event, NewEvent, sealed_event
from workpacket.runtime.records.jcs import address_of
from workpacket.runtime.stores.contract import Append


def name_was_used(stream: str) -> VersionConflict:
    return VersionConflict(
        f"{stream} was removed by retention; its name is not used again",
        code="key_conflict", hint="give the run another key, or none, so that it is numbered",
    )  # fmt: skip


def require_same_as_stored(request: Append, stored: Sequence[Event], *, by_key: bool) -> None:
    """Require that a repeated request has the same content as the first time."""
    wanted = [(new.type, new.type_version, new.data, _address(new)) for new in request.events]
    if wanted == [(event.type, event.type_version, event.data, event.payload) for event in stored]:
        return
    first = stored[0] if stored else None
    if by_key:
        raise KeyConflict(
            f"{request.stream}: the key {request.key!r} is already used for another "
            f"{first.type if first else 'record'}",
            details={"stream": request.stream, "key": request.key, "version": first.version if first else 0},
        )
    raise WriterConflict(
        f"writer {request.writer} already used the sequence number {request.writer_seq} for something else",
        details={"stream": request.stream, "writer": request.writer, "writer_seq": request.writer_seq},
    )


def require_next_in_sequence(request: Append, last_seq: int) -> None:
    if request.writer_seq != last_seq + 1:
        raise WriterConflict(
            f"writer {request.writer} is at {last_seq}, so {request.writer_seq} cannot be its next sequence number",
            details={"stream": request.stream, "writer": request.writer, "writer_seq": request.writer_seq},
        )


def require_fence(request: Append, token: int, seconds_left: float, last_fence: int) -> None:
    """Require a fence that is in force and not older than the last one the stream has seen."""
    if request.fence is None:
        return
    if request.fence != token or request.fence < last_fence:
        why = f"the lease {request.fence} of {request.stream} was taken over (now {max(token, last_fence)})"
    elif seconds_left <= 0:
        why = f"the lease {request.fence} of {request.stream} ended {-seconds_left:.1f} s ago"
    else:
        return
    raise LeaseLost(why, details={"stream": request.stream, "fence": request.fence, "in_force": token})


def require_version(request: Append, version: int) -> None:
    if request.expected_version is not None and request.expected_version != version:
        raise VersionConflict(
            f"{request.stream} is at version {version}, not {request.expected_version}: another writer was first",
            details={"stream": request.stream, "version": version},
        )


def events_to_store(request: Append, version: int, previous: str) -> tuple[Event, ...]:
    """Return the events to store in the stream after `version`, whose hash is `previous`."""
    stored: list[Event] = []
    stream, news, writer, seq, actor, occurred_at, recorded_at, key, fence, _ = request
    for offset, (kind, data, kind_version, payload) in enumerate(news):
        address = None if payload is None else address_of(payload)
        own_key = key if offset == 0 else None
        event = sealed_event(
            (
                stream, version + offset + 1, kind, kind_version, occurred_at, recorded_at, actor, writer, seq + offset,
                own_key, fence or 0, data, address, previous,
            )
        )  # fmt: skip
        stored.append(event)
        previous = event.hash
    return tuple(stored)


def _address(new: NewEvent) -> str | None:
    return None if new.payload is None else address_of(new.payload)
