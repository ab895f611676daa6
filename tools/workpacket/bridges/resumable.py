"""All kinds of unfinished work in one form: where it would resume and why, or what stops it and what to do about the
obstacle. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast
from urllib.parse import unquote

from workpacket.bridges.batch_facts import BatchFacts
from workpacket.bridges.commit_checkpoints import Selected
from workpacket.bridges.role_facts import ArtifactChange, RoleFacts, RoleFields
from workpacket.model.canonical import Json
from workpacket.problem import Problem
from workpacket.runtime.catalog import RunLine
from workpacket.runtime.holders import Caller, at_work
from workpacket.runtime.model_sessions.record import SessionReport
from workpacket.runtime.records.state import RunState
from workpacket.runtime.resume.decide import Decision
from workpacket.runtime.resume.observe import OpenQuestion
from workpacket.runtime.scripted import PROGRAM as SHELL_PROGRAM
from workpacket.runtime.step.checkpoint import StepCheckpoint
from workpacket.value import Value, replace


class UnfinishedRole(NamedTuple):
    """A role with unfinished work. `blocked_by` are the codes of the problems to settle first. `artifacts` are the
    files that the role named, with their digests at its last milestone.
    """

    path: str
    fields: RoleFields
    blocked_by: tuple[str, ...]
    artifacts: Mapping[str, str]


def unfinished_roles(
    scanned: Iterable[RoleFacts], team: str = "", caller: Callable[[str], Caller] = lambda _: Caller()
) -> tuple[UnfinishedRole, ...]:
    """Return the roles with unfinished work, of one team or of all teams, most recently active first. `caller` is the
    requester, if it has a role; its own work does not count as busy.
    """
    found = [_open_role(facts, caller(facts.names[2])) for facts in scanned if facts.is_open]
    chosen = [one for one in found if not team or one.fields.team.casefold() == team.casefold()]
    return tuple(sorted(chosen, key=lambda one: (_moment(one.fields.updated), one.path), reverse=True))


def _moment(updated: str) -> datetime:
    """Return the time at which a file was last written, as stated in the file. A date without a time means midnight,
    and invalid times sort last."""
    try:
        moment = datetime.fromisoformat(updated)
    except ValueError:
        moment = datetime.min
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _open_role(facts: RoleFacts, caller: Caller) -> UnfinishedRole:
    lease = facts.lease
    stops = {
        "role_key_missing": not all(facts.fields),
        "role_zombie": bool(facts.closed_by),
        "role_twice": bool(facts.twins),
        "role_identity_mismatch": facts.is_astray,
        "view_conflict": bool(facts.contradictions),
        "run_busy": lease is not None and at_work(lease.holder, caller) != "",
    }
    blocked_by = tuple(code for code, stop in stops.items() if stop)
    return UnfinishedRole(facts.path, facts.fields, blocked_by, facts.state.artifacts)


AGAIN = "start its program again"
Kind = Literal["run", "session", "batch", "role", "step", "commit"]
_WAITING_CODES = frozenset({"worker_blocked", "check_not_run"})
_OF_PHASE = {
    "testers": "Write tests that fail until the work is done",
    "implementers": "Do the work until the tests pass",
    "reviewers": "Review the work; approve it or reject it with a reason",
}


class Resumable(Value):
    """One item of unfinished work. `where` is the point to resume from, `why` is how it was determined, and `command`
    is what resumes it. `stops` are the reasons why the work does not continue by itself, and `doubts` are what a person
    may want to check first; their hints are commands. `task` is what an agent should then do; it is empty for a
    program. `decision` is the decision about a run.
    """

    kind: Kind
    id: str
    where: str
    why: str
    command: str
    stops: tuple[Problem, ...] = ()
    task: str = ""
    state: str = ""
    decision: Decision | None = None
    doubts: tuple[Problem, ...] = ()

    @property
    def goes_on(self) -> bool:
        return not self.stops

    @property
    def only_waits(self) -> bool:
        """Whether this is an agent's work that is waiting for other people and may be resumed by its id."""
        return self.kind == "role" and bool(self.stops) and {one.code for one in self.stops} <= _WAITING_CODES

    def as_json(self) -> dict[str, Json]:
        stops, doubts = (
            [{"code": one.code, "message": one.message, "command": one.hint} for one in problems]
            for problems in (self.stops, self.doubts)
        )
        row: dict[str, Json] = {
            "kind": self.kind, "id": self.id, "where": self.where, "why": self.why, "command": self.command,
            "task": self.task, "blocked_by": cast("Json", stops), "warnings": cast("Json", doubts),
        }  # fmt: skip
        if self.kind in {"run", "session"}:
            row |= {"run": self.id, **({"state": self.state} if self.state else {})}
        if self.decision is not None:
            row["decision"] = self.decision.as_json()
        return row


