"""Questions of runs: how they are shown and answered, and `workpacket runtime questions`, which lists all of them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence

from workpacket.cli.checking import style_of
from workpacket.cli.open_store import CommandVerifier, answer, json_value, open_runtime, refusing
from workpacket.cli.options import Arguments, Command, usage
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import QuestionRow, render_questions
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.resume.observe import OUTCOMES, YES_OR_NO, OpenQuestion, changed_lines
from workpacket.runtime.runtime import Choice, NoValue, Runtime, Sign
from workpacket.shell.keys import find_key

CHOICES: dict[str, Choice] = {"mark-done": "mark_done", "retry": "retry", "compensate": "compensate"}


def question_named(arguments: Arguments, run: str, questions: tuple[OpenQuestion, ...]) -> tuple[OpenQuestion, ...]:
    """Return the given question, or all of them."""
    if len(arguments.words) < 2:
        return questions
    found = tuple(one for one in questions if one.id == arguments.words[1])
    if not found:
        known = ", ".join(one.id for one in questions) or "none"
        what = f"{arguments.words[1]!r} is not an open question of {run}; the open questions are: {known}"
        raise usage(arguments.command, "invalid_value", what)
    return found


def _signing(arguments: Arguments, runtime: Runtime, questions: Sequence[OpenQuestion]) -> Sign | None:
    """Return what signs the answer, if the policy of the base requires that; show the questions to the signer."""
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
    """Store the answer from the command line or the terminal, and return whether there is one."""
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
        raise usage(arguments.command, "missing_argument", f"specify which question --{answer} answers: {known}")
    what = f"no open question of {run} can be answered with --{answer}"
    if questions:
        others = (f"{one.id} by --{', --'.join(one.answers)}" for one in questions)
        what += f"; {'; '.join(others)}"
    raise usage(arguments.command, "invalid_value", what)


def _require_shown(arguments: Arguments, run: str, answer: str, question: OpenQuestion) -> None:
    """Require that the question was shown: either its digest is given, or it is shown now."""
    digest = arguments.value("confirm")
    if digest and digest != question.digest:
        raise RunBlocked(
            f"{question.id} of {run} has changed: its digest is {question.digest}, not {digest}",
            code="needs_confirmation",
            hint=f"workpacket resume {run}",
        )
    if digest or answer != "yes":
        return
    if not _at_terminal(arguments):
        what = f"--yes requires --confirm DIGEST; `workpacket resume {run}` shows the question and its digest"
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
    """Settle `--mark-done STEP`: any effect whose outcome or result is unknown, even if its program could settle it."""
    state = runtime.state(run)
    open_effects = {record.step: record.effect for record in (*state.unknown_effects, *state.open_receipts)}
    for option, step in named:
        if step not in open_effects:
            known = ", ".join(open_effects) or "none"
            what = f"{run} has no effect {step!r} with an unknown outcome or result; the effects that do are: {known}"
            raise usage(arguments.command, "invalid_value", what)
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
    if question.kind in {"program", "effect"}:
        facts.append(("arguments", json.dumps(question.arguments, ensure_ascii=False)))
    if question.before is not None:
        facts.append(("before", json.dumps(question.before, ensure_ascii=False)))
    facts += [("change", line) for line in changed_lines(question.changes)]
    facts.append(("denied by", f"{question.denied_by} ({question.proof})" if question.denied_by else ""))
    facts.append(("last answer", f"does not count: {question.refused}" if question.refused else ""))
    facts.append(("answers", ", ".join(f"--{answer}" for answer in question.answers)))
    return QuestionRow(question.id, question.question, facts, question.digest)


def command_of(run: str, question: OpenQuestion) -> str:
    start = f"workpacket resume {shlex.quote(run)} {shlex.quote(question.id)}"
    if question.denied_by:
        return f"{start} --yes --confirm {question.digest}, to withdraw the no"
    if "yes" in question.answers:
        return f"{start} --yes --confirm {question.digest}, or --no"
    if "retry" not in question.answers:
        return f"{start} --mark-done --value JSON"
    return f"{start} --mark-done, or --retry, or --compensate"


# ---- all of them -----------------------------------------------------------------------------------------------------


def open_questions(runtime: Runtime, prefix: str = "") -> list[tuple[str, OpenQuestion]]:
    """Return the questions of all unfinished runs, each with its run. A run that cannot be read is left out: `resume`
    names it.
    """
    found: list[tuple[str, OpenQuestion]] = []
    for line in runtime.runs(prefix):
        if line.liveness == "cancelled" or (line.liveness == "completed" and not line.attention):
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
    rows = [row_of(question)._replace(id=f"{question.id} of {run}") for run, question in found]
    text = render_questions(rows, style_of(arguments)) if rows else "no questions\n"
    status = catalogue()[found[0][1].code].exit_code if found else 0
    listed: list[Json] = [{"run": run, **question.as_json()} for run, question in found]
    then = command_of(*found[0]) if found else ""
    return answer(arguments, text, {"questions": listed}, status=status, then=then)


COMMAND = Command(
    "questions",
    run,
    arguments="[PREFIX]",
    description="""
Lists what waits for a person in all unfinished runs, or in those whose ids begin with PREFIX: each question with its
subject, its digest, and the command that answers it. A question that was answered with no is listed with the name of
who said so, while it keeps its run from continuing. The exit status is that of the first question, 0 if there is
none.""",
    examples=("workpacket runtime questions", "workpacket runtime questions nightly --json"),
)
