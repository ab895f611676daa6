"""Steps without their calling: what happens before a step's function is called, after it returned, after it raised.

Sync and async runs both drive this, so both have the same rules: a step that is done gives its stored result; one that
was called with other arguments or as another version is refused by name; a result that held a secret was not kept
whole, so that step is done again; everything else is done, and its result is durable before the caller sees it.

In a finished run nothing is written: a step that failed raises what it raised, one whose result was not kept whole is
done again for its value alone, and any other one is refused.

The log knows a step by a key that is the same in every attempt (`Scope`) and by a hash of each argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from workpacket.model.canonical import Json, NotCanonical
from workpacket.runtime.attempts.recorder import Boundary, RecordDraft, Recorder
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.records.failures import failure_again, failure_data
from workpacket.runtime.records.jcs import (
    STAND_IN_SCHEME,
    Codec,
    Opaque,
    address_of,
    jcs_bytes,
    jcs_hash,
    kept,
    stand_in,
    value_of,
)
from workpacket.runtime.records.kinds import current
from workpacket.runtime.records.state import StepRecord
from workpacket.runtime.resume.observe import changed_keys
from workpacket.value import Value

T = TypeVar("T")

LONGEST_NAME = 200
NO_HASHES: Mapping[str, str] = {}


@dataclass(slots=True)
class Scope:
    """Where in the nesting of steps the code is. Names are counted: the third "fetch" here is "fetch#3" every time."""

    owner: object
    path: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    reached_new_work: bool = False

    def next_key(self, name: str) -> str:
        if not name or len(name) > LONGEST_NAME or "/" in name or "#" in name:
            raise ValueError(
                f"{name!r} is not a valid step name: use 1 to {LONGEST_NAME} characters without '/' and '#'"
            )
        number = self.counters[name] = self.counters.get(name, 0) + 1
        return f"{self.path}{name}" if number == 1 else f"{self.path}{name}#{number}"

    def inner(self, key: str) -> Scope:
        return Scope(self.owner, f"{key}/")


def name_and_function(
    first: str | Callable[..., object], rest: tuple[object, ...]
) -> tuple[str, Callable[..., object], tuple[object, ...]]:
    """Take apart `step(fn, *args)` and `step("name", fn, *args)`."""
    if isinstance(first, str):
        function = rest[0] if rest else None
        if not callable(function):
            raise TypeError(f"the step {first!r} needs a function to call")
        return first, function, rest[1:]
    return getattr(first, "__name__", type(first).__name__).strip("<>"), first, rest


def argument_hashes(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """The hash of each argument that is JSON, and the names of those that are not and so are not compared."""
    hashes: dict[str, str] = {}
    opaque: list[str] = []
    for name, value in _by_name(args, kwargs).items():
        try:
            hashes[name] = jcs_hash(value)
        except NotCanonical:
            opaque.append(name)
    return hashes, opaque


def effect_hashes(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """The same for an effect, where plain values that are not JSON have a hash too: an amount is often a `Decimal`."""
    hashes, opaque = argument_hashes(args, kwargs)
    if not opaque:
        return hashes, opaque
    named = _by_name(args, kwargs)
    for name in list(opaque):
        with suppress(Opaque):
            hashes[name] = f"{STAND_IN_SCHEME}:{address_of(jcs_bytes(stand_in(named[name])))}"
            opaque.remove(name)
    return hashes, opaque


def shown_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Json]:
    """The arguments by name, for a person to read; of an object, its class."""
    shown: dict[str, Json] = {}
    for name, value in _by_name(args, kwargs).items():
        try:
            shown[name] = stand_in(value)
        except Opaque:
            shown[name] = f"<{type(value).__qualname__}>"
    return shown


def arguments_hash(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """One hash of all arguments; `NotCanonical` naming the one that is not JSON."""
    return jcs_hash(_by_name(args, kwargs))


def _by_name(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    named: dict[str, object] = {str(index): value for index, value in enumerate(args)}
    named.update(kwargs)
    return named


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` tries in all; the wait begins at `first` seconds and grows by `factor` up to `most`."""

    attempts: int = 1
    first: float = 1.0
    factor: float = 2.0
    most: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def wait_after(self, tries: int, error: BaseException) -> float | None:
        """Seconds to wait after the `tries`-th try failed with `error`; None if there is no further one."""
        if tries >= self.attempts or not isinstance(error, self.on):
            return None
        return min(self.first * self.factor ** (tries - 1), self.most)


ONCE = Retry()


class Options(Value):
    """`version` names the step's own code; `changed='redo'` does a changed step again instead of refusing it."""

    retry: Retry = ONCE
    version: str = ""
    changed: Literal["block", "redo"] = "block"
    codec: Codec[Any] | None = None


class Stored(NamedTuple):
    """The step is done; this is its result."""

    value: Any


class Failed(NamedTuple):
    """The run is finished, and this step failed in it."""

    error: BaseException


class Call(NamedTuple, Generic[T]):
    """A step as the code calls it. Its key is fixed when it is made, not when it runs.

    The fields with a default are what `Steps.begin` adds to a step that is to be done.
    """

    key: str
    scope: Scope
    function: Callable[..., T]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    options: Options
    first_of_scope: bool  # nothing new had been done in its scope when it was called
    hashes: Mapping[str, str] = NO_HASHES
    opaque: Sequence[str] = ()
    maybe_repeated: bool = False
    tries: int = 0
    began: float = 0.0


