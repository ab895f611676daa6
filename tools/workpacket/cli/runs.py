"""`workpacket runtime runs`, `cancel` and `signal`: show, prune and verify runs, or act on one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

from workpacket.bridges.run_links import Disagreement, RunLinks, close, disagreements, settle, state_here
from workpacket.cli.checking import style_of
from workpacket.cli.moved_runs import back_up, export, export_raw, import_, restore
from workpacket.cli.open_store import (
    answer,
    json_value,
    moment_of,
    number_of,
    one_run,
    open_runtime,
    refusing,
    run_named,
    with_links,
)
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import ACTING, actor_of, required, words_of
from workpacket.git.repository import find_repository
from workpacket.ledger.fold import LinkedRun
from workpacket.lifecycle.claims import Ending
from workpacket.model.canonical import Json
from workpacket.problem import WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.runs import (
    RunRow,
    TimelineEvent,
    render_facts,
    render_runs,
    render_timeline,
    told_of_dependencies,
)
from workpacket.report.terminal import escape
from workpacket.runtime.catalog import RunSummary, following, removable
from workpacket.runtime.errors import RuntimeFault, VersionConflict
from workpacket.runtime.langgraph import THREADS
from workpacket.runtime.records.events import Event
from workpacket.runtime.records.state import RunState
from workpacket.runtime.resume.observe import shown_short
from workpacket.runtime.runtime import NoValue, Runtime
from workpacket.runtime.stores.contract import problems_of, stream_problems
from workpacket.runtime.stores.memory import MemoryStore

# The symbol of each type of event, and the fields that identify its subject.
_SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "run.started": ("begin", ("name", "packet")),
    "attempt.started": ("begin", ("attempt",)),
    "step.started": ("begin", ("step",)),
    "step.completed": ("done", ("step",)),
    "step.failed": ("fail", ("step", "error")),
    "checkpoint": ("mark", ("name", "id")),
    "checkpoint.prepared": ("begin", ("milestone_index", "milestone_title")),
    "checkpoint_complete": ("mark", ("milestone_index", "commit")),
    "checkpoint_sidecar_write_failed": ("fail", ("sha", "error")),
    "resume_checkpoint_selected": ("mark", ("source", "sha")),
    "lockfile_changed": ("mark", ("base",)),
    "effect.intended": ("begin", ("step", "target")),
    "effect.started": ("begin", ("step", "target", "key")),
    "effect.succeeded": ("done", ("step", "target", "unkept")),
    "effect.failed": ("fail", ("step", "error")),
    "effect.receipt": ("done", ("step", "unkept")),
    "effect.matched": ("mark", ("step",)),
    "effect.doubted": ("wait", ("step", "target", "key")),
    "effect.resolved": ("done", ("choice", "by", "note")),
    "confirmation.requested": ("wait", ("question",)),
    "confirmation.given": ("done", ("answer", "by", "note")),
    "wait.begun": ("wait", ("step",)),
    "wait.ended": ("done", ("step",)),
    "signal.received": ("mark", ("signal", "by")),
    "patch.applied": ("mark", ("patch",)),
    "calls.interleaved": ("mark", ("scope",)),
    "value.published": ("mark", ("child", "name")),
    "retry_token.consumed": ("mark", ("checkpoint",)),
    "cancel.requested": ("wait", ("reason", "by")),
    "run.blocked": ("wait", ("code",)),
    "run.stopped": ("fail", ("code", "error")),
    "run.cancelled": ("fail", ("reason",)),
    "run.completed": ("end", ()),
    "run.handed_over": ("end", ("to", "by")),
    "payload.erased": ("mark", ("reason", "by")),
    "rolled_back": ("fail", ("had", "has")),
}


def moment_of_event(event: Event) -> TimelineEvent:
    sign, fields = _SHOWN.get(event.type, ("mark", ()))
    data = event.values()
    said = ", ".join(str(data[name]) for name in fields if data.get(name))
    again = " (possibly done before)" if data.get("maybe_repeated") else ""
    again += " (key only)" if event.type == "effect.matched" else ""
    if event.type == "lockfile_changed":
        again += "".join(f"; {line}" for line in told_of_dependencies(data))
    return TimelineEvent(event.version, moment_of(event.recorded_at), sign, f"{event.type} {said}".rstrip() + again)


def event_as_json(event: Event, more: Mapping[str, Json] | None = None) -> Json:
    return {
        "version": event.version,
        "type": event.type,
        "time": moment_of(event.recorded_at),
        "recorded_at": event.recorded_at,
        "actor": event.actor,
        "data": dict(event.values()),
        "hash": event.hash,
        **(more or {}),
    }


DAY = 86_400_000_000
SHOWN = 200  # the events of a run that `show` shows
_LONGEST_VALUE = 4000
# The stop reasons of runs that wait for a person's answer. `list` shows these runs first.
ASKING = frozenset(
    {"needs_confirmation", "confirmation_denied", "effect_outcome_unknown", "receipt_redacted", "receipt_unkept"}
)


def _prune(arguments: Arguments, runtime: Runtime) -> int:
    before = runtime.settings.clock.now() - int(number_of(arguments, "older-than", 30) * DAY)
    really = arguments.flag("yes")
    gone = runtime.prune(before) if really else removable(runtime.runs(), before)
    what = "removed" if really else "would be removed"
    text = "".join(f"{escape(run)} {what}\n" for run in gone) or "nothing to remove\n"
    data: dict[str, Json] = {"removed" if really else "would_remove": list(gone)}
    return answer(arguments, text, data, then="workpacket runtime runs prune --yes" if gone and not really else "")


def _verify(arguments: Arguments, runtime: Runtime) -> int:
    store = runtime.store
    if isinstance(store, MemoryStore):
        return answer(arguments, "there is no store here\n", {"problems": [], "runs": 0})
    if arguments.words:
        problems, count = tuple(stream_problems(store, run_named(runtime, arguments.words[0]))), 1
    else:
        problems, count = problems_of(store), len(store.heads())
    status = max((catalogue()[problem.code].exit_code for problem in problems), default=0)
    text = "".join(f"{problem.code}: {escape(problem.message)}\n" for problem in problems)
    listed: list[Json] = [{"code": problem.code, "message": problem.message} for problem in problems]
    then = catalogue()[problems[0].code].remedy if problems else ""
    return answer(arguments, text or f"{count} run{'s' * (count != 1)} verified\n",
                  {"problems": listed, "runs": count}, status=status, then=then)  # fmt: skip


def _list(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) > 1:
        raise usage(
            arguments.command,
            "unexpected_argument",
            "`list` takes at most one argument: a run id or a prefix of one",
        )
    state, packet = arguments.value("state"), arguments.value("packet")
    lines = [
        line
        for line in runtime.runs(arguments.words[0] if arguments.words else "")
        if state in {"", line.liveness} and packet in {"", line.packet}
    ]
    lines.sort(key=lambda line: line.attention not in ASKING)
    waiting = next((line for line in lines if line.attention), None)
    then = f"workpacket resume {quote(waiting.id)} --plan" if waiting else ""
    if not arguments.flag("json"):
        rows = [RunRow(line.id, line.liveness, line.attention, moment_of(line.since)) for line in lines]
        return answer(arguments, render_runs(rows, style_of(arguments)), {}, then=then)
    data: list[Json] = [
        {"run": line.id, "name": line.name, "packet": line.packet, "state": line.liveness,
         "attention": line.attention, "holder": line.holder, "since": moment_of(line.since)}
        for line in lines
    ]  # fmt: skip
    return answer(arguments, "", {"runs": data}, then=then)


def _show(arguments: Arguments, runtime: Runtime) -> int:
    run = one_run(runtime, arguments)
    if run.startswith(THREADS):
        message = f"{run} is a LangGraph thread, not a run"
        raise WorkpacketError("checkpoint_missing", message, hint=f"workpacket runtime runs tail {quote(run)}")
    at = arguments.value("at")
    summary = runtime.summary(run)
    state = None if summary.attention == "log_damaged" else runtime.state(run, at=at)
    published = {} if state is None else runtime.published(run, at=at)
    events = _events_shown(arguments, runtime, run, state.version if at and state is not None else None)
    earlier = events[0].version - 1 if events else 0
    text = render_facts(
        [*_facts(summary, state), *((f"published {name}", shown_short(published[name])) for name in published)]
    )
    if earlier:
        text += f"\nearlier events: workpacket runtime runs show {quote(run)} --before {earlier + 1}\n"
    text += "\n" + render_timeline(map(moment_of_event, events), style_of(arguments))
    values = arguments.flag("values")
    data: dict[str, Json] = {
        "run": run, "name": summary.name, "packet": summary.packet, "state": summary.liveness,
        "attempt": summary.attempt, "steps": summary.steps, "effects": summary.effects,
        "checkpoints": summary.checkpoints, "attention": summary.attention, "holder": summary.holder,
        "waits": waits_of(state) if state is not None else "", "in_flight": list(_in_flight(state)),
        "published": published,
        "events": [event_as_json(event, _value_of(runtime, event) if values else {}) for event in events],
    }  # fmt: skip
    return answer(arguments, text, data, then=f"workpacket resume {quote(run)} --plan" if summary.attention else "")


def _value_of(runtime: Runtime, event: Event) -> dict[str, Json]:
    """Return the inputs or the result stored with an event, as they were stored: secrets are hidden. Of a long value,
    the first characters."""
    try:
        stored = runtime.store.payload(event)
    except RuntimeFault as fault:
        return {"value": fault.message}
    if stored is None:
        return {}
    said = stored.decode("utf-8", "replace")
    return {"value": said if len(said) <= _LONGEST_VALUE else f"{said[:_LONGEST_VALUE]}..."}


def _events_shown(arguments: Arguments, runtime: Runtime, run: str, until: int | None) -> list[Event]:
    """Return the last events, or those before the event given with --before; as JSON, return all of them unless a
    number is given."""
    head = runtime.store.head(run)
    last = until or (head.version if head is not None else 0)
    if arguments.value("before"):
        last = min(last, int(number_of(arguments, "before", 0)) - 1)
    first = max(last - int(number_of(arguments, "lines", last if arguments.flag("json") else SHOWN)), 0)
    return list(runtime.store.read(run, first, last))


def waits_of(state: RunState) -> str:
    """Return what the run is waiting for, in words; '' if nothing."""
    told = []
    for wait in state.open_waits:
        words = [f"for the signal {wait.signal}"] if wait.signal else []
        child, _, _ = wait.step.rpartition("/")
        said = " or ".join([*words, f"until {moment_of(wait.until)}"] if wait.until else words)
        told.append(f"{said} in {child}" if child else said)
    return "; ".join(told)


def _facts(summary: RunSummary, state: RunState | None) -> list[tuple[str, str]]:
    why = f" ({catalogue()[summary.attention].title})" if summary.attention in catalogue() else ""
    return [
        ("run", summary.id),
        ("packet", summary.packet),
        ("state", summary.liveness),
        ("attention", f"{summary.attention}{why}"),
        ("held by", summary.holder),
        ("attempt", str(summary.attempt)),
        ("steps", str(summary.steps)),
        ("effects", str(summary.effects)),
        ("in flight", ", ".join(_in_flight(state))),
        *((("waits", waits_of(state)),) if state is not None else ()),
        ("last event", moment_of(summary.updated_at)),
    ]


def _in_flight(state: RunState | None) -> list[str]:
    return sorted({*state.in_flight, *state.running}) if state is not None else []


def _fork(arguments: Arguments, runtime: Runtime) -> int:
    """Begin a new run from a checkpoint of another."""
    run, key = one_run(runtime, arguments), required(arguments, "once")
    try:
        forked = runtime.fork(run, required(arguments, "at"), key=key)
    except VersionConflict:
        what = f"the key {key!r} already names a run; choose a different one"
        raise usage(arguments.command, "invalid_value", what) from None
    text = f"{escape(forked)} continues from the checkpoint, once its program is started\n"
    return answer(arguments, text, {"run": forked, "of": run}, then=f"workpacket resume {quote(forked)} --plan")


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
    """Yield the last events, then new ones until the run ends."""
    head = runtime.store.head(run)
    version = max(head.version - lines, 0) if head is not None else 0
    with following(runtime.store, run) as wait:
        while True:
            # Checked before the events are read: otherwise an event that ends the run in between would not be shown.
            ended = not follow or runtime.summary(run).liveness != "live"
            events = list(runtime.store.read(run, version))
            version += len(events)
            yield events
            if ended:
                return
            wait()


def _diff(arguments: Arguments, runtime: Runtime) -> int:
    if len(arguments.words) != 2:
        raise usage(arguments.command, "missing_argument", "expected two runs")
    one, two = (run_named(runtime, word) for word in arguments.words)
    differences = list(_differences(runtime.state(one), runtime.state(two)))
    text = "".join(f"{what}: {old} -> {new}\n" for what, old, new in differences) or "no difference\n"
    data: list[Json] = [{"what": what, "one": old, "two": new} for what, old, new in differences]
    return answer(arguments, text, {"one": one, "two": two, "differences": data})


def _differences(one: RunState, two: RunState) -> Iterator[tuple[str, str, str]]:
    """Yield each request, action and result as hashes, as in the log."""
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


# The commands for a disagreement that only a person can settle.
_CHOICES = {
    "elsewhere": "workpacket runtime runs unlink {} --reason TEXT",
    "unlinked": "workpacket runtime cancel {}",
    "not_begun": "workpacket runtime runs settle",
    "late": "workpacket runtime runs settle",
}


def choice_about(one: Disagreement) -> str:
    return _CHOICES[one.what].format(quote(one.run))


def _settle(arguments: Arguments, runtime: Runtime) -> int:
    repository = find_repository(Path.cwd())
    if arguments.words:
        raise usage(
            arguments.command,
            "unexpected_argument",
            "`settle` covers all runs linked to packets and takes no arguments",
        )
    failed: list[WorkpacketError] = []
    settled, left = settle(repository, runtime, RunLinks(repository, failed.append))
    text = "".join(f"settled: {escape(one.message)}\n" for one in settled)
    text += "".join(f"left: {escape(one.message)}\n  -> {escape(choice_about(one))}\n" for one in left)
    text += "".join(f"failed: {escape(one.message)} ({one.code})\n" for one in failed)
    status = catalogue()["run_links_disagree"].exit_code if left else 0
    status = catalogue()[failed[0].code].exit_code if failed else status
    data: dict[str, Json] = {"settled": [_as_json(one) for one in settled], "left": [_as_json(one) for one in left]}
    then = choice_about(left[0]) if left else ""
    return answer(arguments, text or "the log and the store agree on every run\n", data, status=status, then=then)


def _as_json(one: Disagreement) -> Json:
    return {"run": one.run, "packet": one.packet, "what": one.what, "message": one.message,
            "command": choice_about(one)}  # fmt: skip


def _unlink(arguments: Arguments, runtime: Runtime) -> int:
    """Record a person's declaration that a run will never finish, because its store is gone. The log records who
    declared it and why.
    """
    if len(arguments.words) != 1 or "/" not in arguments.words[0]:
        raise usage(
            arguments.command,
            "missing_argument",
            "expected one run that belongs to a packet, such as WP-1-Parser-v1/nightly@1",
        )
    run, reason = arguments.words[0], required(arguments, "reason")
    packet, repository = run.rpartition("/")[0], find_repository(Path.cwd())
    actor = actor_of(arguments, repository)
    if actor.kind != "human":
        message = f"{actor.id} is listed as {actor.kind}; only a person may declare a run lost"
        raise WorkpacketError(
            "person_needed", message, hint=f"ask a person to run: workpacket runtime runs unlink {quote(run)}"
        )
    found = [one for one in state_here(repository, packet).open_runs if one.run == run]
    if not found:
        raise WorkpacketError("checkpoint_missing", f"the log of {packet} has no open link to {run}",
                              hint=f"workpacket show {packet}")  # fmt: skip
    for one in disagreements(repository, runtime):
        if one.run == run and one.what in {"late", "not_begun"}:
            raise WorkpacketError("run_not_lost", one.message, hint="workpacket runtime runs settle")

    identity = runtime.store.identity
    lost = [one for one in found if one.store != identity]
    if not lost:
        raise WorkpacketError("run_not_lost", f"this store contains {run}, so the run can be resumed or cancelled",
                              hint=f"workpacket runtime cancel {quote(run)}")  # fmt: skip

    def is_it(other: LinkedRun) -> bool:
        return other.run == run and other.store != identity

    closed = close(repository, actor, packet, is_it, lambda: Ending("lost", reason=reason))
    data: dict[str, Json] = {"run": run, "packet": packet, "outcome": "lost", "links": len(closed)}
    return answer(arguments, f"{escape(run)} is lost: it no longer prevents a verdict on {packet}\n", data,
                  then=f"workpacket why {packet}")  # fmt: skip


ACTIONS = {
    "list": _list, "show": _show, "tail": _tail, "diff": _diff,
    "export": export, "import": import_, "prune": _prune, "verify": _verify,
    "settle": _settle, "unlink": _unlink, "fork": _fork,
}  # fmt: skip
# They open the file themselves.
_WHOLE = {"back-up": back_up, "restore": restore}


@refusing
def run(arguments: Arguments) -> int:
    action = subcommand(arguments, (*ACTIONS, *_WHOLE))
    if action in _WHOLE:
        return _WHOLE[action](arguments)
    if action == "export" and arguments.flag("raw"):
        return export_raw(arguments)
    with open_runtime(create=action == "import") as runtime:
        return with_links(runtime, ACTIONS[action](arguments, runtime))


@refusing
def cancel(arguments: Arguments) -> int:
    with open_runtime() as runtime:
        run = one_run(runtime, arguments)
        runtime.cancel(run, arguments.value("reason", "cancelled on the command line"))
        state = runtime.state(run).status
        text = f"{run} is cancelled\n" if state == "cancelled" else f"{run} will stop at its next step boundary\n"
        data: dict[str, Json] = {"run": run, "state": state}
        return with_links(runtime, answer(arguments, text, data, then=f"workpacket runtime runs show {quote(run)}"))


@refusing
def signal(arguments: Arguments) -> int:
    with open_runtime() as runtime:
        start, name = words_of(arguments, 2, "a run id and the name of a signal")
        run = run_named(runtime, start)
        value = json_value(arguments)
        runtime.signal(run, name, None if isinstance(value, NoValue) else value, key=arguments.value("once"))
        text = f"{run} has the signal {name}\n"
        then = f"workpacket runtime runs show {quote(run)}"
        return with_links(runtime, answer(arguments, text, {"run": run, "signal": name}, then=then))


RUNS = Command(
    "runs",
    run,
    arguments="list [PREFIX] | show ID | tail ID | diff ID ID | export ID | import FILE | prune | verify [ID]"
    " | back-up FILE | restore FILE | fork ID --at CHECKPOINT --once KEY | settle | unlink ID",
    description="""
