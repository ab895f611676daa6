"""The lanes of work packets, and all their names.

A lane has a token (used in board entries and events), a section on the task board, and aliases from older packets and
other tools. Packets may also say `Done`, which names a section, not a lane: it matches each lane in that section.

A repository can add lanes, so code that reads or writes lane names gets a `LaneTable`: the built-in lanes, and the
lanes that the policy adds to them. `BUILT_IN` contains those that are the same everywhere.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

from workpacket.lazy_pattern import lazy_pattern
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Lane(Value):
    """One lane, with everything that the program needs to know about it. CONTRIBUTING lists the few other places to
    edit for a new lane.

    - `unfinished`: work continues here, or may; `in_work`: it is in progress now.
    - `may_be_stub`: a packet that was never activated may be here.
    - `waits`: its dependencies need not be done yet.
    - `held`: only the packet's holder or assignee may advance it.
    - `satisfies`: dependents of the packet no longer wait, unless the policy says otherwise.
    - `reclaimable`: finished, but can be claimed again.
    - `settled`: nothing depends on the packet any more, so its evidence is no longer examined.
    - `archived`: packets never leave this lane, and a later revision counts instead.
    - `derived`: no event moves a packet here; it is here because its work has been merged.
    - `lands_as`: what work in this lane counts as once it has been merged.
    - `not_now`: why files in its scope may not be changed now, after "but". `near`: how soon they may be, 0 for now.
    - `acts`: who advances the packet. `HOLDER` stands for the name of its holder.
    - `waits_for`: what a person must do before a packet moves on; '' if it waits for no one. `needs`: the same in one
      word, used as a filter in the audit.
    - `sign`: one ASCII character shown on screens, `tone` its color.
    - `older_sections`: the sections in which older boards list such packets.
    """

    token: str
    title: str
    section: str
    unfinished: bool
    aliases: tuple[str, ...] = ()
    in_work: bool = False
    may_be_stub: bool = False
    waits: bool = False
    held: bool = False
    satisfies: bool = False
    reclaimable: bool = False
    settled: bool = False
    archived: bool = False
    derived: bool = False
    lands_as: str = ""
    not_now: str = ""
    near: int = 5
    acts: str = "the orchestrator"
    waits_for: str = ""
    needs: str = ""
    sign: str = "*"
    tone: Literal["error", "warning", "info", "good"] | None = None
    older_sections: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Lane({self.token})"


class LaneSection:
    """One section of the task board, in board order. `key` is the part of the heading used for comparison."""

    __slots__ = ("heading", "key")

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.key = section_key(heading)

    def __repr__(self) -> str:
        return f"Section({self.heading!r})"


def section_key(heading: str) -> str:
    """Return a heading without the remark in parentheses, in lower case: `Stub Backlog (Not Activated)` is `stub
    backlog`.
    """
    return " ".join(heading.partition("(")[0].split()).casefold()


HOLDER: Final = "<holder>"

LANES: tuple[Lane, ...] = (
    Lane(
        "STUB",
        "Stub",
        "stub backlog",
        unfinished=True,
        may_be_stub=True,
        waits=True,
        not_now="it is a stub: work on it is not approved yet",
        near=4,
        sign=".",
        aliases=("stub not activated", "stub not ready for dev", "not ready for dev", "not activated", "genesis"),
    ),
    Lane(
        "READY_FOR_DEV",
        "Ready for Dev",
        "ready for dev",
        unfinished=True,
        in_work=True,
        waits=True,
        not_now="no one has claimed it",
        near=1,
        acts="anyone who claims it",
        sign="o",
        aliases=("planned", "ready"),
    ),
    Lane(
        "IN_PROGRESS",
        "In Progress",
        "in progress",
        unfinished=True,
        in_work=True,
        held=True,
        near=0,
        acts=HOLDER,
        sign=">",
        tone="info",
        aliases=("claimed", "doing", "active"),
    ),
    Lane(
        "IN_REVIEW",
        "In Review",
        "in review",
        unfinished=True,
        in_work=True,
        held=True,
        lands_as="MERGED",
        not_now="its work is in review, and a later change would not be judged",
        near=3,
        acts="a validator",
        waits_for="needs a verdict",
        needs="verdict",
        sign="?",
        aliases=("for review", "review"),
    ),
    Lane(
        "MERGE_PENDING",
        "Merge pending",
        "in review",
        unfinished=True,
        in_work=True,
        held=True,
        satisfies=True,
        lands_as="VALIDATED",
        acts="whoever merges",
        waits_for="needs a merge",
        needs="merge",
        sign="^",
        older_sections=("in progress", "done"),
        aliases=("approved",),
    ),
    Lane(
        "BLOCKED",
        "Blocked",
        "blocked",
        unfinished=True,
        waits=True,
        not_now="it is blocked",
        near=2,
        acts=HOLDER,
        waits_for="blocked",
        needs="unblocking",
        sign="!",
        tone="warning",
    ),
    Lane(
        "VALIDATED",
        "Validated",
        "done",
        unfinished=False,
        satisfies=True,
        sign="+",
        tone="good",
        aliases=("pass", "complete", "completed"),
    ),
    Lane(
        "FAIL",
        "Fail",
        "done",
        unfinished=False,
        held=True,
        reclaimable=True,
        settled=True,
        sign="x",
        tone="error",
        aliases=("failed",),
    ),
    Lane(
        "MERGED",
        "Merged",
        "done",
        unfinished=False,
        derived=True,
        sign="m",
        tone="info",
        aliases=("merged not judged", "not judged"),
    ),
    Lane("OUTDATED_ONLY", "Outdated only", "done", unfinished=False, settled=True, sign="~"),
    Lane(
        "SUPERSEDED",
        "Superseded",
        "superseded",
        unfinished=False,
        may_be_stub=True,
        settled=True,
        archived=True,
        sign="=",
    ),
    Lane(
        "ABANDONED",
        "Abandoned",
        "superseded",
        unfinished=False,
        may_be_stub=True,
        settled=True,
        archived=True,
        sign="-",
        older_sections=("done",),
        aliases=("canceled", "cancelled"),
    ),
)

# The tokens of the lanes with one property, for code that has a token, or '' for no lane.
ARCHIVED: Final = frozenset(lane.token for lane in LANES if lane.archived)
DERIVED: Final = frozenset(lane.token for lane in LANES if lane.derived)
LANDS_AS: Final = {lane.token: lane.lands_as for lane in LANES if lane.lands_as}
NOT_NOW: Final = {lane.token: lane.not_now for lane in LANES if lane.not_now}
HELD: Final = frozenset(lane.token for lane in LANES if lane.held)
NEAR: Final = tuple(lane.token for lane in sorted(LANES, key=lambda lane: lane.near))
# Those whose holder advances them.
HOLDERS: Final = frozenset(lane.token for lane in LANES if lane.acts == HOLDER)
# Those from which no work begins any more, so that a packet in them covers no change to come.
OVER: Final = frozenset(lane.token for lane in LANES if not (lane.unfinished or lane.reclaimable))
MAY_BE_STUB: Final = frozenset(lane.token for lane in LANES if lane.may_be_stub)
SETTLED: Final = frozenset(lane.token for lane in LANES if lane.settled)
WAITING: Final = frozenset(lane.token for lane in LANES if lane.waits)
# The lane of work that has landed although the policy requires no judge.
UNJUDGED: Final = "MERGED"


def lane_words(token: str) -> str:
    """Return a lane in words that people understand. The remark "not judged" is part of such a lane's name."""
    return f"{token} (not judged)" if token == UNJUDGED else token


