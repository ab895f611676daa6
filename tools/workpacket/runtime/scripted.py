"""A run whose steps are separate processes: shell scripts, and agents that call one command at a time.

Each command joins the attempt, does one thing and leaves. In between, the lease is held in the name of the *owner*: the
calling process, normally the script. While the owner lives, no one else can take the run; once it has exited, anyone
can.

The handle `ID#ATTEMPT` identifies one attempt. If another script has continued the run of a script that was stopped,
the old handle refers to an attempt that is over; it is refused with `lease_lost`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import BinaryIO, Unpack

from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.relay import ProgramFailed, Relayed, StoredOutput, relay
from workpacket.runtime.attempts.session import Session, cursor_of
from workpacket.runtime.attempts.starter import RunRequest, orphans_of
from workpacket.runtime.catalog import state_of
from workpacket.runtime.errors import LeaseHeld, LeaseLost, RunBlocked, RunCancelled, StepFailed
from workpacket.runtime.holders import is_certainly_dead, process_named, this_process
from workpacket.runtime.records.state import RunState
from workpacket.runtime.run import Run, session_of
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Lease

LEASE_SECONDS = 3600.0  # a script may take long between two commands


def handle_of(state: RunState) -> str:
    return f"{state.stream}#{state.attempt}"


PROGRAM = "workpacket runtime run start"  # recorded as the program of a run that a shell begins


def start(runtime: Runtime, name: str, **request: Unpack[RunRequest]) -> tuple[RunState, Json]:
    """Begin or continue a run and hand it to its owner; return its state, and the cursor of its last checkpoint."""
    request.setdefault("program", PROGRAM)
    run = runtime.run(name, **request)
    session = session_of(run)
    session.leave()
    point = session.state.latest_checkpoint
    return session.state, None if point is None else cursor_of(session.recorder, point)


def join(runtime: Runtime, handle: str) -> Session:
    """Join the attempt that the handle identifies, if it is still the current one and no one else holds it."""
    stream, _, attempt = handle.rpartition("#")
    if runtime.store.head(stream) is None:
        raise RunBlocked(f"run {stream or handle!r} not found", code="checkpoint_missing",
                         hint="workpacket runtime runs list")  # fmt: skip
    state = _present(runtime, stream, attempt)
    if state.status == "completed":
        return Session(runtime.settings.recorder(runtime.store, state, stream), LEASE_SECONDS, replay_only=True)
    lease = _lease(runtime, stream)
    state = _present(runtime, stream, attempt)  # the state read before the lease was taken may be outdated
    session = Session(
        runtime.settings.recorder(runtime.store, state, stream, lease),
        LEASE_SECONDS,
        runtime.promised,
        None,
        on_end=runtime.tell_end,
    )
    session.root.reached_new_work = True  # steps of scripts record when they begin, so nothing must be guessed
    session.keep_lease()
    return session


def _present(runtime: Runtime, stream: str, attempt: str) -> RunState:
    state = state_of(runtime.store, stream, runtime.settings.verifier)
    if str(state.attempt) != attempt:
        raise LeaseLost(f"{stream} is at attempt {state.attempt}; attempt {attempt} has ended",
                        hint=f"workpacket runtime runs show {shlex.quote(stream)}")  # fmt: skip
    if state.status in {"stopped", "cancelled", "moved"}:
        raise RunBlocked(
            f"attempt {attempt} of {stream} has ended: {state.stop_code}",
            code=state.stop_code,
            hint=f"workpacket resume {shlex.quote(stream)} --plan",
        )
    return state


def _lease(runtime: Runtime, stream: str) -> Lease:
    """Return the attempt's own lease, renewed, or a new one if the lease has expired and no one has taken the run in
    the meantime.
    """
    owner = runtime.settings.holder or this_process()
    present = runtime.store.lease(stream)
    began = runtime.store.latest("runs", stream)
    if present is not None and (present.holder == owner or (began is not None and began.fence == present.token)):
        return runtime.store.renew(present, LEASE_SECONDS)
    if present is not None and is_certainly_dead(present.holder):
        return runtime.store.acquire(stream, owner, LEASE_SECONDS, over=present.token)
    return runtime.store.acquire(stream, owner, LEASE_SECONDS)


def program_step(
    session: Session,
    name: str,
    argv: Sequence[str],
    *,
    sinks: tuple[BinaryIO | None, BinaryIO | None] = (None, None),
    timeout: float | None = None,
) -> tuple[Relayed, bool]:
    """Run a program once under this name; return its stored result, and whether the program had already been run."""
    alive = orphans_of(session.state)
    if any(process.startswith(f"{name}: ") for process in alive):
        raise LeaseHeld(f"{name} is already running: {', '.join(alive)}", code="orphan_alive")
    done_now: list[bool] = []

    def begin(pid: int) -> None:
        processes: list[Json] = [this_process(), process_named(pid)]
        session.recorder.record(RecordDraft("step.started", {"step": name, "processes": processes}))

    def execute(argv: list[str]) -> Relayed:
        done_now.append(True)
        redactor = session.recorder.redactor
        outcome = relay(argv, begin, session.boundary.check_now, sinks=sinks, redactor=redactor, timeout=timeout)
        if outcome["exit_code"] != 0:
            raise ProgramFailed(outcome)
        return outcome

    try:
        result = Run(session).step(name, execute, list(argv))
    except ProgramFailed as failed:
        raise StepFailed(f"{name}: {failed}", details={"step": name, "outcome": as_json(failed.outcome)}) from None
    except TimeoutError as late:
        raise StepFailed(f"{name}: {late}", code="worker_timeout", details={"step": name}) from None
    return result, not done_now


def value_step(session: Session, name: str, value: Json) -> tuple[Json, bool]:
    """Record a result under this name, or return the stored one."""
    done_now: list[bool] = []

    def give() -> Json:
        done_now.append(True)
        return value

    return Run(session).step(name, give), not done_now


def stop(session: Session, code: str, note: str) -> None:
    """End the attempt: without a code, the run is finished; with a code, it stopped for that reason."""
    if session.replay_only:
        if code:
            raise RunBlocked(f"{session.state.stream} is finished; it can no longer be stopped", code="step_changed")
        return
    if not code:
        session.end(None)
    elif code == "run_cancelled":
        session.end(RunCancelled(note))
    else:
        session.end(RunBlocked(note or code, code=code))


def as_json(outcome: Relayed) -> Json:
    return {
        "exit_code": outcome["exit_code"],
        "stdout": _output(outcome["stdout"]),
        "stderr": _output(outcome["stderr"]),
    }


def _output(kept: StoredOutput) -> Json:
    return {"sha256": kept["sha256"], "length": kept["length"], "tail": kept["tail"]}
