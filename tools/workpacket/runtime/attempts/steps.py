"""What happens before a step's function is called, after it returns, and after it raises.

Sync and async runs share these rules. A finished step returns its stored result. A step called with other arguments or
in another version is refused, and the refusal names the step. A step whose result contained a secret was not stored in
full, so it is run again. Any other step is run, and its result is durable before the caller sees it.

Nothing is written in a finished run: a failed step raises its error again; a step whose result was not stored in full
is run again, but only for its value; and any other unfinished step is refused.

The log identifies a step by a key that is the same in every attempt (`Scope`) and by a hash of each argument.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from workpacket.model.canonical import Json, NotCanonical
from workpacket.runtime.attempts.recorder import Boundary, FinishedSteps, RecordDraft, Recorder, asked_for
from workpacket.runtime.errors import PayloadErased, RunBlocked, RuntimeFault
from workpacket.runtime.records.events import current
from workpacket.runtime.records.failures import failure_again, failure_data
from workpacket.runtime.records.jcs import (
    STAND_IN_SCHEME,
    Codec,
    Opaque,
    address_of,
    hash_of,
    jcs_bytes,
    jcs_hash,
    kept,
    stand_in,
    value_of,
)
from workpacket.runtime.records.state import StepRecord
from workpacket.runtime.resume.observe import changed_keys
from workpacket.value import Value

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST_NAME = 200
NO_HASHES: Mapping[str, str] = {}


@dataclass(slots=True)
class Scope:
    """The position of the code in the nested steps. Names are counted: the third "fetch" here is always "fetch#3"."""

    owner: object
    path: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    reached_new_work: bool = False
    around: Scope | None = None  # the run or child run that this step is in; None if this is its outermost scope
    line: int = 0  # the thread or task that makes the calls
    last_call: str = ""
    caught_up: bool = False  # the program has repeated everything that earlier attempts recorded

    @property
    def of_run(self) -> Scope:
        """Return the outermost scope of the run or child run."""
        return self.around or self

    def next_key(self, name: str) -> str:
        require_name(name, "step")
        number = self.counters[name] = self.counters.get(name, 0) + 1
        self.last_call = f"{self.path}{name}" if number == 1 else f"{self.path}{name}#{number}"
        return self.last_call

    def inner(self, call: Call[Any]) -> Scope:
        return Scope(self.owner, f"{call.key}/", around=None if call.child else self.of_run)


def require_name(name: str, what: str) -> None:
    if not name or len(name) > LONGEST_NAME or "/" in name or "#" in name or not name.isprintable():
        raise ValueError(
            f"{name!r} is not a valid {what} name: use 1 to {LONGEST_NAME} printable characters without '/' and '#'"
        )


def name_and_function(
    first: str | Callable[..., object], rest: tuple[object, ...]
) -> tuple[str, Callable[..., object], tuple[object, ...]]:
    """Parse the leading arguments of `step(fn, *args)` and `step("name", fn, *args)`."""
    if isinstance(first, str):
        function = rest[0] if rest else None
        if not callable(function):
            raise TypeError(f"step {first!r} needs a function to call")
        return first, function, rest[1:]
    return getattr(first, "__name__", type(first).__name__).strip("<>"), first, rest


def argument_hashes(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """Return the hash of each JSON argument, and the names of the other arguments, which are not compared."""
    hashes: dict[str, str] = {}
    opaque: list[str] = []
    for name, value in _by_name(args, kwargs).items():
        try:
            hashes[name] = jcs_hash(value)
        except NotCanonical:
            opaque.append(name)
    return hashes, opaque


def effect_hashes(args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
    """Hash the arguments of an effect. Unlike the arguments of a step, plain values that are not JSON, such as
    `Decimal`, are hashed too.
    """
    hashes, opaque = argument_hashes(args, kwargs)
    if not opaque:
        return hashes, opaque
    named = _by_name(args, kwargs)
    for name in list(opaque):
        # An object without a stand-in stays opaque: it is left out of the comparison and listed as such.
        with suppress(Opaque):
            hashes[name] = f"{STAND_IN_SCHEME}:{address_of(jcs_bytes(stand_in(named[name])))}"
            opaque.remove(name)
    return hashes, opaque


def shown_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Json]:
    """Return the arguments by name, for a person to read; an object is shown as its class."""
    shown: dict[str, Json] = {}
    for name, value in _by_name(args, kwargs).items():
        try:
            shown[name] = stand_in(value)
        except Opaque:
            shown[name] = f"<{type(value).__qualname__}>"
    return shown


def arguments_hash(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return one hash of all arguments; if one is not JSON, raise `NotCanonical`, which names the argument."""
    return jcs_hash(_by_name(args, kwargs))


