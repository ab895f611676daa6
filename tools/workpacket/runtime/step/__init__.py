"""Checkpoint and resume for one step of a pipeline: the step records its position before it blocks, and later continues
from there.

A `CheckpointEmitter` precedes the generation gate, so the checkpoint is durable before anything may stop the step.
`ResumeMiddleware` comes first: it finds the latest checkpoint, or the one of a retry token, judges whether it is still
valid, restores the results of the layers before it, and lets the pipeline continue at the cursor. See
docs/runtime/step.md, and the `pipeline` module for the pipeline itself.

A checkpoint is judged as follows:

    the cursor is in this pipeline                 else block cursor_unknown
    the strictness is the recorded one or stricter  else block scope_widened
    the scopes are the recorded ones or fewer       else block scope_widened
    each scope is in the recorded version           else ask   definitions_changed
    the inputs are the recorded ones                else ask   inputs_changed

If a person may decide, they are asked; the question is bound to this checkpoint (its token) and to exactly the observed
differences, so the answer covers no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from workpacket.model.canonical import Json
from workpacket.runtime.errors import RedactionFailed, RunBlocked
from workpacket.runtime.holders import this_process
from workpacket.runtime.records.redaction import Redactor, names_a_secret
from workpacket.runtime.resume.observe import HIDDEN
from workpacket.runtime.step.checkpoint import (
    CURSORS,
    ScopeRef,
    StepCheckpoint,
    Strictness,
    compute_input_hash,
    hashes_of_keys,
    verify_input_hash,
)
from workpacket.runtime.step.log import (
    CONFIRMED,
    CONSUMED,
    History,
    StepLog,
    event_of,
    identity_of,
    left_by_other_runs,
    line_of,
    load_checkpoint,
    problems,
)

YES = frozenset({"y", "yes"})


def ask_at_terminal(question: str, _: str = "") -> bool | None:
    """Return the person's answer; None if there is no terminal, or if input ends first."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()):
        return None
    shown = "".join(character if character.isprintable() else "?" for character in question)
    sys.stderr.write(f"{shown} [y/N] ")
    sys.stderr.flush()
    word = sys.stdin.readline()
    return word.strip().casefold() in YES if word else None


LONGEST_SHOWN = 400  # characters of a value that are kept for display
MOST_SHOWN = 16 * 1024  # characters of all of them
_MOST_NAMED = 20


class Present(NamedTuple):
    """The current values for a resume. None means that the value was not given, so the recorded value applies."""

    inputs: Mapping[str, Any]
    strictness: Strictness | None
    scope_refs: tuple[ScopeRef, ...] | None


class Judgement(NamedTuple):
    """`code` is empty if nothing prevents resuming. `subject` is the question, or '' if nothing can be asked."""

    code: str = ""
    details: tuple[str, ...] = ()
    changes: Mapping[str, Json] = {}
    subject: str = ""


def judge(checkpoint: StepCheckpoint, present: Present, cursors: Collection[str], redactor: Redactor) -> Judgement:
    refused = _refused(checkpoint, present, cursors)
    if refused is not None:
        return refused
    moved = _moved_scopes(checkpoint, present)
    changes: dict[str, Json] = {}
    if not verify_input_hash(checkpoint, present.inputs):
        changes = _changes(checkpoint, present.inputs, redactor)
    if not moved and not changes:
        return Judgement()
    asked = (*moved, *map(_as_text, changes.items()))
    seen = json.dumps([checkpoint.retry_token, list(moved), compute_input_hash(present.inputs)])
    code = "inputs_changed" if changes else "definitions_changed"
    return Judgement(code, asked, changes, hashlib.sha256(seen.encode("ascii")).hexdigest())


