"""Effects: actions that change the outside world. The intent is durable before the action, the outcome after it.

`next_move`, a pure function, determines what to do when an effect is reached:

    nothing known, or certainly failed          start
    intended, not started                       start
    succeeded, or a person said it was done     return the receipt
    unknown, and its author accepts that    fail with the same error
    the same, but without a receipt look: ask the probe, else block (receipt_redacted, receipt_unkept)
    started or failed, outcome unknown:
        read, idempotent, keyed                 repeat (with the same key)
        probe                                   ask the probe: done -> return, not done -> start
        manual                                  block until a person says mark-done, retry or compensate
    undone                                      fail again until a person says retry or mark-done

In a run that was rolled back, an effect missing from the log may have been carried out in the lost part: its outcome is
unknown (`effect.doubted`).

A key supplements name, target and arguments; it does not replace them (`reuse_of`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import Boundary, RecordDraft, Recorder
from workpacket.runtime.attempts.steps import (
    CutShort,
    Failed,
    Options,
    Stored,
    decoded,
    encoded,
    shown_arguments,
)
from workpacket.runtime.errors import (
    EffectKeyReused,
    NotDone,
    ReceiptRedacted,
    ReceiptUnkept,
    RunBlocked,
    RuntimeFault,
)
from workpacket.runtime.records.events import COMPENSATED, current
from workpacket.runtime.records.failures import described, failure_again, failure_data
from workpacket.runtime.records.jcs import STAND_IN_SCHEME, jcs_hash, stored_text
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.records.state import EffectRecord
from workpacket.runtime.resume.observe import changed_keys, choices_about, resume_with

Recovery = Literal["manual", "read", "idempotent", "keyed", "probe"]
Move = Literal["start", "return", "look", "repeat", "probe", "block", "compensate", "fail"]
REPEATABLE: frozenset[str] = frozenset({"read", "idempotent", "keyed"})


class EffectOptions(TypedDict):
    """The options for an effect, apart from its name, function and arguments."""

    key: str | None
    recovery: Recovery
    target: str
    probe: Callable[[], Any] | None
    compensate: Callable[[], Any] | None


class EffectPlan(NamedTuple):
    """One effect as requested by the code: `function` carries it out, `probe` says whether it happened (returns its
    receipt or raises `NotDone`), and `compensate` undoes it. In an async run all three are awaited.

    `asked`, for an effect with a key, has the hash of each argument, and the names of arguments without a hash.
    """

    effect: str
    step: str
    recovery: Recovery
    target: str
    args_hash: str
    options: Options
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    probe: Callable[[], Any] | None = None
    compensate: Callable[[], Any] | None = None
    asked: tuple[dict[str, str], list[str]] | None = None
    key: str | None = None

    @property
    def name(self) -> str:
        return self.step.rpartition("/")[2].partition("#")[0]


def effect_key(stream: str, step: str, recovery: str, target: str, args_hash: str) -> str:
    """Return the identity of an effect, which may succeed at most once."""
    return jcs_hash([stream, step, recovery, target, args_hash])


def user_key(stream: str, key_hash: str) -> str:
    """Return the identity of an effect named by its author, which is the same wherever the effect is requested in the
    run."""
    return jcs_hash([stream, key_hash])


NOT_ENCODED = "the process ended while its result was encoded"  # stored in events, so this text never changes
LONGEST_SHOWN = 4000  # characters of all arguments that are stored for a person
LONGEST_ARGUMENT = 400  # characters of one of them, if together they are longer
KEYED = "key:"  # marks the hash of an author's key, which replaces the hash of the arguments


def identity(stream: str, step: str, recovery: str, target: str, args_hash: str) -> str:
    if args_hash.startswith(KEYED):
        return user_key(stream, args_hash)
    return effect_key(stream, step, recovery, target, args_hash)


def next_move(record: EffectRecord | None, recovery: Recovery) -> Move:
    if record is None or record.status in {"intended", "failed", "retry"}:
        return "start"
    if record.status in {"succeeded", "mark_done"}:
        return "return" if record.has_receipt else "look"
    if record.status == "compensate":
        return "compensate"
    if record.status in {"accepted", "undone"}:
        return "fail"
    if recovery in REPEATABLE:
        return "repeat"
    return "probe" if recovery == "probe" else "block"


def _cut_short(plan: EffectPlan | EffectRecord, error: BaseException | None) -> RecordDraft:
    data: dict[str, Json] = {"effect": plan.effect, "step": plan.step, "definite": False}
    return RecordDraft("effect.failed", data | failure_data(error or CutShort(plan.step)))


def undone(step: str, stream: str = "") -> RunBlocked:
    hint = f"repeat it: {resume_with(stream, step, 'retry')}" if stream else ""
    return RunBlocked(f"{step} was undone; the run stops here", code="effect_failed", hint=hint)


def reuse_of(
    record: EffectRecord, plan: EffectPlan, args: Mapping[str, str] | None, redactor: Redactor
) -> dict[str, dict[str, str]]:
    """Return how the effect recorded under a key differs from the requested one: each fact, old and new.

    `args` are the hashes of the recorded arguments; None means that they were not stored, so they are not compared.
    """
    differing: dict[str, dict[str, str]] = {}
    if record.name != plan.name:
        differing["name"] = {"old": record.name, "new": plan.name}
    if record.target_hash:
        same_target = record.target_hash == jcs_hash(plan.target)
    else:  # records from before argument hashes may have been redacted
        same_target = record.target in {plan.target, redactor.clean_text(plan.target)}
    if not same_target:
        differing["target"] = {"old": record.target, "new": redactor.clean_text(plan.target)}
    if args is not None and plan.asked is not None:
        asked = plan.asked[0]
        for name in changed_keys(args, asked):
            if name in record.opaque and asked.get(name, "").startswith(STAND_IN_SCHEME):
                continue  # recorded by a version that compared only JSON
            differing[f"argument {name}"] = {"old": args.get(name, "none"), "new": asked.get(name, "none")}
    return differing


@dataclass(slots=True)
class Effects:
    recorder: Recorder
    boundary: Boundary
    replaying: bool = False  # the run is finished: nothing is written or carried out
    asked: set[str] = field(default_factory=set)  # those that this attempt asked for
    # Begun, without a stored outcome; the value is the exception that cut it short, if any.
    in_flight: dict[str, tuple[EffectPlan, BaseException | None]] = field(default_factory=dict)
    # In a finished run, where nothing is written: effects matched by key only, and those that were refused.
    _matched: dict[str, dict[str, str]] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def known(self, plan: EffectPlan) -> EffectRecord | None:
        """Return the record of this effect; refuse a reused key, or a step that previously requested a different
        effect."""
        state = self.recorder.state
        record = state.effects.get(plan.effect)
        if record is not None and plan.asked is not None:
            self._require_same(record, plan)
        if (
            record is None
            and plan.step in state.effect_steps
            and plan.options.changed == "block"
            and self._others(plan)
        ):
            raise RunBlocked(
                f"the effect {plan.step} was previously requested with different arguments",
                code="step_changed",
                details={"step": plan.step},
            )
        return record

    def done_for_other_inputs(self, plan: EffectPlan) -> bool:
        """Whether the step carried out a different effect for inputs that a person has since agreed to change."""
        state = self.recorder.state
        if plan.effect in state.effects or plan.step not in state.effect_steps or plan.options.changed != "block":
            return False
        others = self._others(plan)
        return bool(others) and all(e.event.version < state.inputs_changed_at for e in others)

    def _others(self, plan: EffectPlan) -> list[EffectRecord]:
        """Return the other effects that this step began. An effect that was only announced or asked about does not
        count as begun.
        """
        state = self.recorder.state
        if not state.effect_steps.get(plan.step):
            return []
        return [e for e in state.effects.values() if e.step == plan.step and e.status != "intended"]

    def _require_same(self, record: EffectRecord, plan: EffectPlan) -> None:
        """Require that the key was used for the same effect. A record that lacks the arguments matches only once."""
        assert plan.asked is not None
        args = self._matched.get(plan.effect) if record.args is None else record.args
        differing = reuse_of(record, plan, args, self.recorder.redactor)
        if differing:
            shown = "; ".join(f"{what}: {both['old']} -> {both['new']}" for what, both in differing.items())
            differs: dict[str, Json] = {what: dict(both) for what, both in differing.items()}
            raise EffectKeyReused(
                f"the key of {plan.step} was used for a different effect ({shown})",
                hint="give the other effect its own key, or request the effect that was recorded",
                details={"effect": plan.effect, "step": plan.step, "recorded_step": record.step, "differs": differs},
            )
        if args is None and self.replaying:
            self._matched[plan.effect] = plan.asked[0]
        elif args is None:
            self.recorder.record(
                RecordDraft("effect.matched", {"effect": plan.effect, "step": plan.step, **self._asked(plan)})
            )

    def reach(self, plan: EffectPlan) -> Stored | Failed | Move:
        """Return the known outcome, or what to do next."""
        self.asked.add(plan.effect)
        if self.replaying:
            failed = self._failed(plan)
            if failed is not None:
                return Failed(failed)
        move = self._move(plan)
        if move == "fail":
            record = self.recorder.state.effects[plan.effect]
            return Failed(self._failure_of(record))
        return Stored(self._stored_receipt(plan)) if move == "return" else move

    def _move(self, plan: EffectPlan) -> Move:
        record = self.known(plan)
        if not self.recorder.state.settled_before_rollback(plan.effect):
            self.boundary.check()
            self._doubt(plan)
            record = self.recorder.state.effects[plan.effect]
        move = next_move(record, plan.recovery)
        if move == "look" and plan.probe is None:
            raise self.no_receipt(plan)
        if move == "compensate" and plan.compensate is None:
            # The answer cannot be carried out, so it no longer counts: the outcome is in doubt again.
            self._doubt(plan)
        missing = (move == "probe" and plan.probe is None) or (move == "compensate" and plan.compensate is None)
        if move == "block" or missing:
            record = self.recorder.state.effects[plan.effect]
            raise RunBlocked(
                f"it is unknown whether {plan.target} ({plan.step}) happened"
                + ("; a person said to undo it, but it has no `compensate`" if move == "compensate" else ""),
                code="effect_outcome_unknown",
                details={"effect": plan.effect, "step": plan.step, "choices": list(choices_about(record))},
            )
        if move not in {"return", "look", "fail"}:
            self.boundary.begin(plan.step)
        return move

    def _failed(self, plan: EffectPlan) -> BaseException | None:
        """In a finished run, return the error that the effect raised. An effect that was never carried out is
        refused."""
        record = self.known(plan)
        if record is not None and record.status in {"succeeded", "mark_done"}:
            return self._refused_then(plan, record)
        if record is None or record.event.type != "effect.failed":
            self.boundary.check()
            return None
        return self._failure_of(record)

    def _failure_of(self, record: EffectRecord) -> BaseException:
        if record.status == "undone":
            return undone(record.step, self.recorder.stream)
        return failure_again(current(record.event, self.recorder.kinds))

    def _doubt(self, plan: EffectPlan) -> None:
        """Record that it is unknown whether the effect happened."""
        self.recorder.record(
            RecordDraft("effect.doubted", self._data(plan) | self._asked(plan) | self._named(plan), self._shown(plan))
        )

    def _refused_then(self, plan: EffectPlan, record: EffectRecord) -> RunBlocked | None:
        """Return the refusal of the last attempt for a result that could not be stored; a later call asks the probe."""
        before = record.event.version < self.recorder.state.attempt_began
        if not record.unkept or before or plan.effect in self._refused:
            return None
        self._refused.add(plan.effect)
        return self.no_receipt(plan)

    def leave(self, plan: EffectPlan, error: BaseException) -> None:
        """Record that the effect was cut short by something other than its own failure, such as a timeout."""
        if plan.effect in self.in_flight:
            self.in_flight[plan.effect] = (plan, error)

    def cut_short(self) -> list[RecordDraft]:
        """Return, as failures with an unknown outcome, the effects still in progress when the run finishes."""
        return [_cut_short(plan, error) for plan, error in self.in_flight.values()]

    def tell_left(self) -> None:
        """Record the effects that were cut short, before the program continues with something else."""
        left = [(plan, error) for plan, error in self.in_flight.values() if error is not None]
        if left:
            self.recorder.record(*(_cut_short(plan, error) for plan, error in left))
            self.in_flight = {effect: begun for effect, begun in self.in_flight.items() if begun[1] is None}

    def accept_unknown(self, record: EffectRecord) -> None:
        """Record that the outcome of this effect remains unknown; a later attempt fails with the same error."""
        resolved: dict[str, Json] = {"effect": record.effect, "choice": "accepted", "by": self.recorder.actor}
        _, error = self.in_flight.pop(record.effect, (None, None))
        # One that was cut short has no recorded error yet.
        cut = [_cut_short(record, error)] if record.status == "started" else []
        self.recorder.record(*cut, RecordDraft("effect.resolved", resolved))

    def _stored_receipt(self, plan: EffectPlan) -> Any:
        record = self.recorder.state.effects[plan.effect]
        stored = self.recorder.store.payload(record.event)
        # A record without a payload means that a person said it was done, but not what the result was.
        return None if stored is None else decoded(stored, plan.options.codec)

    def no_receipt(self, plan: EffectPlan, why: str = "") -> RunBlocked:
        """Return the refusal to continue after an effect that happened but whose result cannot be returned."""
        record = self.recorder.state.effects[plan.effect]
        answer = f"workpacket resume {shlex.quote(self.recorder.stream)} --mark-done {shlex.quote(record.step)}"
        details: dict[str, Json] = {"effect": plan.effect, "step": record.step, "choices": ["mark_done"]}
        if record.redactions:
            return ReceiptRedacted(
                f"{record.step} happened and is not repeated; {record.redactions} parts of its result looked like "
                f"secrets and were not stored{why}",
                hint=f"provide its result: {answer} --value JSON; or give the effect a probe, or a codec that stores "
                "a reference",
                details=details | {"redactions": record.redactions},
            )
        return ReceiptUnkept(
            f"{record.step} happened and is not repeated; its result was not stored: {record.unkept}{why}",
            hint=f"provide its result: {answer} --value JSON; or give the effect a probe. For later runs, have it "
            "return JSON, or give it a codec",
            details=details | {"unkept": record.unkept},
        )

    def intend(self, plan: EffectPlan) -> bool:
        """Record the intended effect before asking for confirmation. Return False if the effect has already begun."""
        record = None if self._announced_otherwise(plan) else self.known(plan)
        if not self.recorder.state.settled_before_rollback(plan.effect):
            return False
        if record is None:
            self.boundary.begin(plan.step)
            self.recorder.record(RecordDraft("effect.intended", self._data(plan) | self._asked(plan)))
        return next_move(record, plan.recovery) == "start"

    def _announced_otherwise(self, plan: EffectPlan) -> bool:
        """Whether the key was announced only for different arguments or a different target; if so, the person must be
        asked again.
        """
        record = self.recorder.state.effects.get(plan.effect)
        if record is None or plan.asked is None or record.status != "intended":
            return False
        differing = reuse_of(record, plan, record.args, self.recorder.redactor)
        return bool(differing) and "name" not in differing

    def start(self, plan: EffectPlan, *, repeated: bool) -> None:
        """Record that the effect may happen from now on. The record is durable before this returns."""
        data = self._data(plan)
        if plan.asked is not None:
            data |= self._asked(plan) | self._named(plan)
        data["attempt"] = self.recorder.state.attempt
        if repeated:
            data["repeated"] = True
        self.recorder.record(RecordDraft("effect.started", data, self._shown(plan), own=True))
        self.in_flight[plan.effect] = (plan, None)

    def succeed(self, plan: EffectPlan, value: Any, *, by_probe: bool = False) -> None:
        """Store that the effect happened, and its receipt. A result that cannot be stored does not undo the effect."""
        data = self._data(plan)
        if by_probe:
            data["by_probe"] = True
        key = f"succeeded:{plan.effect}"
        if plan.options.codec is None:
            facts, payload = self._receipt(plan, value)
            self.recorder.record(RecordDraft("effect.succeeded", data | facts, payload, own=True), key=key)
            self.in_flight.pop(plan.effect, None)
        else:  # the author's code may do anything, even end the process, so the effect is recorded before it runs
            self.recorder.record(RecordDraft("effect.succeeded", data | {"unkept": NOT_ENCODED}), key=key)
            self.in_flight.pop(plan.effect, None)
            facts, payload = self._receipt(plan, value)
            place: dict[str, Json] = {"effect": plan.effect, "step": plan.step}
            self.recorder.record(RecordDraft("effect.receipt", place | facts, payload))
        if "unkept" in facts:
            raise self.no_receipt(plan)

    def _receipt(self, plan: EffectPlan, value: Any) -> tuple[dict[str, Json], bytes | None]:
        """Return what to store from the result: its bytes and metadata, or the reason why there are none."""
        try:
            payload, result_hash, redactions = encoded(value, plan.options.codec, self.recorder, plan.step)
        except Exception as error:
            return {"unkept": described(error)}, None
        facts: dict[str, Json] = {"result_hash": result_hash}
        if redactions:
            facts["redactions"] = redactions
        return facts, payload

    def fail(self, plan: EffectPlan, error: Exception, tries: int, spent: float) -> float:
        """Return the wait before the next try; raise `error` again if there is no next try, or if the next try could
        repeat the effect.
        """
        if isinstance(error, RuntimeFault):
            self.leave(plan, error)
            raise error
        definite = isinstance(error, NotDone)
        data: dict[str, Json] = {
            "effect": plan.effect, "step": plan.step, "definite": definite, **failure_data(error),
        }  # fmt: skip
        self.recorder.record(RecordDraft("effect.failed", data))
        self.in_flight.pop(plan.effect, None)
        wait = plan.options.retry.wait_after(tries, error, spent)
        if wait is None or not (definite or plan.recovery in REPEATABLE):
            raise error
        return wait

    def compensated(self, plan: EffectPlan) -> None:
        data: dict[str, Json] = {"effect": plan.effect, "step": plan.step, "definite": True, "error": COMPENSATED}
        self.recorder.record(RecordDraft("effect.failed", data))
        raise undone(plan.step, self.recorder.stream)

    def _asked(self, plan: EffectPlan) -> dict[str, Json]:
        """Return the facts against which a reused key is compared, unless the record already has them."""
        if plan.asked is None:
            return {}
        args, opaque = plan.asked
        data: dict[str, Json] = {"args": dict(args)}
        if opaque:
            data["opaque"] = list(opaque)
        if self.recorder.redactor.clean_text(plan.target) != plan.target:
            data["target_hash"] = jcs_hash(plan.target)
        return data

    def _named(self, plan: EffectPlan) -> dict[str, Json]:
        return {} if plan.key is None else {"key": plan.key}

    def _shown(self, plan: EffectPlan) -> bytes | None:
        """Return the arguments, without secrets, for the person who may have to say whether the effect happened."""
        kwargs = plan.kwargs if plan.key is None else {name: plan.kwargs[name] for name in plan.kwargs if name != "key"}
        arguments = shown_arguments(plan.args, kwargs)
        if not arguments:
            return None
        text = stored_text({"arguments": arguments})
        if len(text) > LONGEST_SHOWN:
            arguments = {name: _shortened(value) for name, value in arguments.items()}
            text = stored_text({"arguments": arguments})
        cleaned, removed = self.recorder.redactor.clean_value({"arguments": arguments}, text)
        return (stored_text(cleaned) if removed else text).encode("utf-8")

    def _data(self, plan: EffectPlan) -> dict[str, Json]:
        data: dict[str, Json] = {
            "args_hash": plan.args_hash,
            "effect": plan.effect,
            "kind": plan.recovery,
            "step": plan.step,
            "target": plan.target,
        }
        if plan.compensate is not None:
            data["compensable"] = True
        return data


def _shortened(value: Json) -> Json:
    """Replace a value that is too long to be stored beside the result of its effect by its length."""
    length = len(stored_text(value))
    return value if length <= LONGEST_ARGUMENT else f"<{length} characters>"
