"""`workpacket resume`: list unfinished work, resume it, and answer the questions that stop it. Covers runs, sessions,
batches, roles, steps and checkpoint commits. Unreadable items do not affect the others: they are listed with a code.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from workpacket.bridges.batch_acts import BatchDesk, begin, complete
from workpacket.bridges.batch_facts import FOLDERS, gather, reader_of
from workpacket.bridges.commit_checkpoints import CommitBridge, CommitSelection, sidecar_files
from workpacket.bridges.foreign import Foreign
from workpacket.bridges.resumable import (
    Kind,
    Resumable,
    kept_back,
    of_batch,
    of_commits,
    of_role,
    of_run,
    of_session,
    of_step,
    started_again,
    unfinished_roles,
)
from workpacket.bridges.role_acts import RESUMED, reach
from workpacket.bridges.role_facts import RoleKey, changes
from workpacket.bridges.run_links import disagreements, packet_stop
from workpacket.cli.checking import style_of
from workpacket.cli.open_store import CommandLinks, answer, open_runtime, refusing, run_named
from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.progress import batch_caller, desk_of, role_caller, roles_here
from workpacket.cli.questions import answered, commands_of, question_named, rows_of
from workpacket.cli.runs import ASKING, choice_about
from workpacket.git.objects import files_ending, ignored_files_ending
from workpacket.git.repository import Repository, find_repository
from workpacket.model.canonical import Json
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import (
    CheckRow,
    WorkRow,
    render_checks,
    render_questions,
    render_refusal,
    render_task,
    render_work,
)
from workpacket.runtime.errors import RunBlocked, usual_remedy
from workpacket.runtime.holders import Caller
from workpacket.runtime.model_sessions.record import assess
from workpacket.runtime.records.state import Milestones
from workpacket.runtime.resume.decide import Decision
from workpacket.runtime.resume.observe import OUTCOMES
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.step import ResumeMiddleware
from workpacket.runtime.step.log import History, StepLog, checkpoint_of, identity_of, is_checkpoint, load_checkpoint
from workpacket.shell.actor import acting
from workpacket.shell.governing.execution import here
from workpacket.shell.transactions.transaction import writing
from workpacket.shell.tree import link_on_the_way, read_bytes
from workpacket.text.source import DATA
from workpacket.value import replace

STEP_LOGS = ".events.jsonl"


def scan(runtime: Runtime, team: str, caller: Callable[[str], Caller]) -> list[Resumable]:
    """Return the unfinished items: resumable ones first, then stopped ones. If a team is given, return only its roles.
    `caller` maps a role ('' for a batch) to the caller; the caller's own work does not count as busy.
    """
    try:
        repository = find_repository(Path.cwd())
    except WorkpacketError:
        found = [] if team else list(_runs(runtime, None))
    else:
        found = list(_roles(repository, runtime, team, caller))
        if not team:
            found = [
                *_runs(runtime, repository),
                *_batches(repository, runtime, caller("")),
                *found,
                *_steps(repository),
            ]
            found += _commits(repository, runtime)
    return sorted(found, key=lambda one: (not one.goes_on, not any(stop.code in ASKING for stop in one.stops)))


def _refused(kind: Kind, id_: str, error: WorkpacketError) -> Resumable:
    return Resumable(kind, id_, "nowhere", "it cannot be read", "", (replace(error.problem, hint=error.hint),))


def _runs(runtime: Runtime, repository: Repository | None) -> Iterator[Resumable]:
    stop_of = cache(lambda packet: packet_stop(repository, packet) if repository is not None and packet else None)
    for line in runtime.runs():
        if line.liveness == "moved" or (line.liveness == "completed" and not line.attention):
            continue
        try:
            if line.name == "session":
                work = of_session(line, assess(runtime, line.id))
            else:
                state = runtime.state(line.id)
                decision, questions = runtime.waiting(line.id)
                work = of_run(line, decision, state, questions)
            yield kept_back(work, stop_of(line.packet))
        except WorkpacketError as error:
            yield _refused("run", line.id, error)
    for one in disagreements(repository, runtime) if repository is not None else ():
        if one.what != "unlinked":  # it is listed below as unfinished
            stop = Problem("run_links_disagree", one.message, hint=choice_about(one))
            yield Resumable("run", one.run, "nowhere", "the log and store disagree", "", (stop,))


def _scopes(root: str) -> Iterator[str]:
    """Yield the folders of batch scopes that are active and have tasks."""
    for above in FOLDERS:
        if link_on_the_way(root, above):
            continue
        try:
            with os.scandir(os.path.join(root, above)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        yield from (f"{above}/{name}" for name in names if os.path.lexists(f"{root}/{above}/{name}/tasks.yaml"))


def _batches(repository: Repository, runtime: Runtime, caller: Caller) -> Iterator[Resumable]:
    root = str(repository.root)
    read = reader_of(root)
    for folder in _scopes(root):
        try:
            facts = gather(repository, runtime, read, folder)
        except WorkpacketError as error:
            yield _refused("batch", f"batch/{folder}", error)
        else:
            found = of_batch(facts, caller)
            if found is not None:
                yield found


def _roles(repository: Repository, runtime: Runtime, team: str, caller: Callable[[str], Caller]) -> Iterator[Resumable]:
    scanned, unread = roles_here(repository, runtime)
    for role in unfinished_roles(scanned, team, caller):
        yield of_role(role, changes(str(repository.root), role.artifacts))
    for path, code in unread:
        yield _refused("role", path, WorkpacketError(code, path, hint=f"workpacket check {path}"))


def _steps(repository: Repository) -> Iterator[Resumable]:
    root = str(repository.root)
    for path in (*files_ending(repository, STEP_LOGS), *ignored_files_ending(repository, STEP_LOGS)):
        if link_on_the_way(root, path):
            continue
        try:
            log = StepLog(os.path.join(root, path)).read()
        except WorkpacketError as error:
            yield _refused("step", path, error)
            continue
        latest = {}
        for line in log.lines:
            if is_checkpoint(line.event):
                try:
                    checkpoint = checkpoint_of(line.event)
                except ValueError:
                    continue
                latest[identity_of(checkpoint)] = checkpoint
        for checkpoint in latest.values():
            history = History.of(log, checkpoint)
            try:
                wanted = history.wanted("")
            except WorkpacketError as error:
                yield of_step(
                    path, checkpoint, [Problem(error.code, error.message, hint=f"workpacket explain {error.code}")]
                )
            else:
                denial = history.denial()
                take_back = f"workpacket resume step/{'/'.join(identity_of(checkpoint))} --yes"
                if wanted is not None:
                    stops = [Problem("confirmation_denied", denial.sentence, hint=take_back)] if denial else []
                    yield of_step(path, wanted, stops)


def _answer_of_step(arguments: Arguments, work: Resumable) -> list[str]:
    """Replace a person's denial with a new answer. The change takes effect when the pipeline of the step is started."""
    repository = here()
    path, _, _ = work.why.partition(":")
    log = StepLog(os.path.join(repository.root, path))
    identity = work.id.removeprefix("step/").split("/")
    checkpoint = load_checkpoint(log, identity[2], mission_id=identity[0], run_id=identity[1])
    denial = History.of(log.read(), checkpoint).denial() if checkpoint is not None else None
    if checkpoint is None or denial is None:
        raise WorkpacketError("checkpoint_missing", f"{work.id} is not waiting for an answer", hint="workpacket resume")
    yes = arguments.flag("yes")
    actor = acting(repository).id
    ResumeMiddleware(log, None, actor).confirm(identity_of(checkpoint), denial.subject, yes=yes)
    return [f"{actor} says {'yes' if yes else 'no'} to: {'; '.join(denial.about)}"]


