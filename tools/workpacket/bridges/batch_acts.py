"""Operations on a batch: start it, start and end its stages, and complete it. Each operation first repairs what an
earlier operation left unfinished: it synchronizes file and log, and finishes an interrupted completion. Contradictions
and changes stop the operation before anything is written. Before a batch is committed, dependencies are compared with
the last batch's commit, or with the commit at which the log began. The policy at that commit and the options of `begin`
determine which dependencies may change; later calls may only narrow this.

Completing a batch updates tasks.yaml and checkpoint.yaml and commits them with the work. The intent is logged before
anything else happens, under an id that the commit carries as a trailer. If the process is killed, the next call sees
how far the process got and continues from there:

    the intent alone        the files are written, then the commit is made
    intent and files        the commit is made
    intent and commit       the commit is found by its trailer and recorded; there is never a second one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from workpacket.bridges import batch_state as records
from workpacket.bridges.batch_facts import BatchFacts, folder_named, gather
from workpacket.bridges.batch_state import LOCKFILE_CHANGED, BatchState, BatchUnderWay, Outcome, Phase, label_after
from workpacket.bridges.dependency_guard import base_commit, dependency_changes, refusal_of
from workpacket.bridges.foreign import CheckpointDesk
from workpacket.documents.batch_scope import BatchPlan, BatchScope, first_batch
from workpacket.documents.batch_writing import BatchView, NextBatch, with_statuses, written
from workpacket.git.objects import commit_with_staged, commit_with_trailer, status, tree_of
from workpacket.git.repository import Repository, head_commit
from workpacket.git.run import run_git
from workpacket.model.canonical import Json
from workpacket.model.ids import covers
from workpacket.model.plan import FileChange
from workpacket.problem import WorkpacketError
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.holders import at_work
from workpacket.runtime.records.jcs import stored_text
from workpacket.shell.actor import moment
from workpacket.text.yaml_edit import CannotEdit
from workpacket.value import replace


@dataclass(slots=True)
class BatchDesk(CheckpointDesk[BatchFacts]):
    """One command operating on the scope in `folder`."""

    command = "batch"

    repository: Repository
    folder: str

    def __post_init__(self) -> None:
        self.folder = folder_named(self.folder, self._read)
        self.look()

    def gather(self) -> BatchFacts:
        return gather(self.repository, self.runtime, self._read, self.folder)

    def _read(self, path: str) -> bytes | None:
        found = self.transaction.workspace.work_tree.read(path)
        return None if found is None else found.data

    def write(self, done: frozenset[str] = frozenset()) -> None:
        """Update both files from the log, or neither, and reread them.

        Tasks listed in `done` are marked as done.
        """
        facts = self.facts
        try:
            data = written(facts.checkpoint, facts.folder, facts.state.view, facts.words)
            under_way = facts.state.batch.tasks if facts.state.batch is not None and not done else ()
            tasks = with_statuses(facts.tasks, done, under_way)
        except CannotEdit as error:
            raise WorkpacketError("batch_file_unwritable", str(error)) from error
        old = facts.checkpoint.source.digest if facts.checkpoint is not None else None
        self.replace_files(
            FileChange(facts.path, old, data),
            FileChange(facts.tasks.path, facts.tasks.source.digest, tasks),
        )

    def take_over(self, *, adopted: bool = False) -> None:
        facts, checkpoint = self.facts, self.facts.checkpoint
        if checkpoint is None:
            raise WorkpacketError("batch_scope_missing", f"{facts.path} does not exist, so it cannot be adopted")
        values = cast("Json", checkpoint.root.plain()) if checkpoint.root is not None else None
        without_secrets = self.runtime.settings.redactor.clean_value(values, stored_text(values))[0]
        self.record(records.IMPORTED, {
            "digest": checkpoint.source.digest, "adopted": adopted, "view": facts.stated.as_json(),
            "reviewers": list(facts.reviewers), "preconditions": facts.preconditions().as_json(),
        }, payload=without_secrets)  # fmt: skip

    def restore(self) -> None:
        """Rewrite the file from the log."""
        if not self.facts.state.version:
            raise WorkpacketError("batch_not_begun", f"{self.folder} has no log to restore a checkpoint from")
        self.write()


def require_known_dependencies(desk: BatchDesk) -> None:
    """Record dependency changes; raise `RunBlocked` if they were not permitted or cannot be judged."""
    base = _base_of(desk)
    changes = dependency_changes(desk.repository, base, desk.facts.state.allow_deps, base)
    if changes.verdicts:
        desk.record(LOCKFILE_CHANGED, changes.as_event())
    refused = refusal_of(changes)
    if refused is not None:
        hint = "workpacket audit deps shows all; restore the lock files, or begin the batch with --allow-deps NAME"
        raise RunBlocked(refused.message, code=refused.code, details=refused.details, hint=hint)


def narrowed(state: BatchState, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the `wanted` permissions, or those of the current batch if none are wanted; refuse any permission that the
    batch lacks.
    """
    wider = [name for name in wanted if not any(covers(given, name) for given in state.allow_deps)]
    if wider:
        message = f"the batch was started without --allow-deps {','.join(wider)}"
        raise RunBlocked(message, code="scope_widened", hint="permission can only be given when a batch starts")
    return tuple(wanted) or state.allow_deps


