"""The log of one packet as a graph: events linked to their parents, ordered for replay. Single files are checked first,
then the relations between them: a missing parent, a wrong clock, a second first event. Only events whose whole ancestry
is valid are replayed. The order of the checks on a file is the order of trust: the name proves the bytes, the bytes
must be canonical JSON, and the value must match the schema of an event. Comparing with the canonical form also refuses
what a JSON parser would accept: duplicate keys, spaces, escapes, other forms of numbers, a missing final newline.
Events in older versions of the format are upgraded while reading; the files are never rewritten. If a new version
requires a conversion, a function that converts events of the previous version is added here. Version 2 requires none:
its events may have a signature, and are otherwise like version 1 events.

Events are validated by the schemas of `model.event_types`, which are compiled by the same acceptor as those for
documents. Each type is compiled when its first event occurs: a log has few types, and ten thousand events must be
decoded within a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeAlias

from workpacket.digests import sha256
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.canonical import Json
from workpacket.model.event_types import (
    BEFORE_LANDING,
    CHECKPOINT_LOG,
    DATA,
    ENVELOPE,
    GENESIS_TYPES,
    OLDEST_VERSION,
    VERSION,
    Shape,
)
from workpacket.model.events import Actor, ChangedFile, LogEvent, encode_event, event_id, event_of
from workpacket.model.layout import LARGEST_EVENT, LARGEST_USUAL_EVENT, LOG_FOLDER
from workpacket.problem import Location, Problem
from workpacket.text.schema import compile_acceptor
from workpacket.text.schema_loading import Schema
from workpacket.text.source import Plain
from workpacket.value import NOTHING, Value


class Fractional(float):
    """A number with a fraction or an exponent, such as `1.0`: a type that the acceptor refuses."""


def event_misfit(value: Any) -> str:
    """Return the first error in `value` as a JSON pointer with a message; "" if it is a valid event."""
    if not _accepts("")(value):
        return _explained(value, _ready(ENVELOPE))
    if value["v"] == OLDEST_VERSION and "sig" in value:
        return f"/sig: an event of version {OLDEST_VERSION} has no signature"
    kind = value["type"]
    if not _accepts(kind)(value["data"]):
        return _explained(value, _ready({"properties": {"data": DATA[kind]}}))
    if (kind == "checkpoint") != (value["packet"] == CHECKPOINT_LOG):
        return f"/packet: events of type checkpoint, and only these, belong to {CHECKPOINT_LOG}"
    for pointer, ids in _ordered_sets(value):
        if not _is_ordered_set(ids):
            return f"{pointer}: must be sorted and contain no duplicates"
    return ""


def _is_ordered_set(ids: list[str]) -> bool:
    return len(ids) < 2 or ids == sorted(set(ids))


@cache
def _accepts(kind: str) -> Callable[[Plain], bool]:
    """Return a check for the data of an event type; for "", for the envelope; for a field of the envelope, for it."""
    shape: Shape = DATA[kind] if kind in DATA else ENVELOPE["properties"].get(kind, ENVELOPE)
    accepts = compile_acceptor(_ready(shape))
    assert accepts is not None, "an event may use only keywords that the acceptor knows"
    return accepts


def _ready(shape: Any) -> Any:
    """Convert the schema for Python: its patterns are valid in Python except for `$`, which also matches before a final
    newline. Item uniqueness is checked together with item order, which implies it.
    """
    if isinstance(shape, dict):
        kept = ((key, at) for key, at in shape.items() if key != "uniqueItems")
        return {key: f"{at[:-1]}\\Z" if key == "pattern" else _ready(at) for key, at in kept}
    return [_ready(item) for item in shape] if isinstance(shape, list) else shape


def _explained(value: Plain, schema: Schema) -> str:
    from workpacket.text.schema_violations import violations

    for first in violations(schema, value):
        return f"/{'/'.join(map(str, first.location.keys))}: {first.message}"
    return "/: a whole number is written with a fraction or an exponent"  # which JSON Schema ignores


def _ordered_sets(event: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sets in an event. Each must be sorted, so that equal sets have one form and equal events one id."""
    yield "/parents", event["parents"]
    yield "/attest", event["attest"]
    data = event["data"]
    if "dependencies" in data:
        yield "/data/dependencies", data["dependencies"]
    if event["type"] == "reapproved":
        yield "/data/replaces", data["replaces"]
    elif event["type"] == "fork.resolved":
        yield "/data/moves", data["moves"]
    elif event["type"] == "checkpoint":
        for index, log in enumerate(data["logs"]):
            yield f"/data/logs/{index}/heads", log["heads"]