@dataclass(slots=True)
class Steps:
    recorder: Recorder
    boundary: Boundary
    replaying: bool = False  # the run is finished: nothing is written
    repeated: list[str] = field(default_factory=list)
    # Begun, and neither result nor failure is stored; with what has cut it short, if anything has.
    in_flight: dict[str, BaseException | None] = field(default_factory=dict)

    def begin(self, call: Call[T]) -> Stored | Failed | Call[T]:
        """The answer that is known, or the step with what has to be remembered until it is done."""
        key, scope, function, args, kwargs, options, first, *_ = call
        hashes, opaque = argument_hashes(args, kwargs)
        record = self.recorder.state.steps.get(key)
        if record is not None and self._still_holds(record, hashes, options):
            return Stored(decoded(self.recorder.store.payload(record.event), options.codec))
        if self.replaying:
            return self._again(record, call, hashes)
        self.boundary.check()
        state = self.recorder.state
        begun_before = key in state.in_flight or key in state.running
        lost = record is None and state.rolled_back_at > 0  # it may have been done in what the store lost
        maybe_repeated = record is not None or begun_before or lost or (state.interrupted and first)
        scope.reached_new_work = True
        if maybe_repeated:
            self.repeated.append(key)
        self.in_flight[key] = None
        tries, began = state.tries.get(key, 0), self.recorder.clock.ticks()
        # All fields by position: `_replace` is slower, and this is done for every step.
        return Call(key, scope, function, args, kwargs, options, first, hashes, opaque, maybe_repeated, tries, began)

    def _again(self, record: StepRecord | None, call: Call[T], args: Mapping[str, str]) -> Failed | Call[T]:
        failed = self.recorder.state.failures.get(call.key)
        if record is None and failed is not None:
            return Failed(failure_again(current(failed, self.recorder.kinds)))
        if record is None or not record.redactions or changed_keys(record.args, args):
            self.boundary.check()
        return call  # nothing is written of it, so nothing has to be remembered

    def _still_holds(self, record: StepRecord, args: dict[str, str], options: Options) -> bool:
        """Whether the stored result answers this call."""
        if record.redactions:
            return False
        changed = [f"argument {name!r}" for name in changed_keys(record.args, args)]
        if changed and record.event.version < self.recorder.state.inputs_changed_at:
            return False  # done for inputs that a person has agreed to replace
        if record.version != options.version:
            changed.append(f"version {record.version!r} -> {options.version!r}")
        if not changed:
            return True
        if options.changed == "redo":
            return False
        raise RunBlocked(
            f"the step {record.key} was done with other values of {', '.join(changed)}",
            code="step_changed",
            details={"step": record.key, "changed": list(changed)},
        )

    def finish(self, call: Call[Any], value: Any) -> None:
        """Store the result. When this returns, the step is never done again."""
        if self.replaying:
            return
        payload, result_hash, redactions = encoded(value, call.options.codec, self.recorder, call.key)
        data: dict[str, Json] = {
            "step": call.key,
            "args": dict(call.hashes),
            "result_hash": result_hash,
            "ms": round((self.recorder.clock.ticks() - call.began) * 1000),
        }
        if call.opaque:
            data["opaque"] = list(call.opaque)
        if call.options.version:
            data["version"] = call.options.version
        if redactions:
            data["redactions"] = redactions
        if call.maybe_repeated:
            data["maybe_repeated"] = True
        if call.tries:
            data["tries"] = call.tries + 1
        self.recorder.record(RecordDraft("step.completed", data, payload, own=True))
        self.in_flight.pop(call.key, None)

    def fail(self, call: Call[Any], error: Exception) -> tuple[Call[Any], float]:
        """The next try and the wait before it; raises `error` again if there is none."""
        if self.replaying or isinstance(error, RuntimeFault):
            self.leave(call.key, error)
            raise error
        tries = call.tries + 1
        wait = call.options.retry.wait_after(tries, error)
        ms = round((self.recorder.clock.ticks() - call.began) * 1000)
        data: dict[str, Json] = {"step": call.key, "try": tries, "ms": ms, "final": wait is None}
        if call.maybe_repeated:
            data["maybe_repeated"] = True
        self.recorder.record(RecordDraft("step.failed", data | failure_data(error)))
        self.in_flight.pop(call.key, None)
        if wait is None:
            raise error
        self.in_flight[call.key] = None
        return call._replace(tries=tries, began=self.recorder.clock.ticks() + wait), wait

    def leave(self, key: str, error: BaseException) -> None:
        """The step was cut short by something that is no failure of its own, such as a time limit around it."""
        if key in self.in_flight:
            self.in_flight[key] = error

    def cut_short(self) -> list[RecordDraft]:
        """What is still in flight when the run is finished, as failures."""
        drafts = []
        for step, error in self.in_flight.items():
            data: dict[str, Json] = {"step": step, "try": 1, "ms": 0, "final": True}
            if step in self.repeated:
                data["maybe_repeated"] = True
            drafts.append(RecordDraft("step.failed", data | failure_data(error or CutShort(step))))
        return drafts


class CutShort(Exception):
    """Stands in the record of a step or effect that was still at work when its run was finished."""


def decoded(payload: bytes | None, codec: Codec[Any] | None) -> Any:
    value = None if payload is None else value_of(payload)
    return value if codec is None else codec.decode(value)


def encoded(value: Any, codec: Codec[Any] | None, recorder: Recorder, what: str) -> tuple[bytes, str, int]:
    """The bytes that are kept, the hash of the meaning, and how many secrets were taken out."""
    plain = value if codec is None else codec.encode(value)
    try:
        form = kept(plain)
    except NotCanonical as error:
        # An effect stores this text in its event, so its words never change.
        raise TypeError(f"the result of {what} cannot be kept: {error}") from None
    cleaned, redactions = recorder.redactor.clean_value(plain, form.text)
    if redactions:
        form = kept(cleaned)
    return form.stored, form.meaning, redactions
