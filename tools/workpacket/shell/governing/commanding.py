"""Carrying out a command of the lifecycle: take the lock, gather the facts, plan, apply. The plan decides, not this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from workpacket.documents.spec_pointer import specification_places
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository, find_repository
from workpacket.lifecycle.drafts import Answer, Planned
from workpacket.lifecycle.facts import Facts
from workpacket.model.events import Actor
from workpacket.model.layout import BOARD_PATH, POLICY_PATH, REGISTRY_PATH, SPEC_POINTER
from workpacket.shell.approvals.gate_queries import Question
from workpacket.shell.governing.gathering import gather
from workpacket.shell.held import look
from workpacket.shell.transactions.recovery import Recovered
from workpacket.shell.transactions.transaction import refuse_during_merge, writing
from workpacket.value import Value, replace

# How far the clocks of machines that work on one repository may be apart.
_SKEW: Final = timedelta(minutes=5)
_READ_BY_ALL: Final = (POLICY_PATH, BOARD_PATH, REGISTRY_PATH, SPEC_POINTER)


class Carried(Value):
    """The answer; what was written; and what an earlier command had left unfinished."""

    answer: Answer
    changed: tuple[str, ...] = ()
    finished: tuple[Recovered, ...] = ()


def carry_out(
    repository: Repository,
    command: str,
    names: Sequence[str] | None,
    actor: Actor,
    decide: Callable[[Facts], Answer],
    *,
    questions: Sequence[Question] = (),
    during_merge: bool = False,
    dry_run: bool = False,
) -> Carried:
    """`decide` plans from the facts about `names` (None: all packets); a plan is applied as one transaction.

    `questions` are put to the approvals about the packet that is named first.
    """
    with writing(repository, command, during_merge=during_merge) as transaction:
        held = transaction.held
        held.require(_READ_BY_ALL)
        if names is None:
            held.require_everything()
        else:
            held.require_packets(names)
        facts = gather(repository, names, actor, questions)
        if names is not None:
            held.require_packets(_waited_for(facts, names))
        if facts.specification is None:
            held.require(specification_places(facts.spec_pointer))
        _require_clock(facts, names)
        _require_lanes(facts)
        answer = decide(facts)
        if not isinstance(answer, Planned) or dry_run:
            return Carried(answer, (), transaction.finished)
        changed = transaction.apply(answer.plan)
        deleted = held.deleted() if names is not None else ""
        if deleted:
            answer = replace(answer, notes=(*answer.notes, deleted))
        return Carried(answer, changed, transaction.finished)


def facts_before(repository: Repository, names: Sequence[str], actor: Actor) -> Facts:
    """The facts about packets, for a command that does something before `carry_out`: makes a branch, runs a proof.

    WorkpacketError `tree_incomplete` if not all of these packets is here.
    """
    refuse_during_merge(repository)
    held = look(repository)
    held.require_visible()
    held.require(_READ_BY_ALL)
    held.require_packets(names)
    return gather(repository, names, actor)


def _waited_for(facts: Facts, names: Sequence[str]) -> list[str]:
    """What the packets named depend on: if it were hidden, it would seem not to exist."""
    named = (facts.packets[name] for name in names if name in facts.packets)
    return [needed for packet in named for needed in packet.dependencies()]


def _require_clock(facts: Facts, names: Sequence[str] | None) -> None:
    """Leases and approvals are judged by this clock: it may not be behind what the log has seen."""
    latest = datetime.fromisoformat(facts.moment.now) + _SKEW
    for name in names or ():
        packet = facts.packets.get(name)
        at = max((event.at for event in packet.log.events), default="") if packet is not None else ""
        if at and datetime.fromisoformat(at) > latest:
            message = f"this clock says {facts.moment.now}, but {name} has an event of {at}"
            raise WorkpacketError("clock_behind", message, hint="set the clock of this machine")


def _require_lanes(facts: Facts) -> None:
    """With a lane left out of the way, what stands behind it would be open."""
    for fault in facts.policy.lane_faults[:1]:
        raise WorkpacketError("lanes_unfit", fault.message, hint=fault.hint, path=POLICY_PATH)


def here() -> Repository:
    """The repository around the current folder."""
    return find_repository(Path.cwd())
