"""What can be done about a batch: begin it, begin and end its stages, complete it.

Every act begins by settling what an act before it left behind: a checkpoint without a log is taken into it, a file
that is late is written anew, a completion that was cut short is finished. What contradicts or is not as it was stops
the act before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from workpacket.bridges import batch_records as records
from workpacket.bridges.batch_completing import complete_batch, finish
from workpacket.bridges.batch_dependencies import narrowed
from workpacket.bridges.batch_desk import BatchDesk
from workpacket.bridges.batch_facts import BatchFacts
from workpacket.bridges.batch_labels import label_after
from workpacket.bridges.batch_phases import BatchUnderWay, Outcome, Phase
from workpacket.documents.batch_plan import Plan, first_batch
from workpacket.documents.batch_scope import BatchScope
from workpacket.documents.batch_view import BatchView, NextBatch
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.runtime.at_work import at_work
from workpacket.runtime.errors import RunBlocked
from workpacket.shell.moment import moment
from workpacket.value import replace


def settle(desk: BatchDesk, accept: Sequence[str] = ()) -> None:
    """Finish what was cut short; refuse to go on from what is not as it was, unless `accept` names it."""
    if desk.facts.contradictions:
        raise view_conflict(desk.facts)
    refuse_stale(desk.facts, accept)
    accepted = sorted({stale.aspect for stale in desk.facts.stale if stale.blocks})
    if not desk.facts.has_log and desk.facts.checkpoint is not None:
        desk.take_over(adopted=False)
        desk.said.append(f"{desk.folder}/checkpoint.yaml was taken into the log")
    if desk.facts.late:
        desk.write()
        desk.said.append(f"{desk.folder}/checkpoint.yaml was late and is written anew")
    finish(desk)
    if accepted:
        _accept(desk, accepted)


def _accept(desk: BatchDesk, aspects: list[str]) -> None:
    facts = desk.facts
    under_way = facts.state.batch.tasks if facts.state.batch is not None else ()
    view = replace(facts.state.view, branch=facts.seen.branch, groups=facts.scope.groups(under_way))
    names: list[Json] = list(aspects)
    reviewers: list[Json] = list(facts.reviewers)
    data: dict[str, Json] = {"names": names, "view": view.as_json(), "reviewers": reviewers}
    desk.record(records.ACCEPTED, {**data, "preconditions": facts.preconditions().as_json()})
    desk.write()
    desk.said.append(f"accepted: {', '.join(aspects)}")


def begin(desk: BatchDesk, *, label: str = "", accept: Sequence[str] = (), allow_deps: Sequence[str] = ()) -> None:
    """Begin the next batch, or what comes next in the one under way; after a crash, what was incomplete again."""
    settle(desk, accept)
    batch = desk.facts.state.batch
    if batch is None:
        _begin_batch(desk, label, allow_deps)
    elif (phase := batch.cursor) is not None:
        _begin_stages(desk, batch, phase, narrowed(desk.facts.state, allow_deps), taken_over="holder" in accept)


def _begin_batch(desk: BatchDesk, label: str, allow_deps: Sequence[str]) -> None:
    facts = desk.facts
    following = proposed(facts, planned(facts.scope))
    if following is None:
        return
    if label in facts.state.labels:
        raise WorkpacketError("invalid_value", f"the label {label!r} was given to a batch before")
    following = replace(following, label=label or following.label)
    reviewers: list[Json] = list(facts.reviewers)
    batch = BatchUnderWay(following.label, following.tasks).begun("testers", following.tasks, desk.caller.name)
    view = replace(
        facts.state.view,
        branch=facts.seen.branch,
        base=facts.seen.base or facts.state.view.base,
        timestamp=moment().now,
        groups=facts.scope.groups(following.tasks),
        next=following,
        phase="testers",
        incomplete=batch.incomplete(),
    )
    desk.record(records.BEGUN, {
        "batch": following.label, "tasks": list(following.tasks), "parallel": following.parallel,
        "reviewers": reviewers, "holder": desk.caller.name, "view": view.as_json(),
        "preconditions": facts.preconditions().as_json(), "allow_deps": list(allow_deps),
    })  # fmt: skip
    desk.write()


def _begin_stages(
    desk: BatchDesk, batch: BatchUnderWay, phase: Phase, allow_deps: Sequence[str], *, taken_over: bool
) -> None:
    for unit in batch.open_units:
        holder = at_work(batch.stage(phase, unit).holder, desk.caller)
        if holder and not taken_over:
            message = f"{desk.folder}: {holder} is at work on {phase} {unit}"
            hint = "Let it finish; if nobody is at work, take it over: --accept holder"
            raise RunBlocked(message, code="run_busy", hint=hint, details={"holder": holder})
    units: list[Json] = list(batch.open_units)
    data: dict[str, Json] = {"batch": batch.label, "phase": phase, "units": units, "holder": desk.caller.name}
    data["allow_deps"] = list(allow_deps)
    view = _view_with(desk.facts, batch.begun(phase, batch.open_units, desk.caller.name))
    desk.record(records.STAGES_BEGUN, {**data, "view": view.as_json()})
    desk.write()


def _view_with(facts: BatchFacts, batch: BatchUnderWay) -> BatchView:
    """The view with the batch as far as it has come."""
    phase = batch.cursor or records.ALL_PHASES_DONE
    return replace(facts.state.view, timestamp=moment().now, phase=phase, incomplete=batch.incomplete())


def end_stages(
    desk: BatchDesk, phase: Phase, units: Sequence[str], outcome: Outcome, *, tasks: Sequence[str] = (),
    note: str = "", accept: Sequence[str] = (),
) -> None:  # fmt: skip
    """`units` of the phase ended so; none named are all that were begun. A rejection may name `tasks`."""
    settle(desk, accept)
    batch = under_way(desk.facts)
    begun = tuple(unit for unit in batch.open_units if batch.stage(phase, unit).state == "begun")
    wanted = tuple(units) or begun
    if batch.cursor != phase or not wanted or not set(wanted) <= set(begun):
        named = ", ".join(unit for unit in wanted if unit not in begun) or "nothing"
        now = f"the batch is in {batch.cursor}" if batch.cursor else "all phases are done"
        message = f"{desk.folder}: {phase}: {named} was not begun; {now}, begun: {', '.join(begun) or 'nothing'}"
        raise WorkpacketError("batch_stage_not_begun", message)
    if stray := [task for task in tasks if task not in batch.tasks]:
        raise WorkpacketError("invalid_value", f"{', '.join(stray)}: no task of batch {batch.label}")
    view = _view_with(desk.facts, batch.ended(phase, wanted, outcome, tasks))
    data: dict[str, Json] = {"batch": batch.label, "phase": phase, "units": list(wanted), "outcome": outcome}
    desk.record(records.STAGES_ENDED, {**data, "tasks": list(tasks), "note": note, "view": view.as_json()})
    desk.write()


def complete(
    desk: BatchDesk, *, issues: Sequence[Json] = (), resolved: Sequence[int] = (), message: str = "",
    accept: Sequence[str] = (),
) -> None:  # fmt: skip
    """Complete the batch under way, or finish the completion that was cut short."""
    cut_short = desk.facts.state.completing is not None
    settle(desk, accept)
    if cut_short:
        return
    batch = under_way(desk.facts)
    phase = batch.cursor
    if phase is not None:
        left = ", ".join(f"{unit} ({batch.stage(phase, unit).state})" for unit in batch.open_units)
        raise WorkpacketError("batch_phase_open", f"{desk.folder}: batch {batch.label}: {phase}: {left}")
    complete_batch(desk, batch, issues, resolved, message)


def under_way(facts: BatchFacts) -> BatchUnderWay:
    batch = facts.state.batch
    if batch is None:
        last = facts.state.view.last_batch
        after = f"; batch {last} is complete" if last else ""
        raise WorkpacketError("batch_not_begun", f"{facts.folder}: no batch is under way{after}")
    return batch


def planned(scope: BatchScope) -> Plan:
    """What the scope says comes next; WorkpacketError with the code of what makes that impossible."""
    if scope.undecided:
        pairs = "; ".join(f"{{from: {one}, to: {other}}}" for one, other in scope.undecided)
        raise WorkpacketError("batch_dependency_undecided", f"dependencies.yaml: {pairs}")
    found = scope.next
    if found.problems:
        message = "; ".join(f"{problem.code}: {' -> '.join(problem.tasks)}" for problem in found.problems)
        raise WorkpacketError(found.problems[0].code, message)
    return found


def proposed(facts: BatchFacts, plan: Plan) -> NextBatch | None:
    """The next batch: the one that the checkpoint names, if it can begin as it stands; else the planned one."""
    view = facts.state.view
    named = view.next
    label = label_after(view.last_batch, facts.state.labels)
    if named is None:
        return NextBatch(label, plan.batch, plan.parallel) if plan.batch else None
    if named.label and named.label not in facts.state.labels:
        label = named.label
    chosen = [task for task in facts.scope.tasks if task.id in named.tasks]
    apart = tuple(task.id for task in first_batch(chosen))
    if chosen and set(named.tasks) <= set(plan.ready) and set(apart) == set(named.tasks):
        return NextBatch(label, apart, named.parallel)
    return NextBatch(label, plan.batch, plan.parallel) if plan.batch else None


def view_conflict(facts: BatchFacts) -> RunBlocked:
    message = f"{facts.folder}/checkpoint.yaml: {'; '.join(facts.contradictions)}"
    hint = f"workpacket batch restore {facts.folder}, or batch adopt {facts.folder} if the file is right"
    found: list[Json] = list(facts.contradictions)
    return RunBlocked(message, code="view_conflict", hint=hint, details={"contradictions": found})


def refuse_stale(facts: BatchFacts, accepted: Sequence[str]) -> None:
    """RunBlocked that names everything that is not as it was, unless it was accepted by name."""
    left = [stale for stale in facts.stale if stale.blocks and stale.aspect not in accepted]
    if not left:
        return
    named = ",".join(dict.fromkeys(stale.aspect for stale in left))
    rows: list[Json] = [{"aspect": one.aspect, "code": one.code, "message": one.message} for one in left]
    message = f"{facts.folder}: " + "; ".join(f"{one.aspect}: {one.message}" for one in left)
    hint = f"Restore what changed, or go on all the same: --accept {named}"
    raise RunBlocked(message, code=left[0].code, hint=hint, details={"stale": rows})