def _by_name(args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    named: dict[str, object] = {str(index): value for index, value in enumerate(args)}
    named.update(kwargs)
    return named


@dataclass(frozen=True, slots=True)
class Retry:
    """Makes `attempts` tries in total. The wait begins at `first` seconds and grows by `factor` up to `most`.

    `jitter`, from 0 to 1, is the part of each wait that is random, so that many runs do not try again at the same
    moment. No try begins later than `deadline` seconds after the first one of the same attempt.

    An effect is tried again only after `NotDone`, or if its `recovery` allows it to be repeated; the default, `manual`,
    does not.
    """

    attempts: int = 1
    first: float = 1.0
    factor: float = 2.0
    most: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)
    jitter: float = 0.0
    deadline: float | None = None

    def wait_after(self, tries: int, error: BaseException, spent: float = 0.0) -> float | None:
        """Return how many seconds to wait after try number `tries` failed with `error`, `spent` seconds after the first
        try began; None if it was the last try.
        """
        if tries >= self.attempts or not isinstance(error, self.on):
            return None
        wait = min(self.first * self.factor ** (tries - 1), self.most)
        if self.jitter:
            # `random` takes three milliseconds to import.
            wait *= 1 - self.jitter * int.from_bytes(os.urandom(4), "big") / 2**32
        return None if self.deadline is not None and spent + wait > self.deadline else wait


ONCE = Retry()


class Options(Value):
    """`version` identifies the step's own code; `changed='redo'` runs a changed step again instead of refusing it;
    `on_cancel='finish'` lets a child run finish before a cancelled run stops.
    """

    retry: Retry = ONCE
    version: str = ""
    changed: Literal["block", "redo"] = "block"
    codec: Codec[Any] | None = None
    on_cancel: Literal["stop", "finish"] = "stop"


class Stored(NamedTuple):
    """The step is done; this is its result."""

    value: Any


class Failed(NamedTuple):
    """The step failed in a run that is finished."""

    error: BaseException


class Call(NamedTuple, Generic[T_co]):
    """A step as called by the code. Its key is fixed when the step is created, not when it runs. `Steps.begin` sets the
    fields that have a default before the step is run.
    """

    key: str
    scope: Scope
    function: Callable[..., T_co]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    options: Options
    first_of_scope: bool  # nothing new had been done in its scope at the time of the call
    child: bool = False  # its function is the program of a child run
    hashes: Mapping[str, str] = NO_HASHES
    opaque: Sequence[str] = ()
    maybe_repeated: bool = False
    tries: int = 0
    began: float = 0.0
    first_began: float = 0.0


