"""The board as values: columns of cards, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.documents.register_text import section_of
from workpacket.model.event_types import FORKED
from workpacket.model.lanes import SECTIONS, lane_of_token
from workpacket.report.linked_runs import LinkedRun
from workpacket.value import Value

# One sign a lane, so that nobody has to tell colours apart; ASCII, so that every terminal gives it one column.
SIGNS: Mapping[str, str] = {
    FORKED: "#",
    "STUB": ".",
    "READY_FOR_DEV": "o",
    "IN_PROGRESS": ">",
    "IN_REVIEW": "?",
    "MERGE_PENDING": "^",
    "BLOCKED": "!",
    "VALIDATED": "+",
    "FAIL": "x",
    "OUTDATED_ONLY": "~",
    "SUPERSEDED": "=",
    "ABANDONED": "-",
}


class Card(Value):
    """One packet. `note` is who holds it, or why it stands where it stands."""

    id: str
    lane: str
    note: str = ""
    title: str = ""
    runs: tuple[LinkedRun, ...] = ()


class Column(Value):
    """One section of the board. Of an `open` one the work goes on, or may."""

    heading: str
    open: bool
    cards: tuple[Card, ...]

    @property
    def name(self) -> str:
        """The heading without the remark behind it."""
        return self.heading.partition(" (")[0]


def columns(cards: Iterable[Card]) -> tuple[Column, ...]:
    """Every section in the order of the board; before them, if there are any, the packets whose log is forked."""
    by_section: dict[str, list[Card]] = {}
    forked = []
    for card in cards:
        lane = lane_of_token(card.lane)
        if lane is not None:
            by_section.setdefault(section_of(lane).key, []).append(card)
        elif card.lane == FORKED:
            forked.append(card)
    # The first section tells what goes on on other branches, which no log says.
    found = [
        Column(section.heading, section.key not in ("done", "superseded"), tuple(by_section.get(section.key, ())))
        for section in SECTIONS[1:]
    ]
    return (*([Column("Forked", True, tuple(forked))] if forked else []), *found)
