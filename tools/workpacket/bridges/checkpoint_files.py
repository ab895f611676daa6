"""Checkpoint files of other tools and of model sessions: snapshots of runs, artifacts of sessions, logs of steps.

The schemas of `state.json`, of an event in `timeline.jsonl` and of an artifact are in `schemas/`. To change one: raise
its version, add the field, and document in `docs/runtime/evolving.md` what a file without it means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from workpacket.bridges.foreign import Foreign, alike, imported, misfits, stream_named
from workpacket.model.canonical import Json, NotCanonical
from workpacket.problem import Location, Problem
from workpacket.runtime.model_sessions.record import Artifact, artifact_id, last_valid
from workpacket.runtime.records.failures import reason_of
from workpacket.runtime.records.state import RunState, Status
from workpacket.runtime.resume.observe import Observations, read_state
from workpacket.runtime.step.log import is_checkpoint, line_of, problems
from workpacket.runtime.stores.contract import Store
from workpacket.text.json_strict import load_json
from workpacket.text.source import DATA, REGISTER, Node, Source, unreadable

SNAPSHOT_VERSION: Final = "1.0.0"

_CODE: Final = "checkpoint_malformed"
_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\Z")


def is_newer(values: Mapping[str, Any]) -> bool:
    """Whether the file's version may have changed the meaning of fields: its major number is greater than ours. An
    invalid version counts as malformed, not as newer.
    """
    said = values.get("schema_version")
    parts = _VERSION.match(said) if isinstance(said, str) else None
    known = _VERSION.match(SNAPSHOT_VERSION)
    assert known is not None
    return parts is not None and int(parts[1]) > int(known[1])


def _is_later(values: Mapping[str, Any]) -> bool:
    """Whether the file has a later minor version, which may have more fields."""
    said = values.get("schema_version")
    parts = _VERSION.match(said) if isinstance(said, str) else None
    return parts is not None and parts[1] == SNAPSHOT_VERSION.partition(".")[0]


# Our runs have no phases: their steps are the program's own. An active run is reported in the phase in which work is
# done.
_PHASES: Final[dict[Status, str]] = {
    "running": "IMPLEMENT", "stopped": "STOPPED", "cancelled": "STOPPED", "completed": "FINALIZE", "none": "INIT",
    "moved": "STOPPED",
}  # fmt: skip


def snapshot(store: Store, state: RunState) -> dict[str, Json]:
    """Return everything that version "1.0.0" of the format can represent."""
    reached = sorted(state.milestones.reached.values(), key=lambda one: one.milestone_index)
    last = state.milestones.last
    values: dict[str, Json] = {
        "schema_version": SNAPSHOT_VERSION,
        "run_id": state.stream,
        "phase": _PHASES[state.status],
        "milestone_index": max((one.milestone_index + 1 for one in reached), default=0),
        "scope_lock": {"allowlist": list(state.scope), "denylist": []},
        "auto_resume_count": max(state.attempt - 1, 0),
        **_times(store, state),
    }
    if state.workdir:
        values["repo_path"] = state.workdir
    if last is not None:
        values["checkpoint_commit_sha"] = last.commit
    if state.status in {"stopped", "cancelled", "moved"}:
        values["stop_reason"] = reason_of(state.stop_code or "run_cancelled").code
    return values


def _times(store: Store, state: RunState) -> dict[str, Json]:
    first = next(iter(store.read(state.stream)))
    return {"started_at": _snapshot_time(first.recorded_at), "updated_at": _snapshot_time(state.last_recorded_at)}


def _snapshot_time(micros: int) -> str:
    moment = datetime.fromtimestamp(micros / 1_000_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RunStateBridge:
    """Snapshots of runs, `state.json`, and their event logs, `timeline.jsonl`, as other tools keep them.

    A snapshot without `schema_version` is read and written as version "1.0.0". A later version with the same major
    number is read and written with all its fields; a greater major number is refused, because the meaning of its fields
    is unknown. The events of a timeline are imported line by line; the name of their run is taken from the first event,
    or else from the file's folder. Runs in this store are written as snapshots.
    """

    name = "runstate"
    lossy: tuple[str, ...] = (
        "whether a snapshot had the legacy form, without `schema_version`",
        "whitespace and the order of keys",
        "blank lines in a timeline",
        "for a run in this store: its steps, effects and cursors",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        source = Source.from_bytes(path, data)
        faults = unreadable(source.text, 0, REGISTER)
        if faults:
            return tuple(faults)
        if path.endswith(".jsonl") or _is_timeline(source.text):
            return self._timeline(source)
        loaded = load_json(source, DATA)
        if loaded.root is None or loaded.faults:
            return loaded.faults
        values = loaded.root.plain()
        if isinstance(values, dict) and is_newer(values):
            return (_newer(loaded.root),)
        later = isinstance(values, dict) and _is_later(values)
        wrong = tuple(
            one for one in misfits(loaded.root, "run_snapshot", _CODE)
            if not (later and one.message.startswith("`schema_version`"))
        )  # fmt: skip
        if wrong:
            return wrong
        # A later version of the same form keeps its number: its fields are kept too.
        snapshot = {"schema_version": SNAPSHOT_VERSION, **cast("Mapping[str, Json]", values)}
        snapshot["schema_version"] = snapshot["schema_version"] or SNAPSHOT_VERSION
        return (Foreign(self.name, stream_named(self.name, str(snapshot["run_id"])), snapshot),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """Return one snapshot, or the events of timelines."""
        first, *more = [checkpoint.values for checkpoint in checkpoints]
        if "seq" in first:
            return "".join(f"{_line(values)}\n" for values in (first, *more)).encode()
        if more:
            raise ValueError("a snapshot must be a single file")
        return f"{json.dumps(first, sort_keys=True, indent=2, ensure_ascii=False)}\n".encode()

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """Return the run with this name from the store."""
        from urllib.parse import unquote

        run = unquote(key)
        head = store.head(run)
        if head is None or "/timeline" in key:
            return ()
        state, _ = read_state(store, run, Observations())
        if state.status == "none":
            return ()
        stream = stream_named(self.name, run)
        values = snapshot(store, state)
        for before in imported(store, stream)[-1:]:  # another tool began the run, and knows more about its past
            held = before.checkpoint.values
            index = max(_whole_number(held.get("milestone_index")), _whole_number(values["milestone_index"]))
            values = {**held, **values, "milestone_index": index, "started_at": held.get("started_at")}
        return (Foreign(self.name, stream, values),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        return alike(held, found)

    def _timeline(self, source: Source) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        events: list[Mapping[str, Json]] = []

        def judge(root: Node) -> Iterator[Problem]:
            wrong = [*misfits(root, "timeline_event", _CODE)]
            yield from wrong or _out_of_order(root, events)
            events.append(cast("Mapping[str, Json]", root.plain()))

        faults = _judged_lines(source, judge)
        if faults or not events:
            return tuple(faults) or (Problem(_CODE, "it contains no events", Location.span(0, 0)),)
        stream = stream_named(self.name, _run_of(events[0], source.path), "timeline")
        return tuple(Foreign(self.name, stream, event) for event in events)


def _whole_number(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_timeline(text: str) -> bool:
    """Whether the first line is a complete event, as in a file that was renamed."""
    line = text.lstrip().split("\n", 1)[0]
    root = load_json(Source("", line), DATA).root
    return root is not None and "seq" in root.mapping


def _judged_lines(source: Source, judge: Callable[[Node], Iterable[Problem]]) -> tuple[Problem, ...]:
    """Return problems in JSON Lines, with their positions in the file. `judge` receives the root of each line."""
    faults: list[Problem] = []
    start = 0
    for line in source.text.split("\n"):
        if line.strip():
            loaded = load_json(Source(source.path, line), DATA)
            found = loaded.faults if loaded.root is None or loaded.faults else judge(loaded.root)
            faults += [one.moved(start) for one in found]
        start += len(line) + 1
    return tuple(faults)


def _line(values: Mapping[str, Json]) -> str:
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def _newer(root: Node) -> Problem:
    node = root.get("schema_version") or root
    message = f"schema_version {node.value!r} is newer than {SNAPSHOT_VERSION}, the newest version supported"
    return Problem("newer_schema", message, Location.span(*node.span), "update workpacket")


def _out_of_order(root: Node, before: Sequence[Mapping[str, Json]]) -> Iterator[Problem]:
    """Report a missing or repeated event; an event log with such a fault is not trusted."""
    node = root.get("seq")
    if before and node is not None and node.value != cast("int", before[-1]["seq"]) + 1:
        yield Problem(_CODE, f"seq: the previous line has {before[-1]['seq']}", Location.span(*node.span))


def _run_of(event: Mapping[str, Json], path: str) -> str:
    payload = event.get("payload")
    named = payload.get("run_id") if isinstance(payload, Mapping) else None
    if isinstance(named, str) and named:
        return named
    return path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2] or "unnamed"


_ID = "artifact_id"


class SessionBridge:
    """Converts checkpoint artifacts of model sessions: the artifact as JSON, with its id next to its content.

    A session in this store is exported from its last valid artifact. A file whose id does not match its content was
    edited or damaged, and is refused.
    """

    name = "session"
    lossy: tuple[str, ...] = (
        "all but the last eight messages",
        "the session's log: steps, effects and earlier checkpoints",
        "whitespace and the order of keys",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        loaded = load_json(Source.from_bytes(path, data), REGISTER)
        if loaded.root is None or loaded.faults:
            return loaded.faults
        faults = tuple(_artifact_faults(loaded.root))
        if faults:
            return faults
        values = cast("Mapping[str, Json]", loaded.root.plain())
        return (Foreign(self.name, _session_stream(values), values),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        text = json.dumps(checkpoint.values, sort_keys=True, indent=2, ensure_ascii=False)
        return f"{text}\n".encode()

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """Return the session with this name from the store."""
        for head in store.heads():
            packet, at, name = head.stream.rpartition("session@")
            if not at or _session_key(packet.removesuffix("/"), name) != f"session/{key}":
                continue
            state, _ = read_state(store, head.stream, Observations())
            artifact, _ = last_valid(store, state)
            if artifact is not None:
                values = {**artifact.body, _ID: artifact.id}
                return (Foreign(self.name, _session_stream(values), values),)
        return ()

    def same(self, held: Foreign, found: Foreign) -> bool:
        return alike(held, found)


def artifact_of(values: Mapping[str, Json]) -> Artifact:
    """Return the artifact in a file."""
    return Artifact(str(values[_ID]), {name: value for name, value in values.items() if name != _ID})


def _session_stream(values: Mapping[str, Json]) -> str:
    return _session_key(str(values.get("packet") or ""), str(values["session_id"]))


def _session_key(packet: str, session: str) -> str:
    return stream_named("session", *filter(None, (packet, session)))


def _artifact_faults(root: Node) -> Iterator[Problem]:
    wrong = [*misfits(root, "session_artifact", _CODE)]
    yield from wrong
    values = cast("Mapping[str, Json]", root.plain())
    if not wrong and _id_of(values) != values.get(_ID):
        message = f"{_ID}: does not match the content: the file was edited or corrupted"
        yield Problem(_CODE, message, Location.span(*(root.get(_ID) or root).span))


def _id_of(values: Mapping[str, Any]) -> str:
    try:
        return artifact_id({name: value for name, value in values.items() if name != _ID})
    except NotCanonical:
        return ""


class StepBridge:
    """`StepCheckpointed` event logs: JSON Lines, one event per line, `json.dumps(event, sort_keys=True)`.

    Every event in the log is imported: a step's events into that step's stream, all others into the stream of their
    mission. A checkpoint is judged together with its context (spent tokens, answers, the end of the step).
    """

    name = "step"
    lossy: tuple[str, ...] = (
        "blank lines, whitespace and the order of keys within a line",
        "whether a character was written literally or escaped",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        source = Source.from_bytes(path, data)
        events: list[Foreign] = []

        def judge(root: Node) -> Iterator[Problem]:
            wrong = [*_event_faults(root)]
            yield from wrong
            if not wrong:
                values = cast("Mapping[str, Json]", root.plain())
                events.append(Foreign(self.name, _step_stream(values), values))

        faults = tuple(unreadable(source.text, 0, REGISTER)) or _judged_lines(source, judge)
        return faults or tuple(events)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        return "".join(f"{line_of(checkpoint.values)}\n" for checkpoint in checkpoints).encode("ascii")


def _event_faults(root: Node) -> Iterator[Problem]:
    """Report problems with checkpoints among the events; other events are not judged."""
    if not isinstance(root.value, dict):
        yield Problem(_CODE, "an event must be a JSON object", Location.span(*root.span))
        return
    values = cast("Mapping[str, Any]", root.plain())
    if not is_checkpoint(values):
        return
    for name, why in problems(values):
        yield Problem(_CODE, f"{name}: {why}", Location.span(*(root.get(name) or root).span))


def _step_stream(values: Mapping[str, Json]) -> str:
    known = [values.get(name) for name in ("mission_id", "run_id", "step_id")]
    key = [part for part in known if isinstance(part, str) and part]
    return stream_named("step", *(key if len(key) == len(known) else [*key[:1], "events"]))