def _refused(checkpoint: StepCheckpoint, present: Present, cursors: Collection[str]) -> Judgement | None:
    if checkpoint.cursor not in cursors:
        return Judgement("cursor_unknown", (f"{checkpoint.cursor!r} is none of {', '.join(cursors)}",))
    recorded, wanted = checkpoint.strictness, present.strictness
    if wanted is not None and wanted.rank < recorded.rank:
        return Judgement("scope_widened", (f"strictness: {recorded.value} -> {wanted.value}",))
    known = {ref.scope for ref in checkpoint.scope_refs}
    wider = sorted({ref.scope for ref in present.scope_refs or ()} - known)
    return Judgement("scope_widened", tuple(f"scope: {scope} is new" for scope in wider)) if wider else None


def _moved_scopes(checkpoint: StepCheckpoint, present: Present) -> tuple[str, ...]:
    recorded = {ref.scope: ref.version_id for ref in checkpoint.scope_refs}
    return tuple(
        f"scope {ref.scope}: {recorded[ref.scope]} -> {ref.version_id}"
        for ref in present.scope_refs or ()
        if ref.version_id != recorded[ref.scope]
    )


def _changes(checkpoint: StepCheckpoint, inputs: Mapping[str, Any], redactor: Redactor) -> dict[str, Json]:
    """Return the old and new value of each changed key, if known and harmless."""
    shown = shown_values(inputs, redactor)
    if not checkpoint.input_hashes:
        names: Json = sorted(shown) if len(shown) <= _MOST_NAMED else f"{len(shown):,} inputs"
        return {"(any key)": {"old": "the checkpoint has a single hash for all keys", "new": names}}
    present = hashes_of_keys(inputs)
    recorded = checkpoint.input_hashes
    changed = sorted(key for key in {*recorded, *present} if recorded.get(key) != present.get(key))
    sides = {"old": checkpoint.inputs, "new": shown}
    return {key: {side: values[key] for side, values in sides.items() if key in values} for key in changed}


def _as_text(change: tuple[str, Json]) -> str:
    key, sides = change
    old, new = (
        json.dumps(sides[side], ensure_ascii=False) if isinstance(sides, Mapping) and side in sides else "not there"
        for side in ("old", "new")
    )
    return f"input {key}: {old} -> {new}"


def shown_values(inputs: Mapping[str, Any], redactor: Redactor) -> dict[str, Json]:
    """Return the parts of the inputs that may be stored and shown: no secrets, no long values, and only the first few
    if there are many.
    """
    shown: dict[str, Json] = {}
    room = MOST_SHOWN
    for key, value in json.loads(json.dumps(inputs)).items():
        one = _shown(key, value, redactor)
        room -= len(key) + len(json.dumps(one))
        if room < 0:
            break
        shown[key] = one
    return shown


def _shown(key: str, value: Json, redactor: Redactor) -> Json:
    if names_a_secret(key):
        return HIDDEN
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > LONGEST_SHOWN:
        return f"[{len(text)} characters]"
    if holds_secret_name(value):
        return HIDDEN
    return redactor.clean_value(value, text)[0]


def holds_secret_name(value: Json) -> bool:
    """Whether any key in the value, at any depth, has a name that marks a secret."""
    if isinstance(value, Mapping):
        return any(names_a_secret(key) or holds_secret_name(item) for key, item in value.items())
    return isinstance(value, list) and any(map(holds_secret_name, value))


__all__ = [
    "CURSORS",
    "CheckpointEmitter",
    "ResumeMiddleware",
    "ScopeRef",
    "StepCheckpoint",
    "StepContext",
    "StepLog",
    "Strictness",
    "compute_input_hash",
    "load_checkpoint",
    "verify_input_hash",
]

LARGEST_STATE = 32 * 1024  # bytes; a step stores only what it needs to continue, and refers to the rest

# Called with the question and its subject; None: no one can answer.
Ask = Callable[[str, str], bool | None]


@dataclass(slots=True)
class StepContext:
    """The data that layers pass on. `state` contains their results: JSON that is kept in the checkpoint."""

    mission_id: str
    run_id: str
    step_id: str
    inputs: Mapping[str, Any]
    strictness: Strictness | None = None
    scope_refs: tuple[ScopeRef, ...] | None = None
    retry_token: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    cursor: str = ""
    notes: list[str] = field(default_factory=list)


