"""Stories of a team: what eight people do to a few packets, drawn from a seed, and how a story that fails is shortened.

Each step means something wherever it is in a story, or nothing, so that any step can be left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

FORMS: Final = ("light", "signed", "full", "branch")
LANDINGS: Final = ("merge", "squash", "rebase")
PEOPLE: Final = 8
PARTS: Final = 3
# Two of the eight have a clone that git converts, or a clock that is wrong by so many seconds.
CRLF: Final = 6
WRONG_CLOCK: Final = 7
WRONG_BY: Final = (-31_536_000, -900, 240, 900, 86_400)

# What a packet lives through when nothing goes wrong, and what may happen to it on the way.
_LIFE: Final = ("new", "start", "work", "push", "done", "push", "verdict", "push", "land", "record", "land")
_UPSETS: Final = (
    ("block", "push", "unblock"),
    ("block", "land", "unblock"),
    ("release", "push", "claim"),
    ("release", "push", "land", "claim"),
    ("handover", "push"),
    ("amend", "push"),
    ("note",),
    ("note", "push", "land"),
    ("changes", "push", "work", "done"),
    ("reopen", "work", "done"),
    ("abandon", "push", "land"),
    ("revise", "push", "land"),
    ("push", "land"),
    ("claim",),
    ("edit_board", "push"),
    ("revert", "push"),
    ("pull",),
    ("rebase",),
    ("wait",),
    ("kill",),
)


@dataclass(frozen=True)
class Step:
    """Someone does something to a packet. Who is stale does not fetch first; `how` is for landings."""

    who: int
    does: str
    part: int
    stale: bool = False
    how: str = ""

    def __str__(self) -> str:
        return f"{self.who} {self.does} {self.part}{f' {self.how}' if self.how else ''}{' stale' if self.stale else ''}"


@dataclass(frozen=True)
class Story:
    seed: int
    form: str
    wrong_by: int
    steps: Sequence[Step]

    def __str__(self) -> str:
        return f"seed {self.seed} ({self.form}, clock {self.wrong_by:+} s): " + "; ".join(map(str, self.steps))


def tell(seed: int) -> Story:
    """The story of a seed."""
    chance = random.Random(seed)
    form = chance.choice(FORMS)
    lives = [list(_life(chance, part)) for part in range(1, chance.randint(2, PARTS) + 1)]
    steps = []
    while lives:
        life = chance.choice(lives)
        steps.append(life.pop(0))
        if not life:
            lives.remove(life)
    return Story(seed, form, chance.choice(WRONG_BY), steps)


def _life(chance: random.Random, part: int) -> Iterator[Step]:
    does = list(_LIFE)
    for _ in range(chance.randint(0, 3)):
        place = chance.randint(1, len(does))
        does[place:place] = chance.choice(_UPSETS)
    owner = chance.randrange(PEOPLE)
    for each in does:
        who = chance.randrange(PEOPLE) if chance.random() < 0.2 else owner
        how = chance.choice(LANDINGS) if each == "land" else ""
        yield Step(who, each, part, chance.random() < 0.15, how)


def shortened(story: Story, fails: Callable[[Story], bool]) -> Story:
    """The story without every step that it does not take to fail."""
    steps = list(story.steps)
    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps):
            rest = steps[:at] + steps[at + size :]
            if fails(Story(story.seed, story.form, story.wrong_by, rest)):
                steps = rest
            else:
                at += size
        size //= 2
    return Story(story.seed, story.form, story.wrong_by, steps)
