"""The board as values: columns of cards, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from workpacket.model.event_types import FORKED
from workpacket.model.lanes import BUILT_IN, LaneTable
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
_ADDED_SIGN = "*"


def sign_of(lane: str) -> str:
    """The sign of a lane. All lanes that policies add have the same one: they are few, and each has its section."""
    return SIGNS.get(lane, _ADDED_SIGN)


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


def columns(cards: Iterable[Card], lanes: LaneTable = BUILT_IN) -> tuple[Column, ...]:
    """Every section in the order of the board.

    Before them, if there are any, the packets whose log is forked, and those in a lane that the policy does not have.
    """
    by_section: dict[str, list[Card]] = {}
    forked: list[Card] = []
    astray: list[Card] = []
    for card in cards:
        lane = lanes.lane(card.lane)
        if lane is not None:
            by_section.setdefault(lane.section, []).append(card)
        else:
            (forked if card.lane == FORKED else astray).append(card)
    # The first section tells what goes on on other branches, which no log says.
    found = [
        Column(section.heading, section.key not in ("done", "superseded"), tuple(by_section.get(section.key, ())))
        for section in lanes.sections[1:]
    ]
    strays = [Column("Forked", True, tuple(forked)), Column("Not in the policy", True, tuple(astray))]
    return (*(column for column in strays if column.cards), *found)