def fault(code: str, path: str, message: str) -> Problem:
    # A sound log has no faults, and every command reads one.
    from workpacket.model.reason_tables.integrity import LOG_BY_CODE

    reason = LOG_BY_CODE[code]
    return Problem(code, message, Location(path), reason.remedy, severity=reason.severity)


Upcaster: TypeAlias = Callable[[dict[str, Json]], dict[str, Json]]


class Format(Value):
    """The current version, and how to convert to it: `upcasters[n]` converts version n to n + 1."""

    version: int
    upcasters: Mapping[int, Upcaster] = NOTHING

    def upcast(self, value: dict[str, Json]) -> dict[str, Json]:
        """Return the event, converted as far as possible to the current version."""
        while True:
            version = value.get("v")
            if type(version) is not int or version not in self.upcasters:
                return value
            value = {**self.upcasters[version](value), "v": version + 1}

    def too_new(self, value: Mapping[str, Json]) -> bool:
        version = value.get("v")
        return type(version) is int and version > self.version


FORMAT: Final = Format(VERSION)


_EVENT_NAME = lazy_pattern(r"[0-9a-f]{64}\.json")
_decode_json = json.JSONDecoder(parse_float=Fractional).decode
# The canonical form of values inside the profile, to which the schemas are limited; see `model.canonical`.
_encode_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


# Events that were accepted, by id, in each `each_event_decoded_once`; the innermost counts.
_accepted: list[dict[str, LogEvent]] = []
_MOST_ACCEPTED = 20_000


@contextmanager
def each_event_decoded_once() -> Iterator[None]:
    """Remember accepted events until the command ends. This is for commands that read all logs more than once: the
    events are equal anyway, and most of the time would be spent on decoding them. Memory bounds how many are kept.
    """
    _accepted.append({})
    try:
        yield
    finally:
        _accepted.pop()


def is_event_name(name: str) -> bool:
    return _EVENT_NAME.fullmatch(name) is not None


def decode_event(
    folder: str, name: str, data: bytes, *, names: Container[str] = (), form: Format = FORMAT
) -> LogEvent | Problem:
    """Return the event in file `name` of `folder`, the packet's log; `names` are the names of all files in it."""
    path = f"{folder}/{name}"
    # Before it is hashed and parsed: anyone can put a file of any size there.
    if len(data) > LARGEST_EVENT:
        return fault("event_too_large", path, f"{len(data):,} bytes; the limit for an event is {LARGEST_EVENT:,}")
    identity = sha256(data).hexdigest()
    if f"{identity}.json" != name:
        return _not_what_was_written(path, data, identity, names)
    # The id is the digest of the bytes, so this event was decoded from the same bytes.
    accepted = _accepted[-1] if _accepted and form is FORMAT else None
    known = accepted.get(identity) if accepted is not None else None
    if known is not None and path == known.path:
        return known
    event: LogEvent | Problem | None = _usual_event(folder, data, identity) if form is FORMAT else None
    if event is None:
        value = _canonical_value(data)
        if value is None:
            message = "the file is not one object in canonical JSON followed by a newline"
            return fault("event_not_canonical", path, message)
        event = _event_of_value(folder, path, form.upcast(value), identity, form)
    if accepted is not None and isinstance(event, LogEvent) and len(accepted) < _MOST_ACCEPTED:
        accepted[identity] = event
    return event


