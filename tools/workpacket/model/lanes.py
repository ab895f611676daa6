"""The lanes a work packet can stand in, and every name people give them.

A lane has a token (what board entries and events carry), a section of the task board, and aliases from older packets
and other tools. Packets also say `Done`, which names a section and not a lane: it fits each lane of that section.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Lane:
    """One lane. `unfinished` ones hold work that goes on, or may."""

    __slots__ = ("aliases", "section", "title", "token", "unfinished")

    def __init__(
        self, token: str, title: str, section: str, *, unfinished: bool, aliases: tuple[str, ...] = ()
    ) -> None:
        self.token = token
        self.title = title
        self.section = section
        self.unfinished = unfinished
        self.aliases = aliases

    def __repr__(self) -> str:
        return f"Lane({self.token})"


class Section:
    """One section of the task board, in board order. `key` is the part of the heading that is compared."""

    __slots__ = ("heading", "key")

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.key = section_key(heading)

    def __repr__(self) -> str:
        return f"Section({self.heading!r})"


def section_key(heading: str) -> str:
    """A heading without the remark in parentheses, in lower case: `Stub Backlog (Not Activated)` is `stub backlog`."""
    return " ".join(heading.partition("(")[0].split()).casefold()


LANES: tuple[Lane, ...] = (
    Lane(
        "STUB",
        "Stub",
        "stub backlog",
        unfinished=True,
        aliases=("stub not activated", "stub not ready for dev", "not ready for dev", "not activated", "genesis"),
    ),
    Lane("READY_FOR_DEV", "Ready for Dev", "ready for dev", unfinished=True, aliases=("planned", "ready")),
    Lane("IN_PROGRESS", "In Progress", "in progress", unfinished=True, aliases=("claimed", "doing", "active")),
    Lane("IN_REVIEW", "In Review", "in review", unfinished=True, aliases=("for review", "review")),
    Lane("MERGE_PENDING", "Merge pending", "in review", unfinished=True, aliases=("approved",)),
    Lane("BLOCKED", "Blocked", "blocked", unfinished=True),
    Lane("VALIDATED", "Validated", "done", unfinished=False, aliases=("pass", "complete", "completed")),
    Lane("FAIL", "Fail", "done", unfinished=False, aliases=("failed",)),
    Lane("OUTDATED_ONLY", "Outdated only", "done", unfinished=False),
    Lane("SUPERSEDED", "Superseded", "superseded", unfinished=False),
    Lane("ABANDONED", "Abandoned", "superseded", unfinished=False, aliases=("canceled", "cancelled")),
)

SECTIONS: tuple[Section, ...] = tuple(
    map(
        Section,
        (
            "Active (Cross-Branch Status)",
            "Ready for Dev",
            "Stub Backlog (Not Activated)",
            "In Progress",
            "In Review",
            "Done",
            "Blocked",
            "Superseded (Archive)",
        ),
    )
)

# A board entry of the section `Active` tells where work goes on; it is information, not a lane.
ACTIVE_TOKEN = "ACTIVE"  # noqa: S105 - a word on a board, not a credential

_BY_TOKEN = {lane.token: lane for lane in LANES}
_WORD = re.compile(r"[A-Za-z]+")
_BRACKETED = re.compile(r"\[([A-Za-z_ ]+)\]")


def lane_of_token(token: str) -> Lane | None:
    """The lane with exactly this token."""
    return _BY_TOKEN.get(token)


def lanes_named(text: str) -> tuple[Lane, ...]:
    """The lanes that a status line may mean, `()` where it names none.

    Case, punctuation, emoji and remarks behind the name do not count: `In-Progress (again)` is `IN_PROGRESS`. A token
    in brackets wins: `Done [FAIL]` is `FAIL`.
    """
    for bracketed in _BRACKETED.findall(text):
        named = _lanes_of_words(bracketed)
        if len(named) == 1:
            return named
    return _lanes_of_words(text)


def _lanes_of_words(text: str) -> tuple[Lane, ...]:
    words = [word.casefold() for word in _WORD.findall(text)]
    for count in range(min(len(words), 5), 0, -1):
        named = tuple(dict.fromkeys(_names().get(" ".join(words[:count]), ())))
        if named:
            return named
    return ()


_NAMES: dict[str, list[Lane]] = {}


def _names() -> dict[str, list[Lane]]:
    if not _NAMES:
        for lane in LANES:
            for name in _names_of(lane):
                _NAMES.setdefault(name, []).append(lane)
        _NAMES["done"] = [lane for lane in LANES if lane.section == "done"]
    return _NAMES


def _names_of(lane: Lane) -> Iterator[str]:
    yield lane.token.replace("_", " ").casefold()
    yield lane.title.casefold()
    yield from lane.aliases