def _redactor() -> Redactor:
    return Redactor.from_environment(os.environ)


def _now() -> datetime:
    return datetime.now(UTC)


def random_token() -> str:
    from uuid import uuid4  # slows start-up, and most uses only read

    return str(uuid4())


@dataclass(slots=True)
class CheckpointEmitter:
    """A layer that makes a checkpoint at its cursor. Once `process` returns, the checkpoint is durable."""

    log: StepLog
    cursor: str = CURSORS[0]
    redactor: Redactor = field(default_factory=_redactor)
    now: Callable[[], datetime] = _now
    tokens: Callable[[], str] = random_token

    def __post_init__(self) -> None:
        if not self.cursor:
            raise ValueError("a cursor must be a non-empty string")

    def process(self, context: StepContext) -> StepContext:
        checkpoint = self.checkpoint(context)
        torn = self.log.append(event_of(checkpoint))
        context.notes += [f"{self.log.path.name}: {damage}; it is quarantined" for damage in torn]
        return context

    def checkpoint(self, context: StepContext) -> StepCheckpoint:
        """Return a checkpoint of the current state. Raises ValueError if it could not be read back, and
        `RedactionFailed` if the step could not be resumed from it after redaction.
        """
        if not isinstance(context.state, dict):
            raise ValueError("state: it must be a mapping")
        checkpoint = StepCheckpoint(
            context.mission_id, context.run_id, context.step_id, context.strictness or Strictness.MEDIUM,
            context.scope_refs or (), compute_input_hash(context.inputs), self.cursor, self.tokens(), self.now(),
            "ascii", hashes_of_keys(context.inputs), shown_values(context.inputs, self.redactor), dict(context.state),
        )  # fmt: skip
        state = json.dumps(context.state)
        if len(state) > LARGEST_STATE:
            raise ValueError(f"the state of {context.step_id} is {len(state):,} bytes; the limit for a checkpoint is "
                             f"{LARGEST_STATE:,}")  # fmt: skip
        line = line_of(event_of(checkpoint))
        if wrong := [f"{name}: {why}" for name, why in problems(json.loads(line))]:
            raise ValueError("; ".join(wrong))
        if self.redactor.clean_value(json.loads(line), json.dumps(json.loads(line), ensure_ascii=False))[1] or (
            holds_secret_name(json.loads(state))
        ):
            raise RedactionFailed(
                f"the checkpoint of {context.step_id} contains a secret, so the step could not be resumed from it"
            )
        return checkpoint


