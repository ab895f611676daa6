"""What people decide about runs: `workpacket runtime questions` lists questions that wait for an answer, and
`workpacket runtime session` shows how sessions with a model ended, and records an operator's decisions about them.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from workpacket.bridges.checkpoint_files import artifact_of
from workpacket.bridges.foreign import imported
from workpacket.cli.checking import style_of
from workpacket.cli.open_store import (
    CommandVerifier,
    answer,
    json_value,
    moment_of,
    open_runtime,
    refusing,
    run_named,
)
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import words_of
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import QuestionRow, render_questions
from workpacket.report.terminal import escape_lines
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.model_sessions.record import DECISIONS, SessionReport, assess, carry_over, operator_decides
from workpacket.runtime.resume.observe import OUTCOMES, UNSETTLED, YES_OR_NO, OpenQuestion, changed_lines
from workpacket.runtime.runtime import Choice, NoValue, Runtime, Sign
from workpacket.shell.keys import find_key

CHOICES: dict[str, Choice] = {"mark-done": "mark_done", "retry": "retry", "compensate": "compensate"}


def question_named(arguments: Arguments, run: str, questions: tuple[OpenQuestion, ...]) -> tuple[OpenQuestion, ...]:
    """Return the given question, or all questions."""
    if len(arguments.words) < 2:
        return questions
    found = tuple(one for one in questions if one.id == arguments.words[1])
    if not found:
        known = ", ".join(one.id for one in questions) or "none"
        what = f"{arguments.words[1]!r} is not an open question of {run}; the open questions are: {known}"
        raise usage(arguments.command, "invalid_value", what, f"workpacket resume {shlex.quote(run)}")
    return found


def _signing(arguments: Arguments, runtime: Runtime, questions: Sequence[OpenQuestion]) -> Sign | None:
    """Return the function that signs the answer, if the base's policy requires a signature; show the questions to the
    signer."""
    verifier = runtime.settings.verifier
    if not isinstance(verifier, CommandVerifier) or not verifier.answers.required:
        return None
    if not _at_terminal(arguments):
        raise WorkpacketError(
            "approval_needs_terminal",
            "the policy requires a signed answer: a person must read the question, but standard input is not a "
            "terminal",
            hint="run it in a terminal",
        )
    sys.stderr.write(render_questions(map(row_of, questions), style_of(arguments)))
    return verifier.answers.signing(find_key(arguments.value("key")))


def answered(arguments: Arguments, runtime: Runtime, run: str, questions: tuple[OpenQuestion, ...]) -> bool:
    """Store the answer given on the command line or at the terminal, and return whether there is one."""
    value = _value_given(arguments)
    given = [name for name in (*YES_OR_NO, *OUTCOMES) if arguments.flag(name)]
    named = [(name, step) for name in OUTCOMES for step in arguments.all_of(name) if step]
    if named and not {*YES_OR_NO} & {*given}:
        if len(arguments.words) > 1 or len(named) < sum(len(arguments.all_of(name)) for name in OUTCOMES):
            raise usage(
                arguments.command, "conflicting_options", "specify the question, or give a step after each option"
            )
        _settle_steps(arguments, runtime, run, named, value)
        return True
    if len(given) > 1:
        raise usage(arguments.command, "conflicting_options", f"--{given[0]} and --{given[1]} cannot be used together")
    if not given:
        return _answered_at_terminal(arguments, runtime, run, questions)
    question = _the_one(arguments, run, given[0], questions)
    _require_shown(arguments, run, given[0], question)
    shown = given[0] == "yes" and not arguments.value("confirm")
    sign = _signing(arguments, runtime, [] if shown else [question])
    if given[0] in YES_OR_NO:
        runtime.confirm(run, question.digest, yes=given[0] == "yes", note=arguments.value("note"), sign=sign)
    else:
        runtime.settle(run, question.digest, CHOICES[given[0]], arguments.value("note"), value=value, sign=sign)
    return True


def _value_given(arguments: Arguments) -> Json | NoValue:
    """Return the value of --value, for the only effect that is marked as done."""
    unclear = len(arguments.all_of("mark-done")) != 1 or arguments.flag("retry") or arguments.flag("compensate")
    if arguments.all_of("value") and unclear:
        raise usage(arguments.command, "conflicting_options", "--value requires exactly one --mark-done")
    return json_value(arguments)


def _the_one(arguments: Arguments, run: str, answer: str, questions: tuple[OpenQuestion, ...]) -> OpenQuestion:
    fitting = [one for one in questions if answer in one.answers]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        known = ", ".join(one.id for one in fitting)
        what = f"specify which question --{answer} answers: {known}"
        raise usage(arguments.command, "missing_argument", what, f"workpacket resume {shlex.quote(run)}")
    what = f"no open question of {run} can be answered with --{answer}"
    if questions:
        others = (f"{one.id} by --{', --'.join(one.answers)}" for one in questions)
        what += f"; {'; '.join(others)}"
    raise usage(arguments.command, "invalid_value", what, f"workpacket resume {shlex.quote(run)}")


def _require_shown(arguments: Arguments, run: str, answer: str, question: OpenQuestion) -> None:
    """Require that the question was shown: either its digest is given, or it is shown now."""
    digest = arguments.value("confirm")
    if digest and digest != question.digest:
        raise RunBlocked(
            f"{question.id} of {run} has changed: its digest is {question.digest}, not {digest}",
            code="needs_confirmation",
            hint=f"workpacket resume {shlex.quote(run)}",
        )
    if digest or answer != "yes":
        return
    if not _at_terminal(arguments):
        what = (
            f"--yes requires --confirm DIGEST; `workpacket resume {shlex.quote(run)}` shows the question and its digest"
        )
        raise usage(arguments.command, "missing_argument", what)
    sys.stderr.write(render_questions([row_of(question)], style_of(arguments)))


def _at_terminal(arguments: Arguments) -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and not arguments.flag("json")


def _answered_at_terminal(
    arguments: Arguments, runtime: Runtime, run: str, questions: tuple[OpenQuestion, ...]
) -> bool:
    if arguments.flag("confirm"):
        raise usage(arguments.command, "missing_argument", "--confirm requires an answer: --yes, --no, ...")
    asked = [one for one in questions if "yes" in one.answers]
    if len(asked) != 1 or not _at_terminal(arguments):
        return False
    sys.stderr.write(f"{render_questions([row_of(asked[0])], style_of(arguments))}yes or no? [y/N] ")
    sys.stderr.flush()
    said = sys.stdin.readline().strip().casefold() in {"y", "yes"}
    sign = _signing(arguments, runtime, ())
    runtime.confirm(run, asked[0].digest, yes=said, note=arguments.value("note"), sign=sign)
    return True


def _settle_steps(
    arguments: Arguments, runtime: Runtime, run: str, named: list[tuple[str, str]], value: Json | NoValue
) -> None:
    """Settle `--mark-done STEP` for any effect with an unknown outcome or result, even if its program could settle
    it."""
    state = runtime.state(run)
    unsettled = [record for record in state.effects.values() if record.status in UNSETTLED]
    open_effects = {record.step: record.effect for record in (*unsettled, *state.open_receipts)}
    for option, step in named:
        if step not in open_effects:
            known = ", ".join(open_effects) or "none"
            what = f"{run} has no effect {step!r} with an unknown outcome or result; it has: {known}"
            raise usage(arguments.command, "invalid_value", what, f"workpacket resume {shlex.quote(run)}")
        about = [one for one in runtime.waiting(run)[1] if one.digest == open_effects[step]]
        sign = _signing(arguments, runtime, about)
        runtime.settle(run, open_effects[step], CHOICES[option], arguments.value("note"), value=value, sign=sign)


def row_of(question: OpenQuestion) -> QuestionRow:
    facts = [("asked by", {"change": "", "outcome": "", "receipt": ""}.get(question.kind, f"the {question.kind}"))]
    facts += [
        ("child run", question.child),
        ("effect", question.name),
        ("target", question.target if question.target != question.name else ""),
    ]
    facts.append(("key", question.key))
    if question.kind in {"program", "effect"} or question.arguments is not None:
        facts.append(("arguments", json.dumps(question.arguments, ensure_ascii=False)))
    facts.append(("begun at", moment_of(question.begun_at) if question.begun_at else ""))
    if question.before is not None:
        facts.append(("before", json.dumps(question.before, ensure_ascii=False)))
    facts += [("change", line) for line in changed_lines(question.changes)]
    facts.append(("denied by", f"{question.denied_by} ({question.proof})" if question.denied_by else ""))
    facts.append(("last answer", f"does not count: {question.refused}" if question.refused else ""))
    withdraws = " (withdraws the answer 'no')" if question.denied_by else ""
    facts.append(("answers", ", ".join(f"--{answer}" for answer in question.answers) + withdraws))
    return QuestionRow(question.id, question.question, facts, question.digest)


def rows_of(listed: Sequence[tuple[str, OpenQuestion]]) -> list[QuestionRow]:
    """Return the questions, each with its commands; the commands of a single question are in the `next:` line."""
    rows = []
    for run, question in listed:
        row = row_of(question)
        commands = commands_of(run, question) if len(listed) > 1 else ()
        rows.append(row._replace(facts=[*row.facts, *(("answer", command) for command in commands)]))
    return rows


def commands_of(run: str, question: OpenQuestion) -> list[str]:
    """Return one command for each answer, as it is typed."""
    start = f"workpacket resume {shlex.quote(run)} {shlex.quote(question.id)}"
    more = {"yes": f" --confirm {question.digest}"}
    if question.kind == "receipt":
        more["mark-done"] = " --value JSON"
    return [f"{start} --{answer}{more.get(answer, '')}" for answer in question.answers]


# ---- all of them -----------------------------------------------------------------------------------------------------


def open_questions(runtime: Runtime, prefix: str = "") -> list[tuple[str, OpenQuestion]]:
    """Return the questions of all unfinished or cancelled runs, each with its run. A run that cannot be read is left
    out: `resume` lists it.
    """
    found: list[tuple[str, OpenQuestion]] = []
    for line in runtime.runs(prefix):
        if line.liveness == "moved" or (line.liveness == "completed" and not line.attention):
            continue
        try:
            _, questions = runtime.waiting(line.id)
        except RuntimeFault:
            continue
        found += [(line.id, question) for question in questions]
    return found


@refusing
def run(arguments: Arguments) -> int:
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "expected at most one run id or prefix of a run id")
    with open_runtime() as runtime:
        found = open_questions(runtime, arguments.words[0] if arguments.words else "")
    names = [f"{question.id} of {run}" for run, question in found]
    rows = [row._replace(id=name) for name, row in zip(names, rows_of(found), strict=True)]
    text = render_questions(rows, style_of(arguments)) if rows else "no questions\n"
    status = catalogue()[found[0][1].code].exit_code if found else 0
    listed: list[Json] = [{"run": run, **question.as_json()} for run, question in found]
    then = ", or: ".join(commands_of(*found[0])) if found else ""
    return answer(arguments, text, {"questions": listed}, status=status, then=then)


QUESTIONS = Command(
    "questions",
    run,
    arguments="[PREFIX]",
    description="""
