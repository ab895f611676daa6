"""`workpacket runtime batch` and `workpacket runtime progress`: batches of tasks in three phases, and the progress that
roles make on features.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from workpacket.bridges.batch_acts import BatchDesk, begin, complete, end_stages, planned, proposed
from workpacket.bridges.batch_facts import ASPECTS, BatchFacts, folder_named, gather, reader_of
from workpacket.bridges.batch_state import Phase, outcome_named, phase_named
from workpacket.bridges.foreign import view_conflict
from workpacket.bridges.resumable import UnfinishedRole, unfinished_roles
from workpacket.bridges.role_acts import CLOSED, RoleDesk, adopt, notes_in, open_roles, reach, restore
from workpacket.bridges.role_facts import ArtifactChange, RoleFacts, RoleKey, changes, notes_here, scan_roles
from workpacket.cli.open_store import answer, open_runtime, owner_of, refusing
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import words_of
from workpacket.git.repository import Repository
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.report.terminal import escape, escape_lines
from workpacket.runtime.holders import Caller, caller_named, caller_with
from workpacket.runtime.runtime import Runtime
from workpacket.shell.configuration import read_settings
from workpacket.shell.governing.execution import here
from workpacket.shell.judging.log_verification import look_at_logs
from workpacket.shell.transactions.transaction import Transaction, writing

_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@refusing
def run_progress(arguments: Arguments) -> int:
    action = subcommand(arguments, PROGRESS_ACTIONS)
    if action == "list":
        return _list(arguments)
    if action == "close":
        return _close(arguments, _words(arguments, "FEATURE")[0])
    return _write(arguments, action)


def _words(arguments: Arguments, *names: str, optional: int = 0) -> list[str]:
    most = len(names) + optional
    if not len(names) <= len(arguments.words) <= most:
        code = "missing_argument" if len(arguments.words) < len(names) else "unexpected_argument"
        raise usage(arguments.command, code, f"it takes {' '.join(names)}{' [TEXT]' if optional else ''}")
    return arguments.words


def _write(arguments: Arguments, action: str) -> int:
    optional = 0 if action in {"adopt", "restore"} else 1
    words = _words(arguments, "FEATURE", "AGENT", optional=optional)
    key = RoleKey(words[0], words[1], arguments.value("team"))
    repository = here()
    with writing(repository, "progress") as transaction, open_runtime(create=True) as runtime:
        desk = desk_of(arguments, repository, runtime, transaction, key)
        if action == "adopt":
            adopt(desk)
        elif action == "restore":
            restore(desk)
        else:
            artifacts = arguments.all_of("artifact")
            reach(desk, action, text="".join(words[2:]), phase=arguments.value("phase"), artifacts=artifacts)
        facts = desk.facts
    data: dict[str, Json] = {**_as_json(facts), "said": list(desk.said)}
    return answer(arguments, _line(facts, desk.said), data)


def desk_of(
    arguments: Arguments, repository: Repository, runtime: Runtime, transaction: Transaction, key: RoleKey
) -> RoleDesk:
    phases = read_settings(str(repository.root)).phases
    lanes = lanes_for(str(repository.root), (key.feature,))
    return RoleDesk(runtime, transaction, role_caller(arguments, key.agent), str(repository.root), key, lanes, phases)


def lanes_for(root: str, features: tuple[str, ...]) -> Mapping[str, str]:
    """Return the lanes of packets. The logs are read only if a feature name could be a packet id, which saves time."""
    return look_at_logs(root).lanes if any(feature.casefold().startswith("wp") for feature in features) else {}


def role_caller(arguments: Arguments, agent: str) -> Caller:
    """Return the writer: agent#instance if an instance is given, otherwise the calling processes, whose exit can be
    observed.
    """
    instance = arguments.value("instance") or os.environ.get("WORKPACKET_INSTANCE", "")
    if instance:
        if not _INSTANCE.match(instance):
            raise usage(arguments.command, "invalid_value", f"invalid instance name {instance!r}")
        return caller_named(f"{agent}#{instance}")
    return caller_with(owner_of(arguments))


def _close(arguments: Arguments, feature: str) -> int:
    """Complete each of the feature's open checkpoints that is not in use; report the others."""
    repository = here()
    closed: list[str] = []
    left: list[str] = []
    with writing(repository, "progress") as transaction, open_runtime(create=True) as runtime:
        tree = transaction.workspace.work_tree
        for path, names in open_roles(notes_in(tree, feature), feature).items():
            try:
                desk = desk_of(arguments, repository, runtime, transaction, RoleKey(*names))
                reach(desk, CLOSED)
            except WorkpacketError as error:
                left.append(error.message if path in error.message else f"{path}: {error.message}")
            else:
                closed.append(path)
    text = f"{feature}: {len(closed)} closed{''.join(f'; {one}' for one in left)}\n"
    data: dict[str, Json] = {"feature": feature, "closed": list(closed), "left": list(left)}
    return answer(arguments, escape(text.rstrip()) + "\n", data)


