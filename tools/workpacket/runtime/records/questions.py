"""Questions and answers as the log keeps them. Ids are numbers in the order in which the questions arose.

Anyone who can write to a store can add an answer to it. Where a run has a verifier, an answer counts only with a
person's signature over `AnswerToJudge.covered`: the run, the question, its text, the digest of the arguments, and the
answer. An answer that does not count is kept in the log, and the question stays open.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from workpacket.model.canonical import Json
from workpacket.runtime.records.events import Data, Event, text
from workpacket.runtime.records.jcs import jcs_text

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
    """An answer to a question. `by` is the name of the person who signed it, or else a claimed one."""

    answer: str
    by: str
    note: str
    at: int
    signed: bool = False

    @property
    def proof(self) -> str:
        return "signed" if self.signed else "claimed"

    @property
    def shown_by(self) -> str:
        """Return who answered, and how that is known."""
        return f"{self.by or 'a person'} ({self.proof})"


class AnswerToJudge(NamedTuple):
    """An answer with everything that its signature covers.

    `subject` is the digest of question, target and arguments before redaction, or the id of an effect; `shown` is the
    digest of what was stored of the arguments; `result` that of a value given with the answer. `envelope` has the
    signature; '' if there is none. `at` is the time of the record, in microseconds since 1970.
    """

    run: str
    subject: str
    question: str
    shown: str
    answer: str
    result: str
    note: str
    envelope: str
    at: int

    def covered(self) -> bytes:
        """Return the bytes whose digest the person signs."""
        said: dict[str, Json] = {name: value for name, value in self._asdict().items() if name not in _NOT_COVERED}
        return jcs_text({"v": 1, **said}).encode("utf-8")


_NOT_COVERED = frozenset({"envelope", "at"})


class JudgedAnswer(NamedTuple):
    """The result of verifying an answer. Without a refusal it counts: as `signer`'s, or as claimed if that is ''.

    `nonce` occurs in one signature only: an answer that was taken back cannot be repeated.
    """

    signer: str = ""
    nonce: str = ""
    refusal: str = ""


class AnswerVerifier(Protocol):
    def judge(self, answer: AnswerToJudge) -> JudgedAnswer:
        """Say whether the answer counts, and who signed it."""
        ...


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
