"""The part of `resume` and `cancel` that opens the store."""

from __future__ import annotations

import json
import shlex
import sys

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import CommandLinks, answer, one_run, open_runtime, refuse, run_named, with_links
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import CheckRow, QuestionRow, render_checks, render_questions
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.records.values import stored_text
from workpacket.runtime.resuming.changes import changed_lines
from workpacket.runtime.resuming.decide import Decision
from workpacket.runtime.resuming.questions import OUTCOMES, YES_OR_NO, OpenQuestion
from workpacket.runtime.runtime import NO_VALUE, Choice, NoValue, Runtime

# Work that is no run, by how its id begins.
OTHER_KINDS = ("batch/", "role/", "step/", "commit/")
CHOICES: dict[str, Choice] = {"mark-done": "mark_done", "retry": "retry", "compensate": "compensate"}


def carry_out(arguments: Arguments) -> int:
    if arguments.flag("yes") and arguments.flag("no"):
        raise usage(arguments.command, "conflicting_options", "--yes and --no are both given")
    try:
        if not arguments.words or arguments.words[0].startswith(OTHER_KINDS):
            from workpacket.cli.continuing import carry_on  # reads every kind of checkpoint

            _require_no_question(arguments)

            return carry_on(arguments)
        with open_runtime() as runtime:
            return _one(arguments, runtime)
    except RuntimeFault as fault:
        return refuse(arguments, fault)


def _require_no_question(arguments: Arguments) -> None:
    """The answers that only a run takes."""
    given = [name for name in ("confirm", "value", *OUTCOMES) if arguments.flag(name)]
    if given:
        raise usage(arguments.command, "missing_argument", f"--{given[0]} is about one run: name it first")
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", f"only a run has questions, not {arguments.words[0]!r}")


def cancel(arguments: Arguments) -> int:
    try:
        with open_runtime() as runtime:
            run = one_run(runtime, arguments)
            runtime.cancel(run, arguments.value("reason", "cancelled on the command line"))
            state = runtime.state(run).status
            text = f"{run} is cancelled\n" if state == "cancelled" else f"{run} ends at its next boundary\n"
            data: dict[str, Json] = {"run": run, "state": state}
            return with_links(runtime, answer(arguments, text, data, then=f"workpacket runs show {run}"))
    except RuntimeFault as fault:
        return refuse(arguments, fault)


def _one(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) > 2:
        raise usage(arguments.command, "unexpected_argument", "name one run, and one of its questions")
    run = run_named(runtime, arguments.words[0])
    _require_work(runtime, run)
    decision, questions = runtime.waiting(run)
    chosen = _named(arguments, run, questions)
    if not arguments.flag("plan") and _answered(arguments, runtime, run, chosen):
        decision, questions = runtime.waiting(run)
        chosen = questions
    code = decision.code or (questions[0].code if questions else "")
    status = catalogue()[code].exit_code if code else 0
    checks = [CheckRow(check.name, check.result, check.code, check.details) for check in decision.checks]
    action = decision.action if decision.code or not questions else "CONFIRM"
    text = f"{run}: {action} {code}".rstrip() + "\n" + render_checks(checks, style_of(arguments))
    text += render_questions(map(_row, chosen), style_of(arguments))
    waiting: list[Json] = [question.as_json() for question in chosen]
    data: dict[str, Json] = {"run": run, "decision": decision.as_json(), "questions": waiting}
    then = _command(run, chosen[0]) if chosen else _then(runtime, run, decision)
    return answer(arguments, text, data, status=status, then=then)


def _require_work(runtime: Runtime, run: str) -> None:
    """A run whose packet is over, or stopped, is not gone on with in silence."""
    packet = run.rpartition("/")[0]
    witness = runtime.settings.witness
    if not packet or not isinstance(witness, CommandLinks) or runtime.summary(run).liveness == "completed":
        return
    from workpacket.bridges.run_links import packet_stop

    stop = packet_stop(witness.repository, packet)
    if stop is not None:
        hint = f"{stop.command}; or end the run: workpacket cancel {run}"
        raise RunBlocked(f"{run} does not go on: {stop.message}", code=stop.code, hint=hint)


# ---- answers -------------------------------------------------------------------------------------------------------


def _named(arguments: Arguments, run: str, questions: tuple[OpenQuestion, ...]) -> tuple[OpenQuestion, ...]:
    """The question that is named, or all."""
    if len(arguments.words) < 2:
        return questions
    found = tuple(one for one in questions if one.id == arguments.words[1])
    if not found:
        known = ", ".join(one.id for one in questions) or "none"
        what = f"{arguments.words[1]!r} is not an open question of {run}; open are: {known}"
        raise usage(arguments.command, "invalid_value", what)
    return found


def _answered(arguments: Arguments, runtime: Runtime, run: str, questions: tuple[OpenQuestion, ...]) -> bool:
    """Store the answer that is given, on the line or at the terminal; whether there is one."""
    value = _value_given(arguments)
    given = [name for name in (*YES_OR_NO, *OUTCOMES) if arguments.flag(name)]
    named = [(name, step) for name in OUTCOMES for step in arguments.all_of(name) if step]
    if named and not {*YES_OR_NO} & {*given}:
        if len(arguments.words) > 1 or len(named) < sum(len(arguments.all_of(name)) for name in OUTCOMES):
            raise usage(arguments.command, "conflicting_options", "name the question, or a step behind each option")
        _settle_steps(arguments, runtime, run, named, value)
        return True
    if len(given) > 1:
        raise usage(arguments.command, "conflicting_options", f"--{given[0]} and --{given[1]} are both given")
    if not given:
        return _answered_at_terminal(arguments, runtime, run, questions)
    question = _the_one(arguments, run, given[0], questions)
    _require_shown(arguments, run, given[0], question)
    if given[0] in YES_OR_NO:
        runtime.confirm(run, question.digest, yes=given[0] == "yes", note=arguments.value("note"))
    else:
        runtime.settle(run, question.digest, CHOICES[given[0]], arguments.value("note"), value=value)
    return True