A run is named by its id, or by an unambiguous prefix of it. `import` takes over an exported run; or, from a file of
LangGraph's SqliteSaver or the URL of a PostgresSaver, threads, which also remain there. `prune` removes finished runs
whose last event is older than some days; without --yes, it only lists them. `back-up` copies the whole store to a file
while programs go on working, and verifies the copy; `restore` puts it back, keeps the store that it replaces, and says
what each run lost. `fork` begins a new run from a checkpoint
of another: everything done before it stays done. A run of a packet is recorded in the
packet's log, and blocks a verdict while it is unfinished. If a crash left log and store inconsistent, `settle` records
in the log what the store knows; for a run whose store is gone, a person declares with `unlink` that it is lost, and
why.""",
    options=(
        Option("state", "list: only runs in this state",
               choices=("live", "interrupted", "stopped", "cancelled", "completed", "moved")),
        Option("packet", "list: only runs of this work packet", value="WP_ID"),
        Option("at", "show: the run as of this checkpoint; fork: where the new run begins", value="CHECKPOINT"),
        Option("once", "fork: the key that names the new run, as in NAME@KEY; it is used once", value="KEY"),
        Option("values", "show: with --json, also the stored inputs and results, in which secrets are hidden"),
        Option("lines",
               f"show: how many events (default {SHOWN}; with --json, all); tail: how many to show first (default 10)",
               value="N"),
        Option("before", "show: only events before this one", value="EVENT"),
        Option("follow", "tail: wait for more events until the run ends"),
        Option("format", "export: as CloudEvents 1.0 without payloads, instead of in the stored form",
               choices=("cloudevents",)),
        Option("out", "export: write to this file", value="FILE"),
        Option("move", "export: the run will be continued in another store; with --out, no longer in this one"),
        Option("raw", "export: the whole store as SQL, without interpreting it, even if it is from a newer version"),
        Option("thread", "import: only this thread of the database", value="ID", many=True),
        Option("older-than", "prune: days without an event (default: 30)", value="DAYS"),
        Option("yes", "prune: remove the runs instead of listing them; restore: also restore a damaged backup"),
        Option("reason", "unlink: why the run will never be finished", value="TEXT"),
        *ACTING,
    ),
    examples=(
        "workpacket runtime runs list --state interrupted",
        "workpacket runtime runs show nightly@00000003",
        "workpacket runtime runs tail nightly@00000003 --follow",
        "workpacket runtime runs fork nightly@00000003 --at 4c18dd9988217354 --once second-half",
        "workpacket runtime runs export nightly@00000003 --out nightly.jsonl",
        "workpacket runtime runs export nightly@00000003 --move --out nightly.jsonl",
        "workpacket runtime runs export nightly@00000003 --format cloudevents",
        "workpacket runtime runs import nightly.jsonl",
        "workpacket runtime runs import checkpoints.sqlite --thread bill-7",
        "workpacket runtime runs prune --older-than 90 --yes",
        "workpacket runtime runs verify",
        "workpacket runtime runs back-up runs-2026-03-01.db",
        "workpacket runtime runs restore runs-2026-03-01.db",
        "workpacket runtime runs settle",
        "workpacket runtime runs unlink WP-1-Parser-v1/nightly@00000003 --reason 'the laptop was stolen'",
    ),
)  # fmt: skip


CANCEL = Command(
    "cancel",
    cancel,
    arguments="ID",
    description="""
An active run stops before its next step, chunk or effect, never between an effect and its record. A run without a
worker is cancelled immediately. Either can be resumed later if a person confirms it.""",
    options=(Option("reason", "the reason, for readers of the log", value="TEXT"),),
    examples=("workpacket runtime cancel nightly@00000003 --reason 'wrong month'",),
)


SIGNAL = Command(
    "signal",
    signal,
    arguments="ID SIGNAL",
    description="""
The run's next `run.wait_for(SIGNAL)` returns the value. Signals with the same name are received in the order in which
they were sent, one per wait; a signal that arrives before its wait is kept.""",
    options=(
        Option("value", "the value that the program receives, as JSON (default: null)", value="JSON"),
        Option("once", "send the signal only once, even if the command is repeated with this key", value="KEY"),
    ),
    examples=(
        "workpacket runtime signal order@00000003 paid --value '{\"amount\": 100}'",
        "workpacket runtime signal order@00000003 paid --once payment-7",
    ),
)


DECLARED = {command.name: command for command in (RUNS, CANCEL, SIGNAL)}
