"""How a run begins, continues or is refused: the only code that turns a decision into events.

A new run that begins at another run's checkpoint inherits the finished steps, the effects that succeeded, and the
cursor. They are copied, so the new run does not depend on the old one, and retention may remove either. An effect that
succeeded in the old run counts as succeeded in the new one, because it need not be repeated: the mail has been sent,
whichever run requested it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypedDict

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import identity
from workpacket.runtime.attempts.recorder import RecordDraft, Recorder, outlined_state
from workpacket.runtime.attempts.session import BorrowedLease, Session, token_hash
from workpacket.runtime.attempts.waits import Ask
from workpacket.runtime.catalog import newest_numbered, next_in_line, stream_name, stream_prefix
from workpacket.runtime.errors import LeaseHeld, LogDamaged, RunBlocked, StoreCorrupt, own_start, title_of
from workpacket.runtime.holders import (
    Clock,
    Ids,
    SystemClock,
    is_certainly_alive,
    is_certainly_dead,
    random_id,
    shown_holder,
    this_process,
)
from workpacket.runtime.records.events import COMPENSATED, AnswerVerifier, Event
from workpacket.runtime.records.jcs import stored_text
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.records.state import CheckpointRecord, EffectRecord, RunState, fold
from workpacket.runtime.resume.decide import Decision, decide
from workpacket.runtime.resume.observe import (
    HIDDEN,
    Observations,
    Observer,
    ResumePolicy,
    changed_keys,
    changed_lines,
    hashes_by_key,
    look_around,
    read_state,
    shown_changes,
)
from workpacket.runtime.stores.contract import Lease, Store, Witness
from workpacket.value import NOTHING, Value


class RunRequest(TypedDict, total=False):
    """The keyword arguments of `Runtime.run`. All are optional."""

    packet: str  # the work packet that the run belongs to
    key: str  # names one run permanently: requested again after it has finished, the run returns its stored results
    inputs: Mapping[str, Json]  # what the results depend on; other inputs in a later attempt must be confirmed
    scope: Sequence[str]  # what the run may change; a later attempt may narrow it
    code_version: str  # another version in a later attempt must be confirmed
    repository: str  # the identity of the repository that the work belongs to
    seconds: float  # how long all its steps may take together
    steps: int  # how many steps it may have
    deadline: datetime  # when the run must have ended
    checkpoint: str  # continue only from this checkpoint; refuse if it is missing
    retry_token: str  # the token of a checkpoint; valid for one attempt
    allow_deps: Sequence[str]  # dependencies that may change; a later attempt may narrow them
    base_commit: str  # the commit at which a new run begins; '' before the first commit
    fresh: bool  # begin a new run even if an unfinished one exists; refused with a key, which names one run
    begun_as: str  # the id of a run that another tool began, which is continued under it
    program: str  # the command that continues the run, for the person who is asked (default: this program's file)


class RunSpec(Value):
    """The requested run. `inputs` is None if none are given; inputs are then not compared."""

    name: str
    packet: str = ""
    key: str = ""
    inputs: Mapping[str, Json] | None = None
    scope: Sequence[str] | None = None
    code_version: str | None = None
    repository: str | None = None
    workdir: str | None = None
    budget: Mapping[str, Json] = NOTHING
    checkpoint: str = ""
    retry_token: str = ""
    allow_deps: Sequence[str] | None = None
    base_commit: str | None = None
    fresh: bool = False
    begun_as: str = ""
    program: str = ""


def wanted_run(name: str, request: RunRequest, workdir: str | None) -> RunSpec:
    said: dict[str, Any] = {key: value for key, value in request.items() if key not in {"seconds", "steps", "deadline"}}
    return RunSpec(name, workdir=workdir, budget=_budget(request), **{"inputs": {}, **said})


def _budget(request: RunRequest) -> dict[str, Json]:
    budget: dict[str, Json] = {}
    if "seconds" in request:
        budget["seconds"] = request["seconds"]
    if "steps" in request:
        budget["steps"] = request["steps"]
    if "deadline" in request:
        budget["until"] = int(request["deadline"].timestamp() * 1_000_000)
    return budget


def said_of(wanted: RunSpec) -> dict[str, Json]:
    """Return the properties that were given and accepted this time; they become the recorded ones."""
    said: dict[str, Json | None] = {
        "inputs": None if wanted.inputs is None else dict(hashes_by_key(wanted.inputs)),
        "scope": None if wanted.scope is None else list(wanted.scope),
        "budget": dict(wanted.budget) or None,
        "code_version": wanted.code_version,
        "repository": wanted.repository,
        "workdir": wanted.workdir,
    }
    return {name: value for name, value in said.items() if value is not None} | dependencies_of(wanted)


def dependencies_of(wanted: RunSpec) -> dict[str, Json]:
    return {} if wanted.allow_deps is None else {"allow_deps": list(wanted.allow_deps)}


def carried_over(store: Store, state: RunState, point: CheckpointRecord, stream: str) -> list[RecordDraft]:
    origin: dict[str, Json] = {"stream": state.stream, "version": point.version, "hash": point.event.hash}
    drafts = [_begin(store, state, origin)]
    drafts += [_carried(store, record.event) for record in state.steps.values()]
    drafts += [draft for record in state.effects.values() for draft in _effect(store, record, stream)]
    drafts += [_carried(store, event) for signals in state.waits.signals.values() for event in signals]
    drafts += [_carried(store, event) for event in state.patches.values()]
    drafts += [_carried(store, event) for event in state.published.values()]
    drafts += [RecordDraft("calls.interleaved", {"scope": scope}) for scope in sorted(state.interleaved)]
    for wait in state.waits.begun.values():
        drafts += [_carried(store, event) for event in (wait.begun, wait.ended) if event is not None]
    drafts.append(_carried(store, point.event))
    drafts.append(RecordDraft("run.stopped", {"code": "user_stopped"}))
    return drafts


def _begin(store: Store, state: RunState, origin: dict[str, Json]) -> RecordDraft:
    (begin,) = store.read(state.stream, 0, 1)
    draft = _carried(store, begin)
    return RecordDraft(draft.type, {**draft.data, "fork_of": origin}, draft.payload)


def _effect(store: Store, record: EffectRecord, stream: str) -> Iterator[RecordDraft]:
    """Carry over what is known about the effect: that it happened, with its receipt, or that its outcome is unknown."""
    effect = identity(stream, record.step, record.kind, record.target, record.args_hash)
    data = {"effect": effect, **record.facts()}
    if record.status == "succeeded":
        draft = _carried(store, record.event)
        yield RecordDraft("effect.succeeded", {**draft.data, **data}, draft.payload)
    elif record.status == "mark_done":
        draft = _carried(store, record.event)
        yield RecordDraft("effect.doubted", {**data, "carried_from": record.event.hash})
        yield RecordDraft("effect.resolved", {**draft.data, "effect": data["effect"]}, draft.payload)
    elif record.status in {"started", "failed_unknown", "compensate", "undone"}:
        begun = record.begun or record.event
        said: dict[str, Json] = {
            name: begun.values()[name] for name in ("key", "compensable") if name in begun.values()
        }
        origin: dict[str, Json] = {**said, "carried_from": record.event.hash}
        yield RecordDraft("effect.doubted", {**data, **origin}, store.payload(begun))
        if record.status == "undone":
            place: dict[str, Json] = {"effect": effect, "step": record.step}
            yield RecordDraft("effect.failed", {**place, "definite": True, "error": COMPENSATED})


def _carried(store: Store, event: Event) -> RecordDraft:
    data = {name: value for name, value in event.values().items() if name != "dropped"}
    return RecordDraft(event.type, {**data, "carried_from": event.hash}, store.payload(event))


def _moment(recorded_at: int) -> str:
    return f"{datetime.fromtimestamp(recorded_at / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _require_same_inputs(stream: str, state: RunState, wanted: RunSpec) -> None:
    """Require the same inputs: a finished run has results only for its own inputs, regardless of what a person
    confirms."""
    asked = state.inputs if wanted.inputs is None else hashes_by_key(wanted.inputs)
    changed = changed_keys(state.inputs, asked)
    if changed:
        raise RunBlocked(
            f"{stream} is finished, and used different values for {', '.join(changed)}",
            code="inputs_changed",
            hint="request the run with the original values, or give the new run its own key",
            details={"changed": list(changed)},
        )


# Renewed while the run works. When its machine stops, this is how long another one has to wait.
LEASE_SECONDS = 30.0
# A worker that waited longer would keep other jobs waiting.
PATIENCE_OF_WORKERS = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings for all runs of a runtime. The defaults are suitable for a program on one machine.

    `ask` is called with the text and the digest of each question, and returns True, False, or None for no answer.
    Without it, a question remains open until it is answered by `workpacket resume` or `Runtime.confirm`.
    """

    actor: str = field(default_factory=lambda: f"user:{os.environ.get('USER', os.getuid())}")
    policy: ResumePolicy = field(default_factory=ResumePolicy)
    observers: tuple[Observer, ...] = ()
    ask: Ask | None = None
    lease_seconds: float = LEASE_SECONDS
    holder: str = ""
    redactor: Redactor = field(default_factory=lambda: Redactor.from_environment(os.environ))
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = random_id
    witness: Witness | None = None
    patience: float | None = None  # seconds for which a process waits for a time or a signal; None: as long as it takes
    verifier: AnswerVerifier | None = None  # says whose answers to questions count; None: everyone's, as claimed

    def recorder(self, store: Store, state: RunState, stream: str, lease: Lease | None = None) -> Recorder:
        """Return a recorder for the stream in this state; without a lease, its records are accepted at any time."""
        actor = self.redactor.clean_text(self.actor)
        state.verifier = self.verifier
        return Recorder(store, state, stream, self.ids(), actor, self.clock, self.redactor, lease)