def _base_of(desk: BatchDesk) -> str:
    state = desk.facts.state
    named = state.view.last_commit if state.checkpoint_commit is None else state.checkpoint_commit
    if state.checkpoint_commit is None and not named:
        raise RunBlocked(
            f"{desk.folder}: the log does not record the commit where the work started, so the work's changes "
            "are unknown",
            code="check_not_run",
            hint="write that commit to checkpoint.yaml as last_commit, then: workpacket runtime batch adopt",
        )  # fmt: skip
    return base_commit(desk.repository, named, of=f"{desk.folder}: ")


TRAILER = "Batch-Id"
_SHOWN = 3


def complete_batch(
    desk: BatchDesk, batch: BatchUnderWay, issues: Sequence[Json], resolved: Sequence[int], message: str
) -> None:
    """Record the intent, then carry it out. First refuse anything that must not be committed."""
    require_known_dependencies(desk)
    view = _view_after(desk, batch, issues, resolved)
    desk.record(records.COMPLETING, {
        "id": moment().nonce, "batch": batch.label, "tasks": list(batch.tasks), "head": desk.facts.seen.head,
        "view": view.as_json(), "message": message or _subject(desk, batch),
    })  # fmt: skip
    _carry_out(desk, judged=True)


def finish(desk: BatchDesk) -> None:
    """Finish an interrupted completion, if there is one."""
    _carry_out(desk, judged=False)


def _carry_out(desk: BatchDesk, *, judged: bool) -> None:
    begun = desk.facts.state.completing
    if begun is None:
        return
    head = desk.facts.seen.head
    before = commit_with_trailer(desk.repository, head, TRAILER, begun.id) if head else None
    found = None if before is None else before.commit
    if found is None:
        if not judged:  # files in the work tree may have changed since the intent was recorded
            require_known_dependencies(desk)
        head = head_commit(desk.repository) or ""
        if head != begun.head:  # another commit was made in the meantime: the file names the parent of its own commit
            current = desk.facts.state.view
            view = replace(current, last_commit=_as_long(desk, head, current.last_commit)).as_json()
            data: dict[str, Json] = {"id": begun.id, "batch": begun.label, "tasks": list(begun.tasks), "head": head}
            desk.record(records.COMPLETING, {**data, "view": view, "message": begun.message})
        desk.write(done=frozenset(begun.tasks))
        text = f"{begun.message}\n\n{TRAILER}: {begun.id}\n"
        found = commit_with_staged(desk.repository, text, _paths_of(desk, begun.tasks))
    else:
        desk.write(done=frozenset(begun.tasks))
    held = desk.facts.preconditions(found, tree_of(desk.repository, found)).as_json()
    desk.record(records.COMPLETED, {"id": begun.id, "batch": begun.label, "commit": found, "preconditions": held})
    desk.said.append(f"batch {begun.label} is complete, commit {found[:12]}")