@dataclass(slots=True)
class Steps:
    recorder: Recorder
    boundary: Boundary
    replaying: bool = False  # the run is finished: nothing is written
    repeated: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)  # of these, those beside which no other call was made
    # Begun, without a stored result or failure; the value is the exception that cut it short, if any.
    in_flight: dict[str, BaseException | None] = field(default_factory=dict)

    def begin(self, call: Call[T]) -> Stored | Failed | Call[T]:
        """Return the known outcome, or the step with the data needed when it finishes."""
        key, scope, function, args, kwargs, options, first, child, *_ = call
        hashes, opaque = argument_hashes(args, kwargs)
        record = asked_for(self.recorder.state.steps, key)
        if record is not None and self._still_holds(record, hashes, options):
            with suppress(*((PayloadErased,) if options.changed == "redo" else ())):
                stored = self.recorder.store.payload(record.event) if record.stored is None else record.stored
                return Stored(decoded(stored, options.codec))
        if record is not None and isinstance(self.recorder.state.steps, FinishedSteps):
            self.recorder.state.steps.load()  # it is done again, and so asks for the steps in it
        if self.replaying:
            return self._again(record, call, hashes)
        self.recorder.redactor.require_plain("the name of a step or argument", key, *kwargs)
        self.boundary.begin(key)
        state = self.recorder.state
        begun_before = key in state.in_flight or key in state.running
        lost = record is None and state.rolled_back_at > 0  # it may have been done in the part that the store lost
        # A child run repeats nothing by itself: each call of its program is recorded.
        # The call that was in progress is known if a later attempt has made it alone, or if it was an effect or a wait.
        # A step whose failure the program caught is done again in each attempt, so that says nothing about it.
        settled = scope.path in state.settled and scope.path not in state.interleaved and key not in state.failures
        doubted = state.interrupted and first and not settled
        maybe_repeated = not child and (record is not None or begun_before or lost or doubted)
        if maybe_repeated:
            self.repeated.add(key)
            if not scope.reached_new_work and scope.last_call == key and key not in state.failures:
                self.alone.add(key)
        # A step that failed and was left says nothing about where the program was interrupted.
        scope.reached_new_work = scope.reached_new_work or key not in state.failures
        self.in_flight[key] = None
        tries, began = state.tries.get(key, 0), self.recorder.clock.ticks()
        # All fields by position: `_replace` is slower, and this is done for every step.
        return Call(
            key,
            scope,
            function,
            args,
            kwargs,
            options,
            first,
            child,
            hashes,
            opaque,
            maybe_repeated,
            tries,
            began,
            began,
        )

    def _again(self, record: StepRecord | None, call: Call[T], args: Mapping[str, str]) -> Failed | Call[T]:
        failed = self.recorder.state.failures.get(call.key)
        if record is None and failed is not None:
            return Failed(failure_again(current(failed, self.recorder.kinds)))
        if record is None or not record.redactions or changed_keys(record.args, args):
            self.boundary.check()
        return call  # nothing is recorded about it, so nothing must be remembered

    def _still_holds(self, record: StepRecord, args: dict[str, str], options: Options) -> bool:
        """Whether the stored result is valid for this call."""
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
            f"step {record.key} was done with different values for {', '.join(changed)}",
            code="step_changed",
            details={"step": record.key, "changed": list(changed)},
        )

    def finish(self, call: Call[Any], value: Any) -> None:
        """Store the result. Once this returns, the step is never run again."""
        if self.replaying:
            return
        payload, result_hash, redactions = encoded(value, call.options.codec, self.recorder, call.key)
        data: dict[str, Json] = {
            "step": call.key,
            "args": dict(call.hashes),
            "result_hash": result_hash,
            "ms": round((self.recorder.clock.ticks() - call.began) * 1000),
        }
        if call.child:
            data["child"] = True
        if call.opaque:
            data["opaque"] = list(call.opaque)
        if call.options.version:
            data["version"] = call.options.version
        if redactions:
            data["redactions"] = redactions
        if call.maybe_repeated:
            data |= self._doubt(call.key)
        if call.tries:
            data["tries"] = call.tries + 1
        self.recorder.record(RecordDraft("step.completed", data, payload, own=True))
        self.in_flight.pop(call.key, None)

    def _doubt(self, key: str) -> dict[str, Json]:
        data: dict[str, Json] = {"maybe_repeated": True}
        return data | {"alone": True} if key in self.alone else data

    def fail(self, call: Call[Any], error: Exception) -> tuple[Call[Any], float]:
        """Return the next try and the wait before it; raise `error` again if there is no next try."""
        if self.replaying or isinstance(error, RuntimeFault):
            self.leave(call.key, error)
            raise error
        tries = call.tries + 1
        now = self.recorder.clock.ticks()
        wait = call.options.retry.wait_after(tries, error, now - call.first_began)
        ms = round((now - call.began) * 1000)
        data: dict[str, Json] = {"step": call.key, "try": tries, "ms": ms, "final": wait is None}
        if call.maybe_repeated:
            data |= self._doubt(call.key)
        self.recorder.record(RecordDraft("step.failed", data | failure_data(error)))
        self.in_flight.pop(call.key, None)
        if wait is None:
            raise error
        self.in_flight[call.key] = None
        return call._replace(tries=tries, began=self.recorder.clock.ticks() + wait), wait

    def leave(self, key: str, error: BaseException) -> None:
        """Record that the step was cut short by something other than its own failure, such as a timeout."""
        if key in self.in_flight:
            self.in_flight[key] = error

    def tell_left(self) -> None:
        """Record the steps that the program left without a result, before it continues with something else."""
        if any(error is not None for error in self.in_flight.values()):
            self.recorder.record(*self.cut_short(left=True))
            self.in_flight = {step: error for step, error in self.in_flight.items() if error is None}

    def cut_short(self, *, left: bool = False) -> list[RecordDraft]:
        """Return the steps still in progress when the run finishes, as failures; with `left`, only those that were
        already abandoned.
        """
        drafts = []
        for step, error in self.in_flight.items():
            if left and error is None:
                continue
            data: dict[str, Json] = {"step": step, "try": 1, "ms": 0, "final": True}
            if step in self.repeated:
                data["maybe_repeated"] = True
            drafts.append(RecordDraft("step.failed", data | failure_data(error or CutShort(step))))
        return drafts


class CutShort(Exception):
    """Recorded for a step or effect that was still running when its run finished."""


def decoded(payload: bytes | None, codec: Codec[Any] | None) -> Any:
    value = None if payload is None else value_of(payload)
    return value if codec is None else codec.decode(value)


def encoded(value: Any, codec: Codec[Any] | None, recorder: Recorder, what: str) -> tuple[bytes, str, int]:
    """Return the bytes to store, the hash of their canonical form, and the number of removed secrets."""
    plain = value if codec is None else codec.encode(value)
    try:
        form = kept(plain)
    except NotCanonical as error:
        # An effect stores this text in its event, so it never changes.
        raise TypeError(f"the result of {what} cannot be kept: {error}") from None
    cleaned, redactions = recorder.redactor.clean_value(plain, form.text)
    if redactions and recorder.redactor.policy != "hide":
        # The hash of a short secret could be guessed, so the hash is that of the encrypted bytes.
        stored = recorder.redactor.unaltered(f"the result of {what}", plain, form.text)
        return stored, hash_of(stored), 0
    if redactions:
        form = kept(cleaned)
    return form.stored, form.meaning, redactions
