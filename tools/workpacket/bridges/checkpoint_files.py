"""Checkpoint files of other tools and of model sessions: snapshots of runs, artifacts of sessions, logs of steps.

Which fields a `state.json` and an event of a `timeline.jsonl` have, and what may are in them.

To evolve it: raise the version, add the field here with its check, and say in `docs/runtime/evolving.md` what a file
without it means.

A run of this store as a snapshot for tools that read `state.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from workpacket.bridges.foreign import Foreign, alike, stream_named
from workpacket.model.canonical import Json, NotCanonical
from workpacket.problem import Location, Problem
from workpacket.runtime.model_sessions.record import KINDS, SCHEMA_VERSION, Artifact, artifact_id, last_valid
from workpacket.runtime.records.failures import reason_of
from workpacket.runtime.records.state import RunState, Status
from workpacket.runtime.resume.observe import Observations, read_state
from workpacket.runtime.step.model import CURSORS, is_checkpoint, line_of, problems
from workpacket.runtime.stores.contract import Store
from workpacket.text.formats import FORMATS
from workpacket.text.json_strict import load_json
from workpacket.text.limits import DATA, REGISTER
from workpacket.text.loaded import unreadable
from workpacket.text.node import Node
from workpacket.text.source import Source
from workpacket.value import Value

SNAPSHOT_VERSION: Final = "1.0.0"
SNAPSHOT_PHASES: Final = ("INIT", "PLAN", "IMPLEMENT", "VERIFY", "REVIEW", "CHECKPOINT", "FINALIZE", "STOPPED")
RISKS: Final = ("low", "medium", "high")

_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\Z")


class FieldSpec(Value):
    """`path` of a field that may be left out unless it is `required`; `what` says what it must be."""

    path: tuple[str, ...]
    what: str
    fits: Callable[[Any], bool]
    required: bool = False


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _time(value: Any) -> bool:
    return isinstance(value, str) and not FORMATS["date-time"](value)


def _counts(value: Any) -> bool:
    return _count(value) or (isinstance(value, dict) and all(_count(item) for item in value.values()))


def _milestones(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and _name(one.get("goal"))
        and _texts(one.get("done_checks", []))
        and _texts(one.get("files_expected", []))
        and one.get("risk_level", "low") in RISKS
        for one in value
    )


def _commands(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and _name(one.get("command")) and type(one.get("exit_code")) is int for one in value
    )


def _sha(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{7,64}", value) is not None


_EVIDENCE = "last_verification_evidence"

# Of a legacy snapshot not more is asked than what a resume rests on; every version so far has these.
LEGACY: Final = (
    FieldSpec(("schema_version",), f'"{SNAPSHOT_VERSION}", or absent', lambda value: value == SNAPSHOT_VERSION),
    FieldSpec(("run_id",), "text", _name, required=True),
    FieldSpec(
        ("phase",), f"one of {', '.join(SNAPSHOT_PHASES)}", lambda value: value in SNAPSHOT_PHASES, required=True
    ),
    FieldSpec(("milestone_index",), "a number from 0", _count),
    FieldSpec(("milestones",), "a list of milestones, each with a goal, done_checks and a risk_level", _milestones),
    FieldSpec(("repo_path",), "text", _text),
    FieldSpec(("scope_lock",), "a mapping", _mapping),
    FieldSpec(("scope_lock", "allowlist"), "a list of texts", _texts),
    FieldSpec(("scope_lock", "denylist"), "a list of texts", _texts),
    FieldSpec(("owned_paths",), "a list of texts or a mapping", lambda value: _texts(value) or _mapping(value)),
    FieldSpec(("checkpoint_commit_sha",), "the id of a commit", _sha),
    FieldSpec(
        ("last_successful_phase",), f"one of {', '.join(SNAPSHOT_PHASES)}", lambda value: value in SNAPSHOT_PHASES
    ),
    FieldSpec((_EVIDENCE,), "a mapping", _mapping),
    FieldSpec((_EVIDENCE, "commands_required"), "a list of texts", _texts),
    FieldSpec((_EVIDENCE, "commands_run"), "a list of commands with their exit codes", _commands),
    FieldSpec((_EVIDENCE, "commands_missing"), "a list of texts", _texts),
    FieldSpec((_EVIDENCE, "tiers_run"), "a list of texts", _texts),
    FieldSpec(("retries",), "a number, or numbers by name", _counts),
    FieldSpec(("milestone_retries",), "a number, or numbers by name", _counts),
    FieldSpec(("review_rounds",), "a number, or numbers by name", _counts),
    FieldSpec(("stop_reason",), "text", _text),
    FieldSpec(("started_at",), "a time (RFC 3339)", _time),
    FieldSpec(("updated_at",), "a time (RFC 3339)", _time),
    FieldSpec(("auto_resume_count",), "a number from 0", _count),
)

TIMELINE: Final = (
    FieldSpec(("seq",), "a number from 0", _count, required=True),
    FieldSpec(("timestamp",), "a time (RFC 3339)", _time, required=True),
    FieldSpec(("type",), "text", _name, required=True),
    FieldSpec(("payload",), "a mapping", _mapping),
    FieldSpec(("source",), "text", _text),
)


def is_newer(values: Mapping[str, Any]) -> bool:
    """Whether a later version wrote it. What is no version at all is not newer, but malformed."""
    said = values.get("schema_version")
    parts = _VERSION.match(said) if isinstance(said, str) else None
    known = _VERSION.match(SNAPSHOT_VERSION)
    assert known is not None
    return parts is not None and _numbers(parts) > _numbers(known)


def _numbers(version: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(part) for part in version.groups())


def faults_of(root: Node, fields: tuple[FieldSpec, ...], what: str) -> Iterator[Problem]:
    """Everything that does not fit, each at its own place. Unknown keys are kept and not judged; null is absent."""
    if not isinstance(root.value, dict):
        yield Problem("checkpoint_malformed", what, Location.span(*root.span))
        return
    for field in fields:
        node = root.get(*field.path)
        name = ".".join(field.path)
        if node is None or (node.value is None and not field.required):
            if field.required:
                yield Problem("checkpoint_malformed", f"{name}: it is missing", Location.span(*root.span))
        elif not field.fits(node.plain()):
            yield Problem("checkpoint_malformed", f"{name}: it must be {field.what}", Location.span(*node.span))


# Our runs have no phases: their steps are the program's own. A run at work is in the phase in which work is done.
_PHASES: Final[dict[Status, str]] = {
    "running": "IMPLEMENT", "stopped": "STOPPED", "cancelled": "STOPPED", "completed": "FINALIZE", "none": "INIT",
}  # fmt: skip


def snapshot(store: Store, state: RunState) -> dict[str, Json]:
    """Everything that the format has a place for, of version "1.0.0"."""
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
    if state.status in {"stopped", "cancelled"}:
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

    A snapshot without `schema_version` is a legacy one; it is read like one of "1.0.0" and written as one. A newer
    version is refused: what it means by its fields is not known here. The events of a timeline are carried over line by
    line; their run is the one that the first of them names, else the folder of the file. A run of this store is written
    as a snapshot.
    """

    name = "runstate"
    lossy: tuple[str, ...] = (
        "that a snapshot was a legacy one, without schema_version",
        "spacing and the order of keys",
        "blank lines of a timeline",
        "of a run of this store: its steps, effects and cursors",
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
        wrong = tuple(faults_of(loaded.root, LEGACY, "a snapshot is a JSON object"))
        if wrong:
            return wrong
        snapshot = {**cast("Mapping[str, Json]", values), "schema_version": SNAPSHOT_VERSION}
        return (Foreign(self.name, stream_named(self.name, str(snapshot["run_id"])), snapshot),)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """One snapshot, or the events of timelines."""
        first, *more = [checkpoint.values for checkpoint in checkpoints]
        if "seq" in first:
            return "".join(f"{_line(values)}\n" for values in (first, *more)).encode()
        if more:
            raise ValueError("a snapshot is one file")
        return f"{json.dumps(first, sort_keys=True, indent=2, ensure_ascii=False)}\n".encode()

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """The run of this name as it is in the store."""
        from urllib.parse import unquote

        run = unquote(key)
        head = store.head(run)
        if head is None or "/timeline" in key:
            return ()
        state, _ = read_state(store, run, Observations())
        if state.status == "none":
            return ()
        return (Foreign(self.name, stream_named(self.name, run), snapshot(store, state)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        return alike(held, found)

    def _timeline(self, source: Source) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        events: list[Mapping[str, Json]] = []
        faults: list[Problem] = []
        for line, start in _lines(source.text):
            loaded = load_json(Source(source.path, line), DATA)
            found = list(loaded.faults)
            if loaded.root is not None and not found:
                found += faults_of(loaded.root, TIMELINE, "an event is a JSON object")
                found += _out_of_order(loaded.root, events) if not found else ()
            faults += [one.moved(start) for one in found]
            if loaded.root is not None and not found:
                events.append(cast("Mapping[str, Json]", loaded.root.plain()))
        if faults or not events:
            return tuple(faults) or (Problem("checkpoint_malformed", "no event is in it", Location.span(0, 0)),)
        stream = stream_named(self.name, _run_of(events[0], source.path), "timeline")
        return tuple(Foreign(self.name, stream, event) for event in events)


def _is_timeline(text: str) -> bool:
    """Whether the first line is a whole event, as in a file that was renamed."""
    line = text.lstrip().split("\n", 1)[0]
    root = load_json(Source("", line), DATA).root
    return root is not None and "seq" in root.mapping


def _lines(text: str) -> Iterator[tuple[str, int]]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield line, start
        start += len(line) + 1


def _line(values: Mapping[str, Json]) -> str:
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def _newer(root: Node) -> Problem:
    node = root.get("schema_version") or root
    message = f"schema_version {node.value!r} is newer than {SNAPSHOT_VERSION}, the newest known here"
    return Problem("newer_schema", message, Location.span(*node.span), "update workpacket")


def _out_of_order(root: Node, before: Sequence[Mapping[str, Json]]) -> Iterator[Problem]:
    """An event log that lost or repeats an event is not believed."""
    node = root.get("seq")
    if before and node is not None and node.value != cast(int, before[-1]["seq"]) + 1:
        yield Problem("checkpoint_malformed", f"seq: {before[-1]['seq']} stands before it", Location.span(*node.span))


def _run_of(event: Mapping[str, Json], path: str) -> str:
    payload = event.get("payload")
    named = payload.get("run_id") if isinstance(payload, Mapping) else None
    if isinstance(named, str) and named:
        return named
    return path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2] or "unnamed"


_ID = "artifact_id"


class SessionBridge:
    """Checkpoint artifacts of model sessions as files: the artifact as JSON, with its id beside its content.

    A session of this store is written from its last valid artifact. A file whose id is not that of its content was
    edited or damaged, and is refused.
    """

    name = "session"
    lossy: tuple[str, ...] = (
        "messages before the last eight",
        "the log of the session: steps, effects and earlier checkpoints",
        "spacing and the order of keys",
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
        """The session of this name as it is in the store."""
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
    """The artifact that a file holds."""
    return Artifact(str(values[_ID]), {name: value for name, value in values.items() if name != _ID})


def _session_stream(values: Mapping[str, Json]) -> str:
    return _session_key(str(values.get("packet") or ""), str(values["session_id"]))


def _session_key(packet: str, session: str) -> str:
    return stream_named("session", *filter(None, (packet, session)))


def _artifact_faults(root: Node) -> list[Problem]:
    values = root.plain()
    if not isinstance(values, dict):
        return [Problem("checkpoint_malformed", "an artifact is a JSON object", Location.span(*root.span))]
    wrong: dict[str, str] = {}
    for name, fits, what in (
        ("schema_version", lambda value: value == SCHEMA_VERSION and not isinstance(value, bool), f"{SCHEMA_VERSION}"),
        ("session_id", lambda value: isinstance(value, str) and value, "text"),
        ("kind", lambda value: value in KINDS, f"one of {', '.join(KINDS)}"),
    ):
        if name not in values:
            wrong[name] = "it is missing"
        elif not fits(values[name]):
            wrong[name] = f"it must be {what}"
    if not wrong and _id_of(values) != values.get(_ID):
        wrong[_ID] = "it is not that of the content: the file was edited or damaged"
    return [
        Problem("checkpoint_malformed", f"{n}: {why}", Location.span(*(root.get(n) or root).span))
        for n, why in wrong.items()
    ]


def _id_of(values: Mapping[str, Any]) -> str:
    try:
        return artifact_id({name: value for name, value in values.items() if name != _ID})
    except NotCanonical:
        return ""


class StepBridge:
    """`StepCheckpointed` event logs: JSON lines, one event each, `json.dumps(event, sort_keys=True)`.

    Every event of the log is carried over, those of a step in the stream of that step, the others in that of their
    mission: a checkpoint is judged together with its surroundings (spent tokens, answers, the end of the step).
    """

    name = "step"
    lossy: tuple[str, ...] = (
        "blank lines, spacing and the order of the keys within a line",
        "whether a character was written as it is or as an escape",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        source = Source.from_bytes(path, data)
        faults = unreadable(source.text, 0, REGISTER)
        events: list[Foreign] = []
        start = 0
        for line in [] if faults else source.text.split("\n"):
            if line.strip():
                root, found = _event(path, line, start)
                faults += found
                if root is not None:
                    values = cast("Mapping[str, Json]", root.plain())
                    events.append(Foreign(self.name, _step_stream(values), values))
            start += len(line) + 1
        return tuple(faults) or tuple(events)

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        return "".join(f"{line_of(checkpoint.values)}\n" for checkpoint in checkpoints).encode("ascii")


def _event(path: str, line: str, start: int) -> tuple[Node | None, list[Problem]]:
    """The event on one line, or what is wrong with it; positions are those of the file."""
    loaded = load_json(Source(path, line))
    faults = [fault.moved(start) for fault in loaded.faults]
    root = loaded.root
    if root is None:
        return None, faults
    if not isinstance(root.value, dict):
        return None, [
            Problem("checkpoint_malformed", "an event is a JSON object", Location.span(start, start + len(line)))
        ]
    values = cast("Mapping[str, Any]", root.plain())
    if is_checkpoint(values):
        wrong = dict(problems(values))
        if "cursor" not in wrong and values["cursor"] not in CURSORS:
            wrong["cursor"] = f"it must be one of {', '.join(CURSORS)}"
        for name, why in wrong.items():
            node = root.get(name) or root
            faults.append(
                Problem("checkpoint_malformed", f"{name}: {why}", Location.span(node.start + start, node.end + start))
            )
    return (None if faults else root), faults


def _step_stream(values: Mapping[str, Json]) -> str:
    known = [values.get(name) for name in ("mission_id", "run_id", "step_id")]
    key = [part for part in known if isinstance(part, str) and part]
    return stream_named("step", *(key if len(key) == len(known) else [*key[:1], "events"]))