Lists what waits for a person in all unfinished or cancelled runs, or in those whose ids begin with PREFIX: each
question with its subject, its digest, and the commands that answer it. A question that was answered with no is listed
with the name of who said so, while it keeps its run from continuing. The exit status is that of the first question, 0
if there is none.""",
    examples=("workpacket runtime questions", "workpacket runtime questions nightly --json"),
)


@refusing
def run_session(arguments: Arguments) -> int:
    action = subcommand(arguments, ACTIONS)
    return {"list": _list, "show": _show, "decide": _decide, "continue": _continue}[action](arguments)


def _list(arguments: Arguments) -> int:
    words_of(arguments, 0, "no words")
    with open_runtime() as runtime:
        found = [assess(runtime, line.id) for line in runtime.runs() if line.name == "session"]
    text = "".join(f"{_line(report)}\n" for report in found) or "there are no sessions\n"
    rows: list[Json] = [report.session.as_json() for report in found]
    return answer(arguments, escape_lines(text), {"sessions": rows})


def _show(arguments: Arguments) -> int:
    word = words_of(arguments, 1, "ID")[0]
    with open_runtime() as runtime:
        return _said(arguments, assess(runtime, _session_named(runtime, word)))


def _decide(arguments: Arguments) -> int:
    word, choice = words_of(arguments, 2, "ID and a choice")
    if choice not in DECISIONS:
        raise usage(arguments.command, "invalid_value", f"decide {', '.join(DECISIONS)}; not {choice!r}")
    with open_runtime() as runtime:
        stream = _session_named(runtime, word)
        return _said(arguments, operator_decides(runtime, stream, choice, arguments.value("note")))


def _continue(arguments: Arguments) -> int:
    key = words_of(arguments, 1, "KEY")[0]
    with open_runtime() as runtime:
        held = imported(runtime.store, f"session/{key}")
        if not held:
            hint = "workpacket log import session PATH"
            raise WorkpacketError("checkpoint_missing", f"no imported artifact has session {key!r}", hint=hint)
        return _said(arguments, assess(runtime, carry_over(runtime, artifact_of(held[-1].checkpoint.values))))


def _session_named(runtime: Runtime, word: str) -> str:
    stream = run_named(runtime, word)
    if not stream.rpartition("@")[0].endswith("session"):
        raise WorkpacketError(
            "checkpoint_missing", f"{stream} is not a session", hint="workpacket runtime session list"
        )
    return stream


def _said(arguments: Arguments, report: SessionReport) -> int:
    session = report.session
    lines = [_line(report)]
    lines += [f"  {detail}" for detail in report.details]
    lines += [f"  pending: {call.step} ({call.target}): {call.pending}" for call in report.pending]
    lines += [f"  damaged artifact: {name}" for name in report.corrupt]
    blocked = session.status == "BLOCKED"
    status = catalogue()[session.reason].exit_code if blocked else 0
    then = ""
    if report.choices:
        decide = f"workpacket runtime session decide {shlex.quote(session.stream)}"
        then = ", or: ".join(f"{decide} {choice}" for choice in report.choices)
    elif session.status == "PAUSED":
        then = "start its program again"
    text = escape_lines("".join(f"{line}\n" for line in lines))
    return answer(arguments, text, report.as_json(), status=status, then=then)


def _line(report: SessionReport) -> str:
    session = report.session
    line = f"{session.stream}: {session.status}{f' {session.reason}' if session.reason else ''}"
    line += f", {session.messages} messages"
    if not session.checkpoint_artifact_id:
        return f"{line}, no checkpoint"
    moment = datetime.fromtimestamp(session.last_checkpoint_at / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{line}, checkpoint {session.checkpoint_artifact_id[:12]} ({session.last_checkpoint_kind}, {moment})"


ACTIONS = ("list", "show", "decide", "continue")


SESSION = Command(
    "session",
    run_session,
    arguments="list | show ID | decide ID cancel|repair|retry | continue KEY",
    description="""
`show` prints the state of a session without changing it: its status and reason, every call without an outcome, and the
possible decisions. `decide` settles a blocked session: `cancel` ends it, `repair` treats effects in doubt as done and
damaged records as lost, `retry` does it again. `continue` resumes on this machine, from its last saved state, a session
of another machine whose artifact was imported with `workpacket log import session`.""",
    options=(Option("note", "decide: a comment to store with the decision", value="TEXT"),),
    examples=(
        "workpacket runtime session show session@review-42",
        "workpacket runtime session decide session@review-42 repair --note 'the comment is there'",
        "workpacket runtime session continue WP-1-Invoices-v1/review-42",
    ),
)


DECLARED = {command.name: command for command in (QUESTIONS, SESSION)}