def _commits(repository: Repository, runtime: Runtime) -> Iterator[Resumable]:
    """Yield the newest run for which another program left a sidecar. A sidecar does not say whether its run is done."""
    newest: tuple[str, str] = ("", "")
    for path, _ in sidecar_files(repository):
        try:
            read = CommitBridge().read(path, read_bytes(str(repository.root), path, DATA.size))
        except OSError:
            continue
        for one in read:
            if isinstance(one, Foreign):
                newest = max(newest, (str(one.values.get("created_at") or ""), str(one.values.get("run_id") or "")))
    run = newest[1]
    if run and runtime.store.head(run) is None:
        yield of_commits(run, CommitSelection(repository, run, Milestones()).select())


def carry_on(arguments: Arguments) -> int:
    """List all items or the given one; resume the given item if `--yes` is given or the person agrees."""
    with open_runtime() as runtime:
        found = scan(
            runtime,
            arguments.value("team"),
            lambda agent: role_caller(arguments, agent) if agent else batch_caller(arguments),
        )
    if arguments.words:
        found = [_work_named(found, arguments.words[0])]
        if [stop.code for stop in found[0].stops] == ["confirmation_denied"] and arguments.flag("yes"):
            said = _answer_of_step(arguments, found[0])
            row = {**replace(found[0], stops=()).as_json(), "said": [*said]}
            text = render_task(found[0].id, said, found[0].task, found[0].command)
            return answer(arguments, text, {"resumed": [row], "unfinished": []})
    chosen = _chosen(arguments, found)
    if not chosen:
        return _listed(arguments, found)
    text, status = "", 0
    rows: list[Json] = []
    for one in chosen:
        row = one.as_json()
        try:
            said = [*(doubt.message for doubt in one.doubts), *_do(arguments, one)]
        except WorkpacketError as error:  # the others continue anyway
            status = status or catalogue()[error.code].exit_code
            text += render_refusal(one.id, error.code, error.message)
            rows.append({**row, "refused": error.code, "said": [error.message]})
        else:
            text += render_task(one.id, said, one.task, one.command)
            rows.append({**row, "said": list(said)})
    left: list[Json] = [one.as_json() for one in found if one not in chosen]
    return answer(arguments, text, {"resumed": rows, "unfinished": left}, status=status)


