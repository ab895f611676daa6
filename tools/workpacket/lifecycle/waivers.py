"""Which conditions somebody entitled has waived, for how long."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.ledger.state import PacketState
from workpacket.lifecycle.approval import WAIVER_GATE, Trust
from workpacket.lifecycle.unmet import Unmet
from workpacket.model.events import Event


def standing_waivers(state: PacketState, now: str, trust: Trust) -> Iterator[Event]:
    """The waivers that count now. One that nobody signed counts only where the policy at the base says so in words."""
    for event in state.waivers:
        counts = event.id in trust.attested or (trust.anchored and WAIVER_GATE in trust.legacy_gates)
        if counts and (event.text("expires_at") or "") > now:
            yield event


def still_unmet(
    unmet: tuple[Unmet, ...], state: PacketState, now: str, trust: Trust
) -> tuple[tuple[Unmet, ...], tuple[Event, ...]]:
    """What is left after the waivers, and the waivers that were used. A waiver may name one target of its rule."""
    used: dict[str, Event] = {}
    left: list[Unmet] = []
    waivers = list(standing_waivers(state, now, trust))
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
