"""Link runs to the packets that they work on: the log of a packet records what happens in the store. The runtime knows
packets only by name; it has a witness (`runtime.stores.contract.Witness`), which this module implements. The start of
an attempt is recorded in the log first, its end in the store first. A process killed in between leaves a link open,
which `disagreements` finds and `settle` fixes; the log has every active run.

`run.closed` contains the hash that the stream had when the run ended. Anyone who can write to the store can recompute
all its hashes, but cannot change the log in git. The log therefore reveals such a change, and also a store that was
restored from a backup.

Links are read, made and closed one packet at a time, under the lock of all writers. Commands that show packets combine
the links with the local store.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from workpacket import __version__
from workpacket.approvals.actors import Actors
from workpacket.git.repository import Repository, find_repository
from workpacket.ledger.fold import LinkedRun, PacketState, fold
from workpacket.ledger.log import EventWriter, Log
from workpacket.lifecycle.claims import Ending, close_plan, link_plan
from workpacket.lifecycle.gates import link_unmet
from workpacket.model.events import Actor
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.runs import TEMPORAL, PacketRun, linked_runs, seen
from workpacket.runtime.catalog import RunLine
from workpacket.runtime.errors import LogDamaged, RunBlocked
from workpacket.runtime.holders import is_certainly_dead
from workpacket.runtime.runtime import Runtime, Settings
from workpacket.runtime.stores.contract import Store
from workpacket.shell import actor as clock
from workpacket.shell.actor import acting
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import GovernedFiles, packets_that_say
from workpacket.shell.keys import signed
from workpacket.shell.transactions.transaction import writing
from workpacket.value import Value, replace

_OUTCOMES: Final = {
    "run.completed": "completed", "run.stopped": "stopped", "run.cancelled": "cancelled", "run.handed_over": "stopped",
}  # fmt: skip


def ending_of(store: Store, stream: str) -> Ending | None:
    """Return how the last attempt ended; None if it has not ended."""
    last, head = store.latest("runs", stream), store.head(stream)
    if head is None:
        gone = next((one for one in store.heads(stream, removed=True) if one.stream == stream), None)
        # Only completed runs are ever removed.
        return None if gone is None else Ending("completed", digest=gone.hash, events=gone.version)
    if last is None or last.type not in _OUTCOMES:
        return None
    ending = Ending(_OUTCOMES[last.type], digest=head.hash, events=head.version)
    return replace(ending, code=str(last.values().get("code", ""))) if ending.outcome == "stopped" else ending


def with_store(
    state: PacketState, store: Store, identity: str, leases: Mapping[str, str], *, unfinished: bool, pages: str = ""
) -> tuple[PacketRun, ...]:
    """Combine the runs in the log with the store. `leases` maps held streams to their holders."""
    open_here = {run.run for run in state.open_runs if run.store == identity}
    found = linked_runs(state, unfinished=unfinished, pages=pages)
    return tuple(_as_seen(run, store, leases) if run.run in open_here else run for run in found)


def _as_seen(run: PacketRun, store: Store, leases: Mapping[str, str]) -> PacketRun:
    holder = leases.get(run.run, "")
    if store.head(run.run) is None:
        return seen(run, "not begun")
    if holder and not is_certainly_dead(holder):
        return seen(run, "live")
    ending = ending_of(store, run.run)
    if ending is not None:
        return seen(run, "ended", ending.code)
    began, blocked = store.latest("runs", run.run), store.latest("blocks", run.run)
    if began is not None and blocked is not None and blocked.version > began.version:
        return seen(run, "blocked", str(blocked.values().get("code", "")))
    return seen(run, "stale")


_LONGEST: Final = 200

Quarrel = Literal["late", "not_begun", "unlinked", "elsewhere"]

_LINKED = b'"run.linked"'


class Disagreement(Value):
    """A run on which store and log disagree.

    late: it has ended in the store, but its link is open. not_begun: there is a link but no run. unlinked: the run is
    unfinished, but has no open link. elsewhere: the link is open, but the run is in a store that is not on this
    machine.
    """

    run: str
    packet: str
    what: Quarrel
    message: str


class RunLinks:
    """The witness for one repository. `tell` receives what could not be written, so that the command can report it."""

    def __init__(self, repository: Repository, tell: Callable[[WorkpacketError], None] | None = None) -> None:
        self.repository = repository
        self._tell = tell or _warn

    def begins(self, store: Store, stream: str, packet: str) -> None:
        if len(stream) > _LONGEST or not stream.isprintable():
            message = (
                f"{stream[:40]!r}...: the name of a run that is linked to a packet must be printable and at most "
                f"{_LONGEST} characters long"
            )
            raise WorkpacketError("invalid_value", message)
        try:
            link(self.repository, acting(self.repository), packet, stream, store.identity)
        except WorkpacketError as error:
            if error.code != "packet_not_active":
                raise
            raise RunBlocked(error.message, code=error.code, hint=error.hint) from None

    def ended(self, store: Store, stream: str, packet: str) -> None:
        def ending() -> Ending | None:
            """Return how the run ended; None while another process holds the run, because that process is about to
            start another attempt.
            """
            lease, last = store.lease(stream), store.latest("runs", stream)
            if lease is not None and not is_certainly_dead(lease.holder) and (not last or last.fence != lease.token):
                return None
            return ending_of(store, stream)

        self._close(store, stream, packet, ending)

    def never_began(self, store: Store, stream: str, packet: str) -> None:
        """Close the link of a run that is not in the store, unless the run is just being started."""

        def ending() -> Ending | None:
            lease = store.lease(stream)
            beginning = lease is not None and not is_certainly_dead(lease.holder)
            return None if beginning or store.head(stream) is not None else Ending("not_begun")

        self._close(store, stream, packet, ending)

    def _close(self, store: Store, stream: str, packet: str, ending: Callable[[], Ending | None]) -> None:
        def is_it(run: LinkedRun) -> bool:
            return (run.run, run.store) == (stream, identity)

        try:
            identity = store.identity
            close(self.repository, acting(self.repository), packet, is_it, ending)
        except (WorkpacketError, OSError) as error:
            left = error if isinstance(error, WorkpacketError) else None
            code, why = (left.code, left.message) if left is not None else ("storage_failed", str(error))
            message = f"{stream} has ended, but its link in the log of {packet} is still open: {why}"
            self._tell(WorkpacketError(code, message, hint="workpacket runtime runs settle"))


def _warn(left: WorkpacketError) -> None:
    warnings.warn(f"{left.message}; {left.hint}", RuntimeWarning, stacklevel=2)


def governed_runtime(where: str | Path | None = None, settings: Settings | None = None) -> Runtime:
    """Return the runtime for programs that work on packets: like `Runtime.open`, but runs are linked in the packet's
    log.
    """
    witness = RunLinks(find_repository(Path.cwd()))
    chosen = settings or Settings()
    return Runtime.open(where, dataclasses.replace(chosen, witness=witness))


def disagreements(repository: Repository, runtime: Runtime) -> Iterator[Disagreement]:
    """Yield every difference between the local logs and the local store."""
    store = runtime.store
    identity = store.identity
    lines = {line.id: line for line in runtime.runs() if line.packet}
    for state in linked_packets(repository):
        for run in state.open_runs:
            yield from _about(store, identity, state.packet, run)
    for line in lines.values():
        if line.liveness in {"live", "interrupted"}:
            yield from _unlinked(repository, identity, line)


def _about(store: Store, identity: str, packet: str, run: LinkedRun) -> Iterator[Disagreement]:
    if run.store.startswith(TEMPORAL):
        return  # `workpacket.temporal.differences` asks the server
    if run.store != identity:
        message = f"{run.run} is linked to {packet} in the packet's log, but the run is in a different store"
        yield Disagreement(run.run, packet, "elsewhere", message)
    elif (ending := ending_of(store, run.run)) is not None:
        message = f"{run.run} is {ending.outcome}, but the link to it in the log of {packet} is still open"
        yield Disagreement(run.run, packet, "late", message)
    elif store.head(run.run) is None:
        yield Disagreement(run.run, packet, "not_begun", f"{run.run} is linked to {packet} but was never started")


def _unlinked(repository: Repository, identity: str, line: RunLine) -> Iterator[Disagreement]:
    state = state_here(repository, line.packet)
    if state.history and not any((run.run, run.store) == (line.id, identity) for run in state.open_runs):
        message = f"{line.id} is {line.liveness}, but the local log of {line.packet} has no open link to it"
        yield Disagreement(line.id, line.packet, "unlinked", message)


def packet_stop(repository: Repository, packet: str) -> Problem | None:
    """Return why a run of this packet may not continue, regardless of its store; None if it may."""
    state = state_here(repository, packet)
    return next((unmet for unmet in link_unmet(state)), None) if state.history or state.findings else None


def settle(repository: Repository, runtime: Runtime, links: RunLinks) -> tuple[list[Disagreement], list[Disagreement]]:
    """Record in the logs what the store knows; return what was settled, and what is left for a person to settle."""
    found = list(disagreements(repository, runtime))
    for one in found:
        if one.what == "late":
            links.ended(runtime.store, one.run, one.packet)
        elif one.what == "not_begun":
            links.never_began(runtime.store, one.run, one.packet)
        elif one.what == "unlinked" and not link_unmet(state_here(repository, one.packet)):
            links.begins(runtime.store, one.run, one.packet)
    left = {(one.run, one.what): one for one in disagreements(repository, runtime)}
    return [one for one in found if (one.run, one.what) not in left], list(left.values())


def differing_ends(repository: Repository, store: Store) -> Iterator[str]:
    """Yield every run in this store that did not end as the log says."""
    identity = store.identity
    for state in linked_packets(repository):
        for run in state.runs:
            what = _difference(store, run) if run.store == identity else ""
            if what:
                yield f"{run.run}: according to the log of {state.packet}, {what}"


def _difference(store: Store, run: LinkedRun) -> str:
    digest = (run.closed.text("stream_sha256") or "") if run.closed is not None else ""
    count = run.closed.data.get("events") if run.closed is not None else None
    if not digest or not isinstance(count, int):
        return ""
    head = store.head(run.run)
    head = head or next((one for one in store.heads(run.run, removed=True) if one.stream == run.run), None)
    if head is None or head.version < count:
        return f"it ended with {count} events, but the store has {head.version if head is not None else 0}"
    found = head.hash if head.version == count else _hash_at(store, run.run, count)
    return f"it ended with digest {digest[:12]}, but the store has {found[:12]}" if found and found != digest else ""


def _hash_at(store: Store, stream: str, version: int) -> str:
    """Return the hash; '' if it cannot be read because the event was removed, or because of damage, which the store
    check reports.
    """
    try:
        return next((event.hash for event in store.read(stream, version - 1, version)), "")
    except LogDamaged:
        return ""


def state_here(repository: Repository, packet: str) -> PacketState:
    return fold(_log(repository, packet))


def linked_packets(repository: Repository) -> Iterator[PacketState]:
    """Yield the packets that were ever linked to a run."""
    for log in packets_that_say(str(repository.root), _LINKED):
        yield fold(log)


def link(repository: Repository, actor: Actor, packet: str, run: str, store: str) -> None:
    """Link a run to its packet before the run begins. Raises WorkpacketError if the packet must not be worked on now.

    A packet without a log has no lane or gate yet, and no place for a link.
    """
    with writing(repository, "run") as transaction:
        log = _log(repository, packet)
        state = fold(log)
        if not state.history and not state.findings:
            return
        for unmet in link_unmet(state):
            raise WorkpacketError.of(unmet)
        actors = _actors(repository)
        plan = link_plan(log, state, _writer(actors.acting(actor)), run, store)
        if plan is not None:
            transaction.apply(signed(plan, actors))


def close(
    repository: Repository,
    actor: Actor,
    packet: str,
    is_it: Callable[[LinkedRun], bool],
    ending: Callable[[], Ending | None],
) -> tuple[LinkedRun, ...]:
    """Check the runs again under the lock; close the matching open links of those that have ended, and return these
    runs.
    """
    if not any(map(is_it, state_here(repository, packet).open_runs)):
        return ()
    with writing(repository, "run") as transaction:
        closed, actors = [], _actors(repository)
        while (run := next(filter(is_it, fold(log := _log(repository, packet)).open_runs), None)) is not None:
            ended = ending()
            if ended is None:
                break
            plan = close_plan(log, _writer(actors.acting(actor)), run, ended)
            transaction.apply(signed(plan, actors))
            closed.append(run)
        return tuple(closed)


def _actors(repository: Repository) -> Actors:
    return read_base_policy(repository).lifecycle.actors


def _log(repository: Repository, packet: str) -> Log:
    governed = GovernedFiles(str(repository.root))
    governed.look_for_log(packet)
    return governed.log(packet)


def _writer(actor: Actor) -> EventWriter:
    now = clock.moment()
    return EventWriter(actor, now.now, now.tx, f"workpacket {__version__}")