# The text of almost every event. Decoding only the data as JSON takes a third of the time of decoding all of it, which
# is most of the time of a command that reads two hundred thousand events. The pattern is narrower than the schema: it
# has no escapes, no days that some month lacks, and no large numbers.
_DIGESTS = r'\[((?:"[0-9a-f]{64}"(?:,"[0-9a-f]{64}"){0,49})?)\]'
_LINE = r'[^\x00-\x1f\x7f"\\]{1,200}'
_USUAL: Final = lazy_pattern(
    rf'\{{"actor":\{{"id":"({_LINE})","kind":"(human|agent|ci)"\}},'
    r'"at":"([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)",'
    rf'"attest":{_DIGESTS},"clock":([1-9][0-9]{{0,14}}),"data":(\{{.*\}}),"packet":"([A-Za-z0-9.-]{{1,80}})",'
    rf'"parents":{_DIGESTS}(?:,"sig":"([A-Za-z0-9+/]{{1,3998}}={{0,2}})")?,"subjects":(\[[^\]]*\]),"tool":"({_LINE})",'
    r'"tx":"([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})","type":"([a-z_.]+)",'
    r'"v":([12])\}\n'
)


def _usual_event(folder: str, data: bytes, identity: str) -> LogEvent | None:
    """Return the event if it is valid and in the usual form; None if only the general way can tell."""
    try:
        found = _USUAL.fullmatch(data.decode("utf-8")) if len(data) <= LARGEST_USUAL_EVENT else None
        if found is None:
            return None
        actor, by, at, attest, clock, data_text, packet, parents, sig, subjects_text, tool, tx, kind, v = found.groups()
        said, subjects = _decode_json(data_text), _decode_json(subjects_text) if subjects_text != "[]" else []
        canonical = _encode_json(said) == data_text and (
            subjects_text == "[]" or _encode_json(subjects) == subjects_text
        )
    except (ValueError, RecursionError):
        return None
    if not canonical or packet != folder.rpartition("/")[2] or kind not in DATA or kind == "checkpoint":
        return None
    value = {
        "v": int(v), "type": kind, "packet": packet, "clock": int(clock), "parents": _quoted(parents), "at": at,
        "actor": {"id": actor, "kind": by}, "tool": tool, "tx": tx, "subjects": subjects, "attest": _quoted(attest),
        "data": said, **({"sig": sig} if sig else {}),
    }  # fmt: skip
    valid = _accepts(kind)(said) and (not subjects or _accepts("subjects")(subjects))
    if not valid or (sig and v == f"{OLDEST_VERSION}"):
        return None
    for _, ids in _ordered_sets(value):
        if not _is_ordered_set(ids):
            return None
    return event_of(value, identity)


def _quoted(digests: str) -> list[str]:
    """Return the digests in the text of a JSON array."""
    return digests[1:-1].split('","') if digests else []


def _event_of_value(folder: str, path: str, value: dict[str, Any], identity: str, form: Format) -> LogEvent | Problem:
    if form.too_new(value):
        return fault("event_version_unknown", path, f"format version {value['v']}; supported: up to {form.version}")
    misfit = event_misfit(value)
    if misfit:
        return fault("event_malformed", path, misfit)
    packet = folder.rpartition("/")[2]
    if value["packet"] != packet:
        return fault("event_wrong_packet", path, f"the event belongs to {value['packet']}, not {packet}")
    return event_of(value, identity)


def _canonical_value(data: bytes) -> dict[str, Any] | None:
    """Return the value of the bytes, if they are the canonical form of that value."""
    try:
        text = data.decode("utf-8")
        value = _decode_json(text[:-1])
        if type(value) is not dict or f"{_encode_json(value)}\n" != text:
            return None
    # Thousands of nested brackets exhaust the stack of the parser.
    except (ValueError, RecursionError):
        return None
    return value


def _not_what_was_written(path: str, data: bytes, identity: str, names: Container[str]) -> Problem:
    # The content is intact, but the file with its name contains something else.
    if f"{identity}.json" in names:
        return fault("event_names_swapped", path, f"it has the content of {identity}.json")
    unconverted = sha256(data.replace(b"\r\n", b"\n")).hexdigest()
    if path.endswith(f"/{unconverted}.json"):
        return fault("event_line_ends", path, "LF was changed to CRLF; otherwise the event is unchanged")
    return fault("event_edited", path, f"its SHA-256 is {identity}, not the one in the file name")


