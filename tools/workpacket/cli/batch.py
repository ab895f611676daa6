"""`workpacket runtime batch`: take batches of tasks through their three phases, with a checkpoint after each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workpacket.bridges.batch_acts import BatchDesk, begin, complete, end_stages, planned, proposed
from workpacket.bridges.batch_facts import ASPECTS, BatchFacts, folder_named, gather, reader_of
from workpacket.bridges.batch_state import Phase, outcome_named, phase_named
from workpacket.bridges.desk import view_conflict
from workpacket.cli.open_store import answer, open_runtime, owner_of, refusing
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import words_of
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.escape import escape, escape_lines
from workpacket.runtime.holders import Caller, caller_with
from workpacket.shell.governing.execution import here
from workpacket.shell.transactions.transaction import writing

DEFERRABLE = ("medium", "minor", "low", "info", "note")


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    word = words_of(arguments, 1, "SPEC")[0]
    if action in {"next", "status"}:
        return _look(arguments, action, word)
    return _write(arguments, action, word)


def _look(arguments: Arguments, action: str, word: str) -> int:
    repository = here()
    read = reader_of(str(repository.root))

    with open_runtime() as runtime:
        facts = gather(repository, runtime, read, folder_named(word, read))
    if action == "status":
        return answer(arguments, escape_lines(_progress(facts)), _as_json(facts), then=_then(facts))
    if facts.contradictions:
        raise view_conflict("batch", facts)
    following = proposed(facts, planned(facts.scope)) if facts.state.batch is None else facts.state.view.next
    if following is None:
        return answer(arguments, "nothing left to start\n", {**_as_json(facts), "batch": None})
    text = f"batch {following.label}{', in parallel' if following.parallel else ''}: {', '.join(following.tasks)}\n"
    data: dict[str, Json] = {
        "label": following.label, "tasks": list(following.tasks), "parallel": following.parallel,
    }  # fmt: skip
    return answer(arguments, escape_lines(text), {**_as_json(facts), "batch": data}, then=_then(facts))


def _write(arguments: Arguments, action: str, word: str) -> int:
    repository = here()
    accept = arguments.values("accept")
    if stray := [aspect for aspect in accept if aspect not in ASPECTS]:
        raise usage(arguments.command, "invalid_value", f"invalid --accept {stray[0]!r}: expected {', '.join(ASPECTS)}")
    # The lock of the clone is held until log and files are written, so only one command at a time changes a scope.
    with writing(repository, "batch") as transaction, open_runtime(create=True) as runtime:
        desk = BatchDesk(runtime, transaction, caller_of(arguments), repository, word)
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
    return answer(arguments, text, {**_as_json(facts), "said": said}, then=_then(facts))


def _end(arguments: Arguments, desk: BatchDesk, accept: Sequence[str]) -> None:
    phase: Phase = phase_named(arguments.value("phase")) or "testers"
    outcome = outcome_named(arguments.value("outcome", "ok"))
    if outcome == "rejected" and phase != "reviewers":
        raise usage(arguments.command, "conflicting_options", "only reviewers can reject; other stages fail")
    tasks, reviewers = arguments.values("task"), arguments.values("reviewer")
    units = reviewers if phase == "reviewers" else tasks
    about = tasks if outcome == "rejected" else []
    end_stages(desk, phase, units, outcome, tasks=about, note=arguments.value("note"), accept=accept)


def caller_of(arguments: Arguments) -> Caller:
    """Return the actor for whom the work is started."""
    return caller_with(owner_of(arguments))


def _issue(arguments: Arguments, text: str) -> Json:
    """Parse `SEVERITY: DESCRIPTION @ LOCATION`; the location is optional."""
    severity, colon, rest = text.partition(":")
    severity = severity.strip().casefold()
    if not colon or not rest.strip():
        raise usage(arguments.command, "invalid_value", f"invalid --defer {text!r}: expected SEVERITY:TEXT")
    if severity not in DEFERRABLE:
        message = f"an issue of severity {severity!r} cannot be deferred; {', '.join(DEFERRABLE)} can"
        raise WorkpacketError("batch_issue_not_deferrable", message)
    description, at, location = rest.rpartition(" @ ")
    issue: dict[str, Json] = {"severity": severity, "description": (description if at else location).strip()}
    return {**issue, "location": location.strip()} if at else issue


def _numbers(arguments: Arguments, count: int) -> list[int]:
    words = arguments.values("resolved")
    if stray := [word for word in words if not (word.isdecimal() and 1 <= int(word) <= count)]:
        raise usage(arguments.command, "invalid_value", f"--resolved: there is no deferred issue {stray[0]}")
    return [int(word) for word in words]


def _progress(facts: BatchFacts) -> str:
    """Return the progress of the scope, its next batch and phase, and the deferred issues."""
    state, view = facts.state, facts.state.view
    groups = view.groups or facts.scope.groups()
    done, total = len(groups.get("completed", ())), sum(map(len, groups.values()))
    lines = [f"{facts.name}: {done} of {total} tasks done, last batch {view.last_batch or 'none'}"]
    if state.completing is not None:
        lines.append(
            f"the completion of batch {state.completing.label} was interrupted; run `batch complete` to finish it"
        )
    elif state.batch is not None:
        batch = state.batch
        lines.append(f"batch {batch.label} is in progress: {', '.join(batch.tasks)}")
        phase = batch.cursor
        lines.append(f"phase: {phase or 'all three are done'}")
        lines += [f"  {unit}: {batch.stage(phase, unit).state}" for unit in batch.open_units if phase]
    elif view.next is not None:
        lines.append(f"next batch {view.next.label}: {', '.join(view.next.tasks)}")
    lines += [f"deferred {number}: {_sentence(issue)}" for number, issue in enumerate(view.deferred, 1)]
    lines += [f"conflict: {text}" for text in facts.contradictions]
    lines += [f"{'stale' if one.blocks else 'note'}: {one.aspect}: {one.message}" for one in facts.stale]
    if facts.late:
        lines.append("checkpoint.yaml is behind the log; the next command updates it")
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


def _as_json(facts: BatchFacts) -> dict[str, Json]:
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


ACTIONS = ("next", "begin", "complete", "status", "adopt", "restore")


COMMAND = Command(
    "batch",
    run,
    arguments="next SPEC | begin SPEC | complete SPEC | status SPEC | adopt SPEC | restore SPEC",
    description="""
