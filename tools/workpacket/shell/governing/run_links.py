"""The links of runs in the logs here: read, added and closed, one packet at a time and under the lock of all
writers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workpacket import __version__
from workpacket.approvals.actors import Actors
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.ledger.fold import LinkedRun, PacketState, fold
from workpacket.ledger.log import EventWriter, Log
from workpacket.lifecycle.claims import Ending, close_plan, link_plan
from workpacket.lifecycle.gates import link_unmet
from workpacket.model.events import Actor
from workpacket.shell import actor as clock
from workpacket.shell.base import read_base_policy
from workpacket.shell.event_keys import signed
from workpacket.shell.governed_files import GovernedFiles, packets_that_say
from workpacket.shell.transactions.transaction import writing

_LINKED = b'"run.linked"'


def state_here(repository: Repository, packet: str) -> PacketState:
    return fold(_log(repository, packet))


def linked_packets(repository: Repository) -> Iterator[PacketState]:
    """Yield the packets to which a run was ever linked."""
    for log in packets_that_say(str(repository.root), _LINKED):
        yield fold(log)


def link(repository: Repository, actor: Actor, packet: str, run: str, store: str) -> None:
    """Link a run to its packet before it begins. WorkpacketError if the packet may not be worked on now.

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
    """Close the matching open links if the run, checked under the lock, has still ended; return the closed runs."""
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
