"""Makes governed repositories of any size: documents, board and registry as in `trees`, and a log for every packet."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bench.trees import write_tree
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.model.canonical import Json
from workpacket.model.events import Actor, LogEvent
from workpacket.model.ids import WorkPacketId

_WRITER = EventWriter(Actor("ann", "human"), "2026-03-01T00:00:00Z", "0190a5de-ac96-774b-bcce-b302099a8057", "bench")
_LANES: Mapping[str, tuple[Json, str]] = {"created": (None, "STUB"), "activated": ("STUB", "READY_FOR_DEV")}
_REFINED = b"# Refinement of all packets\n"
_REFINEMENT: Mapping[str, Json] = {"path": "refinement.md", "sha256": hashlib.sha256(_REFINED).hexdigest()}


def write_governed(root: Path, packets: int) -> list[str]:
    """Make a committed repository whose documents are generated from their logs; return the ids that can be claimed."""
    write_tree(root, packets)
    ready = [path.stem for path in sorted((root / ".GOV/task_packets").glob("WP-*.md"))]
    stubs = [path.stem for path in sorted((root / ".GOV/task_packets/stubs").glob("WP-*.md"))]
    for name, activated in [*((name, True) for name in ready), *((name, False) for name in stubs)]:
        for event in history(name, activated=activated):
            path = root / event.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(event.encode())
    write_refinement(root)
    commit(root)
    return ready


def history(name: str, *, activated: bool) -> list[LogEvent]:
    """Make the log of a packet: created as a stub and, if requested, activated."""
    title = f"What {name} is about, in one line"
    base: Mapping[str, Json] = {"base": WorkPacketId.parse(name).base, "title": title}
    events = [_moved(name, "created", base, [])]
    if activated:
        says: Mapping[str, Json] = {"refinement": dict(_REFINEMENT), "checklist": [{"item": "spec", "result": "met"}]}
        says = {**says, "title": title, "dependencies": [], "risk": "LOW"}
        events.append(_moved(name, "activated", says, events))
    return events


def long_history(name: str, events: int) -> list[LogEvent]:
    """Activate a packet, and add waivers until the log has the requested length."""
    log = history(name, activated=True)
    waived: Mapping[str, Json] = {"rule": "hint_text", "reason": "measured", "expires_at": "2026-12-31T00:00:00Z"}
    while len(log) < events:
        log.append(next_of(name, "waived", waived, log))
    return log


def next_of(name: str, kind: str, says: Mapping[str, Json], log: list[LogEvent]) -> LogEvent:
    """Make the event that follows the last one of the log."""
    return next_event(_WRITER, name, NewLogEvent(kind, says), after=log[-1:])


def _moved(name: str, kind: str, says: Mapping[str, Json], log: list[LogEvent]) -> LogEvent:
    before, then = _LANES[kind]
    return next_of(name, kind, {"lane_from": before, "lane_to": then, **says}, log)


def write_refinement(root: Path) -> None:
    """Write the file that all activations name."""
    (root / str(_REFINEMENT["path"])).write_bytes(_REFINED)


def commit(root: Path) -> None:
    """Commit everything in the folder on the branch main."""
    if not (root / ".git/HEAD").exists():
        git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Ann")
    git(root, "config", "user.email", "ann@example.org")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "work")


def git(root: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    # A collection of garbage in the background would go on while a row is measured, and while its folder is removed.
    quiet = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
    subprocess.run(["git", *quiet, *words], cwd=root, env=environment, check=True, capture_output=True)
