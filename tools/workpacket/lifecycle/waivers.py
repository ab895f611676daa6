"""Which conditions somebody entitled has waived, for how long."""

from __future__ import annotations

from collections.abc import Iterator, Set

from workpacket.ledger.state import PacketState
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.events import Event


def standing_waivers(state: PacketState, now: str, approved: Set[str]) -> Iterator[Event]:
    """The waivers that count now: those that have not ended, of the events that the approvals layer accepts."""
    for event in state.waivers:
        if event.id in approved and not ended(event, now):
            yield event


def ended(waiver: Event, now: str) -> bool:
    return (waiver.text("expires_at") or "") <= now


def still_unmet(
    unmet: tuple[Unmet, ...], state: PacketState, now: str, approved: Set[str]
) -> tuple[tuple[Unmet, ...], tuple[Event, ...]]:
    """What is left after the waivers, and the waivers that were used. A waiver may name one target of its rule."""
    used: dict[str, Event] = {}
    left: list[Unmet] = []
    waivers = list(standing_waivers(state, now, approved))
    for one in unmet:
        event = next((event for event in waivers if _covers(event, one)), None)
        if event is None:
            left.append(one)
        else:
            used[event.id] = event
    return tuple(left), tuple(used.values())


def _covers(event: Event, one: Unmet) -> bool:
    target = event.text("target") or ""
    return event.text("rule") == one.code and (not target or target in one.message)
