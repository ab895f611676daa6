"""The part of `runs` that shows: list, show, tail, diff."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from workpacket.cli.checking import style_of
from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import answer, moment_of, number_of, one_run, open_runtime, refuse, run_named
from workpacket.cli.timeline import event_as_json, moment_of_event
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import RunRow, render_facts, render_runs, render_timeline
from workpacket.runtime.catalog import RunSummary
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.state import RunState
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.following import following


def carry_out(arguments: Arguments, action: str) -> int:
    try:
        with open_runtime() as runtime:
            return {"list": _list, "show": _show, "tail": _tail, "diff": _diff}[action](arguments, runtime)
    except RuntimeFault as fault:
        return refuse(arguments, fault)


def _list(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) > 1:
        raise usage(arguments.command, "unexpected_argument", "`runs list` takes the beginning of the ids, if anything")
    state, packet = arguments.value("state"), arguments.value("packet")
    lines = [
        line
        for line in runtime.runs(arguments.words[0] if arguments.words else "")
        if state in {"", line.liveness} and packet in {"", line.packet}
    ]
    rows = [RunRow(line.id, line.liveness, line.attention, moment_of(line.since)) for line in lines]
    data: list[Json] = [
        {"run": line.id, "name": line.name, "packet": line.packet, "state": line.liveness,
         "attention": line.attention, "holder": line.holder, "since": moment_of(line.since)}
        for line in lines
    ]  # fmt: skip
    waiting = next((line for line in lines if line.attention), None)
    then = f"workpacket resume {waiting.id} --plan" if waiting else ""
    return answer(arguments, render_runs(rows, style_of(arguments)), {"runs": data}, then=then)


def _show(arguments: Arguments, runtime: Runtime) -> int:
    run = one_run(runtime, arguments)
    if run.startswith(THREADS):
        message = f"{run} is a thread of LangGraph's and no run"
        raise WorkpacketError("checkpoint_missing", message, hint=f"workpacket runs tail {run}")
    at = arguments.value("at")
    summary = runtime.summary(run)
    until = runtime.state(run, at=at).version if at else None
    events = list(runtime.store.read(run, 0, until))
    text = render_facts(_facts(summary, None if summary.attention == "log_damaged" else runtime.state(run, at=at)))
    text += "\n" + render_timeline(map(moment_of_event, events), style_of(arguments))
    data: dict[str, Json] = {
        "run": run, "name": summary.name, "packet": summary.packet, "state": summary.liveness,
        "attempt": summary.attempt, "steps": summary.steps, "effects": summary.effects,
        "checkpoints": summary.checkpoints, "attention": summary.attention, "holder": summary.holder,
        "events": [event_as_json(event) for event in events],
    }  # fmt: skip
    return answer(arguments, text, data, then=f"workpacket resume {run} --plan" if summary.attention else "")


def _facts(summary: RunSummary, state: RunState | None) -> list[tuple[str, str]]:
    why = f" ({catalogue()[summary.attention].title})" if summary.attention in catalogue() else ""
    in_flight = sorted({*state.in_flight, *state.running}) if state is not None else []
    return [
        ("run", summary.id),
        ("packet", summary.packet),
        ("state", summary.liveness),
        ("attention", f"{summary.attention}{why}"),
        ("held by", summary.holder),
        ("attempt", str(summary.attempt)),
        ("steps", str(summary.steps)),
        ("effects", str(summary.effects)),
        ("in flight", ", ".join(in_flight)),
        ("last event", moment_of(summary.updated_at)),
    ]


def _tail(arguments: Arguments, runtime: Runtime) -> int:
    run = one_run(runtime, arguments)
    lines = int(number_of(arguments, "lines", 10))
    style = style_of(arguments)
    shown: list[Event] = []
    for events in _arriving(runtime, run, lines, follow=arguments.flag("follow")):
        if arguments.flag("json"):
            shown += events
        else:
            sys.stdout.write(render_timeline(map(moment_of_event, events), style))
            sys.stdout.flush()
    return answer(arguments, "", {"run": run, "events": [event_as_json(event) for event in shown]})


def _arriving(runtime: Runtime, run: str, lines: int, *, follow: bool) -> Iterator[list[Event]]:
    """The last events, then those that come, until the run has ended."""
    head = runtime.store.head(run)
    version = max(head.version - lines, 0) if head is not None else 0
    with following(runtime.store, run) as wait:
        while True:
            events = list(runtime.store.read(run, version))
            version += len(events)
            yield events
            if not follow or runtime.summary(run).liveness != "live":
                return
            wait()


def _diff(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) != 2:
        raise usage(arguments.command, "missing_argument", "name two runs")
    one, two = (run_named(runtime, word) for word in arguments.words)
    differences = list(_differences(runtime.state(one), runtime.state(two)))
    text = "".join(f"{what}: {old} -> {new}\n" for what, old, new in differences) or "no difference\n"
    data: list[Json] = [{"what": what, "one": old, "two": new} for what, old, new in differences]
    return answer(arguments, text, {"one": one, "two": two, "differences": data})


def _differences(one: RunState, two: RunState) -> Iterator[tuple[str, str, str]]:
    """What was asked for, what was done and what came out: by hash, as the log keeps it."""
    for name in ("status", "packet", "code_version", "scope", "attempt"):
        old, new = str(getattr(one, name)), str(getattr(two, name))
        if old != new:
            yield name, old, new
    yield from _by_key("input", one.inputs, two.inputs)
    yield from _by_key("step", _results(one), _results(two))
    effects = [{record.step: record.status for record in state.effects.values()} for state in (one, two)]
    yield from _by_key("effect", *effects)


def _results(state: RunState) -> dict[str, str]:
    return {key: str(record.event.payload or "") for key, record in state.steps.items()}


def _by_key(what: str, one: Mapping[str, str], two: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key in sorted({*one, *two}):
        if one.get(key) != two.get(key):
            old, new = (values[key][:12] if key in values else "-" for values in (one, two))
            yield f"{what} {key}", old, new