def _value_given(arguments: Arguments) -> Json | NoValue:
    """The value of --value, which belongs to the one effect that is marked as done."""
    if not arguments.all_of("value"):
        return NO_VALUE
    if len(arguments.all_of("mark-done")) != 1 or arguments.flag("retry") or arguments.flag("compensate"):
        raise usage(
            arguments.command, "conflicting_options", "--value is the result of one effect: give one --mark-done"
        )
    try:
        value: Json = json.loads(arguments.value("value"))
        stored_text(value)
    except (ValueError, RecursionError) as error:
        raise usage(arguments.command, "invalid_value", f"--value is not JSON that can be stored: {error}") from None
    return value


def _the_one(arguments: Arguments, run: str, answer: str, questions: tuple[OpenQuestion, ...]) -> OpenQuestion:
    fitting = [one for one in questions if answer in one.answers]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        known = ", ".join(one.id for one in fitting)
        raise usage(arguments.command, "missing_argument", f"say which question --{answer} answers: {known}")
    what = f"no open question of {run} is answered by --{answer}"
    if questions:
        others = (f"{one.id} by --{', --'.join(one.answers)}" for one in questions)
        what += f"; {'; '.join(others)}"
    raise usage(arguments.command, "invalid_value", what)


def _require_shown(arguments: Arguments, run: str, answer: str, question: OpenQuestion) -> None:
    """Nobody says yes to what they were not shown: the digest of it is given, or it is shown now."""
    digest = arguments.value("confirm")
    if digest and digest != question.digest:
        raise RunBlocked(
            f"{question.id} of {run} is about something else by now: its digest is {question.digest}, not {digest}",
            code="needs_confirmation",
            hint=f"workpacket resume {run}",
        )
    if digest or answer != "yes":
        return
    if not _at_terminal(arguments):
        what = f"--yes needs --confirm DIGEST; `workpacket resume {run}` shows what is asked, and its digest"
        raise usage(arguments.command, "missing_argument", what)
    sys.stderr.write(render_questions([_row(question)], style_of(arguments)))


def _at_terminal(arguments: Arguments) -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and not arguments.flag("json")


def _answered_at_terminal(
    arguments: Arguments, runtime: Runtime, run: str, questions: tuple[OpenQuestion, ...]
) -> bool:
    if arguments.flag("confirm"):
        raise usage(arguments.command, "missing_argument", "--confirm goes with the answer: --yes, --no, ...")
    asked = [one for one in questions if "yes" in one.answers]
    if len(asked) != 1 or not _at_terminal(arguments):
        return False
    sys.stderr.write(f"{render_questions([_row(asked[0])], style_of(arguments))}yes or no? [y/N] ")
    sys.stderr.flush()
    said = sys.stdin.readline().strip().casefold() in {"y", "yes"}
    runtime.confirm(run, asked[0].digest, yes=said, note=arguments.value("note"))
    return True


def _settle_steps(
    arguments: Arguments, runtime: Runtime, run: str, named: list[tuple[str, str]], value: Json | NoValue
) -> None:
    """`--mark-done STEP`: any effect of unknown outcome or result, also one that its program could settle itself."""
    state = runtime.state(run)
    open_effects = {record.step: record.effect for record in (*state.unknown_effects, *state.open_receipts)}
    for option, step in named:
        if step not in open_effects:
            known = ", ".join(open_effects) or "none"
            what = f"{step!r} is not an effect of unknown outcome or result of {run}; those are: {known}"
            raise usage(arguments.command, "invalid_value", what)
        runtime.settle(run, open_effects[step], CHOICES[option], arguments.value("note"), value=value)


# ---- what is shown ---------------------------------------------------------------------------------------------------


def _row(question: OpenQuestion) -> QuestionRow:
    facts = [("asked by", {"change": "", "outcome": "", "receipt": ""}.get(question.kind, f"the {question.kind}"))]
    facts += [("effect", question.name), ("target", question.target if question.target != question.name else "")]
    if question.kind in {"program", "effect"}:
        facts.append(("arguments", json.dumps(question.arguments, ensure_ascii=False)))
    if question.before is not None:
        facts.append(("before", json.dumps(question.before, ensure_ascii=False)))
    facts += [("change", line) for line in changed_lines(question.changes)]
    facts.append(("answers", ", ".join(f"--{answer}" for answer in question.answers)))
    return QuestionRow(question.id, question.question, facts, question.digest)


def _command(run: str, question: OpenQuestion) -> str:
    start = f"workpacket resume {shlex.quote(run)} {shlex.quote(question.id)}"
    if "yes" in question.answers:
        return f"{start} --yes --confirm {question.digest}, or --no"
    if "retry" not in question.answers:
        return f"{start} --mark-done --value JSON"
    return f"{start} --mark-done, or --retry, or --compensate"


def _then(runtime: Runtime, run: str, decision: Decision) -> str:
    if decision.action in {"RESUME", "RESTART_STEP"}:
        state = runtime.state(run)
        packet = f" --packet {state.packet}" if state.packet else ""
        return f"start its program again, or: workpacket run start {state.name}{packet}"
    if decision.action == "COMPLETE":
        return f"workpacket runs show {run}"
    return catalogue()[decision.code].remedy
