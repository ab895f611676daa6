"""The questions that the log of a run holds: what was asked, where, and what was asked there before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workpacket.runtime.records.data_fields import text
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.kinds import Data

CHANGE = "change"


class Question(NamedTuple):
    """What a person was asked. `event` holds what it is about; `before` was asked earlier at the same place.

    `kind`: the program asked (`program`, `effect`), or the difference that kept the run from going on (`change`).
    """

    id: str
    subject: str
    text: str
    kind: str
    place: str
    name: str
    target: str
    before: str
    event: Event


def take_in(
    questions: dict[str, Question], asked_at: dict[str, str], event: Event, data: Data, where: tuple[str, str]
) -> None:
    """Take in a question by its kind and place. The ids are numbers in the order in which questions came up."""
    kind, place = where
    subject = text(data, "subject")
    known = questions.get(subject)
    last = asked_at.pop(place, "")
    before = last if last != subject else (known.before if known is not None else "")
    id_ = known.id if known is not None else f"q{len(questions) + 1}"
    words, name, target = text(data, "question"), text(data, "name"), text(data, "target")
    questions[subject] = Question(id_, subject, words, kind, place, name, target, before, event)
    asked_at[place] = subject


def still_open(
    questions: Mapping[str, Question], asked_at: Mapping[str, str], answers: Mapping[str, str], blocked_on: str
) -> tuple[Question, ...]:
    """The newest question of each place, if it has no answer; of changes, the one that the run was stopped by."""
    newest = [questions[subject] for subject in asked_at.values() if subject not in answers]
    return tuple(one for one in newest if one.kind != CHANGE or one.subject == blocked_on)
