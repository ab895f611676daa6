"""Logs to read: short histories written with the tool's own writer, and the same as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from workpacket.ledger.log import EventWriter, Log, NewLogEvent, join_events, next_event, read_log, read_logs
from workpacket.ledger.verify import (
    Verifier,
    checkpoint_faults,
    judge_checkpoints,
    log_faults,
    lost_heads,
    named_heads,
)
from workpacket.model.canonical import Json
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.events import Actor, ChangedFile, LogEvent, encode_event, event_id
from workpacket.problem import Problem

PACKET: Final = "WP-1-Kettle-v1"
TX: Final = "0190a5de-ac96-774b-bcce-b302099a8057"
A, B, C = "a" * 64, "b" * 64, "c" * 64
COMMIT: Final = "d" * 40
LATER: Final = "2026-12-31T00:00:00Z"
ANN: Final = Actor("ann", "human")

_LANES: Final[Mapping[str, tuple[str | None, str]]] = {
    "created": (None, "STUB"),
    "adopted": (None, "IN_PROGRESS"),
    "activated": ("STUB", "READY_FOR_DEV"),
    "claimed": ("READY_FOR_DEV", "IN_PROGRESS"),
    "released": ("IN_PROGRESS", "READY_FOR_DEV"),
    "handed_over": ("IN_PROGRESS", "READY_FOR_DEV"),
    "submitted": ("IN_PROGRESS", "IN_REVIEW"),
    "verdict.given": ("IN_REVIEW", "MERGE_PENDING"),
    "merged": ("MERGE_PENDING", "VALIDATED"),
    "advanced": ("QA", "MERGE_PENDING"),
    "reopened": ("MERGE_PENDING", "IN_PROGRESS"),
    "blocked": ("IN_PROGRESS", "BLOCKED"),
    "unblocked": ("BLOCKED", "IN_PROGRESS"),
    "superseded": ("READY_FOR_DEV", "SUPERSEDED"),
    "abandoned": ("READY_FOR_DEV", "ABANDONED"),
    "fork.resolved": ("FORKED", "IN_PROGRESS"),
}
_EVIDENCE: Final[Mapping[str, Json]] = {"criterion": "it boils", "result": "met", "command": "boil", "exit_code": 0}
_SAYS: Final[Mapping[str, Mapping[str, Json]]] = {
    "created": {"base": "WP-1-Kettle", "title": "Boil water", "dependencies": ["WP-1-Tap-v1"], "risk": "LOW"},
    "adopted": {"base": "WP-1-Kettle", "found": [{"kind": "board", "path": "b.md", "line": 3, "says": "ACTIVE"}]},
    "activated": {
        "refinement": {"path": "r.md", "sha256": A},
        "checklist": [{"item": "spec", "result": "met"}],
        "contract": A,
        "dependencies": [],
    },
    "amended": {"previous": A, "contract": B, "reason": "more water", "dependencies": ["WP-1-Tap-v1"]},
    "reapproved": {"gate": "activation", "event": A, "replaces": [B], "reason": "stolen"},
    "noted": {"text": "the kettle is red"},
    "prepared": {"assignee": "bob", "branch": "work", "base_commit": COMMIT},
    "claimed": {"holder": "bob", "lease": "lease-1", "expires_at": LATER},
    "lease.renewed": {"holder": "bob", "lease": "lease-1", "expires_at": LATER},
    "released": {"reason": "ill"},
    "handed_over": {"reason": "ill", "to": "cem"},
    "submitted": {"commit": COMMIT, "evidence": [_EVIDENCE]},
    "evidence.recorded": {"evidence": [_EVIDENCE]},
    "evidence.replayed": {"commit": COMMIT, "result": "same"},
    "verdict.given": {"verdict": "PASS"},
    "merged": {"commit": COMMIT, "target": "main", "target_commit": COMMIT, "proof": "tree"},
    "advanced": {"reason": "it runs"},
    "reopened": {"reason": "leaks"},
    "blocked": {"reason": "no water", "until": "water"},
    "unblocked": {},
    "superseded": {"by": "WP-1-Kettle-v2"},
    "abandoned": {"reason": "tea is over"},
    "overridden": {"rule": "submit", "reason": "fire", "expires_at": LATER},
    "waived": {"rule": "hint_text", "reason": "agreed", "expires_at": LATER},
    "refinement.recorded": {"refinement": {"path": "r.md", "sha256": A}},
    "refinement.presented": {"refinement": {"path": "r.md", "sha256": A}, "block_sha256": B},
    "approval.recorded": {"gate": "activation", "decision": "approve", "assurance": "signed"},
    "run.linked": {"run": "run-1", "stream": "s"},
    "run.closed": {"run": "run-1", "outcome": "completed", "stream_sha256": C, "events": 9},
    "fork.resolved": {"moves": [A, B], "reason": "we talked"},
    "checkpoint": {"commit": COMMIT, "logs": []},
}
ALL_TYPES: Final = tuple(_SAYS)


def data_of(kind: str, **changes: Json) -> dict[str, Json]:
    """Data that fits the type, with some of it changed."""
    lanes: dict[str, Json] = {}
    if kind in _LANES:
        lanes = {"lane_from": _LANES[kind][0], "lane_to": _LANES[kind][1]}
    return {**lanes, **_SAYS[kind], **changes}


class Story:
    """A log being written. Each call appends to all heads, or to the events it is told."""

    def __init__(self, packet: str = PACKET) -> None:
        self.packet = packet
        self.events: list[LogEvent] = []

    def add(
        self,
        kind: str,
        *,
        after: tuple[LogEvent, ...] | None = None,
        at: str = "",
        attest: tuple[str, ...] = (),
        writer: Actor = ANN,
        subjects: tuple[ChangedFile, ...] = (),
        **changes: Json,
    ) -> LogEvent:
        at = at or f"2026-01-01T00:{len(self.events) // 60:02}:{len(self.events) % 60:02}Z"
        parents = self.heads() if after is None else after
        happening = NewLogEvent(kind, data_of(kind, **changes), subjects, attest)
        event = next_event(EventWriter(writer, at, TX, "workpacket test"), self.packet, happening, after=parents)
        self.events.append(event)
        return event

    def tell(self, *kinds: str) -> LogEvent:
        """Several events, one after the other; the last of them."""
        return [self.add(kind) for kind in kinds][-1]

    def heads(self) -> tuple[LogEvent, ...]:
        named = {parent for event in self.events for parent in event.parents}
        return tuple(event for event in self.events if event.id not in named)

    def log(self) -> Log:
        return join_events(self.packet, self.events)

    def files(self) -> dict[str, bytes]:
        return files_of(*self.events)

    def read(self) -> Log:
        return read_log(self.packet, self.files())


def files_of(*events: LogEvent) -> dict[str, bytes]:
    return {f"{event.id}.json": event.encode() for event in events}


def rewritten(event: LogEvent, **changes: Json) -> tuple[str, bytes]:
    """A file, rightly named, with some fields of the event changed: what a forger could write."""
    value: dict[str, Any] = {**json.loads(event.encode()), **changes}
    data = encode_event(value)
    return f"{event_id(data)}.json", data


def verify_tree(files: Mapping[str, bytes], verifier: Verifier) -> list[Problem]:
    """Everything that is wrong with the log files of a repository, given by path, as `log verify` finds it."""
    logs, stray = read_logs(files)
    checkpoints = judge_checkpoints(logs, verifier)
    findings = [*stray, *checkpoint_faults(checkpoints)]
    for name, log in logs.items():
        findings += log.findings if name == CHECKPOINT_LOG else log_faults(log)
    for name, heads in named_heads(checkpoints).items():
        findings += lost_heads(name, logs.get(name), heads)
    return sorted(findings, key=lambda finding: finding.order)