@dataclass(slots=True)
class ResumeMiddleware:
    """The first layer. It sets `context.cursor` if there is a checkpoint to continue from; otherwise the step starts
    over.

    `ask` puts a question to a person, by default at the terminal; with None, no one is asked.
    """

    log: StepLog
    ask: Ask | None = ask_at_terminal
    actor: str = ""
    redactor: Redactor = field(default_factory=_redactor)
    now: Callable[[], datetime] = _now
    tokens: Callable[[], str] = random_token

    def process(self, context: StepContext, cursors: Collection[str] = CURSORS) -> StepContext:
        """Restore the context, or raise `RunBlocked` with the reason. Writes nothing unless the step continues."""
        log = self.log.read()
        history = History.of(log, context)
        checkpoint = history.wanted(context.retry_token)
        if checkpoint is None:
            other = left_by_other_runs(log, context)
            if other is not None:
                context.notes.append(
                    f"run {other.run_id} left this step unfinished at {other.cursor}; to continue it, use its run_id"
                )
            return context
        history.require_free()
        strictness = None if context.strictness is None else Strictness(context.strictness)
        present = Present(context.inputs, strictness, context.scope_refs)
        judgement = judge(checkpoint, present, cursors, self.redactor)
        answer = self._require_leave(checkpoint, judgement, history) if judgement.code else ()
        context.cursor = checkpoint.cursor
        context.state = dict(checkpoint.state)
        context.strictness = present.strictness or checkpoint.strictness
        context.scope_refs = tuple(checkpoint.scope_refs if present.scope_refs is None else present.scope_refs)
        self._consume(checkpoint, context, answer)
        return context

    def confirm(self, identity: tuple[str, str, str], subject: str, *, yes: bool) -> None:
        """Answer a question from outside, such as from another terminal. The answer covers exactly that question."""
        self.log.append(self._confirmed(identity, subject, yes))

    def _require_leave(self, checkpoint: StepCheckpoint, judgement: Judgement, history: History) -> tuple[Any, ...]:
        """Return the answer to record, if a person was asked just now.

        If no person is present, raise an error instead of waiting.
        """
        identity = identity_of(checkpoint)
        given = history.answers.get(judgement.subject)
        answer = given.yes if given is not None else None
        asked: tuple[Any, ...] = ()
        if judgement.subject and answer is None and self.ask is not None:
            question = f"{'/'.join(identity)}: continue although {'; '.join(judgement.details)}?"
            said = self.ask(question, judgement.subject)
            if said is not None:
                about: dict[str, Json] = {"retry_token": checkpoint.retry_token, "differences": [*judgement.details]}
                answer, asked = said, ({**self._confirmed(identity, judgement.subject, said), **about},)
        if answer:
            return asked
        if asked:
            self.log.append(*asked)
        details: dict[str, Json] = {
            "step": list(identity), "checkpoint": checkpoint.retry_token, "differences": list(judgement.details),
            "changes": dict(judgement.changes), "subject": judgement.subject,
        }  # fmt: skip
        message = f"{'/'.join(identity)}: {'; '.join(judgement.details)}"
        if answer is None:
            hint = ""
            if judgement.subject:  # without a question, the remedy of the code applies
                hint = "restore what changed, or answer at a terminal; from a program: ResumeMiddleware.confirm"
            raise RunBlocked(message, code=judgement.code, hint=hint, details=details)
        said_by = given.actor if given is not None else self._who()
        take_back = f"workpacket resume step/{'/'.join(identity)} --yes"
        raise RunBlocked(f"{message}; {said_by or 'someone'} answered no; `{take_back}` withdraws that answer",
                         code="confirmation_denied", hint=take_back, details=details)  # fmt: skip

    def _consume(self, checkpoint: StepCheckpoint, context: StepContext, answer: tuple[Any, ...]) -> None:
        """Spend the token and issue the next one in one append: after a crash, the step can still be resumed."""
        emitter = CheckpointEmitter(self.log, checkpoint.cursor, self.redactor, self.now, self.tokens)
        spent = self._event(CONSUMED, identity_of(checkpoint), {
            "retry_token": checkpoint.retry_token, "holder": this_process(),
        })  # fmt: skip

        def still_unspent(log: Any) -> None:
            history = History.of(log, context)
            history.require_free()
            history.require_unspent(checkpoint.retry_token)

        torn = self.log.append(event_of(emitter.checkpoint(context)), *answer, spent, unless=still_unspent)
        context.notes += [f"{self.log.path.name}: {damage}; it is quarantined" for damage in torn]

    def _confirmed(self, identity: tuple[str, str, str], subject: str, yes: bool) -> dict[str, Json]:
        return self._event(CONFIRMED, identity, {"subject": subject, "answer": "yes" if yes else "no"})

    def _event(self, kind: str, identity: tuple[str, str, str], data: Mapping[str, Json]) -> dict[str, Json]:
        mission, run, step = identity
        return {"event_type": kind, "mission_id": mission, "run_id": run, "step_id": step, **data,
                "actor": self._who(), "timestamp": self.now().isoformat()}  # fmt: skip

    def _who(self) -> str:
        return self.actor or os.environ.get("WORKPACKET_ACTOR", "") or os.environ.get("USER", "")
