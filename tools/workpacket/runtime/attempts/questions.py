"""Questions of a run to a person, and what their answers cover.

An answer is bound to a digest of the question, target and arguments before redaction. If another question comes up at
the same place, it is a new one and shows both subjects. The last answer to a question counts, so a "no" can be taken
back; the log keeps who gave each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import Boundary, RecordDraft, Recorder
from workpacket.runtime.attempts.steps import Scope
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.jcs import jcs_hash, stored_text
from workpacket.runtime.resume.observe import shown_short, what_was_asked

Ask = Callable[[str, str], bool | None]


class Asking(NamedTuple):
    """A question, and what a person must see. `binding` is what the answer covers in addition to the question."""

    question: str
    kind: str
    place: str
    binding: Json
    arguments: Json
    name: str = ""
    target: str = ""
    child: str = ""


@dataclass(slots=True)
class Questions:
    recorder: Recorder
    boundary: Boundary
    ask: Ask | None = None
    replaying: bool = False  # the run is finished: no one is asked any more
    _times: dict[tuple[str, str], int] = field(default_factory=dict)

    def place(self, scope: Scope, question: str) -> str:
        """Return where in the program a question is asked: the same in every attempt that takes the same path."""
        number = self._times[scope.path, question] = self._times.get((scope.path, question), 0) + 1
        return jcs_hash([scope.path, question, number])

    def put(self, asking: Asking) -> None:
        """Continue only if a person agreed to exactly this; the answer is remembered."""
        bound = stored_text([self.recorder.stream, asking.question, asking.binding])
        subject = hashlib.sha256(bound.encode("utf-8")).hexdigest()
        # It may have been answered since the last look, by `resume --yes`, or its "no" may have been taken back.
        if self.recorder.state.confirmations.get(subject) != "yes":
            self.recorder.catch_up()
        answer = self.recorder.state.confirmations.get(subject)
        if answer is None:
            self._store(asking, subject)
            answer = self._answered_at_hand(asking, subject)
        if answer != "yes":
            raise self._denied(asking, subject)

    def _denied(self, asking: Asking, subject: str) -> RunBlocked:
        state = self.recorder.state
        question, given = state.questions.get(subject), state.answers.get(subject)
        by = given.shown_by if given is not None else ""
        take_back = (
            f"workpacket resume {self.recorder.stream} {question.id} --yes --confirm {subject}" if question else ""
        )
        return RunBlocked(
            f"{by or 'a person'} said no: {asking.question}",
            code="confirmation_denied",
            hint=f"to take it back: {take_back}" if take_back else "",
            details={"subject": subject, "by": by},
        )

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
        said = (("name", asking.name), ("target", asking.target), ("child", asking.child))
        data |= {name: value for name, value in said if value}
        if redactions:
            data["redactions"] = redactions
        self.recorder.record(RecordDraft("confirmation.requested", data, stored_text(cleaned).encode("utf-8")))

    def _answered_at_hand(self, asking: Asking, subject: str) -> str:
        question = self.recorder.state.questions[subject]
        cleaned, _ = self.recorder.redactor.clean_value(asking.arguments, json.dumps(asking.arguments))
        words = f"{asking.question}{_difference(self.recorder, question.before, cleaned)}"
        said = self.ask(words, subject) if self.ask is not None and not self.replaying else None
        if said is None:
            refused = self.recorder.state.refused_answers.get(subject, "")
            raise RunBlocked(
                f"waiting for a person: {words}{f' (the last answer does not count: {refused})' if refused else ''}",
                code="needs_confirmation",
                hint=f"workpacket resume {self.recorder.stream}",
                details={"subject": subject, "question": question.id, "arguments": cleaned},
            )
        answer = "yes" if said else "no"
        given: dict[str, Json] = {"subject": subject, "answer": answer, "by": self.recorder.actor}
        self.recorder.record(RecordDraft("confirmation.given", given))
        return answer


def _difference(recorder: Recorder, before: str, arguments: Json) -> str:
    """Describe what the question is about, and what it was about when it was asked here before."""
    now = f" {shown_short(arguments)}" if arguments not in (None, {}) else ""
    earlier = recorder.state.questions.get(before)
    if earlier is None:
        return f":{now}" if now else ""
    answer = {"yes": "confirmed", "no": "denied"}.get(recorder.state.confirmations.get(before, ""), "asked")
    old = shown_short(what_was_asked(recorder.store, earlier).get("arguments"))
    return f": {answer} before with {old}, now it is{now or ' without any'}"
