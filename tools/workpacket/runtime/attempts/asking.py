"""Questions that a program puts to a person: stored with what they are about, answered for exactly that.

The answer is bound to a digest of question, target and arguments as they are, before anything is taken out of them.
Asked at the same place about something else, the question is a new one, and names both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import Boundary, RecordDraft, Recorder
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.calls import Scope
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.values import stored_text
from workpacket.runtime.resuming.questions import shown_short, what_was_asked

Ask = Callable[[str, str], bool | None]


class Asking(NamedTuple):
    """A question and what a person has to see. `binding`: what besides the question an answer holds for."""

    question: str
    kind: str
    place: str
    binding: Json
    arguments: Json
    name: str = ""
    target: str = ""


@dataclass(slots=True)
class Questions:
    recorder: Recorder
    boundary: Boundary
    ask: Ask | None = None
    replaying: bool = False  # the run is finished: nobody is asked any more
    _times: dict[tuple[str, str], int] = field(default_factory=dict)

    def place(self, scope: Scope, question: str) -> str:
        """Where in the program a question is asked: the same in every attempt that comes there in the same way."""
        number = self._times[scope.path, question] = self._times.get((scope.path, question), 0) + 1
        return jcs_hash([scope.path, question, number])

    def put(self, asking: Asking) -> None:
        """Go on only if a person said yes to exactly this; the answer is remembered."""
        bound = stored_text([self.recorder.stream, asking.question, asking.binding])
        subject = hashlib.sha256(bound.encode("utf-8")).hexdigest()
        if subject not in self.recorder.state.confirmations:
            self.recorder.catch_up()
        answer = self.recorder.state.confirmations.get(subject)
        if answer is None:
            self._store(asking, subject)
            answer = self._answered_at_hand(asking, subject)
        if answer != "yes":
            code = "confirmation_denied"
            raise RunBlocked(f"a person said no: {asking.question}", code=code, details={"subject": subject})

    def _store(self, asking: Asking, subject: str) -> None:
        state = self.recorder.state
        if state.asked_at.get(asking.place) == subject:
            return
        if self.replaying:
            if subject not in state.questions:
                self.boundary.check()
            return
        content: Json = {"arguments": asking.arguments}
        cleaned, redactions = self.recorder.redactor.clean_value(content, stored_text(content))
        data: dict[str, Json] = {
            "subject": subject, "place": asking.place, "kind": asking.kind, "question": asking.question,
        }  # fmt: skip
        data |= {name: value for name, value in (("name", asking.name), ("target", asking.target)) if value}
        if redactions:
            data["redactions"] = redactions
        self.recorder.record(RecordDraft("confirmation.requested", data, stored_text(cleaned).encode("utf-8")))

    def _answered_at_hand(self, asking: Asking, subject: str) -> str:
        question = self.recorder.state.questions[subject]
        cleaned, _ = self.recorder.redactor.clean_value(asking.arguments, json.dumps(asking.arguments))
        words = f"{asking.question}{_difference(self.recorder, question.before, cleaned)}"
        said = self.ask(words, subject) if self.ask is not None and not self.replaying else None
        if said is None:
            raise RunBlocked(
                f"waiting for a person: {words}",
                code="needs_confirmation",
                hint=f"workpacket resume {self.recorder.stream}",
                details={"subject": subject, "question": question.id, "arguments": cleaned},
            )
        answer = "yes" if said else "no"
        given: dict[str, Json] = {"subject": subject, "answer": answer, "by": self.recorder.actor}
        self.recorder.record(RecordDraft("confirmation.given", given))
        return answer


def _difference(recorder: Recorder, before: str, arguments: Json) -> str:
    """What it is about, and what it was about when it was asked here before."""
    now = f" {shown_short(arguments)}" if arguments not in (None, {}) else ""
    earlier = recorder.state.questions.get(before)
    if earlier is None:
        return f":{now}" if now else ""
    answer = {"yes": "confirmed", "no": "denied"}.get(recorder.state.confirmations.get(before, ""), "asked")
    old = shown_short(what_was_asked(recorder.store, earlier).get("arguments"))
    return f": {answer} before with {old}, now it is{now or ' without any'}"
