"""The observations of a resume, as plain values (`Observations`); `decide` judges them.

`None` means "not observed". If the checkpoint promised a check, a missing observation does not pass.

This module also reads from the log every question that waits for a person, its subject, and the allowed answers; for
changed inputs, the old and the new value, if neither is sensitive.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from workpacket.model.canonical import Json
from workpacket.runtime.errors import LogDamaged, NewerSchema, RunBlocked, RuntimeFault, StoreCorrupt
from workpacket.runtime.records.events import CHANGE, AnswerVerifier, AskedQuestion, Event
from workpacket.runtime.records.jcs import jcs_hash, value_of
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState
from workpacket.runtime.stores.contract import Store
from workpacket.value import Value
from workpacket.value import replace as replace_value

if TYPE_CHECKING:
    from workpacket.runtime.resume.decide import Decision


SHORT = 200
YES_OR_NO = ("yes", "no")
OUTCOMES = ("mark-done", "retry", "compensate")
UNSETTLED = frozenset({"started", "failed_unknown", "undone"})  # a person may say what to do about such an effect


class OpenQuestion(Value):
    """A question that is waiting for a person. `digest` is what an answer must contain. `changes`: old and new value,
    by name. `before`: an earlier question.
    """

    id: str
    kind: str
    code: str
    question: str
    digest: str
    answers: tuple[str, ...]
    name: str = ""
    target: str = ""
    arguments: Json = None
    before: Json = None
    changes: Mapping[str, Json] | None = None
    child: str = ""
    denied_by: str = ""  # who said no; "yes" takes it back
    proof: str = ""  # how that is known: signed or claimed
    refused: str = ""  # why the last answer does not count
    key: str = ""  # that of the effect
    begun_at: int = 0  # when the effect in doubt was begun, in microseconds since 1970

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "kind": self.kind,
            "code": self.code,
            "question": self.question,
            "child": self.child,
            "name": self.name,
            "target": self.target,
            "arguments": self.arguments,
            "before": self.before,
            "changes": dict(self.changes or {}),
            "digest": self.digest,
            "answers": list(self.answers),
            "denied_by": self.denied_by,
            "proof": self.proof,
            "refused": self.refused,
            "key": self.key,
            "begun_at": self.begun_at,
        }


def open_questions(store: Store, state: RunState, decision: Decision) -> tuple[OpenQuestion, ...]:
    """Return the questions in the order in which they arose. Effects with an unknown outcome come first, because they
    block everything.
    """
    if decision.action == "COMPLETE":
        return ()
    asked = [_asked(store, state, one) for one in state.open_questions]
    if decision.action == "CONFIRM" and CHANGE not in {one.kind for one in asked}:
        asked.append(_decided(decision))
    asked += [_denied(store, state, one) for one in state.denied_questions]
    outcomes = (_outcome(store, effect) for effect in (*doubtful(state, decision), *_undone(state, decision)))
    found = (*outcomes, *(_receipt(store, effect) for effect in _missing_receipts(state, decision)), *asked)
    refused = state.refused_answers
    return tuple(replace_value(one, refused=refused[one.digest]) if one.digest in refused else one for one in found)


def doubtful(state: RunState, decision: Decision) -> tuple[EffectRecord, ...]:
    """Return the effects that only a person can settle.

    While a process is working on the run, they count as in progress instead.
    """
    if decision.code in {"run_busy", "orphan_alive"}:
        return ()
    stopped = state.stop_code == "effect_outcome_unknown" and state.status == "stopped"
    return tuple(e for e in state.unknown_effects if e.kind == "manual" or (stopped and e.kind == "probe"))


def _undone(state: RunState, decision: Decision) -> tuple[EffectRecord, ...]:
    """Return the effects that were undone, if that stops the run. A program may catch the error and do without them."""
    if (state.status, state.stop_code) != ("stopped", "effect_failed") or decision.code in {"run_busy", "orphan_alive"}:
        return ()
    return tuple(effect for effect in state.effects.values() if effect.status == "undone")


def choices_about(effect: EffectRecord) -> tuple[str, ...]:
    """Return the answers about this effect that can be carried out, as a record stores them."""
    if effect.status == "undone":
        return ("retry", "mark_done")
    return ("mark_done", "retry", "compensate") if effect.compensable else ("mark_done", "retry")


def cannot_undo(effect: EffectRecord, run: str) -> RunBlocked:
    """Return the refusal of an answer that the program could not carry out."""
    if effect.status == "undone":
        return RunBlocked(
            f"{effect.step} has already been undone",
            code="effect_failed",
            hint=f"repeat it: {resume_with(run, effect.step, 'retry')}",
        )
    return RunBlocked(
        f"{effect.step} was begun without `compensate`, so its program cannot undo it",
        code="effect_outcome_unknown",
        hint=f"say that it happened: {resume_with(run, effect.step, 'mark-done')}; or undo it yourself, and have it "
        f"repeated: {resume_with(run, effect.step, 'retry')}",
    )


def resume_with(run: str, step: str, answer: str) -> str:
    """Return the command that gives this answer about an effect."""
    return f"workpacket resume {shlex.quote(run)} --{answer} {shlex.quote(step)}"


def _missing_receipts(state: RunState, decision: Decision) -> tuple[EffectRecord, ...]:
    """Return the effects that happened but whose missing results stop the run."""
    if state.status != "stopped" or decision.code in {"run_busy", "orphan_alive"}:
        return ()
    return tuple(effect for effect in state.open_receipts if _receipt_code(effect) == state.stop_code)


def _receipt_code(effect: EffectRecord) -> str:
    return "receipt_redacted" if effect.redactions else "receipt_unkept"


def what_was_asked(store: Store, question: AskedQuestion) -> Mapping[str, Json]:
    """Return the details that were stored with the question; empty if they were erased, or if the question was asked by
    an older version.
    """
    return _stored_with(store, question.event)


def _stored_with(store: Store, event: Event) -> Mapping[str, Json]:
    try:
        payload = store.payload(event)
    except RuntimeFault:
        return {}
    value = value_of(payload) if payload is not None else None
    return value if isinstance(value, Mapping) else {}


def shown_short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."


def _asked(store: Store, state: RunState, question: AskedQuestion) -> OpenQuestion:
    stored = what_was_asked(store, question)
    if question.kind == CHANGE:
        asked, changes = stored.get("asked"), stored.get("changes")
        return OpenQuestion(
            question.id,
            CHANGE,
            question.text,
            f"continue although {_listed(asked) or question.text}?",
            question.subject,
            YES_OR_NO,
            changes=changes if isinstance(changes, Mapping) else None,
        )
    earlier = state.questions.get(question.before)
    before = what_was_asked(store, earlier).get("arguments") if earlier is not None else None
    return OpenQuestion(
        question.id, question.kind, "needs_confirmation", question.text, question.subject, YES_OR_NO, question.name,
        question.target, stored.get("arguments"), before, child=question.child,
    )  # fmt: skip


def _denied(store: Store, state: RunState, question: AskedQuestion) -> OpenQuestion:
    """Return a question that was answered with no. Only the opposite answer is left."""
    answer = state.answers[question.subject]
    asked = _asked(store, state, question)
    return replace_value(
        asked, code="confirmation_denied", answers=("yes",), denied_by=answer.by or "a person", proof=answer.proof
    )


def _decided(decision: Decision) -> OpenQuestion:
    asked: list[Json] = [check.as_json() for check in decision.checks if check.result == "confirm"]
    return OpenQuestion(
        CHANGE, CHANGE, decision.code, f"continue although {_listed(asked)}?", decision.subject, YES_OR_NO
    )


def _listed(asked: Json) -> str:
    """List the differences on one line: each check that asks a question, with its observation."""
    rows = [row for row in asked if isinstance(row, Mapping)] if isinstance(asked, list) else []
    found = []
    for row in rows:
        details = row.get("details")
        words = ", ".join(map(str, details)) if isinstance(details, list) else ""
        found.append(f"{row.get('code')}: {words}" if words else str(row.get("code")))
    return "; ".join(found)


def _outcome(store: Store, effect: EffectRecord) -> OpenQuestion:
    undone = effect.status == "undone"
    code = "effect_failed" if undone else "effect_outcome_unknown"
    asked = f"{effect.step} was undone; do it again?" if undone else f"did {effect.step} happen?"
    answers = tuple(choice.replace("_", "-") for choice in choices_about(effect))
    return _about(store, effect, OpenQuestion(effect.step, "outcome", code, asked, effect.effect, answers))


def _receipt(store: Store, effect: EffectRecord) -> OpenQuestion:
    asked = f"what was the result of {effect.step}? The effect happened"
    open_ = OpenQuestion(effect.step, "receipt", _receipt_code(effect), asked, effect.effect, ("mark-done",))
    return _about(store, effect, open_)


def _about(store: Store, effect: EffectRecord, question: OpenQuestion) -> OpenQuestion:
    """Return the question with what identifies the effect: a person may have to choose among many alike."""
    question = replace_value(question, name=effect.step, target=effect.target)
    begun = effect.begun
    if begun is None:
        return question
    arguments, key = _stored_with(store, begun).get("arguments"), str(begun.values().get("key", ""))
    return replace_value(question, arguments=arguments, key=key, begun_at=begun.recorded_at)


GitRelation = Literal["exact", "ahead", "content_equal", "rewritten", "unreachable"]


@dataclass(frozen=True, slots=True)
class Observations:
    log_fault: str = ""
    newer_schema: str = ""
    lease_holder: str = ""
    orphans: tuple[str, ...] = ()
    name: str | None = None
    packet: str | None = None
    repository: str | None = None
    workdir: str | None = None
    code_version: str | None = None
    git: GitRelation | None = None
    foreign_changes: tuple[str, ...] | None = None
    digests: Mapping[str, str] | None = None
    inputs: Mapping[str, str] | None = None
    scope: tuple[str, ...] | None = None
    allow_deps: tuple[str, ...] | None = None
    environment: Mapping[str, str] | None = None
    budget: Mapping[str, Json] | None = None
    now: int = 0
    retry_token_hash: str = ""
    checkpoint_wanted: str = ""


@dataclass(frozen=True, slots=True)
class ResumePolicy:
    """Decisions that the owner of the runs made in advance."""

    resume_cancelled: bool = False
    allow_rewritten_history: bool = False
    ignore_environment: tuple[str, ...] = ()
    allow_unasked: bool = False  # finish a run although its program no longer asks for what an earlier attempt did


def hashes_by_key(values: Mapping[str, Json]) -> dict[str, str]:
    """Return one hash per key, so that a mismatch can name the keys that changed."""
    return {key: jcs_hash(value) for key, value in values.items()}


def changed_keys(recorded: Mapping[str, str], present: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys that were added or removed, or whose hash differs, in sorted order."""
    if recorded == present:  # nearly always, and this is asked at every step
        return ()
    return tuple(sorted(key for key in {*recorded, *present} if recorded.get(key) != present.get(key)))