# In lane order, the most advanced first.
IN_WORK: Final = tuple(lane.token for lane in LANES if lane.in_work)
SATISFYING: Final = tuple(lane.token for lane in reversed(LANES) if lane.satisfies)

SECTIONS: tuple[LaneSection, ...] = tuple(
    map(
        LaneSection,
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

# A board entry in the section `Active` says where work is being done; it is information, not a lane.
ACTIVE_TOKEN = "ACTIVE"  # noqa: S105 - a word on a board, not a credential

# The lanes of a packet without any setbacks, in order. Lanes are added between two adjacent ones.
WAY: Final = ("STUB", "READY_FOR_DEV", "IN_PROGRESS", "IN_REVIEW", "MERGE_PENDING", "VALIDATED")
# Those in which work may be done or begun without another step. No lane beside the path is one of them: what may be
# done there is for its own code to say.
OPEN: Final = frozenset(WAY[WAY.index("READY_FOR_DEV") : WAY.index("MERGE_PENDING")])

_WORD = lazy_pattern(r"[A-Za-z]+")
_BRACKETED = lazy_pattern(r"\[([A-Za-z_ ]+)\]")


class AddedLane(Value):
    """A lane that a repository adds: work enters it from `after` and moves on to `before`."""

    token: str
    after: str
    before: str
    title: str
    section: str
    means: str = ""


class LaneTable(Value):
    """The lanes of a repository. `added` lanes are in order, and consistent with each other and with the built-in
    lanes."""

    added: tuple[AddedLane, ...] = ()

    @cached_property
    def way(self) -> tuple[str, ...]:
        """Return the lanes from stub to done, including added ones."""
        way = list(WAY)
        for lane in self.added:
            way.insert(way.index(lane.after) + 1, lane.token)
        return tuple(way)

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """Return every lane; each added lane follows the lane that leads to it."""
        lanes = list(LANES)
        for lane in self.added:
            index = next(index for index, other in enumerate(lanes) if other.token == lane.after)
            lanes.insert(
                index + 1, Lane(lane.token, lane.title, section_key(lane.section), unfinished=True, in_work=True)
            )
        return tuple(lanes)

    @cached_property
    def sections(self) -> tuple[LaneSection, ...]:
        """Return every section in board order; the section of an added lane follows the sections of all earlier
        lanes."""
        sections = list(SECTIONS)
        for lane in self.added:
            before = {self._by_token[token].section for token in self.way[: self.way.index(lane.token)]}
            if section_key(lane.section) not in {section.key for section in sections}:
                last = max(index for index, section in enumerate(sections) if section.key in before)
                sections.insert(last + 1, LaneSection(lane.section))
        return tuple(sections)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        return tuple(lane.token for lane in self.lanes)

    @cached_property
    def key(self) -> str:
        """Return a short string that identifies the table; '' for the built-in lanes."""
        if not self.added:
            return ""
        from workpacket.digests import sha256

        return sha256(repr(self.added).encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        # Called for every row of a registry, to find the earlier result for the table.
        return hash(self.key)

    def lane(self, token: str) -> Lane | None:
        """Return the lane with exactly this token."""
        return self._by_token.get(token)

    def is_added(self, token: str) -> bool:
        return any(lane.token == token for lane in self.added)

    def onward(self, token: str) -> str:
        """Return the next lane in order."""
        return self.way[self.way.index(token) + 1]

    def section_of(self, lane: Lane) -> LaneSection:
        """Return the board section for packets in this lane."""
        return next(section for section in self.sections if section.key == lane.section)

    def named(self, text: str) -> tuple[Lane, ...]:
        """Return the lanes to which a status line may refer; `()` if it does not name a lane. Case, punctuation, emoji
        and
        remarks
        after the name are ignored: `In-Progress (again)` is `IN_PROGRESS`. A token in brackets takes precedence: `Done
        [FAIL]` is `FAIL`.
        """
        for bracketed in _BRACKETED.findall(text):
            named = self._of_words(bracketed)
            if len(named) == 1:
                return named
        return self._of_words(text)

    @cached_property
    def names(self) -> Mapping[str, tuple[Lane, ...]]:
        """Return the lanes by each of their names, in lower case."""
        names: dict[str, tuple[Lane, ...]] = {}
        for lane in self.lanes:
            for name in _names_of(lane):
                names[name] = tuple(dict.fromkeys((*names.get(name, ()), lane)))
        return {**names, "done": tuple(lane for lane in self.lanes if lane.section == "done")}

    def _of_words(self, text: str) -> tuple[Lane, ...]:
        words = [word.casefold() for word in _WORD.findall(text)]
        for count in range(min(len(words), self._longest), 0, -1):
            named = self.names.get(" ".join(words[:count]))
            if named:
                return named
        return ()

    @cached_property
    def _by_token(self) -> Mapping[str, Lane]:
        return {lane.token: lane for lane in self.lanes}

    @cached_property
    def _longest(self) -> int:
        return max(name.count(" ") for name in self.names) + 1


def words_of(name: str) -> str:
    """Return a lane name in normalized form."""
    return " ".join(_WORD.findall(name)).casefold()


def _names_of(lane: Lane) -> Iterator[str]:
    yield words_of(lane.token)
    yield words_of(lane.title)
    yield from lane.aliases


BUILT_IN: Final = LaneTable()


def lane_of_token(token: str) -> Lane | None:
    """Return the built-in lane with exactly this token."""
    return BUILT_IN.lane(token)


def lanes_named(text: str) -> tuple[Lane, ...]:
    """Return the built-in lanes to which a status line may refer."""
    return BUILT_IN.named(text)