@dataclass(slots=True)
class RunStarter:
    """Starts and resumes runs. `lent` is the lease on the stream, if it has already been taken."""

    store: Store
    settings: Settings
    lent: BorrowedLease | None = None

    # ---- which stream --------------------------------------------------------------------------------------------

    def open(self, wanted: RunSpec) -> Session:
        if wanted.fresh and (wanted.key or wanted.begun_as):
            named = wanted.key or wanted.begun_as
            raise ValueError(
                f"{named!r} always names the same run, so it cannot be fresh: omit fresh, or choose another key"
            )
        prefix = stream_prefix(wanted.name, wanted.packet)
        keyed = stream_name(wanted.name, wanted.packet, wanted.key) if wanted.key else ""
        if wanted.begun_as:
            stream_prefix(wanted.begun_as, "")  # the same characters are allowed
            known = self._exists(wanted.begun_as)
            return self.resume(wanted.begun_as, wanted) if known else self._begin(wanted.begun_as, wanted)
        stream = keyed or newest_numbered(self.store, prefix)
        if not stream or not self._exists(stream):
            return self._begin(stream or next_in_line(self.store, prefix), wanted)
        if wanted.key:
            return self.resume(stream, wanted)
        if wanted.fresh or self._is_finished(stream):
            return self._begin(next_in_line(self.store, prefix), wanted)
        return self.resume(stream, wanted)

    def _exists(self, stream: str) -> bool:
        if self.lent is not None and self.lent.lease.stream == stream:
            return self.lent.begun
        return self.store.head(stream) is not None

    def _is_finished(self, stream: str) -> bool:
        """Whether the run is finished. Nothing follows `run.completed`, so this event is sufficient; damage is reported
        by `resume`.
        """
        try:
            last = self.store.latest("runs", stream)
        except (LogDamaged, StoreCorrupt):
            return False
        return last is not None and last.type == "run.completed"

    # ---- a new run -----------------------------------------------------------------------------------------------

    def _begin(self, stream: str, wanted: RunSpec) -> Session:
        if wanted.checkpoint or wanted.retry_token:
            raise RunBlocked(
                f"{stream} does not exist, so it has no checkpoint to resume from", code="checkpoint_missing"
            )
        self.settings.redactor.require_plain("the name of a run", stream)
        recorder = self._recorder(stream, RunState(), self.take_lease(stream))
        inputs = dict(wanted.inputs or {})
        data: dict[str, Json] = {
            "name": wanted.name,
            "packet": wanted.packet,
            "inputs": dict(hashes_by_key(inputs)),
            "scope": list(wanted.scope or ()),
            "code_version": wanted.code_version or "",
            "repository": wanted.repository or "",
            "workdir": wanted.workdir or "",
            "budget": dict(wanted.budget),
        }
        data |= dependencies_of(wanted) | ({} if wanted.base_commit is None else {"base_commit": wanted.base_commit})
        program = wanted.program or own_start()
        data |= {"program": program} if program else {}
        draft = RecordDraft("run.started", data, self._kept_inputs(inputs))
        try:
            # Before the first record, so that no run works on a packet whose log does not say so.
            self._announce(stream, wanted.packet)
            recorder.begin(draft)
        except BaseException:
            self._give_up(recorder.lease)
            raise
        return self._session(recorder)

    def _kept_inputs(self, inputs: Mapping[str, Json]) -> bytes:
        """Encode the inputs in a form that may be shown to a person who is asked about a change."""
        open_inputs: Json = {"inputs": {name: HIDDEN if names_a_secret(name) else inputs[name] for name in inputs}}
        cleaned, _ = self.settings.redactor.clean_value(open_inputs, stored_text(open_inputs))
        return stored_text(cleaned).encode("utf-8")

    # ---- an existing run -----------------------------------------------------------------------------------------

    def plan(self, stream: str, wanted: RunSpec) -> tuple[RunState, Decision]:
        """Return what `resume` would decide now, without writing anything."""
        seen = self._seen(wanted)
        if not wanted.name:  # called from outside: only the program knows its inputs, and it will be asked for them
            seen = replace(seen, inputs=read_state(self.store, stream, seen)[0].inputs)
        lease = self.store.lease(stream)
        if lease is not None and not is_certainly_dead(lease.holder):
            seen = replace(seen, lease_holder=lease.holder)
        return self._decided(wanted, *read_state(self.store, stream, seen, self.settings.verifier))

    def resume(self, stream: str, wanted: RunSpec) -> Session:
        seen = self._seen(wanted)
        lease: Lease | None = None
        try:
            lease = self.take_lease(stream)
        except LeaseHeld as held:
            seen = replace(seen, lease_holder=str(held.details.get("holder", "")))
        try:
            state, decision = self._decided(wanted, *self._read(stream, seen))
            if decision.action == "CONFIRM" and lease is not None and self._asked(stream, state, decision):
                # The answer is an event now, and part of the state on which the decision rests.
                state, decision = self._decided(wanted, *self._read(stream, seen))
            finished = decision.action == "COMPLETE"  # a finished run only returns stored results
            if finished:
                _require_same_inputs(stream, state, wanted)
            if (lease is None and not finished) or decision.action in {"BLOCK", "CONFIRM"}:
                raise self._refused(stream, state, decision, wanted)
            return self._continue(self._recorder(stream, state, lease), wanted, decision)
        except BaseException:
            self._give_up(lease)
            raise

    def _read(self, stream: str, seen: Observations) -> tuple[RunState, Observations]:
        """Return the state, from its outline if there is one; steps are then verified as the program asks for them."""
        verifier = self.settings.verifier
        outlined = outlined_state(self.store, stream, verifier)
        return read_state(self.store, stream, seen, verifier) if outlined is None else (outlined, seen)

    def _decided(self, wanted: RunSpec, state: RunState, seen: Observations) -> tuple[RunState, Decision]:
        seen = replace(seen, orphans=orphans_of(state))
        point = _point(state, wanted)
        return state, decide(state, point, look_around(self.settings.observers, seen, point), self.settings.policy)

    def _seen(self, wanted: RunSpec) -> Observations:
        return Observations(
            name=wanted.name or None,
            packet=wanted.packet if wanted.name else None,
            repository=wanted.repository,
            workdir=wanted.workdir,
            code_version=wanted.code_version,
            inputs=None if wanted.inputs is None else hashes_by_key(wanted.inputs),
            scope=None if wanted.scope is None else tuple(wanted.scope),
            allow_deps=None if wanted.allow_deps is None else tuple(wanted.allow_deps),
            budget=wanted.budget or None,
            now=self.settings.clock.now(),
            retry_token_hash=token_hash(wanted.retry_token) if wanted.retry_token else "",
            checkpoint_wanted=wanted.checkpoint,
        )

    def _asked(self, stream: str, state: RunState, decision: Decision) -> bool:
        """Ask the person who is present; the answer is an event bound to what they saw."""
        if self.settings.ask is None or self.settings.verifier is not None:
            return False  # a word at the terminal of the program carries no signature
        shown = "; ".join(f"{c.code}: {', '.join(c.details)}" for c in decision.checks if c.result == "confirm")
        said = self.settings.ask(f"{stream}: continue although {shown}?", decision.subject)
        if said is None:
            return False
        data: dict[str, Json] = {
            "subject": decision.subject,
            "answer": "yes" if said else "no",
            "by": self.settings.actor,
        }
        self._recorder(stream, state, None).record(RecordDraft("confirmation.given", data))
        return True

    def _refused(self, stream: str, state: RunState, decision: Decision, wanted: RunSpec) -> RunBlocked:
        """Record the refusal as an event and return it as an error, so that no run stops without a reason."""
        known = [check for check in decision.checks if check.code == decision.code]
        details = "; ".join(detail for check in known for detail in check.details)
        facts = decision.as_json()
        if wanted.inputs is not None and any(check.code == "inputs_changed" for check in decision.checks):
            facts["changes"] = shown_changes(self.store, state, wanted.inputs, self.settings.redactor)
        if decision.action == "CONFIRM":
            self._ask_for_yes(stream, state, decision, facts)
        elif decision.code not in {"log_damaged", "newer_schema"}:
            data: dict[str, Json] = {"code": decision.code, "decision": decision.digest}
            self._recorder(stream, state, None).record(
                # The same refusal has the same key, so repeated calls do not fill the log.
                RecordDraft("run.blocked", data),
                key=f"blocked:{decision.digest}",
            )
        if decision.code == "inputs_changed":
            details = "; ".join(changed_lines(facts.get("changes"))) or details
        facts["run"] = stream
        if decision.code == "run_busy":
            last = self.store.latest("runs", stream)
            since = f" since {_moment(last.recorded_at)}" if last is not None else ""
            return LeaseHeld(f"{shown_holder(details)} has been working on {stream}{since}", details=facts)
        title = title_of(decision.code)
        message = f"{stream} cannot continue: {title[:1].lower()}{title[1:]}{f': {details}' if details else ''}"
        # A yes alone does not make a limit larger: the next step would meet it again.
        asks = decision.action == "CONFIRM" and decision.code not in {"max_ticks", "timeout"}
        asks = asks or decision.code == "effect_outcome_unknown"
        return RunBlocked(
            message, code=decision.code, details=facts, hint=f"workpacket resume {shlex.quote(stream)}" if asks else ""
        )

    def _ask_for_yes(self, stream: str, state: RunState, decision: Decision, facts: Mapping[str, Json]) -> None:
        """Record the question with everything that the person who answers it later must see."""
        if state.open_question == decision.subject:
            return
        asked: list[Json] = [check.as_json() for check in decision.checks if check.result == "confirm"]
        content: Json = {"asked": asked, "changes": facts.get("changes", {})}
        cleaned, _ = self.settings.redactor.clean_value(content, stored_text(content))
        data: dict[str, Json] = {"code": decision.code, "decision": decision.digest, "subject": decision.subject}
        payload = stored_text(cleaned).encode("utf-8")
        self._recorder(stream, state, None).record(RecordDraft("run.blocked", data, payload))

    def _continue(self, recorder: Recorder, wanted: RunSpec, decision: Decision) -> Session:
        state = recorder.state
        if decision.action == "COMPLETE":
            return self._finished(recorder)
        self._announce(state.stream, state.packet)
        drafts: list[RecordDraft] = []
        if wanted.retry_token:
            spent: dict[str, Json] = {"token_hash": token_hash(wanted.retry_token), "checkpoint": decision.checkpoint}
            drafts.append(RecordDraft("retry_token.consumed", spent))
        data: dict[str, Json] = {
            "attempt": state.attempt + 1,
            "decision": decision.digest,
            "interrupted": state.status == "running",
            "holder": recorder.actor,
        }
        changed = wanted.inputs is not None and hashes_by_key(wanted.inputs) != state.inputs
        payload = self._kept_inputs(wanted.inputs or {}) if changed else None
        recorder.record(*drafts, RecordDraft("attempt.started", data | said_of(wanted), payload))
        return self._session(recorder)

    # ---- a run from another's checkpoint -------------------------------------------------------------------------

    def fork(self, state: RunState, point: CheckpointRecord, key: str) -> str:
        """Copy everything done up to the checkpoint, in one append; payloads are shared by address."""
        stream = stream_name(state.name, state.packet, key)
        self.settings.redactor.require_plain("the name of a run", stream)
        before = fold(self.store.read(state.stream, 0, point.version), verifier=self.settings.verifier)
        recorder = self._recorder(stream, RunState(), None)
        self._announce(stream, state.packet)
        recorder.begin(*carried_over(self.store, before, point, stream))
        return stream

    # ---- parts ---------------------------------------------------------------------------------------------------

    def take_lease(self, stream: str) -> Lease:
        if self.lent is not None and self.lent.lease.stream == stream:
            return self.lent.lease
        holder = self.settings.redactor.clean_text(self.settings.holder) or this_process()
        try:
            return self.store.acquire(stream, holder, self.settings.lease_seconds)
        except LeaseHeld as held:
            token = held.details.get("token")
            if not isinstance(token, int) or not is_certainly_dead(str(held.details.get("holder", ""))):
                raise
            if orphans_of(self._read(stream, Observations())[0]):
                raise  # a program started by this attempt is running; its result is recorded when it ends
            return self.store.acquire(stream, holder, self.settings.lease_seconds, over=token)

    def _give_up(self, lease: Lease | None) -> None:
        if lease is not None and self.lent is None:
            self.store.release(lease)

    def _recorder(self, stream: str, state: RunState, lease: Lease | None) -> Recorder:
        return self.settings.recorder(self.store, state, stream, lease)

    def _announce(self, stream: str, packet: str) -> None:
        if self.settings.witness is not None and packet:
            self.settings.witness.begins(self.store, stream, packet)

    def _finished(self, recorder: Recorder) -> Session:
        """Open a finished run, which only returns stored results, so that no one has to wait for the run."""
        self._give_up(recorder.lease)
        recorder.lease = None
        self.tell_end(
            recorder.stream, recorder.state.packet
        )  # the process that ended it may have been killed before this point
        return Session(recorder, self.settings.lease_seconds, replay_only=True)

    def promised(self) -> Mapping[str, Json]:
        """Return what the observers require for resuming from a checkpoint made now."""
        return {name: value for observer in self.settings.observers for name, value in observer.preconditions().items()}

    def _session(self, recorder: Recorder) -> Session:
        session = Session(
            recorder,
            self.settings.lease_seconds,
            self.promised,
            None if self.settings.verifier is not None else self.settings.ask,
            self.settings.ids,
            lent=self.lent,
            on_end=self.tell_end,
            patience=self.settings.patience if self.lent is None else PATIENCE_OF_WORKERS,
            allow_unasked=self.settings.policy.allow_unasked,
        )
        session.keep_lease()
        return session

    def tell_end(self, stream: str, packet: str) -> None:
        if self.settings.witness is not None and packet:
            self.settings.witness.ended(self.store, stream, packet)


def orphans_of(state: RunState) -> tuple[str, ...]:
    """Return the steps whose processes are still alive, with those processes."""
    return tuple(
        f"{step}: {process}"
        for step, processes in sorted(state.running.items())
        for process in processes
        if is_certainly_alive(process)
    )


def _point(state: RunState, wanted: RunSpec) -> CheckpointRecord | None:
    if wanted.checkpoint:
        return state.checkpoint(wanted.checkpoint)
    if wanted.retry_token:
        digest = token_hash(wanted.retry_token)
        return next((point for point in state.checkpoints if point.token_hash == digest), None)
    return state.latest_checkpoint