def _work_named(found: Sequence[Resumable], word: str) -> Resumable:
    for one in found:
        if one.id == word:
            return one
    raise WorkpacketError("checkpoint_missing", f"{word} is not unfinished", hint="workpacket resume")


def _chosen(arguments: Arguments, found: Sequence[Resumable]) -> list[Resumable]:
    """Return the items to resume now. Stopped items are left out: their codes say what must be done first."""
    ready = [one for one in found if one.goes_on or (arguments.words and one.only_waits)]
    if arguments.words and not ready and arguments.flag("yes"):
        stop = found[0].stops[0]
        message = f"{found[0].id}: {'; '.join(f'{one.code}: {one.message}' for one in found[0].stops)}"
        raise RunBlocked(message, code=stop.code, hint=stop.hint or catalogue()[stop.code].remedy)
    if arguments.flag("plan") or arguments.flag("no") or not ready:
        return []
    if arguments.flag("yes"):
        return ready
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.flag("json"):
        return []
    return _asked(arguments, ready)


def _asked(arguments: Arguments, ready: list[Resumable]) -> list[Resumable]:
    sys.stderr.write(render_work([_work_row(one) for one in ready], (), style_of(arguments), numbered=True))
    sys.stderr.write("Which one should be resumed? Enter a number, 'all', or nothing: ")
    sys.stderr.flush()
    word = sys.stdin.readline().strip().casefold()
    if word == "all":
        return ready
    return [ready[int(word) - 1]] if word.isdecimal() and 1 <= int(word) <= len(ready) else []


def _listed(arguments: Arguments, found: Sequence[Resumable]) -> int:
    ready = [_work_row(one) for one in found if one.goes_on]
    stopped = [_work_row(one) for one in found if not one.goes_on]
    text = render_work(ready, stopped, style_of(arguments)) if found else "nothing is unfinished\n"
    then = "workpacket resume --yes, or: workpacket resume ID --plan" if found else ""
    return answer(arguments, text, {"unfinished": [one.as_json() for one in found]}, then=then)


def _work_row(one: Resumable) -> WorkRow:
    stops = tuple(replace(stop, hint=stop.hint or catalogue()[stop.code].remedy) for stop in one.stops)
    return WorkRow(one.id, one.where, one.why, one.command, stops, one.doubts)


def _do(arguments: Arguments, one: Resumable) -> list[str]:
    """Resume an item and report it.

    A program resumes its own work; an agent's work is leased and recorded here.
    """
    if one.kind not in {"batch", "role"}:
        return []
    repository = here()
    with writing(repository, "resume") as transaction, open_runtime(create=True) as runtime:
        if one.kind == "role":
            feature, team, agent = (unquote(part) for part in one.id.split("/")[1:])
            role = desk_of(arguments, repository, runtime, transaction, RoleKey(feature, agent, team))
            reach(role, RESUMED)
            return role.said
        folder = one.id.partition("/")[2]
        batch = BatchDesk(runtime, transaction, batch_caller(arguments), repository, folder)
        if one.task:
            begin(batch)
        else:
            complete(batch)
        return batch.said


# Work other than runs, by the prefix of its id.
OTHER_KINDS = ("batch/", "role/", "step/", "commit/")


@refusing
def run(arguments: Arguments) -> int:
    if arguments.flag("yes") and arguments.flag("no"):
        raise usage(arguments.command, "conflicting_options", "--yes and --no cannot be used together")
    if not arguments.words or arguments.words[0].startswith(OTHER_KINDS):
        _require_no_question(arguments)
        return carry_on(arguments)
    with open_runtime() as runtime:
        return _one(arguments, runtime)


def _require_no_question(arguments: Arguments) -> None:
    """Refuse answers that apply only to a run."""
    given = [name for name in ("confirm", "value", *OUTCOMES) if arguments.flag(name)]
    if given:
        raise usage(
            arguments.command, "missing_argument", f"--{given[0]} applies to a single run: specify the run first"
        )
    if len(arguments.words) > 1:
        raise usage(
            arguments.command, "unexpected_argument", f"only a run has questions; {arguments.words[0]!r} is not a run"
        )


