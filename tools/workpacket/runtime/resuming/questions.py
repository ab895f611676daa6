"""What waits for a person in a run: every open question with what it is about, and the answers that it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.records.state import CHANGE, EffectRecord, Question, RunState
from workpacket.runtime.records.values import value_of
from workpacket.runtime.stores.contract import Store

if TYPE_CHECKING:
    from workpacket.runtime.resuming.decide import Decision

SHORT = 200
YES_OR_NO = ("yes", "no")
OUTCOMES = ("mark-done", "retry", "compensate")


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """`digest` is what an answer is bound to. `changes`: old and new, by name. `before`: what was asked earlier."""

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

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "kind": self.kind,
            "code": self.code,
            "question": self.question,
            "name": self.name,
            "target": self.target,
            "arguments": self.arguments,
            "before": self.before,
            "changes": dict(self.changes or {}),
            "digest": self.digest,
            "answers": list(self.answers),
        }


def open_questions(store: Store, state: RunState, decision: Decision) -> tuple[OpenQuestion, ...]:
    """In the order in which they came up; effects of unknown outcome first, because nothing goes on before them."""
    if decision.action == "COMPLETE":
        return ()
    asked = [_asked(store, state, one) for one in state.open_questions]
    if decision.action == "CONFIRM" and CHANGE not in {one.kind for one in asked}:
        asked.append(_decided(decision))
    outcomes = (_outcome(effect) for effect in doubtful(state, decision))
    return (*outcomes, *(_receipt(effect) for effect in _missing_receipts(state, decision)), *asked)


def doubtful(state: RunState, decision: Decision) -> tuple[EffectRecord, ...]:
    """The effects that only a person can settle. While somebody works on the run, they are under way."""
    if decision.code in {"run_busy", "orphan_alive"}:
        return ()
    stopped = state.stop_code == "effect_outcome_unknown" and state.status == "stopped"
    return tuple(e for e in state.unknown_effects if e.kind == "manual" or (stopped and e.kind == "probe"))


def _missing_receipts(state: RunState, decision: Decision) -> tuple[EffectRecord, ...]:
    """The effects that happened and whose result a stopped run waits for."""
    if state.status != "stopped" or decision.code in {"run_busy", "orphan_alive"}:
        return ()
    return tuple(effect for effect in state.open_receipts if _receipt_code(effect) == state.stop_code)


def _receipt_code(effect: EffectRecord) -> str:
    return "receipt_redacted" if effect.redactions else "receipt_unkept"


def what_was_asked(store: Store, question: Question) -> Mapping[str, Json]:
    """What was stored with the question; nothing if it was erased, or asked by an older version."""
    try:
        payload = store.payload(question.event)
    except RuntimeFault:
        return {}
    value = value_of(payload) if payload is not None else None
    return value if isinstance(value, Mapping) else {}


def shown_short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."


def _asked(store: Store, state: RunState, question: Question) -> OpenQuestion:
    stored = what_was_asked(store, question)
    if question.kind == CHANGE:
        asked, changes = stored.get("asked"), stored.get("changes")
        return OpenQuestion(
            question.id, CHANGE, question.text, f"go on although {_listed(asked) or question.text}?", question.subject,
            YES_OR_NO, changes=changes if isinstance(changes, Mapping) else None,
        )  # fmt: skip
    earlier = state.questions.get(question.before)
    before = what_was_asked(store, earlier).get("arguments") if earlier is not None else None
    return OpenQuestion(
        question.id, question.kind, "needs_confirmation", question.text, question.subject, YES_OR_NO, question.name,
        question.target, stored.get("arguments"), before,
    )  # fmt: skip


def _decided(decision: Decision) -> OpenQuestion:
    asked: list[Json] = [check.as_json() for check in decision.checks if check.result == "confirm"]
    return OpenQuestion(CHANGE, CHANGE, decision.code, f"go on although {_listed(asked)}?", decision.subject, YES_OR_NO)


def _listed(asked: Json) -> str:
    """The differences in one line: each check that asks, with what it saw."""
    rows = [row for row in asked if isinstance(row, Mapping)] if isinstance(asked, list) else []
    found = []
    for row in rows:
        details = row.get("details")
        words = ", ".join(map(str, details)) if isinstance(details, list) else ""
        found.append(f"{row.get('code')}: {words}" if words else str(row.get("code")))
    return "; ".join(found)


def _outcome(effect: EffectRecord) -> OpenQuestion:
    return OpenQuestion(
        effect.step, "outcome", "effect_outcome_unknown", f"did {effect.step} happen?", effect.effect, OUTCOMES,
        effect.step, effect.target,
    )  # fmt: skip


def _receipt(effect: EffectRecord) -> OpenQuestion:
    return OpenQuestion(
        effect.step, "receipt", _receipt_code(effect), f"what did {effect.step} give? It happened", effect.effect,
        ("mark-done",), effect.step, effect.target,
    )  # fmt: skip