`begin` records what comes next before anyone works on it: the next batch with its testers, then the implementers, then
the reviewers; after a crash, the incomplete stages. `complete --phase` records the results of stages; `complete` alone
updates tasks.yaml, writes checkpoint.yaml and commits both with the staged changes and the files that the tasks name.
`adopt` accepts a checkpoint.yaml that contradicts the log, `restore` rewrites it from the log.""",
    options=(
        Option("phase", "complete: the phase whose stages ended", choices=("testers", "implementers", "reviewers")),
        Option("task", "complete --phase: only this task; with a rejection, the rejected task", value="ID", many=True),
        Option("reviewer", "complete --phase reviewers: this reviewer only", value="NAME", many=True),
        Option("outcome", "complete --phase: the outcome", choices=("ok", "failed", "rejected", "timed_out")),
        Option("note", "complete --phase: a comment to store", value="TEXT"),
        Option("defer", "complete: an issue to carry forward", value="SEVERITY:TEXT", many=True),
        Option("resolved", "complete: the number of a deferred issue that is resolved", value="NUMBER", many=True),
        Option("message", "complete: the first line of the commit message", value="TEXT"),
        Option("label", "begin: the label of the batch, such as 5a", value="LABEL"),
        Option(
            "accept", "continue despite a changed branch, commit, tasks, base or config, or a living `holder`",
            value="ASPECT", many=True,
        ),
        Option("allow-deps", "begin: dependencies that may change; `*` matches any characters", value="NAME",
               many=True),
        Option("owner", "begin: the process that does the work (default: the caller and its parents)",
               value="PID"),
    ),
    examples=(
        "workpacket runtime batch begin auth-system",
        "workpacket runtime batch complete auth-system --phase testers",
        "workpacket runtime batch complete auth-system --phase reviewers --outcome rejected --task T003",
        'workpacket runtime batch complete auth-system --defer "medium: names could be clearer @ src/auth.py:45"',
    ),
)  # fmt: skip