def roles_here(repository: Repository, runtime: Runtime) -> tuple[list[RoleFacts], list[tuple[str, str]]]:
    """Return every role in the repository, read without a lock, for read-only commands."""
    root = str(repository.root)
    notes = notes_here(root)
    features = tuple(note.feature.value for note in notes.values() if note.is_checkpoint and note.feature is not None)
    return scan_roles(runtime, notes, lanes_for(root, features))


def _list(arguments: Arguments) -> int:
    _words(arguments)
    repository = here()
    with open_runtime() as runtime:
        scanned, unread = roles_here(repository, runtime)
    team = arguments.value("team")
    roles = unfinished_roles(scanned, team)
    changed = {role.path: changes(str(repository.root), role.artifacts) for role in roles}
    text = (
        "".join(f"{escape(_listed(role, changed[role.path]))}\n" for role in roles) or "no role has unfinished work\n"
    )
    text += "".join(f"{escape(path)}: cannot be read ({code})\n" for path, code in unread)
    rows: list[Json] = [
        {
            "path": role.path,
            **role.fields._asdict(),
            "blocked_by": list(role.blocked_by),
            "changed_artifacts": [one.path for one in changed[role.path]],
        }
        for role in roles
    ]
    stray: list[Json] = [{"path": path, "code": code} for path, code in unread]
    return answer(arguments, text, {"team": team, "roles": rows, "unread": stray})


def _listed(role: UnfinishedRole, changed: tuple[ArtifactChange, ...]) -> str:
    stops = f" [{', '.join(role.blocked_by)}]" if role.blocked_by else ""
    stops += "".join(f"; {one.message}" for one in changed)
    fields = role.fields
    where = f"{fields.phase}, {fields.status}, {fields.last_action}"
    return f"{fields.feature} {fields.agent} ({fields.team}): {where}{stops}"


def _line(facts: RoleFacts, said: list[str]) -> str:
    fields = facts.fields
    line = f"{fields.feature} {fields.agent}: {fields.phase}, {fields.status}: {fields.last_action}"
    return "".join(f"{escape(one)}\n" for one in said) + f"{escape(line)}\n"


def _as_json(facts: RoleFacts) -> dict[str, Json]:
    artifacts: list[Json] = list(facts.state.artifacts)
    return {"path": facts.path, **facts.fields._asdict(), "version": facts.state.version, "artifacts": artifacts}


MILESTONES = ("claimed", "drafted", "review-requested", "review-approved", "blocked", "done", "note")
PROGRESS_ACTIONS = (*MILESTONES, "list", "close", "adopt", "restore")


