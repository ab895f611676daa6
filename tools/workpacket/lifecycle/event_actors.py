"""Judging who wrote the events of a change, by the actors that the policy of the base names."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.event_signatures import EventSignatures
from workpacket.ledger.log import Log
from workpacket.lifecycle.event_checks import EventObjection
from workpacket.lifecycle.separation import not_apart


def judge_actors(log: Log, known: frozenset[str], signatures: EventSignatures) -> Iterator[EventObjection]:
    """Objections to who wrote the events of a log that the base does not have; `known` are the ids of those it has."""
    actors = signatures.actors
    if not actors.present:
        return
    for event in log.events:
        if event.id in known:
            continue
        signed = signatures.judge(event)
        if not signed.proven:
            yield EventObjection(signed.code, event, signed.message)
        if event.type == "verdict.given":
            before = log.ancestry(event.parents)
            for reason in not_apart(event.actor.id, (log.by_id[each] for each in before), actors):
                yield EventObjection("move_without_gate", event, f"the verdict is not another's: {reason}")