class Observer(Protocol):
    """Adds to the promises of a checkpoint and to the observations for a resume: git, digests, environment."""

    def preconditions(self) -> Mapping[str, Json]: ...

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations: ...


def read_state(
    store: Store, stream: str, seen: Observations, verifier: AnswerVerifier | None = None
) -> tuple[RunState, Observations]:
    """Return the state according to the trustworthy part of the log, and what is wrong with the rest."""
    state = RunState(verifier=verifier)
    try:
        for event in store.read(stream):
            state.apply(event)
    except (LogDamaged, StoreCorrupt) as error:
        return state, replace(seen, log_fault=error.message)
    except NewerSchema as error:
        return state, replace(seen, newer_schema=error.message)
    return state, seen


def look_around(observers: tuple[Observer, ...], seen: Observations, point: CheckpointRecord | None) -> Observations:
    for observer in observers:
        seen = observer.look(seen, point)
    return seen


class FactsObserver:
    """Promises that named facts remain unchanged: facts of the environment, or digests of tasks, dependencies and
    configuration.

    Their owner determines them before each attempt, and supplies them as name and value, or name and digest.
    """

    def __init__(self, what: Literal["environment", "digests"], facts: Mapping[str, str]) -> None:
        self._what = what
        self._facts = dict(facts)

    def preconditions(self) -> Mapping[str, Json]:
        return {self._what: dict(self._facts)}

    def look(self, seen: Observations, point: CheckpointRecord | None) -> Observations:
        if point is None:
            return seen
        facts = {**(getattr(seen, self._what) or {}), **self._facts}
        return replace(seen, environment=facts) if self._what == "environment" else replace(seen, digests=facts)