def _view_after(desk: BatchDesk, batch: BatchUnderWay, issues: Sequence[Json], resolved: Sequence[int]) -> BatchView:
    facts = desk.facts
    before = facts.state.view
    after = facts.scope.with_done(set(batch.tasks))
    kept = [issue for number, issue in enumerate(before.deferred, 1) if number not in resolved]
    label = label_after(batch.label, {*facts.state.labels, batch.label})
    tasks = after.next.batch
    return replace(
        before,
        branch=facts.seen.branch,
        timestamp=moment().now,
        last_batch=batch.label,
        last_commit=_as_long(desk, facts.seen.head, before.last_commit),
        groups=after.groups(),
        next=NextBatch(label, tasks, len(tasks) > 1) if tasks else None,
        deferred=(*kept, *({"batch": batch.label, **i} if isinstance(i, dict) else i for i in issues)),
        phase="",
        incomplete=(),
    )


def _as_long(desk: BatchDesk, commit: str, stated: str) -> str:
    """Return the abbreviated commit id, with as many digits as the previous one, or more if that would be ambiguous."""
    if not stated or len(stated) >= len(commit):
        return commit
    return run_git(desk.repository.root, "rev-parse", f"--short={max(len(stated), 7)}", commit).text.strip()


def _subject(desk: BatchDesk, batch: BatchUnderWay) -> str:
    names = desk.facts.scope.names
    listed = ", ".join(f"{task} {names.get(task, '')}".strip() for task in batch.tasks)
    return " ".join(f"{desk.facts.name}: batch {batch.label}: {listed}".split())


def _paths_of(desk: BatchDesk, tasks: Sequence[str]) -> list[str]:
    """Return the differences from HEAD that belong to the batch: paths listed in its tasks, and the scope's two
    files."""
    named = [path for task in desk.facts.scope.tasks if task.id in tasks for path in task.files]
    own = {f"{desk.folder}/checkpoint.yaml", f"{desk.folder}/tasks.yaml"}
    entries = status(desk.repository)
    chosen = [entry.path for entry in entries if entry.path in own or any(_names(n, entry.path) for n in named)]
    left = [e.path for e in entries if e.path not in chosen and (e.untracked or e.letters[1] != " ")]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        desk.said.append(f"not included in the commit: {', '.join(left[:_SHOWN])}{more}")
    return chosen


def _names(named: str, path: str) -> bool:
    """Whether a task that lists the file, folder or pattern `named` changes the file at `path`."""
    plain = named.strip().replace("\\", "/").partition(":")[0].removeprefix("./").rstrip("/")
    return path == plain or path.startswith(f"{plain}/") or fnmatchcase(path, plain)


