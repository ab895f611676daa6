"""Questions and answers as the log keeps them. Ids are numbers in the order in which the questions arose."""

from __future__ import annotations

from typing import NamedTuple

from workpacket.runtime.records.events import Data, Event, text

CHANGE = "change"


class AskedQuestion(NamedTuple):
    """A question that a person was asked. `event` contains its subject; `before` is the earlier question at the same
    place.

    `kind` says whether the program asked (`program`, `effect`), or a difference prevented the run from continuing
    (`change`).
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
    child: str = ""


class LastAnswer(NamedTuple):
    """An answer to a question. `by` is the name that the person who answered claimed."""

    answer: str
    by: str
    note: str
    at: int


def take_in(
    questions: dict[str, AskedQuestion], asked_at: dict[str, str], event: Event, data: Data, where: tuple[str, str]
) -> None:
    """Add a question by its kind and place. Ids are numbers in the order in which questions arose."""
    kind, place = where
    subject = text(data, "subject")
    known = questions.get(subject)
    last = asked_at.pop(place, "")
    before = last if last != subject else (known.before if known is not None else "")
    id_ = known.id if known is not None else f"q{len(questions) + 1}"
    words, name, target = text(data, "question"), text(data, "name"), text(data, "target")
    child = text(data, "child").rstrip("/")
    questions[subject] = AskedQuestion(id_, subject, words, kind, place, name, target, before, event, child)
    asked_at[place] = subject