def _one(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) > 2:
        raise usage(arguments.command, "unexpected_argument", "expected one run and at most one of its questions")
    run = run_named(runtime, arguments.words[0])
    _require_work(runtime, run)
    decision, questions = runtime.waiting(run)
    chosen = question_named(arguments, run, questions)
    if not arguments.flag("plan") and answered(arguments, runtime, run, chosen):
        decision, questions = runtime.waiting(run)
        chosen = questions
    code = decision.code or (questions[0].code if questions else "")
    status = catalogue()[code].exit_code if code else 0
    checks = [CheckRow(check.name, check.result, check.code, check.details) for check in decision.checks]
    action = decision.action if decision.code or not questions else "CONFIRM"
    text = f"{run}: {action} {code}".rstrip() + "\n" + render_checks(checks, style_of(arguments))
    text += render_questions(rows_of([(run, question) for question in chosen]), style_of(arguments))
    waiting: list[Json] = [question.as_json() for question in chosen]
    data: dict[str, Json] = {"run": run, "decision": decision.as_json(), "questions": waiting}
    then = ", or: ".join(commands_of(run, chosen[0])) if chosen else _then(runtime, run, decision)
    return answer(arguments, text, data, status=status, then=then)


def _require_work(runtime: Runtime, run: str) -> None:
    """Refuse to silently resume a run whose packet has ended or is stopped."""
    packet = run.rpartition("/")[0]
    witness = runtime.settings.witness
    if not packet or not isinstance(witness, CommandLinks) or runtime.summary(run).liveness == "completed":
        return
    from workpacket.bridges.run_links import packet_stop

    stop = packet_stop(witness.repository, packet)
    if stop is not None:
        hint = f"{stop.hint}, or: workpacket runtime cancel {shlex.quote(run)}"
        raise RunBlocked(f"{run} cannot continue: {stop.message}", code=stop.code, hint=hint)


def _then(runtime: Runtime, run: str, decision: Decision) -> str:
    if decision.action in {"RESUME", "RESTART_STEP"}:
        return started_again(runtime.state(run))
    if decision.action == "COMPLETE":
        return f"workpacket runtime runs show {shlex.quote(run)}"
    return usual_remedy(decision.code, run)


COMMAND = Command(
    "resume",
    run,
    arguments="[ID [QUESTION]]",
    description="""
Without an id, lists everything unfinished: runs, sessions, batches, roles, steps, checkpoint commits. It shows what can
be resumed, and what stops the rest; --yes resumes everything that can be, and at a terminal you choose. An agent's work
is leased and recorded, and the agent's next action is printed. With the id of a run, shows what waits for a person: a
question of its program, a changed value, or an effect with an unknown outcome or result; each with an id, its subject,
and a digest. QUESTION is that id; it may be omitted if only one is open. --yes answers exactly the question that was
shown: a terminal shows it in the same call, elsewhere --confirm must give its digest. If the policy of the base has
rules for the gate `answer`, an answer is signed at a terminal, with an approval key. Then the run resumes the way it
began: by its program, or by `workpacket runtime run start NAME`.""",
    options=(
        Option("team", "without an id: list only the roles of this team", value="TEAM"),
        Option("owner", "the process that does an agent's work (default: the caller)", value="PID"),
        Option("instance", "the writer, if several writers have the role (default: that process)", value="NAME"),
        Option("plan", "show the decision and every check without writing anything"),
        Option("yes", "answer the question with yes"),
        Option("no", "answer the question with no"),
        Option("confirm", "the digest printed with the question", value="DIGEST"),
        Option(
            "mark-done",
            "confirm that this effect, whose outcome or result is unknown, did happen",
            value="STEP",
            many=True,
            optional=True,
        ),
        Option("value", "the result of the effect given with --mark-done, as JSON (default: null)", value="JSON"),
        Option(
            "retry",
            "repeat this effect, whose outcome is unknown or which was undone",
            value="STEP",
            many=True,
            optional=True,
        ),
        Option(
            "compensate",
            "undo this effect, whose outcome is unknown and which has compensate=",
            value="STEP",
            many=True,
            optional=True,
        ),
        Option("note", "a comment to store with the answer", value="TEXT"),
        Option("key", "the key to sign the answer with, if the policy requires that", value="PATH"),
    ),
    examples=(
        "workpacket resume",
        "workpacket resume --team build --yes",
        "workpacket resume nightly@00000003 --plan",
        "workpacket resume nightly@00000003 q1 --no",
        "workpacket resume nightly@00000003 --mark-done send-mail --note 'it is in the outbox'",
        """workpacket resume nightly@00000003 --mark-done send-mail --value '{"id": "<1@example.org>"}'""",
    ),
)