_PROGRESS = Command(
    "progress",
    run_progress,
    arguments="MILESTONE FEATURE AGENT [TEXT] | list | close FEATURE | adopt FEATURE AGENT | restore FEATURE AGENT",
    description="""
A milestone is claimed, drafted, review-requested, review-approved, blocked, done or note. It is written to the log and
to docs/progress/FEATURE-AGENT.md: phase, status, last action, time, and one note. One writer holds a file until the
role is done, an hour has passed since its last milestone, or its process has ended. The digests of files named by path
in the text, and of each --artifact, are stored; `resume` shows which have changed since. `list` shows the roles that
are not done. `close` completes those of a finished feature. `adopt` accepts a file that contradicts the log, `restore`
rewrites its fields from the log.""",
    options=(
        Option("team", "the role's team; list: show only this team", value="TEAM"),
        Option("phase", "the current phase of the work (default: unchanged)", value="PHASE"),
        Option("artifact", "a file that the role created, if the text does not name it", value="PATH", many=True),
        Option(
            "instance", "the writer, if several writers have this role (default: the calling process)", value="NAME"
        ),
        Option("owner", "the process that does the work (default: the caller)", value="PID"),
    ),
    examples=(
        "workpacket runtime progress claimed auth backend-eng --team build --phase implementation",
        'workpacket runtime progress blocked auth backend-eng "The schema of sessions is not decided"',
        "workpacket runtime progress drafted auth backend-eng --artifact docs/specs/auth.md",
        "workpacket runtime progress list --team build",
        "workpacket runtime progress close auth",
    ),
)


DEFERRABLE = ("medium", "minor", "low", "info", "note")


@refusing
def run_batch(arguments: Arguments) -> int:
    action = subcommand(arguments, BATCH_ACTIONS)
    word = words_of(arguments, 1, "SPEC")[0]
    if action in {"next", "status"}:
        return _look(arguments, action, word)
    return _write_batch(arguments, action, word)


def _look(arguments: Arguments, action: str, word: str) -> int:
    repository = here()
    read = reader_of(str(repository.root))

    with open_runtime() as runtime:
        facts = gather(repository, runtime, read, folder_named(word, read))
    if action == "status":
        return answer(arguments, escape_lines(_progress(facts)), _batch_as_json(facts), then=_then(facts))
    if facts.contradictions:
        raise view_conflict("batch", facts)
    following = proposed(facts, planned(facts.scope)) if facts.state.batch is None else facts.state.view.next
    if following is None:
        return answer(arguments, "nothing left to start\n", {**_batch_as_json(facts), "batch": None})
    text = f"batch {following.label}{', in parallel' if following.parallel else ''}: {', '.join(following.tasks)}\n"
    data: dict[str, Json] = {
        "label": following.label, "tasks": list(following.tasks), "parallel": following.parallel,
    }  # fmt: skip
    return answer(arguments, escape_lines(text), {**_batch_as_json(facts), "batch": data}, then=_then(facts))


def _write_batch(arguments: Arguments, action: str, word: str) -> int:
    repository = here()
    accept = arguments.values("accept")
    if stray := [aspect for aspect in accept if aspect not in ASPECTS]:
        raise usage(arguments.command, "invalid_value", f"invalid --accept {stray[0]!r}: expected {', '.join(ASPECTS)}")
    # The lock of the clone is held until log and files are written, so only one command at a time changes a scope.
    with writing(repository, "batch") as transaction, open_runtime(create=True) as runtime:
        desk = BatchDesk(runtime, transaction, batch_caller(arguments), repository, word)
        if action == "adopt":
            desk.take_over(adopted=True)
        elif action == "restore":
            desk.restore()
        elif action == "begin":
            begin(desk, label=arguments.value("label"), accept=accept, allow_deps=arguments.values("allow-deps"))
        elif arguments.value("phase"):
            _end(arguments, desk, accept)
        else:
            issues = [_issue(arguments, text) for text in arguments.all_of("defer")]
            resolved = _numbers(arguments, len(desk.facts.state.view.deferred))
            complete(desk, issues=issues, resolved=resolved, message=arguments.value("message"), accept=accept)
        desk.look()
        facts = desk.facts
    said: list[Json] = list(desk.said)
    text = "".join(f"{escape(line)}\n" for line in desk.said) + escape_lines(_progress(facts))
    return answer(arguments, text, {**_batch_as_json(facts), "said": said}, then=_then(facts))


