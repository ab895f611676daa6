"""An event: one thing that happened to one work packet, as one write-once file.

`.GOV/log/<packet>/<id>.json` contains the canonical JSON of the event and a final newline, and `id` is the SHA-256 of
those bytes. Therefore `sha256sum` alone verifies a file, and two branches never write the same file with different
contents. `at` and `actor` are claims; `sig` proves the actor's identity if it was made by a key that the base's policy
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Literal, TypeAlias

from workpacket.digests import sha256
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.event_types import LANE_MOVES, VERSION
from workpacket.model.layout import LOG_FOLDER
from workpacket.value import NamedTuple, Value

ActorKind: TypeAlias = Literal["human", "agent", "ci"]


class Actor(Value):
    """The actor of an event, as its writer claims."""

    id: str
    kind: ActorKind


class ChangedFile(NamedTuple):
    """A file that changed together with the event: its digest before and after, or None if there was no file."""

    path: str
    prev: str | None
    sha256: str | None


class LogEvent(NamedTuple):
    """An event and its id. `data` has the shape that `event_types.DATA` gives to the type.

    `sig` is the signature in base64, or "" for an unsigned event; `v` is the version of its file's format. It is a
    tuple because a log can have hundreds of thousands: as another kind of value, each takes five times the memory.
    """

    id: str
    type: str
    packet: str
    clock: int
    parents: tuple[str, ...]
    at: str
    actor: Actor
    tool: str
    tx: str
    subjects: tuple[ChangedFile, ...]
    attest: tuple[str, ...]
    data: Mapping[str, Json]
    sig: str = ""
    v: int = VERSION

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def path(self) -> str:
        return event_path(self.packet, self.id)

    @property
    def order(self) -> tuple[int, str]:
        """Return the replay order: never by wall-clock time, which is only a claim."""
        return self.clock, self.id

    @property
    def moves_lane(self) -> bool:
        return self.type in LANE_MOVES

    @property
    def lane_from(self) -> str | None:
        return self.text("lane_from")

    @property
    def lane_to(self) -> str | None:
        return self.text("lane_to")

    def text(self, key: str) -> str | None:
        """Return the string under `key` in the data, if there is one."""
        value = self.data.get(key)
        return value if isinstance(value, str) else None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the strings in the list under `key` in the data."""
        value = self.data.get(key)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def encode(self) -> bytes:
        """Return the bytes of the event's file."""
        return encode_event(self.json())

    def signed_bytes(self) -> bytes:
        """Return the signed bytes: the bytes of the file without `sig`."""
        value = self.json()
        value.pop("sig", None)
        return encode_event(value)

    def json(self) -> dict[str, Json]:
        signature: dict[str, Json] = {"sig": self.sig} if self.sig else {}
        return {
            **signature,
            "v": self.v,
            "type": self.type,
            "packet": self.packet,
            "clock": self.clock,
            "parents": list(self.parents),
            "at": self.at,
            "actor": {"id": self.actor.id, "kind": self.actor.kind},
            "tool": self.tool,
            "tx": self.tx,
            "subjects": [{"path": s.path, "prev": s.prev, "sha256": s.sha256} for s in self.subjects],
            "attest": list(self.attest),
            "data": self.data,
        }


def event_path(packet: str, event_id: str) -> str:
    return f"{LOG_FOLDER}/{packet}/{event_id}.json"


def encode_event(value: Mapping[str, Json]) -> bytes:
    return canonical_bytes(value) + b"\n"


def event_id(data: bytes) -> str:
    return sha256(data).hexdigest()


def event_of(value: Mapping[str, Any], identity: str) -> LogEvent:
    """Return the event in `value`, which `ledger.log.event_misfit` has accepted.

    A log of 200,000 events fits into memory because what its events have in common is stored once.
    """
    return LogEvent(
        intern(identity),
        intern(value["type"]),
        intern(value["packet"]),
        value["clock"],
        tuple(map(intern, value["parents"])),
        intern(value["at"]),
        _actor(value["actor"]["id"], value["actor"]["kind"]),
        intern(value["tool"]),
        intern(value["tx"]),
        tuple([ChangedFile(s["path"], s["prev"], s["sha256"]) for s in value["subjects"]]),
        tuple(value["attest"]),
        {intern(key): said for key, said in value["data"].items()},
        value.get("sig", ""),
        value["v"],
    )


_actor = lru_cache(maxsize=256)(Actor)
