"""Names of runs, the lines in a list of runs, and waiting for a run to continue. This module only reads the store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from workpacket.runtime.errors import LogDamaged, RuntimeFault, StoreCorrupt
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.records.events import AnswerVerifier, Event
from workpacket.runtime.records.state import RunState, Status, fold
from workpacket.runtime.resume.observe import Observations, read_state
from workpacket.runtime.stores.contract import LINES, KeepsDerived, Store
from workpacket.value import Value

Liveness = Literal["live", "interrupted", "stopped", "cancelled", "completed", "moved"]


class RunSummary(Value):
    """One line in `runs list`. `attention` is the stop reason that a person must look at; '' if there is none."""

    id: str
    name: str
    packet: str
    liveness: Liveness
    attempt: int
    steps: int
    effects: int
    checkpoints: int
    attention: str
    holder: str
    updated_at: int


class RunLine(NamedTuple):
    """The part of a run's summary that comes from the index alone, which is fast even for thousands of runs. `since` is
    when the run began, stopped or ended.
    """

    id: str
    name: str
    packet: str
    liveness: Liveness
    attention: str
    holder: str
    since: int


RESERVED = "langgraph"  # the streams of threads begin with this word and a slash


def stream_prefix(name: str, packet: str) -> str:
    for part in (name, packet):
        if "@" in part or "/" in part or not part.isprintable():
            raise ValueError(f"{part!r}: the name of a run or packet must not contain '/', '@' or control characters")
    if not name:
        raise ValueError("a run needs a name")
    if packet == RESERVED:
        raise ValueError(f"{RESERVED!r} cannot be a run's packet: it is reserved for threads")
    return f"{packet}/{name}@" if packet else f"{name}@"


def stream_name(name: str, packet: str, key: str) -> str:
    """Return the id of the run with this key. In the key, characters that separate the parts of an id, and those that
    no one can see or type, are quoted as in a URL.
    """
    quoted = (
        letter if letter.isprintable() and letter not in "/@%" else letter.encode("utf-8", "surrogatepass").hex("%")
        for letter in key
    )
    return stream_prefix(name, packet) + "".join(f"%{one.upper()}" if len(one) > 1 else one for one in quoted)


def next_in_line(store: Store, prefix: str) -> str:
    """Return the name of the next run. A number is never reused, even after its run is removed."""
    number = newest_numbered(store, prefix, removed=True).removeprefix(prefix)
    return f"{prefix}{int(number) + 1 if number.isdigit() else 1:08d}"


def newest_numbered(store: Store, prefix: str, *, removed: bool = False) -> str:
    """Return the newest numbered run with this name; keyed runs do not count. `removed` includes runs removed by
    retention.
    """
    for limit in (20, None):  # keyed runs sort among the numbered ones, but there are rarely many
        for head in store.heads(f"{prefix}0", newest_first=True, limit=limit, removed=removed):
            if len(head.stream) == len(prefix) + 8 and head.stream[len(prefix) :].isdigit():
                return head.stream
    return ""


def state_of(store: Store, stream: str, verifier: AnswerVerifier | None = None) -> RunState:
    return fold(store.read(stream), verifier=verifier)


def summary_of(store: Store, stream: str) -> RunSummary:
    state, seen = read_state(store, stream, Observations())
    lease = store.lease(stream)
    holder = lease.holder if lease is not None and not is_certainly_dead(lease.holder) else ""
    alive: Liveness = "live" if holder else "interrupted"
    return RunSummary(
        stream,
        state.name,
        state.packet,
        _ENDED_AS.get(state.status, alive),
        state.attempt,
        len(state.steps),
        len(state.effects),
        len(state.checkpoints),
        _fault(seen) or _attention(state, holder),
        holder,
        state.last_recorded_at,
    )


_ENDED_AS: dict[Status, Liveness] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "stopped": "stopped",
    "moved": "moved",
}
_ENDED: dict[str, Liveness] = {
    "run.stopped": "stopped",
    "run.cancelled": "cancelled",
    "run.completed": "completed",
    "run.handed_over": "moved",
}


def lines_of(store: Store, prefix: str = "") -> tuple[RunLine, ...]:
    """Return a line for each run, ordered by id.

    A store may keep the lines, each with the hash at the end of its run's log: as long as the hash is the same, so is
    the line that would be derived. For the other runs, only the event that the index points to is verified;
    `summary_of` and `runs verify` read the whole log.
    """
    try:
        return _lines(store, prefix)
    except StoreCorrupt:  # one damaged page is not the whole list: each run is read by itself
        return tuple(_read_line(store, head.stream) for head in store.heads(prefix) if "@" in head.stream)


def _lines(store: Store, prefix: str) -> tuple[RunLine, ...]:
    holders = {lease.stream: lease.holder for lease in store.leases()}
    if not isinstance(store, KeepsDerived):
        return _lines_from_index(store, prefix, holders)
    kept, ends = _kept_lines(store), store.ends(prefix)
    lines: list[RunLine] = []
    others: list[str] = []
    for stream, end in ends.items():
        line = kept.get(stream)
        if line is not None and line[0] == end and stream not in holders:
            lines.append(RunLine._make(line[1:]))
        elif "@" in stream:
            others.append(stream)
    if len(others) <= FEW:
        lines += [_line_from_log(store, stream, holders.get(stream, "")) for stream in others]
        return tuple(sorted(lines))
    found = _lines_from_index(store, prefix, holders)
    _keep_lines(store, {**kept, **{line.id: [ends.get(line.id), *line] for line in found if line.id not in holders}})
    return found


FEW = 200  # lines are kept again once more than this many runs have changed


def _kept_lines(store: KeepsDerived) -> dict[str, list[Any]]:
    """Return the lines that the store has kept, by run, each preceded by the hash at the end of the run's log."""
    content = store.derived(LINES)
    return {} if content is None else {line[1]: line for line in json.loads(content)}