def _end(arguments: Arguments, desk: BatchDesk, accept: Sequence[str]) -> None:
    phase: Phase = phase_named(arguments.value("phase")) or "testers"
    outcome = outcome_named(arguments.value("outcome", "ok"))
    if outcome == "rejected" and phase != "reviewers":
        raise usage(
            arguments.command, "conflicting_options", "only reviewers can reject work; other stages can only fail"
        )
    tasks, reviewers = arguments.values("task"), arguments.values("reviewer")
    units = reviewers if phase == "reviewers" else tasks
    about = tasks if outcome == "rejected" else []
    end_stages(desk, phase, units, outcome, tasks=about, note=arguments.value("note"), accept=accept)


def batch_caller(arguments: Arguments) -> Caller:
    """Return the actor on whose behalf the work is started."""
    return caller_with(owner_of(arguments))


def _issue(arguments: Arguments, text: str) -> Json:
    """Parse `SEVERITY: DESCRIPTION @ LOCATION`; the location is optional."""
    severity, colon, rest = text.partition(":")
    severity = severity.strip().casefold()
    if not colon or not rest.strip():
        raise usage(arguments.command, "invalid_value", f"invalid --defer {text!r}: expected SEVERITY:TEXT")
    if severity not in DEFERRABLE:
        message = f"an issue of {severity!r} severity cannot be deferred; only these can: {', '.join(DEFERRABLE)}"
        raise WorkpacketError("batch_issue_not_deferrable", message)
    description, at, location = rest.rpartition(" @ ")
    issue: dict[str, Json] = {"severity": severity, "description": (description if at else location).strip()}
    return {**issue, "location": location.strip()} if at else issue


def _numbers(arguments: Arguments, count: int) -> list[int]:
    words = arguments.values("resolved")
    if stray := [word for word in words if not (word.isdecimal() and 1 <= int(word) <= count)]:
        raise usage(arguments.command, "invalid_value", f"--resolved: deferred issue {stray[0]} does not exist")
    return [int(word) for word in words]


def _progress(facts: BatchFacts) -> str:
    """Return the progress of the scope, its next batch and phase, and the deferred issues."""
    state, view = facts.state, facts.state.view
    groups = view.groups or facts.scope.groups()
    done, total = len(groups.get("completed", ())), sum(map(len, groups.values()))
    lines = [f"{facts.name}: {done} of {total} tasks done, last batch {view.last_batch or 'none'}"]
    if state.completing is not None:
        lines.append(f"completion of batch {state.completing.label} was interrupted; run `batch complete` to finish it")
    elif state.batch is not None:
        batch = state.batch
        lines.append(f"batch {batch.label} is in progress: {', '.join(batch.tasks)}")
        phase = batch.cursor
        lines.append(f"phase: {phase or 'all three are complete'}")
        lines += [f"  {unit}: {batch.stage(phase, unit).state}" for unit in batch.open_units if phase]
    elif view.next is not None:
        lines.append(f"next batch {view.next.label}: {', '.join(view.next.tasks)}")
    lines += [f"deferred {number}: {_sentence(issue)}" for number, issue in enumerate(view.deferred, 1)]
    lines += [f"conflict: {text}" for text in facts.contradictions]
    lines += [f"{'stale' if one.blocks else 'note'}: {one.aspect}: {one.message}" for one in facts.stale]
    if facts.late:
        lines.append("checkpoint.yaml is out of date; the next command updates it from the log")
    return "".join(f"{line}\n" for line in lines)


def _sentence(issue: Json) -> str:
    if not isinstance(issue, Mapping):
        return str(issue)
    if "description" not in issue:
        return ", ".join(f"{key}: {value}" for key, value in issue.items())
    place = f" ({issue['location']})" if issue.get("location") else ""
    return f"{issue.get('severity', 'issue')}, batch {issue.get('batch', '?')}: {issue['description']}{place}"