def settle(desk: BatchDesk, accept: Sequence[str] = ()) -> None:
    """Finish interrupted work; refuse to continue if anything has changed, unless the change is listed in `accept`."""
    desk.refuse_contradictions()
    refuse_stale(desk.facts, accept)
    accepted = sorted({stale.aspect for stale in desk.facts.stale if stale.blocks})
    desk.catch_up()
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
    """Start the next batch, or the next stage of the current one; after a crash, start incomplete stages again."""
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
        raise WorkpacketError("invalid_value", f"the label {label!r} has already been used for another batch")
    following = replace(following, label=label or following.label)
    reviewers: list[Json] = list(facts.reviewers)
    batch = BatchUnderWay(following.label, following.tasks).begun("testers", following.tasks, desk.caller.name)
    # The key `base` belongs to the newer form of a scope.
    states_base = facts.state.view.base or (facts.checkpoint is None and facts.folder.startswith("scopes/"))
    view = replace(
        facts.state.view,
        branch=facts.seen.branch,
        base=(facts.seen.base or facts.state.view.base) if states_base else "",
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
            message = f"{desk.folder}: {holder} is working on {phase} {unit}"
            hint = "Wait for it to finish; if it has stopped, take over: --accept holder"
            raise RunBlocked(message, code="run_busy", hint=hint, details={"holder": holder})
    units: list[Json] = list(batch.open_units)
    data: dict[str, Json] = {"batch": batch.label, "phase": phase, "units": units, "holder": desk.caller.name}
    data["allow_deps"] = list(allow_deps)
    view = _view_with(desk.facts, batch.begun(phase, batch.open_units, desk.caller.name))
    desk.record(records.STAGES_BEGUN, {**data, "view": view.as_json()})
    desk.write()


def _view_with(facts: BatchFacts, batch: BatchUnderWay) -> BatchView:
    """Return the view updated with the batch's current progress."""
    phase = batch.cursor or records.ALL_PHASES_DONE
    return replace(facts.state.view, timestamp=moment().now, phase=phase, incomplete=batch.incomplete())


def end_stages(
    desk: BatchDesk, phase: Phase, units: Sequence[str], outcome: Outcome, *, tasks: Sequence[str] = (),
    note: str = "", accept: Sequence[str] = (),
) -> None:  # fmt: skip
    """End `units` of the phase with this outcome; by default, all units that were started. A rejection may list
    `tasks`."""
    settle(desk, accept)
    batch = under_way(desk.facts)
    begun = tuple(unit for unit in batch.open_units if batch.stage(phase, unit).state == "begun")
    wanted = tuple(units) or begun
    if batch.cursor != phase or not wanted or not set(wanted) <= set(begun):
        missing = ", ".join(unit for unit in wanted if unit not in begun)
        now = f"the batch is in the {batch.cursor} phase" if batch.cursor else "all phases are done"
        now += f", where {', '.join(begun)} was started" if begun else ""
        message = (
            f"{desk.folder}: {phase}: {f'{missing} was not started' if missing else 'no stage was started'}; {now}"
        )
        hint = f"workpacket runtime batch begin {desk.folder}" if batch.cursor == phase else ""
        raise WorkpacketError("batch_stage_not_begun", message, hint=hint)
    if stray := [task for task in tasks if task not in batch.tasks]:
        raise WorkpacketError("invalid_value", f"{', '.join(stray)}: not in batch {batch.label}")
    view = _view_with(desk.facts, batch.ended(phase, wanted, outcome, tasks))
    data: dict[str, Json] = {"batch": batch.label, "phase": phase, "units": list(wanted), "outcome": outcome}
    desk.record(records.STAGES_ENDED, {**data, "tasks": list(tasks), "note": note, "view": view.as_json()})
    desk.write()


def complete(
    desk: BatchDesk, *, issues: Sequence[Json] = (), resolved: Sequence[int] = (), message: str = "",
    accept: Sequence[str] = (),
) -> None:  # fmt: skip
    """Complete the current batch, or finish an interrupted completion."""
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
        raise WorkpacketError("batch_not_begun", f"{facts.folder}: no batch is in progress{after}")
    return batch


_IN_WORDS = {
    "batch_task_twice": "listed twice",
    "batch_dependency_unknown": "depends on an unknown task",
    "batch_dependency_cycle": "circular dependency",
    "batch_dependency_deadlock": "waiting for tasks that cannot be done",
}


def planned(scope: BatchScope) -> BatchPlan:
    """Return the next batch of the scope; if no batch is possible, raise WorkpacketError with the code of the
    problem."""
    if scope.unread:
        named = ", ".join(map(repr, scope.unread))
        raise WorkpacketError("batch_dependencies_unread", f"dependencies.yaml: {named}", hint="workpacket check")
    if scope.undecided:
        pairs = "; ".join(f"{{from: {one}, to: {other}}}" for one, other in scope.undecided)
        raise WorkpacketError("batch_dependency_undecided", f"dependencies.yaml: {pairs}")
    found = scope.next
    if found.problems:
        message = "; ".join(f"{_IN_WORDS[problem.code]}: {' -> '.join(problem.tasks)}" for problem in found.problems)
        raise WorkpacketError(found.problems[0].code, message)
    return found


def proposed(facts: BatchFacts, plan: BatchPlan) -> NextBatch | None:
    """Return the next batch: the one in the checkpoint, if it can start unchanged, or else the planned one."""
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


def refuse_stale(facts: BatchFacts, accepted: Sequence[str]) -> None:
    """Raise RunBlocked, listing everything that has changed and was not explicitly accepted."""
    left = [stale for stale in facts.stale if stale.blocks and stale.aspect not in accepted]
    if not left:
        return
    named = ",".join(dict.fromkeys(stale.aspect for stale in left))
    rows: list[Json] = [{"aspect": one.aspect, "code": one.code, "message": one.message} for one in left]
    message = f"{facts.folder}: " + "; ".join(f"{one.aspect}: {one.message}" for one in left)
    hint = f"Restore what changed, or continue anyway: --accept {named}"
    raise RunBlocked(message, code=left[0].code, hint=hint, details={"stale": rows})