HIDDEN = "[not shown]"


def shown_changes(
    store: Store, state: RunState, present: Mapping[str, Json], redactor: Redactor
) -> dict[str, dict[str, Json]]:
    """Return the old and new value of each changed key; an added or removed key has only one of them."""
    recorded = _recorded(store, state)
    shown: dict[str, dict[str, Json]] = {}
    for key in changed_keys(state.inputs, hashes_by_key(present)):
        sides = {"old": recorded, "new": present}
        shown[key] = {side: _harmless(key, values[key], redactor) for side, values in sides.items() if key in values}
    return shown


def changed_lines(changes: Json | Mapping[str, Json]) -> list[str]:
    """Format each change, with its old and new value."""
    if not isinstance(changes, Mapping):
        return []
    rows = [(key, sides) for key, sides in changes.items() if isinstance(sides, Mapping)]
    return [f"{key}: {_side(sides, 'old')} -> {_side(sides, 'new')}" for key, sides in rows]


def _side(sides: Mapping[str, Json], which: str) -> str:
    return shown_short(sides[which]) if which in sides else "absent"


def _recorded(store: Store, state: RunState) -> Mapping[str, Json]:
    """Return the inputs as last given; empty if they were erased."""
    try:
        payload = store.payload(state.inputs_said) if state.inputs_said is not None else None
    except RuntimeFault:
        return {}
    value = value_of(payload) if payload is not None else {}
    inputs = value.get("inputs") if isinstance(value, Mapping) else {}
    return inputs if isinstance(inputs, Mapping) else {}


def _harmless(key: str, value: Json, redactor: Redactor) -> Json:
    if names_a_secret(key):
        return HIDDEN
    return redactor.clean_value(value, json.dumps(value, ensure_ascii=False))[0]