def _then(facts: BatchFacts) -> str:
    state = facts.state
    if facts.contradictions:
        return f"workpacket runtime batch restore {facts.folder}, or workpacket runtime batch adopt {facts.folder}"
    if state.completing is not None:
        return f"workpacket runtime batch complete {facts.folder}"
    if state.batch is None:
        return f"workpacket runtime batch begin {facts.folder}" if facts.scope.next.ready else ""
    phase = state.batch.cursor
    if phase is None:
        return f"workpacket runtime batch complete {facts.folder}"
    begun = all(state.batch.stage(phase, unit).state == "begun" for unit in state.batch.open_units)
    return (
        f"workpacket runtime batch complete {facts.folder} --phase {phase}"
        if begun
        else (f"workpacket runtime batch begin {facts.folder}")
    )


def _batch_as_json(facts: BatchFacts) -> dict[str, Json]:
    batch = facts.state.batch
    stale: list[Json] = [
        {"aspect": one.aspect, "code": one.code, "message": one.message, "blocks": one.blocks} for one in facts.stale
    ]
    return {
        "scope": facts.folder,
        "view": facts.state.view.as_json(),
        "phase": (batch.cursor or "complete") if batch is not None else None,
        "incomplete": list(batch.incomplete()) if batch is not None else [],
        "stale": stale,
        "contradictions": list(facts.contradictions),
        "late": facts.late,
        "completing": facts.state.completing is not None,
    }


BATCH_ACTIONS = ("next", "begin", "complete", "status", "adopt", "restore")


_BATCH = Command(
    "batch",
    run_batch,
    arguments="next SPEC | begin SPEC | complete SPEC | status SPEC | adopt SPEC | restore SPEC",
    description="""
`begin` records what comes next before anyone works on it: the next batch with its testers, then the implementers, then
the reviewers; after a crash, the incomplete stages. `complete --phase` records the results of stages; `complete` alone
updates tasks.yaml, writes checkpoint.yaml and commits both with the staged changes and the files that the tasks name.
`adopt` accepts a checkpoint.yaml that contradicts the log, `restore` rewrites it from the log.""",
    options=(
        Option("phase", "complete: the phase whose stages are done", choices=("testers", "implementers", "reviewers")),
        Option("task", "complete --phase: only this task; with a rejection, the rejected task", value="ID", many=True),
        Option("reviewer", "complete --phase reviewers: only this reviewer", value="NAME", many=True),
        Option("outcome", "complete --phase: the outcome", choices=("ok", "failed", "rejected", "timed_out")),
        Option("note", "complete --phase: a comment to store", value="TEXT"),
        Option("defer", "complete: an issue to carry forward", value="SEVERITY:TEXT", many=True),
        Option("resolved", "complete: the number of a deferred issue that is resolved", value="NUMBER", many=True),
        Option("message", "complete: the first line of the commit message", value="TEXT"),
        Option("label", "begin: the label of the batch, such as 5a", value="LABEL"),
        Option(
            "accept", "continue despite a changed branch, commit, tasks, base or config, or a `holder` that is still "
            "running",
            value="ASPECT", many=True,
        ),
        Option("allow-deps", "begin: dependencies that are allowed to change; `*` matches any characters", value="NAME",
               many=True),
        Option("owner", "begin: the process that does the work (default: the caller and its ancestors)",
               value="PID"),
    ),
    examples=(
        "workpacket runtime batch begin auth-system",
        "workpacket runtime batch complete auth-system --phase testers",
        "workpacket runtime batch complete auth-system --phase reviewers --outcome rejected --task T003",
        'workpacket runtime batch complete auth-system --defer "medium: names could be clearer @ src/auth.py:45"',
    ),
)  # fmt: skip


DECLARED: Final = {command.name: command for command in (_PROGRESS, _BATCH)}