def kept_back(work: Resumable, by_packet: Problem | None) -> Resumable:
    """Add the objections that follow from the lane of the run's packet, with the options for resolving them."""
    if by_packet is None:
        return work
    choice = f"{by_packet.hint}, or: workpacket runtime cancel {shlex.quote(work.id)}"
    return replace(work, stops=(*work.stops, Problem(by_packet.code, by_packet.message, hint=choice)))


def of_run(line: RunLine, decision: Decision, state: RunState, questions: Sequence[OpenQuestion] = ()) -> Resumable:
    finished = len(state.steps)
    where = f"after {finished} finished step{'s' * (finished != 1)}" if finished else "its beginning"
    where = f"checkpoint {decision.checkpoint}" if decision.checkpoint else where
    stops: tuple[Problem, ...] = ()
    if decision.code:
        command = f"workpacket resume {shlex.quote(line.id)}" + ("" if questions else " --plan")
        stops = (Problem(decision.code, f"{decision.action.lower()}: {decision.code}", hint=command),)
    elif questions:
        stops = tuple(
            Problem(one.code, one.question, hint=f"workpacket resume {shlex.quote(line.id)}") for one in questions
        )
    command, why = started_again(state), f"the run is {line.liveness}"
    return Resumable("run", line.id, where, why, command, stops, "", line.liveness, decision)


def started_again(state: RunState) -> str:
    """Return what continues a run: its program, as far as it is recorded; for a run of a shell, the command that began
    it.
    """
    if state.program != SHELL_PROGRAM:
        return f"start its program again: {state.program}" if state.program else AGAIN
    key = unquote(state.stream.rpartition("@")[2])
    words = [state.name]
    words += ["--packet", state.packet] if state.packet else []
    is_numbered = len(key) == 8 and key.isdigit()
    if "@" in state.stream and not is_numbered:
        words += ["--once", key]
    elif not is_numbered:
        words += ["--run", state.stream]
    words += [word for name in sorted(state.inputs) for word in ("--input", f"{name}=VALUE")]
    words += [word for path in state.scope for word in ("--scope", path)]
    words += [word for name in state.allow_deps for word in ("--allow-deps", name)]
    words += ["--code-version", state.code_version] if state.code_version else []
    return f"{SHELL_PROGRAM} {shlex.join(words)}"


def of_session(line: RunLine, report: SessionReport) -> Resumable:
    session = report.session
    message = "; ".join(report.details) or session.status.lower()
    stop = Problem(
        session.reason or "run_cancelled", message, hint=f"workpacket runtime session show {shlex.quote(line.id)}"
    )
    stops = () if session.status == "PAUSED" else (stop,)
    where = f"message {session.messages}"
    if session.checkpoint_artifact_id:
        where += f", checkpoint {session.checkpoint_artifact_id[:12]} ({session.last_checkpoint_kind})"
    why = f"the session is {session.status.lower()}: {session.reason}"
    return Resumable("session", line.id, where, why, AGAIN, stops, "", line.liveness)


def of_batch(facts: BatchFacts, caller: Caller) -> Resumable | None:
    """Return the unfinished batch, or None if nothing is left to do. The caller's own work does not block it."""
    found = _unfinished(facts)
    if found is None:
        return None
    label, phase, tasks = found
    folder, batch = facts.folder, facts.state.batch
    stops = [
        Problem("view_conflict", one, hint=f"workpacket runtime batch status {folder}") for one in facts.contradictions
    ]
    for stale in facts.stale:
        if stale.blocks:
            accept = f"workpacket runtime batch begin {folder} --accept {stale.aspect}"
            stops.append(Problem(stale.code, f"{stale.aspect}: {stale.message}", hint=accept))
    if batch is None and facts.state.completing is None:
        check = f"workpacket check {folder}/tasks.yaml"
        stops += [Problem(one.code, " -> ".join(one.tasks), hint=check) for one in facts.scope.next.problems]
    if batch is not None and (cursor := batch.cursor) is not None:
        holders = {at_work(batch.stage(cursor, unit).holder, caller) for unit in batch.open_units} - {""}
        take_over = f"workpacket runtime batch begin {folder} --accept holder"
        stops += [Problem("run_busy", f"{one} is working on it", hint=take_over) for one in sorted(holders)]
    where = f"batch {label or 'that comes next'}: {phase or 'to begin'}: {', '.join(tasks)}"
    ends = phase in {"complete", "completing"}
    command = f"workpacket runtime batch {'complete' if ends else 'begin'} {folder}"
    following = phase or "testers"
    task = "" if ends else (
        f"{_OF_PHASE[following]}: {', '.join(tasks)}. See {folder}/tasks.yaml.\nThen: workpacket runtime "
        f"batch complete {folder} --phase {following}"
    )  # fmt: skip
    why = f"{folder}/checkpoint.yaml: the last batch is {facts.state.view.last_batch or 'none'}"
    return Resumable("batch", f"batch/{folder}", where, why, command, tuple(stops), task)