class Log(Value):
    """The consistent events, by id and in replay order, their heads, and all errors.

    `renamed` are the events of other packets that had this id, and were given a different one before they were merged.
    """

    packet: str
    by_id: Mapping[str, LogEvent]
    heads: tuple[str, ...]
    findings: tuple[Problem, ...]
    renamed: Mapping[str, LogEvent] = NOTHING

    @property
    def events(self) -> tuple[LogEvent, ...]:
        return tuple(self.by_id.values())

    @property
    def stored(self) -> tuple[LogEvent, ...]:
        """Return every event in this log's folder."""
        return (*self.by_id.values(), *self.renamed.values())

    @property
    def is_renamed(self) -> bool:
        """Whether the packet has been given a different id, and its old id is not used by another packet."""
        return len(self.heads) == 1 and is_renaming(self.by_id[self.heads[0]])

    @property
    def sound(self) -> bool:
        """Whether the findings about the history contain no errors."""
        return not any(finding.severity == "error" for finding in self.findings)

    def ancestry(self, heads: Iterable[str]) -> frozenset[str]:
        """Return these events and all their ancestors; unknown ids are ignored."""
        known = {**self.by_id, **self.renamed} if self.renamed else self.by_id
        seen: set[str] = set()
        waiting = [head for head in heads if head in known]
        while waiting:
            identity = waiting.pop()
            if identity not in seen:
                seen.add(identity)
                waiting.extend(known[identity].parents)
        return frozenset(seen)

    def submission_before(self, verdict: LogEvent) -> LogEvent | None:
        """Return the submission that a verdict is about: the last one before it."""
        before = self.ancestry(verdict.parents)
        return next((each for each in reversed(self.events) if each.type == "submitted" and each.id in before), None)

    def as_of(self, heads: Iterable[str]) -> Log:
        """Return the log as seen by a writer with these heads."""
        seen = self.ancestry(heads)
        return join_events(self.packet, [event for event in self.events if event.id in seen])

    def until(self, moment: str) -> Log:
        """Return the log without events dated after this time, and without their descendants."""
        later = {event.id for event in self.events if event.at > moment}
        for event in self.events:
            if not later.isdisjoint(event.parents):
                later.add(event.id)
        return join_events(self.packet, [event for event in self.events if event.id not in later])


def read_log(packet: str, files: Mapping[str, bytes]) -> Log:
    """Return the log of `packet` from the files of its folder, by name."""
    folder = f"{LOG_FOLDER}/{packet}"
    events: list[LogEvent] = []
    findings: list[Problem] = []
    for name, data in files.items():
        if not is_event_name(name):
            findings.append(fault("log_foreign_file", f"{folder}/{name}", "its name is not a valid event name"))
            continue
        decoded = decode_event(folder, name, data, names=files)
        if isinstance(decoded, LogEvent):
            events.append(decoded)
        else:
            findings.append(decoded)
    return join_events(packet, events, findings)


def read_logs(files: Mapping[str, bytes]) -> tuple[dict[str, Log], list[Problem]]:
    """Return the logs by packet, and findings about other files in their folders."""
    folders: dict[str, dict[str, bytes]] = {}
    stray: list[Problem] = []
    for path, data in files.items():
        packet, slash, name = path.removeprefix(f"{LOG_FOLDER}/").partition("/")
        if slash and "/" not in name:
            folders.setdefault(packet, {})[name] = data
        else:
            stray.append(fault("log_foreign_file", path, "events must be in the folder of their packet"))
    return {packet: read_log(packet, folder) for packet, folder in sorted(folders.items())}, stray


def join_events(packet: str, events: Iterable[LogEvent], findings: Iterable[Problem] = ()) -> Log:
    """Return the graph of the valid events; `findings` are about the invalid files."""
    known = {event.id: event for event in events}
    found = list(findings)
    attached: dict[str, LogEvent] = {}
    followed: set[str] = set()
    # Clocks increase along every edge, so this order puts parents before their children.
    for event in sorted(known.values(), key=_replay_order):
        problem = _joint_fault(event, known)
        if problem is not None:
            found.append(problem)
        # An event above a faulty one is left out without a separate finding: its file is in order.
        elif all(parent in attached for parent in event.parents):
            attached[event.id] = event
            followed.update(event.parents)
    beginnings = [event for event in attached.values() if not event.parents]
    renamed: dict[str, LogEvent] = {}
    if len(beginnings) > 1:
        renamed = _renamed(attached, len(beginnings) - 1)
        attached = {identity: event for identity, event in attached.items() if identity not in renamed}
        beginnings = [event for event in beginnings if event.id not in renamed]
    found += _beginning_faults(packet, known, beginnings)
    heads = tuple(sorted(attached.keys() - followed))
    return Log(packet, attached, heads, tuple(sorted(found, key=lambda finding: finding.order)), renamed)


