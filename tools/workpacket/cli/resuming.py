"""The part of `resume` and `cancel` that opens the store."""

from __future__ import annotations

import json
import sys

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import CommandLinks, answer, one_run, open_runtime, refuse, with_links
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import CheckRow, render_checks
from workpacket.runtime.errors import RunBlocked, RuntimeFault
from workpacket.runtime.records.values import stored_text
from workpacket.runtime.resuming.decide import Decision
from workpacket.runtime.runtime import NO_VALUE, Choice, NoValue, Runtime

# Work that is no run, by how its id begins.
OTHER_KINDS = ("batch/", "role/", "step/", "commit/")
SETTLEMENTS: tuple[tuple[str, Choice], ...] = (
    ("mark-done", "mark_done"),
    ("retry", "retry"),
    ("compensate", "compensate"),
)


def carry_out(arguments: Arguments) -> int:
    if arguments.flag("yes") and arguments.flag("no"):
        raise usage(arguments.command, "conflicting_options", "--yes and --no are both given")
    try:
        if not arguments.words or arguments.words[0].startswith(OTHER_KINDS):
            from workpacket.cli.continuing import carry_on  # reads every kind of checkpoint

            return carry_on(arguments)
        with open_runtime() as runtime:
            return _one(arguments, runtime)
    except RuntimeFault as fault:
        return refuse(arguments, fault)


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
    run = one_run(runtime, arguments)
    _require_work(runtime, run)
    if not arguments.flag("plan"):
        _settle(arguments, runtime, run)
    decision = runtime.plan(run)
    if decision.action == "CONFIRM" and not arguments.flag("plan"):
        said = _said(arguments, run, decision)
        if said is not None:
            runtime.confirm(run, decision.subject, yes=said, note=arguments.value("note"))
            decision = runtime.plan(run)
    elif not arguments.flag("plan") and (arguments.flag("yes") or arguments.flag("no")):
        _answer_the_program(arguments, runtime, run)
    status = catalogue()[decision.code].exit_code if decision.code else 0
    checks = [CheckRow(check.name, check.result, check.code, check.details) for check in decision.checks]
    text = f"{run}: {decision.action} {decision.code}".rstrip() + "\n" + render_checks(checks, style_of(arguments))
    data: dict[str, Json] = {"run": run, "decision": decision.as_json()}
    return answer(arguments, text, data, status=status, then=_then(runtime, run, decision))


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


def _answer_the_program(arguments: Arguments, runtime: Runtime, run: str) -> None:
    """What only the program knows (its inputs, its version) it asked itself when it was started last."""
    state = runtime.state(run)
    if state.open_question and state.open_question not in state.confirmations:
        runtime.confirm(run, state.open_question, yes=arguments.flag("yes"), note=arguments.value("note"))


def _settle(arguments: Arguments, runtime: Runtime, run: str) -> None:
    state = runtime.state(run)
    open_effects = {record.step: record.effect for record in (*state.unknown_effects, *state.open_receipts)}
    value = _value_given(arguments)
    for option, choice in SETTLEMENTS:
        for step in arguments.all_of(option):
            if step not in open_effects:
                known = ", ".join(open_effects) or "none"
                what = f"{step!r} is not an effect of unknown outcome or result; those of {run}: {known}"
                raise usage(arguments.command, "invalid_value", what)
            runtime.settle(run, open_effects[step], choice, arguments.value("note"), value=value)


def _value_given(arguments: Arguments) -> Json | NoValue:
    """The value of --value, which belongs to the one effect that is marked as done."""
    if not arguments.all_of("value"):
        return NO_VALUE
    if len(arguments.all_of("mark-done")) != 1 or arguments.all_of("retry") or arguments.all_of("compensate"):
        raise usage(
            arguments.command, "conflicting_options", "--value is the result of one effect: give one --mark-done"
        )
    try:
        value: Json = json.loads(arguments.value("value"))
        stored_text(value)
    except (ValueError, RecursionError) as error:
        raise usage(arguments.command, "invalid_value", f"--value is not JSON that can be stored: {error}") from None
    return value


def _said(arguments: Arguments, run: str, decision: Decision) -> bool | None:
    if arguments.flag("yes") or arguments.flag("no"):
        return arguments.flag("yes")
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.flag("json"):
        return None
    asked = [CheckRow(c.name, c.result, c.code, c.details) for c in decision.checks if c.result == "confirm"]
    sys.stderr.write(f"{render_checks(asked, style_of(arguments))}go on with {run} all the same? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _then(runtime: Runtime, run: str, decision: Decision) -> str:
    if decision.action in {"RESUME", "RESTART_STEP"}:
        state = runtime.state(run)
        packet = f" --packet {state.packet}" if state.packet else ""
        return f"start its program again, or: workpacket run start {state.name}{packet}"
    if decision.action == "COMPLETE":
        return f"workpacket runs show {run}"
    if decision.action == "CONFIRM":
        return f"workpacket resume {run} --yes"
    return catalogue()[decision.code].remedy