def _unfinished(facts: BatchFacts) -> tuple[str, str, tuple[str, ...]] | None:
    """Return the label, phase and tasks of what to resume: an interrupted completion, the current batch, or the next
    one.
    """
    state = facts.state
    if state.completing is not None:
        return state.completing.label, "completing", state.completing.tasks
    if state.batch is not None:
        return state.batch.label, state.batch.cursor or "complete", state.batch.open_units
    plan = facts.scope.next
    if not plan.pending:
        return None
    return state.view.next.label if state.view.next is not None else "", "", plan.batch


# What a role waits for, by its status: the code that excludes it from `resume --yes`, and the note that it gets if it
# is resumed by its id. Resuming it changes no status, so it claims neither an approval nor that the obstacle is gone.
_WAITING = {
    "blocked": (
        "worker_blocked",
        (
            "It is waiting for an obstacle to be removed. After that, run: "
            "workpacket runtime progress claimed {names} 'What changed'"
        ),
    ),
    "awaiting_review": (
        "check_not_run",
        ("It is waiting for review. After approval, run: workpacket runtime progress review-approved {names}"),
    ),
}


def of_role(role: UnfinishedRole, changed: tuple[ArtifactChange, ...]) -> Resumable:
    fields = role.fields
    names = f"{fields.feature} {fields.agent}"
    commands = {
        "role_zombie": f"workpacket runtime progress close {fields.feature}",
        "view_conflict": f"workpacket runtime progress adopt {names}",
    }
    messages = {"run_busy": "its writer is still running", "role_zombie": f"{fields.feature} is complete"}
    stops = [
        Problem(c, messages.get(c, role.path), hint=commands.get(c, f"workpacket explain {c}")) for c in role.blocked_by
    ]
    id_ = f"role/{fields.feature}/{fields.team}/{fields.agent}"
    waits_for = ""
    if not stops and fields.status in _WAITING:
        code, waits_for = _WAITING[fields.status]
        stops.append(Problem(code, fields.last_action, hint=f"workpacket resume {shlex.quote(id_)} --yes"))
        waits_for = f"{waits_for.format(names=names)}\n"
    task = (
        f"You are {fields.agent} on team {fields.team}, working on feature {fields.feature}, phase "
        f"{fields.phase}.\nLast action: {fields.last_action}. Read {role.path} and continue from there.\n"
        f"{waits_for}At each milestone, run: workpacket runtime progress MILESTONE {names}"
    )
    where = f"{fields.phase}: {fields.last_action}"
    why = f"{role.path}: {fields.status} since {fields.updated}"
    doubts = tuple(Problem("artifact_changed", one.message, hint=one.choice) for one in changed)
    return Resumable(
        "role", id_, where, why, f"workpacket resume {shlex.quote(id_)} --yes", tuple(stops), task, doubts=doubts
    )


def of_step(path: str, checkpoint: StepCheckpoint, stops: Iterable[Problem]) -> Resumable:
    id_ = f"step/{checkpoint.mission_id}/{checkpoint.run_id}/{checkpoint.step_id}"
    why = f"{path}: step {checkpoint.step_id} has a checkpoint but has not finished"
    where = f"{checkpoint.step_id}, {checkpoint.cursor}"
    return Resumable("step", id_, where, why, "start its pipeline again", tuple(stops))


def of_commits(run: str, selected: Selected) -> Resumable:
    """Return the state of another program's run, which is known only by its checkpoint commits."""
    found = selected.source != "none"
    stops = [Problem("view_conflict", one, hint="git log") for one in selected.conflicts]
    if not found and not stops:
        message = "; ".join(selected.skipped) or "it has no checkpoint in this history"
        stops = [Problem("git_diverged", message, hint="git log")]
    where = f"after milestone {selected.milestone_index}, commit {selected.sha[:12]}" if found else "nowhere"
    why = (
        f"{selected.source}: its checkpoint is {selected.relation}"
        if found
        else "its sidecars refer to commits outside this history"
    )
    command = f"{AGAIN}, or: {SHELL_PROGRAM} NAME --run {shlex.quote(run)}"
    return Resumable("commit", f"commit/{run}", where, why, command, tuple(stops))