def is_renaming(event: LogEvent) -> bool:
    """Whether the event gives the packet a different id, so that the log of the old id can have a new beginning."""
    return event.text("renamed") == BEFORE_LANDING


def _renamed(attached: Mapping[str, LogEvent], most: int) -> dict[str, LogEvent]:
    """Return the events of at most `most` packets that were renamed: the events that have no effect except the
    renaming.
    """
    first: dict[str, frozenset[str]] = {}
    for event in attached.values():  # parents come before their children
        first[event.id] = frozenset().union(*(first[parent] for parent in event.parents)) or frozenset({event.id})
    last = {parent for event in attached.values() for parent in event.parents}
    ends: dict[str, list[LogEvent]] = {}
    for event in attached.values():
        if event.id not in last:
            for beginning in first[event.id]:
                ends.setdefault(beginning, []).append(event)
    over = sorted(
        beginning
        for beginning, events in ends.items()
        if len(events) == 1 and is_renaming(events[0]) and first[events[0].id] == {beginning}
    )[:most]
    return {identity: event for identity, event in attached.items() if first[identity] <= {*over}}


def _replay_order(event: LogEvent) -> tuple[int, str]:
    return event.clock, event.id


def _joint_fault(event: LogEvent, known: Mapping[str, LogEvent]) -> Problem | None:
    before = 0
    for parent in event.parents:
        if parent not in known:
            return fault("log_event_missing", event.path, f"its parent {parent} is not in the log")
        before = max(before, known[parent].clock)
    if event.clock != before + 1:
        return fault(
            "log_false_clock", event.path, f"the clock is {event.clock}, but the event's parents require {before + 1}"
        )
    if not event.parents and event.type not in GENESIS_TYPES:
        return fault("event_malformed", event.path, f"/parents: an event of type {event.type} cannot begin a log")
    if event.parents and event.type in ("created", "adopted"):
        return fault("event_malformed", event.path, f"/parents: an event of type {event.type} can only begin a log")
    return None


def _beginning_faults(packet: str, known: Mapping[str, LogEvent], beginnings: list[LogEvent]) -> list[Problem]:
    if not beginnings:
        missing = fault("log_no_genesis", f"{LOG_FOLDER}/{packet}", "the log has no first event")
        return [missing] if known else []
    first = beginnings[0].id
    return [fault("log_second_genesis", other.path, f"the log already begins with {first}") for other in beginnings[1:]]


class EventWriter(Value):
    """The actor, time, transaction and tool, which all events of one command share."""

    actor: Actor
    at: str
    tx: str
    tool: str


class NewLogEvent(Value):
    """What happened to a packet, not yet added to the log."""

    type: str
    data: Mapping[str, Json]
    subjects: Sequence[ChangedFile] = ()
    attest: Sequence[str] = ()


def next_event(writer: EventWriter, packet: str, happening: NewLogEvent, *, after: Sequence[LogEvent]) -> LogEvent:
    """Return the event that follows `after`: all heads of the log, or the previous event of the same command.

    Malformed data is a bug in the program, not in a document, and raises ValueError.
    """
    value: dict[str, Json] = {
        "v": VERSION,
        "type": happening.type,
        "packet": packet,
        "clock": 1 + max((event.clock for event in after), default=0),
        # Sorted: a set has one form, and so an event has one id.
        "parents": sorted({event.id for event in after}),
        "at": writer.at,
        "actor": {"id": writer.actor.id, "kind": writer.actor.kind},
        "tool": writer.tool,
        "tx": writer.tx,
        "subjects": [{"path": s.path, "prev": s.prev, "sha256": s.sha256} for s in happening.subjects],
        "attest": sorted(set(happening.attest)),
        "data": dict(happening.data),
    }
    misfit = event_misfit(value)
    if misfit:
        raise ValueError(f"event {happening.type} of {packet}: {misfit}")
    return event_of(value, event_id(encode_event(value)))
