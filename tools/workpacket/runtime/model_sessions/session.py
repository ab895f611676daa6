"""A session with a model, as a run: its messages, model runs and tool calls.

    with open_session(runtime, "review-42", model="some-model") as session:
        session.add("user", "look at the change")
        answer = session.model_run(ask)                     # `ask` is given a ModelRun and reads chunks through it
        session.tool("call-7", post_comment, answer, target="comment")

A session is a keyed run of the runtime: a message and a model run are steps, a tool call is an effect under the id of
the call, and a checkpoint contains an artifact. If the same program repeats a finished call, it gets the result from
the log; with `restore`, it skips the finished part instead. The session may end only between chunks, and before and
after each tool call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeVar

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.effects import Recovery
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.relay import Relayed
from workpacket.runtime.errors import RunBlocked, RunCancelled, RuntimeFault
from workpacket.runtime.model_sessions.record import (
    CheckpointKind,
    Message,
    ModelSession,
    PendingCall,
    SessionReport,
    assess,
    make_artifact,
    message_at,
    message_count,
    message_step,
    messages_behind,
    messages_of,
    pending_calls,
    require_unaltered,
    save_artifact,
    stream_of,
)
from workpacket.runtime.run import Run, session_of
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.scripted import program_step

__all__ = ["Message", "ModelRun", "ModelSession", "OpenSession", "PendingCall", "Restored", "SessionReport", "assess",
           "open_session"]  # fmt: skip

T = TypeVar("T")
Chunk = TypeVar("Chunk")

CHUNKS_BETWEEN_CHECKPOINTS = 32
TAIL = 8  # messages kept in an artifact


class Restored(NamedTuple):
    """The restored state: messages, the state of the last valid checkpoint, and an answer that was cut off."""

    messages: tuple[Message, ...]
    state: Json
    partial: str


def open_session(
    runtime: Runtime, session_id: str, *, model: str, packet: str = "", every: int = CHUNKS_BETWEEN_CHECKPOINTS
) -> OpenSession:
    """Begin the session, or continue it. Raises `RunBlocked`, with the possible decisions, if it cannot continue."""
    stream = stream_of(session_id, packet)
    report = assess(runtime, stream) if runtime.store.head(stream) is not None else None
    if report is not None and report.session.status == "BLOCKED":
        raise report.refusal(runtime)
    run = runtime.run("session", packet=packet, key=session_id, inputs={"model": model})
    session_of(run).allow_unasked = True  # `restore` continues behind what was said, which is not asked for again
    return OpenSession(run, session_id, model, packet, report, every)


class ModelRun:
    """One answer from the model as it arrives. `partial` is the text that an interrupted attempt had received."""

    def __init__(self, session: OpenSession, partial: str) -> None:
        self._session = session
        self.partial = partial
        self.text = ""
        self.received = 0
        self._last: int | None = None  # the number of the last chunk

    def chunks(
        self,
        stream: Iterable[Chunk],
        *,
        text: Callable[[Chunk], str] = str,
        number: Callable[[Chunk], int] | None = None,
    ) -> Iterator[Chunk]:
        """Yield the chunks one by one.

        The session may be cancelled between two chunks; a missing chunk number stops it.
        """
        for chunk in self._session.run.boundary(stream):
            self.take(text(chunk), None if number is None else number(chunk))
            yield chunk
            if self.is_due:
                self._session.checkpoint("periodic")

    def take(self, text: str, number: int | None) -> None:
        """Add the text of the next chunk. A number must be one more than the last one."""
        last = self._last
        if number is not None and last is not None and number != last + 1:
            raise RunBlocked(f"chunk {number} came after chunk {last}", code="sequence_gap",
                             details={"run": self._session.run.id, "after": last, "found": number})  # fmt: skip
        self._last = number
        self.text += text
        self.received += 1

    @property
    def is_due(self) -> bool:
        """Whether enough chunks have arrived for another checkpoint."""
        return self.received % self._session.every == 0


class OpenSession:
    """A session in progress. Use `open_session` to create one."""

    def __init__(
        self, run: Run, session_id: str, model: str, packet: str, report: SessionReport | None, every: int
    ) -> None:
        self.run = run
        self.id = session_id
        self.model = model
        self.packet = packet
        self.every = every
        self.report = report
        self._position = 0
        self._state: Json = None if report is None or report.artifact is None else report.artifact.body.get("state")
        self._model_run: ModelRun | None = None
        # Model runs and programs record when they begin, so there is no need to guess whether a step was in progress.
        session_of(run).root.reached_new_work = True

    def __enter__(self) -> OpenSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self.last_checkpoint(error)
        return self.run.__exit__(kind, error, trace)

    def last_checkpoint(self, error: BaseException | None) -> None:
        """Save the snapshot with which the attempt ends."""
        failed = isinstance(error, Exception) and not isinstance(error, RunCancelled)
        with suppress(RuntimeFault):  # the end of the attempt matters more than its last checkpoint
            self.checkpoint("post_failure" if failed else "pre_shutdown")

    # ---- messages ------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return all messages in the log, including those that this program has not reached yet."""
        return messages_of(session_of(self.run).recorder.store, self.run.state)

    def restore(self) -> Restored:
        """Continue after everything that is already done, instead of replaying it call by call."""
        messages = self.messages
        self._position = messages[-1].seq if messages else messages_behind(self.run.state)
        return Restored(messages, self._state, self._partial() or "")

    def add(self, role: str, content: str) -> Message:
        """Add a message from the user or from a tool. The same message at the same position returns the stored one."""
        stored = self._stored()
        if stored is not None:
            if (stored.role, stored.content) != (role, self._clean(content)[0]):
                message = f"message {stored.seq} of session {self.id} differs from the stored one"
                raise RunBlocked(message, code="step_changed", details={"message": stored.seq})
            return stored
        return self._keep(role, content)

    def model_run(self, function: Callable[[ModelRun], str]) -> Message:
        """Get an answer from the model, exactly once: `function` receives a `ModelRun` and returns the whole text."""
        begun = self.begin_answer()
        return begun if isinstance(begun, Message) else self.end_answer(function(begun))

    def begin_answer(self) -> Message | ModelRun:
        """Return the stored answer at this position, or begin to receive one."""
        stored = self._stored()
        if stored is not None:
            return stored
        step = message_step(self._position + 1)
        session = session_of(self.run)
        session.boundary.check()
        partial = self._partial()
        if partial is not None and self.report is not None and self.report.partial_accepted:
            return self._keep("assistant", partial)
        self._model_run = ModelRun(self, partial or "")
        session.recorder.record(RecordDraft("step.started", {"step": step, "processes": []}))
        return self._model_run

    def end_answer(self, text: str) -> Message:
        """Store the whole answer."""
        answer = self._keep("assistant", text)
        self._model_run = None
        return answer

    def _stored(self) -> Message | None:
        """Return the message at the current position if it is stored, and advance."""
        if message_step(self._position + 1) not in self.run.state.steps:
            behind = messages_behind(self.run.state)
            if self._position < behind:
                message = f"{behind} messages of session {self.id} are on another machine"
                raise RunBlocked(message, code="sequence_gap", hint="begin with `session.restore()`")
            return None
        self._position += 1
        return message_at(session_of(self.run).recorder.store, self.run.state, self._position)

    def _keep(self, role: str, content: str) -> Message:
        cleaned, found = self._clean(content)
        message = Message(self._position + 1, role, cleaned, found)
        self.run.step(message_step(message.seq), message.as_json)
        self._position += 1
        return message

    def _clean(self, content: str) -> tuple[str, int]:
        cleaned, found = session_of(self.run).recorder.redactor.clean_value(
            content, json.dumps(content, ensure_ascii=False)
        )
        return str(cleaned), found

    def _partial(self) -> str | None:
        """Return the part of the next message that is in the last valid checkpoint."""
        body = {} if self.report is None or self.report.artifact is None else self.report.artifact.body
        partial = body.get("partial")
        if not isinstance(partial, Mapping) or partial.get("message") != self._position + 1:
            return None
        return str(partial.get("text", ""))

    # ---- tools ---------------------------------------------------------------------------------------------------

    def tool(
        self,
        call_id: str,
        function: Callable[..., T],
        /,
        *args: Any,
        target: str = "",
        recovery: Recovery = "manual",
        probe: Callable[[], T] | None = None,
        compensate: Callable[[], object] | None = None,
        **kwargs: Any,
    ) -> T:
        """Call a tool that acts on the world. The call is never silently repeated: its id is its key."""
        self.boundary()
        result = self.run.effect(
            f"tool-{call_id}", function, *args, key=call_id, recovery=recovery, target=target or call_id, probe=probe,
            compensate=compensate, **kwargs,
        )  # fmt: skip
        self.boundary()
        return result

    def boundary(self) -> None:
        """Stop here if the session was cancelled. A closed session only returns stored results."""
        if not session_of(self.run).replay_only:
            session_of(self.run).boundary.check_now()

    def program(self, call_id: str, argv: Sequence[str], *, timeout: float | None = None) -> Relayed:
        """Run a program as a tool, and repeat it if it was interrupted. While it runs, no one else can continue the
        session.
        """
        return program_step(session_of(self.run), f"tool-{call_id}", argv, timeout=timeout)[0]

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def checkpoint(self, kind: CheckpointKind = "event_triggered", state: Json = None) -> str:
        """Save a snapshot of the session as an artifact, and return its id. If no state is given, the last one is
        kept. Raises `WouldBeAltered` for a state that seems to contain a secret."""
        recorder = session_of(self.run).recorder
        if session_of(self.run).replay_only:
            return ""
        if state is not None:
            require_unaltered(state, recorder.redactor)
            self._state = state
        arriving = self._model_run
        body: dict[str, Json] = {
            "kind": kind,
            "of": "model_run" if arriving is not None else "session",
            "session_id": self.id,
            "packet": self.packet,
            "model": self.model,
            "attempt": self.run.attempt,
            "made_at": recorder.clock.now(),
            "messages": message_count(recorder.state),
            "tail": [message.as_json() for message in messages_of(recorder.store, recorder.state, TAIL)],
            "partial": self._arriving(arriving),
            "pending": [call.as_json() for call in pending_calls(self.run.state)],
            "calls": [{**record.facts(), "status": record.status} for record in recorder.state.effects.values()],
            "state": self._state,
        }
        artifact = make_artifact(body, recorder.redactor)
        save_artifact(self.run, artifact, kind)
        return artifact.id

    def _arriving(self, arriving: ModelRun | None) -> Json:
        if arriving is None:
            return None
        return {"message": self._position + 1, "chunks": arriving.received, "text": arriving.text}