def _keep_lines(store: KeepsDerived, lines: Mapping[str, list[Any]]) -> None:
    """Keep the lines of the runs whose logs are sound."""
    sound = [line for line in lines.values() if line[0] is not None and line[5] not in {"log_damaged", "newer_schema"}]
    with suppress(RuntimeFault):  # busy, full or read-only: the lines are derived again the next time
        store.keep_derived(LINES, json.dumps(sound, separators=(",", ":")).encode("utf-8"))


def _lines_from_index(store: Store, prefix: str, holders: Mapping[str, str]) -> tuple[RunLine, ...]:
    """Derive the lines with one read of the index. A run missing from the index, or with an effect that may be in
    doubt, is folded.
    """
    newest = dict(store.newest("runs", prefix))
    # The name of a run contains '@'; other streams hold imported checkpoints, batches and roles.
    unknown = {h.stream: None for h in store.heads(prefix) if h.stream not in newest and "@" in h.stream}
    folded = unknown.keys() | _may_be_in_doubt(store, newest)
    lines = [
        _line(store, stream, event, holders.get(stream, ""), folded=stream in folded)
        for stream, event in {**newest, **unknown}.items()
    ]
    return tuple(sorted(lines))


def _line_from_log(store: Store, stream: str, holder: str) -> RunLine:
    """Derive one line as `_lines_from_index` does, for a run without a kept line."""
    try:
        event = store.latest("runs", stream)
    except LogDamaged:
        event = None
    folded = event is None or stream in _may_be_in_doubt(store, (stream,), stream)
    return _line(store, stream, event, holder, folded=folded)


def _read_line(store: Store, stream: str) -> RunLine:
    """Return the line of a run from its log. The line is marked as damaged if the log is, or if it is unknown who is
    working on the run."""
    packet, _, rest = stream.rpartition("/")
    try:
        whole = summary_of(store, stream)
    except RuntimeFault:
        return RunLine(stream, rest.partition("@")[0], packet, "interrupted", "log_damaged", "", 0)
    return RunLine(stream, whole.name or rest.partition("@")[0], packet, whole.liveness, whole.attention,
                   whole.holder, whole.updated_at)  # fmt: skip


def _line(store: Store, stream: str, event: Event | None, holder: str, *, folded: bool) -> RunLine:
    packet, _, rest = stream.rpartition("/")
    name = rest.partition("@")[0]
    holder = "" if holder and is_certainly_dead(holder) else holder
    if event is None:
        return RunLine(stream, name, packet, "interrupted", "log_damaged", holder, 0)
    if folded:
        whole = summary_of(store, stream)
        return RunLine(stream, name, packet, whole.liveness, whole.attention, whole.holder, event.recorded_at)
    liveness = _ENDED.get(event.type, "live" if holder else "interrupted")
    attention = {"interrupted": "worker_lost", "cancelled": "run_cancelled"}.get(liveness, "")
    if event.type == "run.stopped":
        attention = str(event.values().get("code", ""))
    return RunLine(stream, name, packet, liveness, attention, holder, event.recorded_at)


def _may_be_in_doubt(store: Store, streams: Iterable[str], only: str | None = None) -> set[str]:
    """Return the runs with an effect that was begun but not settled; all runs if that is unknown."""
    try:
        entries = (store.entries("effects", stream=only, status=status) for status in ("started", "failed"))
        return {entry.stream for found in entries for entry in found}
    except RuntimeFault:
        return set(streams)


def _fault(seen: Observations) -> str:
    if seen.log_fault:
        return "log_damaged"
    return "newer_schema" if seen.newer_schema else ""


def _attention(state: RunState, holder: str) -> str:
    if state.status == "moved":
        return ""
    if any(effect.kind == "manual" for effect in state.unknown_effects) and not holder:
        return "effect_outcome_unknown"
    if state.status == "completed":
        return ""
    if state.status == "running":
        return "" if holder else "worker_lost"
    return state.stop_code


def removable(runs: tuple[RunLine, ...], before: int) -> tuple[str, ...]:
    """Return the runs that finished before the given time, for retention. Runs that can be resumed are never
    included."""
    return tuple(run.id for run in runs if run.liveness == "completed" and not run.attention and run.since < before)


LOOK_AGAIN = 0.2  # seconds between two reads of a store that cannot send notifications
LONGEST = 5.0  # seconds between two reads of a store that can


class Wait(Protocol):
    def __call__(self) -> None:
        """Wait until the stream may have grown, or until some time has passed."""


class Waiting(Protocol):
    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Notifying(Protocol):
    """A store that notifies the followers of a stream."""

    def follower(self, stream: str) -> Waiting: ...


@contextmanager
def following(store: Store, stream: str) -> Iterator[Wait]:
    if not isinstance(store, Notifying):
        yield lambda: time.sleep(LOOK_AGAIN)
        return
    follower = store.follower(stream)
    try:
        yield lambda: follower.wait(LONGEST)
    finally:
        follower.close()
