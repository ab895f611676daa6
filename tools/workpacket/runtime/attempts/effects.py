"""Effects: acts that change the world outside. The intent is durable before the act, the outcome after it.

What to do when an effect is reached is a pure question (`next_move`):

    nothing known, or certainly failed          start
    intended, not started                       start
    succeeded, or a person said it was done     return the receipt
    started or failed, outcome unknown:
        read, idempotent, keyed                 repeat (with the same key)
        probe                                   ask the probe: done -> return, not done -> start
        manual                                  block until a person says mark-done, retry or compensate
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.boundary import Boundary
from workpacket.runtime.attempts.recorder import Draft, Recorder
from workpacket.runtime.attempts.steps import CutShort, Options, decoded, encoded
from workpacket.runtime.errors import NotDone, RunBlocked, RuntimeFault
from workpacket.runtime.records.failures import failure_again, failure_data
from workpacket.runtime.records.jcs import jcs_hash
from workpacket.runtime.records.kinds import current
from workpacket.runtime.records.state import EffectRecord

Recovery = Literal["manual", "read", "idempotent", "keyed", "probe"]
Move = Literal["start", "return", "repeat", "probe", "block", "compensate"]
REPEATABLE: frozenset[str] = frozenset({"read", "idempotent", "keyed"})


class Plan(NamedTuple):
    """One effect as the code asks for it. `probe` says whether it happened: its receipt, or `NotDone` raised."""

    effect: str
    step: str
    recovery: Recovery
    target: str
    args_hash: str
    options: Options
    probe: Callable[[], Any] | None = None
    compensate: Callable[[], Any] | None = None


def effect_key(stream: str, step: str, recovery: str, target: str, args_hash: str) -> str:
    """The identity of an effect: what may succeed at most once."""
    return jcs_hash([stream, step, recovery, target, args_hash])


def user_key(stream: str, key_hash: str) -> str:
    """The identity of an effect whose author named it: the same wherever in the run it is asked for."""
    return jcs_hash([stream, key_hash])


COMPENSATED = "compensated"  # the error of an effect that was undone
KEYED = "key:"  # marks the hash of an author's key where otherwise the hash of the arguments stands


def identity(stream: str, step: str, recovery: str, target: str, args_hash: str) -> str:
    if args_hash.startswith(KEYED):
        return user_key(stream, args_hash)
    return effect_key(stream, step, recovery, target, args_hash)


def next_move(record: EffectRecord | None, recovery: Recovery) -> Move:
    if record is None or record.status in {"intended", "failed", "retry"}:
        return "start"
    if record.status in {"succeeded", "mark_done"}:
        return "return"
    if record.status == "compensate":
        return "compensate"
    if recovery in REPEATABLE:
        return "repeat"
    return "probe" if recovery == "probe" else "block"


def undone(step: str) -> RunBlocked:
    return RunBlocked(f"{step} was undone; the run stops here", code="effect_failed")


@dataclass(slots=True)
class Effects:
    recorder: Recorder
    boundary: Boundary
    replaying: bool = False  # the run is finished: nothing is written, and nothing is done
    repeated: list[str] = field(default_factory=list)
    # Begun, and no outcome is stored; with what has cut it short, if anything has.
    in_flight: dict[str, tuple[Plan, BaseException | None]] = field(default_factory=dict)

    def known(self, plan: Plan) -> EffectRecord | None:
        """What the log says of this effect; refuses a step that asked for another effect before."""
        state = self.recorder.state
        record = state.effects.get(plan.effect)
        if record is None and plan.options.changed == "block" and self._others(plan):
            raise RunBlocked(
                f"the effect {plan.step} was asked for with other arguments before",
                code="step_changed",
                details={"step": plan.step},
            )
        return record

    def done_for_other_inputs(self, plan: Plan) -> bool:
        """Whether the step did another effect for inputs that a person has agreed to replace meanwhile."""
        state = self.recorder.state
        if plan.effect in state.effects or plan.options.changed != "block":
            return False
        others = self._others(plan)
        return bool(others) and all(e.event.version < state.inputs_changed_at for e in others)

    def _others(self, plan: Plan) -> list[EffectRecord]:
        """The other effects that this step began; one that was only announced, and asked about, was not begun."""
        state = self.recorder.state
        if not state.effect_steps.get(plan.step):
            return []
        return [e for e in state.effects.values() if e.step == plan.step and e.status != "intended"]

    def move(self, plan: Plan) -> Move:
        move = next_move(self.known(plan), plan.recovery)
        missing = (move == "probe" and plan.probe is None) or (move == "compensate" and plan.compensate is None)
        if move == "block" or missing:
            raise RunBlocked(
                f"nobody knows whether {plan.target} ({plan.step}) happened",
                code="effect_outcome_unknown",
                details={"effect": plan.effect, "step": plan.step, "choices": ["mark_done", "retry", "compensate"]},
            )
        if move != "return":
            self.boundary.check()
        return move

    def failed(self, plan: Plan) -> BaseException | None:
        """In a finished run: what the effect raised. One that was never done is refused."""
        record = self.known(plan) if self.replaying else None
        if not self.replaying or (record is not None and next_move(record, plan.recovery) == "return"):
            return None
        if record is None or record.event.type != "effect.failed":
            self.boundary.check()
            return None
        data = current(record.event, self.recorder.kinds)
        return undone(record.step) if data.get("error") == COMPENSATED else failure_again(data)

    def leave(self, plan: Plan, error: BaseException) -> None:
        """The effect was cut short by something that is no failure of its own, such as a time limit around it."""
        if plan.effect in self.in_flight:
            self.in_flight[plan.effect] = (plan, error)

    def cut_short(self) -> list[Draft]:
        """What is still in flight when the run is finished, as failures of unknown outcome."""
        drafts = []
        for plan, error in self.in_flight.values():
            data: dict[str, Json] = {"effect": plan.effect, "step": plan.step, "definite": False}
            drafts.append(Draft("effect.failed", data | failure_data(error or CutShort(plan.step))))
        return drafts

    def receipt(self, plan: Plan) -> Any:
        record = self.recorder.state.effects[plan.effect]
        return decoded(self.recorder.store.payload(record.event), plan.options.codec)

    def intend(self, plan: Plan) -> bool:
        """Say what is going to be done, before somebody is asked whether it may. False if it is begun already."""
        record = self.known(plan)
        if record is None:
            self.boundary.check()
            self.recorder.record(Draft("effect.intended", self._data(plan)))
        return next_move(record, plan.recovery) == "start"

    def start(self, plan: Plan, *, repeated: bool) -> None:
        """From here on the act may have happened. Durable before this returns."""
        if repeated:
            self.repeated.append(plan.step)
        data = self._data(plan) | {"attempt": self.recorder.state.attempt}
        self.recorder.record(Draft("effect.started", data | ({"repeated": True} if repeated else {})))
        self.in_flight[plan.effect] = (plan, None)

    def succeed(self, plan: Plan, value: Any, *, by_probe: bool = False) -> None:
        payload, result_hash, redactions = encoded(value, plan.options.codec, self.recorder, plan.step)
        data = self._data(plan) | {"result_hash": result_hash}
        if redactions:
            data["redactions"] = redactions
        if by_probe:
            data["by_probe"] = True
        self.recorder.record(Draft("effect.succeeded", data, payload), key=f"succeeded:{plan.effect}")
        self.in_flight.pop(plan.effect, None)

    def fail(self, plan: Plan, error: Exception, tries: int) -> float:
        """The wait before the next try; raises `error` again if there is none or if trying again could do it twice."""
        if isinstance(error, RuntimeFault):
            self.leave(plan, error)
            raise error
        definite = isinstance(error, NotDone)
        data: dict[str, Json] = {
            "effect": plan.effect, "step": plan.step, "definite": definite, **failure_data(error),
        }  # fmt: skip
        self.recorder.record(Draft("effect.failed", data))
        self.in_flight.pop(plan.effect, None)
        wait = plan.options.retry.wait_after(tries, error)
        if wait is None or not (definite or plan.recovery in REPEATABLE):
            raise error
        return wait

    def compensated(self, plan: Plan) -> None:
        data: dict[str, Json] = {"effect": plan.effect, "step": plan.step, "definite": True, "error": COMPENSATED}
        self.recorder.record(Draft("effect.failed", data))
        raise undone(plan.step)

    def _data(self, plan: Plan) -> dict[str, Json]:
        return {
            "args_hash": plan.args_hash,
            "effect": plan.effect,
            "kind": plan.recovery,
            "step": plan.step,
            "target": plan.target,
        }
